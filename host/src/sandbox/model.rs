//! The contract in the host's own types: one shape, whatever version of the
//! contract a plugin was built for. Nothing here knows wasmtime.

use std::sync::Arc;

use serde_json::{Map, Value};

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
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    pub serves: Vec<Serving>,
    pub children: Vec<ChildKind>,
    pub related: Vec<KindRef>,
    pub schema: Option<Value>,
    pub uses_time: bool,
}

/// A kind with its version and its name in URLs; `group` is empty for the core group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindRef {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Serving {
    pub group: String,
    /// Best first.
    pub versions: Vec<String>,
    pub kind: String,
    pub plural: String,
    pub discriminator: Option<Discriminator>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Discriminator {
    /// JSON pointer into the parent.
    pub path: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ChildKind {
    pub kind: KindRef,
    /// JSON pointers beside the ones that are always observed.
    pub observe: Vec<String>,
}

/// What one render may depend on. JSON text is shared, not copied: a request is kept for comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub parent: Arc<str>,
    pub config: Arc<str>,
    pub selector_labels: Vec<(String, String)>,
    pub children: Vec<ObservedChild>,
    pub related: Vec<RelatedObject>,
    pub secrets: Vec<SecretRevision>,
    /// Seconds since 1970.
    pub now: Option<u64>,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObservedChild {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub going: bool,
    /// JSON text, cut down to the observed paths.
    pub object: Arc<str>,
    pub data_version: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RelatedObject {
    pub id: String,
    pub api_version: String,
    pub kind: String,
    pub name: String,
    /// JSON text; `None` where there is no such object.
    pub found: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
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

#[derive(Clone, Debug, PartialEq)]
pub struct Rendering {
    pub children: Children,
    pub secrets: Vec<GeneratedSecret>,
    /// Fields of the parent's status.
    pub status: Map<String, Value>,
    pub conditions: Vec<Condition>,
    /// `Some`: not ready though the children may be.
    pub not_ready: Option<Explanation>,
    /// Seconds, as the guest said; the caller clamps.
    pub look_again_after: Option<u32>,
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

#[derive(Clone, Debug, PartialEq)]
pub struct Finalization {
    /// What should be there meanwhile.
    pub children: Children,
    pub secrets: Vec<GeneratedSecret>,
    /// `None`: done, the parent may go.
    pub waiting: Option<Explanation>,
    /// Seconds, as the guest said; the caller clamps.
    pub look_again_after: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Children {
    Keep,
    /// Never empty.
    Exactly(Vec<Child>),
    None,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// A JSON object; which one is checked later.
    pub object: Map<String, Value>,
    pub retain: Option<Retention>,
    pub strategy: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    pub data_version: String,
    pub line: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedSecret {
    pub name: String,
    pub keys: Vec<SecretKey>,
    pub secret_type: Option<String>,
    pub retain: Option<Retention>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SecretKey {
    pub name: String,
    pub value: SecretValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SecretValue {
    Random { length: u32, alphabet: Option<String> },
    Literal(String),
    Template(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub reason: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub kind: String,
    /// `True`, `False` or `Unknown`, as Kubernetes spells them.
    pub status: &'static str,
    pub reason: String,
    pub message: String,
}

/// The plugin's own "no".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub class: FailureClass,
    pub reason: String,
    pub message: String,
    pub fields: Vec<String>,
    pub allowed: Vec<String>,
    pub remedy: Option<String>,
    pub retry_after: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
