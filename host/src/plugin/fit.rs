//! The schema of what a plugin reads of `spec`, held against the schema by
//! which the API server prunes: pure.
//!
//! A field that the API server does not know is dropped without a word when an
//! object is written; the plugin would never see what the user has asked for.

use std::fmt;

use serde_json::Value;

/// Reason of a plugin that serves, and whose objects may lack fields that it reads.
pub const SCHEMA_MISMATCH: &str = "SchemaMismatch";
/// So many are told; how many more there are, as a number.
const TOLD: usize = 8;
/// Of a path, which is the plugin's own text.
const PATH_CHARS: usize = 200;

/// A part of `spec` that does not reach the plugin as it reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// `spec.storage.size`; `[]` stands for an item of a list, `*` for any field of a map.
    pub path: String,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The API server drops it.
    Pruned,
    /// It is, and it is read as.
    Type { is: String, read: String },
}

/// `root` is the schema of the whole kind.
pub fn mismatches(spec: &Value, root: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    match root.pointer("/properties/spec") {
        Some(there) => hold("spec", spec, there, &mut found),
        None if is(root, PRESERVE) || is_foreign(root) => {}
        None => found.push(Mismatch { path: "spec".to_owned(), why: Why::Pruned }),
    }
    found
}

/// In a sentence for each, of the kind `things.example.org v1`; empty where there are none.
pub fn words(found: &[Mismatch], kind: &str) -> String {
    let mut words: Vec<String> = found.iter().take(TOLD).map(|one| one.of(kind)).collect();
    if found.len() > TOLD {
        words.push(format!("and {} more", found.len() - TOLD));
    }
    words.join("; ")
}

impl Mismatch {
    fn of(&self, kind: &str) -> String {
        let path: String = self.path.chars().take(PATH_CHARS).collect();
        match &self.why {
            Why::Pruned => format!("{path} of {kind} is pruned by the API server, since its schema does not have it"),
            Why::Type { is, read } => format!("{path} of {kind} is of type {is}, and is read as {read}"),
        }
    }
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// What `read` names, against what is `there`.
fn hold(path: &str, read: &Value, there: &Value, found: &mut Vec<Mismatch>) {
    if is_foreign(there) || *there == Value::Bool(true) {
        return;
    }
    let mut push = |path: String, why| found.push(Mismatch { path, why });
    if let (Some(wanted), Some(given)) = (type_of(read), type_of(there))
        && !serves(given, wanted)
    {
        return push(path.to_owned(), Why::Type { is: given.to_owned(), read: wanted.to_owned() });
    }
    let any = additional(there);
    let keeps = is(there, PRESERVE) || any == Some(&Value::Bool(true));
    // Of an object: what of it is read beside what is named.
    let rest = match additional(read) {
        Some(Value::Bool(false)) => None,
        Some(rest) => Some(rest),
        None if fields(read).next().is_none() && type_of(read) == Some("object") => Some(&Value::Null),
        None => None,
    };
    match (rest, any) {
        (Some(rest), Some(any)) => hold(&format!("{path}.*"), rest, any, found),
        // All that could be in it is dropped, or all but some that are named.
        (Some(rest), None) if !keeps && (!rest.is_null() || fields(there).next().is_none()) => {
            push(format!("{path}.*"), Why::Pruned);
        }
        _ => {}
    }
    for (name, read) in fields(read) {
        let path = format!("{path}.{}", Name(name));
        match (there.get("properties").and_then(|fields| fields.get(name)), any) {
            (Some(there), _) => hold(&path, read, there, found),
            (None, Some(any)) => hold(&path, read, any, found),
            (None, None) if keeps || is_of_every_object(there, name) => {}
            (None, None) => found.push(Mismatch { path, why: Why::Pruned }),
        }
    }
    if let (Some(read), Some(there)) = (read.get("items"), there.get("items")) {
        hold(&format!("{path}[]"), read, there, found);
    }
}

/// Whether a plugin that reads `wanted` can read whatever is `given`.
fn serves(given: &str, wanted: &str) -> bool {
    given == wanted
        || matches!((given, wanted), ("integer", "number") | ("integer" | "string", "an integer or a string"))
}

/// Nothing where anything may stand there.
fn type_of(schema: &Value) -> Option<&str> {
    if is(schema, INT_OR_STRING) {
        return Some("an integer or a string");
    }
    schema.get("type")?.as_str()
}

/// Of a kind that is built in, told by parts that stand elsewhere: nothing is pruned by it.
fn is_foreign(schema: &Value) -> bool {
    schema.get("$ref").is_some() || schema.get("allOf").is_some_and(|parts| parts.pointer("/0/$ref").is_some())
}

fn is_of_every_object(schema: &Value, name: &str) -> bool {
    is(schema, "x-kubernetes-embedded-resource") && matches!(name, "apiVersion" | "kind" | "metadata")
}

fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|rest| **rest != Value::Bool(false))
}

fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn is(schema: &Value, mark: &str) -> bool {
    schema.get(mark) == Some(&Value::Bool(true))
}

