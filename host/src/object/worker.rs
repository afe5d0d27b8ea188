//! Takes jobs and sees them through. A panic costs one object one attempt.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::host::Host;
use super::memory::Memory;
use super::outcome::{Next, Outcome};
use super::parents::{Parent, ParentKey};
use super::queue::{Job, Lane};
use super::retry::Retry;
use super::status::{self, Written};
use super::walk::walk;
use super::{examine, report};
use crate::clock;
use crate::metrics::Reconciled;

/// After a panic, which says nothing of when it would pass.
const AFTER_PANIC: Duration = Duration::from_secs(30);

/// What workers know of the objects between two jobs.
#[derive(Default)]
struct Ledger {
    entries: Mutex<HashMap<ParentKey, Entry>>,
}

#[derive(Default)]
struct Entry {
    memory: Memory,
    /// Of the last walk that came to one.
    outcome: Option<Outcome>,
}

pub(crate) fn start(host: &Arc<Host>, workers: usize, tasks: &mut JoinSet<()>) {
    let ledger = Arc::new(Ledger::default());
    host.queue.open();
    for controller in &host.serving().controllers {
        controller.max_concurrent(workers);
    }
    for _ in 0..workers {
        tasks.spawn(work(Arc::clone(host), Arc::clone(&ledger)));
    }
}

async fn work(host: Arc<Host>, ledger: Arc<Ledger>) {
    loop {
        let job = host.queue.take().await;
        let started = clock::instant();
        let metrics = host.controller(job.key.kind).filter(|_| job.lane == Lane::Walk);
        if let Some(metrics) = &metrics {
            metrics.started();
        }
        let result = AssertUnwindSafe(one(&host, &ledger, &job)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(namespace = %job.key.namespace, name = %job.key.name, "panicked; tried again in {AFTER_PANIC:?}");
            host.queue.add_at(job.key.clone(), Lane::Walk, clock::instant() + AFTER_PANIC);
            Reconciled::Error
        });
        if let Some(metrics) = metrics {
            metrics.finished(result, clock::since(started));
        }
        host.queue_metrics.worked(clock::since(started));
        host.queue.done(&job.key);
    }
}

async fn one(host: &Host, ledger: &Ledger, job: &Job<ParentKey>) -> Reconciled {
    let key = &job.key;
    let Some(parent) = host.parents.get(key) else {
        drop(host.desk.take(key));
        let known = ledger.entries.lock().remove(key);
        if let Some(Entry { mut memory, .. }) = known {
            host.census.count(&mut memory.plugin, None);
            host.forget(key, &memory.uid);
        }
        return Reconciled::Success;
    };
    // Taken out while the object is in hand; one of the same name with another UID begins anew.
    let known = ledger.entries.lock().remove(key);
    let Entry { mut memory, mut outcome } = match known {
        Some(entry) if entry.memory.uid == parent.id.uid => entry,
        other => {
            let plugin = other.and_then(|entry| entry.memory.plugin);
            Entry { memory: Memory { uid: parent.id.uid.clone(), plugin, ..Memory::default() }, outcome: None }
        }
    };
    let result = match job.lane {
        Lane::Walk => {
            if memory.generation != parent.generation {
                memory.generation = parent.generation;
                outcome = None;
            }
            examine::answer(host, key, &parent, &mut memory).await;
            let next = walk(host, key, &parent, &mut memory, &mut outcome).await;
            plan(host, key, &parent, &mut memory, next)
        }
        Lane::Report => {
            // Of an edit that was not walked yet there is nothing to tell.
            if let Some(outcome) = outcome.as_ref().filter(|_| memory.generation == parent.generation) {
                tell(host, key, &parent, &mut memory, outcome).await;
            }
            Reconciled::Success
        }
    };
    if host.parents.get(key).is_some() {
        ledger.entries.lock().insert(key.clone(), Entry { memory, outcome });
    } else {
        host.census.count(&mut memory.plugin, None);
    }
    result
}

/// What a walk came to decides what is queued.
fn plan(host: &Host, key: &ParentKey, parent: &Parent, memory: &mut Memory, next: Next) -> Reconciled {
    let at = |delay: Duration| clock::instant() + delay;
    match next {
        Next::Settled(look_again) => {
            memory.attempts = 0;
            memory.failing = None;
            host.queue.add_at(key.clone(), Lane::Walk, look_again);
            host.queue.add(key.clone(), Lane::Report);
            Reconciled::Success
        }
        Next::Again => {
            memory.attempts = 0;
            memory.failing = None;
            host.queue.add(key.clone(), Lane::Walk);
            Reconciled::Requeue
        }
        Next::Later(delay) => {
            host.queue.add_at(key.clone(), Lane::Walk, at(delay));
            host.queue.add(key.clone(), Lane::Report);
            Reconciled::RequeueAfter
        }
        Next::Rest => {
            if let Some(resync) = memory.resync_at.filter(|at| *at > clock::instant()) {
                host.queue.add_at(key.clone(), Lane::Walk, resync);
            }
            host.queue.add(key.clone(), Lane::Report);
            Reconciled::Success
        }
        Next::Stopped(stop) => {
            let backed_off = stop.retry.delay(memory.attempts).map(at);
            // A policy may have changed that refused it for good.
            let resync = memory.resync_at.filter(|at| *at > clock::instant());
            if let Some(again) = backed_off.into_iter().chain(stop.again).chain(resync).min() {
                host.queue.add_at(key.clone(), Lane::Walk, again);
                host.queue_metrics.retried();
            }
            host.queue.add(key.clone(), Lane::Report);
            tracing::debug!(namespace = %parent.id.namespace, name = %parent.id.name, reason = stop.reason, retry = stop.retry.label(), attempt = memory.attempts, "{}", stop.message);
            Reconciled::Error
        }
    }
}

/// Status, then Event and log line.
async fn tell(host: &Host, key: &ParentKey, parent: &Parent, memory: &mut Memory, outcome: &Outcome) {
    let resource = host.resource_of(key);
    // Of an object that goes nothing is told but its finalization.
    let Some(resource) = resource.filter(|_| !parent.deleting || parent.is_held()) else { return };
    match status::write(host, key, parent, &resource, memory, outcome).await {
        Ok(Written::Held(until)) => host.queue.add_at(key.clone(), Lane::Report, until),
        Ok(Written::Gone) => return,
        Ok(Written::Unchanged | Written::Done | Written::NoSubresource) => memory.report.attempts = 0,
        Err(error) => {
            let retry = if error.is_forbidden() || error.is_invalid() { Retry::Blocked } else { Retry::Passing };
            if memory.report.attempts == 0 && !error.is_unreachable() {
                tracing::warn!(namespace = %parent.id.namespace, name = %parent.id.name, "no status: {error}");
            }
            if let Some(delay) = retry.delay(memory.report.attempts) {
                host.queue.add_at(key.clone(), Lane::Report, clock::instant() + delay);
            }
            memory.report.attempts = memory.report.attempts.saturating_add(1);
        }
    }
    report::say(host, parent, memory).await;
}
