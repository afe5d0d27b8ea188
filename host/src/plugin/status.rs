//! What the status of a Plugin object tells: shapes only, for the host and for
//! the CustomResourceDefinition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What has become of the plugin. Written by the host that leads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginStatus {
    /// The generation that this was written for.
    pub observed_generation: i64,
    /// `Serving`, `Held` (an earlier version serves), `Failing` (it serves, and fails with one object after the other), or
    /// the reason why nothing of it serves.
    pub phase: String,
    /// What it serves, for people: `widgets.example.org (/spec/type=round)`.
    pub serves: String,
    /// The plugin's own version, of what serves.
    pub version: String,
    /// The version of the contract that it is called by.
    pub contract: String,
    /// What it exports: `render`, and its hooks.
    pub exports: Vec<String>,
    /// SHA-256 of the component that the spec leads to, as far as it was found: `sha256:…`.
    pub digest: String,
    /// SHA-256 of the component that serves. After a restart every host loads this one.
    pub serving_digest: String,
    /// Of an image that serves: `REGISTRY/REPOSITORY@sha256:…`, recorded before it serves.
    pub image: String,
    /// `spec.source.oci.image` as it was when that digest was found.
    pub resolved_from: String,
    /// Objects that it serves.
    pub objects: u64,
    /// `Fetched`, `Verified` and `Compiled` of the newest component, and `Serving`.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<PluginCondition>,
}

/// One condition, as Kubernetes has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCondition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One of docs/reasons.md.
    pub reason: String,
    pub message: String,
    /// When `status` became what it is.
    pub last_transition_time: String,
    pub observed_generation: i64,
}

/// How far a component comes before it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Fetched,
    Verified,
    Compiled,
    Serving,
}

impl Step {
    pub const ALL: [Self; 4] = [Self::Fetched, Self::Verified, Self::Compiled, Self::Serving];

    /// The type of its condition.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fetched => "Fetched",
            Self::Verified => "Verified",
            Self::Compiled => "Compiled",
            Self::Serving => "Serving",
        }
    }
}