/// A field's name in a path: whatever is no plain word, quoted.
pub(super) struct Name<'a>(pub &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = !self.0.is_empty() && self.0.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if plain { f.write_str(self.0) } else { write!(f, "{:?}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "always a json!() of its own")]

    use super::*;
    use serde_json::json;

    fn found(read: Value, there: Value) -> Vec<String> {
        let root = json!({"type": "object", "properties": {"spec": there}});
        let told = |one: &Mismatch| match &one.why {
            Why::Pruned => one.path.clone(),
            Why::Type { is, read } => format!("{}: {is} not {read}", one.path),
        };
        mismatches(&read, &root).iter().map(told).collect()
    }

    fn object(fields: Value) -> Value {
        json!({"type": "object", "properties": fields})
    }

    fn text() -> Value {
        json!({"type": "string"})
    }

    #[test]
    fn a_field_that_is_not_there_is_told_with_its_path() {
        let read = object(json!({"size": text(), "disk": object(json!({"class": text(), "a b": text()}))}));
        let there = object(json!({"disk": object(json!({"other": text()}))}));
        assert_eq!(found(read.clone(), there), ["spec.disk.\"a b\"", "spec.disk.class", "spec.size"]);
        assert_eq!(found(read.clone(), read.clone()), [""; 0]);
        assert_eq!(mismatches(&read, &json!({"type": "object"})), [Mismatch { path: "spec".into(), why: Why::Pruned }]);
        assert!(mismatches(&read, &json!({"type": "object", PRESERVE: true})).is_empty());
    }

    #[test]
    fn what_is_preserved_on_the_way_is_not_told() {
        let read = object(json!({"a": object(json!({"b": object(json!({"c": text()}))}))}));
        assert_eq!(found(read.clone(), json!({"type": "object", PRESERVE: true})), [""; 0]);
        // A field that is named within is pruned by its own schema.
        let named = json!({"type": "object", PRESERVE: true, "properties": {"a": object(json!({}))}});
        assert_eq!(found(read.clone(), named), ["spec.a.b"]);
        let map = json!({"type": "object", "additionalProperties": object(json!({"b": object(json!({}))}))});
        assert_eq!(found(read.clone(), map), ["spec.a.b.c"]);
        assert_eq!(found(read, json!({"type": "object", "additionalProperties": true})), [""; 0]);
        let embedded = object(json!({"pod": {"type": "object", "x-kubernetes-embedded-resource": true}}));
        let read = object(json!({"pod": object(json!({"metadata": {"type": "object"}, "spec": {"type": "object"}}))}));
        assert_eq!(found(read, embedded), ["spec.pod.spec"]);
    }

    #[test]
    fn a_type_that_differs_is_told() {
        let one = |kind: &str| object(json!({"a": {"type": kind}}));
        assert_eq!(found(one("integer"), one("string")), ["spec.a: string not integer"]);
        assert_eq!(found(one("integer"), one("number")), ["spec.a: number not integer"]);
        assert_eq!(found(one("number"), one("integer")), [""; 0]);
        let either = object(json!({"a": {INT_OR_STRING: true}}));
        assert_eq!(found(one("string"), either.clone()), ["spec.a: an integer or a string not string"]);
        assert_eq!(found(either.clone(), one("string")), [""; 0]);
        assert_eq!(found(either.clone(), either), [""; 0]);
        assert_eq!(found(one("string"), object(json!({"a": {PRESERVE: true}}))), [""; 0]);
        let list = |kind: &str| object(json!({"a": {"type": "array", "items": {"type": kind}}}));
        assert_eq!(found(list("string"), list("integer")), ["spec.a[]: integer not string"]);
        assert_eq!(found(list("string"), one("string")), ["spec.a: string not array"]);
    }

    #[test]
    fn a_map_or_an_open_object_wants_to_keep_what_is_in_it() {
        let map = |kind: &str| object(json!({"a": {"type": "object", "additionalProperties": {"type": kind}}}));
        let open = object(json!({"a": {"type": "object"}}));
        let named = object(json!({"a": object(json!({"b": text()}))}));
        let kept = object(json!({"a": {"type": "object", PRESERVE: true}}));
        assert_eq!(found(map("string"), map("integer")), ["spec.a.*: integer not string"]);
        assert_eq!(found(map("string"), named.clone()), ["spec.a.*"]);
        assert_eq!(found(map("string"), kept.clone()), [""; 0]);
        // An open one takes what there is; where there is nothing, all is lost.
        assert_eq!(found(open.clone(), named), [""; 0]);
        assert_eq!(found(open.clone(), kept), [""; 0]);
        assert_eq!(found(open.clone(), map("string")), [""; 0]);
        assert_eq!(found(open.clone(), open), ["spec.a.*"]);
    }

    #[test]
    fn built_in_kinds_prune_nothing() {
        let root = json!({"properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/io.k8s.PodSpec"}]}}});
        assert!(mismatches(&object(json!({"a": text()})), &root).is_empty());
    }

    #[test]
    fn many_are_counted() {
        let read = object((0..20).map(|i| (format!("f{i:02}"), text())).collect::<serde_json::Map<_, _>>().into());
        let words = words(&mismatches(&read, &json!({"properties": {"spec": {"type": "object"}}})), "things.e.org v1");
        assert!(words.starts_with("spec.f00 of things.e.org v1 is pruned"), "{words}");
        assert!(
            words.contains("spec.f07") && !words.contains("spec.f08") && words.ends_with("; and 12 more"),
            "{words}"
        );
    }
}
