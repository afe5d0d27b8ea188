//! Puts back a list of ours in which others have replaced an item, such as a
//! Service's port that was edited to another number.
//!
//! An apply takes no item away that another manager owns, and the server may
//! refuse ours beside theirs (two ports without names, the same node port). So
//! the list is replaced as it was rendered, by a patch of exactly the state that
//! was seen; what that makes ours as an update is then made ours as an apply, so
//! that a later rendering can take it away again. Two writes, and only after an
//! apply was refused.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::send::{Done, remember, send_over, stands_as_rendered};
use crate::cluster::{ApiError, ApiErrorKind, ObjectView};
use crate::names;
use crate::object::children::Child;
use crate::object::fields;
use crate::object::host::Host;
use crate::object::own::Owned;

/// Whether the refusal may be due to what others put into a list of ours: what
/// is rendered is what stood there before.
pub(crate) fn replaced_list(known: &Child, child: &Owned) -> Option<Value> {
    let owned = serde_json::from_str(known.owned_fields.as_deref()?).ok()?;
    list(child.object(), &owned).filter(|_| known.hash.as_deref() == Some(&**child.hash()))
}

pub(crate) async fn put_back(
    host: &Host,
    child: &Owned,
    known: &Child,
    patch: Value,
) -> Result<(Done, Arc<Child>), ApiError> {
    let answer = replace(host, child, known, patch).await?;
    let record = remember(host, child, &answer)?;
    if stands_as_rendered(&record, child) {
        return Ok((Done::Changed, record));
    }
    Ok((Done::Changed, send_over(host, child, &record.uid, &record.resource_version.to_string()).await?))
}

/// The merge patch that replaces the list; none where nothing was taken out of
/// one. `owned` is our `fieldsV1`.
fn list(rendered: &Map<String, Value>, owned: &Map<String, Value>) -> Option<Value> {
    let lost = fields::lost(rendered, owned)?;
    let names: Vec<String> = lost.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    // Who owns and who finalizes is nobody's to overwrite.
    if names.first()? == "metadata" {
        return None;
    }
    // Down to the first list; of it, all or one item must be what was lost.
    let mut at = rendered.get(names.first()?)?;
    let mut depth = 1;
    while let Value::Object(fields) = at {
        at = fields.get(names.get(depth)?)?;
        depth += 1;
    }
    let above = names.get(..depth).filter(|_| at.is_array() && names.len() <= depth + 1)?;
    Some(above.iter().rev().fold(at.clone(), |value, name| json!({name: value})))
}

/// Sends it, and returns the object's text as it then stands.
async fn replace(host: &Host, child: &Owned, known: &Child, mut patch: Value) -> Result<Vec<u8>, ApiError> {
    let (resource, id) = (child.resource(), child.id());
    let send = async |patch: &Value| {
        let body = serde_json::to_vec(patch).unwrap_or_default();
        host.api.patch(resource, Some(&id.namespace), &id.name, names::FIELD_MANAGER, body).await
    };
    let seen = json!({"uid": known.uid, "resourceVersion": known.resource_version.to_string()});
    patch.as_object_mut().map(|patch| patch.insert("metadata".to_owned(), seen));
    let answer = send(&patch).await?;
    let decode =
        |error: String| ApiError::new(format!("patch {} {}", resource.plural, id.name), ApiErrorKind::Decode(error));
    let view = ObjectView::from_slice(&answer).map_err(|error| decode(error.to_string()))?;
    let entries = view.pointer("/metadata/managedFields").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let Some(entries) = entries.and_then(as_applied) else { return Ok(answer.to_vec()) };
    let metadata = json!({"uid": known.uid, "resourceVersion": view.resource_version, "managedFields": entries});
    Ok(send(&json!({"metadata": metadata})).await?.to_vec())
}

