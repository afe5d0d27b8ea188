//! What serves, and what does not and why: one snapshot, never changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::claims::{Choice, Claims, Found, ParentKind, Refusal};
use super::document::{FinalizeRule, StrategyRule};
use super::passed::Passed;
use crate::check::{Grant, GrantedParent};
use crate::limits::PluginLimits;
use crate::sandbox::{Component, Manifest};

/// A plugin that serves.
pub struct Plugin {
    /// The name of its Plugin document.
    pub name: String,
    /// SHA-256 of the component's bytes, in hex.
    pub digest: String,
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
    /// The file of that document, in the plugin folder.
    pub file: String,
    pub reason: String,
    pub message: String,
    /// What it was granted to serve.
    pub claims: Vec<GrantedParent>,
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
    claims: Claims<Arc<Plugin>, Arc<Problem>>,
}

/// What the walk of one document ended with.
pub enum Attempt {
    Loaded { file: String, plugin: Box<Plugin> },
    Failed(Problem),
}

// === impl Registry ===

impl Registry {
    /// Settles who serves what: by name, and of two files with one name the first.
    pub fn build(attempts: Vec<Attempt>) -> Self {
        let mut problems = Vec::new();
        let mut loaded: BTreeMap<String, (String, Box<Plugin>)> = BTreeMap::new();
        for attempt in attempts {
            match attempt {
                Attempt::Failed(problem) => problems.push(problem),
                Attempt::Loaded { file, plugin } => match loaded.get(&plugin.name) {
                    None => drop(loaded.insert(plugin.name.clone(), (file, plugin))),
                    Some((first, _)) => {
                        let message = format!("metadata.name: {} is the name in {first} too", plugin.name);
                        problems.push(conflict(file, &plugin, &message));
                    }
                },
            }
        }
        let (mut plugins, mut claims) = (Vec::new(), Claims::default());
        for (file, plugin) in loaded.into_values() {
            let plugin: Arc<Plugin> = Arc::from(plugin);
            match claims.serve(&plugin.name, &plugin.manifest.serves, Arc::clone(&plugin)) {
                Ok(()) => plugins.push(plugin),
                Err(message) => problems.push(conflict(file, &plugin, &message)),
            }
        }
        problems.sort_by(|one, other| one.file.cmp(&other.file));
        for problem in &problems {
            claims.wait(&problem.claims, Arc::new(problem.clone()));
        }
        Self { plugins, problems, claims }
    }

    /// In the order of their names.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// In the order of their files.
    /// Whether a plugin failed in such a way that nobody knows what it would serve: a document that cannot be read.
    pub fn hides_claims(&self) -> bool {
        self.problems.iter().any(|problem| problem.claims.is_empty())
    }

    pub fn problems(&self) -> &[Problem] {
        &self.problems
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
    let message = format!("{file}: {message}");
    Problem {
        plugin: Some(plugin.name.clone()),
        file,
        reason: "Conflict".to_owned(),
        message,
        claims: plugin.grant.serves.clone(),
    }
}
