//! Sends what is owned: create-only where nothing is known, with the UID where
//! something is, not at all where it stands as rendered.
//!
//! One child that the server refuses does not stop the others; a fault of the
//! server itself does, for the next would meet it too.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::children::Child;
use super::fields;
use super::gather::owned_fields_hash;
use super::host::Host;
use super::memory::SettledChild;
use super::own::Owned;
use super::parents::{Named, Parent, ParentKey};
use super::refusal::Refusal;
use super::repair;
use super::retry::Retry;
use crate::cluster::meta::{ManagedFields, Owner};
use crate::cluster::{ApiError, ApiErrorKind, ObjectView};
use crate::names;
use crate::sandbox::model::{Condition, Explanation};

/// Every child is there. Only this step makes one.
pub(crate) struct Applied {
    children: Vec<Named>,
    said: Said,
}

/// What the rendering says beside its children.
#[derive(Default)]
pub(crate) struct Said {
    pub status: Map<String, Value>,
    pub conditions: Vec<Condition>,
    pub not_ready: Option<Explanation>,
}

impl Applied {
    pub(crate) fn children(&self) -> &[Named] {
        &self.children
    }
    pub(crate) fn said(&self) -> &Said {
        &self.said
    }

    /// The plugin wants all left as it is: what the status lists.
    pub(crate) fn kept(parent: &Parent, said: Said) -> Self {
        Self { children: parent.recorded().collect(), said }
    }
}

/// What was done, whether or not all of it could be.
pub(crate) struct Attempt {
    pub result: Result<Applied, ApplyErrors>,
    /// What was not there before.
    pub made: Vec<Named>,
    /// Whether something that stood was written to.
    pub changed: bool,
    pub settled: Vec<SettledChild>,
}

/// At least one.
#[derive(Debug)]
pub(crate) struct ApplyErrors {
    pub errors: Vec<(Named, ApplyError)>,
    pub standing: Vec<Named>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("{child} is being deleted")]
    Going { child: String },
    /// A child of an earlier parent of the same name, which the garbage collector will take.
    #[error("{child} belongs to an earlier {owner} of the same name")]
    Stale { child: String, owner: String },
    #[error("{child} exists already and belongs to {owner}; it is left as it is")]
    NameConflict { child: String, owner: String },
    #[error("the object was deleted meanwhile")]
    ParentGone,
    #[error("{0}")]
    Refused(Refusal),
}

impl ApplyErrors {
    /// All of them in one message, what stands included.
    pub(crate) fn message(&self) -> String {
        let mut message = self.errors.iter().map(|(_, error)| error.to_string()).collect::<Vec<_>>().join("; ");
        if !self.standing.is_empty() {
            let standing: Vec<String> =
                self.standing.iter().map(|child| format!("{} {}", child.kind, child.name)).collect();
            message.push_str(&format!("; there are: {}", standing.join(", ")));
        }
        message
    }

    /// The worst decides: a conflict of a name is patient for a while with what
    /// an earlier object of the same name left.
    pub(crate) fn reason(&self, patient: bool) -> &'static str {
        let worst = self.errors.iter().map(|(_, error)| error).max_by_key(|error| error.rank());
        match worst {
            Some(ApplyError::Stale { .. }) if !patient => "NameConflict",
            Some(error) => error.reason(),
            None => "ApiUnavailable",
        }
    }

    /// What may pass is tried even where something else is permanent.
    pub(crate) fn retry(&self) -> Retry {
        let rules = self.errors.iter().map(|(_, error)| error.retry());
        rules
            .min_by_key(|retry| match retry {
                Retry::Passing => 0,
                Retry::Blocked => 1,
                Retry::Permanent => 2,
            })
            .unwrap_or(Retry::Passing)
    }
}

impl ApplyError {
    fn rank(&self) -> u8 {
        match self {
            Self::ParentGone => 0,
            Self::Going { .. } => 1,
            Self::Stale { .. } => 2,
            Self::Refused(refusal) if refusal.retry() == Retry::Passing => 3,
            Self::Refused(_) => 4,
            Self::NameConflict { .. } => 5,
        }
    }

