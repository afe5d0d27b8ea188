//! What a plugin asks to look at, from the objects of a file.

use serde_json::Value;

use super::input::Object;
use crate::check::Parent;
use crate::plugin::projection;
use crate::plugin::source::hash::sha256;
use crate::sandbox::{RelatedObject, RelatedQuery, Selection};

/// In the order of the queries, then of the file.
pub(super) fn answers(queries: &[RelatedQuery], parent: &Parent, others: &[Object]) -> Vec<RelatedObject> {
    let mut answers = Vec::new();
    for query in queries {
        let RelatedQuery { id, kind, namespace, by, observe } = query;
        let answer = |name: &str, found: Option<String>| RelatedObject {
            id: id.clone(),
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            name: name.to_owned(),
            found: found.map(Into::into),
        };
        let place = namespace.as_ref().unwrap_or(&parent.namespace);
        let mut found: Vec<&Object> = others
            .iter()
            .filter(|other| other.group == kind.group && other.parent.kind == kind.kind)
            .filter(|other| other.parent.namespace == *place || !other.placed)
            .filter(|other| is_selected(by, other))
            .collect();
        found.sort_by(|a, b| a.parent.name.cmp(&b.parent.name));
        if let (Selection::Name(name), true) = (by, found.is_empty()) {
            answers.push(answer(name, None));
        }
        answers.extend(found.into_iter().map(|other| answer(&other.parent.name, Some(shown(query, observe, other)))));
    }
    answers
}

fn is_selected(by: &Selection, other: &Object) -> bool {
    match by {
        Selection::Name(name) => other.parent.name == *name,
        Selection::Labels(labels) => {
            let there = other.value.pointer("/metadata/labels");
            labels
                .iter()
                .all(|(key, value)| there.and_then(|there| there.get(key)) == Some(&Value::from(value.as_str())))
        }
    }
}

fn shown(query: &RelatedQuery, observe: &[String], other: &Object) -> String {
    let RelatedQuery { kind, .. } = query;
    if kind.group.is_empty() && kind.kind == "Secret" {
        // Another than a host's, which is made under the Secret's UID; it changes with the data all the same.
        let data = ["/data", "/stringData"].map(|pointer| other.value.pointer(pointer).cloned().unwrap_or_default());
        let mut revision = sha256(Value::from(data.to_vec()).to_string().as_bytes());
        revision.truncate(16);
        return serde_json::json!({"revision": revision}).to_string();
    }
    let api_version = kind.api_version();
    let kind = projection::Kind { group: &kind.group, api_version: &api_version, kind: &kind.kind };
    let pointers = observe.iter().map(String::as_str);
    let at = |pointer: &str| other.value.pointer(pointer).cloned();
    projection::of(kind, &other.parent.name, &other.parent.uid, pointers, at)
}
