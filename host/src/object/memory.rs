//! What is remembered of an object between two walks; gone with the object,
//! and with the process: all of it can be found out again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::children::{Child, ChildId};
use super::fight::Fight;
use super::parents::Named;
use super::retry::Retry;
use super::tries::Tries;
use crate::clock::Instant;
use crate::sandbox::model::{Condition, RelatedQuery};

#[derive(Default)]
pub(crate) struct Memory {
    /// Who serves it, for the census.
    pub plugin: Option<Arc<str>>,
    /// Of this parent; one of the same name with another UID begins anew.
    pub uid: String,
    /// Of the parent, at its last walk: what came of it says nothing of another.
    pub generation: i64,
    pub settled: Option<Settled>,
    /// The request that can only be refused again.
    pub refused: Option<u64>,
    /// The reason of the last walk, if it failed, and how often it was the same.
    pub failing: Option<String>,
    pub attempts: u32,
    /// Nothing of it has ever stood whole.
    pub first: bool,
    /// Generated Secrets that stand, of which the status may not tell yet.
    pub secrets_standing: Vec<Named>,
    /// UIDs of data that is no longer rendered, and was said to be.
    pub kept: HashSet<Box<str>>,
    /// Made and not yet said.
    pub made: Vec<Named>,
    /// Hash of what the owner had said by annotations, at the last walk.
    pub words: Option<u64>,
    /// Edits of Secrets that nobody has acknowledged: name to revision.
    pub edits: BTreeMap<String, String>,
    /// Pointers of the user's own Secrets to the revision that was first used; `None`: the status knows.
    pub first_seen: Option<BTreeMap<String, String>>,
    /// What is said of credentials; `None`: what the status says.
    pub credentials: Option<Option<Condition>>,
    /// Hash of the object that the Secrets were last read for.
    pub secrets_of: u64,
    /// The revisions of the Secrets that were seen.
    pub secrets: BTreeMap<String, String>,
    /// Read them again though they are remembered.
    pub secrets_unread: bool,
    /// Hash of what the last reading of them was for, and not before when the same is tried again, since it failed.
    pub secrets_asked: u64,
    pub secrets_again: Option<Instant>,
    /// What the hook `related` asked for, with the hash of the request that it answers.
    pub related: Option<(u64, Vec<RelatedQuery>)>,
    /// Render whether or not anything has changed.
    pub render_once: bool,
    /// When everything is looked at again.
    pub resync_at: Option<Instant>,
    /// When the plugin wants to be asked again.
    pub look_again_at: Option<Instant>,
    /// The user's last wish for a render that was seen.
    pub render_requested: Option<Box<str>>,
    /// The last walk found it paused.
    pub paused: bool,
    /// Since when a child of an earlier parent stands in the way.
    pub stale_since: Option<Instant>,
    /// What was tried with its children.
    pub tries: Tries,
    /// About our finalizer.
    pub hold: Fight,
    /// Of a deleted one: when that was first seen here, and how long it had been going by then.
    pub going_since: Option<(Instant, Duration)>,
    pub report: Reported,
}

/// Where a walk ended early.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stop {
    pub reason: String,
    pub message: String,
    pub retry: Retry,
    /// Children that stand, though others may not.
    pub children: Vec<Named>,
    /// When it is looked at again at the latest, where that is known.
    pub again: Option<Instant>,
}

/// What a complete walk was based on.
pub(crate) struct Settled {
    /// Hash of plugin, request and what the checks depend on.
    pub request: u64,
    pub children: Vec<SettledChild>,
    /// UIDs of what stands beside them and was left as it is: data, and what is going.
    pub left: Vec<Box<str>>,
}

impl Memory {
    /// Before children are made: which of them stood when the last walk was complete.
    pub(crate) fn note_gone(&mut self, is_there: impl Fn(&ChildId) -> bool) {
        let stood = self.settled.iter().flat_map(|settled| &settled.children);
        self.tries.gone = stood.filter(|child| !is_there(&child.id)).map(|child| child.id.clone()).collect();
    }
}

impl Settled {
    /// Whether the walk has seen this child, in whatever state.
    pub(crate) fn knows(&self, child: &Child) -> bool {
        self.children.iter().any(|settled| settled.id == child.id) || self.left.contains(&child.uid)
    }
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
    /// Hashes of the status as it was sent and as the server then had it.
    pub status: Option<(u64, u64)>,
    /// Hash of what it said, times aside, and who else writes there.
    pub said: u64,
    pub fight: Fight,
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

/// To tell two values apart within this process.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
