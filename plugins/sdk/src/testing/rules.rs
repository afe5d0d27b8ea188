//! The host's rules that can be broken by a slip. The host has more, and the
//! last word.

use super::Rendered;
use crate::contract;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) const SELECTOR: &str = "keelson.dev/instance";

/// The dash included: names of parents have up to 50 characters, a label 63.
const SUFFIX: usize = 13;

const HOSTS_OWN: [&str; 7] = [
    "/status",
    "/metadata/generateName",
    "/metadata/ownerReferences",
    "/metadata/finalizers",
    "/metadata/uid",
    "/metadata/resourceVersion",
    "/metadata/managedFields",
];

pub(super) fn is_of(kind: &contract::KindRef, api_version: &str, name: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    kind.group == group && kind.version == version && kind.kind == name
}

pub(super) fn hold(manifest: &contract::Manifest, parent: &Value, rendered: &Rendered) {
    let Rendered { children, secrets, status, contract } = rendered;
    if let contract::Children::Exactly(list) = &contract.children {
        assert!(!list.is_empty(), "an empty list of children is refused: Rendering::none() says it on purpose");
    }
    let parent_name = text(parent, "/metadata/name");
    let mut seen = BTreeSet::new();
    for child in children {
        let (api_version, kind, name) =
            (text(child, "/apiVersion"), text(child, "/kind"), text(child, "/metadata/name"));
        let what = format!("{kind} {name}");
        assert!(!name.is_empty(), "a {kind} has no metadata.name");
        assert!(seen.insert((kind, name)), "{what} is rendered twice");
        assert!(
            manifest.children.iter().any(|it| is_of(&it.kind, api_version, kind)),
            "{what}: the manifest has no child of kind {kind} ({api_version})"
        );
        for pointer in HOSTS_OWN {
            assert!(child.pointer(pointer).is_none(), "{what}: {pointer} is not a plugin's to set");
        }
        let namespace = child.pointer("/metadata/namespace");
        assert!(
            namespace.is_none_or(|it| *it == text(parent, "/metadata/namespace")),
            "{what}: children live in the parent's namespace"
        );
        assert_suffix(parent_name, name);
        if kind == "Service" {
            assert!(
                child.pointer("/spec/selector").is_none_or(|it| it[SELECTOR] == text(parent, "/metadata/uid")),
                "{what}: a Service selects by Request::selector(), else by others' Pods too"
            );
        }
    }
    for secret in secrets {
        assert!(seen.insert(("Secret", &secret.name)), "Secret {} is rendered twice", secret.name);
        assert!(
            manifest.children.iter().any(|it| is_of(&it.kind, "v1", "Secret")),
            "Secret {} is to be generated: the manifest has no child of kind Secret (v1)",
            secret.name
        );
        assert_suffix(parent_name, &secret.name);
    }
    for field in ["conditions", "observedGeneration", "children"] {
        assert!(status.get(field).is_none(), "status.{field} is the host's");
    }
}

fn assert_suffix(parent: &str, name: &str) {
    if let Some(suffix) = name.strip_prefix(parent) {
        assert!(suffix.len() <= SUFFIX, "{name}: what follows the parent's name has at most {SUFFIX} characters");
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
