//! Runs a plugin: engine, limits, one fresh store for each call, and the
//! contract in the host's own types. The only layer that knows wasmtime.
//!
//! ```text
//! engine → compiler → log, frames, world → store: one call → imports, wasi → json → contract → component
//! ```
//! Every limit is set before a guest's first instruction, which may stand in a
//! start function. Calls block: make them from a blocking thread,
//! but for `render_quickly`.

mod text;
pub mod model;
mod cache;
mod engine;
pub mod compiler;
mod log;
mod frames;
mod printed;
mod world;
mod store;
mod imports;
mod wasi;
mod json;
mod contract;
mod component;

pub use cache::{Cache, CacheError, Counts};
pub use component::{Component, Size, interfaces};
pub use engine::{Compiler, Engine, EngineError};
pub use model::{
    Asked, CallError, Child, ChildKind, Children, Condition, Discriminator, Explanation, Failure, FailureClass,
    Finalization, Finalized, GeneratedSecret, Hooks, KindRef, LoadError, LogLine, Manifest, ObservedChild,
    RelatedObject, RelatedQuery, Rendered, Rendering, Request, Retention, SecretKey, SecretRevision, SecretValue,
    Selection, Serving, Usage,
};
