//! What of a child can be changed where it stands, and by which subresource.
//!
//! | kind | by an apply | by the subresource `resize` | not at all |
//! |---|---|---|---|
//! | Pod | metadata, images, `activeDeadlineSeconds`, `tolerations` | values of `resources` | all else, and which resources are named |
//! | others | what the server takes | | what it refuses |
//!
//! Pods alone are in the table: of a Pod nearly every change is refused, so it
//! is known beforehand, without a call. Of other kinds an immutable field is the
//! exception; it is learned from one refusal, which is remembered (`tries`).
//! What the server has to say of the rest of the first column (a toleration
//! that is taken away) is learned in the same way.
//!
//! To know it the hash that stands on a child has three parts for a Pod: of the
//! whole rendering, of what cannot be changed, of what `resize` changes.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::fields::escape;
use crate::plugin::source::hash::hex;

/// Digits of the whole's hash: an annotation of every child.
const WHOLE: usize = 24;
/// Of the parts': were two ever equal by chance, the server's refusal would tell.
const PART: usize = 8;

/// How a rendering differs from the one that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// In what cannot be changed.
    pub fixed: bool,
    /// In what the subresource changes.
    pub resized: bool,
}

/// Keys are sorted in a `Map`, so equal values give equal text.
pub(crate) fn hash(group: &str, kind: &str, object: &Map<String, Value>) -> String {
    let whole = digits(object, WHOLE);
    match parts(group, kind, object) {
        Some((fixed, resized)) => format!("{whole}.{}.{}", digits(&fixed, PART), digits(&resized, PART)),
        None => whole,
    }
}

/// `None` where it is not known beforehand.
pub(crate) fn change(stands: &str, rendered: &str) -> Option<Change> {
    let parts = |hash: &str| {
        hash.split_once('.').and_then(|(_, parts)| parts.split_once('.').map(|(f, r)| (f.to_owned(), r.to_owned())))
    };
    let (there, wanted) = (parts(stands)?, parts(rendered)?);
    Some(Change { fixed: there.0 != wanted.0, resized: there.1 != wanted.1 })
}

/// The subresource by which what stands at this JSON pointer is changed.
pub(crate) fn subresource(group: &str, kind: &str, pointer: &str) -> Option<&'static str> {
    let mut tokens = pointer.split('/').skip(1);
    let is_pod = group.is_empty() && kind == "Pod" && tokens.next() == Some("spec");
    let of_container = |name: Option<&str>| matches!(name, Some("containers" | "initContainers"));
    (is_pod && of_container(tokens.next()) && tokens.nth(1) == Some("resources")).then_some("resize")
}

/// What cannot be changed of the kinds in the table, as a tree of the object's
/// own shape; null stands for a value that does not matter.
pub(crate) fn fixed(group: &str, kind: &str, object: &Map<String, Value>) -> Option<Value> {
    parts(group, kind, object).map(|(fixed, _)| fixed)
}

/// What an apply cannot change: what is fixed, and what `resize` changes.
pub(crate) fn not_applied(group: &str, kind: &str, object: &Map<String, Value>) -> Option<Value> {
    let (mut fixed, resized) = parts(group, kind, object)?;
    for (pointer, resources) in resized.as_object()? {
        if let Some(place) = fixed.pointer_mut(pointer) {
            *place = resources.clone();
        }
    }
    Some(fixed)
}

/// What cannot be changed, and what `resize` changes, by JSON pointer.
fn parts(group: &str, kind: &str, object: &Map<String, Value>) -> Option<(Value, Value)> {
    if !group.is_empty() || kind != "Pod" {
        return None;
    }
    let mut spec = object.get("spec")?.as_object()?.clone();
    spec.remove("activeDeadlineSeconds");
    spec.remove("tolerations");
    let mut resized = Map::new();
    for list in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for (index, container) in containers.iter_mut().enumerate() {
            let Some(container) = container.as_object_mut() else { continue };
            container.remove("image");
            if let Some(resources) = container.get_mut("resources") {
                resized.insert(format!("/spec/{list}/{index}/resources"), resources.clone());
                for named in ["requests", "limits"] {
                    let values = resources.get_mut(named).and_then(Value::as_object_mut);
                    values.into_iter().flatten().for_each(|(_, value)| *value = Value::Null);
                }
            }
        }
    }
    Some((Value::Object(Map::from_iter([("spec".to_owned(), Value::Object(spec))])), Value::Object(resized)))
}

/// The first place, as a JSON pointer, where what stands is not what `fixed` says.
pub(crate) fn difference(fixed: &Value, stands: &Value) -> Option<String> {
    match (fixed, stands) {
        (Value::Null, _) => None,
        (Value::Object(fixed), Value::Object(stands)) => fixed.iter().find_map(|(name, fixed)| {
            let below = stands.get(name).map_or_else(|| Some(String::new()), |stands| difference(fixed, stands))?;
            Some(format!("/{}{below}", escape(name)))
        }),
        (Value::Array(fixed), Value::Array(stands)) => fixed.iter().enumerate().find_map(|(index, fixed)| {
            let there = item(fixed, index, stands);
            let below = there.map_or_else(|| Some(String::new()), |stands| difference(fixed, stands))?;
            Some(format!("/{index}{below}"))
        }),
        (fixed, stands) => (fixed != stands).then(String::new),
    }
}

