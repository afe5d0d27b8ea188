//! Objects as a user sees them: JSON, read by path.

use std::fmt;

use serde_json::Value;

/// A kind by the names under which the API serves it.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

pub const DATABASE: Kind = Kind::namespaced("zalando.org/v1", "Database", "databases");
pub const POD: Kind = Kind::namespaced("v1", "Pod", "pods");
pub const JOB: Kind = Kind::namespaced("batch/v1", "Job", "jobs");
pub const SERVICE: Kind = Kind::namespaced("v1", "Service", "services");
pub const SECRET: Kind = Kind::namespaced("v1", "Secret", "secrets");
pub const CLAIM: Kind = Kind::namespaced("v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub const CONFIG_MAP: Kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
pub const VOLUME: Kind = Kind::cluster("v1", "PersistentVolume", "persistentvolumes");
pub const STORAGE_CLASS: Kind = Kind::cluster("storage.k8s.io/v1", "StorageClass", "storageclasses");
pub const DEPLOYMENT: Kind = Kind::namespaced("apps/v1", "Deployment", "deployments");
pub const ENDPOINT_SLICE: Kind = Kind::namespaced("discovery.k8s.io/v1", "EndpointSlice", "endpointslices");
pub const EVENT: Kind = Kind::namespaced("events.k8s.io/v1", "Event", "events");
pub const LEASE: Kind = Kind::namespaced("coordination.k8s.io/v1", "Lease", "leases");
pub const PLUGIN: Kind = Kind::cluster("keelson.dev/v1alpha1", "Plugin", "plugins");
pub const NAMESPACE: Kind = Kind::cluster("v1", "Namespace", "namespaces");

/// An object as the API server returned it.
#[derive(Clone)]
pub struct Object(pub Value);

/// One of `status.conditions`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub observed_generation: Option<i64>,
}

// === impl Kind ===

impl Kind {
    pub const fn namespaced(api_version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { api_version, kind, plural, namespaced: true }
    }

    pub const fn cluster(api_version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { api_version, kind, plural, namespaced: false }
    }

    /// The path of the collection, or of the object if it has a name.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let scope = if self.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        let tail = if name.is_empty() { String::new() } else { format!("/{name}") };
        format!("{root}/{}{scope}/{}{tail}", self.api_version, self.plural)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)
    }
}

// === impl Object ===

impl Object {
    /// The value at a JSON pointer, null where there is none.
    pub fn at(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// The text at a JSON pointer, empty where there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    pub fn version(&self) -> &str {
        self.text("/metadata/resourceVersion")
    }

    /// Whether it is being deleted.
    pub fn going(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_string()
    }

    /// The UID of the owner that controls it, empty where there is none.
    pub fn owner(&self) -> &str {
        let owners = self.at("/metadata/ownerReferences").as_array().map_or(&[] as &[Value], Vec::as_slice);
        let controls = owners.iter().find(|o| o.get("controller").and_then(Value::as_bool) == Some(true));
        controls.and_then(|o| o.get("uid")).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.at("/metadata/labels").get(name).and_then(Value::as_str)
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.at("/metadata/annotations").get(name).and_then(Value::as_str)
    }

    pub fn conditions(&self) -> Vec<Condition> {
        serde_json::from_value(self.at("/status/conditions").clone()).unwrap_or_default()
    }

    pub fn condition(&self, kind: &str) -> Option<Condition> {
        self.conditions().into_iter().find(|c| c.kind == kind)
    }

    /// The condition's message, empty where there is none.
    pub fn message(&self, condition: &str) -> String {
        self.condition(condition).map(|condition| condition.message).unwrap_or_default()
    }

    /// Whether the condition is True, for the spec as it is now.
    pub fn is(&self, kind: &str) -> bool {
        let current = self.at("/metadata/generation").as_i64();
        self.condition(kind).is_some_and(|c| {
            c.status == "True" && (c.observed_generation.is_none() || c.observed_generation == current)
        })
    }

    /// Whether the condition is False with this reason.
    pub fn is_not(&self, kind: &str, reason: &str) -> bool {
        self.condition(kind).is_some_and(|c| c.status == "False" && c.reason == reason)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        if let Some(metadata) = shown.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        f.write_str(&serde_json::to_string_pretty(&shown).unwrap_or_default())
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(POD.path("x", "a"), "/api/v1/namespaces/x/pods/a");
        assert_eq!(DATABASE.path("x", ""), "/apis/zalando.org/v1/namespaces/x/databases");
        assert_eq!(NAMESPACE.path("ignored", "x"), "/api/v1/namespaces/x");
    }

    #[test]
    fn a_condition_of_an_older_generation_is_not_true() {
        let condition = json!({"type": "Ready", "status": "True", "observedGeneration": 1});
        let at = |generation| {
            Object(json!({"metadata": {"generation": generation}, "status": {"conditions": [condition.clone()]}}))
        };
        assert!(at(1).is("Ready"));
        assert!(!at(2).is("Ready"));
    }
}
