//! HTTP to the API server. kube gives configuration, TLS and credentials; the
//! connections are ours, for the time-outs that kube's own client does not set.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::ConfigExt;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use super::fence::Fence;
use crate::limits;

/// What is sent: nothing, or one piece, which is held back where the fence has
/// closed since it was asked for. The head goes out with it, never before.
pub struct RequestBody {
    data: Bytes,
    fence: Option<Fence>,
}

#[derive(Debug, thiserror::Error)]
#[error("this host does not lead any more")]
pub struct Closed;

pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;
/// Paths in, answers out. Tests put a scripted service here.
pub type Transport = BoxCloneSyncService<Request<RequestBody>, Response<ResponseBody>, BoxError>;

/// HTTP/1.1 over pooled connections. No retry, no compression, no buffer task between caller and connection.
pub(super) fn connect(config: &Config) -> Result<Transport, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(limits::API_CONNECT));
    tcp.set_keepalive(Some(limits::TCP_KEEPALIVE));
    tcp.set_keepalive_interval(Some(limits::TCP_KEEPALIVE));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(limits::TCP_UNACKNOWLEDGED));
    let tls = config.rustls_https_connector_with_connector(tcp)?;
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits::POOL_IDLE)
        .http1_max_buf_size(limits::READ_BUFFER)
        .build::<_, RequestBody>(tls);
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(BoxCloneSyncService::new(
        stack.map_response(|answer| answer.map(|body| body.map_err(BoxError::from).boxed_unsync())),
    ))
}

// === impl RequestBody ===

impl RequestBody {
    pub(super) fn new(data: Vec<u8>, fence: Option<Fence>) -> Self {
        Self { data: data.into(), fence }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Closed;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Closed>>> {
        if self.data.is_empty() {
            return Poll::Ready(None);
        }
        if self.fence.as_ref().is_some_and(|fence| fence.left().is_none()) {
            return Poll::Ready(Some(Err(Closed)));
        }
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.data)))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.len() as u64)
    }
}
