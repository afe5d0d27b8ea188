//! What a guest is asked: a pure function of what was gathered.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::registry::Plugin;
use crate::check::Parent;
use crate::names;
use crate::sandbox::{ObservedChild, Request, SecretRevision};

/// What the walk knows of one parent at this moment.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// As [`guest_parent`] gives it.
    pub parent: Arc<str>,
    /// `metadata.generation`; 0 where there is none.
    pub generation: i64,
    /// In the order of kind and name.
    pub children: Vec<ObservedChild>,
    pub secrets: Vec<SecretRevision>,
    /// Seconds since 1970. Handed on, to the minute, only to a plugin that uses time.
    pub now: u64,
}

pub fn request(plugin: &Plugin, parent: &Parent, gathered: Gathered) -> Request {
    let Gathered { parent: json, generation, children, secrets, now } = gathered;
    Request {
        parent: json,
        config: Arc::clone(&plugin.config),
        selector_labels: selector_labels(&parent.uid),
        children,
        related: Vec::new(),
        secrets,
        now: plugin.manifest.uses_time.then_some(now - now % 60),
        seed: seed(&parent.uid, generation),
    }
}

/// What tells this parent's children from all others.
pub fn selector_labels(uid: &str) -> Vec<(String, String)> {
    vec![(names::INSTANCE_LABEL.to_owned(), uid.to_owned())]
}

/// All labels that the host puts on a child. On a Pod template: the first only.
pub fn labels(plugin: &str, parent: &Parent) -> [(&'static str, String); 6] {
    [
        (names::INSTANCE_LABEL, parent.uid.clone()),
        (names::PLUGIN_LABEL, plugin.to_owned()),
        (names::APP_NAME_LABEL, plugin.to_owned()),
        (names::APP_INSTANCE_LABEL, parent.name.clone()),
        (names::APP_MANAGED_BY_LABEL, names::FIELD_MANAGER.to_owned()),
        (names::APP_PART_OF_LABEL, parent.kind.to_ascii_lowercase()),
    ]
}

/// For random choices that must stay: the same for the same UID and generation.
pub fn seed(uid: &str, generation: i64) -> u64 {
    let hash = Sha256::new().chain_update(uid).chain_update([0]).chain_update(generation.to_be_bytes()).finalize();
    hash.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// A parent without what no render may depend on: managedFields,
/// resourceVersion, finalizers, annotations for the host or kubectl, and the
/// status, which is what a render says and not what it reads. The rest stays as
/// it is written; no tree is built.
pub fn guest_parent(json: &str) -> Result<String, serde_json::Error> {
    let mut parent: BTreeMap<Cow<str>, &RawValue> = serde_json::from_str(json)?;
    parent.remove("status");
    let mut kept = None;
    if let Some(raw) = parent.get("metadata") {
        let mut metadata: BTreeMap<Cow<str>, &RawValue> = serde_json::from_str(raw.get())?;
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
        metadata.remove("finalizers");
        let mut annotations = None;
        let concerns = |raw: &&&RawValue| {
            [names::LAST_APPLIED_ANNOTATION, names::GROUP].iter().any(|name| raw.get().contains(name))
        };
        if let Some(raw) = metadata.get("annotations").filter(concerns) {
            let mut all: BTreeMap<Cow<str>, &RawValue> = serde_json::from_str(raw.get())?;
            all.retain(|name, _| *name != names::LAST_APPLIED_ANNOTATION && !is_the_hosts(name));
            annotations = Some(serde_json::value::to_raw_value(&all)?);
        }
        if let Some(raw) = &annotations {
            metadata.insert("annotations".into(), raw);
        }
        kept = Some(serde_json::value::to_raw_value(&metadata)?);
    }
    if let Some(raw) = &kept {
        parent.insert("metadata".into(), raw);
    }
    serde_json::to_string(&parent)
}

/// An annotation by which users talk to the host.
fn is_the_hosts(name: &str) -> bool {
    name.strip_prefix(names::GROUP).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn guest_sees_all_but_what_moves_by_itself() {
        let parent = json!({
            "apiVersion": "x/v1", "kind": "Y", "spec": {"a": [1, "ü\n"]}, "status": {"b": null},
            "metadata": {"name": "n", "resourceVersion": "7", "managedFields": [{"manager": "m"}], "generation": 2,
                "finalizers": ["a/b"], "annotations": {"keelson.dev/render-requested-at": "now", "keelson.development/x": "2", "kubectl.kubernetes.io/last-applied-configuration": "{\"a\":1}", "mine": "1"}},
        });
        let seen: Value = serde_json::from_str(&guest_parent(&parent.to_string()).unwrap()).unwrap();
        let expected = json!({
            "apiVersion": "x/v1", "kind": "Y", "spec": {"a": [1, "ü\n"]},
            "metadata": {"name": "n", "generation": 2, "annotations": {"keelson.development/x": "2", "mine": "1"}},
        });
        assert_eq!(seen, expected);
    }

    #[test]
    fn odd_parents_are_errors_or_stay_not_panics() {
        assert!(guest_parent("[]").is_err());
        assert!(guest_parent(r#"{"metadata":5}"#).is_err());
        assert_eq!(guest_parent(r#"{"kind":"Y"}"#).unwrap(), r#"{"kind":"Y"}"#);
    }

    #[test]
    fn seed_moves_with_uid_and_generation_only() {
        assert_eq!(seed("a", 1), seed("a", 1));
        assert_ne!(seed("a", 1), seed("a", 2));
        assert_ne!(seed("a", 1), seed("b", 1));
    }
}
