//! A plugin for tests: it *is* what the test wrote into its slot, and renders what a script says.
//!
//! The script is JSON: the parent's annotation `keelson.test/script`, so that one object can misbehave beside others
//! and change its mind while the host runs; where it has none, `config` of the Plugin document. See [`script`].
//! The manifest is JSON in the slot, a run of bytes in the component that a test overwrites. See [`manifest`].
//!
//! The guest `finalizer` is the same with one more export.

mod manifest;
mod play;
mod script;

use keelson_sdk::bindings::exports::keelson::operator::operator::Guest;
use keelson_sdk::contract;

struct Probe;

impl Guest for Probe {
    fn describe() -> contract::Manifest {
        play::describe()
    }

    fn render(request: contract::Request) -> Result<contract::Rendering, contract::Failure> {
        play::render(&request)
    }
}

keelson_sdk::bindings::export!(Probe with_types_in keelson_sdk::bindings);
