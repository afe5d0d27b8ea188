//! Every Plugin document that there is, with the last plugin that was made of
//! it and what is wrong with the newest: where a new version fails, the one
//! that served goes on.
//!
//! A document that has not changed, with a component that has not changed, is
//! not loaded again. What fails for a reason that may pass is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::document::{self, Document, Source};
use super::fetch::{self, Artifact, Places, Record, fetch};
use super::load::{Failed, PluginError, load, revision};
use super::registry::{Attempt, Origin, Plugin, Problem, Registry};
use super::source::{self, SourceError};
use super::status::Step;
use crate::check::{self, Grant, GrantedParent};
use crate::clock::{self, Instant};
use crate::cluster::Api;
use crate::limits::PLUGIN_BACKOFF;
use crate::sandbox::Engine;

pub struct Roster {
    engine: Engine,
    /// The plugin folder, where there is one.
    folder: Option<Arc<Path>>,
    /// For pull secrets, once it is reached.
    api: Option<Api>,
    entries: BTreeMap<Key, Entry>,
    /// Plugins that served before this process began, by name.
    incumbents: BTreeSet<String>,
}

/// The file of the folder, or the object's name.
type Key = (Origin, String);

/// One document.
struct Entry {
    text: Arc<str>,
    /// What was recorded of its image.
    record: Record,
    is_image: bool,
    /// SHA-256 of the component that it led to, as far as it was found.
    digest: Option<String>,
    /// The last that could serve.
    good: Option<Arc<Plugin>>,
    /// What is wrong with the newest.
    problem: Option<Problem>,
    /// When it is tried again.
    again: Option<Instant>,
    /// How often it was tried in vain.
    tries: u32,
}

// === impl Roster ===

impl Roster {
    pub fn new(engine: Engine, folder: Option<&Path>) -> Self {
        Self { engine, folder: folder.map(Arc::from), api: None, entries: BTreeMap::new(), incumbents: BTreeSet::new() }
    }

    /// From now on pull secrets can be read.
    pub fn reached(&mut self, api: &Api) {
        self.api = Some(api.clone());
    }

