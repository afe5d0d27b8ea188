//! The Plugin document's CustomResourceDefinition, as it is committed and applied.

use kube::CustomResourceExt;
use serde_json::Value;

use super::document::PluginObject;

const HEADER: &str = "\
# The host's own kind: the documents that install plugins. Written by `keelson crd`.
";

#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    #[error("as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("as YAML: {0}")]
    Yaml(#[from] serde_saphyr::SerializeError),
}

/// The same bytes at every call.
pub fn crd() -> Result<String, CrdError> {
    let mut crd = serde_json::to_value(PluginObject::crd())?;
    if let Some(versions) = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        versions.iter_mut().filter_map(|version| version.get_mut("schema")).for_each(tidy);
    }
    Ok(format!("{HEADER}{}", serde_saphyr::to_string(&crd)?))
}

/// Takes out what an API server warns of (formats that it does not know),
/// defaults (written into an object they would outlive the host that chose
/// them), and what only Rust has to tell: names of types, line ends, `1.0`.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // A property may have such a name as well; then it holds a schema.
            fields.retain(|key, value| match key.as_str() {
                "format" => !value.as_str().is_some_and(|format| format.starts_with("uint")),
                "default" => value.get("type").is_some(),
                "title" => !value.is_string(),
                "nullable" => !value.is_boolean(),
                _ => true,
            });
            for (key, value) in fields {
                match (key.as_str(), &*value) {
                    ("description", Value::String(text)) => *value = text.replace('\n', " ").into(),
                    ("minimum" | "maximum", Value::Number(number)) => {
                        // Bounds of ours are small and whole.
                        if let Some(whole) = number.as_f64().filter(|number| number.fract() == 0.0) {
                            *value = (whole as i64).into();
                        }
                    }
                    _ => tidy(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    const COMMITTED: &str = "../deploy/base/plugins.keelson.dev.yaml";

    #[test]
    fn committed_crd_is_the_generated_one() {
        let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
        assert!(committed == crd().unwrap(), "run: keelson crd > deploy/base/plugins.keelson.dev.yaml");
    }

    #[test]
    fn group_and_version_are_those_of_the_names() {
        let crd = PluginObject::crd();
        assert_eq!(crd.metadata.name.as_deref(), Some("plugins.keelson.dev"));
        assert_eq!(crd.spec.group, names::GROUP);
        assert_eq!(crd.spec.scope, "Cluster");
        assert_eq!(crd.spec.versions[0].name, names::VERSION);
    }
}
