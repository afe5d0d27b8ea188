//! What is to be done next. One entry an object, whatever happened to it.
//!
//! * An object is in the hands of one worker at most; what arrives meanwhile
//!   is done once more afterwards.
//! * Two lanes: `Walk` (children) goes before `Report` (status and Event), so
//!   that a backlog makes children first. One report in [`REPORT_SHARE`] takes
//!   precedence, so that it still comes through.
//! * A delay is a deadline: the earliest one for an object and lane counts.
//! * Before it is opened it takes nothing: a host that stands by has no backlog.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock;
use crate::clock::Instant;
use crate::limits::REPORT_SHARE;
use crate::metrics::QueueMetrics;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Lane {
    Walk,
    Report,
}

/// Taken from the queue; must be given back by [`Queue::done`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Job<K> {
    pub key: K,
    pub lane: Lane,
    /// When it became due.
    pub since: Instant,
}

pub(crate) struct Queue<K> {
    inner: Mutex<Inner<K>>,
    /// A job is ready, or the earliest deadline has moved.
    changed: Notify,
}

struct Inner<K> {
    open: bool,
    entries: HashMap<K, Entry>,
    ready: [VecDeque<K>; 2],
    delayed: BTreeSet<(Instant, Lane, K)>,
    /// Walks handed out since the last report, while reports waited.
    passed_over: u32,
    metrics: QueueMetrics,
}

#[derive(Default)]
struct Entry {
    lanes: [Slot; 2],
    running: bool,
}

#[derive(Default, Clone, Copy)]
struct Slot {
    /// Due since.
    ready: Option<Instant>,
    /// Whether it stands in the ready list (an entry in hand does not).
    listed: bool,
    delayed: Option<Instant>,
}

// === impl Queue ===

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    pub(crate) fn new(metrics: QueueMetrics) -> Self {
        Self {
            inner: Mutex::new(Inner {
                open: false,
                entries: HashMap::new(),
                ready: [VecDeque::new(), VecDeque::new()],
                delayed: BTreeSet::new(),
                passed_over: 0,
                metrics,
            }),
            changed: Notify::new(),
        }
    }

    /// From now on it takes what it is given.
    pub(crate) fn open(&self) {
        self.inner.lock().open = true;
    }

    /// Due now.
    pub(crate) fn add(&self, key: K, lane: Lane) {
        self.inner.lock().make_ready(key, lane, clock::instant());
        self.changed.notify_one();
    }

    /// Due at `at`, unless it is due earlier already.
    pub(crate) fn add_at(&self, key: K, lane: Lane, at: Instant) {
        self.inner.lock().delay(key, lane, at);
        self.changed.notify_one();
    }

    /// Waits for the next job.
    pub(crate) async fn take(&self) -> Job<K> {
        loop {
            let changed = self.changed.notified();
            let next = {
                let mut inner = self.inner.lock();
                inner.wake(clock::instant());
                if let Some(job) = inner.take() {
                    if !inner.ready.iter().all(VecDeque::is_empty) {
                        self.changed.notify_one();
                    }
                    return job;
                }
                inner.delayed.first().map(|(at, ..)| *at)
            };
            match next {
                Some(at) => {
                    tokio::select! { () = changed => {}, () = clock::sleep_until(at) => {} }
                }
                None => changed.await,
            }
        }
    }

    /// The worker is through with it.
    pub(crate) fn done(&self, key: &K) {
        self.inner.lock().done(key);
        self.changed.notify_one();
    }
}

// === impl Inner ===

impl<K: Clone + Eq + Hash + Ord> Inner<K> {
    fn make_ready(&mut self, key: K, lane: Lane, since: Instant) {
        if !self.open {
            return;
        }
        let entry = self.entries.entry(key.clone()).or_default();
        let running = entry.running;
        let slot = entry.slot(lane);
        if let Some(at) = slot.delayed.take() {
            self.delayed.remove(&(at, lane, key.clone()));
        }
        slot.ready.get_or_insert(since);
        if !running && !slot.listed {
            slot.listed = true;
            self.list(lane).push_back(key);
            self.metrics.added();
        }
    }

    fn delay(&mut self, key: K, lane: Lane, at: Instant) {
        if !self.open {
            return;
        }
        let slot = self.entries.entry(key.clone()).or_default().slot(lane);
        if slot.ready.is_some() || slot.delayed.is_some_and(|earlier| earlier <= at) {
            return;
        }
        if let Some(later) = slot.delayed.replace(at) {
            self.delayed.remove(&(later, lane, key.clone()));
        }
        self.delayed.insert((at, lane, key));
    }

    /// Moves what has become due to the ready lists.
    fn wake(&mut self, now: Instant) {
        while let Some((at, lane, key)) = self.delayed.first().cloned() {
            if at > now {
                break;
            }
            self.make_ready(key, lane, at);
        }
    }

