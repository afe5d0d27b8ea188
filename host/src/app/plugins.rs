//! Keeps the plugins: loads them from the folder and from the cluster, hands
//! what serves to the object walk, and tells what became of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use serde_json::json;
use tokio::sync::watch as cell;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::access;
use super::cli::PluginSource;
use super::schemas::{self, Mismatches};
use crate::clock;
use crate::cluster::Api;
use crate::limits;
use crate::metrics::Metrics;
use crate::names;
use crate::object::Host;
use crate::plugin::fetch::Record;
use crate::plugin::source::cluster::{self, Object, Objects};
use crate::plugin::source::stamp;
use crate::plugin::tell::{self, Told};
use crate::plugin::{Origin, Plugin, Registry, Roster};
use crate::sandbox::Engine;

/// After a plugin's name: what its newest version came to, where an earlier one serves.
const NEWEST: &str = " (newest)";

pub(crate) struct Plugins {
    roster: Roster,
    folder: Option<Folder>,
    objects: Option<Arc<Objects>>,
    /// As they were last loaded.
    loaded: BTreeMap<String, Arc<Object>>,
    /// What was last said of each plugin: its phase, in the metric.
    said: BTreeMap<String, Said>,
    /// Of each plugin what it reads and the API server does not keep.
    mismatches: cell::Receiver<Mismatches>,
    metrics: Metrics,
    engine: Engine,
    /// Of the engine's counts, what the metric has.
    counted: [u64; 3],
}

struct Folder {
    path: PathBuf,
    stamp: u64,
    /// Nothing else brings plugins.
    alone: bool,
}

#[derive(Clone, PartialEq)]
struct Said {
    phase: String,
    words: String,
}

/// Which rights are asked for when the plugins change.
pub(crate) struct Scope {
    pub namespaces: Vec<String>,
    pub selects_namespaces: bool,
}

impl Plugins {
    /// `folder` is where components lie.
    pub(crate) fn new(engine: Engine, folder: Option<&Path>, source: PluginSource, metrics: &Metrics) -> Self {
        let documents = source != PluginSource::Cluster;
        Self {
            roster: Roster::new(engine.clone(), folder),
            folder: folder.filter(|_| documents).map(|path| Folder {
                path: path.to_owned(),
                stamp: stamp(path),
                alone: source == PluginSource::Volume,
            }),
            objects: None,
            loaded: BTreeMap::new(),
            said: BTreeMap::new(),
            mismatches: cell::channel(Mismatches::new()).1,
            metrics: metrics.clone(),
            engine,
            counted: [0; 3],
        }
    }

    /// Loads the folder.
    pub(crate) async fn read_folder(&mut self) -> anyhow::Result<()> {
        match &self.folder {
            Some(folder) => self.roster.read_folder(folder.alone).await.context("load the plugins"),
            None => Ok(()),
        }
    }

    /// From now on pull secrets can be read.
    pub(crate) fn reached(&mut self, api: &Api) {
        self.roster.reached(api);
    }

    /// Loads the objects of the cluster, as soon as they are known; what cannot be known holds nobody up for long.
    pub(crate) async fn read_objects(&mut self, api: &Api) {
        let objects = Arc::new(Objects::default());
        let mut changes = objects.changes();
        tokio::spawn(cluster::follow(api.clone(), Arc::clone(&objects)));
        let known = async { while !objects.are_known() && changes.changed().await.is_ok() {} };
        if timeout(limits::SWAP_PATIENCE, known).await.is_err() {
            tracing::warn!("the Plugin objects are not listed yet; what the folder holds serves alone");
        }
        for object in objects.all() {
            // Who serves a kind keeps it, whoever starts first.
            if !object.status.serving_digest.is_empty() {
                self.roster.served_before(&object.name);
            }
        }
        self.objects = Some(objects);
        self.take_objects().await;
    }

    /// What serves now, settled anew.
    pub(crate) fn registry(&mut self, now: Option<&Registry>) -> Arc<Registry> {
        let registry = Arc::new(self.roster.registry(now));
        self.say(&registry);
        registry
    }

