//! The custom resources that are there, as the walk needs them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::words::Words;
use crate::check;
use crate::cluster::ObjectView;
use crate::limits::REQUEST_CHARS;
use crate::names;
use crate::plugin::request::guest_parent;

/// Where a parent is found; what the queue holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ParentKey {
    /// Index in the table of parent kinds.
    pub kind: usize,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

#[derive(Debug)]
pub(crate) struct Parent {
    pub id: check::Parent,
    pub generation: i64,
    pub resource_version: u64,
    pub deleting: bool,
    /// When the API server was asked to.
    pub deleted_at: Option<Timestamp>,
    /// All of them, ours and others'.
    pub finalizers: Box<[Box<str>]>,
    /// May go without its finalization.
    pub forced: bool,
    pub paused: bool,
    /// What a user has written to have it rendered anew.
    pub render_requested: Option<Box<str>>,
    /// What its owner says of its children.
    pub words: Words,
    /// What a guest sees of it, JSON text.
    pub guest: Arc<str>,
    pub status: StatusText,
    /// Read from it when it is first asked for.
    recorded: OnceLock<Box<[Named]>>,
    /// The fields of `status` that our field manager owns.
    pub status_owned: Vec<String>,
}

/// `status` as it stands there: JSON text, which takes a fifth of a tree. Read only where somebody asks.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct StatusText(Box<str>);

/// A child as users know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Named {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

#[derive(Default)]
pub(crate) struct Parents {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_key: HashMap<ParentKey, Arc<Parent>>,
    by_uid: HashMap<Box<str>, ParentKey>,
}

// === impl Parent ===

impl Parent {
    /// Reduces an object. `api_version` and `kind` are those of its watch.
    pub(crate) fn reduce(object: &ObjectView<'_>, api_version: &str, kind: &str) -> Result<Self, serde_json::Error> {
        let status = StatusText(object.fields.get("status").map(|raw| raw.get().into()).unwrap_or_default());
        let ours = |manager: &str, operation: &str| manager == names::FIELD_MANAGER && operation == "Apply";
        let managed = object.managed_fields().unwrap_or_default();
        let status_owned = managed
            .iter()
            .filter(|entry| ours(&entry.manager, &entry.operation) && entry.subresource == "status")
            .filter_map(|entry| serde_json::from_str::<Value>(entry.fields_v1?.get()).ok())
            .filter_map(|fields| Some(fields.get("f:status")?.as_object()?.clone()))
            .flat_map(|fields| fields.into_iter().filter_map(|(key, _)| Some(key.strip_prefix("f:")?.to_owned())))
            .collect();
        let annotated = |name: &str| object.annotations.get(name).is_some_and(|value| *value == "true");
        let finalizers = object.pointer("/metadata/finalizers");
        Ok(Self {
            id: check::Parent {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: object.namespace.clone().into_owned(),
                name: object.name.clone().into_owned(),
                uid: object.uid.clone().into_owned(),
            },
            generation: object.generation.unwrap_or(0),
            resource_version: object.resource_version.parse().unwrap_or(0),
            deleting: object.deletion,
            deleted_at: object.text_at("/metadata/deletionTimestamp").and_then(|time| time.parse().ok()),
            finalizers: finalizers.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default(),
            forced: annotated(names::FORCE_FINALIZE_ANNOTATION),
            paused: annotated(names::PAUSED_ANNOTATION),
            render_requested: object
                .annotations
                .get(names::RENDER_REQUESTED_ANNOTATION)
                .map(|text| text.chars().take(REQUEST_CHARS).collect::<String>().into()),
            words: Words::read(object),
            guest: guest_parent(object.raw)?.into(),
            status,
            recorded: OnceLock::new(),
            status_owned,
        })
    }

    /// The children that the status lists, as an earlier walk left them.
    pub(crate) fn recorded(&self) -> &[Named] {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Recorded {
            children: Box<[Named]>,
        }
        let read = || serde_json::from_str::<Recorded>(&self.status.0).unwrap_or_default().children;
        self.recorded.get_or_init(read)
    }

    /// Whether it carries our finalizer.
    pub(crate) fn is_held(&self) -> bool {
        self.finalizers.iter().any(|name| **name == *names::FINALIZER)
    }

