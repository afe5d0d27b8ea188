//! What a probe does at each call.

use std::hint::black_box;

use keelson_sdk::bindings::keelson::operator::log;
use keelson_sdk::contract;
use keelson_sdk::serde_json::{self, Value};

use crate::manifest;
use crate::script::{self, Act, Script};

const SCRIPT: &str = "/metadata/annotations/keelson.test~1script";

pub(crate) fn describe() -> contract::Manifest {
    log_panics();
    manifest::read()
}

pub(crate) fn render(request: &contract::Request) -> Result<contract::Rendering, contract::Failure> {
    log_panics();
    let parent: Value = serde_json::from_str(&request.parent).expect("the host sends JSON");
    let text = parent.pointer(SCRIPT).and_then(Value::as_str).unwrap_or(&request.config);
    match serde_json::from_str::<Script>(text) {
        Ok(script) => perform(script, &parent, request),
        Err(error) => Err(script::unreadable(&error)),
    }
}

pub(crate) fn perform(
    script: Script,
    parent: &Value,
    request: &contract::Request,
) -> Result<contract::Rendering, contract::Failure> {
    for line in &script.log {
        log::log(log::Level::Info, line, &[]);
    }
    script.act.iter().for_each(act);
    script.play(parent, request)
}

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

pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|info| log::log(log::Level::Error, &info.to_string(), &[])));
}
