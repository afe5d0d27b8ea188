//! What all walks share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch as cell;

use super::census::Census;
use super::children::{ChildId, Children};
use super::desk::Desk;
use super::failures::Failures;
use super::gate::{Gates, Version};
use super::kinds::{Kind, Kinds, Standing, State};
use super::memory::hash_of;
use super::namespaces::Namespaces;
use super::parents::{Parent, ParentKey, Parents};
use super::queue::{Lane, Queue};
use super::related::Related;
use super::serving::Serving;
use super::slots::Slots;
use crate::cluster::{Api, ApiError, ApiErrorKind, ObjectView, Resource};
use crate::limits;
use crate::metrics::{ControllerMetrics, Metrics, PluginMetrics, QueueMetrics};
use crate::plugin::{Plugin, Registry};

pub struct Host {
    pub(crate) api: Api,
    serving: RwLock<Arc<Serving>>,
    /// Told when another set of kinds is to be watched.
    changed: cell::Sender<()>,
    /// Told when a watch has come further.
    progress: cell::Sender<()>,
    pub(crate) namespaces: Arc<Namespaces>,
    /// Of the flags; empty is all.
    scopes: Vec<String>,
    pub(crate) parents: Parents,
    pub(crate) children: Children,
    pub(crate) related: Related,
    pub(crate) failures: Failures,
    pub(crate) desk: Desk,
    pub(crate) queue: Queue<ParentKey>,
    pub(crate) queue_metrics: QueueMetrics,
    /// Renders at one time; the sandbox has room for each.
    pub(crate) slots: Slots,
    /// Who may be asked at all.
    pub(crate) gates: Gates,
    pub(crate) census: Census,
    /// Every object is looked at again after this.
    pub(crate) resync: Duration,
    /// `reportingInstance` of Events.
    pub(crate) identity: String,
    pub(crate) metrics: Metrics,
    workers: usize,
    /// What is wrong with the source of plugins.
    trouble: Mutex<Option<String>>,
    /// No plugin at all is no fault: they come as objects.
    plugins_may_come: bool,
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
    /// No plugin at all is no fault: they come as objects.
    pub plugins_may_come: bool,
}

/// Why the host is not ready, in words.
pub type Unmet = Vec<String>;

impl Host {
    pub fn new(api: Api, registry: Arc<Registry>, settings: Settings, metrics: Metrics) -> Self {
        let Settings { namespaces, namespace_selector, resync, renders, workers, identity, plugins_may_come } =
            settings;
        let queue_metrics = metrics.queue("objects");
        let served = Arc::new(Namespaces::new(namespace_selector));
        let slots = Slots::new(renders, workers);
        slots.serve(registry.plugins().iter().map(|plugin| plugin.name.as_str()));
        let gates = Gates::default();
        gates.serve(registry.plugins().iter().map(|plugin| version(plugin)));
        let serving = Serving::new(registry, &namespaces, &served, &metrics);
        Self {
            secrets_moved: Mutex::default(),
            api,
            serving: RwLock::new(Arc::new(serving)),
            changed: cell::Sender::new(()),
            progress: cell::Sender::new(()),
            namespaces: served,
            scopes: namespaces,
            parents: Parents::default(),
            children: Children::default(),
            related: Related::default(),
            failures: Failures::default(),
            desk: Desk::default(),
            queue: Queue::new(queue_metrics.clone()),
            queue_metrics,
            slots,
            gates,
            census: Census::default(),
            trouble: Mutex::default(),
            plugins_may_come,
            resync,
            identity,
            metrics,
            workers,
            waiting: Mutex::default(),
        }
    }

