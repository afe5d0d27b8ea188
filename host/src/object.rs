//! The object walk: one custom resource, each time it may need work.
//!
//! ```text
//! watch → dispatch → gather → look → render → check → kept → secrets → own → apply → prune → status → report
//!                                                                   (the second lane) ┘
//! ```
//!
//! Modules stand in this order behind the data that they share. Each step has
//! an error of its own; `walk` decides in one place what users read, what
//! metrics count and when it is tried again; `worker` does it for one object
//! after the other.

mod retry;
mod quantity;
mod data;
mod record;
mod fields;
mod readiness;
mod failed;
mod queue;
mod children;
mod related;
mod failures;
mod reduction;
mod words;
mod parents;
mod namespaces;
mod kinds;
mod slots;
mod gate;
mod census;
mod structure;
mod refusal;
mod fight;
mod tries;
mod memory;
mod serving;
mod desk;
mod host;
mod again;
mod watch;
mod dispatch;
mod gather;
mod render;
mod note;
mod finalizer;
mod kept;
mod in_place;
mod strategy;
mod own;
mod secrets;
mod look;
mod apply;
mod prune;
mod outcome;
mod status;
mod report;
mod vigil;
mod news;
mod failure;
mod ask;
mod answer;
mod examine;
mod pause;
mod shadow;
mod finalize;
mod walk;
mod worker;

use std::sync::Arc;

use tokio::task::JoinSet;

pub use host::{Host, Settings, Unmet};
pub use shadow::{Change, Effect, Field, Shadowed, Verdict};

/// Starts the watches and the workers; all end with the set.
///
/// After [`stand_by`] too: everything is listed once more before an object is
/// walked, for a cache that lags behind the last leader's writes would have
/// them undone.
pub fn start(host: &Arc<Host>, workers: usize) -> JoinSet<()> {
    let mut tasks = watch::start(host);
    vigil::start(host, &mut tasks);
    worker::start(host, workers, &mut tasks);
    tasks
}

/// Watches, and does nothing: the caches are warm when this host comes to lead.
pub fn stand_by(host: &Arc<Host>) -> JoinSet<()> {
    watch::start(host)
}
