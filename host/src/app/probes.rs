//! `/healthz`, `/readyz` and `/metrics`.
//!
//! Alive: the process answers. Ready: nothing is left on the list of unmet
//! reasons; each of them is a line of the 503. Who is ready says for what: `ready`,
//! or `standby` where another leads. Knows neither walk: they change the list,
//! and metrics come from a closure.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What the OpenMetrics text is announced as.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Why the host is not ready; ready where no reason is left.
#[derive(Clone)]
pub struct Readiness {
    ask: Arc<Mutex<Ask>>,
}

/// Gives what holds at this moment.
type Ask = Arc<dyn Fn() -> Answer + Send + Sync>;

/// What a probe is told.
pub enum Answer {
    /// In words, for a person.
    Ready(String),
    /// Why not yet, at least one.
    Unmet(Vec<String>),
}

impl Readiness {
    /// Not ready, for a reason such as `starting`.
    pub fn unmet(reason: &str) -> Self {
        let reason = reason.to_owned();
        Self { ask: Arc::new(Mutex::new(Arc::new(move || Answer::Unmet(vec![reason.clone()])))) }
    }

    /// From now on this is asked at each probe.
    pub fn ask(&self, answer: impl Fn() -> Answer + Send + Sync + 'static) {
        *self.ask.lock() = Arc::new(answer);
    }

    fn answer(&self) -> Answer {
        let ask = Arc::clone(&self.ask.lock());
        ask()
    }
}

/// Serves until the task is aborted or the process ends. The address is the one
/// that was bound: asked for port 0, it has the free port that was taken.
pub async fn serve(
    address: SocketAddr,
    metrics: impl Fn() -> String + Clone + Send + Sync + 'static,
    readiness: Readiness,
) -> anyhow::Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("serve probes on {address}"))?;
    let bound = listener.local_addr().context("ask which address was bound")?;
    tracing::info!(address = %bound, "probes listen");
    let app = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(move || async move { readyz(&readiness) }))
        .route("/metrics", get(move || async move { ([(CONTENT_TYPE, OPENMETRICS)], metrics()) }));
    let task = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!(%error, "probes ended");
        }
    });
    Ok((bound, task))
}

/// The reasons in a stable order, each once.
fn readyz(readiness: &Readiness) -> (StatusCode, String) {
    match readiness.answer() {
        Answer::Ready(words) => (StatusCode::OK, format!("{words}\n")),
        Answer::Unmet(reasons) => {
            let reasons: BTreeSet<String> = reasons.into_iter().collect();
            (StatusCode::SERVICE_UNAVAILABLE, reasons.iter().map(|reason| format!("{reason}\n")).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    async fn ask(address: SocketAddr, path: &'static str) -> String {
        let ask = move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        tokio::task::spawn_blocking(ask).await.unwrap()
    }

    #[tokio::test]
    async fn tells_what_is_missing_until_nothing_is() {
        let readiness = Readiness::unmet("starting");
        let address = "127.0.0.1:0".parse().unwrap();
        let (address, task) = serve(address, || "m 1\n# EOF\n".to_owned(), readiness.clone()).await.unwrap();
        assert_ne!(address.port(), 0);
        assert!(ask(address, "/readyz").await.contains("503 Service Unavailable"));
        readiness.ask(|| Answer::Unmet(vec!["watch of pods: forbidden".to_owned(), "plugin x: not tried".to_owned()]));
        let answer = ask(address, "/readyz").await;
        assert!(answer.ends_with("plugin x: not tried\nwatch of pods: forbidden\n"), "{answer}");
        readiness.ask(|| Answer::Ready("standby: x leads".to_owned()));
        let answer = ask(address, "/readyz").await;
        assert!(answer.contains("200 OK") && answer.ends_with("\r\n\r\nstandby: x leads\n"), "{answer}");
        assert!(ask(address, "/healthz").await.contains("200 OK"));
        let metrics = ask(address, "/metrics").await;
        assert!(metrics.contains("application/openmetrics-text") && metrics.ends_with("# EOF\n"), "{metrics}");
        task.abort();
    }

    #[tokio::test]
    async fn an_address_in_use_is_named() {
        let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let taken = held.local_addr().unwrap();
        let error = serve(taken, String::new, Readiness::unmet("x")).await.unwrap_err();
        assert!(error.to_string().contains(&taken.to_string()));
        drop(held);
    }
}