    /// The garbage collector's finalizer, while it is at work on the children of a deleted parent.
    pub(crate) fn in_collection(&self) -> Option<&str> {
        self.finalizers.iter().map(|name| &**name).find(|name| names::COLLECTOR_FINALIZERS.contains(name))
    }

    /// Whether a walk may come to something else, status aside.
    fn differs(&self, other: &Self) -> bool {
        self.guest != other.guest
            || self.deleting != other.deleting
            || self.paused != other.paused
            || self.forced != other.forced
            || self.render_requested != other.render_requested
            || self.words != other.words
            || self.is_held() != other.is_held()
            || self.in_collection() != other.in_collection()
    }

    fn key(&self, kind: usize) -> ParentKey {
        ParentKey { kind, namespace: self.id.namespace.as_str().into(), name: self.id.name.as_str().into() }
    }
}

// === impl StatusText ===

impl StatusText {
    /// Its fields; none where it has an odd shape, as before there was a schema.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

// === impl Parents ===

impl Parents {
    /// An event. Returns the key where a walk may find something to do.
    pub(crate) fn put(&self, kind: usize, parent: Parent) -> Option<ParentKey> {
        let key = parent.key(kind);
        let mut inner = self.inner.lock();
        let same = match inner.by_key.get(&key) {
            Some(known) if known.id.uid == parent.id.uid => {
                if known.resource_version >= parent.resource_version {
                    return None;
                }
                !known.differs(&parent) && known.status == parent.status
            }
            Some(known) => {
                let uid = known.id.uid.clone();
                inner.by_uid.remove(uid.as_str());
                false
            }
            None => false,
        };
        inner.by_uid.insert(parent.id.uid.as_str().into(), key.clone());
        inner.by_key.insert(key.clone(), Arc::new(parent));
        (!same).then_some(key)
    }

    /// Whether this state or a later one is known already: mostly our own write, come back as an event.
    pub(crate) fn knows(&self, key: &ParentKey, uid: &str, version: u64) -> bool {
        let inner = self.inner.lock();
        inner.by_key.get(key).is_some_and(|known| known.id.uid == uid && known.resource_version >= version)
    }

    /// What our own write answered lies over the watch, so that its
    /// event wakes nobody. Returns whether something else had changed too.
    pub(crate) fn put_own(&self, key: &ParentKey, parent: Parent) -> bool {
        let mut inner = self.inner.lock();
        let Some(known) = inner.by_key.get_mut(key) else { return false };
        if known.id.uid != parent.id.uid || known.resource_version >= parent.resource_version {
            return false;
        }
        let other = known.differs(&parent);
        *known = Arc::new(parent);
        other
    }

    pub(crate) fn remove(&self, key: &ParentKey, uid: &str) -> bool {
        let mut inner = self.inner.lock();
        let known = inner.by_key.get(key).is_some_and(|known| known.id.uid == uid);
        if known {
            inner.by_uid.remove(uid);
            inner.by_key.remove(key);
        }
        known
    }

    /// A list of a kind in a namespace (all: `None`) is complete as of
    /// `version`; what it did not name is gone and returned.
    pub(crate) fn retain(
        &self,
        kind: usize,
        namespace: Option<&str>,
        listed: &HashSet<ParentKey>,
        version: u64,
    ) -> Vec<ParentKey> {
        let mut inner = self.inner.lock();
        let gone: Vec<ParentKey> = inner
            .by_key
            .iter()
            .filter(|(key, _)| key.kind == kind && namespace.is_none_or(|namespace| *key.namespace == *namespace))
            .filter(|(key, parent)| parent.resource_version <= version && !listed.contains(*key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &gone {
            if let Some(parent) = inner.by_key.remove(key) {
                inner.by_uid.remove(parent.id.uid.as_str());
            }
        }
        gone
    }

    pub(crate) fn get(&self, key: &ParentKey) -> Option<Arc<Parent>> {
        self.inner.lock().by_key.get(key).cloned()
    }

    pub(crate) fn key_of(&self, uid: &str) -> Option<ParentKey> {
        self.inner.lock().by_uid.get(uid).cloned()
    }

    /// All of one kind.
    pub(crate) fn keys(&self, kind: usize) -> Vec<ParentKey> {
        self.inner.lock().by_key.keys().filter(|key| key.kind == kind).cloned().collect()
    }
}
