//! One stream of one kind: list, watch, mend, for ever.
//!
//! Guarantees: between `ListStarted` and `ListDone` comes everything that there
//! is; whatever the consumer has and was not listed is gone. After that each
//! change comes at least once, in the server's order for one object. A stream
//! that breaks goes on where it was; where the server has forgotten that point
//! (410 at the start of a watch, as an ERROR event, in the middle of a list) it
//! lists anew. Silence longer than the server's bookmarks allow is a break.
//!
//! Assumes a consumer that is quick: it runs on the stream's own task.
//! Errors are never given up on and end in `WatchState`, with a back-off of this
//! stream's own.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch as cell;
use tokio::time::{Instant, sleep, timeout};

use super::backoff::{Backoff, spread};
use super::client::{Api, ListMetadata, ListPage};
use super::error::{ApiError, ApiErrorKind, Refusal, in_words};
use super::meta::{ObjectView, ViewError};
use super::resource::Resource;
use super::transport::ResponseBody;
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
    let (sender, state) = cell::channel(WatchState::default());
    let name = watch.resource.dotted();
    api.metrics().watch_state(&name, None, Some(WatchState::default().label()));
    let stream = Stream { api, watch, name, on_event, state: sender, listed: false, said: HashSet::new() };
    let task = tokio::spawn(stream.run()).abort_handle();
    WatchHandle { state, task }
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

// === The stream ===

struct Stream<F> {
    api: Api,
    watch: Watch,
    name: String,
    on_event: F,
    state: cell::Sender<WatchState>,
    /// A whole list was handed over and what it said still holds.
    listed: bool,
    /// Unreadable objects that were said, by hash.
    said: HashSet<u64>,
}

/// How one list or one watch ended.
enum End {
    /// A list at its end, a watch at the server's time-out: go on from this version at once.
    Normal(String),
    /// Go on from this version, after a delay.
    Broken(String, ApiError),
    /// What we know is too old or cannot be trusted: list anew, after a delay.
    Relist(ApiError),
}

