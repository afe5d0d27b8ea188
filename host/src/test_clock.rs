//! The binary `keelson-test-clock`: the host with the clock of tests
//! (`clock/skew.rs`). Built for tests only.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    keelson::app::main()
}
