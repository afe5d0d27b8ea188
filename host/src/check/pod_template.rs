//! Where the Pod template is, for the kinds that Kubernetes brings.

use serde_json::{Map, Value};

use super::grant::Grant;
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

/// A Pod that names no service account would get a token of the namespace's
/// default one: not without the grant's word either.
pub(super) fn without_token(kind: &ChildKind, object: &mut Map<String, Value>, grant: &Grant) {
    const FIELD: &str = "automountServiceAccountToken";
    let (group, kind) = (kind.kind.group.as_str(), kind.kind.kind.as_str());
    let (keys, pod): (&[&str], _) = match group.is_empty() && kind == "Pod" {
        true => (&[], Some(object)),
        false => (keys(group, kind).unwrap_or_default(), template(group, kind, object)),
    };
    let Some(Value::Object(spec)) = pod.and_then(|pod| pod.get_mut("spec")) else { return };
    let names_account = |field: &str| spec.get(field).is_some_and(|name| name != "");
    if spec.contains_key(FIELD) || names_account("serviceAccountName") || names_account("serviceAccount") {
        return;
    }
    let pointer: String = keys.iter().chain(&["spec", FIELD]).flat_map(|key| ["/", key]).collect();
    if !grant.names_field(group, kind, &pointer) {
        spec.insert(FIELD.to_owned(), Value::Bool(false));
    }
}

/// A Pod, or what holds its template.
pub(super) fn makes_pods(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Pod" || keys(group, kind).is_some()
}

fn keys(group: &str, kind: &str) -> Option<&'static [&'static str]> {
    TEMPLATES.iter().find(|entry| entry.0 == group && entry.1 == kind).map(|entry| entry.2)
}

fn template<'a>(group: &str, kind: &str, object: &'a mut Map<String, Value>) -> Option<&'a mut Map<String, Value>> {
    keys(group, kind)?.iter().try_fold(object, |at, key| at.get_mut(*key)?.as_object_mut())
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
