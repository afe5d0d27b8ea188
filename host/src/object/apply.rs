//! Sends what is owned: create-only where nothing is known, over exactly what was
//! seen where something is, not at all where it stands as rendered.
//!
//! One child that the server refuses does not stop the others; a fault of the
//! server itself does, for the next would meet it too.

mod error;
mod send;
mod create;
mod repair;
mod replace;
mod resize;
mod stands;
mod change;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::change::{Standing, attempted};
use self::create::{create, is_ours, still_stands};
pub(crate) use self::error::{ApplyError, ApplyErrors};
use self::error::{fought, title};
use self::replace::replace;
use self::send::Done;
pub(crate) use self::send::stands_as_rendered;
use super::children::Child;
use super::failed::{Cause, Ended};
use super::fields;
use super::fight::WHOLE;
use super::gather::owned_fields_hash;
use super::host::Host;
use super::memory::SettledChild;
use super::own::Owned;
use super::parents::{Named, Parent, ParentKey};
use super::retry::Retry;
use super::strategy::Policy;
use super::tries::{Lesson, Tries, Why};
use crate::check::Strategy;
use crate::clock;
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

    /// Stands beside them, and is listed: data that a rendering left out.
    pub(crate) fn and(&mut self, more: impl IntoIterator<Item = Named>) {
        self.children.extend(more);
    }

    /// The plugin wants all left as it is: what the status lists.
    pub(crate) fn kept(parent: &Parent, said: Said) -> Self {
        Self { children: parent.recorded().to_vec(), said }
    }
}

/// What was done, whether or not all of it could be.
pub(crate) struct Attempt {
    pub result: Result<Applied, ApplyErrors>,
    /// What was not there before.
    pub made: Vec<Named>,
    /// Data of an earlier object that is now this one's.
    pub found: Vec<Named>,
    /// Nobody's until now.
    pub adopted: Vec<Named>,
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
    tries: &mut Tries,
) -> Attempt {
    tries.retain(|id| children.iter().any(|child| child.id() == id));
    let (mut made, mut standing, mut errors, mut settled) = (Vec::new(), secrets, Vec::new(), Vec::new());
    let (mut found, mut adopted, mut changed) = (Vec::new(), Vec::new(), false);
    for child in children {
        // What would mount another's claim waits for that claim.
        let in_the_way = |(named, error): &(Named, ApplyError)| error.is_in_the_way() && child.mounts(&named.name);
        if errors.iter().any(in_the_way) {
            continue;
        }
        // Deleted meanwhile: what was made is the garbage collector's.
        if !host.stands(key, parent) {
            errors.push((child.named(), ApplyError::ParentGone));
            break;
        }
        match apply_one(host, key, parent, child, tries).await {
            Ok((done, record)) => {
                match done {
                    Done::Made if tries.made(child.id()) => changed = true,
                    Done::Made => made.push(child.named()),
                    Done::Found => found.push(child.named()),
                    Done::Adopted => adopted.push(child.named()),
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
    changed |= !found.is_empty() || !adopted.is_empty();
    Attempt { result, made, found, adopted, changed, settled }
}

async fn apply_one(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    child: &Owned,
    tries: &mut Tries,
) -> Result<(Done, Arc<Child>), ApplyError> {
    let known = host.children.get(child.id());
    if let Some(why) = known.as_ref().and_then(|known| tries.deleted(known)) {
        return Err(ApplyError::Replacing { child: title(child), why: why.clone(), at: None });
    }
    // Whosever it is: its name is free when it has gone, and its event tells.
    if let Some(known) = known.as_ref().filter(|known| known.going) {
        return Err(ApplyError::Going { child: title(child), why: known.unready.clone() });
    }
    let Some(known) = known.filter(|known| *known.instance == *parent.id.uid && is_ours(known, parent)) else {
        return make(host, key, parent, child, tries).await;
    };
    if known.owners.is_empty() && child.retain().is_none() {
        still_stands(host, key, parent, child).await?;
    }
    if let Some(ended) = known.ended.as_deref().filter(|ended| is_to_be_replaced(ended, child.policy()))
        && known.is_owned_by(&parent.id.uid)
    {
        let Ended { reason, message, cause } = ended.clone();
        let why = Why { reason, message, cause: cause.label() };
        return Err(replace(host, child, &known, why, tries).await);
    }
    if let Some(there) = known.held.as_ref().and_then(|held| held.storage.as_deref())
        && let Some(wanted) = child.asks_for_less_than(there)
    {
        // All the rest of it is as good as ever.
        let kept = child.with_storage(there);
        if !stands_as_rendered(&known, &kept) {
            Standing { host, key, parent, child: &kept, known: &known }.change(tries).await?;
        }
        return Err(ApplyError::StorageShrink {
            child: title(child),
            there: there.to_owned(),
            wanted: wanted.to_owned(),
        });
    }
    let standing = Standing { host, key, parent, child, known: &known };
    let done = match (stands_as_rendered(&known, child), known.infeasible.as_deref()) {
        (true, None) => (Done::Unchanged, known),
        // Taken by the server, and in vain.
        (true, Some(what)) => return Err(standing.cannot(format!("its node cannot resize it: {what}"), tries).await),
        (false, _) => standing.change(tries).await?,
    };
    match tries.fights.still(child.id(), clock::instant()) {
        Some(said) => Err(fought(child, said)),
        None => Ok(done),
    }
}

/// Makes what is not known to be there, unless the very same was refused for good.
async fn make(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    child: &Owned,
    tries: &mut Tries,
) -> Result<(Done, Arc<Child>), ApplyError> {
    let (id, attempted) = (child.id(), attempted(child, None));
    if let Some(said) = tries.fights.still(id, clock::instant()) {
        return Err(fought(child, said));
    }
    let stood = tries.has_gone(id) || parent.recorded().contains(&child.named());
    let taken = stood && !tries.is_replacing(id);
    if taken && let Some(said) = tries.fights.gone(id, clock::instant()) {
        return Err(fought(child, said));
    }
    if let Some(Lesson::Refused(refusal)) = tries.lesson(id, &attempted) {
        return Err(ApplyError::Refused(refusal.clone()));
    }
    if parent.recorded().contains(&child.named()) {
        still_stands(host, key, parent, child).await?;
    }
    match create(host, key, parent, child).await {
        // It was there without the label that it is found by: somebody takes it away.
        Ok((Done::Changed, record)) => {
            let label = format!("/metadata/labels/{}", fields::escape(names::INSTANCE_LABEL));
            match tries.fights.taken(id, &label, clock::instant()) {
                Some(said) => Err(fought(child, said)),
                None => Ok((Done::Changed, record)),
            }
        }
        Ok((Done::Made, record)) => {
            if taken {
                tries.fights.taken(id, WHOLE, clock::instant());
            }
            Ok((Done::Made, record))
        }
        Err(ApplyError::Refused(refusal)) if refusal.retry() == Retry::Permanent => {
            tries.learn(id, attempted, Lesson::Refused(refusal.clone()));
            Err(ApplyError::Refused(refusal))
        }
        done => done,
    }
}

fn is_to_be_replaced(ended: &Ended, policy: Policy) -> bool {
    policy.strategy == Strategy::Recreate && (ended.cause != Cause::Failed || policy.asked)
}
