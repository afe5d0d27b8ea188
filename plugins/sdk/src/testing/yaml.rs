//! A manifest against the files beside it: CRD, Plugin document, ClusterRole.

use super::Rendered;
use crate::{Plugin, contract};
use serde_json::Value;

/// A CustomResourceDefinition.
pub struct Crd(Value);

impl Crd {
    #[must_use]
    pub fn read(yaml: &str) -> Self {
        Self(document(yaml))
    }

    /// Kind, versions, discriminator and schema of the manifest are in the CRD.
    pub fn assert_serves<P: Plugin>(&self) {
        let manifest = contract::Manifest::from(P::manifest());
        for serving in &manifest.serves {
            assert_eq!(self.0.pointer("/spec/group").and_then(Value::as_str), Some(serving.group.as_str()));
            assert_eq!(self.0.pointer("/spec/names/kind").and_then(Value::as_str), Some(serving.kind.as_str()));
            assert_eq!(self.0.pointer("/spec/names/plural").and_then(Value::as_str), Some(serving.plural.as_str()));
            for version in &serving.versions {
                let schema = self.schema(version);
                if let Some(read) = &manifest.schema {
                    let read: Value = serde_json::from_str(read).expect("the manifest's schema is no JSON");
                    assert_within(&read, &schema["properties"]["spec"], "/spec");
                }
                if let Some(it) = &serving.discriminator {
                    let field = it.path.split('/').skip(1).fold(schema, |at, key| &at["properties"][key]);
                    assert_eq!(field["type"], "string", "{} is no string in the CRD", it.path);
                    assert!(
                        field["enum"].as_array().is_none_or(|values| values.contains(&it.value.as_str().into())),
                        "{} can never be {} by the CRD",
                        it.path,
                        it.value
                    );
                }
            }
        }
    }

    /// No field of the status would be pruned: the host would write it for ever.
    pub fn assert_keeps(&self, rendered: &Rendered) {
        let versions = self.0["spec"]["versions"].as_array().expect("a CRD has versions");
        for version in versions {
            let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
            assert_kept(&rendered.status, status, "/status");
        }
    }

    fn schema(&self, version: &str) -> &Value {
        let versions = self.0["spec"]["versions"].as_array().expect("a CRD has versions");
        let found = versions.iter().find(|it| it["name"] == version && it["served"] == true);
        &found.unwrap_or_else(|| panic!("the CRD does not serve {version}"))["schema"]["openAPIV3Schema"]
    }
}

/// All that the manifest says is granted by the Plugin document.
pub fn assert_granted<P: Plugin>(plugin_yaml: &str) {
    let manifest = contract::Manifest::from(P::manifest());
    let grant = &document(plugin_yaml)["spec"]["grant"];
    for serving in &manifest.serves {
        let granted = list(&grant["serves"]).any(|it| {
            it["group"] == serving.group.as_str()
                && it["kind"] == serving.kind.as_str()
                && serving.discriminator.as_ref().is_none_or(|wanted| {
                    it["discriminator"]["path"] == wanted.path.as_str()
                        && it["discriminator"]["value"] == wanted.value.as_str()
                })
        });
        assert!(granted, "spec.grant.serves has no {} of {}", serving.kind, serving.group);
    }
    for child in &manifest.children {
        let granted = list(&grant["children"])
            .any(|it| it["group"] == child.kind.group.as_str() && it["kind"] == child.kind.kind.as_str());
        assert!(granted, "spec.grant.children has no {}", child.kind.kind);
    }
}

/// The ClusterRole aggregates to the host and lets it serve all that the
/// manifest says.
pub fn assert_permitted<P: Plugin>(cluster_role_yaml: &str) {
    let manifest = contract::Manifest::from(P::manifest());
    let role = document(cluster_role_yaml);
    assert_eq!(role["metadata"]["labels"]["keelson.dev/aggregate-to-host"], "true");
    let need = |group: &str, resource: &str, verbs: &[&str]| {
        for verb in verbs {
            let permitted = list(&role["rules"]).any(|rule| {
                [("apiGroups", group), ("resources", resource), ("verbs", verb)]
                    .iter()
                    .all(|(field, value)| list(&rule[field]).any(|it| it == value))
            });
            assert!(permitted, "no rule permits to {verb} {resource} of {group:?}");
        }
    };
    for serving in &manifest.serves {
        need(&serving.group, &serving.plural, &["get", "list", "watch"]);
        need(&serving.group, &format!("{}/status", serving.plural), &["patch"]);
        need(&serving.group, &format!("{}/finalizers", serving.plural), &["update"]);
    }
    for child in &manifest.children {
        let verbs = ["get", "create", "patch", "delete", "list", "watch"];
        // Reading all Secrets is not asked for.
        let count = if child.kind.plural == "secrets" { 4 } else { verbs.len() };
        need(&child.kind.group, &child.kind.plural, &verbs[..count]);
    }
}

/// Every path of the one schema is in the other, of the same type.
fn assert_within(read: &Value, crd: &Value, at: &str) {
    assert_eq!(read["type"], crd["type"], "{at} has another type in the CRD");
    for value in list(&read["enum"]) {
        assert!(crd["enum"].is_null() || list(&crd["enum"]).any(|it| it == value), "{at}: the CRD refuses {value}");
    }
    for (field, schema) in read["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}/{field}");
        assert!(crd["properties"][field].is_object(), "{at} is not in the CRD and would be pruned");
        assert_within(schema, &crd["properties"][field], &at);
    }
    for nested in ["items", "additionalProperties"] {
        if read[nested].is_object() {
            assert_within(&read[nested], &crd[nested], &format!("{at}/{nested}"));
        }
    }
}

fn assert_kept(value: &Value, schema: &Value, at: &str) {
    let kind = schema["type"].as_str().unwrap_or_else(|| panic!("{at} is not in the CRD and would be pruned"));
    let fits = match value {
        Value::Null => false,
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || (kind == "integer" && !number.is_f64()),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    };
    assert!(fits, "{at} is {value}, but {kind} in the CRD");
    for (field, value) in value.as_object().into_iter().flatten() {
        assert_kept(value, &schema["properties"][field], &format!("{at}/{field}"));
    }
    for value in list(value) {
        assert_kept(value, &schema["items"], &format!("{at}/items"));
    }
}

fn document(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("no YAML: {error}"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
