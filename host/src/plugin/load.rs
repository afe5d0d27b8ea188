//! The walk of one document: from what it says to a plugin that may serve. It
//! blocks: files are read, wasm is compiled and run.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::document::{Document, DocumentError, PluginSpec};
use super::fetch::{Artifact, FetchError};
use super::registry::{Image, Origin, Plugin};
use super::source::hash::sha256;
use super::status::Step;
use super::{compile, declare, golden, source, verify};
use crate::sandbox::{Engine, LoadError};

/// Why one plugin does not serve: a variant for each step.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error(transparent)]
    Source(#[from] source::FileError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Verify(#[from] verify::VerifyError),
    #[error(transparent)]
    Compile(#[from] LoadError),
    #[error(transparent)]
    Declare(#[from] declare::DeclareError),
    #[error(transparent)]
    Golden(#[from] golden::GoldenError),
    #[error("the host's own fault: {0}")]
    Host(String),
}

impl PluginError {
    pub fn reason(&self) -> &str {
        match self {
            Self::Source(error) => error.reason(),
            Self::Document(_) => "DocumentInvalid",
            Self::Fetch(error) => error.reason(),
            Self::Verify(error) => error.reason(),
            Self::Compile(error) => error.reason(),
            Self::Declare(error) => error.reason(),
            Self::Golden(error) => error.reason(),
            Self::Host(_) => "HostError",
        }
    }

    /// The step that was not taken.
    pub fn step(&self) -> Step {
        match self {
            Self::Source(_) | Self::Document(_) | Self::Fetch(_) | Self::Host(_) => Step::Fetched,
            Self::Verify(_) => Step::Verified,
            Self::Compile(_) => Step::Compiled,
            Self::Declare(_) | Self::Golden(_) => Step::Serving,
        }
    }

    /// Whether it may be otherwise at another time, with the same document and component.
    pub fn passes(&self) -> bool {
        match self {
            Self::Host(_) | Self::Compile(LoadError::NoRoom { .. }) => true,
            Self::Fetch(error) => error.passes(),
            _ => false,
        }
    }
}

/// What stopped the walk of one document, and how far it had come.
pub struct Failed {
    pub error: PluginError,
    /// SHA-256 of the component, in hex.
    pub digest: Option<String>,
    /// Where it was pulled from.
    pub image: Option<Image>,
}

/// From bytes to a plugin; `proven` is the image that is on record to have served. Nothing where it is the component that this document was `seen` to lead to.
pub fn load(
    engine: &Engine,
    origin: Origin,
    document: Document,
    artifact: Artifact,
    good: Option<&Plugin>,
    seen: Option<&str>,
    proven: &str,
) -> Result<Option<Plugin>, Failed> {
    let Document { name, spec } = document;
    let revision = revision(&spec);
    let PluginSpec { source: _, trust, grant, limits, config, strategies, passed, finalize } = spec;
    let Artifact { bytes, evidence, image } = artifact;
    let digest = sha256(&bytes);
    if seen == Some(digest.as_str()) {
        return Ok(None);
    }
    let known = (!bytes.is_empty()).then(|| digest.clone());
    let failed = |error: PluginError| Failed { error, digest: known.clone(), image: image.clone() };
    let verified = verify::verify(bytes, &trust, &evidence).map_err(|error| failed(error.into()))?;
    let component = match good {
        // Only what is said of it has changed.
        Some(good) if good.digest == digest && good.limits == limits => good.component.clone(),
        _ => compile::compile(engine, &verified, limits).map_err(|error| failed(error.into()))?,
    };
    let manifest = declare::declare(&component, &grant).map_err(|error| failed(error.into()))?;
    let golden = golden::read(verified.bytes(), &manifest).and_then(|fixtures| golden::run(&component, &fixtures));
    match golden {
        Ok(()) => {}
        // It served before: a host that sees its fixtures otherwise takes nothing away.
        Err(error) if image.as_ref().is_some_and(|image| image.at == proven) => {
            tracing::warn!(plugin = name, reason = error.reason(), "{error}; it serves, since it did before");
        }
        Err(error) => return Err(failed(error.into())),
    }
    let config = serde_json::Value::Object(config).to_string().into();
    Ok(Some(Plugin {
        name,
        origin,
        digest,
        image,
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
