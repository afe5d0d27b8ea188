//! One apply of one child, and what the answer says of it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::cluster::{ApiError, ApiErrorKind};
use crate::names;
use crate::object::children::Child;
use crate::object::fields;
use crate::object::host::Host;
use crate::object::own::Owned;

pub(crate) enum Done {
    Unchanged,
    Changed,
    Made,
}

pub(crate) async fn send(host: &Host, child: &Owned, precondition: &str, value: &str) -> Result<Arc<Child>, ApiError> {
    let (resource, id) = (child.resource(), child.id());
    let body = child.body(precondition, value);
    let answer = host.api.apply(resource, None, Some(&id.namespace), &id.name, names::FIELD_MANAGER, body).await?;
    remember(host, child, &answer)
}

/// The answer to a write lies over the cache until the watch has caught up.
pub(crate) fn remember(host: &Host, child: &Owned, answer: &[u8]) -> Result<Arc<Child>, ApiError> {
    let (plural, id) = (&child.resource().plural, child.id());
    let decode = |problem| ApiError::new(format!("apply {plural} {}", id.name), ApiErrorKind::Decode(problem));
    let record = Arc::new(host.kinds.read(id.kind, answer).map_err(decode)?);
    host.children.put(Arc::clone(&record));
    Ok(record)
}

pub(crate) fn stands_as_rendered(known: &Child, child: &Owned) -> bool {
    known.hash.as_deref() == Some(&**child.hash())
        && known
            .owned_fields
            .as_deref()
            .and_then(|owned| serde_json::from_str::<Map<String, Value>>(owned).ok())
            .is_some_and(|owned| fields::lost(child.object(), &owned).is_none())
}
