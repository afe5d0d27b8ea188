//! Changes the resources of a Pod's containers where it stands, by the
//! subresource `resize`: an apply of the Pod would be refused.
//!
//! It is a patch of those fields alone. The apply that follows makes them ours
//! as rendered; the patch's own entry in managedFields (`resize`, Update) names
//! nothing else and holds nothing back, since no resource can be taken away in
//! this way: which ones there are is part of what is fixed.

use serde_json::{Map, Value, json};

use crate::cluster::meta::ViewError;
use crate::cluster::{ApiError, ApiErrorKind, ObjectView};
use crate::names;
use crate::object::children::Child;
use crate::object::host::Host;
use crate::object::own::Owned;

/// Meets exactly the state that was seen. Returns the resourceVersion that it came to.
pub(crate) async fn resize(host: &Host, child: &Owned, known: &Child) -> Result<String, ApiError> {
    let (resource, id) = (child.resource(), child.id());
    let seen = json!({"uid": known.uid, "resourceVersion": known.resource_version.to_string()});
    let patch = json!({"metadata": seen, "spec": resources(child.object())});
    let body = serde_json::to_vec(&patch).unwrap_or_default();
    let namespace = Some(&*id.namespace);
    let answer =
        host.api.patch_subresource(resource, "resize", namespace, &id.name, names::FIELD_MANAGER, body).await?;
    let decode = |error: ViewError| {
        ApiError::new(format!("resize {} {}", resource.plural, id.name), ApiErrorKind::Decode(error.to_string()))
    };
    Ok(ObjectView::from_slice(&answer).map_err(decode)?.resource_version.into_owned())
}

/// The containers that name resources, with nothing else.
fn resources(pod: &Map<String, Value>) -> Value {
    let lists = ["containers", "initContainers"].into_iter().filter_map(|list| {
        let containers = pod.get("spec")?.get(list)?.as_array()?.iter();
        let named =
            containers.filter_map(|it| Some(json!({"name": it.get("name")?, "resources": it.get("resources")?})));
        Some((list.to_owned(), Value::Array(named.collect::<Vec<_>>()))).filter(|(_, list)| *list != json!([]))
    });
    Value::Object(lists.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_resources_is_sent() {
        let pod = json!({"spec": {"containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}}},
            {"name": "b"}], "initContainers": [{"name": "c"}]}});
        let wanted = json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]});
        assert_eq!(resources(pod.as_object().unwrap()), wanted);
    }
}
