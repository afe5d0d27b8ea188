//! WASI 0.2 as a plugin has it: a world that is the same for the same request. No environment, arguments, files or
//! network; stdin is at its end; what is printed goes to the log; polls are ready at once, and sleeping moves the clocks.
//!
//! Toolchains import more than a plugin calls. What can be called is answered in the files of this folder, by hand: each
//! call costs fuel, none waits, and none sees this machine.

use wasmtime::component::{Component, Linker};

use super::imports::Allowed;
use super::store::State;

mod handles;
mod poll;
mod streams;
mod clocks;
mod random;
mod cli;
mod absent;

/// All that a guest may import, whatever 0.2.x it says.
pub(super) const INTERFACES: [&[Allowed]; 2] = [ANSWERED, ABSENT];

const ANSWERED: &[Allowed] = &[
    some("wasi:io/poll@0.2.0", &["[method]pollable.ready", "[method]pollable.block", "poll"]),
    some(
        "wasi:io/streams@0.2.0",
        &[
            "[method]input-stream.read",
            "[method]input-stream.blocking-read",
            "[method]input-stream.skip",
            "[method]input-stream.blocking-skip",
            "[method]input-stream.subscribe",
            "[method]output-stream.check-write",
            "[method]output-stream.write",
            "[method]output-stream.blocking-write-and-flush",
            "[method]output-stream.flush",
            "[method]output-stream.blocking-flush",
            "[method]output-stream.subscribe",
            "[method]output-stream.write-zeroes",
            "[method]output-stream.blocking-write-zeroes-and-flush",
            "[method]output-stream.splice",
            "[method]output-stream.blocking-splice",
        ],
    ),
    some("wasi:clocks/monotonic-clock@0.2.0", &["now", "resolution", "subscribe-instant", "subscribe-duration"]),
    some("wasi:clocks/wall-clock@0.2.0", &["now", "resolution"]),
    some("wasi:random/random@0.2.0", &["get-random-bytes", "get-random-u64"]),
    some("wasi:random/insecure@0.2.0", &["get-insecure-random-bytes", "get-insecure-random-u64"]),
    some("wasi:random/insecure-seed@0.2.0", &["insecure-seed"]),
    some("wasi:cli/environment@0.2.0", &["get-environment", "get-arguments", "initial-cwd"]),
    some("wasi:cli/exit@0.2.0", &["exit", "exit-with-code"]),
    some("wasi:cli/stdin@0.2.0", &["get-stdin"]),
    some("wasi:cli/stdout@0.2.0", &["get-stdout"]),
    some("wasi:cli/stderr@0.2.0", &["get-stderr"]),
    some("wasi:cli/terminal-stdin@0.2.0", &["get-terminal-stdin"]),
    some("wasi:cli/terminal-stdout@0.2.0", &["get-terminal-stdout"]),
    some("wasi:cli/terminal-stderr@0.2.0", &["get-terminal-stderr"]),
    some("wasi:filesystem/preopens@0.2.0", &["get-directories"]),
    some("wasi:sockets/instance-network@0.2.0", &["instance-network"]),
];

/// Linked because a libc names it.
const ABSENT: &[Allowed] = &[
    none("wasi:io/error@0.2.0", &[], &["error"]),
    none("wasi:cli/terminal-input@0.2.0", &[], &["terminal-input"]),
    none("wasi:cli/terminal-output@0.2.0", &[], &["terminal-output"]),
    none("wasi:filesystem/types@0.2.0", &["filesystem-error-code"], &["descriptor", "directory-entry-stream"]),
    none("wasi:sockets/network@0.2.0", &["network-error-code"], &["network"]),
    none("wasi:sockets/tcp@0.2.0", &[], &["tcp-socket"]),
    none("wasi:sockets/tcp-create-socket@0.2.0", &["create-tcp-socket"], &[]),
    none("wasi:sockets/udp@0.2.0", &[], &["udp-socket", "incoming-datagram-stream", "outgoing-datagram-stream"]),
    none("wasi:sockets/udp-create-socket@0.2.0", &["create-udp-socket"], &[]),
    none("wasi:sockets/ip-name-lookup@0.2.0", &["resolve-addresses"], &["resolve-address-stream"]),
];

const fn some(interface: &'static str, functions: &'static [&'static str]) -> Allowed {
    Allowed { interface, functions, absent: &[] }
}

const fn none(interface: &'static str, functions: &'static [&'static str], absent: &'static [&'static str]) -> Allowed {
    Allowed { interface, functions, absent }
}

/// Defines what `component` may find, which has been checked against [`INTERFACES`].
pub(super) fn define(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    let ty = component.component_type();
    if !ty.imports(component.engine()).any(|(name, _)| name.starts_with("wasi:")) {
        return Ok(());
    }
    poll::define(linker)?;
    streams::define(linker)?;
    clocks::define(linker)?;
    random::define(linker)?;
    cli::define(linker)?;
    absent::define(linker, component, ABSENT)
}

#[cfg(test)]
mod tests {
    use super::super::imports::same_track;
    use super::*;

    /// `make test-languages` holds these lists against the toolchains.
    #[test]
    fn what_the_toolchains_import_can_be_imported() {
        let lists = [
            include_str!("../../../tests/languages/imports/python.txt"),
            include_str!("../../../tests/languages/imports/javascript.txt"),
            include_str!("../../../tests/languages/imports/rust-wasip1.txt"),
            include_str!("../../../tests/languages/imports/rust-wasip2.txt"),
        ];
        for import in lists.iter().flat_map(|list| list.lines()) {
            let (interface, function) = import.split_once('#').unwrap();
            let mut all = INTERFACES.into_iter().flatten();
            let allowed = all.find(|allowed| same_track(allowed.interface, interface)).expect(import);
            assert!(allowed.functions.contains(&function) || allowed.is_of_absent(function), "{import}");
        }
    }
}
