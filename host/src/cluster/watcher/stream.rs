//! The loop of one stream: list, follow, and what each kind of break leads to.

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

use super::event::{Timing, Watch, WatchEvent, WatchProblem, WatchState};
use super::lines::{Lines, TooLong};
use crate::cluster::backoff::{Backoff, spread};
use crate::cluster::client::Api;
use crate::cluster::error::{ApiError, ApiErrorKind, Refusal, in_words};
use crate::cluster::meta::{ObjectView, ViewError};
use crate::cluster::transport::ResponseBody;
use crate::limits;

pub(super) struct Stream<F> {
    pub(super) api: Api,
    pub(super) watch: Watch,
    pub(super) timing: Timing,
    pub(super) name: String,
    pub(super) on_event: F,
    pub(super) state: cell::Sender<WatchState>,
    /// A whole list was handed over and what it said still holds.
    pub(super) listed: bool,
    /// How often the watch was opened.
    pub(super) opened: u64,
    /// Since when the server says that we may not.
    pub(super) refused: Option<Instant>,
    /// Unreadable objects that were said, by hash.
    pub(super) said: HashSet<u64>,
}

/// How one list or one watch ended.
enum End {
    /// A list at its end, a watch at the server's time-out or too quiet: go on from this version at once.
    Normal(String),
    /// Go on from this version, after a delay.
    Broken(String, ApiError),
    /// What we know is too old or cannot be trusted: list anew, after a delay.
    Relist(ApiError),
}

impl<F: FnMut(WatchEvent<'_>) + Send> Stream<F> {
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(self.timing.backoff);
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
            let asked = error.retry_after().unwrap_or_default().min(self.timing.backoff.1);
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
            let raw = raw.get();
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
        self.opened += 1;
        self.going();
        let mut lines = Lines::default();
        let mut brought = false;
        let broken = loop {
            let data = match timeout(self.timing.silence, next(&mut body)).await {
                Ok(Ok(Some(data))) => data,
                Ok(Ok(None)) => break None,
                Ok(Err(kind)) => break Some(self.error(kind)),
                // Dead, or a kind so quiet that even bookmarks are rare: ask anew, which tells.
                Err(_) => return End::Normal(version),
            };
            let read = lines.push(&data, |line| {
                self.line(line, &mut version).map_err(Untrusted::Event)?;
                brought = true;
                Ok(())
            });
            match read {
                Ok(()) => {}
                Err(Untrusted::Event(error)) => return End::Relist(error),
                Err(Untrusted::TooLong(error)) => {
                    return End::Relist(self.error(ApiErrorKind::Decode(error.to_string())));
                }
            }
            if brought {
                backoff.reset();
            }
        };
        let short = !brought && started.elapsed() < self.timing.short;
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
        let (kind, raw) = open(line).map_err(|error| self.unreadable(&error))?;
        if kind == "ERROR" {
            let refusal = Refusal::from_status(raw.as_bytes()).unwrap_or_default();
            return Err(self.error(ApiErrorKind::Status(refusal)));
        }
        let object = match ObjectView::parse(raw) {
            Ok(object) => object,
            Err(error) if error.is_syntax() => return Err(self.error(error.into())),
            Err(error) => {
                self.skip(raw, &error);
                return Ok(());
            }
        };
        if !object.resource_version.is_empty() {
            version.clear();
            version.push_str(&object.resource_version);
        }
        match kind {
            "ADDED" | "MODIFIED" => (self.on_event)(WatchEvent::Changed(&object)),
            "DELETED" => (self.on_event)(WatchEvent::Deleted(&object)),
            // A bookmark, or what a later server adds.
            _ => {}
        }
        Ok(())
    }
}

/// One page of a list; its items are borrowed from the answer.
#[derive(Deserialize)]
struct ListPage<'a> {
    metadata: ListMetadata,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    r#continue: String,
}

/// Takes an event apart. The server writes `{"type":T,"object":O}`: where a line looks like that, O is read once, by the
/// view, which also proves that it is one whole value; any other line is read twice.
fn open(line: &[u8]) -> Result<(&str, &str), serde_json::Error> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let usual = || {
        let line = std::str::from_utf8(line).ok()?.trim_ascii_end().strip_prefix(r#"{"type":""#)?.strip_suffix('}')?;
        let (kind, object) = line.split_once(r#"","object":"#)?;
        let simple = kind.bytes().all(|byte| byte.is_ascii_uppercase());
        (simple && object.starts_with('{') && object.ends_with('}')).then_some((kind, object))
    };
    match usual() {
        Some(found) => Ok(found),
        None => serde_json::from_slice::<Line<'_>>(line).map(|line| (line.kind, line.object.get())),
    }
}

/// Why the rest of a watch is not read.
enum Untrusted {
    Event(ApiError),
    TooLong(TooLong),
}

impl From<TooLong> for Untrusted {
    fn from(error: TooLong) -> Self {
        Self::TooLong(error)
    }
}

/// The next bytes of the stream, none at its end.
async fn next(body: &mut ResponseBody) -> Result<Option<Bytes>, ApiErrorKind> {
    match body.frame().await {
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
        self.refused = None;
        self.say(WatchState { filled: self.listed, problem: None, opened: self.opened });
    }

    fn problem(&mut self, error: &ApiError) {
        // The point is lost, but what was seen is as good as with any other break.
        if error.is_expired() {
            tracing::info!(kind = self.name, namespace = self.watch.namespace, %error, "watch starts anew");
            return;
        }
        let mut problem = WatchProblem::of(error);
        // A server that starts refuses everybody until it has read its roles.
        if let WatchProblem::Forbidden(message) = &problem
            && self.listed
            && self.refused.get_or_insert_with(Instant::now).elapsed() < self.timing.forbidden
        {
            problem = WatchProblem::Unreachable(message.clone());
        }
        let filled = match &problem {
            WatchProblem::Unreachable(_) => self.listed,
            WatchProblem::Forbidden(_) => false,
            WatchProblem::Missing(_) => {
                self.listed = false;
                false
            }
        };
        self.say(WatchState { filled, problem: Some(problem), opened: self.opened });
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
    fn skip(&mut self, raw: &str, error: &ViewError) {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Named {
            metadata: serde_json::Map<String, serde_json::Value>,
        }
        let Named { metadata } = serde_json::from_str(raw).unwrap_or_default();
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
