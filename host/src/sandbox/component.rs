//! From the bytes of a file to a component that can be called: compiled once,
//! linked once, instantiated for each call.

use std::sync::Arc;

use super::artifact::{Hooks, LoadError, recognise};
use super::compiler;
use super::contract::{self, Guest};
use super::engine::Engine;
use super::model::{CallError, Manifest, Rendered, Request, Usage};
use super::store;
use crate::limits::PluginLimits;

#[derive(Clone)]
pub struct Component {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    limits: PluginLimits,
    guest: Guest,
    hooks: Hooks,
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component").field("hooks", &self.inner.hooks).finish_non_exhaustive()
    }
}

impl Engine {
    /// Blocks for as long as compiling takes: 50 ms for 70 kB, seconds for Python.
    pub fn compile(&self, bytes: &[u8], limits: PluginLimits) -> Result<Component, LoadError> {
        recognise(bytes).map_err(LoadError::ArtifactInvalid)?;
        let component = compiler::compile(self, bytes)?;
        let (guest, hooks) = contract::link(&component)?;
        // What stops the guest itself here, a start function that traps, `describe` will say.
        if let (Ok(Err(misfit)), _) = store::call(self, &limits, |store| guest.fits(store)) {
            return Err(LoadError::ArtifactInvalid(misfit));
        }
        Ok(Component { inner: Arc::new(Inner { engine: self.clone(), limits, guest, hooks }) })
    }
}

// === impl Component ===

impl Component {
    pub fn describe(&self) -> (Result<Manifest, CallError>, Usage) {
        let Inner { engine, limits, guest, hooks: _ } = &*self.inner;
        store::call(engine, limits, |store| guest.describe(store))
    }

    pub fn render(&self, request: &Request) -> (Result<Rendered, CallError>, Usage) {
        let Inner { engine, limits, guest, hooks: _ } = &*self.inner;
        store::call(engine, limits, |store| guest.render(store, request))
    }

    /// The version of the contract that it is called by.
    pub fn contract_version(&self) -> &'static str {
        self.inner.guest.version()
    }

    pub fn hooks(&self) -> Hooks {
        self.inner.hooks
    }
}
