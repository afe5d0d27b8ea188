//! The probe, and the hook `finalize`: it says what the parent's annotation `keelson.test/finalize` says.
//!
//! `{script?, waiting?: {reason, message}, until?: {kind, name}}`: the children and Secrets of `script`, as the probe's
//! own (see probe/src/script.rs); done where nothing is waited for, or the child `until` has the condition Complete.
//! Without the annotation it is done.

#[path = "../../probe/src/manifest.rs"]
mod manifest;
#[path = "../../probe/src/play.rs"]
mod play;
#[path = "../../probe/src/script.rs"]
mod script;

use keelson_sdk::bindings::exports::keelson::operator::operator;
use keelson_sdk::contract;
use keelson_sdk::finalize::bindings::exports::keelson::operator::finalizer::{self, Finalization, Progress};
use keelson_sdk::serde_json::{self, Value};
use serde::Deserialize;

const FINALIZE: &str = "/metadata/annotations/keelson.test~1finalize";

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct End {
    script: script::Script,
    waiting: Option<Why>,
    until: Option<Child>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    reason: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Child {
    kind: String,
    name: String,
}

struct Probe;

impl operator::Guest for Probe {
    fn describe() -> contract::Manifest {
        play::describe()
    }

    fn render(request: contract::Request) -> Result<contract::Rendering, contract::Failure> {
        play::render(&request)
    }
}

impl finalizer::Guest for Probe {
    fn finalize(request: contract::Request) -> Result<Finalization, contract::Failure> {
        play::log_panics();
        let parent: Value = serde_json::from_str(&request.parent).expect("the host sends JSON");
        assert!(parent.pointer("/metadata/deletionTimestamp").is_some(), "asked for a parent that is not going");
        let text = parent.pointer(FINALIZE).and_then(Value::as_str).unwrap_or("{}");
        let End { script, waiting, until } = serde_json::from_str(text).map_err(|error| script::unreadable(&error))?;
        let contract::Rendering { children, secrets, look_again_after, .. } = play::perform(script, &parent, &request)?;
        let complete = until.is_some_and(|child| is_complete(&request, &child));
        let progress = match waiting {
            Some(Why { reason, message }) if !complete => Progress::Waiting(contract::Explanation { reason, message }),
            _ => Progress::Done,
        };
        Ok(Finalization { children, secrets, progress, look_again_after })
    }
}

fn is_complete(request: &contract::Request, child: &Child) -> bool {
    let there = request.children.iter().find(|there| there.kind == child.kind && there.name == child.name);
    let object = there.and_then(|there| serde_json::from_str::<Value>(&there.object).ok()).unwrap_or_default();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
}

keelson_sdk::bindings::export!(Probe with_types_in keelson_sdk::bindings);
keelson_sdk::finalize::bindings::export_finalizer!(Probe with_types_in keelson_sdk::finalize::bindings);
