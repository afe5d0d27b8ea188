//! Looks at a child as it stands, whole, where the cache does not hold enough:
//! what differs, whose a field is, what others wrote. One read each.

use std::sync::Arc;

use serde_json::Value;

use super::send::remember;
use crate::cluster::{ApiError, ApiErrorKind, ObjectView};
use crate::names;
use crate::object::children::Child;
use crate::object::host::Host;
use crate::object::own::Owned;
use crate::object::{fields, in_place};

/// What of a rendering cannot be changed, in words.
pub(crate) async fn what_is_fixed(host: &Host, child: &Owned) -> String {
    let resource = child.resource();
    let fixed = in_place::fixed(&resource.group, &resource.kind, child.object()).unwrap_or_default();
    let there = read(host, child).await.ok();
    let path = there.and_then(|there| in_place::difference(&fixed, &there));
    path.map_or_else(|| "a field that is gone from the rendering".to_owned(), |path| format!("{path} is immutable"))
}

/// The manager that a field of ours went to; `None` where managedFields tell of none.
pub(crate) async fn holder(host: &Host, child: &Owned, path: &str) -> Option<String> {
    let bytes = get(host, child).await.ok()?;
    let there = ObjectView::from_slice(&bytes).ok()?;
    let rendered = Value::Object(child.object().clone());
    let whole = path.split('/').count().saturating_sub(1);
    let managed = there.managed_fields().ok()?;
    let others = managed.iter().filter(|entry| entry.manager != names::FIELD_MANAGER && entry.subresource != "status");
    let reach = others.filter_map(|entry| {
        let fields = serde_json::from_str(entry.fields_v1?.get()).ok()?;
        Some((fields::depth(&rendered, path, &fields), entry))
    });
    // An item of a list that was put in another's place is not found by its own keys, but the list is.
    let (depth, entry) = reach.max_by(|(a, one), (b, other)| (a, &one.time).cmp(&(b, &other.time)))?;
    (depth + 1 >= whole).then(|| entry.manager.clone().into_owned())
}

/// Applies the rendering with what an apply cannot change as it stands: somebody
/// else wrote another value there when the object was made, and that is left alone.
pub(crate) async fn send_as_it_stands(
    host: &Host,
    child: &Owned,
    known: &Child,
) -> Result<Option<Arc<Child>>, ApiError> {
    let (resource, id) = (child.resource(), child.id());
    let Some(fixed) = in_place::not_applied(&resource.group, &resource.kind, child.object()) else { return Ok(None) };
    let there = read(host, child).await?;
    let version = there.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
    let mut object = Value::Object(child.object().clone());
    in_place::as_it_stands(&mut object, &fixed, &there);
    if object.as_object() == Some(child.object()) {
        return Ok(None);
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".to_owned(), (*known.uid).into());
        metadata.insert("resourceVersion".to_owned(), version);
    }
    let body = serde_json::to_vec(&object).unwrap_or_default();
    let answer = host.api.apply(resource, None, Some(&id.namespace), &id.name, names::FIELD_MANAGER, body).await?;
    remember(host, child, &answer).map(Some)
}

async fn read(host: &Host, child: &Owned) -> Result<Value, ApiError> {
    let bytes = get(host, child).await?;
    let decode = |error: serde_json::Error| {
        ApiError::new(
            format!("get {} {}", child.resource().plural, child.id().name),
            ApiErrorKind::Decode(error.to_string()),
        )
    };
    serde_json::from_slice(&bytes).map_err(decode)
}

async fn get(host: &Host, child: &Owned) -> Result<bytes::Bytes, ApiError> {
    host.api.get(child.resource(), Some(&child.id().namespace), &child.id().name).await
}
