//! What a walk came to, and what is remembered of it until the next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::apply::Applied;
use super::children::ChildId;
use super::parents::ParentKey;
use super::retry::Retry;

/// Status is made from this and nothing else; Ready can be True only with `Applied`.
pub(crate) enum Outcome {
    /// Every child is there as rendered.
    Applied(Applied),
    /// Nothing is wrong, but something must happen first.
    Waiting(Stop),
    Stopped(Stop),
    /// By the user's annotation.
    Paused,
}

/// Where a walk ended early.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stop {
    pub reason: String,
    pub message: String,
    pub retry: Retry,
    /// Children that stand, though others may not.
    pub children: Vec<Named>,
}

/// A child as users know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Named {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

/// What is remembered of one parent between walks; gone with the parent, and
/// with the process: all of it can be found out again.
#[derive(Default)]
pub(crate) struct Memory {
    /// Of this parent; one of the same name with another UID begins anew.
    pub uid: String,
    pub settled: Option<Settled>,
    pub outcome: Option<Outcome>,
    /// The request that can only be refused again.
    pub refused: Option<u64>,
    /// The reason of the last walk, if it failed, and how often it was the same.
    pub failing: Option<String>,
    pub attempts: u32,
    /// Nothing of it has ever stood whole.
    pub first: bool,
    /// Made and not yet said.
    pub made: Vec<Named>,
    /// The revisions of the generated Secrets that were seen.
    pub secrets: BTreeMap<String, String>,
    /// Read them again though they are remembered.
    pub secrets_unread: bool,
    /// Render whether or not anything has changed.
    pub render_once: bool,
    /// When everything is looked at again.
    pub resync_at: Option<Instant>,
    /// Since when a child of an earlier parent stands in the way.
    pub stale_since: Option<Instant>,
    pub report: Reported,
}

/// What a complete walk was based on.
pub(crate) struct Settled {
    /// Hash of plugin, request and what the checks depend on.
    pub request: u64,
    pub children: Vec<SettledChild>,
}

pub(crate) struct SettledChild {
    pub id: ChildId,
    /// Of the rendering.
    pub hash: Arc<str>,
    /// Hash of our entry of managedFields, once all our paths were in it.
    pub fields: u64,
}

/// What users were told last.
#[derive(Default)]
pub(crate) struct Reported {
    /// The status as it was sent and as the server then had it.
    pub status: Option<(Map<String, Value>, Map<String, Value>)>,
    /// Hash of reason and note to when it was said by an Event.
    pub events: HashMap<u64, Instant>,
    /// What is still to be said.
    pub news: Vec<News>,
    /// Since when another, passing reason is held back.
    pub held_since: Option<Instant>,
    /// Failed status writes, one after the other.
    pub attempts: u32,
}

/// One Event and one log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    pub warning: bool,
    pub reason: String,
    pub action: &'static str,
    pub note: String,
    /// Tells two occurrences with the same words apart.
    pub occurrence: String,
}

#[derive(Default)]
pub(crate) struct Memories {
    inner: Mutex<HashMap<ParentKey, Memory>>,
}

impl Memories {
    /// Taken out while a worker has the parent in hand; begins anew for another UID.
    pub(crate) fn take(&self, key: &ParentKey, uid: &str) -> Memory {
        let known = self.inner.lock().remove(key).filter(|memory| memory.uid == uid);
        known.unwrap_or_else(|| Memory { uid: uid.to_owned(), ..Memory::default() })
    }

    pub(crate) fn put(&self, key: ParentKey, memory: Memory) {
        self.inner.lock().insert(key, memory);
    }

    pub(crate) fn forget(&self, key: &ParentKey) {
        self.inner.lock().remove(key);
    }
}
