//! What all walks share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::children::{ChildId, Children};
use super::kinds::{Kind, Kinds, State};
use super::memory::hash_of;
use super::namespaces::Namespaces;
use super::parents::{Parent, ParentKey, Parents};
use super::queue::{Lane, Queue};
use super::slots::Slots;
use crate::cluster::{Api, ApiError, ApiErrorKind, ObjectView};
use crate::metrics::{ControllerMetrics, Metrics, PluginMetrics, QueueMetrics};
use crate::plugin::Registry;

pub struct Host {
    pub(crate) api: Api,
    pub(crate) registry: Arc<Registry>,
    pub(crate) kinds: Kinds,
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) parents: Parents,
    pub(crate) children: Children,
    pub(crate) queue: Queue<ParentKey>,
    pub(crate) queue_metrics: QueueMetrics,
    /// Renders at one time; the sandbox has room for each.
    pub(crate) slots: Slots,
    /// Every object is looked at again after this.
    pub(crate) resync: Duration,
    /// `reportingInstance` of Events.
    pub(crate) identity: String,
    pub(crate) metrics: Metrics,
    /// By parent kind.
    pub(crate) controllers: Vec<ControllerMetrics>,
    pub(crate) plugin_metrics: HashMap<String, PluginMetrics>,
    /// Where generated Secrets are watched.
    pub(crate) secret_namespaces: Vec<String>,
    /// UIDs of parents whose Secrets have changed, and were not looked at since.
    secrets_moved: Mutex<HashSet<Box<str>>>,
    /// Who waits for a name to become free.
    waiting: Mutex<HashMap<ChildId, ParentKey>>,
}

/// What one host is told by its flags.
pub struct Settings {
    /// Empty: all.
    pub namespaces: Vec<String>,
    /// Of all namespaces, only those with these labels; not beside `namespaces`.
    pub namespace_selector: Option<String>,
    /// Every object is looked at again after this.
    pub resync: Duration,
    /// How many calls the sandbox has room for.
    pub renders: usize,
    /// Objects in work at one time.
    pub workers: usize,
    /// `reportingInstance` of Events.
    pub identity: String,
}

/// Why the host is not ready, in words.
pub type Unmet = Vec<String>;

impl Host {
    pub fn new(api: Api, registry: Arc<Registry>, settings: Settings, metrics: Metrics) -> Self {
        let Settings { namespaces, namespace_selector, resync, renders, workers, identity } = settings;
        let queue_metrics = metrics.queue("objects");
        let served = Arc::new(Namespaces::new(namespace_selector));
        let kinds = Kinds::new(&registry, &namespaces, &served);
        let controllers = kinds.parents.iter().map(|kind| metrics.controller(&kind.name())).collect();
        let plugin_metrics =
            registry.plugins().iter().map(|plugin| (plugin.name.clone(), metrics.plugin(&plugin.name))).collect();
        let slots = Slots::new(registry.plugins().iter().map(|plugin| plugin.name.as_str()), renders, workers);
        let granted = registry.plugins().iter().flat_map(|plugin| plugin.grant.watch_secrets.clone());
        let watched = |name: &String| namespaces.is_empty() || namespaces.contains(name);
        let mut secret_namespaces: Vec<String> = granted.filter(watched).collect();
        secret_namespaces.sort();
        secret_namespaces.dedup();
        Self {
            secret_namespaces,
            secrets_moved: Mutex::default(),
            api,
            registry,
            kinds,
            namespaces: served,
            parents: Parents::default(),
            children: Children::default(),
            queue: Queue::new(queue_metrics.clone()),
            queue_metrics,
            slots,
            resync,
            identity,
            metrics,
            controllers,
            plugin_metrics,
            waiting: Mutex::default(),
        }
    }

    /// Empty once every watch is filled or known to be impossible, and the
    /// parents of one kind at least are watched.
    pub fn unmet(&self) -> Unmet {
        let (mut starting, mut impossible, mut any) = (Vec::from_iter(self.namespaces.unmet()), Vec::new(), false);
        let Kinds { parents, children, .. } = &self.kinds;
        let kinds = parents.iter().map(|kind| (kind, true)).chain(children.iter().map(|kind| (kind, false)));
        for (kind, is_parent) in kinds {
            for scope in kind.scopes() {
                let what = || format!("{} {}", kind.name(), scope.words());
                match scope.state() {
                    State::Filled => any |= is_parent && !kind.unserved,
                    State::Starting(None) => starting.push(format!("{} not listed yet", what())),
                    State::Starting(Some(problem)) => starting.push(format!("{} not listed yet: {problem}", what())),
                    State::Unusable(problem) if is_parent && !kind.unserved => {
                        impossible.push(format!("{} cannot be watched: {problem}", what()));
                    }
                    State::Unusable(_) => {}
                }
            }
        }
        // A kind that is impossible is classified; it must not stop the others.
        if !any {
            starting.append(&mut impossible);
            if starting.is_empty() {
                starting.push("no plugin serves any kind".to_owned());
            }
        }
        starting
    }