/// Takes over what stands wherever `fixed` has a value: somebody else, such as
/// a webhook, wrote another one there when the object was made.
pub(crate) fn as_it_stands(rendered: &mut Value, fixed: &Value, stands: &Value) {
    match (rendered, fixed, stands) {
        (_, Value::Null, _) => {}
        (Value::Object(rendered), Value::Object(fixed), Value::Object(stands)) => {
            for (name, fixed) in fixed {
                if let (Some(rendered), Some(stands)) = (rendered.get_mut(name), stands.get(name)) {
                    as_it_stands(rendered, fixed, stands);
                }
            }
        }
        (Value::Array(rendered), Value::Array(fixed), Value::Array(stands)) => {
            for (index, (rendered, fixed)) in rendered.iter_mut().zip(fixed).enumerate() {
                if let Some(stands) = item(fixed, index, stands) {
                    as_it_stands(rendered, fixed, stands);
                }
            }
        }
        (rendered, _, stands) => *rendered = stands.clone(),
    }
}

/// The item of the same name, else that at the same place.
fn item<'a>(of: &Value, index: usize, items: &'a [Value]) -> Option<&'a Value> {
    match of.get("name") {
        Some(name) => items.iter().find(|item| item.get("name") == Some(name)),
        None => items.get(index),
    }
}

fn digits(value: &impl serde::Serialize, count: usize) -> String {
    let mut digits = hex(&Sha256::digest(serde_json::to_vec(value).unwrap_or_default()));
    digits.truncate(count);
    digits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(patch: &Value) -> Map<String, Value> {
        let mut container = json!({"name": "c", "image": "i:1", "env": [{"name": "A", "value": "1"}],
            "resources": {"requests": {"cpu": "100m"}}});
        let mut spec = json!({"tolerations": []});
        for (name, value) in patch.as_object().unwrap() {
            let into = if spec.get(name).is_some() || name.starts_with("active") { &mut spec } else { &mut container };
            into.as_object_mut().unwrap().insert(name.clone(), value.clone());
        }
        spec["containers"] = json!([container]);
        json!({"metadata": {"name": "a"}, "spec": spec}).as_object().unwrap().clone()
    }

    fn changed(patch: &Value) -> Change {
        change(&hash("", "Pod", &pod(&json!({}))), &hash("", "Pod", &pod(patch))).unwrap()
    }

    #[test]
    fn the_table_knows_beforehand() {
        for (patch, fixed, resized) in [
            (json!({"image": "i:2"}), false, false),
            (json!({"tolerations": [{"key": "x"}]}), false, false),
            (json!({"activeDeadlineSeconds": 5}), false, false),
            (json!({"env": []}), true, false),
            (json!({"args": ["x"]}), true, false),
            (json!({"resources": {"requests": {"cpu": "200m"}}}), false, true),
            (json!({"resources": {"requests": {"memory": "1Gi"}}}), true, true),
            (json!({"name": "d"}), true, false),
        ] {
            assert_eq!(changed(&patch), Change { fixed, resized }, "{patch}");
        }
        assert_eq!(change("abc", &hash("", "Pod", &pod(&json!({})))), None, "made by an older host");
        assert_eq!(hash("", "Service", &pod(&json!({}))).len(), WHOLE);
    }

    #[test]
    fn resources_of_pods_go_through_resize() {
        assert_eq!(subresource("", "Pod", "/spec/containers/0/resources/requests/cpu"), Some("resize"));
        for other in ["/spec/containers/0/image", "/metadata/labels/resources", "/spec/resources", "/spec/containers"] {
            assert_eq!(subresource("", "Pod", other), None, "{other}");
        }
        assert_eq!(subresource("apps", "Deployment", "/spec/containers/0/resources"), None);
    }

    #[test]
    fn the_first_difference_is_named_and_can_be_taken_over() {
        let rendered = pod(&json!({}));
        let fixed = fixed("", "Pod", &rendered).unwrap();
        let mut stands = json!({"spec": {"containers": [{"name": "sidecar"},
            {"name": "c", "image": "other", "env": [{"name": "A", "value": "2"}],
             "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}}]}});
        assert_eq!(difference(&fixed, &stands).as_deref(), Some("/spec/containers/0/env/0/value"));
        let mut taken = Value::Object(rendered);
        as_it_stands(&mut taken, &fixed, &stands);
        let container = &taken["spec"]["containers"][0];
        assert_eq!((&container["env"][0]["value"], &container["image"]), (&json!("2"), &json!("i:1")));
        assert_eq!(container["resources"], json!({"requests": {"cpu": "100m"}}));
        as_it_stands(&mut taken, &not_applied("", "Pod", &pod(&json!({}))).unwrap(), &stands);
        assert_eq!(taken["spec"]["containers"][0]["resources"], json!({"requests": {"cpu": "500m"}}));
        stands["spec"]["containers"][1]["env"][0]["value"] = json!("1");
        assert_eq!(difference(&fixed, &stands), None);
    }
}
