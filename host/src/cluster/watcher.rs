//! One stream of one kind: list, watch, mend, for ever.
//!
//! Guarantees: between `ListStarted` and `ListDone` comes everything that there
//! is; whatever the consumer has and was not listed is gone. After that each
//! change comes at least once, in the server's order for one object. A stream
//! that breaks goes on where it was; where the server has forgotten that point
//! (410 at the start of a watch, as an ERROR event, in the middle of a list) it
//! lists anew. A stream that is silent for too long is asked for anew too.
//!
//! Assumes a consumer that is quick: it runs on the stream's own task.
//! Errors are never given up on and end in `WatchState`, with a back-off of this
//! stream's own.

mod stream;
mod lines;

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::watch as cell;

use self::stream::Stream;
use super::client::Api;
use super::error::ApiError;
use super::meta::ObjectView;
use super::resource::Resource;
use crate::limits;

/// What to watch. No namespace: all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub resource: Resource,
    pub namespace: Option<String>,
    pub selector: Option<String>,
}

#[derive(Debug)]
pub enum WatchEvent<'a> {
    ListStarted,
    Listed(&'a ObjectView<'a>),
    /// What was not listed is gone.
    ListDone {
        resource_version: &'a str,
    },
    /// Made or changed; may come again though nothing has changed.
    Changed(&'a ObjectView<'a>),
    /// Gone, in its last state.
    Deleted(&'a ObjectView<'a>),
}

/// What readiness and gating ask of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WatchState {
    /// A whole list was handed over, and the server has not said since that we may not see it or that there is no such
    /// kind. A broken connection leaves it: what was seen is still worth acting on.
    pub filled: bool,
    /// What keeps the stream from going on now.
    pub problem: Option<WatchProblem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchProblem {
    /// The server forbids it (403).
    Forbidden(String),
    /// A server that answers says that it does not serve the kind.
    Missing(String),
    /// Everything else: no connection, no answer, no valid token, a 5xx.
    Unreachable(String),
}

/// Dropping it ends the stream.
#[derive(Debug)]
pub struct WatchHandle {
    state: cell::Receiver<WatchState>,
    task: tokio::task::AbortHandle,
}

/// Starts the stream on a task of its own.
pub fn watch(api: Api, watch: Watch, on_event: impl FnMut(WatchEvent<'_>) + Send + 'static) -> WatchHandle {
    start(api, watch, Timing::default(), on_event)
}

fn start(api: Api, watch: Watch, timing: Timing, on_event: impl FnMut(WatchEvent<'_>) + Send + 'static) -> WatchHandle {
    let (sender, state) = cell::channel(WatchState::default());
    let name = watch.resource.dotted();
    api.metrics().watch_state(&name, None, Some(WatchState::default().label()));
    let stream = Stream { api, watch, timing, name, on_event, state: sender, listed: false, said: HashSet::new() };
    let task = tokio::spawn(stream.run()).abort_handle();
    WatchHandle { state, task }
}

/// From the table of limits; shorter in tests.
#[derive(Clone, Copy, Debug)]
struct Timing {
    silence: Duration,
    short: Duration,
    backoff: (Duration, Duration),
}

impl Default for Timing {
    fn default() -> Self {
        Self { silence: limits::WATCH_SILENCE, short: limits::WATCH_SHORT, backoff: limits::WATCH_BACKOFF }
    }
}

// === impl WatchState ===

impl WatchState {
    /// Filled, or it is known why not: nothing that waiting a little would change.
    pub fn is_classified(&self) -> bool {
        self.filled || matches!(self.problem, Some(WatchProblem::Forbidden(_) | WatchProblem::Missing(_)))
    }

    /// The metric's label.
    pub fn label(&self) -> &'static str {
        match (&self.problem, self.filled) {
            (Some(WatchProblem::Forbidden(_)), _) => "forbidden",
            (Some(WatchProblem::Missing(_)), _) => "missing",
            (Some(WatchProblem::Unreachable(_)), _) => "unreachable",
            (None, true) => "filled",
            (None, false) => "starting",
        }
    }
}

impl WatchProblem {
    pub fn message(&self) -> &str {
        match self {
            Self::Forbidden(message) | Self::Missing(message) | Self::Unreachable(message) => message,
        }
    }

    fn of(error: &ApiError) -> Self {
        let message = error.to_string();
        match error.refusal() {
            Some(refusal) if refusal.by_kubernetes && refusal.code == 403 => Self::Forbidden(message),
            Some(refusal) if refusal.by_kubernetes && refusal.code == 404 => Self::Missing(message),
            _ => Self::Unreachable(message),
        }
    }
}

// === impl WatchHandle ===

impl WatchHandle {
    pub fn state(&self) -> cell::Receiver<WatchState> {
        self.state.clone()
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests;
