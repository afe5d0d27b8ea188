//! One call: a fresh store with every limit set, and what it used.
//!
//! Guarantees: fuel, wall time, memory over all memories and tables, and bytes
//! copied out are limited from before instantiation until the store is gone.

use std::time::Instant;

use tracing::Level;
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, Store, StoreContextMut, Trap};

use super::engine::Engine;
use super::frames::Frames;
use super::log::Log;
use super::model::{CallError, LogLine, Usage};
use super::printed::{Printed, Stream};
use super::world::World;
use crate::limits::{self, PluginLimits};

/// What the host keeps beside a guest during a call.
pub(super) struct State {
    limits: PluginLimits,
    budget: Budget,
    pub(super) log: Log,
    printed: Printed,
    pub(super) world: World,
    /// What handles of the virtual world stand for; as many as `limits::HANDLES` allows.
    pub(super) things: ResourceTable,
}

/// Bytes over all memories and tables of the store: wasmtime's own limit is for each.
struct Budget {
    left: usize,
    used: usize,
}

/// Where a call stood when wasmtime gave an error.
pub(super) enum Stop {
    Instantiation(wasmtime::Error),
    Call(wasmtime::Error),
    /// Stopped by us, after the guest had returned.
    Output(CallError),
}

/// Runs `guest` in a store of its own.
pub(super) fn call<T>(
    engine: &Engine,
    limits: &PluginLimits,
    world: World,
    guest: impl FnOnce(&mut Store<State>) -> Result<T, Stop>,
) -> (Result<T, CallError>, Usage) {
    let start = Instant::now();
    let running = engine.tick_while_running();
    let mut store = Store::new(engine.wasmtime(), State::new(limits, world));
    store.limiter(|state| &mut state.budget);
    store.set_epoch_deadline(ticks(limits));
    store.set_hostcall_fuel(limits.output_bytes().saturating_add(record_bytes(limits)));
    store.set_max_component_handles(limits::HANDLES);
    let mut stood = None;
    let result = match store.set_fuel(limits.fuel) {
        Ok(()) => {
            let result = guest(&mut store);
            store.data_mut().finish();
            result.map_err(|stop| {
                let frames = stop.frames();
                stood = frames.line(store.data().log.is_explained());
                explain(stop, &frames, limits, store.data())
            })
        }
        Err(error) => Err(CallError::Host(format!("{error:#}"))),
    };
    let fuel = limits.fuel.saturating_sub(store.get_fuel().unwrap_or(0));
    let State { limits: _, budget, log, printed: _, world: _, things: _ } = store.into_data();
    drop(running);
    let mut log = log.into_lines();
    log.extend(stood.map(|message| LogLine { level: Level::ERROR, message, fields: Vec::new() }));
    let usage = Usage { fuel, wall: start.elapsed(), memory_bytes: budget.used, log };
    (result, usage)
}

/// The tick in progress does not count.
fn ticks(limits: &PluginLimits) -> u64 {
    let ticks = limits.wall().as_nanos().div_ceil(limits::EPOCH_TICK.as_nanos());
    u64::try_from(ticks).unwrap_or(u64::MAX / 2) + 1
}

/// wasmtime counts the host's records beside the text in them.
fn record_bytes(limits: &PluginLimits) -> usize {
    (limits.children as usize).saturating_mul(limits::RECORD_BYTES).saturating_add(64 * limits::RECORD_BYTES)
}

fn explain(stop: Stop, frames: &Frames, limits: &PluginLimits, state: &State) -> CallError {
    let (error, instantiation) = match stop {
        Stop::Output(error) => return error,
        Stop::Instantiation(error) => (error, true),
        Stop::Call(error) => (error, false),
    };
    let limits = *limits;
    if error.is::<TooMuchMemory>() {
        return CallError::OutOfMemory { limits };
    }
    if let Some(Ended(end)) = error.downcast_ref() {
        return match end {
            End::Exit(code) => CallError::Exited(state.log.explain(format_args!("ended itself with code {code}"))),
            End::Misuse(what) => CallError::Trap(state.log.explain(what)),
        };
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return match trap {
            Trap::OutOfFuel => CallError::OutOfFuel { limits },
            Trap::Interrupt => CallError::Timeout { limits },
            Trap::StringOutOfBounds
            | Trap::ListOutOfBounds
            | Trap::InvalidDiscriminant
            | Trap::InvalidChar
            | Trap::UnalignedPointer => CallError::OutputInvalid(trap.to_string()),
            trap => CallError::Trap(state.log.explain(place(trap, frames))),
        };
    }
    // wasmtime's types for these are private; tests hold the texts.
    let text = error.root_cause().to_string();
    if text.contains("handle limit exceeded") {
        return CallError::OutOfHandles;
    }
    if text.contains("fuel allocated for hostcalls") {
        return CallError::OutputTooLarge { limits };
    }
    if instantiation || error.is::<wasmtime::PoolConcurrencyLimitError>() || error.is::<HostMemory>() {
        return CallError::Host(words(&error));
    }
    CallError::OutputInvalid(text)
}

