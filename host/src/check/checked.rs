//! The stage's type: a rendering that holds every rule. Only `rendering` makes
//! one, and only from it can children be owned and applied.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::grant::{Grant, Strategy};
use crate::limits::PluginLimits;
use crate::sandbox::model::{ChildKind, Condition, Explanation, GeneratedSecret, Manifest, Retention};

/// The custom resource that is rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parent {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

/// What a rendering is held against.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub parent: &'a Parent,
    /// Name of the Plugin document.
    pub plugin: &'a str,
    pub grant: &'a Grant,
    /// Within the grant already.
    pub manifest: &'a Manifest,
    /// Labels that tell this parent's Pods from all others; never empty.
    pub selector_labels: &'a [(String, String)],
    pub limits: &'a PluginLimits,
    /// Names of the Secrets that the parent itself names, as the grant lets it: Pods may take them.
    pub user_secrets: &'a [String],
    /// What was found of what the plugin asked to look at: what it makes may name those of the parent's namespace.
    pub related: &'a [RelatedName],
}

/// An object of the core group in the parent's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RelatedName {
    pub kind: String,
    pub name: String,
}

/// A rendering within the grant and the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    pub(super) parts: CheckedParts,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CheckedParts {
    pub children: CheckedChildren,
    pub secrets: Vec<GeneratedSecret>,
    /// Fields of the parent's status, none of the host's.
    pub status: Map<String, Value>,
    /// Of other types than the host's; messages are cut to what a condition holds.
    pub conditions: Vec<Condition>,
    pub not_ready: Option<Explanation>,
    /// Seconds, as the guest said; the caller clamps.
    pub look_again_after: Option<u32>,
}

/// A finalization within the grant and the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedFinalization {
    /// What should be there meanwhile.
    pub children: CheckedChildren,
    pub secrets: Vec<GeneratedSecret>,
    /// `None`: done, the parent may go.
    pub waiting: Option<Explanation>,
    /// Seconds, as the guest said; the caller clamps.
    pub look_again_after: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CheckedChildren {
    /// All stay as they are.
    Keep,
    /// These and no others; empty only where the plugin said that none is intended.
    Exactly(Vec<CheckedChild>),
}

/// A child that may be owned and applied.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedChild {
    pub(super) kind: ChildKind,
    pub(super) name: String,
    pub(super) object: Map<String, Value>,
    pub(super) strategy: Option<Strategy>,
    pub(super) retain: Option<Retention>,
}

impl Checked {
    pub fn into_parts(self) -> CheckedParts {
        self.parts
    }
}

impl CheckedChild {
    /// The manifest's entry.
    pub fn kind(&self) -> &ChildKind {
        &self.kind
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    pub fn into_object(self) -> Map<String, Value> {
        self.object
    }

    /// The plugin's wish; the Plugin document has the last word.
    pub fn strategy(&self) -> Option<Strategy> {
        self.strategy
    }

    pub fn retain(&self) -> Option<&Retention> {
        self.retain.as_ref()
    }
}
