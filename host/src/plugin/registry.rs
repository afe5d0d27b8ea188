//! What serves, and what does not and why: one snapshot, never changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::claims::{Choice, Claims, Found, ParentKind, Refusal};
use super::document::{FinalizeRule, StrategyRule};
use super::passed::Passed;
use super::status::Step;
use crate::check::{Grant, GrantedParent};
use crate::limits::PluginLimits;
use crate::sandbox::{Component, Manifest};

/// Reasons of plugins that do not serve because another does.
const CONFLICT: &str = "Conflict";
const SHADOWED: &str = "Shadowed";

/// Where a Plugin document stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// In the plugin folder.
    Volume,
    /// As an object of the API.
    Cluster,
}

/// Which image a component was pulled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// `spec.source.oci.image`.
    pub from: String,
    /// `REGISTRY/REPOSITORY@sha256:…`.
    pub at: String,
}

/// A plugin that serves.
#[derive(Clone)]
pub struct Plugin {
    /// The name of its Plugin document.
    pub name: String,
    pub origin: Origin,
    /// SHA-256 of the component's bytes, in hex.
    pub digest: String,
    /// Of an image: what it was called, and the digest of its manifest.
    pub image: Option<Image>,
    /// Another for every change of its document.
    pub revision: u64,
    pub manifest: Manifest,
    pub grant: Grant,
    pub limits: PluginLimits,
    /// `spec.config` as JSON text.
    pub config: Arc<str>,
    pub strategies: Vec<StrategyRule>,
    pub passed: Passed,
    pub finalize: FinalizeRule,
    pub component: Component,
}

/// A plugin that does not serve.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The name of its Plugin document, where that could be read.
    pub plugin: Option<String>,
    pub origin: Origin,
    /// The file of that document in the plugin folder, or the object's name.
    pub file: String,
    pub reason: String,
    pub message: String,
    /// What it was granted to serve.
    pub claims: Vec<GrantedParent>,
    /// The step that was not taken.
    pub step: Step,
    /// SHA-256 of the component, where it came so far.
    pub digest: Option<String>,
}

/// Which plugin renders an object.
pub enum Dispatch {
    Plugin(Arc<Plugin>),
    /// Claimed by a plugin that does not serve.
    Unavailable {
        plugin: String,
        reason: String,
        message: String,
    },
    /// The object's discriminator is missing, no string, or a value that nobody serves.
    Invalid {
        /// `InvalidSpec` or `NoPlugin`.
        reason: &'static str,
        path: String,
        message: String,
        allowed: Vec<String>,
    },
}

pub struct Registry {
    plugins: Vec<Arc<Plugin>>,
    problems: Vec<Problem>,
    held: Vec<Problem>,
    claims: Claims<Arc<Plugin>, Arc<Problem>>,
}

/// What the walk of one document ended with: a plugin, a problem, or both,
/// where an earlier version goes on.
pub struct Attempt {
    pub origin: Origin,
    pub file: String,
    pub plugin: Option<Arc<Plugin>>,
    pub problem: Option<Problem>,
}

// === impl Registry ===

impl Registry {
    /// Settles who serves what: first whoever did so before (`incumbents`), then by name. Of two files with one name
    /// the first; of a file and an object the file.
    pub fn build(mut attempts: Vec<Attempt>, incumbents: &BTreeSet<String>) -> Self {
        attempts.sort_by(|one, other| (one.origin, &one.file).cmp(&(other.origin, &other.file)));
        let (mut problems, mut held) = (Vec::new(), Vec::new());
        let mut in_volume: BTreeMap<String, String> = BTreeMap::new();
        let mut loaded: BTreeMap<String, (String, Arc<Plugin>)> = BTreeMap::new();
        for attempt in attempts {
            let name = attempt.name();
            if attempt.origin == Origin::Cluster
                && let Some(file) = name.as_ref().and_then(|name| in_volume.get(name))
            {
                problems.push(shadowed(attempt, file));
                continue;
            }
            let Attempt { origin, file, plugin, problem } = attempt;
            if let Some(name) = name.filter(|_| origin == Origin::Volume) {
                in_volume.entry(name).or_insert_with(|| file.clone());
            }
            let Some(plugin) = plugin else {
                problems.extend(problem);
                continue;
            };
            match loaded.get(&plugin.name) {
                None => {
                    held.extend(problem);
                    drop(loaded.insert(plugin.name.clone(), (file, plugin)));
                }
                Some((first, _)) => {
                    let message = format!("metadata.name: {} is the name in {first} too", plugin.name);
                    problems.push(conflict(file, &plugin, &message));
                }
            }
        }
        let (mut plugins, mut claims) = (Vec::new(), Claims::default());
        let (first, then): (Vec<_>, Vec<_>) =
            loaded.into_values().partition(|(_, plugin)| incumbents.contains(&plugin.name));
        for (file, plugin) in first.into_iter().chain(then) {
            match claims.serve(&plugin.name, &plugin.manifest.serves, Arc::clone(&plugin)) {
                Ok(()) => plugins.push(plugin),
                Err(message) => problems.push(conflict(file, &plugin, &message)),
            }
        }
        plugins.sort_by(|one, other| one.name.cmp(&other.name));
        problems.sort_by(|one, other| (one.origin, &one.file).cmp(&(other.origin, &other.file)));
        for problem in &problems {
            claims.wait(&problem.claims, Arc::new(problem.clone()));
        }
        Self { plugins, problems, held, claims }
    }

