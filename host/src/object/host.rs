//! What all walks share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::children::{ChildId, Children};
use super::kinds::{Kind, Kinds, State};
use super::memory::hash_of;
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
    pub(crate) parents: Parents,
    pub(crate) children: Children,
    pub(crate) queue: Queue<ParentKey>,
    pub(crate) queue_metrics: QueueMetrics,
    /// Renders at one time; the sandbox has room for each.
    pub(crate) slots: Slots,
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

/// Why the host is not ready, in words.
pub type Unmet = Vec<String>;

impl Host {
    /// `namespaces` empty: all. `renders` is how many calls the sandbox has room for.
    pub fn new(
        api: Api,
        registry: Arc<Registry>,
        namespaces: &[String],
        renders: usize,
        workers: usize,
        identity: String,
        metrics: Metrics,
    ) -> Self {
        let queue_metrics = metrics.queue("objects");
        let kinds = Kinds::new(&registry, namespaces);
        let controllers = kinds.parents.iter().map(|kind| metrics.controller(&kind.name())).collect();
        let plugin_metrics =
            registry.plugins().iter().map(|plugin| (plugin.name.clone(), metrics.plugin(&plugin.name))).collect();
        let slots = Slots::new(registry.plugins().iter().map(|plugin| plugin.name.as_str()), renders, workers);
        let granted = registry.plugins().iter().flat_map(|plugin| plugin.grant.watch_secrets.clone());
        let served = |name: &String| namespaces.is_empty() || namespaces.contains(name);
        let mut secret_namespaces: Vec<String> = granted.filter(served).collect();
        secret_namespaces.sort();
        secret_namespaces.dedup();
        Self {
            secret_namespaces,
            secrets_moved: Mutex::default(),
            api,
            registry,
            kinds,
            parents: Parents::default(),
            children: Children::default(),
            queue: Queue::new(queue_metrics.clone()),
            queue_metrics,
            slots,
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
        let (mut starting, mut impossible, mut any) = (Vec::new(), Vec::new(), false);
        let Kinds { parents, children, .. } = &self.kinds;
        let kinds = parents.iter().map(|kind| (kind, true)).chain(children.iter().map(|kind| (kind, false)));
        for (kind, is_parent) in kinds {
            for scope in kind.scopes() {
                let what = || format!("{} {}", kind.name(), scope.words());
                match scope.state() {
                    State::Filled => any |= is_parent,
                    State::Starting(None) => starting.push(format!("{} not listed yet", what())),
                    State::Starting(Some(problem)) => starting.push(format!("{} not listed yet: {problem}", what())),
                    State::Unusable(problem) if is_parent => {
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

    pub(crate) fn wait_for_name(&self, id: &ChildId, key: ParentKey) {
        self.waiting.lock().insert(id.clone(), key);
    }

    /// A child has left: whoever waits for its name goes on.
    pub(crate) fn name_is_free(&self, id: &ChildId) {
        if let Some(key) = self.waiting.lock().remove(id) {
            self.queue.add(key, Lane::Walk);
        }
    }

    /// Whether the parent is still the one that is being worked on.
    pub(crate) fn stands(&self, key: &ParentKey, parent: &Parent) -> bool {
        self.parents.get(key).is_some_and(|now| now.id.uid == parent.id.uid && !now.deleting)
    }

    /// Whether the API server has this parent too: what it keeps is taken over only on its word.
    pub(crate) async fn is_there(&self, key: &ParentKey, parent: &Parent) -> Result<bool, ApiError> {
        let Some(resource) = self.kinds.parents.get(key.kind).and_then(Kind::resource) else { return Ok(false) };
        match self.api.get(&resource, Some(&key.namespace), &key.name).await {
            Ok(bytes) => {
                let decode = |error| ApiError::new(format!("get {}", key.name), error);
                let there = ObjectView::from_slice(&bytes).map_err(|error| decode(error.into()))?;
                Ok(*there.uid == *parent.id.uid && !there.deletion)
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes over what a status write answered, so that its event wakes
    /// nobody. Returns a hash of the status as it now stands.
    pub(crate) fn wrote_parent(&self, key: &ParentKey, answer: &[u8]) -> Result<u64, ApiError> {
        let decode =
            |error: String| ApiError::new(format!("apply status of {}", key.name), ApiErrorKind::Decode(error));
        let view = ObjectView::from_slice(answer).map_err(|error| decode(error.to_string()))?;
        let kind =
            self.kinds.parents.get(key.kind).ok_or_else(|| decode("of a kind that is not watched".to_owned()))?;
        let parent =
            Parent::reduce(&view, &kind.api_version(), &kind.kind).map_err(|error| decode(error.to_string()))?;
        let status = hash_of(&parent.status);
        if self.parents.put_own(key, parent) {
            self.queue.add(key.clone(), Lane::Walk);
        }
        Ok(status)
    }
}
