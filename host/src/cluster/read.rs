//! What is asked of the API server: objects, lists, watches, what it serves and what we may.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::client::{Api, JSON, at, decode, parameter, refused, within};
use super::error::{ApiError, ApiErrorKind};
use super::resource::{Resource, escape, group_version_path};
use super::transport::ResponseBody;
use crate::limits;

impl Api {
    pub async fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Bytes, ApiError> {
        let call = || format!("get {}", resource.describe(namespace, Some(name), None));
        self.call(Method::GET, resource.path(namespace, Some(name), None), None, limits::ANSWER_BYTES)
            .await
            .map_err(at(call))
    }

    /// One page. Without a resourceVersion: as of now, never an older state that another server still shows.
    pub(super) async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: Option<&str>,
        token: &str,
    ) -> Result<Bytes, ApiError> {
        let call = || format!("list {}", resource.describe(namespace, None, None));
        let mut uri = resource.path(namespace, None, None);
        uri.push_str(&format!("?limit={}", limits::LIST_PAGE));
        parameter(&mut uri, "labelSelector", selector.unwrap_or_default());
        parameter(&mut uri, "continue", token);
        self.call(Method::GET, uri, None, limits::LIST_BYTES).await.map_err(at(call))
    }

    /// At most so many objects, as of now, each as JSON text; `None` where there are more.
    pub async fn list_few(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: &str,
        most: usize,
    ) -> Result<Option<Vec<Box<RawValue>>>, ApiError> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(default)]
            items: Option<Vec<Box<RawValue>>>,
            #[serde(default)]
            metadata: Metadata,
        }
        #[derive(Deserialize, Default)]
        struct Metadata {
            #[serde(default)]
            r#continue: String,
        }
        let call = || format!("list {}", resource.describe(namespace, None, None));
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let page = self.list(resource, namespace, Some(selector), &token).await?;
            let Page { items, metadata } = decode(&page).map_err(at(call))?;
            found.extend(items.unwrap_or_default());
            if found.len() > most {
                return Ok(None);
            }
            // A page may hold fewer than were asked for, though there are more.
            token = metadata.r#continue;
            if token.is_empty() {
                return Ok(Some(found));
            }
        }
    }

    /// Opens a watch: the answer's body is the stream. Only the start is under a time-out.
    pub(super) async fn open_watch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: Option<&str>,
        resource_version: &str,
        server_timeout: Duration,
    ) -> Result<ResponseBody, ApiError> {
        let call = || format!("watch {}", resource.describe(namespace, None, None));
        let mut uri = resource.path(namespace, None, None);
        uri.push_str(&format!("?watch=1&allowWatchBookmarks=true&timeoutSeconds={}", server_timeout.as_secs()));
        parameter(&mut uri, "resourceVersion", resource_version);
        parameter(&mut uri, "labelSelector", selector.unwrap_or_default());
        let open = async {
            let answer = self.send(Method::GET, uri, None, None).await?;
            if answer.status().is_success() { Ok(answer.into_body()) } else { Err(refused(answer).await) }
        };
        within(self.call_limit(), open).await.map_err(at(call))
    }

    /// What the server says of a kind; none only where a reachable server says that it does not serve it.
    pub async fn discover(&self, group: &str, version: &str, plural: &str) -> Result<Option<Resource>, ApiError> {
        self.discover_by(group, version, |found| found.name == plural).await
    }

    /// The same of a kind whose plural is not known.
    pub async fn discover_by_kind(&self, group: &str, version: &str, kind: &str) -> Result<Option<Resource>, ApiError> {
        self.discover_by(group, version, |found| found.kind == kind).await
    }

    async fn discover_by(
        &self,
        group: &str,
        version: &str,
        is: impl Fn(&FoundResource) -> bool,
    ) -> Result<Option<Resource>, ApiError> {
        let call = || format!("discover what {group}/{version} holds");
        let uri = group_version_path(group, version);
        let body = match self.call(Method::GET, uri, None, limits::ANSWER_BYTES).await {
            Err(ApiErrorKind::Status(refusal)) if refusal.code == 404 && refusal.by_kubernetes => return Ok(None),
            answer => answer.map_err(at(call))?,
        };
        let list: ResourceList = decode(&body).map_err(at(call))?;
        let Some(found) = list.resources.iter().find(|found| !found.name.contains('/') && is(found)).cloned() else {
            return Ok(None);
        };
        let has_status = list.resources.iter().any(|other| other.name.strip_suffix("/status") == Some(&found.name));
        Ok(Some(Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: found.kind.clone(),
            plural: found.name.clone(),
            namespaced: found.namespaced,
            has_status,
        }))
    }

    /// A kind in whatever version the server prefers; none only where a reachable server says that it does not serve it.
    pub async fn discover_kind(&self, group: &str, kind: &str) -> Result<Option<Resource>, ApiError> {
        let call = || format!("discover {kind} in {group}");
        let mut versions = vec!["v1".to_owned()];
        if !group.is_empty() {
            let mut uri = "/apis/".to_owned();
            escape(&mut uri, group);
            versions = match self.call(Method::GET, uri, None, limits::ANSWER_BYTES).await {
                Err(ApiErrorKind::Status(refusal)) if refusal.code == 404 && refusal.by_kubernetes => return Ok(None),
                answer => decode::<Group>(&answer.map_err(at(call))?).map_err(at(call))?.in_order(),
            };
        }
        for version in versions {
            if let Some(found) = self.discover_by(group, &version, |found| found.kind == kind).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Whether we may, by the server's own authorizers.
    pub async fn may(
        &self,
        verb: &str,
        resource: &Resource,
        subresource: Option<&str>,
        namespace: Option<&str>,
    ) -> Result<bool, ApiError> {
        let call = || format!("ask for the right to {verb} {}", resource.describe(namespace, None, subresource));
        let review = AccessReview {
            api_version: "authorization.k8s.io/v1",
            kind: "SelfSubjectAccessReview",
            spec: AccessSpec {
                resource_attributes: ResourceAttributes {
                    verb,
                    group: &resource.group,
                    version: &resource.version,
                    resource: &resource.plural,
                    subresource,
                    namespace: namespace.filter(|_| resource.namespaced),
                },
            },
        };
        let body =
            serde_json::to_vec(&review).map_err(|error| ApiErrorKind::Decode(error.to_string())).map_err(at(call))?;
        let uri = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
        let answer =
            self.call_unfenced(Method::POST, uri, Some((JSON, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
        decode::<AccessAnswer>(&answer).map(|answer| answer.status.allowed).map_err(at(call))
    }

    /// The server's version; the cheapest call that needs a valid certificate and token.
    pub async fn version(&self) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let call = || "get /version".to_owned();
        let body = self.call(Method::GET, "/version".to_owned(), None, limits::ANSWER_BYTES).await.map_err(at(call))?;
        decode::<Version>(&body).map(|version| version.git_version).map_err(at(call))
    }
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<FoundResource>,
}

/// APIGroup, reduced.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: GroupVersion,
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

impl Group {
    /// The preferred version first.
    fn in_order(self) -> Vec<String> {
        let mut versions = vec![self.preferred_version.version];
        for GroupVersion { version } in self.versions {
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions
    }
}

#[derive(Clone, Deserialize)]
struct FoundResource {
    name: String,
    kind: String,
    namespaced: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessReview<'a> {
    api_version: &'a str,
    kind: &'a str,
    spec: AccessSpec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessSpec<'a> {
    resource_attributes: ResourceAttributes<'a>,
}

#[derive(Serialize)]
struct ResourceAttributes<'a> {
    verb: &'a str,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subresource: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
}

#[derive(Deserialize)]
struct AccessAnswer {
    status: AccessStatus,
}

#[derive(Deserialize)]
struct AccessStatus {
    allowed: bool,
}
