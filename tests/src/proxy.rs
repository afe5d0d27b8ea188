//! A TLS proxy in front of the API server, for faults on the wire.
//!
//! It passes everything through until it is told otherwise: `add` gives one fault to requests that match, `silence`
//! stops all forwarding without closing anything (`speak` ends that), `expire_watches` sends an ERROR event with
//! code 410 into the watches that are open, `cut` breaks every open answer, `deliver` sends on what was held back.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};

pub struct FaultProxy {
    address: SocketAddr,
    ca_pem: String,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

/// Which requests a fault is for; all of what is set must hold.
#[derive(Debug, Clone, Default)]
pub struct Match {
    method: Option<Method>,
    path: Option<String>,
    watch: Option<bool>,
    skip: usize,
    times: Option<usize>,
}

#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers with this status and a `Status` object, without asking the server.
    Answer(u16, &'static str),
    /// Answers a watch with 200 and one ERROR event of code 410.
    ExpiredEvent,
    /// Never answers.
    Silence,
    /// Asks the server after this time.
    Delay(Duration),
    /// Asks the server, and closes the connection instead of answering.
    LoseAnswer,
    /// Closes the connection without asking the server.
    Cut,
    /// Takes the whole request, and asks the server at `deliver`, whether or not its client is still there.
    HoldBack,
}

/// A request that was held back: what the server said to it in the end.
#[derive(Debug, Clone)]
pub struct Late {
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// 0: it could not be delivered.
    pub code: u16,
    pub answer: String,
}

struct Shared {
    upstream: Client<HttpsConnector<HttpConnector>, Body>,
    authority: String,
    faults: Mutex<Vec<Armed>>,
    gate: watch::Sender<Gate>,
    held: Mutex<Vec<Request<Bytes>>>,
}

struct Armed {
    matches: Match,
    fault: Fault,
    seen: usize,
    hits: usize,
}

/// What goes for all connections.
#[derive(Debug, Clone, Copy, Default)]
struct Gate {
    silent: bool,
    cuts: u64,
    expiries: u64,
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

// === impl Match ===

impl Match {
    pub fn any() -> Self {
        Self::default()
    }

    pub fn method(method: Method) -> Self {
        Self { method: Some(method), ..Self::default() }
    }

    /// A part of path and query, such as `/services/` or `/pods/a?`.
    pub fn path(mut self, part: &str) -> Self {
        self.path = Some(part.to_owned());
        self
    }

    pub fn watches(mut self) -> Self {
        self.watch = Some(true);
        self
    }

    /// Lets this many matching requests pass first.
    pub fn after(mut self, n: usize) -> Self {
        self.skip = n;
        self
    }

    /// For this many requests only; without it for all.
    pub fn times(mut self, n: usize) -> Self {
        self.times = Some(n);
        self
    }

    fn holds<B>(&self, request: &Request<B>) -> bool {
        let target = request.uri().path_and_query().map_or("", |p| p.as_str());
        self.method.as_ref().is_none_or(|m| m == request.method())
            && self.path.as_ref().is_none_or(|part| target.contains(part.as_str()))
            && self.watch.is_none_or(|watch| watch == is_watch(request))
    }
}

fn is_watch<B>(request: &Request<B>) -> bool {
    request.uri().query().is_some_and(|q| q.split('&').any(|p| p == "watch=true" || p == "watch=1"))
}

// === impl FaultProxy ===

impl FaultProxy {
    /// Listens on a free port of loopback, with a certificate made for it.
    pub(crate) async fn start(server: &str, ca: &Path) -> anyhow::Result<Self> {
        let (tls, ca_pem) = server_tls()?;
        let authority = server.parse::<Uri>()?.authority().context("the server has no address")?.to_string();
        let upstream = Client::builder(TokioExecutor::new()).build(
            hyper_rustls::HttpsConnectorBuilder::new()
                .with_tls_config(client_tls(ca)?)
                .https_only()
                .enable_http1()
                .build(),
        );
        let gate = watch::Sender::new(Gate::default());
        let shared = Arc::new(Shared { upstream, authority, faults: Mutex::default(), gate, held: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), shared.clone()));
        Ok(Self { address, ca_pem, shared, task })
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// What a client has to trust.
    pub fn ca_pem(&self) -> String {
        self.ca_pem.clone()
    }

    /// The same for a kubeconfig's `certificate-authority-data`.
    pub fn ca_data(&self) -> String {
        STANDARD.encode(&self.ca_pem)
    }

    /// Adds a fault; the first that matches a request and is not used up is taken.
    pub fn add(&self, matches: Match, fault: Fault) {
        self.faults().push(Armed { matches, fault, seen: 0, hits: 0 });
    }

    /// How many requests have met a fault.
    pub fn hits(&self) -> usize {
        self.faults().iter().map(|armed| armed.hits).sum()
    }

    /// Takes all faults away.
    pub fn clear(&self) {
        self.faults().clear();
    }

    /// How many requests are held back.
    pub fn held(&self) -> usize {
        self.shared.held().len()
    }