    /// Reads the whole folder. What it does not hold any more is forgotten; one without any document is an error where
    /// it is `alone`.
    pub async fn read_folder(&mut self, alone: bool) -> Result<(), SourceError> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let read = Arc::clone(&folder);
        let read = blocking(move || source::read(&read)).await;
        let files = match read {
            Ok(Err(SourceError::Empty { .. })) if !alone => Vec::new(),
            Ok(read) => read?,
            Err(problem) => return Err(SourceError::Unreadable { folder: folder.to_path_buf(), problem }),
        };
        let there: BTreeSet<String> = files.iter().map(|document| document.file.clone()).collect();
        self.entries.retain(|(origin, file), _| *origin == Origin::Cluster || there.contains(file));
        for document in files {
            let key = (Origin::Volume, document.file);
            match document.text {
                Ok(text) => self.load(key, text.into(), Record::default()).await,
                Err(error) => {
                    let failed = Failed { error: error.into(), digest: None, image: None };
                    let problem = Some(problem(&key, None, Vec::new(), &failed));
                    let good = self.entries.remove(&key).and_then(|entry| entry.good);
                    let (text, record) = ("".into(), Record::default());
                    let entry =
                        Entry { text, record, is_image: false, digest: None, good, problem, again: None, tries: 0 };
                    self.entries.insert(key, entry);
                }
            }
        }
        // A component that an object names may be another now.
        let objects = self.entries.iter().filter(|((origin, _), entry)| *origin == Origin::Cluster && !entry.is_image);
        let objects: Vec<_> = objects.map(|(key, entry)| (key.clone(), Arc::clone(&entry.text))).collect();
        for (key, text) in objects {
            self.load(key, text, Record::default()).await;
        }
        Ok(())
    }

    /// A Plugin object, as the text of a document, and what its status has recorded.
    pub async fn put(&mut self, name: &str, text: String, record: Record) {
        self.load((Origin::Cluster, name.to_owned()), text.into(), record).await;
    }

    /// A Plugin object has gone.
    pub fn remove(&mut self, name: &str) {
        self.entries.remove(&(Origin::Cluster, name.to_owned()));
    }

    /// It served before this process began, and keeps what it serves.
    pub fn served_before(&mut self, name: &str) {
        self.incumbents.insert(name.to_owned());
    }

    /// When the next of those that failed is to be tried again.
    pub fn next_try(&self) -> Option<Instant> {
        self.entries.values().filter_map(|entry| entry.again).min()
    }

    /// Tries again what is due.
    pub async fn try_again(&mut self) {
        let now = clock::instant();
        let due = self.entries.iter().filter(|(_, entry)| entry.again.is_some_and(|at| at <= now));
        let due: Vec<_> =
            due.map(|(key, entry)| (key.clone(), Arc::clone(&entry.text), entry.record.clone())).collect();
        for (key, text, record) in due {
            self.load(key, text, record).await;
        }
    }

    /// Settles who serves what. Those that served before, or are served `now`, go before all others.
    pub fn registry(&self, now: Option<&Registry>) -> Registry {
        let attempts = self.entries.iter().map(|((origin, at), entry)| Attempt {
            origin: *origin,
            file: at.clone(),
            plugin: entry.good.clone(),
            problem: entry.problem.clone(),
        });
        let serve = now.into_iter().flat_map(Registry::plugins).map(|plugin| plugin.name.clone());
        let incumbents = if now.is_some() { serve.collect() } else { self.incumbents.clone() };
        Registry::build(attempts.collect(), &incumbents)
    }

    /// The last plugin that was made of an object, and what is wrong with its newest version.
    pub fn of_object(&self, name: &str) -> Option<(Option<&Arc<Plugin>>, Option<&Problem>)> {
        let entry = self.entries.get(&(Origin::Cluster, name.to_owned()))?;
        Some((entry.good.as_ref(), entry.problem.as_ref()))
    }

    async fn load(&mut self, key: Key, text: Arc<str>, record: Record) {
        // Our own record of what serves: nothing is pulled again for it.
        if let Some(entry) = self.entries.get_mut(&key)
            && entry.text == text
            && entry.is_image
            && entry.problem.is_none()
            && entry.good.as_ref().is_some_and(|good| good.image.as_ref().is_some_and(|image| image.at == record.at))
        {
            entry.record = record;
            return;
        }
        let known = self.entries.remove(&key);
        let good = known.as_ref().and_then(|entry| entry.good.clone());
        let last = known.as_ref().filter(|entry| entry.text == text);
        // What is not trusted may be signed by now.
        let settled = |entry: &&Entry| {
            let untrusted = entry.problem.as_ref().is_some_and(|problem| problem.step == Step::Verified);
            entry.again.is_none() && !untrusted
        };
        let seen = last.filter(settled).and_then(|entry| entry.digest.clone());
        let tries = last.map_or(0, |entry| entry.tries);
        let is_image = Document::parse(&text).is_ok_and(|document| matches!(document.spec.source, Source::Oci(_)));
        let mut tried = self.attempt(key.0, &text, good.as_ref(), seen.as_deref(), &record).await;
        let mut keeps = None;
        if let Tried::Failed { keeps: kept, failed, .. } = &mut tried {
            keeps = kept.take();
            // After a start nothing is in memory: what served is what was recorded.
            if keeps.is_none() && good.is_none() && !failed.is_refused(&record.at) {
                keeps = self.recorded(key.0, &text, &record).await;
            }
        }
        let entry =
            |digest, good, problem, again, tries| Entry { text, record, is_image, digest, good, problem, again, tries };
        let entry = match tried {
            // As it was, also in what was wrong with it.
            Tried::Same => match known {
                Some(known) => entry(known.digest, known.good, known.problem, None, known.tries),
                None => return,
            },
            Tried::Loaded { plugin } => entry(Some(plugin.digest.clone()), Some(Arc::new(*plugin)), None, None, 0),
            Tried::Failed { name, claims, failed, keeps: _ } => {
                let again = failed.error.passes().then(|| clock::instant() + delay(tries));
                let problem = problem(&key, name, claims, &failed);
                entry(failed.digest, keeps, Some(problem), again, tries.saturating_add(1))
            }
        };
        self.entries.insert(key, entry);
    }

    async fn attempt(
        &self,
        origin: Origin,
        text: &str,
        good: Option<&Arc<Plugin>>,
        seen: Option<&str>,
        record: &Record,
    ) -> Tried {
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(error) => {
                // Nobody knows what it would change: all stays.
                let (name, claims) = document::salvage(text);
                return Tried::failed(name, claims, error.into(), good.cloned());
            }
        };
        let (name, grant, revision) = (document.name.clone(), document.spec.grant.clone(), revision(&document.spec));
        let places = Places { folder: self.folder.as_deref(), api: self.api.as_ref() };
        let loaded = match fetch(&document.spec, origin, places, record).await {
            Ok(artifact) => self.load_artifact(origin, document, artifact, (good, seen, record)).await,
            Err(error) => Err(Failed { error: error.into(), digest: None, image: None }),
        };
        match loaded {
            Ok(None) => Tried::Same,
            Ok(Some(plugin)) => Tried::Loaded { plugin: Box::new(plugin) },
            Err(failed) => {
                let keeps = good.filter(|good| goes_on(good, &failed)).and_then(|good| good.under(&grant, revision));
                Tried::Failed { name: Some(name), claims: grant.serves, failed: Box::new(failed), keeps }
            }
        }
    }

    /// The image that served before this process began.
    async fn recorded(&self, origin: Origin, text: &str, record: &Record) -> Option<Arc<Plugin>> {
        let document = Document::parse(text).ok().filter(|_| !record.at.is_empty())?;
        let places = Places { folder: self.folder.as_deref(), api: self.api.as_ref() };
        let artifact = fetch::recorded(&document.spec, places, record).await;
        let artifact = artifact.inspect_err(|error| {
            tracing::warn!(plugin = document.name, image = record.at, "what served before cannot be had: {error}");
        });
        let loaded = self.load_artifact(origin, document, artifact.ok()?, (None, None, record)).await;
        let loaded = loaded.inspect_err(|failed| {
            tracing::warn!(image = record.at, "what served before cannot be loaded: {}", failed.error);
        });
        loaded.ok()?.map(Arc::new)
    }

    async fn load_artifact(
        &self,
        origin: Origin,
        document: Document,
        artifact: Artifact,
        (good, seen, record): (Option<&Arc<Plugin>>, Option<&str>, &Record),
    ) -> Result<Option<Plugin>, Failed> {
        let (engine, good, seen) = (self.engine.clone(), good.cloned(), seen.map(str::to_owned));
        let proven = record.at.clone();
        let work = move || load(&engine, origin, document, artifact, good.as_deref(), seen.as_deref(), &proven);
        blocking(work)
            .await
            .unwrap_or_else(|panic| Err(Failed { error: PluginError::Host(panic), digest: None, image: None }))
    }
}

