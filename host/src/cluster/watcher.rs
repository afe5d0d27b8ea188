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

mod event;
mod lines;
mod stream;

use std::collections::HashSet;

use tokio::sync::watch as cell;

pub use event::{Watch, WatchEvent, WatchProblem, WatchState};

use event::Timing;
use stream::Stream;

use super::client::Api;

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
    let stream = Stream {
        api,
        watch,
        timing,
        name,
        on_event,
        state: sender,
        listed: false,
        opened: 0,
        refused: None,
        said: HashSet::new(),
    };
    let task = tokio::spawn(stream.run()).abort_handle();
    WatchHandle { state, task }
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
