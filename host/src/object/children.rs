//! The children that are there, of all kinds and parents: never whole objects,
//! and only such as carry our label.
//!
//! Our own writes lie over the watch: a record made from the answer to a write
//! stays until the watch has caught up with its resourceVersion.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::failed::Ended;
use super::readiness::Unready;
use super::record::{Heir, Record};
use parking_lot::Mutex;

/// One child, as the walk needs it.
#[derive(Debug, PartialEq)]
pub(crate) struct Child {
    pub id: ChildId,
    pub uid: Box<str>,
    pub resource_version: u64,
    /// The table of kinds that it was reduced by.
    pub reduced: u64,
    /// creationTimestamp, in seconds since 1970.
    pub created: i64,
    /// The instance label: the UID of the parent that it was made for.
    pub instance: Box<str>,
    /// The UIDs of its owners.
    pub owners: Vec<Box<str>>,
    /// Being deleted.
    pub going: bool,
    /// Of the rendering that was last applied.
    pub hash: Option<Box<str>>,
    /// Our entry of managedFields, JSON text.
    pub owned_fields: Option<Box<str>>,
    /// Identity, phase, conditions and what its plugin observes, JSON text.
    pub observed: Arc<str>,
    pub unready: Unready,
    /// It will never run again by itself.
    pub ended: Option<Box<Ended>>,
    /// Its node will never give it the resources that it asks for; the kubelet's words.
    pub infeasible: Option<Box<str>>,
    /// Of what holds data or is kept; most children have none.
    pub held: Option<Box<Held>>,
}

/// What must be known of a child whose loss is a loss of data.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Held {
    /// It stays when its parent goes.
    pub record: Option<Record>,
    /// The plugin that made it, by our label.
    pub plugin: Box<str>,
    /// What a claim requests, as the server has it.
    pub storage: Option<Box<str>>,
    /// Names of the generated Secrets that open it, with commas.
    pub credentials: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ChildId {
    /// Index in the table of child kinds.
    pub kind: usize,
    pub namespace: Arc<str>,
    pub name: Box<str>,
}

#[derive(Default)]
pub(crate) struct Children {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_id: HashMap<ChildId, Arc<Child>>,
    by_instance: HashMap<Box<str>, Vec<Arc<Child>>>,
    /// What is kept, by whom it is kept for.
    by_heir: HashMap<Heir, Vec<ChildId>>,
}

// === impl Children ===

impl Children {
    /// An event or the answer to a write. Returns the parents' UIDs that it
    /// matters to; none where nothing of interest has changed.
    pub(crate) fn put(&self, child: Arc<Child>) -> Vec<Box<str>> {
        let mut inner = self.inner.lock();
        let mut touched = Vec::new();
        if let Some(known) = inner.by_id.get(&child.id) {
            if known.uid == child.uid && known.state() >= child.state() {
                return touched;
            }
            if known.matters_like(&child) {
                inner.insert(child);
                return touched;
            }
            if known.instance != child.instance {
                touched.push(known.instance.clone());
            }
        }
        touched.push(child.instance.clone());
        inner.insert(child);
        touched
    }

    /// Whether this state or a later one is known already, in a reduction of this table: mostly our own write, come
    /// back as an event.
    pub(crate) fn knows(&self, id: &ChildId, uid: &str, version: u64, reduced: u64) -> bool {
        let inner = self.inner.lock();
        inner.by_id.get(id).is_some_and(|known| *known.uid == *uid && known.state() >= (version, reduced))
    }

    /// A child has left the watch: deleted, or without our label. Returns the
    /// parent's UID, where it was known.
    pub(crate) fn remove(&self, id: &ChildId, uid: &str) -> Option<Box<str>> {
        let mut inner = self.inner.lock();
        inner.by_id.get(id).filter(|known| *known.uid == *uid)?;
        inner.take(id).map(|child| child.instance.clone())
    }

