//! Makes a child that is not known to be there, and finds out whose it is if it
//! is there nevertheless.

use std::sync::Arc;

use bytes::Bytes;

use super::error::{ApplyError, refused, title};
use super::send::{Done, send_new, send_over, stands_as_rendered};
use crate::cluster::meta::ManagedFields;
use crate::cluster::{ApiError, ApiErrorKind, ObjectView};
use crate::names;
use crate::object::children::Child;
use crate::object::data;
use crate::object::gather::is_anothers;
use crate::object::host::Host;
use crate::object::kept;
use crate::object::own::Owned;
use crate::object::parents::{Parent, ParentKey};
use crate::object::record::{Record, is_earlier_self};
use crate::object::words;

/// Makes it if there is none of its name; what is there is never overwritten.
pub(crate) async fn create(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    child: &Owned,
) -> Result<(Done, Arc<Child>), ApplyError> {
    match send_new(host, child).await {
        Ok(record) => Ok((Done::Made, record)),
        Err(error) if error.is_conflict() => {
            let there = read(host, child).await.map_err(|error| refused(child, error))?;
            judge(host, key, parent, child, &there).await
        }
        Err(error) => Err(refused(child, error)),
    }
}

/// What was known is not there as it was: it has changed, or it went.
pub(crate) async fn look_again(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    child: &Owned,
    known: &Child,
) -> Result<(Done, Arc<Child>), ApplyError> {
    match read(host, child).await {
        Ok(there) => judge(host, key, parent, child, &there).await,
        Err(error) if error.is_not_found() => {
            host.children.remove(&known.id, &known.uid);
            create(host, key, parent, child).await
        }
        Err(error) => Err(refused(child, error)),
    }
}

async fn read(host: &Host, child: &Owned) -> Result<Bytes, ApiError> {
    host.api.get(child.resource(), Some(&child.id().namespace), &child.id().name).await
}

/// Something of that name is there: ours, changed or without its label, going, or foreign.
async fn judge(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    child: &Owned,
    there: &[u8],
) -> Result<(Done, Arc<Child>), ApplyError> {
    let there = ObjectView::from_slice(there).map_err(|error| {
        refused(child, ApiError::new(format!("get {}", title(child)), ApiErrorKind::Decode(error.to_string())))
    })?;
    let owned = there.owners.iter().any(|owner| *owner.uid == *parent.id.uid);
    if there.deletion {
        return Err(ApplyError::Going { child: title(child), why: None });
    }
    let record = Record::read(&there).filter(|_| there.owners.is_empty());
    let record = record.filter(|record| record.is_for(&parent.id));
    if let Some(record) = &record {
        let named = (child.resource().kind.as_str(), &*child.id().name);
        kept::may_have(host, parent, child.plugin(), child.retain(), record, named).map_err(ApplyError::Kept)?;
    }
    if owned || is_orphan_of_ours(&there, parent) || record.as_ref().is_some_and(|record| record.uid == parent.id.uid) {
        if !owned {
            still_stands(host, key, parent, child).await?;
        }
        if let Some(record) = host.kinds().reduce(child.id().kind, &there)
            && stands_as_rendered(&record, child)
        {
            let record = Arc::new(record);
            host.children.put(Arc::clone(&record));
            return Ok((Done::Unchanged, record));
        }
        let sent = send_over(host, child, &there.uid, &there.resource_version).await;
        let record = sent.map_err(|error| refused(child, error))?;
        return Ok((Done::Changed, record));
    }
    // What a living parent has lost the owner reference to is no less that parent's.
    let anothers = there.labels.get(names::INSTANCE_LABEL).is_some_and(|uid| is_anothers(host, parent, uid));
    let adopted = !anothers
        && there.owners.is_empty()
        && parent.words.say(names::ADOPT_ANNOTATION, &words::child(&child.resource().kind, &child.id().name));
    if record.is_some() || adopted {
        // The record may name an object of which this host has not heard yet.
        still_stands(host, key, parent, child).await?;
        let larger = there.text_at(data::REQUESTED_STORAGE);
        let larger = larger.as_deref().and_then(|larger| Some((larger, child.asks_for_less_than(larger)?)));
        if let Some((larger, wanted)) = larger {
            let kept = child.with_storage(larger);
            send_over(host, &kept, &there.uid, &there.resource_version).await.map_err(|error| refused(child, error))?;
            let (there, wanted) = (larger.to_owned(), wanted.to_owned());
            return Err(ApplyError::StorageShrink { child: title(child), there, wanted });
        }
        let sent = send_over(host, child, &there.uid, &there.resource_version).await;
        let sent = sent.map_err(|error| refused(child, error))?;
        return Ok((if record.is_some() { Done::Found } else { Done::Adopted }, sent));
    }
    match there.controller() {
        Some(owner) if is_earlier_self(owner, &parent.id) => {
            Err(ApplyError::Stale { child: title(child), owner: owner.kind.to_string() })
        }
        Some(owner) => {
            Err(ApplyError::NameConflict { child: title(child), owner: format!("{} {}", owner.kind, owner.name) })
        }
        None => Err(ApplyError::NameConflict {
            child: title(child),
            owner: there.owners.first().map_or_else(
                || "nobody that this host knows".to_owned(),
                |owner| format!("{} {}", owner.kind, owner.name),
            ),
        }),
    }
}

/// Asks the API server for the parent itself: a child that has gone may have gone with it, and one without an owner may
/// be cut loose by an orphaning delete.
pub(crate) async fn still_stands(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    child: &Owned,
) -> Result<(), ApplyError> {
    match host.is_there(key, parent).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(ApplyError::ParentGone),
        Err(error) => Err(refused(child, error)),
    }
}

/// By owner, or made by us and without an owner for now (somebody took the reference away).
pub(crate) fn is_ours(known: &Child, parent: &Parent) -> bool {
    known.is_owned_by(&parent.id.uid) || (known.owners.is_empty() && known.owned_fields.is_some())
}

pub(crate) fn is_orphan_of_ours(there: &ObjectView<'_>, parent: &Parent) -> bool {
    let ours = |entry: &ManagedFields<'_>| entry.manager == names::FIELD_MANAGER && entry.operation == "Apply";
    there.owners.is_empty()
        && there.labels.get(names::INSTANCE_LABEL).is_some_and(|uid| **uid == *parent.id.uid)
        && there.managed_fields().unwrap_or_default().iter().any(ours)
}
