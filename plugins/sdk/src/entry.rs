//! Between the exported functions and the author's trait.

use crate::contract;
use crate::log::{self, Level};
use crate::{Plugin, Request};
use std::mem::ManuallyDrop;

/// # Panics
/// Where the author's code does; the message is logged before the trap.
#[must_use]
pub fn describe<P: Plugin>() -> contract::Manifest {
    log_panics();
    P::manifest().into()
}

/// # Errors
/// What the author's code says, and requests that do not fit its types.
#[allow(clippy::result_large_err, reason = "it is what the contract wants, once for each call")]
pub fn render<P: Plugin>(request: contract::Request) -> Result<contract::Rendering, contract::Failure> {
    log_panics();
    // Never dropped: the memory goes with the instance.
    let request = ManuallyDrop::new(Request::<P>::read(request)?);
    Ok(P::render(&request)?.into())
}

/// A panic in wasm is a bare `unreachable`: say first what and where.
pub(crate) fn log_panics() {
    if cfg!(target_family = "wasm") {
        std::panic::set_hook(Box::new(|panic| {
            let what = panic.payload_as_str().unwrap_or("no message");
            let line = match panic.location() {
                Some(place) => format!("panicked at {place}: {what}"),
                None => format!("panicked: {what}"),
            };
            log::write(Level::Error, &line, &[]);
        }));
    }
}
