//! The contract in the host's own types: one shape, whatever version of the
//! contract a plugin was built for. Nothing here knows wasmtime. What crosses the
//! border can be written as JSON: it stands so in golden fixtures.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::text;
use crate::limits::{self, PluginLimits};

/// Why bytes are no plugin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the file is not a plugin: {0}")]
    ArtifactInvalid(String),
    #[error("the plugin imports {import}, which does not exist here: {fix}")]
    ImportDenied { import: String, fix: String },
    #[error("the plugin does not compile: {0}")]
    CompileFailed(String),
    /// Not begun; it may be otherwise later.
    #[error(
        "compiling {bytes} bytes takes about {need} MiB of memory, and {left} MiB are left: raise the container's memory limit"
    )]
    NoRoom { bytes: usize, need: u64, left: u64 },
}

impl LoadError {
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ArtifactInvalid(_) => "ArtifactInvalid",
            Self::ImportDenied { .. } => "ImportDenied",
            Self::CompileFailed(_) | Self::NoRoom { .. } => "CompileFailed",
        }
    }
}

/// The optional interfaces that a plugin exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    pub finalizer: bool,
    pub relations: bool,
}

/// What `describe` returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serves: Vec<Serving>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildKind>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<KindRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    pub uses_time: bool,
}

/// A kind with its version and its name in URLs; `group` is empty for the core group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindRef {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
}

impl KindRef {
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Serving {
    pub group: String,
    /// Best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    pub kind: String,
    pub plural: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<Discriminator>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Discriminator {
    /// JSON pointer into the parent.
    pub path: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildKind {
    pub kind: KindRef,
    /// JSON pointers beside the ones that are always observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observe: Vec<String>,
}

/// What one render may depend on. JSON text is shared, not copied: a request is kept for comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    #[serde(with = "text")]
    pub parent: Arc<str>,
    #[serde(with = "text")]
    pub config: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selector_labels: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ObservedChild>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedObject>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretRevision>,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<u64>,
    pub seed: u64,
}

impl Request {
    /// As the hook `related` is asked.
    pub fn unrelated(&self) -> Self {
        Self { related: Vec::new(), ..self.clone() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObservedChild {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub going: bool,
    /// JSON text, cut down to the observed paths.
    #[serde(with = "text")]
    pub object: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_version: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RelatedObject {
    pub id: String,
    pub api_version: String,
    pub kind: String,
    pub name: String,
    /// JSON text; `None` where there is no such object.
    #[serde(
        default,
        serialize_with = "text::serialize_maybe",
        deserialize_with = "text::deserialize_maybe",
        skip_serializing_if = "Option::is_none"
    )]
    pub found: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretRevision {
    pub name: String,
    pub revision: String,
}

/// What a render gave, parsed and within the sandbox's limits, but not yet
/// checked against the grant. Only the sandbox makes one.
#[derive(Debug)]
pub struct Rendered {
    pub(super) rendering: Rendering,
}

impl Rendered {
    pub fn into_rendering(self) -> Rendering {
        self.rendering
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rendering {
    pub children: Children,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<GeneratedSecret>,
    /// Fields of the parent's status.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub status: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// `Some`: not ready though the children may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<Explanation>,
    /// Seconds, as the guest said; the caller clamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_again_after: Option<u32>,
}

/// What the hook `related` gave: as [`Rendered`], not yet checked.
#[derive(Debug)]
pub struct Asked {
    pub(super) queries: Vec<RelatedQuery>,
}

impl Asked {
    pub fn into_queries(self) -> Vec<RelatedQuery> {
        self.queries
    }
}

/// What a plugin wants to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RelatedQuery {
    /// The plugin's own; comes back as [`RelatedObject::id`].
    pub id: String,
    pub kind: KindRef,
    /// `None`: the parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub by: Selection,
    /// JSON pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observe: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Selection {
    Name(String),
    /// All of these; none: every object.
    Labels(Vec<(String, String)>),
}

/// What the hook `finalize` gave: as [`Rendered`], not yet checked.
#[derive(Debug)]
pub struct Finalized {
    pub(super) finalization: Finalization,
}

impl Finalized {
    pub fn into_finalization(self) -> Finalization {
        self.finalization
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finalization {
    /// What should be there meanwhile.
    pub children: Children,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<GeneratedSecret>,
    /// `None`: done, the parent may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Explanation>,
    /// Seconds, as the guest said; the caller clamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_again_after: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Children {
    Keep,
    /// Never empty.
    Exactly(Vec<Child>),
    None,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Child {
    /// A JSON object; which one is checked later.
    pub object: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain: Option<Retention>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retention {
    pub data_version: String,
    pub line: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GeneratedSecret {
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<SecretKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain: Option<Retention>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretKey {
    pub name: String,
    pub value: SecretValue,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretValue {
    Random {
        length: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alphabet: Option<String>,
    },
    Literal(String),
    Template(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Explanation {
    pub reason: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`, as Kubernetes spells them.
    pub status: &'static str,
    pub reason: String,
    pub message: String,
}

/// A [`Condition`] as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCondition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WrittenCondition { r#type, status, reason, message } = Deserialize::deserialize(deserializer)?;
        let known = ["True", "False", "Unknown"].into_iter().find(|known| **known == status);
        let wrong = || serde::de::Error::custom(format!("{status:?} is no status: True, False, Unknown"));
        Ok(Self { kind: r#type, status: known.ok_or_else(wrong)?, reason, message })
    }
}

/// The plugin's own "no".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Failure {
    pub class: FailureClass,
    pub reason: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureClass {
    Invalid,
    NotYet,
    Internal,
}

/// What a guest said by `log` during one call, within its cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub level: tracing::Level,
    /// Control characters are escaped.
    pub message: String,
    pub fields: Vec<(String, String)>,
}

/// What a call used, beside its result.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub fuel: u64,
    pub wall: std::time::Duration,
    pub memory_bytes: usize,
    pub log: Vec<LogLine>,
}

/// Why a call gave nothing. The reason is what users see.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Failure(#[from] Failure),
    #[error("used up its {limit} units of fuel", limit = limits.fuel)]
    OutOfFuel { limits: PluginLimits },
    #[error("ran longer than {limit} ms", limit = limits.wall_milliseconds)]
    Timeout { limits: PluginLimits },
    #[error("wanted more than {limit} MiB of memory", limit = limits.memory_mib)]
    OutOfMemory { limits: PluginLimits },
    #[error("wanted more than {limit} handles at one time", limit = limits::HANDLES)]
    OutOfHandles,
    #[error("trapped: {0}")]
    Trap(String),
    #[error("{0}")]
    Exited(String),
    #[error("gave the host what is not valid: {0}")]
    OutputInvalid(String),
    #[error("gave the host more than {limit} KiB", limit = limits.output_kib)]
    OutputTooLarge { limits: PluginLimits },
    #[error("the host could not start the call: {0}")]
    Host(String),
}

impl CallError {
    pub fn reason(&self) -> &str {
        match self {
            Self::Failure(failure) => &failure.reason,
            Self::OutOfFuel { .. } => "OutOfFuel",
            Self::Timeout { .. } => "Timeout",
            Self::OutOfMemory { .. } => "OutOfMemory",
            Self::OutOfHandles => "OutOfHandles",
            Self::Trap(_) => "Trap",
            Self::Exited(_) => "Exited",
            Self::OutputInvalid(_) => "OutputInvalid",
            Self::OutputTooLarge { .. } => "OutputTooLarge",
            Self::Host(_) => "HostError",
        }
    }
}