/// What we own by an update, owned by our apply; none where there is no such.
fn as_applied(mut entries: Vec<Value>) -> Option<Vec<Value>> {
    let says = |entry: &Value, field: &str, text: &str| entry.get(field).is_some_and(|value| value == text);
    let ours = |entry: &Value, operation: &str| {
        says(entry, "manager", names::FIELD_MANAGER)
            && says(entry, "operation", operation)
            && entry.get("subresource").is_none()
    };
    let updated = entries.iter().position(|entry| ours(entry, "Update"))?;
    let updated = entries.remove(updated);
    let same_version = |entry: &Value| entry.get("apiVersion") == updated.get("apiVersion");
    let applied = entries.iter_mut().find(|entry| ours(entry, "Apply") && same_version(entry))?;
    unite(applied.get_mut("fieldsV1")?, updated.get("fieldsV1")?);
    Some(entries)
}

fn unite(into: &mut Value, other: &Value) {
    let (Some(into), Some(other)) = (into.as_object_mut(), other.as_object()) else { return };
    for (name, below) in other {
        unite(into.entry(name).or_insert_with(|| json!({})), below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(mut value: Value) -> Map<String, Value> {
        std::mem::take(value.as_object_mut().unwrap())
    }

    fn service() -> Map<String, Value> {
        map(
            json!({"metadata": {"name": "a", "labels": {"app": "db"}}, "spec": {"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]}}),
        )
    }

    #[test]
    fn a_list_that_lacks_an_item_is_replaced_as_rendered() {
        let owned = |ports: Value| {
            map(json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:type": {}, "f:ports": ports}}))
        };
        let (one, two) = (r#"k:{"port":1,"protocol":"TCP"}"#, r#"k:{"port":2,"protocol":"TCP"}"#);
        let lacks = owned(json!({one: {"f:port": {}}}));
        assert_eq!(list(&service(), &lacks), Some(json!({"spec": {"ports": [{"port": 1}, {"port": 2}]}})));
        let lacks_all = map(json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:type": {}}}));
        assert_eq!(list(&service(), &lacks_all), list(&service(), &lacks));
        let whole = owned(json!({one: {"f:port": {}}, two: {"f:port": {}}}));
        assert_eq!(list(&service(), &whole), None);
    }

    #[test]
    fn other_losses_are_the_applys() {
        let owned = json!({"f:metadata": {"f:labels": {}}, "f:spec": {"f:ports": {}}});
        assert_eq!(list(&service(), &map(owned)), None, "a field");
        let owned = json!({"f:metadata": {"f:labels": {}}, "f:spec": {}});
        assert_eq!(list(&service(), &map(owned)), None, "all below it");
        let rendered = map(json!({"metadata": {"ownerReferences": [{"uid": "u"}]}}));
        let owned = map(json!({"f:metadata": {"f:ownerReferences": {"k:{\"uid\":\"x\"}": {}}}}));
        assert_eq!(list(&rendered, &owned), None, "an owner");
        let rendered =
            map(json!({"spec": {"template": {"containers": [{"name": "c", "ports": [{"containerPort": 1}]}]}}}));
        let owned = map(
            json!({"f:spec": {"f:template": {"f:containers": {"k:{\"name\":\"c\"}": {"f:name": {}, "f:ports": {"k:{\"containerPort\":2}": {}}}}}}}),
        );
        assert_eq!(list(&rendered, &owned), None, "a list in a list is not reached by names alone");
    }

    #[test]
    fn an_update_of_ours_becomes_our_apply() {
        let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields});
        let ours = entry("keelson", "Apply", json!({"f:spec": {"f:type": {}}}));
        let update = entry("keelson", "Update", json!({"f:spec": {"f:ports": {"k": {".": {}}}}}));
        let other = entry("kubectl-edit", "Update", json!({"f:spec": {"f:ports": {}}}));
        let status = json!({"manager": "keelson", "operation": "Update", "apiVersion": "v1", "subresource": "status", "fieldsV1": {}});
        let united = entry("keelson", "Apply", json!({"f:spec": {"f:type": {}, "f:ports": {"k": {".": {}}}}}));
        assert_eq!(
            as_applied(vec![ours.clone(), other.clone(), update, status.clone()]),
            Some(vec![united, other, status.clone()])
        );
        assert_eq!(as_applied(vec![ours, status]), None);
    }
}