    fn is_in_the_way(&self) -> bool {
        matches!(self, Self::Going { .. } | Self::Stale { .. } | Self::NameConflict { .. })
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::ParentGone => "ObjectDeleted",
            Self::Going { .. } | Self::Stale { .. } => "WaitingForDeletion",
            Self::NameConflict { .. } => "NameConflict",
            Self::Refused(refusal) => refusal.reason(),
        }
    }

    pub(crate) fn retry(&self) -> Retry {
        match self {
            Self::ParentGone => Retry::Permanent,
            Self::Going { .. } | Self::Stale { .. } | Self::NameConflict { .. } => Retry::Blocked,
            Self::Refused(refusal) => refusal.retry(),
        }
    }
}

enum Done {
    Unchanged,
    Changed,
    Made,
}

/// `secrets` stand already; they are listed with the rest.
pub(crate) async fn apply(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    children: &[Owned],
    secrets: Vec<Named>,
    said: Said,
) -> Attempt {
    let (mut made, mut standing, mut errors, mut settled) = (Vec::new(), secrets, Vec::new(), Vec::new());
    let mut changed = false;
    for child in children {
        // Deleted meanwhile: what was made is the garbage collector's.
        if !host.stands(key, parent) {
            errors.push((child.named(), ApplyError::ParentGone));
            break;
        }
        match apply_one(host, key, parent, child).await {
            Ok((done, record)) => {
                match done {
                    Done::Made => made.push(child.named()),
                    Done::Changed => changed = true,
                    Done::Unchanged => {}
                }
                standing.push(child.named());
                let fields = owned_fields_hash(&record);
                settled.push(SettledChild { id: child.id().clone(), hash: Arc::clone(child.hash()), fields });
            }
            Err(error) => {
                let passing = error.retry() == Retry::Passing;
                if error.is_in_the_way() {
                    host.wait_for_name(child.id(), key.clone());
                }
                errors.push((child.named(), error));
                if passing {
                    break;
                }
            }
        }
    }
    let result = if errors.is_empty() {
        Ok(Applied { children: standing, said })
    } else {
        Err(ApplyErrors { errors, standing })
    };
    Attempt { result, made, changed, settled }
}

async fn apply_one(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    child: &Owned,
) -> Result<(Done, Arc<Child>), ApplyError> {
    let known = host.children.get(child.id());
    // Whosever it is: its name is free when it has gone, and its event tells.
    if known.as_ref().is_some_and(|known| known.going) {
        return Err(ApplyError::Going { child: title(child) });
    }
    let Some(known) = known.filter(|known| *known.instance == *parent.id.uid && is_ours(known, parent)) else {
        return create(host, parent, child).await;
    };
    if stands_as_rendered(&known, child) {
        return Ok((Done::Unchanged, known));
    }
    match send(host, child, "uid", &known.uid).await {
        Ok(record) => Ok((Done::Changed, record)),
        // It went meanwhile (409), or another has its name (422 on the UID).
        Err(error) if error.is_conflict() || error.is_not_found() || error.is_uid_mismatch() => {
            host.children.remove(&known.id, &known.uid);
            // Perhaps with its parent, and then there is nothing to make.
            if !host.stands(key, parent) {
                return Err(ApplyError::ParentGone);
            }
            create(host, parent, child).await
        }
        Err(error) if error.is_invalid() => match replaced_list(&known, child) {
            Some(patch) => put_back(host, child, &known, patch).await.map_err(|error| refused(child, error)),
            None => Err(refused(child, error)),
        },
        Err(error) => Err(refused(child, error)),
    }
}

/// Whether the refusal may be due to what others put into a list of ours: what
/// is rendered is what stood there before.
fn replaced_list(known: &Child, child: &Owned) -> Option<Value> {
    let owned = serde_json::from_str(known.owned_fields.as_deref()?).ok()?;
    repair::list(child.object(), &owned).filter(|_| known.hash.as_deref() == Some(&**child.hash()))
}

async fn put_back(host: &Host, child: &Owned, known: &Child, patch: Value) -> Result<(Done, Arc<Child>), ApiError> {
    let answer = repair::put_back(host, child, known, patch).await?;
    let record = remember(host, child, &answer)?;
    if stands_as_rendered(&record, child) {
        return Ok((Done::Changed, record));
    }
    Ok((Done::Changed, send(host, child, "uid", &known.uid).await?))
}

/// Makes it if there is none of its name; what is there is never overwritten.
async fn create(host: &Host, parent: &Parent, child: &Owned) -> Result<(Done, Arc<Child>), ApplyError> {
    match send(host, child, "resourceVersion", "1").await {
        Ok(record) => Ok((Done::Made, record)),
        Err(error) if error.is_conflict() => stands_in_the_way(host, parent, child).await,
        Err(error) => Err(refused(child, error)),
    }
}

