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
    /// Kept when an earlier object of the same name went.
    Found,
    /// Nobody's until now, by the user's word.
    Adopted,
}

/// Makes it if there is none of its name; what is there is a 409.
pub(crate) async fn send_new(host: &Host, child: &Owned) -> Result<Arc<Child>, ApiError> {
    send(host, child, &[("resourceVersion", "1")]).await
}

/// Changes exactly the object and the state of it that was seen: an apply that comes late, from this host or one that led
/// before, would else put an older rendering over a newer.
pub(crate) async fn send_over(host: &Host, child: &Owned, uid: &str, version: &str) -> Result<Arc<Child>, ApiError> {
    send(host, child, &[("uid", uid), ("resourceVersion", version)]).await
}

async fn send(host: &Host, child: &Owned, preconditions: &[(&str, &str)]) -> Result<Arc<Child>, ApiError> {
    let (resource, id) = (child.resource(), child.id());
    let body = child.body(preconditions);
    let answer = host.api.apply(resource, None, Some(&id.namespace), &id.name, names::FIELD_MANAGER, body).await?;
    remember(host, child, &answer)
}

/// The answer to a write lies over the cache until the watch has caught up.
pub(crate) fn remember(host: &Host, child: &Owned, answer: &[u8]) -> Result<Arc<Child>, ApiError> {
    let (plural, id) = (&child.resource().plural, child.id());
    let decode = |problem| ApiError::new(format!("apply {plural} {}", id.name), ApiErrorKind::Decode(problem));
    let record = Arc::new(host.kinds().read(id.kind, answer).map_err(decode)?);
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