    /// A list of a kind in a namespace (all: `None`) is complete as of
    /// `version`; what it did not name is gone.
    pub(crate) fn retain(
        &self,
        kind: usize,
        namespace: Option<&str>,
        listed: &HashSet<ChildId>,
        version: u64,
    ) -> Vec<Box<str>> {
        let mut inner = self.inner.lock();
        let gone: Vec<ChildId> = inner
            .by_id
            .values()
            .filter(|child| {
                child.id.kind == kind && namespace.is_none_or(|namespace| *child.id.namespace == *namespace)
            })
            .filter(|child| child.resource_version <= version && !listed.contains(&child.id))
            .map(|child| child.id.clone())
            .collect();
        gone.iter().filter_map(|id| inner.take(id)).map(|child| child.instance.clone()).collect()
    }

    /// The child of this name, whosever it is.
    pub(crate) fn get(&self, id: &ChildId) -> Option<Arc<Child>> {
        self.inner.lock().by_id.get(id).cloned()
    }

    /// The children of one parent, in the order of kind and name.
    pub(crate) fn of(&self, instance: &str) -> Vec<Arc<Child>> {
        self.inner.lock().by_instance.get(instance).cloned().unwrap_or_default()
    }

    /// Whether any of them is kept for anybody.
    pub(crate) fn keep_any(&self) -> bool {
        !self.inner.lock().by_heir.is_empty()
    }

    /// What is kept for an object of this name, from whichever of them it is.
    pub(crate) fn kept_for(&self, heir: &Heir) -> Vec<Arc<Child>> {
        let inner = self.inner.lock();
        let ids = inner.by_heir.get(heir).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| inner.by_id.get(id).cloned()).collect()
    }
}

impl Child {
    pub(crate) fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| **owner == *uid)
    }

    /// How far it is in its life, and in ours.
    fn state(&self) -> (u64, u64) {
        (self.resource_version, self.reduced)
    }

    pub(crate) fn record(&self) -> Option<&Record> {
        self.held.as_ref()?.record.as_ref()
    }

    /// Whether it holds data that this generated Secret opens.
    pub(crate) fn is_opened_by(&self, secret: &str) -> bool {
        self.held.as_ref().is_some_and(|held| held.credentials.split(',').any(|name| name == secret))
    }

    /// Whether a walk would see no difference.
    fn matters_like(&self, other: &Child) -> bool {
        let Self {
            id,
            uid,
            resource_version: _,
            reduced: _,
            created: _,
            instance,
            owners,
            going,
            hash,
            owned_fields,
            observed,
            unready,
            ended,
            infeasible,
            held,
        } = self;
        *id == other.id
            && *uid == other.uid
            && *instance == other.instance
            && *owners == other.owners
            && *going == other.going
            && *hash == other.hash
            && *owned_fields == other.owned_fields
            && *observed == other.observed
            && *unready == other.unready
            && *ended == other.ended
            && *infeasible == other.infeasible
            && *held == other.held
    }
}

impl Inner {
    fn insert(&mut self, child: Arc<Child>) {
        self.take(&child.id);
        let siblings = self.by_instance.entry(child.instance.clone()).or_default();
        let at = siblings.partition_point(|sibling| sibling.id < child.id);
        siblings.insert(at, Arc::clone(&child));
        if let Some(record) = child.record() {
            self.by_heir.entry(record.heir(&child.id.namespace)).or_default().push(child.id.clone());
        }
        self.by_id.insert(child.id.clone(), child);
    }