/// Something of that name is there: ours without its label, going, or foreign.
async fn stands_in_the_way(host: &Host, parent: &Parent, child: &Owned) -> Result<(Done, Arc<Child>), ApplyError> {
    let answer = host.api.get(child.resource(), Some(&child.id().namespace), &child.id().name).await;
    let bytes = answer.map_err(|error| refused(child, error))?;
    let there = ObjectView::from_slice(&bytes).map_err(|error| {
        refused(child, ApiError::new(format!("get {}", title(child)), ApiErrorKind::Decode(error.to_string())))
    })?;
    let owned = there.owners.iter().any(|owner| *owner.uid == *parent.id.uid);
    if there.deletion {
        return Err(ApplyError::Going { child: title(child) });
    }
    if owned || is_orphan_of_ours(&there, parent) {
        if let Some(record) = host.kinds.reduce(child.id().kind, &there)
            && stands_as_rendered(&record, child)
        {
            let record = Arc::new(record);
            host.children.put(Arc::clone(&record));
            return Ok((Done::Unchanged, record));
        }
        let record = send(host, child, "uid", &there.uid).await.map_err(|error| refused(child, error))?;
        return Ok((Done::Changed, record));
    }
    match there.controller() {
        Some(owner) if is_earlier_self(owner, parent) => {
            Err(ApplyError::Stale { child: title(child), owner: owner.kind.to_string() })
        }
        Some(owner) => {
            Err(ApplyError::NameConflict { child: title(child), owner: format!("{} {}", owner.kind, owner.name) })
        }
        None => Err(ApplyError::NameConflict { child: title(child), owner: "nobody that this host knows".to_owned() }),
    }
}

async fn send(host: &Host, child: &Owned, precondition: &str, value: &str) -> Result<Arc<Child>, ApiError> {
    let (resource, id) = (child.resource(), child.id());
    let body = child.body(precondition, value);
    let answer = host.api.apply(resource, None, Some(&id.namespace), &id.name, names::FIELD_MANAGER, body).await?;
    remember(host, child, &answer)
}

/// The answer to a write lies over the cache until the watch has caught up.
fn remember(host: &Host, child: &Owned, answer: &[u8]) -> Result<Arc<Child>, ApiError> {
    let (plural, id) = (&child.resource().plural, child.id());
    let decode = |problem| ApiError::new(format!("apply {plural} {}", id.name), ApiErrorKind::Decode(problem));
    let record = Arc::new(host.kinds.read(id.kind, answer).map_err(decode)?);
    host.children.put(Arc::clone(&record));
    Ok(record)
}

/// By owner, or made by us and without an owner for now (somebody took the reference away).
fn is_ours(known: &Child, parent: &Parent) -> bool {
    known.is_owned_by(&parent.id.uid) || (known.owners.is_empty() && known.owned_fields.is_some())
}

fn is_orphan_of_ours(there: &ObjectView<'_>, parent: &Parent) -> bool {
    let ours = |entry: &ManagedFields<'_>| entry.manager == names::FIELD_MANAGER && entry.operation == "Apply";
    there.owners.is_empty()
        && there.labels.get(names::INSTANCE_LABEL).is_some_and(|uid| **uid == *parent.id.uid)
        && there.managed_fields().unwrap_or_default().iter().any(ours)
}

fn is_earlier_self(owner: &Owner<'_>, parent: &Parent) -> bool {
    let group = |api_version: &str| api_version.rsplit_once('/').map(|(group, _)| group.to_owned());
    owner.kind == parent.id.kind
        && owner.name == parent.id.name
        && owner.uid != parent.id.uid
        && group(&owner.api_version) == group(&parent.id.api_version)
}

fn stands_as_rendered(known: &Child, child: &Owned) -> bool {
    known.hash.as_deref() == Some(&**child.hash())
        && known
            .owned_fields
            .as_deref()
            .and_then(|owned| serde_json::from_str::<Map<String, Value>>(owned).ok())
            .is_some_and(|owned| fields::lost(child.object(), &owned).is_none())
}

fn refused(child: &Owned, error: ApiError) -> ApplyError {
    ApplyError::Refused(Refusal::new(title(child), error))
}

fn title(child: &Owned) -> String {
    format!("{} {}", child.resource().kind, child.id().name)
}
