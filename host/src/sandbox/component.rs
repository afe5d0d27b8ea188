//! From the bytes of a file to a component that can be called: compiled once,
//! linked once, instantiated for each call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::compiler::{self, Compiled};
use super::contract::{self, Guest};
use super::engine::Engine;
use super::model::{Asked, CallError, Finalized, Hooks, LoadError, Manifest, Rendered, Request, Usage};
use super::store;
use super::world::World;
use crate::limits::{self, PluginLimits};

#[derive(Clone)]
pub struct Component {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    limits: PluginLimits,
    guest: Guest,
    hooks: Hooks,
    size: Size,
    /// Calls until a quick one is tried again.
    rest: AtomicU32,
}

/// In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Of the component itself.
    pub component: usize,
    /// Of its compiled form, which stays in memory; 0 where it is not known.
    pub code: usize,
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
        let Compiled { component, code_bytes } = compiler::compile(self, bytes)?;
        let (guest, hooks) = contract::link(&component)?;
        // What stops the guest itself here, a start function that traps, `describe` will say.
        if let (Ok(Err(misfit)), _) = store::call(self, &limits, World::nowhere(), |store| guest.fits(store)) {
            return Err(LoadError::ArtifactInvalid(misfit));
        }
        let (engine, size) = (self.clone(), Size { component: bytes.len(), code: code_bytes });
        Ok(Component { inner: Arc::new(Inner { engine, limits, guest, hooks, size, rest: AtomicU32::new(0) }) })
    }
}

/// Names of what a component imports and exports, as push records them. Compiles it.
pub fn interfaces(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), LoadError> {
    recognise(bytes).map_err(LoadError::ArtifactInvalid)?;
    let engine = super::engine::compiling(super::engine::Kind::OnDemand);
    let component = engine.and_then(|engine| {
        wasmtime::component::Component::from_binary(&engine, bytes).map(|component| (component, engine))
    });
    let (component, engine) = component.map_err(|error| LoadError::ArtifactInvalid(format!("{error:#}")))?;
    let ty = component.component_type();
    let imports = ty.imports(&engine).map(|(name, _)| name.to_owned()).collect();
    let exports = ty.exports(&engine).map(|(name, _)| name.to_owned()).collect();
    Ok((imports, exports))
}

// === impl Component ===

impl Component {
    pub fn describe(&self) -> (Result<Manifest, CallError>, Usage) {
        let Inner { engine, limits, guest, .. } = &*self.inner;
        store::call(engine, limits, World::nowhere(), |store| guest.describe(store))
    }

    pub fn render(&self, request: &Request) -> (Result<Rendered, CallError>, Usage) {
        let Inner { engine, limits, guest, .. } = &*self.inner;
        store::call(engine, limits, World::of(request), |store| guest.render(store, request))
    }

    /// Only where `hooks` says that it has the hook.
    pub fn finalize(&self, request: &Request) -> (Result<Finalized, CallError>, Usage) {
        let Inner { engine, limits, guest, .. } = &*self.inner;
        store::call(engine, limits, World::of(request), |store| guest.finalize(store, request))
    }

    /// Only where `hooks` says that it has the hook.
    pub fn related(&self, request: &Request) -> (Result<Asked, CallError>, Usage) {
        let Inner { engine, limits, guest, .. } = &*self.inner;
        store::call(engine, limits, World::of(request), |store| guest.related(store, request))
    }

    /// For a thread that others wait for: within little fuel and time. `None` where the guest wants more, now or lately;
    /// then it is as if it had not been called, and `render` on another thread has all its limits.
    pub fn render_quickly(&self, request: &Request) -> Option<(Result<Rendered, CallError>, Usage)> {
        let Inner { engine, limits, guest, hooks: _, size: _, rest } = &*self.inner;
        if rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return None;
        }
        let quick = PluginLimits {
            fuel: limits.fuel.min(limits::QUICK_FUEL),
            memory_mib: limits.memory_mib.min(limits::QUICK_MEMORY_MIB),
            wall_milliseconds: limits.wall_milliseconds.min(limits::QUICK_MILLISECONDS),
            ..*limits
        };
        let (result, usage) = store::call(engine, &quick, World::of(request), |store| guest.render(store, request));
        let stopped = matches!(
            result,
            Err(CallError::OutOfFuel { .. } | CallError::Timeout { .. } | CallError::OutOfMemory { .. })
        );
        if stopped || usage.wall > quick.wall() {
            rest.store(limits::QUICK_REST, Ordering::Relaxed);
        }
        (!stopped).then_some((result, usage))
    }

    /// The version of the contract that it is called by.
    pub fn contract_version(&self) -> &'static str {
        self.inner.guest.version()
    }

    pub fn size(&self) -> Size {
        self.inner.size
    }

    pub fn hooks(&self) -> Hooks {
        self.inner.hooks
    }
}

/// What the first bytes tell, in words that help where it is no component.
fn recognise(bytes: &[u8]) -> Result<(), String> {
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