    /// Watches that were filled and do not go on for now: what they would tell is missing, which makes nobody unready.
    pub fn troubles(&self) -> Vec<String> {
        let kinds = self.kinds.parents.iter().chain(&self.kinds.children);
        let scopes = kinds.flat_map(|kind| kind.scopes().iter().map(move |scope| (kind, scope)));
        let filled = scopes.filter(|(_, scope)| scope.state() == State::Filled);
        filled
            .filter_map(|(kind, scope)| {
                Some(format!("{} {} unreachable: {}", kind.name(), scope.words(), scope.trouble()?))
            })
            .collect()
    }

    pub(crate) fn group_of(&self, key: &ParentKey) -> &str {
        self.kinds.parents.get(key.kind).map_or("", |kind| kind.group.as_str())
    }

    /// The parents of these UIDs may have something to do.
    pub(crate) fn wake(&self, uids: impl IntoIterator<Item = Box<str>>) {
        for uid in uids {
            if let Some(key) = self.parents.key_of(&uid) {
                self.queue.add(key, Lane::Walk);
            }
        }
    }

    /// A Secret of this parent is another than before, or gone.
    pub(crate) fn secret_moved(&self, parent: &str) {
        if let Some(key) = self.parents.key_of(parent) {
            self.secrets_moved.lock().insert(parent.into());
            self.queue.add(key, Lane::Walk);
        }
    }

    /// Whether one has, and is to be looked at now.
    pub(crate) fn take_secret_moved(&self, parent: &str) -> bool {
        self.secrets_moved.lock().remove(parent)
    }

    /// The parent has gone for good.
    pub(crate) fn forget(&self, key: &ParentKey, uid: &str) {
        self.secrets_moved.lock().remove(uid);
        self.waiting.lock().retain(|_, waits| waits != key);
    }

    pub(crate) fn wait_for_name(&self, id: &ChildId, key: ParentKey) {
        self.waiting.lock().insert(id.clone(), key);
    }

    /// A child has left: whoever waits for its name goes on.
    pub(crate) fn name_is_free(&self, id: &ChildId) {
        if let Some(key) = self.waiting.lock().remove(id) {
            self.queue.add(key, Lane::Walk);
        }
    }

    /// Whether the parent is still the one that is being worked on, and as far in its life.
    pub(crate) fn stands(&self, key: &ParentKey, parent: &Parent) -> bool {
        self.parents.get(key).is_some_and(|now| now.id.uid == parent.id.uid && now.deleting == parent.deleting)
    }

    /// Whether the API server has this parent too, as far in its life: its watch may be later than that of its children.
    pub(crate) async fn is_there(&self, key: &ParentKey, parent: &Parent) -> Result<bool, ApiError> {
        let Some(resource) = self.kinds.parents.get(key.kind).and_then(Kind::resource) else { return Ok(false) };
        match self.api.get(&resource, Some(&key.namespace), &key.name).await {
            Ok(answer) => {
                let there = self.read_parent(key, &answer)?;
                Ok(there.id.uid == parent.id.uid && there.deleting == parent.deleting)
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads a parent from an answer of the API server.
    pub(crate) fn read_parent(&self, key: &ParentKey, answer: &[u8]) -> Result<Parent, ApiError> {
        let decode = |error: String| ApiError::new(format!("read {}", key.name), ApiErrorKind::Decode(error));
        let view = ObjectView::from_slice(answer).map_err(|error| decode(error.to_string()))?;
        let kind =
            self.kinds.parents.get(key.kind).ok_or_else(|| decode("of a kind that is not watched".to_owned()))?;
        Parent::reduce(&view, &kind.api_version(), &kind.kind).map_err(|error| decode(error.to_string()))
    }

    /// Takes over what our own write answered, so that its event wakes
    /// nobody. Returns a hash of the status as it now stands.
    pub(crate) fn wrote_parent(&self, key: &ParentKey, answer: &[u8]) -> Result<u64, ApiError> {
        let parent = self.read_parent(key, answer)?;
        let status = hash_of(&parent.status);
        if self.parents.put_own(key, parent) {
            self.queue.add(key.clone(), Lane::Walk);
        }
        Ok(status)
    }
}
