//! Calls to the API server. Each has a time-out, none is retried here: whether
//! a call may be repeated is for the step that made it to say.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use serde::{Deserialize, Serialize};
use tower::ServiceExt;

use super::config::{ConnectError, configure};
use super::error::{ApiError, ApiErrorKind, Refusal, in_words};
use super::resource::{Resource, escape, group_version_path};
use super::transport::{self, ResponseBody, Transport};
use crate::limits;
use crate::metrics::{Metrics, RestMetrics};

/// The API server: cheap to clone, all clones share connections.
#[derive(Clone)]
pub struct Api {
    transport: Transport,
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    /// `limits::API_CALL`; shorter in tests.
    call_limit: Duration,
    default_namespace: String,
    requests: RestMetrics,
}

// === Reading ===

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
            let answer = self.send(Method::GET, uri, None).await?;
            if answer.status().is_success() { Ok(answer.into_body()) } else { Err(refused(answer).await) }
        };
        within(self.shared.call_limit, open).await.map_err(at(call))
    }

    /// What the server says of a kind; none only where a reachable server says that it does not serve it.
    pub async fn discover(&self, group: &str, version: &str, plural: &str) -> Result<Option<Resource>, ApiError> {
        let call = || format!("discover {plural} in {group}/{version}");
        let uri = group_version_path(group, version);
        let body = match self.call(Method::GET, uri, None, limits::ANSWER_BYTES).await {
            Err(ApiErrorKind::Status(refusal)) if refusal.code == 404 && refusal.by_kubernetes => return Ok(None),
            answer => answer.map_err(at(call))?,
        };
        let list: ResourceList = decode(&body).map_err(at(call))?;
        let has_status = list.resources.iter().any(|found| found.name.strip_suffix("/status") == Some(plural));
        Ok(list.resources.into_iter().find(|found| found.name == plural).map(|found| Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: found.kind,
            plural: found.name,
            namespaced: found.namespaced,
            has_status,
        }))
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
        let answer = self.call(Method::POST, uri, Some((JSON, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
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

#[derive(Deserialize)]
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

// === Writing ===

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// JSON is YAML.
const APPLY: HeaderValue = HeaderValue::from_static("application/apply-patch+yaml");

impl Api {
    /// Server-side apply, forced.
    pub async fn apply(
        &self,
        resource: &Resource,
        subresource: Option<&str>,
        namespace: Option<&str>,
        name: &str,
        manager: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, ApiError> {
        let call = || format!("apply {}", resource.describe(namespace, Some(name), subresource));
        let mut uri = resource.path(namespace, Some(name), subresource);
        uri.push_str("?force=true");
        parameter(&mut uri, "fieldManager", manager);
        let answer =
            self.call(Method::PATCH, uri, Some((APPLY, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
        let verb = if subresource.is_none() { "apply" } else { "apply-subresource" };
        self.wrote(resource, verb);
        Ok(answer)
    }

    pub async fn create(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        manager: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, ApiError> {
        let call = || format!("create {}", resource.describe(namespace, None, None));
        let mut uri = resource.path(namespace, None, None);
        uri.push('?');
        parameter(&mut uri, "fieldManager", manager);
        let answer = self.call(Method::POST, uri, Some((JSON, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
        self.wrote(resource, "create");
        Ok(answer)
    }

    /// Deletes exactly this object (uid), where asked exactly this state of it (resourceVersion). A 404 is an error.
    pub async fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        (uid, resource_version): (&str, Option<&str>),
    ) -> Result<(), ApiError> {
        let call = || format!("delete {}", resource.describe(namespace, Some(name), None));
        let options = DeleteOptions {
            api_version: "v1",
            kind: "DeleteOptions",
            propagation_policy: "Background",
            preconditions: Preconditions { uid, resource_version },
        };
        let body =
            serde_json::to_vec(&options).map_err(|error| ApiErrorKind::Decode(error.to_string())).map_err(at(call))?;
        let uri = resource.path(namespace, Some(name), None);
        self.call(Method::DELETE, uri, Some((JSON, body)), limits::ANSWER_BYTES).await.map_err(at(call))?;
        self.wrote(resource, "delete");
        Ok(())
    }

    fn wrote(&self, resource: &Resource, verb: &'static str) {
        self.shared.requests.metrics().wrote(&resource.dotted(), verb);
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptions<'a> {
    api_version: &'a str,
    kind: &'a str,
    propagation_policy: &'a str,
    preconditions: Preconditions<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}

// === Connecting ===

impl Api {
    /// Reads the configuration: a named context, else `KUBECONFIG` or `~/.kube/config`, else the Pod's own. Calls nothing.
    pub async fn connect(context: Option<&str>, metrics: Metrics) -> Result<Self, ConnectError> {
        let config = configure(context).await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let transport = transport::connect(&config)
            .map_err(|error| ConnectError::Setup { server: server.clone(), reason: in_words(&error) })?;
        Ok(Self::over(transport, &server, &config.default_namespace, &metrics))
    }

    /// Over a transport of the caller's own.
    pub fn over(transport: Transport, server: &str, default_namespace: &str, metrics: &Metrics) -> Self {
        Self::limited(transport, server, default_namespace, metrics, limits::API_CALL)
    }

    pub(super) fn limited(
        transport: Transport,
        server: &str,
        default_namespace: &str,
        metrics: &Metrics,
        call_limit: Duration,
    ) -> Self {
        let host = server.split_once("://").map_or(server, |(_, host)| host);
        let shared = Shared {
            server: server.to_owned(),
            call_limit,
            default_namespace: default_namespace.to_owned(),
            requests: metrics.rest(host),
        };
        Self { transport, shared: Arc::new(shared) }
    }

    pub fn default_namespace(&self) -> &str {
        &self.shared.default_namespace
    }

    pub fn server(&self) -> &str {
        &self.shared.server
    }

    pub(super) fn metrics(&self) -> &Metrics {
        self.shared.requests.metrics()
    }
}

// === One call ===

type Content = (HeaderValue, Vec<u8>);

impl Api {
    async fn call(
        &self,
        method: Method,
        uri: String,
        content: Option<Content>,
        cap: usize,
    ) -> Result<Bytes, ApiErrorKind> {
        let call = async {
            let answer = self.send(method, uri, content).await?;
            if answer.status().is_success() { read(answer.into_body(), cap).await } else { Err(refused(answer).await) }
        };
        within(self.shared.call_limit, call).await
    }

    async fn send(
        &self,
        method: Method,
        uri: String,
        content: Option<Content>,
    ) -> Result<Response<ResponseBody>, ApiErrorKind> {
        const AGENT: HeaderValue = HeaderValue::from_static(concat!("keelson/", env!("CARGO_PKG_VERSION")));
        let name = name_of(&method);
        let mut request =
            Request::builder().method(method).uri(uri).header(header::ACCEPT, JSON).header(header::USER_AGENT, AGENT);
        let mut body = Vec::new();
        if let Some((kind, content)) = content {
            request = request.header(header::CONTENT_TYPE, kind);
            body = content;
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| ApiErrorKind::Connect(format!("no request can be made of it: {error}")))?;
        let answer = self.transport.clone().oneshot(request).await;
        self.shared.requests.answered(name, answer.as_ref().ok().map(|answer| answer.status().as_u16()));
        answer.map_err(|error| {
            let words = in_words(&*error);
            match error.downcast_ref::<kube::client::AuthError>() {
                Some(_) => ApiErrorKind::Auth(words),
                None => ApiErrorKind::Connect(format!("{}: {words}", self.shared.server)),
            }
        })
    }
}

fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::PUT => "PUT",
        _ => "GET",
    }
}

async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, ApiErrorKind>>) -> Result<T, ApiErrorKind> {
    tokio::time::timeout(limit, call).await.unwrap_or(Err(ApiErrorKind::Timeout(limit)))
}

async fn read(mut body: ResponseBody, cap: usize) -> Result<Bytes, ApiErrorKind> {
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiErrorKind::Connect(in_words(&*error)))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > cap {
            return Err(ApiErrorKind::Decode(format!("the answer is larger than {cap} bytes")));
        }
        // Most answers are one frame: no copy.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { Bytes::from(all) })
}

async fn refused(answer: Response<ResponseBody>) -> ApiErrorKind {
    let code = answer.status().as_u16();
    let retry_after = answer
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse().ok())
        .map(Duration::from_secs);
    let body = match read(answer.into_body(), limits::ANSWER_BYTES).await {
        Ok(body) => body,
        Err(kind) => return kind,
    };
    ApiErrorKind::Status(Refusal::read(code, retry_after, &body))
}

fn at(call: impl FnOnce() -> String) -> impl FnOnce(ApiErrorKind) -> ApiError {
    move |kind| ApiError::new(call(), kind)
}

fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiErrorKind> {
    serde_json::from_slice(body).map_err(|error| ApiErrorKind::Decode(error.to_string()))
}

fn parameter(uri: &mut String, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    if !uri.ends_with('?') {
        uri.push('&');
    }
    uri.push_str(name);
    uri.push('=');
    escape(uri, value);
}

#[cfg(test)]
mod tests;
