//! From Plugin documents, in a folder or in the cluster, to plugins that serve.
//!
//! `source → document → verify → compile → declare → registry`
//!
//! Each plugin walks alone: one that fails becomes a [`Problem`] and leaves the
//! others, and an earlier version of it goes on ([`Roster`]). Only a folder that
//! cannot be read at all, or holds no document, is an error. Verification cannot be left out: nothing but `verify` makes the
//! `Verified` that `compile` takes.

pub mod passed;
pub mod status;
pub mod document;
pub mod crd;
pub mod source;
pub mod verify;
pub mod compile;
pub mod declare;
pub mod claims;
pub mod registry;
pub mod roster;
pub mod tell;
pub mod request;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use crate::sandbox::{Engine, LoadError};

use document::{Document, FileSource, PluginSpec, Source};
use status::Step;

pub use claims::{Found, ParentKind};
pub use registry::{Dispatch, Origin, Plugin, Problem, Registry};
pub use roster::Roster;
pub use source::SourceError;

/// Why one plugin does not serve: a variant for each step.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error(transparent)]
    Source(#[from] source::FileError),
    #[error(transparent)]
    Document(#[from] document::DocumentError),
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
    fn step(&self) -> Step {
        match self {
            Self::Source(_) | Self::Document(_) | Self::NoFolder | Self::Host(_) => Step::Fetched,
            Self::Verify(_) => Step::Verified,
            Self::Compile(_) => Step::Compiled,
            Self::Declare(_) => Step::Serving,
        }
    }

    /// Whether it may be otherwise at another time, with the same document and component.
    fn passes(&self) -> bool {
        matches!(self, Self::Host(_))
    }
}

/// What stopped the walk of one document, and the digest of its component where it came so far.
pub struct Failed {
    pub error: PluginError,
    /// SHA-256, in hex.
    pub digest: Option<String>,
}

impl Registry {
    /// Loads every plugin of a folder, one at a time, on a thread that may block.
    pub async fn load(folder: &Path, engine: &Engine) -> Result<Registry, SourceError> {
        let mut roster = Roster::new(engine.clone(), Some(folder));
        roster.read_folder().await?;
        Ok(roster.registry(None))
    }
}

/// The walk of one document. Nothing where it leads to the component that it was `seen` to lead to.
fn load(
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
fn revision(spec: &PluginSpec) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(spec).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
