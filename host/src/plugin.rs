//! From Plugin documents, in a folder or in the cluster, to plugins that serve.
//!
//! `source → document → verify → compile → declare → golden → registry`
//!
//! Each plugin walks alone: one that fails becomes a [`Problem`] and leaves the
//! others, and an earlier version of it goes on ([`Roster`]). Only a folder that
//! cannot be read at all, or holds no document, is an error. Verification cannot be left out: nothing but `verify` makes the
//! `Verified` that `compile` takes.

pub mod passed;
pub mod status;
pub mod source;
pub mod document;
pub mod crd;
pub mod access;
pub mod verify;
pub mod compile;
pub mod declare;
pub mod sections;
pub mod golden;
pub mod claims;
pub mod registry;
pub mod fetch;
pub mod bundle;
pub mod load;
pub mod roster;
pub mod fit;
pub mod union;
pub mod definition;
pub mod tell;
pub mod projection;
pub mod request;

use std::path::Path;

use crate::sandbox::Engine;

pub use claims::{Found, ParentKind};
pub use load::PluginError;
pub use registry::{Dispatch, Origin, Plugin, Problem, Registry};
pub use roster::Roster;
pub use source::SourceError;

impl Registry {
    /// Loads every plugin of a folder, one at a time, on a thread that may block.
    pub async fn load(folder: &Path, engine: &Engine) -> Result<Registry, SourceError> {
        let mut roster = Roster::new(engine.clone(), Some(folder));
        roster.read_folder(true).await?;
        Ok(roster.registry(None))
    }
}
