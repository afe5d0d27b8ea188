//! `wasi:io/streams`: stdin is at its end, stdout and stderr take all, line by line, as `log` does.

use wasmtime::component::{Linker, Resource, ResourceType};

use super::super::printed::Stream;
use super::super::store::State;
use super::handles::{Context, Input, Output, Pollable, StreamError, pay, pollable};
use crate::limits;

/// The handle of stderr; every other is stdout.
const STDERR: u32 = 2;
/// What `check-write` allows: as much as a page of text, so that a guest need not ask for each line.
const WRITE_BYTES: u64 = 64 * 1024;

type Bytes = Result<Vec<u8>, StreamError>;
type Count = Result<u64, StreamError>;
type Done = Result<(), StreamError>;

pub(super) fn output(stream: Stream) -> Resource<Output> {
    Resource::new_own(match stream {
        Stream::Out => 1,
        Stream::Error => STDERR,
    })
}

pub(super) fn define(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut streams = linker.instance("wasi:io/streams@0.2.0")?;
    streams.resource("input-stream", ResourceType::host::<Input>(), |_, _| Ok(()))?;
    streams.resource("output-stream", ResourceType::host::<Output>(), |_, _| Ok(()))?;

    for name in ["[method]input-stream.read", "[method]input-stream.blocking-read"] {
        streams.func_wrap(
            name,
            |mut store: Context<'_>, (_, _): (Resource<Input>, u64)| -> wasmtime::Result<(Bytes,)> {
                pay(&mut store, 0)?;
                Ok((Err(StreamError::Closed),))
            },
        )?;
    }
    for name in ["[method]input-stream.skip", "[method]input-stream.blocking-skip"] {
        streams.func_wrap(
            name,
            |mut store: Context<'_>, (_, _): (Resource<Input>, u64)| -> wasmtime::Result<(Count,)> {
                pay(&mut store, 0)?;
                Ok((Err(StreamError::Closed),))
            },
        )?;
    }
    streams
        .func_wrap("[method]input-stream.subscribe", |store: Context<'_>, (_,): (Resource<Input>,)| at_once(store))?;

    streams.func_wrap(
        "[method]output-stream.check-write",
        |mut store: Context<'_>, (_,): (Resource<Output>,)| -> wasmtime::Result<(Count,)> {
            pay(&mut store, 0)?;
            Ok((Ok(WRITE_BYTES),))
        },
    )?;
    for name in ["[method]output-stream.write", "[method]output-stream.blocking-write-and-flush"] {
        streams.func_wrap(
            name,
            |mut store: Context<'_>, (stream, bytes): (Resource<Output>, Vec<u8>)| -> wasmtime::Result<(Done,)> {
                let lines = memchr::memchr_iter(b'\n', &bytes).count().saturating_mul(limits::LOG_LINE_BYTES);
                pay(&mut store, u64::try_from(bytes.len().saturating_add(lines)).unwrap_or(u64::MAX))?;
                let stream = if stream.rep() == STDERR { Stream::Error } else { Stream::Out };
                store.data_mut().print(stream, &bytes);
                Ok((Ok(()),))
            },
        )?;
    }
    for name in ["[method]output-stream.flush", "[method]output-stream.blocking-flush"] {
        streams.func_wrap(name, |mut store: Context<'_>, (_,): (Resource<Output>,)| -> wasmtime::Result<(Done,)> {
            pay(&mut store, 0)?;
            Ok((Ok(()),))
        })?;
    }
    // Nobody prints zeros.
    for name in ["[method]output-stream.write-zeroes", "[method]output-stream.blocking-write-zeroes-and-flush"] {
        streams.func_wrap(
            name,
            |mut store: Context<'_>, (_, _): (Resource<Output>, u64)| -> wasmtime::Result<(Done,)> {
                pay(&mut store, 0)?;
                Ok((Err(StreamError::Closed),))
            },
        )?;
    }
    // From stdin, which is at its end.
    for name in ["[method]output-stream.splice", "[method]output-stream.blocking-splice"] {
        streams.func_wrap(
            name,
            |mut store: Context<'_>,
             (_, _, _): (Resource<Output>, Resource<Input>, u64)|
             -> wasmtime::Result<(Count,)> {
                pay(&mut store, 0)?;
                Ok((Err(StreamError::Closed),))
            },
        )?;
    }
    streams.func_wrap("[method]output-stream.subscribe", |store: Context<'_>, (_,): (Resource<Output>,)| at_once(store))
}

fn at_once(mut store: Context<'_>) -> wasmtime::Result<(Resource<Pollable>,)> {
    pay(&mut store, 0)?;
    Ok((pollable(&mut store, 0)?,))
}