    /// Whether it would serve the same, and say the same of what does not.
    pub fn is_like(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Plugin>, &Arc<Plugin>)| {
            one.name == other.name
                && one.origin == other.origin
                && one.digest == other.digest
                && one.revision == other.revision
        };
        self.plugins.len() == other.plugins.len()
            && self.plugins.iter().zip(&other.plugins).all(same)
            && self.problems == other.problems
            && self.held == other.held
    }

    /// In the order of their names.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// Whether a plugin failed in such a way that nobody knows what it would serve: a document that cannot be read.
    pub fn hides_claims(&self) -> bool {
        self.problems.iter().any(|problem| problem.claims.is_empty() && problem.reason != SHADOWED)
    }

    /// What does not serve. In the order of their files, then of the objects.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What is wrong with the newest version of plugins that serve in an earlier one.
    pub fn held(&self) -> &[Problem] {
        &self.held
    }

    /// The plugin of that name, if it serves.
    pub fn plugin(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }

    /// The kinds to watch.
    pub fn parent_kinds(&self) -> Vec<ParentKind> {
        self.claims.kinds().to_vec()
    }

    /// Group and kind of what only plugins claim that do not serve. A grant
    /// names neither version nor plural: ask the cluster's discovery.
    pub fn unserved_kinds(&self) -> BTreeSet<(String, String)> {
        self.claims.unserved_kinds()
    }

    pub fn dispatch(&self, group: &str, kind: &str, parent: &Value) -> Dispatch {
        self.dispatch_with(group, kind, |path| Found::of(parent.pointer(path).cloned()))
    }

    /// As [`Self::dispatch`], for a parent that is no tree.
    pub fn dispatch_with<'a>(&self, group: &str, kind: &str, find: impl Fn(&str) -> Found<'a>) -> Dispatch {
        match self.claims.choose(group, kind, find) {
            Choice::Served(plugin) => Dispatch::Plugin(plugin),
            Choice::Waiting(problem) => Dispatch::Unavailable {
                plugin: problem.name().to_owned(),
                reason: problem.reason.clone(),
                message: problem.message.clone(),
            },
            Choice::Nobody(Refusal { reason, path, message, allowed }) => {
                Dispatch::Invalid { reason, path, message, allowed }
            }
        }
    }
}

impl Problem {
    /// The plugin's name, or else its file's.
    pub fn name(&self) -> &str {
        self.plugin.as_deref().unwrap_or(&self.file)
    }
}

fn conflict(file: String, plugin: &Plugin, message: &str) -> Problem {
    let message = if plugin.origin == Origin::Volume { format!("{file}: {message}") } else { message.to_owned() };
    Problem {
        plugin: Some(plugin.name.clone()),
        origin: plugin.origin,
        file,
        reason: CONFLICT.to_owned(),
        message,
        claims: plugin.grant.serves.clone(),
        step: Step::Serving,
        digest: Some(plugin.digest.clone()),
    }
}

/// The file serves, or is what is wrong: no object stands in for it. So nothing waits for the object.
fn shadowed(attempt: Attempt, file: &str) -> Problem {
    Problem {
        plugin: attempt.name(),
        origin: attempt.origin,
        file: attempt.file,
        reason: SHADOWED.to_owned(),
        message: format!("the plugin folder has a plugin of this name, in {file}; that one counts"),
        claims: Vec::new(),
        step: Step::Serving,
        digest: attempt.plugin.map(|plugin| plugin.digest.clone()),
    }
}

// === impl Attempt ===

impl Attempt {
    fn name(&self) -> Option<String> {
        let plugin = self.plugin.as_ref().map(|plugin| plugin.name.clone());
        plugin.or_else(|| self.problem.as_ref()?.plugin.clone())
    }
}
