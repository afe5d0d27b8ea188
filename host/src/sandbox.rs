//! Runs a plugin: engine, limits, one fresh store for each call, and the
//! contract in the host's own types. The only layer that knows wasmtime.
//!
//! ```text
//! engine → imports → contract → component → store: one call → json
//! ```
//! Every limit is set before a guest's first instruction, which may stand in a
//! start function. Calls block: make them from a blocking thread.

pub mod model;
mod engine;
mod store;
mod imports;
mod json;
mod contract;
mod component;
pub mod compiler;

pub use compiler::Compiler;
pub use component::{Component, Hooks, LoadError};
pub use engine::{Engine, EngineError};
pub use model::{
    CallError, Child, ChildKind, Children, Condition, Discriminator, Explanation, Failure, FailureClass,
    GeneratedSecret, KindRef, LogLine, Manifest, ObservedChild, RelatedObject, Rendered, Rendering, Request, Retention,
    SecretKey, SecretRevision, SecretValue, Serving, Usage,
};
