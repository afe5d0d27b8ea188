//! `wasi:cli`, and the doors to files and network: there is no environment, nothing is open, no terminal is there.

use wasmtime::component::{Linker, Resource};

use super::super::printed::Stream;
use super::super::store::{End, Ended, State};
use super::handles::{Absent, Context, Input, Network, pay};
use super::streams::output;

pub(super) fn define(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut environment = linker.instance("wasi:cli/environment@0.2.0")?;
    environment.func_wrap("get-environment", |store: Context<'_>, ()| nothing::<Vec<(String, String)>>(store))?;
    environment.func_wrap("get-arguments", |store: Context<'_>, ()| nothing::<Vec<String>>(store))?;
    environment.func_wrap("initial-cwd", |store: Context<'_>, ()| nothing::<Option<String>>(store))?;

    let mut exit = linker.instance("wasi:cli/exit@0.2.0")?;
    exit.func_wrap("exit", |_: Context<'_>, (status,): (Result<(), ()>,)| -> wasmtime::Result<()> {
        Err(Ended(End::Exit(u8::from(status.is_err()))).into())
    })?;
    exit.func_wrap("exit-with-code", |_: Context<'_>, (code,): (u8,)| -> wasmtime::Result<()> {
        Err(Ended(End::Exit(code)).into())
    })?;

    linker.instance("wasi:cli/stdin@0.2.0")?.func_wrap("get-stdin", |mut store: Context<'_>, ()| {
        pay(&mut store, 0)?;
        Ok((Resource::<Input>::new_own(0),))
    })?;
    for (interface, function, stream) in
        [("wasi:cli/stdout@0.2.0", "get-stdout", Stream::Out), ("wasi:cli/stderr@0.2.0", "get-stderr", Stream::Error)]
    {
        linker.instance(interface)?.func_wrap(function, move |mut store: Context<'_>, ()| {
            pay(&mut store, 0)?;
            Ok((output(stream),))
        })?;
    }
    for (interface, function) in [
        ("wasi:cli/terminal-stdin@0.2.0", "get-terminal-stdin"),
        ("wasi:cli/terminal-stdout@0.2.0", "get-terminal-stdout"),
        ("wasi:cli/terminal-stderr@0.2.0", "get-terminal-stderr"),
    ] {
        let mut terminal = linker.instance(interface)?;
        terminal.func_wrap(function, |store: Context<'_>, ()| nothing::<Option<Resource<Absent>>>(store))?;
    }

    let mut preopens = linker.instance("wasi:filesystem/preopens@0.2.0")?;
    preopens
        .func_wrap("get-directories", |store: Context<'_>, ()| nothing::<Vec<(Resource<Absent>, String)>>(store))?;
    // A libc borrows it before it asks for a name, and would trap without.
    linker.instance("wasi:sockets/instance-network@0.2.0")?.func_wrap(
        "instance-network",
        |mut store: Context<'_>, ()| {
            pay(&mut store, 0)?;
            Ok((Resource::<Network>::new_own(0),))
        },
    )
}

fn nothing<T: Default>(mut store: Context<'_>) -> wasmtime::Result<(T,)> {
    pay(&mut store, 0)?;
    Ok((T::default(),))
}
