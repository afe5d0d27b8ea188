//! Components as OCI images.
//!
//! ```text
//! reference → credentials → http → manifest → client → signatures → fetch
//! ```
//! A tag leads to a digest; all else goes by digest, and every byte is hashed.

pub mod reference;
pub mod credentials;
mod http;
pub mod manifest;
mod client;
pub mod signatures;
pub mod push;

pub use client::{Access, Client, OciError};
pub use http::HttpError;
pub use reference::{Digest, Reference};
pub use signatures::Signature;

/// What a registry gave.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Of the manifest: what was signed, and what is recorded.
    pub manifest: Digest,
    pub bytes: Vec<u8>,
    pub signatures: Vec<Signature>,
}

/// The digest that an image has now: its own, or that of its tag.
pub async fn resolve(reference: &Reference, access: &Access) -> Result<Digest, OciError> {
    if let Some(digest) = &reference.digest {
        return Ok(digest.clone());
    }
    let tag = reference.tag.as_deref().unwrap_or_default();
    Client::new(reference, access)?.manifest(tag).await.map(|(digest, _)| digest)
}

/// The component under this digest. Signatures are fetched only where they are `wanted`.
pub async fn fetch(reference: &Reference, digest: &Digest, wanted: bool, access: &Access) -> Result<Fetched, OciError> {
    let mut client = Client::new(reference, access)?;
    // Signatures first: bytes that nobody signed are not worth a download.
    let signatures = if wanted { signatures::signatures(&mut client, digest).await? } else { Vec::new() };
    let bytes = if wanted && signatures.is_empty() { Vec::new() } else { client.component(digest).await? };
    Ok(Fetched { manifest: digest.clone(), bytes, signatures })
}
