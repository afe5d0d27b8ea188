//! The API server and one call to it: under a time-out, counted, never retried
//! here. Whether a call may be repeated is for the step that made it to say.
//! Whatever is no GET goes through the fence, so that only a leader writes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;
use tower::ServiceExt;

use super::config::{ConnectError, configure};
use super::error::{ApiError, ApiErrorKind, Refusal, in_words};
use super::fence::Fence;
use super::resource::escape;
use super::transport::{self, RequestBody, ResponseBody, Transport};
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
    fence: Fence,
    /// What the server last said that its time was, and when.
    date: Mutex<Option<(Instant, HeaderValue)>>,
}

// === Connecting ===

impl Api {
    /// Reads the configuration: a named context, else `KUBECONFIG` or `~/.kube/config`, else the Pod's own. Calls nothing.
    pub async fn connect(context: Option<&str>, fence: Fence, metrics: &Metrics) -> Result<Self, ConnectError> {
        let config = configure(context).await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let transport = transport::connect(&config)
            .map_err(|error| ConnectError::Setup { server: server.clone(), reason: in_words(&error) })?;
        Ok(Self::over(transport, &server, &config.default_namespace, fence, metrics, limits::API_CALL))
    }

    /// Over a transport of the caller's own.
    pub(super) fn over(
        transport: Transport,
        server: &str,
        default_namespace: &str,
        fence: Fence,
        metrics: &Metrics,
        call_limit: Duration,
    ) -> Self {
        let host = server.split_once("://").map_or(server, |(_, host)| host);
        let shared = Shared {
            server: server.to_owned(),
            call_limit,
            default_namespace: default_namespace.to_owned(),
            requests: metrics.rest(host),
            fence,
            date: Mutex::default(),
        };
        Self { transport, shared: Arc::new(shared) }
    }

    pub fn default_namespace(&self) -> &str {
        &self.shared.default_namespace
    }

    /// Whether this host leads, or is alone.
    pub fn may_write(&self) -> bool {
        self.fence().left().is_some()
    }

    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// The API server's wall clock, to the second, by its last answer; `None` where it does not say.
    pub fn server_time(&self) -> Option<Timestamp> {
        let (heard, date) = self.shared.date.lock().clone()?;
        http_date(date.to_str().ok()?)?.checked_add(heard.elapsed()).ok()
    }

    pub(super) fn call_limit(&self) -> Duration {
        self.shared.call_limit
    }

    pub(super) fn fence(&self) -> &Fence {
        &self.shared.fence
    }

    pub(super) fn metrics(&self) -> &Metrics {
        self.shared.requests.metrics()
    }
}

// === One call ===

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Content = (HeaderValue, Vec<u8>);

impl Api {
    /// A write (all but a GET) ends with this host's lease at the latest, and is not sent where there is none.
    pub(super) async fn call(
        &self,
        method: Method,
        uri: String,
        content: Option<Content>,
        cap: usize,
    ) -> Result<Bytes, ApiErrorKind> {
        if method == Method::GET {
            return self.call_unfenced(method, uri, content, cap).await;
        }
        let fence = &self.shared.fence;
        if fence.left().is_none() {
            return Err(ApiErrorKind::NotLeading);
        }
        let asked = Instant::now();
        tokio::select! {
            // First: what a stopped process finds when it goes on is that its time is over.
            biased;
            () = fence.ended() => Err(ApiErrorKind::Timeout(asked.elapsed())),
            answer = self.limited(method, uri, content, Some(fence), cap) => answer,
        }
    }

    /// For what writes no object (a question that is a POST), and for the lease itself, which opens the fence.
    pub(super) async fn call_unfenced(
        &self,
        method: Method,
        uri: String,
        content: Option<Content>,
        cap: usize,
    ) -> Result<Bytes, ApiErrorKind> {
        self.limited(method, uri, content, None, cap).await
    }

    async fn limited(
        &self,
        method: Method,
        uri: String,
        content: Option<Content>,
        fence: Option<&Fence>,
        cap: usize,
    ) -> Result<Bytes, ApiErrorKind> {
        let call = async {
            let answer = self.send(method, uri, content, fence).await?;
            if answer.status().is_success() { read(answer.into_body(), cap).await } else { Err(refused(answer).await) }
        };
        within(self.shared.call_limit, call).await
    }

    pub(super) async fn send(
        &self,
        method: Method,
        uri: String,
        content: Option<Content>,
        fence: Option<&Fence>,
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
            .body(RequestBody::new(body, fence.cloned()))
            .map_err(|error| ApiErrorKind::Connect(format!("no request can be made of it: {error}")))?;
        let answer = self.transport.clone().oneshot(request).await;
        if let Some(date) = answer.as_ref().ok().and_then(|answer| answer.headers().get(header::DATE)) {
            *self.shared.date.lock() = Some((Instant::now(), date.clone()));
        }
        self.shared.requests.answered(name, answer.as_ref().ok().map(|answer| answer.status().as_u16()));
        answer.map_err(|error| {
            let words = in_words(&*error);
            match error.downcast_ref::<kube::client::AuthError>() {
                Some(_) => ApiErrorKind::Auth(words),
                None if was_held_back(&*error) => ApiErrorKind::NotLeading,
                None => ApiErrorKind::Connect(format!("{}: {words}", self.shared.server)),
            }
        })
    }
}

/// Whether the fence closed between the question and the first byte.
fn was_held_back(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<transport::Closed>())
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

/// IMF-fixdate, as RFC 9110 has it.
fn http_date(text: &str) -> Option<Timestamp> {
    Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp())
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

#[cfg(test)]
mod tests {
    use super::http_date;

    #[test]
    fn the_servers_time_is_read() {
        let date = http_date("Tue, 01 Dec 2026 09:16:51 GMT").unwrap();
        assert_eq!(date.to_string(), "2026-12-01T09:16:51Z");
        assert_eq!(http_date("yesterday"), None);
    }
}
