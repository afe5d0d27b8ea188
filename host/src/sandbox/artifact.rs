//! A component as bytes: what can be told before it is compiled, and why it is
//! no plugin.

use crate::limits;

/// Why bytes are no plugin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the file is not a plugin: {0}")]
    ArtifactInvalid(String),
    #[error("the plugin imports {import}, which does not exist here: {fix}")]
    ImportDenied { import: String, fix: String },
    #[error("the plugin does not compile: {0}")]
    CompileFailed(String),
}

impl LoadError {
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ArtifactInvalid(_) => "ArtifactInvalid",
            Self::ImportDenied { .. } => "ImportDenied",
            Self::CompileFailed(_) => "CompileFailed",
        }
    }
}

/// The optional interfaces that a plugin exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    pub finalizer: bool,
    pub relations: bool,
}

/// What the first bytes tell, in words that help where it is no component.
pub(super) fn recognise(bytes: &[u8]) -> Result<(), String> {
    if bytes.len() as u64 > limits::COMPONENT_BYTES {
        return Err(format!("it has {} bytes; at most {} are read", bytes.len(), limits::COMPONENT_BYTES));
    }
    match bytes {
        [] => Err("it is empty".into()),
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            Err("it is a core module; make it a component, by cargo component build or wasm-tools component new".into())
        }
        [0, b'a', b's', b'm', ..] => {
            Err("it is WebAssembly of another version than the component model's 0x1000d".into())
        }
        [0x7f, b'E', b'L', b'F', ..] => Err("it is machine code; give the component itself".into()),
        [0x1f, 0x8b, ..] => Err("it is compressed; give the component itself".into()),
        _ if bytes.trim_ascii_start().starts_with(b"(") => {
            Err("it is WebAssembly text; assemble it first, by wasm-tools parse".into())
        }
        _ => Err("it does not begin as WebAssembly does".into()),
    }
}
