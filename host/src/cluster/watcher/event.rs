//! What a stream is asked for, what it hands over, and what it says of itself.

use std::time::Duration;

use crate::cluster::error::ApiError;
use crate::cluster::meta::ObjectView;
use crate::cluster::resource::Resource;
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
    /// How often the watch was opened. A server that is told of another schema for the kind ends its watches.
    pub opened: u64,
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

/// From the table of limits; shorter in tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) silence: Duration,
    pub(super) short: Duration,
    pub(super) backoff: (Duration, Duration),
    pub(super) forbidden: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            silence: limits::WATCH_SILENCE,
            short: limits::WATCH_SHORT,
            backoff: limits::WATCH_BACKOFF,
            forbidden: limits::WATCH_FORBIDDEN,
        }
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

    pub(super) fn of(error: &ApiError) -> Self {
        let message = error.to_string();
        match error.refusal() {
            Some(refusal) if refusal.by_kubernetes && refusal.code == 403 => Self::Forbidden(message),
            Some(refusal) if refusal.by_kubernetes && refusal.code == 404 => Self::Missing(message),
            _ => Self::Unreachable(message),
        }
    }
}
