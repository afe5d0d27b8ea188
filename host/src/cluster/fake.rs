//! A scripted API server for unit tests: the test takes each call as it comes
//! and says what it is answered.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::{mpsc, oneshot};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, service_fn};

use super::client::Api;
use super::fence::Fence;
use super::resource::Resource;
use super::transport::{RequestBody, ResponseBody, Transport};
use crate::metrics::Metrics;

/// How long a test waits for what must come.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) struct Fake {
    calls: mpsc::UnboundedReceiver<Call>,
    pub(crate) metrics: Metrics,
}

pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    answer: oneshot::Sender<Result<Response<ResponseBody>, BoxError>>,
}

impl Fake {
    /// An API server, and the client of it whose calls end after `limit`.
    pub(crate) fn new(limit: Duration) -> (Api, Fake) {
        Self::fenced(Fence::open(), limit)
    }

    pub(crate) fn fenced(fence: Fence, limit: Duration) -> (Api, Fake) {
        let (sender, calls) = mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<RequestBody>| {
            let sender = sender.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let (answer, answered) = oneshot::channel();
                let header = parts.headers.get(http::header::CONTENT_TYPE);
                let content_type = header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
                let uri = parts.uri.to_string();
                let _ = sender.send(Call { method: parts.method, uri, content_type, body, answer });
                answered.await.unwrap_or_else(|_| Err("connection reset".into()))
            }
        });
        let metrics = Metrics::new();
        let transport: Transport = BoxCloneSyncService::new(service);
        (Api::over(transport, "https://fake:6443", "default", fence, &metrics, limit), Fake { calls, metrics })
    }

    pub(crate) async fn next(&mut self) -> Call {
        let call = tokio::time::timeout(DEADLINE, self.calls.recv()).await;
        call.expect("a call was expected").expect("the client is alive")
    }

    /// The next call, whose URI must hold `part`.
    pub(crate) async fn expect(&mut self, part: &str) -> Call {
        let call = self.next().await;
        assert!(call.uri.contains(part), "{} {} has no {part}", call.method, call.uri);
        call
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }
}

impl Call {
    pub(crate) fn answer(self, code: u16, body: &str) {
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes())).map_err(|never| match never {}).boxed_unsync();
        let answer = Response::builder().status(code).body(body).unwrap();
        let _ = self.answer.send(Ok(answer));
    }

    /// A metav1.Status.
    pub(crate) fn refuse(self, code: u16, reason: &str, message: &str) {
        self.answer(code, &status(code, reason, message));
    }

    pub(crate) fn fail(self, words: &str) {
        let _ = self.answer.send(Err(words.to_owned().into()));
    }

    /// An open stream; it ends when the sender is dropped.
    pub(crate) fn stream(self) -> Chunks {
        let (sender, chunks) = mpsc::unbounded_channel::<Result<Bytes, BoxError>>();
        let frames = futures::stream::unfold(chunks, |mut chunks| async {
            let chunk = chunks.recv().await?;
            Some((chunk.map(Frame::data), chunks))
        });
        let _ = self.answer.send(Ok(Response::new(StreamBody::new(frames).boxed_unsync())));
        Chunks(sender)
    }
}

/// The server's end of a stream.
pub(crate) struct Chunks(mpsc::UnboundedSender<Result<Bytes, BoxError>>);

impl Chunks {
    pub(crate) fn send(&self, text: &str) {
        let _ = self.0.send(Ok(Bytes::copy_from_slice(text.as_bytes())));
    }

    pub(crate) fn fail(self, words: &str) {
        let _ = self.0.send(Err(words.to_owned().into()));
    }
}

pub(crate) fn status(code: u16, reason: &str, message: &str) -> String {
    serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
        .to_string()
}

pub(crate) fn pods() -> Resource {
    Resource {
        group: String::new(),
        version: "v1".into(),
        kind: "Pod".into(),
        plural: "pods".into(),
        namespaced: true,
        has_status: true,
    }
}