/// What the guest did, and in which function of its own.
fn place(trap: &Trap, frames: &Frames) -> String {
    let what = match trap {
        Trap::UnreachableCodeReached => "unreachable".to_owned(),
        trap => trap.to_string(),
    };
    match frames.own() {
        Some(own) => format!("{what} in {own}"),
        None => what,
    }
}

/// Of an error without its frames, which are told elsewhere.
fn words(error: &wasmtime::Error) -> String {
    let words = error.chain().map(ToString::to_string);
    words.filter(|text| !text.starts_with("error while executing at wasm backtrace")).collect::<Vec<_>>().join(": ")
}

/// Pays for what the host does for the guest, else a flood of calls would run until the wall-time limit.
pub(super) fn pay(store: &mut StoreContextMut<'_, State>, units: u64) -> wasmtime::Result<()> {
    let left = store.get_fuel()?.checked_sub(units);
    store.set_fuel(left.unwrap_or(0))?;
    if left.is_some() { Ok(()) } else { Err(Trap::OutOfFuel.into()) }
}

/// The virtual world ends the call.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
pub(super) struct Ended(pub(super) End);

#[derive(Debug)]
pub(super) enum End {
    /// The guest says so.
    Exit(u8),
    /// It asks for what nobody gives.
    Misuse(String),
}

#[derive(Debug, thiserror::Error)]
#[error("the plugin's memory limit is reached")]
struct TooMuchMemory;

#[derive(Debug, thiserror::Error)]
#[error("the machine has no memory for the plugin: {0}")]
struct HostMemory(String);

// === impl Stop ===

impl Stop {
    fn frames(&self) -> Frames {
        match self {
            Self::Instantiation(error) | Self::Call(error) => Frames::of(error),
            Self::Output(_) => Frames::none(),
        }
    }
}

// === impl State ===

impl State {
    fn new(limits: &PluginLimits, world: World) -> Self {
        Self {
            limits: *limits,
            budget: Budget { left: limits.memory_bytes(), used: 0 },
            log: Log::new(limits.log_bytes()),
            printed: Printed::default(),
            world,
            things: ResourceTable::new(),
        }
    }

    pub(super) fn print(&mut self, stream: Stream, text: &[u8]) {
        self.printed.print(stream, text, &mut self.log);
    }

    fn finish(&mut self) {
        self.printed.finish(&mut self.log);
    }

    pub(super) fn limits(&self) -> PluginLimits {
        self.limits
    }
}

// === impl Budget ===

impl Budget {
    /// Ends the call where there is too little: a guest that hears of it only
    /// aborts, and `unreachable` would hide why.
    fn take(&mut self, bytes: usize) -> wasmtime::Result<bool> {
        self.left = self.left.checked_sub(bytes).ok_or(TooMuchMemory)?;
        self.used += bytes;
        Ok(true)
    }
}

impl ResourceLimiter for Budget {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Beyond the maximum that the guest itself declared nothing grows, and nothing is taken.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.take(desired.saturating_sub(current))
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(HostMemory(format!("{error:#}")).into())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.take(desired.saturating_sub(current).saturating_mul(size_of::<usize>()))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(HostMemory(format!("{error:#}")).into())
    }

    fn instances(&self) -> usize {
        limits::INSTANCES as usize
    }

    fn memories(&self) -> usize {
        limits::MEMORIES as usize
    }

    fn tables(&self) -> usize {
        limits::TABLES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes: usize) -> Budget {
        Budget { left: bytes, used: 0 }
    }

    #[test]
    fn memory_obeyed() {
        let mut budget = budget(300);
        assert!(budget.memory_growing(0, 100, None).unwrap());
        assert!(budget.memory_growing(100, 200, Some(200)).unwrap());
        assert!(budget.table_growing(0, 12, None).unwrap());
        assert_eq!((budget.left, budget.used), (4, 296));
    }

    #[test]
    fn memory_violated() {
        let mut budget = budget(300);
        assert!(budget.memory_growing(0, 200, None).unwrap());
        assert!(budget.memory_growing(0, 101, None).unwrap_err().is::<TooMuchMemory>());
        assert!(budget.table_growing(0, 13, None).unwrap_err().is::<TooMuchMemory>());
        assert!(budget.table_growing(0, usize::MAX, None).unwrap_err().is::<TooMuchMemory>());
    }

    #[test]
    fn growth_beyond_the_guests_own_maximum_is_its_own_affair() {
        let mut budget = budget(300);
        assert!(!budget.memory_growing(0, 200, Some(100)).unwrap());
        assert!(!budget.table_growing(0, 20, Some(10)).unwrap());
        assert_eq!(budget.used, 0);
    }

    #[test]
    fn a_deadline_is_never_shorter_than_the_limit() {
        let limits = PluginLimits { wall_milliseconds: 15, ..Default::default() };
        assert_eq!(ticks(&limits), 3);
    }
}
