//! A component into a registry, in the CNCF Wasm layout. The same component
//! gives the same manifest, and so the same digest, every time.

use http::Method;
use http::header::{CONTENT_TYPE, LOCATION};
use serde_json::json;

use super::client::{Client, OciError};
use super::manifest::{CONFIG, LAYER, MANIFEST};
use super::reference::Digest;
use crate::limits::MANIFEST_BYTES;

const ACTIONS: &str = "pull,push";

/// What stands in the image's configuration beside what follows from the bytes.
pub struct Interfaces {
    pub exports: Vec<String>,
    pub imports: Vec<String>,
}

/// Returns the manifest's digest.
pub async fn push(
    client: &mut Client,
    tag: &str,
    component: &[u8],
    interfaces: &Interfaces,
) -> Result<Digest, OciError> {
    let layer = Digest::of(component);
    // No time of creation: it would make another image of the same component.
    let config = json!({
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [layer.to_string()],
        "component": {"exports": interfaces.exports, "imports": interfaces.imports},
    });
    let config = config.to_string().into_bytes();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": Digest::of(&config).to_string(), "size": config.len()},
        "layers": [{"mediaType": LAYER, "digest": layer.to_string(), "size": component.len()}],
    });
    let manifest = manifest.to_string().into_bytes();
    for bytes in [component, &config] {
        blob(client, bytes).await?;
    }
    let kind = [(CONTENT_TYPE, MANIFEST.to_owned())];
    let digest = Digest::of(&manifest);
    let answer =
        client.call(Method::PUT, &format!("manifests/{tag}"), &kind, manifest, MANIFEST_BYTES, ACTIONS).await?;
    if answer.status == 201 { Ok(digest) } else { Err(client.refused(&answer)) }
}

async fn blob(client: &mut Client, bytes: &[u8]) -> Result<(), OciError> {
    let digest = Digest::of(bytes);
    let there = client.call(Method::HEAD, &format!("blobs/{digest}"), &[], Vec::new(), MANIFEST_BYTES, ACTIONS).await?;
    if there.status == 200 {
        return Ok(());
    }
    let begun = client.call(Method::POST, "blobs/uploads/", &[], Vec::new(), MANIFEST_BYTES, ACTIONS).await?;
    let to = begun.headers.get(LOCATION).and_then(|to| to.to_str().ok()).map(str::to_owned);
    let (202, Some(to)) = (begun.status, to) else { return Err(client.refused(&begun)) };
    let to = client.absolute(&to);
    let join = if to.contains('?') { '&' } else { '?' };
    let kind = [(CONTENT_TYPE, "application/octet-stream".to_owned())];
    let url = format!("{to}{join}digest={}", digest.to_string().replace(':', "%3A"));
    let done = client.call(Method::PUT, &url, &kind, bytes.to_vec(), MANIFEST_BYTES, ACTIONS).await?;
    if done.status == 201 { Ok(()) } else { Err(client.refused(&done)) }
}