    /// Sends on what was held back, in the order in which it came.
    pub async fn deliver(&self) -> Vec<Late> {
        let held = std::mem::take(&mut *self.shared.held());
        let mut delivered = Vec::new();
        for request in held {
            let (method, target) = (request.method().clone(), request.uri().to_string());
            let whole = request.map(|body| Full::new(body).map_err(|never: Infallible| match never {}).boxed_unsync());
            let (code, answer) = match self.shared.forward(whole).await {
                Ok(response) => {
                    let code = response.status().as_u16();
                    let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                    (code, String::from_utf8_lossy(&body).into_owned())
                }
                Err(error) => (0, format!("{error:#}")),
            };
            delivered.push(Late { method, target, code, answer });
        }
        delivered
    }

    pub fn silence(&self) {
        self.shared.gate.send_modify(|gate| gate.silent = true);
    }

    pub fn speak(&self) {
        self.shared.gate.send_modify(|gate| gate.silent = false);
    }

    pub fn expire_watches(&self) {
        self.shared.gate.send_modify(|gate| gate.expiries += 1);
    }

    pub fn cut(&self) {
        self.shared.gate.send_modify(|gate| gate.cuts += 1);
    }

    fn faults(&self) -> std::sync::MutexGuard<'_, Vec<Armed>> {
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}

fn server_tls() -> anyhow::Result<(ServerConfig, String)> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(&certificate));
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok((config, pem))
}

fn client_tls(ca: &Path) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca)? {
        roots.add(certificate?)?;
    }
    Ok(ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, tls.clone(), shared.clone()));
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, shared: Arc<Shared>) {
    let Ok(stream) = tls.accept(stream).await else { return }; // a client that does not trust us
    let service = service_fn(move |request| answer(request, shared.clone()));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await; // faults end it with an error
}

// === one request ===

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Body>, io::Error> {
    let fault = shared.fault_for(&request);
    match fault {
        Some(Fault::Answer(code, message)) => return Ok(status(code, message)),
        Some(Fault::ExpiredEvent) => return Ok(whole(StatusCode::OK, expired_event())),
        Some(Fault::Silence) => std::future::pending().await,
        Some(Fault::Cut) => return Err(io::ErrorKind::ConnectionAborted.into()),
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Some(Fault::HoldBack) => {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            shared.held().push(Request::from_parts(head, body));
            return std::future::pending().await;
        }
        Some(Fault::LoseAnswer) | None => {}
    }
    let mut gate = shared.gate.subscribe();
    let _ = gate.wait_for(|gate| !gate.silent).await; // the sender lives as long as `shared`
    let watching = is_watch(&request);
    match shared.forward(request.map(|body| body.map_err(io::Error::other).boxed_unsync())).await {
        Ok(_) if matches!(fault, Some(Fault::LoseAnswer)) => Err(io::ErrorKind::ConnectionAborted.into()),
        Ok(response) => Ok(response.map(|body| gated(body, shared.gate.subscribe(), watching))),
        Err(error) => Ok(status(502, &format!("the proxy of the tests: {error}"))),
    }
}

impl Shared {
    fn fault_for<B>(&self, request: &Request<B>) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.iter_mut().filter(|armed| armed.matches.holds(request)).find_map(|armed| {
            armed.seen += 1;
            let met = armed.seen > armed.matches.skip && armed.matches.times.is_none_or(|n| armed.hits < n);
            armed.hits += usize::from(met);
            met.then(|| armed.fault.clone())
        })
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Vec<Request<Bytes>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn forward(&self, request: Request<Body>) -> anyhow::Result<Response<Incoming>> {
        let (mut head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("/", |p| p.as_str());
        head.uri = format!("https://{}{target}", self.authority).parse()?;
        head.headers.remove(http::header::HOST);
        Ok(self.upstream.request(Request::from_parts(head, body)).await?)
    }
}

/// The server's body, held back while the gate is silent, broken or expired when it says so.
fn gated(body: Incoming, gate: watch::Receiver<Gate>, watching: bool) -> Body {
    let born = *gate.borrow();
    let frames = stream::unfold((Some(body), gate), move |(body, mut gate)| async move {
        let mut body = body?;
        let mut held: Option<Frame<Bytes>> = None;
        loop {
            let now = *gate.borrow_and_update();
            if now.cuts > born.cuts {
                return Some((Err(io::ErrorKind::ConnectionReset.into()), (None, gate)));
            }
            if watching && now.expiries > born.expiries {
                return Some((Ok(Frame::data(expired_event())), (None, gate)));
            }
            if !now.silent
                && let Some(frame) = held.take()
            {
                return Some((Ok(frame), (Some(body), gate)));
            }
            tokio::select! {
                _ = gate.changed() => {}
                frame = body.frame(), if held.is_none() => match frame? {
                    Ok(frame) => held = Some(frame),
                    Err(error) => return Some((Err(io::Error::other(error)), (None, gate))),
                },
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn status(code: u16, message: &str) -> Response<Body> {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let body = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message});
    whole(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body.to_string().into())
}

fn expired_event() -> Bytes {
    let event = json!({"type": "ERROR", "object": {"apiVersion": "v1", "kind": "Status", "metadata": {},
        "status": "Failure", "code": 410, "reason": "Expired", "message": "too old resource version"}});
    format!("{event}\n").into()
}

fn whole(code: StatusCode, body: Bytes) -> Response<Body> {
    let body = Full::new(body).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}
