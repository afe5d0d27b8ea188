//! Requests that any plugin must be able to answer: those of its fixtures, and objects with garbage in their spec.

use serde_json::{Map, Value, json};

use crate::limits::JSON_DEPTH;
use crate::plugin::golden::Fixtures;
use crate::plugin::request::{seed, selector_labels};
use crate::sandbox::{Manifest, Request, Serving};

const UID: &str = "11111111-2222-4333-8444-555555555555";
/// Bytes of a text that is too long for anything, and that a script can still read within its fuel.
const LONG: usize = 16 << 10;
/// Fields of one fixture's spec that are replaced.
const FIELDS: usize = 48;
/// 2026-01-01.
const NOW: u64 = 1_767_225_600;

/// With a name for messages each.
pub(super) fn of(manifest: &Manifest, fixtures: &Fixtures) -> Vec<(String, Request)> {
    let mut requests = Vec::new();
    for fixture in &fixtures.fixtures {
        let Ok(parent) = serde_json::from_str::<Value>(&fixture.request.parent) else { continue };
        requests.push((format!("fixture {}", fixture.name), fixture.request.clone()));
        let mut paths = Vec::new();
        collect(parent.get("spec").unwrap_or(&Value::Null), "/spec", &mut paths);
        for path in paths {
            for (word, value) in wrong() {
                let mut parent = parent.clone();
                if let Some(place) = parent.pointer_mut(&path) {
                    *place = value;
                }
                let request = Request { parent: parent.to_string().into(), ..fixture.request.clone() };
                requests.push((format!("fixture {} with {word} at {path}", fixture.name), request));
            }
        }
    }
    for serving in &manifest.serves {
        for (word, spec) in specs() {
            let parent = parent(serving, spec);
            requests.push((format!("{} with a spec that is {word}", serving.kind), request(manifest, &parent)));
        }
    }
    requests
}

fn request(manifest: &Manifest, parent: &Value) -> Request {
    Request {
        parent: parent.to_string().into(),
        config: "{}".into(),
        selector_labels: selector_labels(UID),
        children: Vec::new(),
        related: Vec::new(),
        secrets: Vec::new(),
        now: manifest.uses_time.then_some(NOW),
        seed: seed(UID, 1),
    }
}

fn parent(serving: &Serving, spec: Option<Value>) -> Value {
    let Serving { group, versions, kind, plural: _, discriminator } = serving;
    let version = versions.first().map(String::as_str).unwrap_or_default();
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut parent = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "garbage",
        "namespace": "default", "uid": UID, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}});
    if let (Some(spec), Some(fields)) = (spec, parent.as_object_mut()) {
        fields.insert("spec".to_owned(), spec);
    }
    // A host sends it no other.
    if let Some(only) = discriminator {
        let place = only.path.rsplit_once('/').and_then(|(object, key)| Some((parent.pointer_mut(object)?, key)));
        if let Some((Value::Object(fields), key)) = place {
            fields.insert(key.to_owned(), only.value.clone().into());
        }
    }
    parent
}

fn specs() -> Vec<(&'static str, Option<Value>)> {
    let mut specs = vec![
        ("missing", None),
        ("an empty object", Some(json!({}))),
        (
            "full of fields that nobody knows",
            Some(Value::Object((0..500).map(|n| (format!("f{n}"), n.into())).collect())),
        ),
    ];
    specs.extend(wrong().into_iter().map(|(word, value)| (word, Some(value))));
    specs
}

fn wrong() -> Vec<(&'static str, Value)> {
    // What goes through into a child is still within its limit.
    let mut deep = json!("x");
    for _ in 0..JSON_DEPTH / 8 {
        deep = json!({"a": [deep]});
    }
    vec![
        ("null", Value::Null),
        ("true", true.into()),
        ("an empty text", "".into()),
        ("text beyond ASCII", "ü\u{0}\u{1F980}\n\"'{{".into()),
        ("a long text", "x".repeat(LONG).into()),
        ("a negative number", (-1).into()),
        ("a huge number", u64::MAX.into()),
        ("a fraction", json!(1.5e-300)),
        ("an empty list", json!([])),
        ("a list of lists", json!([[], [[null]]])),
        ("an empty object", Value::Object(Map::new())),
        ("a deep object", deep),
    ]
}

/// Every place in the value, the whole first.
fn collect(value: &Value, path: &str, into: &mut Vec<String>) {
    if into.len() >= FIELDS {
        return;
    }
    into.push(path.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                collect(value, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), into);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect(value, &format!("{path}/{index}"), into);
            }
        }
        _ => {}
    }
}
