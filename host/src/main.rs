//! The binary `keelson`; everything is in the library's `app`.

use std::process::ExitCode;

/// Threads of the host free what others took; the C library's allocator is slow
/// at that, musl's most of all.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    keelson::app::main()
}
