//! What was signed of an image, as cosign leaves it: under the tag
//! `sha256-HEX.sig`, and as bundles that refer to the manifest, by the
//! registry's own list or, where it has none, under the tag `sha256-HEX`.
//! Nothing is believed here: this only fetches, and not without end.

use super::client::{Client, OciError};
use super::manifest::{self, Descriptor};
use super::reference::Digest;
use crate::limits::{SIGNATURE_BYTES, SIGNATURES};

const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIMPLE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

/// Bytes that claim to sign something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// A payload, and the base64 of what signs it.
    Simple { payload: Vec<u8>, signature: String },
    /// JSON of a sigstore bundle.
    Bundle(Vec<u8>),
}

/// All of them, up to a limit.
pub async fn signatures(client: &mut Client, digest: &Digest) -> Result<Vec<Signature>, OciError> {
    let mut found = Vec::new();
    if let Some(bytes) = client.manifest_if_there(&format!("sha256-{}.sig", digest.hex())).await? {
        let layers = manifest::parse(&bytes).map(|manifest| manifest.layers).unwrap_or_default();
        for layer in layers.into_iter().filter(|layer| layer.media_type == SIMPLE).take(SIGNATURES) {
            let Some(signature) = layer.annotations.get(SIMPLE_ANNOTATION).cloned() else { continue };
            if let Some(payload) = blob(client, &layer).await? {
                found.push(Signature::Simple { payload, signature });
            }
        }
    }
    let index = match client.referrers(digest).await? {
        Some(index) => Some(index),
        None => client.manifest_if_there(&format!("sha256-{}", digest.hex())).await?,
    };
    let referrers = index.and_then(|bytes| serde_json::from_slice::<Index>(&bytes).ok()).unwrap_or_default().manifests;
    // Older writers of the fallback tag leave the type out: then the manifest tells.
    let bundles = |one: &Descriptor| one.artifact_type.is_empty() || one.artifact_type.starts_with(BUNDLE);
    for referrer in referrers.into_iter().filter(bundles).take(SIGNATURES) {
        let Some(at) = Digest::parse(&referrer.digest) else { continue };
        let Some(bytes) = client.manifest_if_there(&at.to_string()).await? else { continue };
        let layers = manifest::parse(&bytes).map(|manifest| manifest.layers).unwrap_or_default();
        for layer in layers.into_iter().filter(|layer| layer.media_type.starts_with(BUNDLE)).take(1) {
            found.extend(blob(client, &layer).await?.map(Signature::Bundle));
        }
    }
    Ok(found)
}

#[derive(Default, serde::Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

/// None where it cannot be what it says: another may be.
async fn blob(client: &mut Client, layer: &Descriptor) -> Result<Option<Vec<u8>>, OciError> {
    let Some(digest) = Digest::parse(&layer.digest) else { return Ok(None) };
    match client.blob(&digest, SIGNATURE_BYTES).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.passes() => Err(error),
        Err(_) => Ok(None),
    }
}