    fn take(&mut self) -> Option<Job<K>> {
        let [walks, reports] = &self.ready;
        let lane = match (walks.is_empty(), reports.is_empty()) {
            (true, true) => return None,
            (true, false) => Lane::Report,
            (false, true) => Lane::Walk,
            (false, false) if self.passed_over >= REPORT_SHARE => Lane::Report,
            (false, false) => Lane::Walk,
        };
        self.passed_over = if lane == Lane::Report || reports.is_empty() { 0 } else { self.passed_over + 1 };
        let key = self.list(lane).pop_front()?;
        let entry = self.entries.get_mut(&key)?;
        entry.running = true;
        // The other lane's turn comes when this one is done.
        let other = if lane == Lane::Walk { Lane::Report } else { Lane::Walk };
        let unlist = std::mem::take(&mut entry.slot(other).listed);
        let slot = entry.slot(lane);
        slot.listed = false;
        let since = slot.ready.take()?;
        if unlist {
            self.list(other).retain(|listed| *listed != key);
            self.metrics.dropped();
        }
        self.metrics.taken(clock::since(since));
        Some(Job { key, lane, since })
    }

    fn done(&mut self, key: &K) {
        let MapEntry::Occupied(mut occupied) = self.entries.entry(key.clone()) else { return };
        occupied.get_mut().running = false;
        let mut idle = true;
        for lane in [Lane::Walk, Lane::Report] {
            let slot = occupied.get_mut().slot(lane);
            idle &= slot.ready.is_none() && slot.delayed.is_none();
            if slot.ready.is_some() && !slot.listed {
                slot.listed = true;
                self.metrics.added();
                let [walks, reports] = &mut self.ready;
                match lane {
                    Lane::Walk => walks.push_back(key.clone()),
                    Lane::Report => reports.push_back(key.clone()),
                }
            }
        }
        if idle {
            occupied.remove();
        }
    }

    fn list(&mut self, lane: Lane) -> &mut VecDeque<K> {
        let [walks, reports] = &mut self.ready;
        match lane {
            Lane::Walk => walks,
            Lane::Report => reports,
        }
    }
}

impl Entry {
    fn slot(&mut self, lane: Lane) -> &mut Slot {
        let [walk, report] = &mut self.lanes;
        match lane {
            Lane::Walk => walk,
            Lane::Report => report,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::Metrics;

    fn queue() -> Queue<&'static str> {
        let queue = Queue::new(Metrics::new().queue("test"));
        queue.add("early", Lane::Walk);
        queue.open();
        queue
    }

    fn taken(queue: &Queue<&'static str>) -> Option<(&'static str, Lane)> {
        let mut inner = queue.inner.lock();
        inner.wake(clock::instant());
        inner.take().map(|job| (job.key, job.lane))
    }

    #[test]
    fn an_object_is_queued_once_and_held_by_one_worker() {
        let queue = queue();
        queue.add("a", Lane::Walk);
        queue.add("a", Lane::Walk);
        assert_eq!(taken(&queue), Some(("a", Lane::Walk)));
        queue.add("a", Lane::Walk);
        queue.add("a", Lane::Report);
        assert_eq!(taken(&queue), None, "in hand");
        queue.done(&"a");
        assert_eq!(taken(&queue), Some(("a", Lane::Walk)), "what came meanwhile is done once more");
        queue.done(&"a");
        assert_eq!(taken(&queue), Some(("a", Lane::Report)));
        queue.done(&"a");
        assert_eq!(taken(&queue), None);
        assert!(queue.inner.lock().entries.is_empty(), "nothing is kept of an idle object");
    }

    #[test]
    fn walks_go_before_reports_but_do_not_starve_them() {
        let queue = queue();
        queue.add("r", Lane::Report);
        let names: Vec<&'static str> = (0..40).map(|i| &*Box::leak(format!("w{i}").into_boxed_str())).collect();
        for name in names {
            queue.add(name, Lane::Walk);
        }
        let order: Vec<_> = std::iter::from_fn(|| taken(&queue)).map(|(key, _)| key).collect();
        assert_eq!(order.iter().position(|key| *key == "r"), Some(REPORT_SHARE as usize));
        assert_eq!(order.len(), 41);
    }

    #[tokio::test]
    async fn the_earliest_deadline_counts() {
        let queue = queue();
        let start = clock::instant();
        queue.add_at("a", Lane::Walk, start + Duration::from_secs(600));
        queue.add_at("a", Lane::Walk, start + Duration::from_millis(5));
        queue.add_at("a", Lane::Walk, start + Duration::from_secs(900));
        let job = queue.take().await;
        assert_eq!((job.key, job.since - start), ("a", Duration::from_millis(5)));
        queue.done(&"a");
        assert_eq!(taken(&queue), None);
        assert!(queue.inner.lock().delayed.is_empty());
    }

    #[test]
    fn being_due_now_ends_a_delay() {
        let queue = queue();
        queue.add_at("a", Lane::Walk, clock::instant() + Duration::from_secs(600));
        queue.add("a", Lane::Walk);
        assert_eq!(taken(&queue), Some(("a", Lane::Walk)));
        queue.done(&"a");
        assert!(queue.inner.lock().entries.is_empty() && queue.inner.lock().delayed.is_empty());
    }
}
