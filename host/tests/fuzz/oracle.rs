//! What must hold of whatever the checks let pass. Written without them: by what
//! would do harm, wherever it stands, and not by what is known to be fine.

use keelson::check::{CheckedChild, CheckedChildren, CheckedParts};
use serde_json::{Map, Value};

use crate::world::{GRANTED, UID, USERS, World};

/// Fields of metadata that a plugin may set.
const METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];
/// Never, with any value that says something.
const NEVER: [&str; 14] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "hostPath",
    "hostPort",
    "privileged",
    "serviceAccountName",
    "serviceAccount",
    "nodeName",
    "externalIPs",
    "externalName",
    "serviceAccountToken",
    "clusterTrustBundle",
    "ephemeralContainers",
];
/// Capabilities that baseline takes.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(crate) fn holds(_: &World, parts: CheckedParts) {
    let CheckedParts { children, secrets, status, conditions, not_ready: _, look_again_after: _ } = parts;
    for field in ["conditions", "observedGeneration", "children", "renderRequestedAt"] {
        assert!(!status.contains_key(field), "status.{field} is the host's");
    }
    for condition in &conditions {
        assert!(!["Ready", "Progressing", "Degraded", "Paused", "CredentialsChanged"].contains(&&*condition.kind));
    }
    let CheckedChildren::Exactly(children) = children else { return };
    assert!(children.len() + secrets.len() <= 256);
    let own: Vec<&str> = secrets.iter().map(|secret| secret.name.as_str()).chain(std::iter::once(USERS)).collect();
    for secret in &secrets {
        name(&secret.name);
    }
    let maps: Vec<&str> =
        children.iter().filter(|it| it.kind().kind.kind == "ConfigMap").map(CheckedChild::name).collect();
    let claims: Vec<&str> =
        children.iter().filter(|it| it.kind().kind.kind == "PersistentVolumeClaim").map(CheckedChild::name).collect();
    for child in &children {
        one(child, &own, &maps, &claims);
    }
}

fn name(name: &str) {
    let suffix = name.strip_prefix("db").unwrap_or_else(|| panic!("{name} is not named after its parent"));
    assert!(suffix.is_empty() || suffix.starts_with('-') && suffix.len() <= 13, "{name}");
}

fn one(child: &CheckedChild, secrets: &[&str], maps: &[&str], claims: &[&str]) {
    let object = child.object();
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = text("kind");
    assert!(
        GRANTED.iter().any(|it| (it.0, it.1, it.2) == (group, version, kind)),
        "{api_version} {kind} is not granted"
    );
    assert_eq!(child.kind().kind.kind, kind);
    let metadata = object["metadata"].as_object().unwrap();
    assert_eq!(metadata["name"], child.name());
    name(child.name());
    assert!(metadata.get("namespace").is_none_or(|namespace| namespace == "shop"), "{metadata:?}");
    if let Some(field) = metadata.keys().find(|field| !METADATA.contains(&field.as_str())) {
        panic!("metadata.{field}");
    }
    assert!(object.get("status").is_none_or(|status| *status == Value::Null), "a status");
    // Data is nobody's rule.
    if kind == "ConfigMap" {
        return;
    }
    if kind == "Service" {
        let spec = object["spec"].as_object().unwrap();
        assert!(spec.get("type").is_none_or(|kind| kind != "ExternalName"));
        if let Some(selector) = spec.get("selector").filter(|it| says(it)) {
            assert_eq!(selector["keelson.dev/instance"], UID, "selects others' Pods");
        }
    }
    walk(&Value::Object(object.clone()), &mut |field, value, fields| {
        assert!(!NEVER.contains(&field) || !says(value), "{field}: {value}");
        match field {
            "secretName" => assert!(secrets.contains(&value.as_str().unwrap_or_default()), "Secret {value}"),
            "imagePullSecrets" => {
                for item in value.as_array().into_iter().flatten() {
                    let named = item.get("name").and_then(Value::as_str).unwrap_or_default();
                    assert!(secrets.contains(&named), "{field} {value}");
                }
            }
            "secretKeyRef" | "secretRef" if says(value) => {
                let named = value.get("name").and_then(Value::as_str).unwrap_or_default();
                assert!(secrets.contains(&named), "{field} {value}");
            }
            "configMapKeyRef" | "configMapRef" | "configMap" if says(value) => {
                let named = value.get("name").and_then(Value::as_str).unwrap_or_default();
                assert!(maps.contains(&named), "{field} {value}");
            }
            "claimName" => assert!(claims.contains(&value.as_str().unwrap_or_default()), "claim {value}"),
            "add" if fields.keys().all(|it| it == "add" || it == "drop") => {
                let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
                assert!(all.iter().all(|it| CAPABILITIES.contains(&it.as_str().unwrap_or_default())), "{value}");
            }
            "procMount" => assert!(value == "Default" || !says(value), "procMount {value}"),
            _ => {}
        }
    });
}

/// Whether a value is more than the absence of one.
fn says(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) => true,
    }
}

/// Every field, with the object that it stands in; labels and annotations are not fields.
fn walk(value: &Value, see: &mut impl FnMut(&str, &Value, &Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if matches!(field.as_str(), "labels" | "annotations" | "matchLabels" | "selector" | "nodeSelector") {
                    continue;
                }
                see(field, value, fields);
                walk(value, see);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, see)),
        _ => {}
    }
}
