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

use super::document::{self, Document};
use super::load::{Failed, PluginError, load, revision};
use super::registry::{Attempt, Origin, Plugin, Problem, Registry};
use super::source::{self, SourceError};
use crate::check::{self, Grant, GrantedParent};
use crate::clock::{self, Instant};
use crate::limits::PLUGIN_BACKOFF;
use crate::sandbox::Engine;

pub struct Roster {
    engine: Engine,
    /// The plugin folder, where there is one.
    folder: Option<Arc<Path>>,
    entries: BTreeMap<Key, Entry>,
    /// Plugins that served before this process began, by name.
    incumbents: BTreeSet<String>,
}

/// The file of the folder, or the object's name.
type Key = (Origin, String);

/// One document.
struct Entry {
    text: Arc<str>,
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
        Self { engine, folder: folder.map(Arc::from), entries: BTreeMap::new(), incumbents: BTreeSet::new() }
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
                Ok(text) => self.load(key, text.into()).await,
                Err(error) => {
                    let failed = Failed { error: error.into(), digest: None };
                    let problem = Some(problem(&key, None, Vec::new(), &failed));
                    let good = self.entries.remove(&key).and_then(|entry| entry.good);
                    let entry = Entry { text: "".into(), digest: None, good, problem, again: None, tries: 0 };
                    self.entries.insert(key, entry);
                }
            }
        }
        // A component that an object names may be another now.
        let objects = self.entries.iter().filter(|((origin, _), _)| *origin == Origin::Cluster);
        let objects: Vec<_> = objects.map(|(key, entry)| (key.clone(), Arc::clone(&entry.text))).collect();
        for (key, text) in objects {
            self.load(key, text).await;
        }
        Ok(())
    }

    /// A Plugin object, as the text of a document.
    pub async fn put(&mut self, name: &str, text: String) {
        self.load((Origin::Cluster, name.to_owned()), text.into()).await;
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
        let due: Vec<_> = due.map(|(key, entry)| (key.clone(), Arc::clone(&entry.text))).collect();
        for (key, text) in due {
            self.load(key, text).await;
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

    async fn load(&mut self, key: Key, text: Arc<str>) {
        let known = self.entries.remove(&key);
        let good = known.as_ref().and_then(|entry| entry.good.clone());
        let last = known.as_ref().filter(|entry| entry.text == text);
        let seen = last.filter(|entry| entry.again.is_none()).and_then(|entry| entry.digest.clone());
        let (engine, folder, words) = (self.engine.clone(), self.folder.clone(), Arc::clone(&text));
        let tried = {
            let (good, seen) = (good.clone(), seen.clone());
            let origin = key.0;
            blocking(move || attempt(&engine, folder.as_deref(), origin, &words, good.as_ref(), seen.as_deref())).await
        };
        let tries = last.map_or(0, |entry| entry.tries);
        let entry = match tried.unwrap_or_else(Tried::host) {
            // As it was, also in what was wrong with it.
            Tried::Same => match known {
                Some(entry) => Entry { again: None, ..entry },
                None => return,
            },
            Tried::Loaded { plugin } => {
                let digest = Some(plugin.digest.clone());
                Entry { text, digest, good: Some(Arc::new(*plugin)), problem: None, again: None, tries: 0 }
            }
            Tried::Failed { name, claims, failed, keeps } => {
                let again = failed.error.passes().then(|| clock::instant() + delay(tries));
                let problem = problem(&key, name, claims, &failed);
                Entry {
                    text,
                    digest: failed.digest,
                    good: keeps,
                    problem: Some(problem),
                    again,
                    tries: tries.saturating_add(1),
                }
            }
        };
        self.entries.insert(key, entry);
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
    fn host(panic: String) -> Self {
        let failed = Failed { error: PluginError::Host(panic), digest: None };
        Self::Failed { name: None, claims: Vec::new(), failed: Box::new(failed), keeps: None }
    }
}

/// It blocks: files are read, wasm is compiled and run. `seen` is the digest of
/// the component that this very document led to before.
fn attempt(
    engine: &Engine,
    folder: Option<&Path>,
    origin: Origin,
    text: &str,
    good: Option<&Arc<Plugin>>,
    seen: Option<&str>,
) -> Tried {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            // Nobody knows what it would change: all stays.
            let (name, claims) = document::salvage(text);
            let failed = Failed { error: error.into(), digest: None };
            return Tried::Failed { name, claims, failed: Box::new(failed), keeps: good.cloned() };
        }
    };
    let (name, grant, revision) = (document.name.clone(), document.spec.grant.clone(), revision(&document.spec));
    match load(engine, folder, origin, document, good.map(Arc::as_ref), seen) {
        Ok(None) => Tried::Same,
        Ok(Some(plugin)) => Tried::Loaded { plugin: Box::new(plugin) },
        Err(failed) => {
            let keeps = good.filter(|good| goes_on(good, &failed)).and_then(|good| good.under(&grant, revision));
            Tried::Failed { name: Some(name), claims: grant.serves, failed: Box::new(failed), keeps }
        }
    }
}

/// A component that is not trusted any more must not go on; nor one that is what failed.
fn goes_on(good: &Plugin, failed: &Failed) -> bool {
    failed.digest.as_ref() != Some(&good.digest)
}

impl Plugin {
    /// The same under another grant, if that is enough for it.
    fn under(&self, grant: &Grant, revision: u64) -> Option<Arc<Self>> {
        check::manifest(&self.manifest, grant).ok()?;
        Some(Arc::new(Self { grant: grant.clone(), revision, ..self.clone() }))
    }
}

fn problem((origin, at): &Key, plugin: Option<String>, claims: Vec<GrantedParent>, failed: &Failed) -> Problem {
    let Failed { error, digest } = failed;
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