/// What a walk of one document ended with.
enum Tried {
    /// Neither the document nor its component is another than before.
    Same,
    Loaded {
        plugin: Box<Plugin>,
    },
    Failed {
        name: Option<String>,
        claims: Vec<GrantedParent>,
        failed: Box<Failed>,
        /// What goes on serving.
        keeps: Option<Arc<Plugin>>,
    },
}

impl Tried {
    fn failed(
        name: Option<String>,
        claims: Vec<GrantedParent>,
        error: PluginError,
        keeps: Option<Arc<Plugin>>,
    ) -> Self {
        Self::Failed { name, claims, failed: Box::new(Failed { error, digest: None, image: None }), keeps }
    }
}

impl Failed {
    /// Whether it is this image that is not trusted, or is what failed.
    fn is_refused(&self, at: &str) -> bool {
        self.image.as_ref().is_some_and(|image| image.at == at)
    }
}

/// A component that is not trusted any more must not go on; nor one that is what failed.
fn goes_on(good: &Plugin, failed: &Failed) -> bool {
    let same_image = good.image.as_ref().is_some_and(|image| failed.is_refused(&image.at));
    failed.digest.as_ref() != Some(&good.digest) && !same_image
}

impl Plugin {
    /// The same under another grant, if that is enough for it.
    fn under(&self, grant: &Grant, revision: u64) -> Option<Arc<Self>> {
        check::manifest(&self.manifest, grant).ok()?;
        Some(Arc::new(Self { grant: grant.clone(), revision, ..self.clone() }))
    }
}

fn problem((origin, at): &Key, plugin: Option<String>, claims: Vec<GrantedParent>, failed: &Failed) -> Problem {
    let Failed { error, digest, image: _ } = failed;
    // The file is said once: what is wrong with a document as a file begins with it.
    let message = match error {
        PluginError::Source(error) if error.field.is_empty() => error.to_string(),
        _ if *origin == Origin::Cluster => error.to_string(),
        _ => format!("{at}: {error}"),
    };
    let plugin = plugin.or_else(|| (*origin == Origin::Cluster).then(|| at.clone()));
    let (reason, step, digest) = (error.reason().to_owned(), error.step(), digest.clone());
    Problem { plugin, origin: *origin, file: at.clone(), reason, message, claims, step, digest }
}

fn delay(tries: u32) -> Duration {
    let (first, cap) = PLUGIN_BACKOFF;
    first.saturating_mul(1 << tries.min(16)).min(cap)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())
}
