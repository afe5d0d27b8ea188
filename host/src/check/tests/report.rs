use super::*;
use crate::limits::CONDITION_MESSAGE_BYTES;
use crate::sandbox::model::Condition;

fn condition(kind: &str, reason: &str) -> Condition {
    Condition { kind: kind.into(), status: "True", reason: reason.into(), message: "m".into() }
}

#[test]
fn status_fields_of_the_host_are_refused() {
    let of =
        |status: Value| world().hold(Rendering { status: status.as_object().unwrap().clone(), ..rendering_of(&[]) });
    let parts = of(json!({"message": "m", "nodePort": 30000})).unwrap();
    assert_eq!(Value::Object(parts.status), json!({"message": "m", "nodePort": 30000}));
    for (status, rule, path) in [
        (json!({"conditions": []}), Rule::ParentStatus, "/status/conditions"),
        (json!({"observedGeneration": 1}), Rule::ParentStatus, "/status/observedGeneration"),
        (json!({"children": []}), Rule::ParentStatus, "/status/children"),
        (json!({"nodePort": null}), Rule::Null, "/status/nodePort"),
        (json!({"message": "x".repeat(40_000)}), Rule::Size, "/status"),
    ] {
        refused(of(status), rule, path, path);
    }
}

#[test]
fn conditions_are_well_formed_and_not_the_hosts() {
    let of = |conditions: Vec<Condition>| world().hold(Rendering { conditions, ..rendering_of(&[]) });
    of(vec![condition("Primary", "Elected"), condition("example.com/Backup", "Done")]).unwrap();
    for conditions in [
        vec![condition("Ready", "X")],
        vec![condition("Paused", "X")],
        vec![condition("", "X")],
        vec![condition("Not valid", "X")],
        vec![condition("Primary", "")],
        vec![condition("Primary", "not camel")],
    ] {
        refused(of(conditions.clone()), Rule::Condition, "/status/conditions/0", &format!("{conditions:?}"));
    }
    let twice = vec![condition("Primary", "X"), condition("Primary", "Y")];
    refused(of(twice), Rule::Condition, "/status/conditions/1", "twice");
}

#[test]
fn messages_are_cut_on_a_character() {
    let long = Explanation { reason: "Waiting".into(), message: format!("a\u{1b}{}", "é".repeat(2000)) };
    let parts = world().hold(Rendering { not_ready: Some(long), ..rendering_of(&[]) }).unwrap();
    let message = parts.not_ready.unwrap().message;
    assert!(message.len() <= CONDITION_MESSAGE_BYTES && message.ends_with('…'), "{}", message.len());
    assert!(message.starts_with("a é"), "no control characters");
    let bad = Explanation { reason: "so so".into(), message: String::new() };
    let result = world().hold(Rendering { not_ready: Some(bad), ..rendering_of(&[]) });
    refused(result, Rule::Condition, "/ready/reason", "a reason with a blank");
}
