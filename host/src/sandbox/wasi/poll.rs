//! `wasi:io/poll`: nothing is waited for; where no deadline has come, the clocks move to the next.

use wasmtime::component::{Linker, Resource, ResourceType};

use super::super::store::{End, Ended, State};
use super::handles::{Context, Pollable, pay};

pub(super) fn define(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut poll = linker.instance("wasi:io/poll@0.2.0")?;
    poll.resource("pollable", ResourceType::host::<Pollable>(), |mut store, handle| {
        store.data_mut().things.delete(Resource::<Pollable>::new_own(handle))?;
        Ok(())
    })?;
    poll.func_wrap("[method]pollable.ready", |mut store: Context<'_>, (pollable,): (Resource<Pollable>,)| {
        pay(&mut store, 0)?;
        let deadline = deadline(store.data(), &pollable)?;
        // Looking moves the clock, or asking again and again would have no end.
        Ok((deadline <= store.data_mut().world.monotonic(),))
    })?;
    poll.func_wrap("[method]pollable.block", |mut store: Context<'_>, (pollable,): (Resource<Pollable>,)| {
        pay(&mut store, 0)?;
        let deadline = deadline(store.data(), &pollable)?;
        store.data_mut().world.sleep_until(deadline);
        Ok(())
    })?;
    poll.func_wrap("poll", |mut store: Context<'_>, (pollables,): (Vec<Resource<Pollable>>,)| {
        pay(&mut store, u64::try_from(pollables.len()).unwrap_or(u64::MAX))?;
        Ok((ready(store.data_mut(), &pollables)?,))
    })
}

/// The indices of those that are ready, of which there is at least one.
fn ready(state: &mut State, pollables: &[Resource<Pollable>]) -> wasmtime::Result<Vec<u32>> {
    let deadlines = pollables.iter().map(|pollable| deadline(state, pollable)).collect::<Result<Vec<u64>, _>>()?;
    let Some(first) = deadlines.iter().min() else {
        return Err(Ended(End::Misuse("wasi:io/poll: a poll of nothing".to_owned())).into());
    };
    state.world.sleep_until(*first);
    let now = state.world.elapsed();
    Ok((0..).zip(deadlines).filter(|(_, deadline)| *deadline <= now).map(|(index, _)| index).collect())
}

fn deadline(state: &State, pollable: &Resource<Pollable>) -> wasmtime::Result<u64> {
    Ok(state.things.get(pollable)?.deadline)
}