    /// For ever: whatever changes takes effect.
    pub(crate) async fn follow(mut self, host: Arc<Host>, api: Api, scope: Scope) {
        let (found, mismatches) = cell::channel(Mismatches::new());
        self.mismatches = mismatches;
        tokio::spawn(schemas::follow(Arc::clone(&host), api.clone(), found));
        let mut changes = self.objects.as_ref().map(|objects| objects.changes());
        // What came since they were first read, while rights were asked for.
        changes.iter_mut().for_each(cell::Receiver::mark_changed);
        let mut poll = interval(limits::FOLDER_POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut report = interval(limits::PLUGIN_STATUS);
        report.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.roster.next_try();
            tokio::select! {
                () = changed(&mut changes) => self.take_objects().await,
                _ = poll.tick(), if self.folder.is_some() => self.look_at_folder().await,
                () = at(due) => self.roster.try_again().await,
                _ = report.tick(), if self.objects.is_some() => {}
            }
            let trouble = self.objects.as_ref().and_then(|objects| objects.problem());
            host.plugins_in_trouble(trouble.map(|problem| format!("Plugin objects: {problem}")));
            let now = host.registry();
            let next = Arc::new(self.roster.registry(Some(&now)));
            // A digest is on record before it serves: whoever starts later finds it.
            if !next.is_like(&now) && self.tell_images(&host, &api, &next).await {
                host.serve(Arc::clone(&next)).await;
                self.say(&next);
                access::say_what_is_missing(&api, &next, &scope.namespaces, scope.selects_namespaces).await;
            }
            self.tell(&host, &api, &host.registry()).await;
        }
    }

    /// Where an image is to serve that is not on record yet: whether it is now.
    async fn tell_images(&self, host: &Host, api: &Api, next: &Registry) -> bool {
        let on_record = |plugin: &Plugin| match &plugin.image {
            Some(image) if plugin.origin == Origin::Cluster => {
                let objects = self.objects.iter().flat_map(|objects| objects.all());
                objects.into_iter().any(|object| object.name == plugin.name && object.status.image == image.at)
            }
            _ => true,
        };
        next.plugins().iter().all(|plugin| on_record(plugin)) || !api.may_write() || self.tell(host, api, next).await
    }

    async fn look_at_folder(&mut self) {
        let Some(folder) = &mut self.folder else { return };
        let stamp = stamp(&folder.path);
        if std::mem::replace(&mut folder.stamp, stamp) == stamp {
            return;
        }
        match self.roster.read_folder(folder.alone).await {
            Ok(()) => {}
            Err(error) => tracing::warn!("{error}; the plugins serve on as they are"),
        }
    }

    async fn take_objects(&mut self) {
        let Some(objects) = &self.objects else { return };
        // Before the first list nothing is known, and nothing gone.
        if !objects.are_filled() {
            return;
        }
        let all = objects.all();
        let gone: Vec<String> =
            self.loaded.keys().filter(|name| !all.iter().any(|object| object.name == **name)).cloned().collect();
        for name in gone {
            self.loaded.remove(&name);
            self.roster.remove(&name);
        }
        for object in all {
            let known = self.loaded.get(&object.name);
            let record =
                |object: &Object| Record { from: object.status.resolved_from.clone(), at: object.status.image.clone() };
            let other = |known: &Arc<Object>| {
                known.text != object.text || known.uid != object.uid || record(known) != record(&object)
            };
            if known.is_none_or(other) {
                self.roster.put(&object.name, object.text.clone(), record(&object)).await;
            }
            self.loaded.insert(object.name.clone(), object);
        }
    }

