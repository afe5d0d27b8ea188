//! What a guest's handles stand for. Handles are counted by the store; what stands behind them is small.

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lower, Resource};

use super::super::store::{self, State};
use crate::limits;

pub(super) type Context<'a> = StoreContextMut<'a, State>;

/// Ready when the monotonic clock shows so many nanoseconds.
pub(super) struct Pollable {
    pub(super) deadline: u64,
}

/// Stdin, which is at its end.
pub(super) struct Input;

/// Stdout or stderr: which one is the number of the handle.
pub(super) struct Output;

/// A network without hosts.
pub(super) struct Network;

/// Of which there is none.
pub(super) struct Absent;

#[derive(ComponentType, Lower)]
#[component(variant)]
pub(super) enum StreamError {
    #[component(name = "last-operation-failed")]
    #[allow(dead_code, reason = "the type has it; nothing fails here")]
    LastOperationFailed(Resource<Absent>),
    #[component(name = "closed")]
    Closed,
}

/// What every call into this world costs, and a unit for each byte or value that passes.
pub(super) fn pay(store: &mut Context<'_>, values: u64) -> wasmtime::Result<()> {
    store::pay(store, limits::WORLD_CALL_FUEL.saturating_add(values))
}

pub(super) fn pollable(store: &mut Context<'_>, deadline: u64) -> wasmtime::Result<Resource<Pollable>> {
    Ok(store.data_mut().things.push(Pollable { deadline })?)
}
