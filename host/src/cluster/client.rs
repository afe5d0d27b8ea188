//! The API server and one call to it: under a time-out, counted, never retried
//! here. Whether a call may be repeated is for the step that made it to say.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use serde::Deserialize;
use tower::ServiceExt;

use super::config::{ConnectError, configure};
use super::error::{ApiError, ApiErrorKind, Refusal, in_words};
use super::resource::escape;
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

    pub(super) fn call_limit(&self) -> Duration {
        self.shared.call_limit
    }

    pub(super) fn metrics(&self) -> &Metrics {
        self.shared.requests.metrics()
    }
}

// === One call ===

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Content = (HeaderValue, Vec<u8>);

impl Api {
    pub(super) async fn call(
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

    pub(super) async fn send(
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

pub(super) async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, ApiErrorKind>>,
) -> Result<T, ApiErrorKind> {
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

pub(super) async fn refused(answer: Response<ResponseBody>) -> ApiErrorKind {
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

pub(super) fn at(call: impl FnOnce() -> String) -> impl FnOnce(ApiErrorKind) -> ApiError {
    move |kind| ApiError::new(call(), kind)
}

pub(super) fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiErrorKind> {
    serde_json::from_slice(body).map_err(|error| ApiErrorKind::Decode(error.to_string()))
}

pub(super) fn parameter(uri: &mut String, name: &str, value: &str) {
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
