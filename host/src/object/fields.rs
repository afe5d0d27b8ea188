//! Whether we still own every field that we rendered.
//!
//! Whoever changes a field of ours takes it out of our entry in
//! `metadata.managedFields`. So drift shows there, and values need never be
//! compared (`1000m` becomes `1`, webhooks rewrite).
//!
//! `fieldsV1` is a tree: `f:NAME` a field, `k:{…}` a list item by its keys,
//! `v:…` an item of a set by its value, `.` the item itself; `{}` a leaf, which
//! stands for all below it (an atomic list or map).

use serde_json::{Map, Value};

/// The first path of `rendered` that `owned` (our `fieldsV1`) lacks, as a
/// JSON pointer. `apiVersion`, `kind` and what identifies the object are never
/// in an entry.
pub(crate) fn lost(rendered: &Map<String, Value>, owned: &Map<String, Value>) -> Option<String> {
    rendered.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind")).find_map(|(name, value)| {
        let path = format!("/{}", escape(name));
        match (name.as_str(), value, owned.get(&format!("f:{name}"))) {
            ("metadata", Value::Object(metadata), owned) => lost_metadata(metadata, owned, &path),
            (_, value, Some(owned)) => lost_below(value, owned, &path),
            (_, _, None) => Some(path),
        }
    })
}

/// How many steps of a JSON pointer into `rendered` a `fieldsV1` names.
pub(crate) fn depth(rendered: &Value, pointer: &str, fields: &Value) -> usize {
    let (mut at, mut fields, mut depth) = (Some(rendered), fields, 0);
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let entry = match (at, fields.as_object()) {
            (Some(Value::Array(items)), Some(owned)) => {
                at = name.parse::<usize>().ok().and_then(|index| items.get(index));
                at.and_then(|item| owned.iter().find(|(key, _)| is_item(key, item))).map(|(_, below)| below)
            }
            (here, Some(owned)) => {
                at = here.and_then(|value| value.get(&name));
                owned.get(&format!("f:{name}"))
            }
            (_, None) => None,
        };
        let Some(entry) = entry else { break };
        (fields, depth) = (entry, depth + 1);
    }
    depth
}

/// Every path of `owned` that `rendered` does not have any more, as JSON pointers.
pub(crate) fn surplus(rendered: &Map<String, Value>, owned: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    surplus_below(&Value::Object(rendered.clone()), owned, "", &mut found);
    found
}

fn surplus_below(rendered: &Value, owned: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    for (entry, below) in owned.iter().filter(|(entry, _)| *entry != ".") {
        let (step, there) = match (entry.strip_prefix("f:"), rendered) {
            (Some(name), Value::Object(fields)) => (escape(name), fields.get(name)),
            (Some(name), _) => (escape(name), None),
            (None, Value::Array(items)) => {
                let at = items.iter().position(|item| is_item(entry, item));
                (at.map_or_else(|| escape(entry), |at| at.to_string()), at.and_then(|at| items.get(at)))
            }
            (None, _) => (escape(entry), None),
        };
        let path = format!("{path}/{step}");
        match (there, below.as_object()) {
            (None, _) => found.push(path),
            (Some(there), Some(below)) => surplus_below(there, below, &path, found),
            (Some(_), None) => {}
        }
    }
}

fn lost_metadata(metadata: &Map<String, Value>, owned: Option<&Value>, path: &str) -> Option<String> {
    let Some(owned) = owned.and_then(Value::as_object) else { return Some(path.to_owned()) };
    metadata
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "name" | "namespace" | "uid" | "resourceVersion"))
        .find_map(|(name, value)| lost_field(name, value, owned, path))
}

fn lost_field(name: &str, value: &Value, owned: &Map<String, Value>, path: &str) -> Option<String> {
    let path = format!("{path}/{}", escape(name));
    match owned.get(&format!("f:{name}")) {
        Some(owned) => lost_below(value, owned, &path),
        None => Some(path),
    }
}

fn lost_below(value: &Value, owned: &Value, path: &str) -> Option<String> {
    let owned = owned.as_object()?;
    if owned.is_empty() {
        return None;
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| lost_field(name, value, owned, path)),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let path = format!("{path}/{index}");
            match owned.iter().find(|(key, _)| is_item(key, item)) {
                Some((_, owned)) => lost_below(item, owned, &path),
                None => Some(path),
            }
        }),
        _ => None,
    }
}

/// Whether the `k:` or `v:` of an entry names this item. Keys that the
/// rendering leaves out were defaulted by the server (a port's protocol).
fn is_item(entry: &str, item: &Value) -> bool {
    if let Some(keys) = entry.strip_prefix("k:").and_then(|json| serde_json::from_str::<Map<String, Value>>(json).ok())
    {
        let Some(item) = item.as_object() else { return false };
        keys.iter().all(|(name, value)| item.get(name).is_none_or(|own| own == value))
            && keys.keys().any(|name| item.contains_key(name))
    } else if let Some(value) = entry.strip_prefix("v:").and_then(|json| serde_json::from_str::<Value>(json).ok()) {
        value == *item
    } else {
        false
    }
}