    pub(crate) fn serving(&self) -> Arc<Serving> {
        Arc::clone(&self.serving.read())
    }

    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.serving.read().registry)
    }

    pub(crate) fn kinds(&self) -> Arc<Kinds> {
        Arc::clone(&self.serving.read().kinds)
    }

    pub(crate) fn parent_kind(&self, index: usize) -> Option<Arc<Kind>> {
        self.serving.read().kinds.parents.get(index).cloned()
    }

    /// Where a parent stands in the API, while its kind is there.
    pub(crate) fn resource_of(&self, key: &ParentKey) -> Option<Arc<Resource>> {
        self.serving.read().kinds.parents.get(key.kind)?.resource()
    }

    pub(crate) fn plugin_metrics(&self, plugin: &str) -> Option<Arc<PluginMetrics>> {
        self.serving.read().plugin_metrics.get(plugin).cloned()
    }

    pub(crate) fn controller(&self, kind: usize) -> Option<Arc<ControllerMetrics>> {
        self.serving.read().controllers.get(kind).cloned()
    }

    /// How many objects a plugin serves.
    pub fn objects_of(&self, plugin: &str) -> u64 {
        self.census.of(plugin)
    }

    /// Of a plugin that fails with one object after the other: the reason that it had when that began.
    pub fn failing(&self, plugin: &str) -> Option<String> {
        self.gates.failing(plugin)
    }

    /// What is wrong with the source of plugins, which makes nobody unready.
    pub fn plugins_in_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock() = trouble;
    }

    /// Told when another set of kinds is to be watched.
    pub(crate) fn changes(&self) -> cell::Receiver<()> {
        self.changed.subscribe()
    }

    /// A watch has come further.
    pub(crate) fn progressed(&self) {
        self.progress.send_replace(());
    }

    /// Serves these plugins, from the moment when all that they need is listed or known to be impossible: until then
    /// the plugins of before go on, and no object waits for a list. What does not answer is waited for a while only:
    /// one kind that is out of reach must not hold the others back.
    pub async fn serve(&self, next: Arc<Registry>) {
        let mut progress = self.progress.subscribe();
        let (staged, since) = self.stage(&next);
        let filled = async {
            let filled = || {
                next.plugins()
                    .iter()
                    .all(|plugin| staged.kinds.are_filled_for(plugin, since.get(&plugin.name).copied().unwrap_or(0)))
            };
            while !filled() && progress.changed().await.is_ok() {}
        };
        if tokio::time::timeout(limits::SWAP_PATIENCE, filled).await.is_err() {
            tracing::warn!("some kinds of the new plugins are not listed yet; their objects wait");
        }
        self.slots.serve(next.plugins().iter().map(|plugin| plugin.name.as_str()));
        self.failures.retain(next.plugins().iter().map(|plugin| plugin.name.as_str()));
        let healed = self.gates.serve(next.plugins().iter().map(|plugin| version(plugin)));
        healed.iter().for_each(|plugin| self.metrics.plugin(plugin).failing(false));
        let settled = Arc::new(staged.settled(next, since, &self.scopes, &self.metrics));
        for controller in &settled.controllers {
            controller.max_concurrent(self.workers);
        }
        *self.serving.write() = settled;
        self.changed.send_replace(());
        self.wake_all();
    }

    /// The watches begin to fill what `next` needs beside what is there. Also by plugin: since which table of kinds
    /// all that it observes is kept.
    fn stage(&self, next: &Registry) -> (Arc<Serving>, HashMap<String, u64>) {
        let mut serving = self.serving.write();
        let since = next.plugins().iter().map(|plugin| {
            let kept = serving.kinds.keep_all_of(plugin);
            let since = serving.since.get(&plugin.name).copied().filter(|_| kept);
            (plugin.name.clone(), since.unwrap_or(if kept { 0 } else { serving.kinds.generation + 1 }))
        });
        let since = since.collect();
        let staged = Arc::new(serving.staged(next, &self.scopes, &self.namespaces));
        *serving = Arc::clone(&staged);
        drop(serving);
        self.changed.send_replace(());
        (staged, since)
    }

    pub(crate) fn wake_all(&self) {
        for index in 0..self.kinds().parents.len() {
            for key in self.parents.keys(index) {
                self.queue.add(key, Lane::Walk);
            }
        }
    }

    /// Empty once every watch is filled or known to be impossible, and the
    /// parents of one kind at least are watched.
    pub fn unmet(&self) -> Unmet {
        let (mut starting, mut impossible, mut any) = (Vec::from_iter(self.namespaces.unmet()), Vec::new(), false);
        let kinds = self.kinds();
        let Kinds { parents, children, related, .. } = &*kinds;
        let others = children.iter().chain(related).map(|kind| (kind, false));
        let all = parents.iter().map(|kind| (kind, true)).chain(others);
        for (kind, is_parent) in all {
            let standing = kind.standing();
            if matches!(standing, Standing::Staged | Standing::Idle) {
                continue;
            }
            for scope in kind.scopes() {
                let what = || format!("{} {}", kind.name(), scope.words());
                match scope.state() {
                    State::Filled => any |= is_parent && standing == Standing::Serving,
                    State::Starting(None) => starting.push(format!("{} not listed yet", what())),
                    State::Starting(Some(problem)) => starting.push(format!("{} not listed yet: {problem}", what())),
                    State::Unusable(problem) if is_parent && standing == Standing::Serving => {
                        impossible.push(format!("{} cannot be watched: {problem}", what()));
                    }
                    State::Unusable(_) => {}
                }
            }
        }
        let registry = self.registry();
        any |= self.plugins_may_come && registry.plugins().is_empty() && registry.problems().is_empty();
        // A kind that is impossible is classified; it must not stop the others.
        if !any {
            starting.append(&mut impossible);
            if starting.is_empty() {
                starting.push("no plugin serves any kind".to_owned());
            }
        }
        starting
    }

    /// Until all that its plugins need is listed, or known to be impossible; what is missing still where that takes too long.
    pub async fn filled(&self, patience: Duration) -> Result<(), Unmet> {
        let mut progress = self.progress.subscribe();
        let filled = async { while !self.unmet().is_empty() && progress.changed().await.is_ok() {} };
        tokio::time::timeout(patience, filled).await.map_err(|_| self.unmet())
    }

    /// Watches that were filled and do not go on for now: what they would tell is missing, which makes nobody unready.
    pub fn troubles(&self) -> Vec<String> {
        let kinds = self.kinds();
        let all = kinds
            .parents
            .iter()
            .chain(&kinds.children)
            .chain(&kinds.related)
            .filter(|kind| kind.standing() != Standing::Idle);
        let scopes = all.flat_map(|kind| kind.scopes().iter().map(move |scope| (kind, scope)));
        let filled = scopes.filter(|(_, scope)| scope.state() == State::Filled);
        filled
            .filter_map(|(kind, scope)| {
                Some(format!("{} {} unreachable: {}", kind.name(), scope.words(), scope.trouble()?))
            })
            .chain(self.trouble.lock().clone())
            .collect()
    }

    pub(crate) fn group_of(&self, key: &ParentKey) -> String {
        self.parent_kind(key.kind).map_or_else(String::new, |kind| kind.group.clone())
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
        self.related.ask(uid, Vec::new());
        self.gates.forget(uid);
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
        let Some(resource) = self.resource_of(key) else { return Ok(false) };
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
        let kind = self.parent_kind(key.kind).ok_or_else(|| decode("of a kind that is not watched".to_owned()))?;
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

pub(crate) fn version(plugin: &Plugin) -> Version<'_> {
    Version { plugin: &plugin.name, digest: &plugin.digest, revision: plugin.revision }
}
