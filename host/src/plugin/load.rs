//! The walk of one document: from what it says to a plugin that may serve. It
//! blocks: files are read, wasm is compiled and run.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::document::{Document, DocumentError, FileSource, PluginSpec, Source};
use super::registry::{Origin, Plugin};
use super::status::Step;
use super::{compile, declare, source, verify};
use crate::sandbox::{Engine, LoadError};

/// Why one plugin does not serve: a variant for each step.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error(transparent)]
    Source(#[from] source::FileError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Verify(#[from] verify::VerifyError),
    #[error(transparent)]
    Compile(#[from] LoadError),
    #[error(transparent)]
    Declare(#[from] declare::DeclareError),
    #[error("spec.source.file: this host has no plugin folder (--plugins)")]
    NoFolder,
    #[error("the host's own fault: {0}")]
    Host(String),
}

impl PluginError {
    pub fn reason(&self) -> &str {
        match self {
            Self::Source(error) => error.reason(),
            Self::Document(_) => "DocumentInvalid",
            Self::Verify(_) => "DigestMismatch",
            Self::Compile(error) => error.reason(),
            Self::Declare(error) => error.reason(),
            Self::NoFolder => "ArtifactInvalid",
            Self::Host(_) => "HostError",
        }
    }

    /// The step that was not taken.
    pub fn step(&self) -> Step {
        match self {
            Self::Source(_) | Self::Document(_) | Self::NoFolder | Self::Host(_) => Step::Fetched,
            Self::Verify(_) => Step::Verified,
            Self::Compile(_) => Step::Compiled,
            Self::Declare(_) => Step::Serving,
        }
    }

    /// Whether it may be otherwise at another time, with the same document and component.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Host(_) | Self::Compile(LoadError::NoRoom { .. }))
    }
}

/// What stopped the walk of one document, and the digest of its component where it came so far.
pub struct Failed {
    pub error: PluginError,
    /// SHA-256, in hex.
    pub digest: Option<String>,
}

/// The walk of one document. Nothing where it leads to the component that it was `seen` to lead to.
pub fn load(
    engine: &Engine,
    folder: Option<&Path>,
    origin: Origin,
    document: Document,
    good: Option<&Plugin>,
    seen: Option<&str>,
) -> Result<Option<Plugin>, Failed> {
    let Document { name, spec } = document;
    let revision = revision(&spec);
    let PluginSpec { source, trust, grant, limits, config, strategies, passed, finalize } = spec;
    let Source::File(FileSource { path }) = source;
    let unfound = |error: PluginError| Failed { error, digest: None };
    let folder = folder.ok_or_else(|| unfound(PluginError::NoFolder))?;
    let bytes = source::artifact(folder, &path).map_err(|error| unfound(error.into()))?;
    let digest = verify::digest(&bytes);
    if seen == Some(digest.as_str()) {
        return Ok(None);
    }
    let failed = |error: PluginError| Failed { error, digest: Some(digest.clone()) };
    let verified = verify::verify(bytes, &trust).map_err(|error| failed(error.into()))?;
    let component = match good {
        // Only what is said of it has changed.
        Some(good) if good.digest == digest && good.limits == limits => good.component.clone(),
        _ => compile::compile(engine, &verified, limits).map_err(|error| failed(error.into()))?,
    };
    let manifest = declare::declare(&component, &grant).map_err(|error| failed(error.into()))?;
    let config = serde_json::Value::Object(config).to_string().into();
    Ok(Some(Plugin {
        name,
        origin,
        digest,
        revision,
        manifest,
        grant,
        limits,
        config,
        strategies,
        passed,
        finalize,
        component,
    }))
}

/// Another for every change of what a render or its checks depend on, beside the component.
pub fn revision(spec: &PluginSpec) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(spec).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
