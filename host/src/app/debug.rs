//! What a running host is asked from its own machine: bundles of calls. Both
//! ends: the listener of `keelson run`, and `keelson debug`.
//!
//! The listener is on a loopback address, since a bundle holds what objects hold: who
//! may `kubectl exec` or `port-forward` to the host's Pod may ask.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

use super::cli::{DebugArgs, Exit};
use crate::limits::{DEBUG_BYTES, DEBUG_PATIENCE};
use crate::object::Host;

/// Until the process ends. What cannot be bound is said, and no reason not to serve.
pub(crate) async fn serve(address: SocketAddr, host: Arc<Host>) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("listen for keelson debug on {address}"))?;
    let bound = listener.local_addr().context("ask which address was bound")?;
    tracing::info!(address = %bound, "keelson debug is answered");
    let app = Router::new()
        .route("/debug/bundle/{namespace}/{name}", get(bundle))
        .route("/debug/bundle/{namespace}/{name}/{kind}", get(bundle_of))
        .route("/debug/failures/{plugin}", get(failures))
        .with_state(host);
    axum::serve(listener, app).await.context("answer keelson debug")
}

async fn bundle(State(host): State<Arc<Host>>, Path(wanted): Path<(String, String)>) -> (StatusCode, String) {
    let (namespace, name) = wanted;
    examine(&host, None, &namespace, &name).await
}

async fn bundle_of(
    State(host): State<Arc<Host>>,
    Path(wanted): Path<(String, String, String)>,
) -> (StatusCode, String) {
    let (namespace, name, kind) = wanted;
    examine(&host, Some(&kind), &namespace, &name).await
}

async fn examine(host: &Host, kind: Option<&str>, namespace: &str, name: &str) -> (StatusCode, String) {
    match host.examine(kind, namespace, name).await {
        Ok(bundle) => match serde_json::to_string_pretty(&bundle) {
            Ok(text) => (StatusCode::OK, text + "\n"),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        },
        Err(problem) => (StatusCode::NOT_FOUND, problem),
    }
}

async fn failures(State(host): State<Arc<Host>>, Path(plugin): Path<String>) -> (StatusCode, String) {
    if host.registry().plugin(&plugin).is_none() {
        return (StatusCode::NOT_FOUND, format!("no plugin {plugin} serves here"));
    }
    let lines: String = host.failures_of(&plugin).iter().map(|bundle| format!("{bundle}\n")).collect();
    (StatusCode::OK, lines)
}

/// `keelson debug`.
pub(crate) async fn ask(args: DebugArgs) -> anyhow::Result<Exit> {
    let DebugArgs { object, kind, failures, debug_address } = args;
    let path = match (&object, &failures) {
        (Some(object), None) => {
            let parts = object.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
            let (namespace, name) = parts.with_context(|| format!("{object}: wanted is NAMESPACE/NAME"))?;
            let kind = kind.map_or_else(String::new, |kind| format!("/{}", escape(&kind)));
            format!("/debug/bundle/{}/{}{kind}", escape(namespace), escape(name))
        }
        (None, Some(plugin)) => format!("/debug/failures/{}", escape(plugin)),
        _ => bail!("name an object, or a plugin by --failures"),
    };
    let (status, text) = tokio::time::timeout(DEBUG_PATIENCE * 2, fetch(debug_address, &path))
        .await
        .with_context(|| format!("no answer from a host at {debug_address}"))??;
    if status != StatusCode::OK {
        let text = String::from_utf8_lossy(&text);
        let text = text.trim_end();
        bail!(
            "{}",
            if text.is_empty() { format!("{debug_address} answers {status}: is it a host?") } else { text.to_owned() }
        );
    }
    std::io::stdout().write_all(&text).context("write to stdout")?;
    Ok(Exit::Ok)
}

async fn fetch(address: SocketAddr, path: &str) -> anyhow::Result<(StatusCode, Bytes)> {
    let client: Client<HttpConnector, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let uri: Uri = format!("http://{address}{path}").parse().context("make a URL")?;
    let answer = client.get(uri).await.with_context(|| format!("no host answers at {address} (--debug-address)"))?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), DEBUG_BYTES).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("read the answer: {error}"))?.to_bytes();
    Ok((status, body))
}

/// Names hold nothing else than these but by mistake.
fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}
