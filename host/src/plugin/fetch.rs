//! From what a document names to bytes, and what is said to sign them.

use std::path::Path;

use super::access::{AccessError, access};
use super::document::{FileSource, OciSource, PluginSpec, Source, Trust};
use super::registry::{Image, Origin};
use super::source::oci::{self, Digest, OciError, Reference, Signature};
use super::source::{self, FileError};
use super::verify::Evidence;
use crate::cluster::Api;

/// Where components lie.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// The plugin folder, where there is one.
    pub folder: Option<&'a Path>,
    /// For pull secrets; none before the API server is reached.
    pub api: Option<&'a Api>,
}

/// What was recorded of an image that served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// `spec.source.oci.image` of then.
    pub from: String,
    /// `REGISTRY/REPOSITORY@sha256:…`.
    pub at: String,
}

/// Not trusted yet.
pub struct Artifact {
    /// Empty where nobody signed what must be signed: then they are not fetched.
    pub bytes: Vec<u8>,
    pub evidence: Evidence,
    pub image: Option<Image>,
}

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("spec.source.file: this host has no plugin folder (--plugins)")]
    NoFolder,
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("spec.source.oci: {0}")]
    Oci(#[from] OciError),
    #[error(
        "spec.source.oci.image: must name a digest (@sha256:…) in a document of the plugin folder, which has no status to \
         record what a tag was"
    )]
    NoDigest,
    #[error("spec.source.oci.image: its tag is not resolved yet; the host that leads does so")]
    Unresolved,
    #[error("spec.source.oci.image: {0}")]
    Reference(String),
    #[error("the host's own fault: {0}")]
    Host(String),
}

impl FetchError {
    pub fn reason(&self) -> &'static str {
        match self {
            Self::File(error) => error.reason(),
            Self::NoFolder => "ArtifactInvalid",
            Self::Access(error) => error.reason(),
            Self::Oci(error) => error.reason(),
            Self::NoDigest | Self::Reference(_) => "DocumentInvalid",
            Self::Unresolved => "ImageUnresolved",
            Self::Host(_) => "HostError",
        }
    }

    /// Whether it may be otherwise with the same document.
    pub fn passes(&self) -> bool {
        match self {
            Self::Access(_) | Self::Unresolved | Self::Host(_) => true,
            Self::Oci(error) => error.passes(),
            Self::File(_) | Self::NoFolder | Self::NoDigest | Self::Reference(_) => false,
        }
    }
}

/// `record` is what a tag was when it was last resolved.
pub async fn fetch(
    spec: &PluginSpec,
    origin: Origin,
    places: Places<'_>,
    record: &Record,
) -> Result<Artifact, FetchError> {
    let signed = matches!(spec.trust, Trust::Keys(_));
    match &spec.source {
        Source::File(FileSource { path }) => {
            let (folder, path) = (places.folder.ok_or(FetchError::NoFolder)?.to_owned(), path.clone());
            let read = tokio::task::spawn_blocking(move || {
                let bundle = if signed { source::bundle(&folder, &path)? } else { None };
                Ok::<_, FileError>((source::artifact(&folder, &path)?, bundle))
            });
            let (bytes, bundle) = read.await.map_err(|error| FetchError::Host(error.to_string()))??;
            let signatures = bundle.map(Signature::Bundle).into_iter().collect();
            Ok(Artifact { bytes, evidence: Evidence::File(signatures), image: None })
        }
        Source::Oci(source) => {
            let reference = Reference::parse(&source.image).map_err(FetchError::Reference)?;
            let digest = digest(source, &reference, origin, places.api, record).await?;
            pull(source, &reference, &digest, signed, places.api).await
        }
    }
}

/// The image that was recorded, whatever the document names now.
pub async fn recorded(spec: &PluginSpec, places: Places<'_>, record: &Record) -> Result<Artifact, FetchError> {
    let Source::Oci(source) = &spec.source else { return Err(FetchError::Unresolved) };
    let reference = Reference::parse(&record.at).map_err(FetchError::Reference)?;
    let Some(digest) = reference.digest.clone() else { return Err(FetchError::Unresolved) };
    let source = OciSource { image: record.from.clone(), ..source.clone() };
    pull(&source, &reference, &digest, matches!(spec.trust, Trust::Keys(_)), places.api).await
}

async fn digest(
    source: &OciSource,
    reference: &Reference,
    origin: Origin,
    api: Option<&Api>,
    record: &Record,
) -> Result<Digest, FetchError> {
    if let Some(digest) = &reference.digest {
        return Ok(digest.clone());
    }
    if origin == Origin::Volume {
        return Err(FetchError::NoDigest);
    }
    let recorded = || Reference::parse(&record.at).ok()?.digest;
    if record.from == source.image
        && let Some(digest) = recorded()
    {
        return Ok(digest);
    }
    if !api.is_some_and(Api::may_write) {
        return Err(FetchError::Unresolved);
    }
    let access = access(api, source, reference).await?;
    Ok(oci::resolve(reference, &access).await?)
}

async fn pull(
    source: &OciSource,
    reference: &Reference,
    digest: &Digest,
    signed: bool,
    api: Option<&Api>,
) -> Result<Artifact, FetchError> {
    let access = access(api, source, reference).await?;
    let fetched = oci::fetch(reference, digest, signed, &access).await?;
    let image = Image { from: source.image.clone(), at: reference.at(digest) };
    let evidence = Evidence::Image { manifest: digest.hex().to_owned(), signatures: fetched.signatures };
    Ok(Artifact { bytes: fetched.bytes, evidence, image: Some(image) })
}