    /// Into the log and the metric, where it is news.
    fn say(&mut self, registry: &Registry) {
        let mut now = BTreeMap::new();
        for plugin in registry.plugins() {
            let serves: Vec<String> =
                plugin.manifest.serves.iter().map(|one| format!("{}.{}", one.plural, one.group)).collect();
            let words = format!("{} {} {}", plugin.manifest.version, plugin.digest, plugin.revision);
            let said = Said { phase: "Serving".to_owned(), words };
            if self.said.get(&plugin.name) != Some(&said) {
                tracing::info!(
                    plugin = plugin.name,
                    version = plugin.manifest.version,
                    digest = plugin.digest,
                    serves = serves.join(", "),
                    "serving"
                );
            }
            now.insert(plugin.name.clone(), said);
        }
        for problem in registry.problems() {
            // An object that a file of the same name shadows has no phase of its own.
            let name = if problem.origin == Origin::Cluster && now.contains_key(problem.name()) {
                format!("{} (object)", problem.name())
            } else {
                problem.name().to_owned()
            };
            let said = Said { phase: problem.reason.clone(), words: problem.message.clone() };
            if self.said.get(&name) != Some(&said) {
                let (plugin, file) = (problem.name(), &problem.file);
                tracing::error!(plugin, file, reason = problem.reason, "not serving: {}", problem.message);
            }
            now.insert(name, said);
        }
        for problem in registry.held() {
            let name = format!("{}{NEWEST}", problem.name());
            let said = Said { phase: problem.reason.clone(), words: problem.message.clone() };
            if self.said.get(&name) != Some(&said) {
                let (plugin, file) = (problem.name(), &problem.file);
                tracing::error!(
                    plugin,
                    file,
                    reason = problem.reason,
                    "an earlier version goes on serving: {}",
                    problem.message
                );
            }
            now.insert(name, said);
        }
        for name in self.said.keys().filter(|name| !now.contains_key(*name)) {
            match name.strip_suffix(NEWEST) {
                Some(plugin) => tracing::info!(plugin, "nothing is held back any more"),
                None => tracing::info!(plugin = name, "gone"),
            }
        }
        let names = self.said.keys().chain(now.keys()).filter(|name| !name.contains(' '));
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let phase = |said: &BTreeMap<String, Said>| said.get(name).map(|said| said.phase.clone());
            let (before, after) = (phase(&self.said), phase(&now));
            if before != after {
                self.metrics.plugin(name).phase(before.as_deref(), after.as_deref());
            }
        }
        for plugin in registry.plugins() {
            let size = plugin.component.size();
            self.metrics.plugin(&plugin.name).holds(size.component, size.code);
        }
        for name in self.said.keys().filter(|name| registry.plugin(name).is_none()) {
            self.metrics.plugin(name).gone();
        }
        self.said = now;
        self.count();
    }

    fn count(&mut self) {
        let counts = self.engine.counts();
        let now = [counts.compiled(), counts.cached(), counts.rebuilt()];
        for ((result, now), before) in ["compiled", "cached", "rebuilt"].into_iter().zip(now).zip(&mut self.counted) {
            self.metrics.compiled(result, now - std::mem::replace(before, now));
        }
    }

    /// Writes the status of objects, where it is another; only the host that leads. Whether all is written.
    async fn tell(&self, host: &Host, api: &Api, registry: &Registry) -> bool {
        let Some(resource) = self.objects.as_ref().and_then(|objects| objects.resource()) else { return true };
        if !api.may_write() {
            return true;
        }
        let mut all = true;
        let mismatches = self.mismatches.borrow().clone();
        // As they stand now, with what was last written to them.
        for object in self.objects.iter().flat_map(|objects| objects.all()) {
            let Some((plugin, problem)) = self.roster.of_object(&object.name) else { continue };
            if self.loaded.get(&object.name).is_none_or(|loaded| loaded.generation != object.generation) {
                continue;
            }
            let objects = host.objects_of(&object.name);
            let failing = host.failing(&object.name);
            let plugin = plugin.map(AsRef::as_ref);
            let mismatch = mismatches.get(&object.name).map_or("", String::as_str);
            let told = Told { plugin, problem, objects, mismatch, failing: failing.as_deref() };
            let identity = (object.name.as_str(), object.generation);
            let status = tell::status(identity, &told, registry, &object.status, clock::now());
            if status == object.status {
                continue;
            }
            let body = json!({
                "apiVersion": resource.api_version(),
                "kind": resource.kind,
                "metadata": {"name": object.name, "uid": object.uid},
                "status": status,
            });
            let body = body.to_string().into_bytes();
            let written = api.apply(&resource, Some("status"), None, &object.name, names::FIELD_MANAGER, body).await;
            match written {
                Ok(_) => {}
                Err(error) if error.is_not_found() || error.is_conflict() || error.is_uid_mismatch() => {}
                Err(error) => {
                    all = false;
                    tracing::warn!(plugin = object.name, "no status: {error}");
                }
            }
        }
        all
    }
}

async fn changed(changes: &mut Option<cell::Receiver<()>>) {
    let told = match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    };
    if !told {
        std::future::pending().await
    }
}

async fn at(due: Option<clock::Instant>) {
    match due {
        Some(due) => clock::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
