//! Which plugins fail with one object after the other, and who may ask them
//! meanwhile. Such a plugin gets one try at a time, ever more rarely, each with
//! another object; one success, or another version, and all go on as before.
//!
//! * A failure counts once for an object: one that fails again and again is no
//!   fault of the plugin.
//! * Whoever is sent away has a place in the line and is told when its turn
//!   comes; it keeps the place, so that each is tried in the end.
//! * Objects with children of their own stand in a line of theirs, and both
//!   lines take turns: those have worked before, and shall not wait behind
//!   thousands that never did.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::retry::spread;
use crate::clock::Instant;
use crate::limits::{FAILING_BACKOFF, FAILING_LATE, FAILING_OBJECTS, PASSING_BACKOFF};

/// By plugin name, of those that serve.
#[derive(Default)]
pub(crate) struct Gates {
    gates: Mutex<HashMap<String, Gate>>,
    /// Whoever only looks asks for every object, and each once.
    unguarded: AtomicBool,
}

/// A plugin, and what tells its versions apart: digest and revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version<'a> {
    pub plugin: &'a str,
    pub digest: &'a str,
    pub revision: u64,
}

/// What a call says of the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    Works,
    /// Nothing, either way.
    Unclear,
    /// By its own fault, for this reason.
    Fails(&'a str),
}

/// What is to be told after a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Same,
    /// From now on it is asked more rarely.
    Closed,
    /// It works again: these objects (UIDs) have waited.
    Opened(Vec<Box<str>>),
}

/// Not now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub again: Duration,
    /// What it failed for when that began.
    pub reason: String,
}

struct Gate {
    digest: String,
    revision: u64,
    /// UIDs of the objects that it failed with since it last worked.
    failed: HashSet<Box<str>>,
    closed: Option<Closed>,
}

struct Closed {
    reason: String,
    delay: Duration,
    /// Not before then is there another try.
    opens: Instant,
    /// The object that is tried, or was last.
    trial: Option<Box<str>>,
    line: Line,
}

/// Whose turn comes when: those with children, and those without.
#[derive(Default)]
struct Line {
    places: [BTreeSet<(Instant, Box<str>)>; 2],
    /// Of each object: its turn, and whether it has no children.
    turns: HashMap<Box<str>, (Instant, bool)>,
}

// === impl Gates ===