impl<F: FnMut(WatchEvent<'_>) + Send> Stream<F> {
    async fn run(mut self) {
        let mut backoff = Backoff::new(limits::WATCH_BACKOFF);
        let mut version = None;
        loop {
            let step = async {
                match version.take() {
                    None => self.list().await,
                    Some(version) => self.follow(version, &mut backoff).await,
                }
            };
            let end = AssertUnwindSafe(step).catch_unwind().await;
            let end = end.unwrap_or_else(|_| End::Relist(self.broken("the consumer of the stream panicked")));
            let error = match end {
                End::Normal(from) => {
                    version = Some(from);
                    continue;
                }
                End::Broken(from, error) => {
                    version = Some(from);
                    error
                }
                End::Relist(error) => error,
            };
            self.problem(&error);
            let asked = error.retry_after().unwrap_or_default().min(limits::WATCH_BACKOFF.1);
            sleep(backoff.next_delay().max(asked)).await;
        }
    }

    async fn list(&mut self) -> End {
        let mut token = String::new();
        loop {
            let Watch { resource, namespace, selector } = &self.watch;
            let page = self.api.list(resource, namespace.as_deref(), selector.as_deref(), &token).await;
            let first = token.is_empty();
            let done = match page.and_then(|page| self.page(&page, first)) {
                Ok(metadata) => metadata,
                Err(error) => return End::Relist(error),
            };
            token = done.r#continue;
            if token.is_empty() {
                (self.on_event)(WatchEvent::ListDone { resource_version: &done.resource_version });
                self.listed = true;
                self.going();
                return End::Normal(done.resource_version);
            }
        }
    }

    fn page(&mut self, page: &Bytes, first: bool) -> Result<ListMetadata, ApiError> {
        let page: ListPage<'_> = serde_json::from_slice(page).map_err(|error| self.unreadable(&error))?;
        if first {
            (self.on_event)(WatchEvent::ListStarted);
        }
        for raw in page.items.unwrap_or_default() {
            match ObjectView::parse(raw) {
                Ok(object) => (self.on_event)(WatchEvent::Listed(&object)),
                Err(error) => self.skip(raw, &error),
            }
        }
        Ok(page.metadata)
    }

    async fn follow(&mut self, mut version: String, backoff: &mut Backoff) -> End {
        let started = Instant::now();
        let Watch { resource, namespace, selector } = &self.watch;
        let server = spread(limits::WATCH_SERVER, 0.25);
        let opened = self.api.open_watch(resource, namespace.as_deref(), selector.as_deref(), &version, server).await;
        let mut body = match opened {
            Ok(body) => body,
            // Gone, missing, or a version that the server cannot read. Else it says nothing against our version.
            Err(error) if matches!(error.code(), Some(400 | 404 | 410)) => return End::Relist(error),
            Err(error) => return End::Broken(version, error),
        };
        self.going();
        let mut lines = Lines::default();
        let mut brought = false;
        let broken = loop {
            let data = match next(&mut body).await {
                Ok(Some(data)) => data,
                Ok(None) => break None,
                Err(kind) => break Some(self.error(kind)),
            };
            let read = lines.push(&data, |line| {
                self.line(line, &mut version)?;
                brought = true;
                Ok(())
            });
            if let Err(error) = read {
                return End::Relist(error);
            }
            if brought {
                backoff.reset();
            }
        };
        let short = !brought && started.elapsed() < limits::WATCH_SHORT;
        if !short {
            backoff.reset();
        }
        match broken {
            None if short => End::Broken(version, self.broken("the server ended the watch at once")),
            None => End::Normal(version),
            Some(error) => End::Broken(version, error),
        }
    }

    /// One event. An error means that the stream cannot be trusted to go on.
    fn line(&mut self, line: &[u8], version: &mut String) -> Result<(), ApiError> {
        let Line { kind, object: raw } = serde_json::from_slice(line).map_err(|error| self.unreadable(&error))?;
        if kind == "ERROR" {
            let refusal = Refusal::from_status(raw.get().as_bytes()).unwrap_or_default();
            return Err(self.error(ApiErrorKind::Status(refusal)));
        }
        let object = match ObjectView::parse(raw) {
            Ok(object) => object,
            Err(error) => {
                self.skip(raw, &error);
                return Ok(());
            }
        };
        if !object.resource_version.is_empty() {
            version.clear();
            version.push_str(&object.resource_version);
        }
        match &*kind {
            "ADDED" | "MODIFIED" => (self.on_event)(WatchEvent::Changed(&object)),
            "DELETED" => (self.on_event)(WatchEvent::Deleted(&object)),
            // A bookmark, or what a later server adds.
            _ => {}
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The next bytes of the stream, none at its end.
async fn next(body: &mut ResponseBody) -> Result<Option<Bytes>, ApiErrorKind> {
    let frame = timeout(limits::WATCH_SILENCE, body.frame()).await;
    match frame.map_err(|_| ApiErrorKind::Timeout(limits::WATCH_SILENCE))? {
        None => Ok(None),
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(error)) => Err(ApiErrorKind::Connect(in_words(&*error))),
    }
}

// === State, log and metric ===

impl<F> Stream<F> {
    fn error(&self, kind: ApiErrorKind) -> ApiError {
        let Watch { resource, namespace, selector: _ } = &self.watch;
        ApiError::new(format!("watch {}", resource.describe(namespace.as_deref(), None, None)), kind)
    }

    fn broken(&self, what: &str) -> ApiError {
        self.error(ApiErrorKind::Connect(what.to_owned()))
    }

    fn unreadable(&self, error: &serde_json::Error) -> ApiError {
        self.error(ApiErrorKind::Decode(error.to_string()))
    }

    fn going(&mut self) {
        self.say(WatchState { filled: self.listed, problem: None });
    }

    fn problem(&mut self, error: &ApiError) {
        // The point is lost, but what was seen is as good as with any other break.
        if error.is_expired() {
            tracing::info!(kind = self.name, namespace = self.watch.namespace, %error, "watch starts anew");
            return;
        }
        let problem = WatchProblem::of(error);
        let filled = match &problem {
            WatchProblem::Unreachable(_) => self.listed,
            WatchProblem::Forbidden(_) => false,
            WatchProblem::Missing(_) => {
                self.listed = false;
                false
            }
        };
        self.say(WatchState { filled, problem: Some(problem) });
    }

    /// One log line for each change, not for each try.
    fn say(&mut self, new: WatchState) {
        let (from, to) = (self.state.borrow().label(), new.label());
        let kind = self.name.as_str();
        let namespace = self.watch.namespace.as_deref();
        if from != to {
            self.api.metrics().watch_state(kind, Some(from), Some(to));
            match &new.problem {
                None => tracing::info!(kind, namespace, "watch is {to}"),
                Some(problem) => tracing::warn!(kind, namespace, error = problem.message(), "watch is {to}"),
            }
        }
        self.state.send_if_modified(|state| {
            let modified = *state != new;
            *state = new;
            modified
        });
    }

    /// One bad object must not stop the rest. Said once, not at each of its events.
    fn skip(&mut self, raw: &RawValue, error: &ViewError) {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Named {
            metadata: serde_json::Map<String, serde_json::Value>,
        }
        let Named { metadata } = serde_json::from_str(raw.get()).unwrap_or_default();
        let part = |key: &str| metadata.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        let (name, namespace) = (part("name"), part("namespace"));
        let mut hasher = DefaultHasher::new();
        (name, namespace, error.to_string()).hash(&mut hasher);
        if self.said.len() >= limits::WATCH_SAID {
            self.said.clear();
        }
        if self.said.insert(hasher.finish()) {
            tracing::warn!(kind = self.name, namespace, name, %error, "object is skipped");
        }
    }
}

impl<F> Drop for Stream<F> {
    fn drop(&mut self) {
        self.api.metrics().watch_state(&self.name, Some(self.state.borrow().label()), None);
    }
}

// === Lines ===

/// Lines out of chunks that end anywhere.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn push(&mut self, mut data: &[u8], mut each: impl FnMut(&[u8]) -> Result<(), ApiError>) -> Result<(), ApiError> {
        while let Some((line, rest)) = memchr::memchr(b'\n', data).and_then(|end| data.split_at_checked(end)) {
            data = rest.get(1..).unwrap_or_default();
            if self.rest.is_empty() {
                if !line.is_empty() {
                    each(line)?;
                }
                continue;
            }
            self.rest.extend_from_slice(line);
            each(&self.rest)?;
            self.rest.clear();
            // One large object must not keep its size for the life of the stream.
            self.rest.shrink_to(limits::WATCH_LINE_KEPT);
        }
        if self.rest.len() + data.len() > limits::WATCH_LINE_BYTES {
            let what = format!("a line of a watch is larger than {} bytes", limits::WATCH_LINE_BYTES);
            return Err(ApiError::new("watch", ApiErrorKind::Decode(what)));
        }
        self.rest.extend_from_slice(data);
        Ok(())
    }
}