/// As a step of a JSON pointer.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn check(rendered: &Value, owned: &Value) -> Option<String> {
        lost(&map(rendered), &map(owned))
    }

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "n", "labels": {"app": "db", "keelson.dev/instance": "u"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "a", "uid": "u1", "controller": true}]},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}], "args": ["x", "y"]}],
                "volumes": [{"name": "v", "emptyDir": {}}]}
        })
    }

    fn entry() -> Value {
        json!({
            "f:metadata": {"f:labels": {"f:app": {}, "f:keelson.dev/instance": {}},
                "f:ownerReferences": {"k:{\"uid\":\"u1\"}": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}},
                "f:volumes": {"k:{\"name\":\"v\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}}}
        })
    }

    fn without(mut entry: Value, pointer: &str, key: &str) -> Value {
        entry.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key).unwrap();
        entry
    }

    #[test]
    fn all_owned() {
        assert_eq!(check(&pod(), &entry()), None);
    }

    #[test]
    fn a_lost_field_is_named() {
        let spec = "/f:spec/f:containers/k:{\"name\":\"c\"}";
        for (pointer, key, lost) in [
            ("/f:metadata/f:labels", "f:keelson.dev/instance", "/metadata/labels/keelson.dev~1instance"),
            ("/f:metadata", "f:ownerReferences", "/metadata/ownerReferences"),
            ("/f:metadata", "f:labels", "/metadata/labels"),
            ("", "f:metadata", "/metadata"),
            ("", "f:spec", "/spec"),
            (spec, "f:image", "/spec/containers/0/image"),
            ("/f:spec/f:volumes/k:{\"name\":\"v\"}", "f:emptyDir", "/spec/volumes/0/emptyDir"),
        ] {
            assert_eq!(check(&pod(), &without(entry(), pointer, key)).as_deref(), Some(lost));
        }
    }

    #[test]
    fn a_lost_list_item_is_named() {
        let mut other = entry();
        other["f:metadata"]["f:ownerReferences"] = json!({"k:{\"uid\":\"u2\"}": {}});
        assert_eq!(check(&pod(), &other).as_deref(), Some("/metadata/ownerReferences/0"));
        let mut other = entry();
        other["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"]["f:ports"] =
            json!({"k:{\"containerPort\":81,\"protocol\":\"TCP\"}": {".": {}}});
        assert_eq!(check(&pod(), &other).as_deref(), Some("/spec/containers/0/ports/0"));
    }

    #[test]
    fn another_managers_fields_are_followed_along_the_rendering() {
        let rendered = pod();
        for (pointer, entry, depth) in [
            (
                "/metadata/labels/keelson.dev~1instance",
                json!({"f:metadata": {"f:labels": {"f:keelson.dev/instance": {}}}}),
                3,
            ),
            ("/metadata/labels/app", json!({"f:metadata": {"f:labels": {"f:other": {}}}}), 2),
            (
                "/spec/containers/0/image",
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {"f:image": {}}}}}),
                4,
            ),
            (
                "/spec/containers/0/image",
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"d\"}": {"f:image": {}}}}}),
                2,
            ),
            ("/spec/containers/0/image", json!({"f:status": {}}), 0),
        ] {
            assert_eq!(super::depth(&rendered, pointer, &entry), depth, "{pointer} {entry}");
        }
    }

    #[test]
    fn what_is_owned_and_not_rendered_any_more_is_found() {
        assert_eq!(surplus(&map(&pod()), &map(&entry())), Vec::<String>::new());
        let mut less = pod();
        less["metadata"]["labels"].as_object_mut().unwrap().remove("app");
        less["spec"].as_object_mut().unwrap().remove("volumes");
        less["spec"]["containers"][0]["ports"] = json!([{"containerPort": 81}]);
        let found = surplus(&map(&less), &map(&entry()));
        let port = "/spec/containers/0/ports/k:{\"containerPort\":80,\"protocol\":\"TCP\"}";
        assert_eq!(found, ["/metadata/labels/app", port, "/spec/volumes"]);
    }

    #[test]
    fn sets_are_compared_by_value() {
        let rendered = json!({"spec": {"finalizers": ["a", "b"]}});
        assert_eq!(check(&rendered, &json!({"f:spec": {"f:finalizers": {"v:\"a\"": {}, "v:\"b\"": {}}}})), None);
        assert_eq!(
            check(&rendered, &json!({"f:spec": {"f:finalizers": {"v:\"a\"": {}}}})).as_deref(),
            Some("/spec/finalizers/1")
        );
    }
}