impl Gates {
    /// These serve from now on. Returns those of which another version does, and was failing.
    pub(crate) fn serve<'a>(&self, plugins: impl Iterator<Item = Version<'a>>) -> Vec<String> {
        let mut gates = self.gates.lock();
        let mut known = std::mem::take(&mut *gates);
        for version in plugins {
            let Version { plugin, digest, revision } = version;
            let gate = match known.entry(plugin.to_owned()) {
                Entry::Occupied(same) if same.get().is_of(version) => same.remove(),
                _ => Gate { digest: digest.to_owned(), revision, failed: HashSet::new(), closed: None },
            };
            gates.insert(plugin.to_owned(), gate);
        }
        let was_failing = |(name, gate): (String, Gate)| gate.closed.is_some().then_some(name);
        known.into_iter().filter_map(was_failing).collect()
    }

    /// From now on nobody is held back.
    pub(crate) fn unguard(&self) {
        self.unguarded.store(true, Ordering::Relaxed);
    }

    /// Whether this object may have its plugin asked now; one that is `bare` has no children.
    pub(crate) fn pass(
        &self,
        version: Version<'_>,
        object: &str,
        bare: impl FnOnce() -> bool,
        now: Instant,
    ) -> Result<(), Held> {
        if self.unguarded.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut gates = self.gates.lock();
        let gate = gates.get_mut(version.plugin).filter(|gate| gate.is_of(version));
        let Some(closed) = gate.and_then(|gate| gate.closed.as_mut()) else { return Ok(()) };
        // The same walk may ask more than once.
        if closed.trial.as_deref() == Some(object) {
            return Ok(());
        }
        if now >= closed.opens && closed.line.is_turn_of(object, now) {
            closed.line.leave(object);
            closed.trial = Some(object.into());
            closed.opens = now + closed.delay;
            return Ok(());
        }
        let turn = closed.line.turn(object, bare(), closed.opens, closed.delay, now);
        Err(Held { again: turn.saturating_duration_since(now), reason: closed.reason.clone() })
    }

    /// What a call came to that `pass` had let through.
    pub(crate) fn answered(&self, version: Version<'_>, object: &str, verdict: Verdict<'_>, now: Instant) -> Turn {
        let mut gates = self.gates.lock();
        // A call of an earlier version says nothing of this one.
        let Some(gate) = gates.get_mut(version.plugin).filter(|gate| gate.is_of(version)) else { return Turn::Same };
        let reason = match verdict {
            Verdict::Unclear => return Turn::Same,
            Verdict::Works => {
                gate.failed.clear();
                let waited = gate.closed.take().map(|closed| closed.line.turns.into_keys().collect());
                return waited.map_or(Turn::Same, Turn::Opened);
            }
            Verdict::Fails(reason) => reason,
        };
        match &mut gate.closed {
            None => {
                gate.failed.insert(object.into());
                if gate.failed.len() < FAILING_OBJECTS {
                    return Turn::Same;
                }
                let delay = FAILING_BACKOFF.0;
                let (opens, line) = (now + spread(delay, 4), Line::default());
                gate.closed = Some(Closed { reason: reason.to_owned(), delay, opens, trial: None, line });
                Turn::Closed
            }
            Some(closed) => {
                // Others were under way when it closed.
                if closed.trial.as_deref() == Some(object) {
                    closed.trial = None;
                    let before = closed.delay;
                    closed.delay = before.saturating_mul(2).min(FAILING_BACKOFF.1);
                    closed.opens = now + spread(closed.delay, 4);
                    if closed.delay > before {
                        closed.line.space(closed.opens, closed.delay);
                    }
                }
                Turn::Same
            }
        }
    }

    /// The object has gone.
    pub(crate) fn forget(&self, object: &str) {
        for gate in self.gates.lock().values_mut() {
            gate.failed.remove(object);
            if let Some(closed) = &mut gate.closed {
                closed.line.leave(object);
            }
        }
    }

    /// Why the plugin is asked more rarely, if it is.
    pub(crate) fn failing(&self, plugin: &str) -> Option<String> {
        self.gates.lock().get(plugin)?.closed.as_ref().map(|closed| closed.reason.clone())
    }
}

impl Gate {
    fn is_of(&self, version: Version<'_>) -> bool {
        self.revision == version.revision && self.digest == version.digest
    }
}

// === impl Line ===

impl Line {
    /// Nobody whose turn it is, and who may still come for it, goes before.
    fn is_turn_of(&mut self, object: &str, now: Instant) -> bool {
        while let Some((turn, first)) = self.first() {
            if &*first == object || turn > now {
                return true;
            }
            if turn + FAILING_LATE > now {
                return false;
            }
            // Paused, or served by another plugin: it does not come any more.
            self.leave(&first);
        }
        true
    }

    /// Of two at one time the one that has children.
    fn first(&self) -> Option<(Instant, Box<str>)> {
        self.places.iter().filter_map(BTreeSet::first).min_by_key(|(turn, _)| *turn).cloned()
    }

    /// When the object's turn is: as before; soon, where it has come for it in vain; or behind all others of its line.
    fn turn(&mut self, object: &str, bare: bool, opens: Instant, delay: Duration, now: Instant) -> Instant {
        let had = self.turns.get(object).map(|(turn, _)| *turn);
        if let Some(turn) = had.filter(|turn| *turn > now) {
            return turn;
        }
        self.leave(object);
        let step = self.step(delay);
        let last = self.places_of(bare).last().map(|(last, _)| *last);
        let turn = match (had, last) {
            (Some(_), _) => opens.max(now + PASSING_BACKOFF.0),
            (None, Some(last)) => opens.max(last + step),
            (None, None) => opens,
        };
        self.places_of(bare).insert((turn, object.into()));
        self.turns.insert(object.into(), (turn, bare));
        turn
    }

