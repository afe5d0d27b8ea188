//! `wasi:random`: one sequence, which follows from the request's seed, for all that asks for random numbers.

use wasmtime::component::Linker;

use super::super::store::{End, Ended, State};
use super::handles::{Context, pay};
use crate::limits;

pub(super) fn define(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    for (interface, bytes, number) in [
        ("wasi:random/random@0.2.0", "get-random-bytes", "get-random-u64"),
        ("wasi:random/insecure@0.2.0", "get-insecure-random-bytes", "get-insecure-random-u64"),
    ] {
        let mut random = linker.instance(interface)?;
        random.func_wrap(bytes, |mut store: Context<'_>, (length,): (u64,)| {
            pay(&mut store, length)?;
            Ok((random_bytes(store.data_mut(), length)?,))
        })?;
        random.func_wrap(number, |mut store: Context<'_>, ()| {
            pay(&mut store, 0)?;
            Ok((store.data_mut().world.random(),))
        })?;
    }
    linker.instance("wasi:random/insecure-seed@0.2.0")?.func_wrap("insecure-seed", |mut store: Context<'_>, ()| {
        pay(&mut store, 0)?;
        let world = &mut store.data_mut().world;
        Ok(((world.random(), world.random()),))
    })
}

fn random_bytes(state: &mut State, length: u64) -> wasmtime::Result<Vec<u8>> {
    if length > limits::RANDOM_BYTES {
        let limit = limits::RANDOM_BYTES;
        let what = format!("wasi:random: {length} random bytes at once, where {limit} are the most");
        return Err(Ended(End::Misuse(what)).into());
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
    while bytes.len() < length {
        bytes.extend_from_slice(&state.world.random().to_le_bytes());
    }
    bytes.truncate(length);
    Ok(bytes)
}
