//! Takes a child away that is to be made anew: one at a time, ever more rarely,
//! and only where the API server would take its replacement.
//!
//! The delete meets exactly the state that was seen. What follows is the walk's:
//! it waits until the child is gone, and makes it as it makes any that is missing.

use super::error::{ApplyError, refusal, refused, title};
use crate::clock;
use crate::limits::PASSING_BACKOFF;
use crate::names;
use crate::object::children::Child;
use crate::object::data::is_data;
use crate::object::host::Host;
use crate::object::own::Owned;
use crate::object::refusal::Refusal;
use crate::object::tries::{REPLACED_BY_EDIT, Tries, Why, age};

/// Never ends well: the child does not stand when this is done.
pub(crate) async fn replace(host: &Host, child: &Owned, known: &Child, why: Why, tries: &mut Tries) -> ApplyError {
    let resource = child.resource();
    // The strategy has seen to it; this is the last line.
    if is_data(&resource.group, &resource.kind) {
        return ApplyError::Fixed { child: title(child), what: why.message, guarded: true };
    }
    let now = clock::instant();
    let edited = why.cause == REPLACED_BY_EDIT;
    let at = tries.replace_at(known, age(known.created), !edited, now);
    if now < at {
        return ApplyError::Replacing { child: title(child), why, at: Some(at) };
    }
    // What has ended is of no use to anybody; what runs goes only for something better.
    if edited && let Err(refusal) = allowed(host, child).await {
        return ApplyError::Refused(refusal);
    }
    let (id, version) = (child.id(), known.resource_version.to_string());
    match host.api.delete(resource, Some(&id.namespace), &id.name, (&known.uid, Some(&version))).await {
        Ok(()) => {
            host.metrics.replaced(&resource.dotted(), why.cause);
            tries.replaced(known, title(child), why.clone(), now);
            ApplyError::Replacing { child: title(child), why, at: None }
        }
        Err(error) if error.is_not_found() => {
            host.children.remove(id, &known.uid);
            ApplyError::Going { child: title(child), why: None }
        }
        // Its status has moved on, and nobody need look at it for that.
        Err(error) if error.is_conflict() => {
            ApplyError::Replacing { child: title(child), why, at: Some(now + PASSING_BACKOFF.0) }
        }
        Err(error) => refused(child, error),
    }
}

/// Whether the server would make it as it is rendered, if there were none of its name.
pub(crate) async fn allowed(host: &Host, child: &Owned) -> Result<(), Refusal> {
    let body = serde_json::to_vec(child.object()).unwrap_or_default();
    let namespace = Some(&*child.id().namespace);
    let Err(error) = host.api.would_create(child.resource(), namespace, names::FIELD_MANAGER, body).await else {
        return Ok(());
    };
    // A webhook that takes no dry run.
    let unanswered = error.code() == Some(400);
    let refusal = refusal(format!("{}, made anew", title(child)), child, error);
    // The one that goes is still counted.
    if unanswered || refusal.reason() == "QuotaExceeded" { Ok(()) } else { Err(refusal) }
}