    /// All turns anew, in their order, and none earlier than was told: whoever comes too early by then is told so.
    fn space(&mut self, opens: Instant, delay: Duration) {
        let step = self.step(delay);
        for places in &mut self.places {
            let mut next = opens;
            for (told, object) in std::mem::take(places) {
                let at = next.max(told);
                if let Some((turn, _)) = self.turns.get_mut(&object) {
                    *turn = at;
                }
                places.insert((at, object));
                next = at + step;
            }
        }
    }

    /// Between two turns of one line.
    fn step(&self, delay: Duration) -> Duration {
        if self.places.iter().any(BTreeSet::is_empty) { delay } else { delay * 2 }
    }

    fn leave(&mut self, object: &str) {
        if let Some((turn, bare)) = self.turns.remove(object) {
            self.places_of(bare).remove(&(turn, Box::from(object)));
        }
    }

    fn places_of(&mut self, bare: bool) -> &mut BTreeSet<(Instant, Box<str>)> {
        let [with_children, without] = &mut self.places;
        if bare { without } else { with_children }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const ONE: Version<'static> = Version { plugin: "p", digest: "d", revision: 1 };
    const TRAPS: Verdict<'static> = Verdict::Fails("Trap");

    fn gates() -> Gates {
        let gates = Gates::default();
        assert!(gates.serve([ONE].into_iter()).is_empty());
        gates
    }

    /// As many objects as it takes.
    fn close(gates: &Gates, now: Instant) {
        for i in 1..=FAILING_OBJECTS {
            let object = format!("o{i}");
            gates.pass(ONE, &object, || true, now).unwrap();
            let turn = gates.answered(ONE, &object, TRAPS, now);
            assert_eq!(turn == Turn::Closed, i == FAILING_OBJECTS, "{i}");
        }
    }

    #[test]
    fn only_many_objects_in_a_row_close_it() {
        let (gates, now) = (gates(), clock::instant());
        for _ in 0..100 {
            assert_eq!(gates.answered(ONE, "one", TRAPS, now), Turn::Same, "the fault may be the object's");
        }
        for i in 0..100 {
            assert_eq!(gates.answered(ONE, &format!("o{}", i % (FAILING_OBJECTS - 2)), TRAPS, now), Turn::Same);
        }
        assert_eq!(gates.answered(ONE, "good", Verdict::Works, now), Turn::Same);
        for i in 0..FAILING_OBJECTS - 1 {
            assert_eq!(gates.answered(ONE, &format!("p{i}"), TRAPS, now), Turn::Same);
            assert_eq!(gates.answered(ONE, &format!("q{i}"), Verdict::Unclear, now), Turn::Same);
        }
        assert_eq!(gates.failing("p"), None);
        assert_eq!(gates.answered(ONE, "last", TRAPS, now), Turn::Closed);
        assert_eq!(gates.failing("p").as_deref(), Some("Trap"));
    }

    #[test]
    fn tries_come_ever_more_rarely_and_one_success_ends_it() {
        let (gates, mut now) = (gates(), clock::instant());
        close(&gates, now);
        // Those that were under way say nothing more.
        for i in 0..20 {
            assert_eq!(gates.answered(ONE, &format!("late{i}"), TRAPS, now), Turn::Same);
        }
        let mut delays = Vec::new();
        for i in 0..10 {
            let object = format!("t{i}");
            let held = gates.pass(ONE, &object, || true, now).unwrap_err();
            assert_eq!(held.reason, "Trap");
            delays.push(held.again);
            now += held.again;
            gates.pass(ONE, &object, || true, now).unwrap();
            gates.pass(ONE, &object, || true, now).unwrap();
            assert!(gates.pass(ONE, "another", || true, now).is_err(), "one at a time");
            gates.forget("another");
            assert_eq!(gates.answered(ONE, &object, TRAPS, now), Turn::Same);
        }
        let (first, cap) = FAILING_BACKOFF;
        for (i, delay) in delays.iter().enumerate() {
            let whole = (first * (1 << i)).min(cap);
            assert!(*delay <= whole.max(first), "{i}: {delays:?}");
        }
        assert!(delays.last().is_some_and(|last| *last >= cap / 2), "{delays:?}");
        assert!(gates.pass(ONE, "waits", || true, now).is_err());
        let opened = gates.answered(ONE, "t9", Verdict::Works, now);
        assert_eq!(opened, Turn::Opened(vec!["waits".into()]));
        assert_eq!((gates.failing("p"), gates.pass(ONE, "anyone", || true, now)), (None, Ok(())));
    }

    #[test]
    fn each_is_tried_in_the_end_and_those_that_stand_before_the_rest() {
        const OBJECTS: usize = 300;
        let (gates, mut now) = (gates(), clock::instant());
        close(&gates, now);
        let mut due: BTreeSet<(Instant, usize)> = (0..OBJECTS).map(|i| (now, i)).collect();
        let mut tried = Vec::new();
        let mut walks = 0;
        while let Some((at, i)) = due.pop_first() {
            now = now.max(at);
            walks += 1;
            let object = format!("w{i}");
            // The last three have children.
            match gates.pass(ONE, &object, || i < OBJECTS - 3, now) {
                Ok(()) => {
                    gates.answered(ONE, &object, TRAPS, now);
                    tried.push(i);
                }
                Err(held) => drop(due.insert((now + held.again, i))),
            }
        }
        assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), OBJECTS);
        assert!(walks < OBJECTS * 6, "{walks} walks for {OBJECTS} objects");
        let standing = tried.iter().rposition(|i| *i >= OBJECTS - 3).unwrap();
        assert!(standing < 20, "{standing}: {tried:?}");
    }

    #[test]
    fn one_that_does_not_come_for_its_turn_holds_nobody_up() {
        let (gates, now) = (gates(), clock::instant());
        close(&gates, now);
        let ghost = gates.pass(ONE, "ghost", || true, now).unwrap_err();
        let next = gates.pass(ONE, "next", || true, now).unwrap_err();
        assert!(next.again > ghost.again);
        assert!(gates.pass(ONE, "new", || true, now + ghost.again).is_err(), "it is the ghost's turn");
        let late = now + ghost.again + FAILING_LATE;
        assert_eq!(gates.pass(ONE, "next", || true, late), Ok(()));
    }

    #[test]
    fn nobodys_turn_comes_before_it_was_told() {
        let (gates, now) = (gates(), clock::instant());
        close(&gates, now);
        for i in 0..8 {
            gates.pass(ONE, &format!("gone{i}"), || true, now).unwrap_err();
        }
        let told = gates.pass(ONE, "last", || true, now).unwrap_err().again;
        (0..8).for_each(|i| gates.forget(&format!("gone{i}")));
        let mut at = now;
        for (i, again) in [1, 2].into_iter().enumerate() {
            at += Duration::from_secs(again);
            assert!(at < now + told);
            let object = format!("between{i}");
            gates.pass(ONE, &object, || true, at).unwrap();
            gates.answered(ONE, &object, TRAPS, at);
        }
    }

    #[test]
    fn another_version_begins_anew_and_another_plugin_is_untouched() {
        let (gates, now) = (gates(), clock::instant());
        let other = Version { plugin: "other", ..ONE };
        gates.serve([ONE, other].into_iter());
        close(&gates, now);
        assert_eq!(gates.pass(other, "o", || true, now), Ok(()));
        assert!(gates.serve([ONE, other].into_iter()).is_empty(), "the same goes on");
        assert!(gates.pass(ONE, "o", || true, now).is_err());
        let two = Version { revision: 2, ..ONE };
        assert_eq!(gates.serve([two, other].into_iter()), ["p"]);
        assert_eq!((gates.pass(two, "o", || true, now), gates.failing("p")), (Ok(()), None));
        // A call that was under way is the old version's.
        for i in 0..2 * FAILING_OBJECTS {
            assert_eq!(gates.answered(ONE, &format!("o{i}"), TRAPS, now), Turn::Same);
        }
    }
}
