//! Sends what is owned: create-only where nothing is known, with the UID where
//! something is, not at all where it stands as rendered.
//!
//! One child that the server refuses does not stop the others; a fault of the
//! server itself does, for the next would meet it too.

mod error;
mod send;
mod create;
mod repair;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::create::{create, is_ours, may_own_again};
pub(crate) use self::error::{ApplyError, ApplyErrors};
use self::error::{refused, title};
use self::repair::{put_back, replaced_list};
pub(crate) use self::send::stands_as_rendered;
use self::send::{Done, send};
use super::children::Child;
use super::gather::owned_fields_hash;
use super::host::Host;
use super::memory::SettledChild;
use super::own::Owned;
use super::parents::{Named, Parent, ParentKey};
use super::retry::Retry;
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
        return create(host, key, parent, child).await;
    };
    if known.owners.is_empty() {
        may_own_again(host, key, parent, child).await?;
    }
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
            create(host, key, parent, child).await
        }
        Err(error) if error.is_invalid() => match replaced_list(&known, child) {
            Some(patch) => put_back(host, child, &known, patch).await.map_err(|error| refused(child, error)),
            None => Err(refused(child, error)),
        },
        Err(error) => Err(refused(child, error)),
    }
}
