//! `wasi:clocks`: see [`World`](super::super::world::World).

use wasmtime::component::{ComponentType, Lift, Linker, Lower};

use super::super::store::State;
use super::super::world::TICK;
use super::handles::{Context, pay, pollable};

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

pub(super) fn define(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut clock = linker.instance("wasi:clocks/monotonic-clock@0.2.0")?;
    clock.func_wrap("now", |mut store: Context<'_>, ()| {
        pay(&mut store, 0)?;
        Ok((store.data_mut().world.monotonic(),))
    })?;
    clock.func_wrap("resolution", |mut store: Context<'_>, ()| {
        pay(&mut store, 0)?;
        Ok((TICK,))
    })?;
    clock.func_wrap("subscribe-instant", |mut store: Context<'_>, (when,): (u64,)| {
        pay(&mut store, 0)?;
        Ok((pollable(&mut store, when)?,))
    })?;
    clock.func_wrap("subscribe-duration", |mut store: Context<'_>, (duration,): (u64,)| {
        pay(&mut store, 0)?;
        let deadline = store.data().world.elapsed().saturating_add(duration);
        Ok((pollable(&mut store, deadline)?,))
    })?;

    let mut clock = linker.instance("wasi:clocks/wall-clock@0.2.0")?;
    clock.func_wrap("now", |mut store: Context<'_>, ()| {
        pay(&mut store, 0)?;
        let (seconds, nanoseconds) = store.data_mut().world.wall();
        Ok((Datetime { seconds, nanoseconds },))
    })?;
    clock.func_wrap("resolution", |mut store: Context<'_>, ()| {
        pay(&mut store, 0)?;
        Ok((Datetime { seconds: 1, nanoseconds: 0 },))
    })
}