    fn take(&mut self, id: &ChildId) -> Option<Arc<Child>> {
        let child = self.by_id.remove(id)?;
        if let Some(siblings) = self.by_instance.get_mut(&child.instance) {
            siblings.retain(|sibling| sibling.id != *id);
            if siblings.is_empty() {
                self.by_instance.remove(&child.instance);
            }
        }
        if let Some(heir) = child.record().map(|record| record.heir(&id.namespace))
            && let Some(kept) = self.by_heir.get_mut(&heir)
        {
            kept.retain(|kept| kept != id);
            if kept.is_empty() {
                self.by_heir.remove(&heir);
            }
        }
        Some(child)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn child(name: &str, uid: &str, version: u64, instance: &str) -> Arc<Child> {
        Arc::new(plain(name, uid, version, instance))
    }

    fn plain(name: &str, uid: &str, version: u64, instance: &str) -> Child {
        Child {
            id: ChildId { kind: 0, namespace: "n".into(), name: name.into() },
            uid: uid.into(),
            resource_version: version,
            reduced: 0,
            created: 0,
            instance: instance.into(),
            owners: vec![instance.into()],
            going: false,
            hash: Some("h".into()),
            owned_fields: None,
            observed: "{}".into(),
            unready: None,
            ended: None,
            infeasible: None,
            held: None,
        }
    }

    #[test]
    fn our_own_write_lies_over_the_watch() {
        let children = Children::default();
        assert_eq!(children.put(child("a", "u", 7, "p")), vec!["p".into()]);
        let mut older = plain("a", "u", 5, "p");
        older.hash = Some("older".into());
        assert!(children.put(Arc::new(older)).is_empty());
        assert_eq!(children.of("p")[0].hash.as_deref(), Some("h"));
        assert!(children.retain(0, None, &HashSet::new(), 6).is_empty(), "the list was older than the write");
        assert_eq!(children.retain(0, None, &HashSet::new(), 7), vec!["p".into()]);
    }

    #[test]
    fn an_earlier_objects_end_takes_nothing() {
        let children = Children::default();
        children.put(child("a", "new", 7, "p"));
        assert_eq!(children.remove(&child("a", "old", 0, "").id, "old"), None);
        assert_eq!(children.of("p").len(), 1);
    }

    #[test]
    fn a_heartbeat_wakes_nobody() {
        let children = Children::default();
        children.put(child("a", "u", 1, "p"));
        assert!(children.put(child("a", "u", 2, "p")).is_empty());
        assert!(children.put(child("a", "u", 1, "p")).is_empty());
        let mut going = plain("a", "u", 3, "p");
        going.going = true;
        assert_eq!(children.put(Arc::new(going)), vec!["p".into()]);
    }

    #[test]
    fn another_label_moves_it_and_wakes_both() {
        let children = Children::default();
        children.put(child("a", "u", 1, "p"));
        let mut woken = children.put(child("a", "u", 2, "q"));
        woken.sort();
        assert_eq!(woken, vec!["p".into(), "q".into()]);
        assert!(children.of("p").is_empty());
        assert_eq!(children.of("q").len(), 1);
    }

    #[test]
    fn what_is_kept_is_found_by_whom_it_is_kept_for() {
        let kept = |version: u64, name: &str| {
            let record = Record {
                group: "g".into(),
                kind: "K".into(),
                name: name.into(),
                uid: "p".into(),
                plugin: "x".into(),
                line: "l".into(),
                data_version: "1".into(),
            };
            let held = Some(Box::new(Held { record: Some(record), ..Held::default() }));
            Arc::new(Child { held, ..plain("a-data", "u", version, "p") })
        };
        let heir = |name: &str| Heir { namespace: "n".into(), group: "g".into(), kind: "K".into(), name: name.into() };
        let children = Children::default();
        children.put(kept(1, "a"));
        assert_eq!(children.kept_for(&heir("a")).len(), 1);
        children.put(kept(2, "b"));
        assert!(children.kept_for(&heir("a")).is_empty(), "the record is another");
        assert_eq!(children.kept_for(&heir("b")).len(), 1);
        children.remove(&kept(2, "b").id, "u");
        assert!(children.kept_for(&heir("b")).is_empty());
        assert!(children.inner.lock().by_heir.is_empty());
    }
}
