//! Where the Pod template is, for the kinds that Kubernetes brings.

use serde_json::{Map, Value};

use crate::sandbox::model::ChildKind;

/// Group, kind, keys that lead to the template. A Pod is no template: its labels are the child's own.
const TEMPLATES: &[(&str, &str, &[&str])] = &[
    ("", "PodTemplate", &["template"]),
    ("", "ReplicationController", &["spec", "template"]),
    ("apps", "DaemonSet", &["spec", "template"]),
    ("apps", "Deployment", &["spec", "template"]),
    ("apps", "ReplicaSet", &["spec", "template"]),
    ("apps", "StatefulSet", &["spec", "template"]),
    ("batch", "CronJob", &["spec", "jobTemplate", "spec", "template"]),
    ("batch", "Job", &["spec", "template"]),
];

/// The metadata of the child's Pod template, made where it is absent: where the
/// host puts the labels that it selects by. `None` for a kind without a Pod
/// template, for a kind that Kubernetes does not bring, and where the template
/// itself is absent.
pub fn pod_template_metadata<'a>(
    kind: &ChildKind,
    object: &'a mut Map<String, Value>,
) -> Option<&'a mut Map<String, Value>> {
    let template = template(&kind.kind.group, &kind.kind.kind, object)?;
    template.entry("metadata").or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

/// The spec of the child's Pods: its own, or that of its template.
pub(super) fn pod_spec<'a>(
    group: &str,
    kind: &str,
    object: &'a mut Map<String, Value>,
) -> Option<&'a mut Map<String, Value>> {
    let pod = if group.is_empty() && kind == "Pod" { object } else { template(group, kind, object)? };
    pod.get_mut("spec")?.as_object_mut()
}

fn template<'a>(group: &str, kind: &str, object: &'a mut Map<String, Value>) -> Option<&'a mut Map<String, Value>> {
    let (_, _, keys) = TEMPLATES.iter().find(|entry| entry.0 == group && entry.1 == kind)?;
    keys.iter().try_fold(object, |at, key| at.get_mut(*key)?.as_object_mut())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sandbox::model::KindRef;

    fn labelled(group: &str, kind: &str, mut object: Value) -> Value {
        let kind = KindRef { group: group.into(), version: "v1".into(), kind: kind.into(), plural: "x".into() };
        let kind = ChildKind { kind, observe: Vec::new() };
        if let Some(metadata) = pod_template_metadata(&kind, object.as_object_mut().unwrap()) {
            metadata.insert("seen".into(), json!(true));
        }
        object
    }

    #[test]
    fn the_metadata_of_a_template_is_found_or_made() {
        let seen = json!({"metadata": {"seen": true}});
        for (group, kind, object, expected) in [
            ("apps", "Deployment", json!({"spec": {"template": {}}}), json!({"spec": {"template": seen}})),
            ("", "PodTemplate", json!({"template": {"metadata": {}}}), json!({"template": seen})),
            (
                "batch",
                "CronJob",
                json!({"spec": {"jobTemplate": {"spec": {"template": {}}}}}),
                json!({"spec": {"jobTemplate": {"spec": {"template": seen}}}}),
            ),
            ("", "Pod", json!({"spec": {}}), json!({"spec": {}})),
            ("example.com", "Deployment", json!({"spec": {"template": {}}}), json!({"spec": {"template": {}}})),
            ("batch", "Job", json!({"spec": {}}), json!({"spec": {}})),
            ("batch", "Job", json!({"spec": {"template": []}}), json!({"spec": {"template": []}})),
        ] {
            assert_eq!(labelled(group, kind, object), expected, "{kind}");
        }
    }
}
