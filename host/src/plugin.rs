//! From a folder of Plugin documents to plugins that serve.
//!
//! `source → document → verify → compile → declare → golden → registry`
//!
//! Each plugin walks alone: one that fails becomes a [`Problem`] and leaves the
//! others. Only a folder that cannot be read at all, or holds no document, is
//! an error. Verification cannot be left out: nothing but `verify` makes the
//! `Verified` that `compile` takes.

pub mod passed;
pub mod document;
pub mod crd;
pub mod source;
pub mod verify;
pub mod compile;
pub mod declare;
pub mod sections;
pub mod golden;
pub mod claims;
pub mod registry;
pub mod request;

use std::path::Path;
use std::sync::Arc;

use crate::check::GrantedParent;
use crate::sandbox::{Engine, LoadError};

use document::{Document, FileSource, PluginSpec, Source};
use registry::Attempt;
use source::DocumentFile;

pub use claims::{Found, ParentKind};
pub use registry::{Dispatch, Plugin, Problem, Registry};
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
            Self::Verify(_) => "DigestMismatch",
            Self::Compile(error) => error.reason(),
            Self::Declare(error) => error.reason(),
            Self::Golden(error) => error.reason(),
            Self::Host(_) => "HostError",
        }
    }
}

impl Registry {
    /// Loads every plugin of a folder, one at a time, on a thread that may block.
    pub async fn load(folder: &Path, engine: &Engine) -> Result<Registry, SourceError> {
        let folder: Arc<Path> = folder.into();
        let read = Arc::clone(&folder);
        let files = blocking(move || source::read(&read))
            .await
            .unwrap_or_else(|problem| Err(SourceError::Unreadable { folder: folder.to_path_buf(), problem }))?;
        let mut attempts = Vec::with_capacity(files.len());
        for document in files {
            let (engine, folder, file) = (engine.clone(), Arc::clone(&folder), document.file.clone());
            attempts.push(
                blocking(move || attempt(&folder, document, &engine))
                    .await
                    .unwrap_or_else(|panic| failed(file, None, Vec::new(), &PluginError::Host(panic))),
            );
        }
        Ok(Registry::build(attempts))
    }
}

/// The walk of one document. It blocks: files are read, wasm is compiled and run.
fn attempt(folder: &Path, document: DocumentFile, engine: &Engine) -> Attempt {
    let DocumentFile { file, text } = document;
    let text = match text {
        Ok(text) => text,
        Err(error) => return failed(file, None, Vec::new(), &error.into()),
    };
    match Document::parse(&text) {
        Err(error) => {
            let (name, claims) = document::salvage(&text);
            failed(file, name, claims, &error.into())
        }
        Ok(Document { name, spec }) => {
            let claims = spec.grant.serves.clone();
            match load(folder, name.clone(), spec, engine) {
                Ok(plugin) => Attempt::Loaded { file, plugin: Box::new(plugin) },
                Err(error) => failed(file, Some(name), claims, &error),
            }
        }
    }
}

fn load(folder: &Path, name: String, spec: PluginSpec, engine: &Engine) -> Result<Plugin, PluginError> {
    let PluginSpec { source, trust, grant, limits, config, strategies, passed, finalize } = spec;
    let Source::File(FileSource { path }) = source;
    let bytes = source::artifact(folder, &path)?;
    let verified = verify::verify(bytes, &trust)?;
    let component = compile::compile(engine, &verified, limits)?;
    let manifest = declare::declare(&component, &grant)?;
    golden::run(&component, &golden::read(verified.bytes(), &manifest)?)?;
    let config = serde_json::Value::Object(config).to_string().into();
    let digest = verified.sha256().to_owned();
    Ok(Plugin { name, digest, manifest, grant, limits, config, strategies, passed, finalize, component })
}

fn failed(file: String, plugin: Option<String>, claims: Vec<GrantedParent>, error: &PluginError) -> Attempt {
    // The file is said once: what is wrong with a document as a file begins with it.
    let message = match error {
        PluginError::Source(error) if error.field.is_empty() => error.to_string(),
        _ => format!("{file}: {error}"),
    };
    Attempt::Failed(Problem { plugin, file, reason: error.reason().to_owned(), message, claims })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())
}
