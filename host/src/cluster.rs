//! The API server, from below: bytes in, bytes out, each call with a time-out
//! and each watch a stream that mends itself.

pub mod error;
pub mod resource;
mod json;
pub mod meta;
pub mod backoff;
pub mod config;
pub mod fence;
pub mod transport;
pub mod client;
mod read;
mod write;
mod published;
pub mod lease;
pub mod watcher;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

pub use client::Api;
pub use config::ConnectError;
pub use error::{ApiError, ApiErrorKind, Cause, Refusal};
pub use fence::Fence;
pub use lease::{Candidate, Leader, Lost, Standing, Terms};
pub use meta::ObjectView;
pub use published::Published;
pub use resource::Resource;
pub use watcher::{Watch, WatchEvent, WatchHandle, WatchProblem, WatchState, watch};
