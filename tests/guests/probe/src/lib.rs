//! A plugin for tests: it *is* what the test wrote into its slot, and renders what a script says.
//!
//! The script is JSON: the parent's annotation `keelson.test/script`, so that one object can misbehave beside others
//! and change its mind while the host runs; where it has none, `config` of the Plugin document. See [`script`].
//! The manifest is JSON in the slot, a run of bytes in the component that a test overwrites. See [`manifest`].

mod manifest;
mod script;

use std::hint::black_box;

use keelson_sdk::bindings::exports::keelson::operator::operator::Guest;
use keelson_sdk::bindings::keelson::operator::log;
use keelson_sdk::contract;
use keelson_sdk::serde_json::{self, Value};

use script::{Act, Script};

const SCRIPT: &str = "/metadata/annotations/keelson.test~1script";

struct Probe;

impl Guest for Probe {
    fn describe() -> contract::Manifest {
        log_panics();
        manifest::read()
    }

    fn render(request: contract::Request) -> Result<contract::Rendering, contract::Failure> {
        log_panics();
        let parent: Value = serde_json::from_str(&request.parent).expect("the host sends JSON");
        let text = parent.pointer(SCRIPT).and_then(Value::as_str).unwrap_or(&request.config);
        let script = match serde_json::from_str::<Script>(text) {
            Ok(script) => script,
            Err(error) => return Err(script::unreadable(&error)),
        };
        for line in &script.log {
            log::log(log::Level::Info, line, &[]);
        }
        script.act.iter().for_each(act);
        script.play(&parent, &request)
    }
}

keelson_sdk::bindings::export!(Probe with_types_in keelson_sdk::bindings);

pub(crate) fn act(act: &Act) {
    match act {
        Act::Trap => panic!("as the script says"),
        Act::Loop => loop {
            black_box(());
        },
        Act::Allocate => loop {
            black_box(vec![1_u8; 1 << 20]).leak();
        },
    }
}

fn log_panics() {
    std::panic::set_hook(Box::new(|info| log::log(log::Level::Error, &info.to_string(), &[])));
}
