//! Our finalizer on a parent: on it only while its plugin exports `finalize`.
//!
//! The list belongs to everybody. So it is written whole, by a merge patch with
//! the UID and the resourceVersion of the state that it was made from: whoever
//! wrote meanwhile makes it a 409, and it is made anew. An apply would take away
//! only what our manager alone owns, and not what a restored backup brought.

use serde_json::json;

use super::fight::Fight;
use super::host::Host;
use super::parents::{Parent, ParentKey};
use super::refusal::Refusal;
use super::retry::Retry;
use crate::clock::{self, Instant};
use crate::cluster::{ApiError, ApiErrorKind, Resource};
use crate::limits::FINALIZER_TRIES;
use crate::names;

#[derive(Debug, thiserror::Error)]
pub(crate) enum HoldError {
    #[error("{0}")]
    Refused(Refusal),
    /// Nothing is made for what is not held.
    #[error(
        "finalizer {}: somebody {} again and again; {} ever more rarely",
        names::FINALIZER,
        if *.held { "takes it off" } else { "puts it on" },
        if *.held { "it is put back" } else { "it is taken off" }
    )]
    Fight { held: bool, until: Instant },
}

/// Before the first child is made.
pub(crate) async fn put_on(host: &Host, key: &ParentKey, parent: &Parent, fight: &mut Fight) -> Result<(), HoldError> {
    write(host, key, parent, true, fight).await
}

/// The object may go, as far as we are concerned.
pub(crate) async fn take_off(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    fight: &mut Fight,
) -> Result<(), HoldError> {
    write(host, key, parent, false, fight).await
}

/// Nothing is done where it is so already, or the object has gone.
async fn write(host: &Host, key: &ParentKey, parent: &Parent, held: bool, fight: &mut Fight) -> Result<(), HoldError> {
    let title = || format!("finalizer {} of {} {}", names::FINALIZER, parent.id.kind, parent.id.name);
    let refused = |error| HoldError::Refused(Refusal::new(title(), error));
    let missing =
        || ApiError::new("patch the parent", ApiErrorKind::Decode("its kind is not served any more".to_owned()));
    let kind = host.resource_of(key);
    let resource = kind.ok_or_else(|| refused(missing()))?;
    // Of what is going nobody can fight about it: none may be added.
    if parent.is_held() != held
        && !parent.deleting
        && let Some(until) = fight.taken(clock::instant())
    {
        return Err(HoldError::Fight { held, until });
    }
    let mut fresh = None;
    let mut tries = 0;
    loop {
        let now = fresh.as_ref().unwrap_or(parent);
        // Nobody may add one to an object that is going.
        if now.is_held() == held || (held && now.deleting) {
            return Ok(());
        }
        match patch(host, &resource, now, held).await {
            Ok(answer) => {
                host.wrote_parent(key, &answer).map_err(refused)?;
                return Ok(());
            }
            Err(error) if error.is_not_found() || error.is_uid_mismatch() => return Ok(()),
            Err(error) if error.is_conflict() && tries < FINALIZER_TRIES => tries += 1,
            Err(error) => return Err(refused(error)),
        }
        let answer = match host.api.get(&resource, Some(&parent.id.namespace), &parent.id.name).await {
            Ok(answer) => answer,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(refused(error)),
        };
        let read = host.read_parent(key, &answer).map_err(refused)?;
        if read.id.uid != parent.id.uid {
            return Ok(());
        }
        fresh = Some(read);
    }
}

impl HoldError {
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Fight { .. } => None,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.refusal().map_or("FieldConflict", Refusal::reason)
    }

    /// A fight has a time of its own.
    pub(crate) fn retry(&self) -> Retry {
        self.refusal().map_or(Retry::Permanent, Refusal::retry)
    }

    pub(crate) fn again(&self) -> Option<Instant> {
        match self {
            Self::Refused(_) => None,
            Self::Fight { until, .. } => Some(*until),
        }
    }
}

async fn patch(host: &Host, resource: &Resource, parent: &Parent, held: bool) -> Result<bytes::Bytes, ApiError> {
    let others = parent.finalizers.iter().map(|name| &**name).filter(|name| *name != names::FINALIZER);
    let finalizers: Vec<&str> = others.chain(held.then_some(names::FINALIZER)).collect();
    let body = json!({"metadata": {
        "uid": parent.id.uid, "resourceVersion": parent.resource_version.to_string(), "finalizers": finalizers,
    }});
    let body = serde_json::to_vec(&body).unwrap_or_default();
    host.api.patch(resource, Some(&parent.id.namespace), &parent.id.name, names::FIELD_MANAGER, body).await
}
