//! The API server's audit log: who asked for what, one line for each finished request.

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;

/// One request. A watch is logged when it ends.
#[derive(Debug, Clone)]
pub struct Call {
    pub user: String,
    pub verb: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub code: u16,
    pub uri: String,
    /// When the request came, as the server writes it (RFC 3339, microseconds: comparable as text).
    pub at: String,
}

impl Call {
    pub fn time(&self) -> anyhow::Result<Timestamp> {
        Ok(self.at.parse()?)
    }
}

/// A list of requests, to be narrowed and counted.
#[derive(Clone, Default)]
pub struct Calls(pub Vec<Call>);

/// The server's line, as far as it is read here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: String,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl Calls {
    /// The calls of an audit log; a last line that is still being written is left out.
    pub(crate) fn parse(log: &str) -> Self {
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        Self(lines.map(Call::from).collect())
    }

    pub fn filter(&self, keep: impl Fn(&Call) -> bool) -> Self {
        Self(self.0.iter().filter(|call| keep(call)).cloned().collect())
    }

    pub fn user(&self, name: &str) -> Self {
        self.filter(|call| call.user == name)
    }

    pub fn verb(&self, verb: &str) -> Self {
        self.filter(|call| call.verb == verb)
    }

    pub fn resource(&self, resource: &str) -> Self {
        self.filter(|call| call.resource == resource)
    }

    pub fn writes(&self) -> Self {
        self.filter(|call| !matches!(call.verb.as_str(), "get" | "list" | "watch"))
    }

    /// Single reads and lists; a watch is none.
    pub fn reads(&self) -> Self {
        self.filter(|call| matches!(call.verb.as_str(), "get" | "list"))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Line> for Call {
    fn from(line: Line) -> Self {
        let ObjectRef { resource, subresource, namespace, name } = line.object_ref;
        Self {
            user: line.user.username,
            verb: line.verb,
            resource,
            subresource,
            namespace,
            name,
            code: line.response_status.code,
            uri: line.request_uri,
            at: line.request_received_timestamp,
        }
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| writeln!(f, "{} {} {} {} by {}", c.at, c.verb, c.uri, c.code, c.user))
    }
}
