//! What was tried with an object's children and need not be tried again: what
//! the API server has refused for good, and what was replaced and when.
//!
//! It is gone with the process. A host that starts anew meets each refusal once
//! more; and it replaces no child that is younger than the first back-off by its
//! own `creationTimestamp`, so that one which dies and comes again and again
//! replaces no faster than that.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::children::{Child, ChildId};
use super::fight::Fights;
use super::refusal::Refusal;
use crate::clock::{self, Instant};
use crate::limits::{ENDED_GRACE, REPLACE_BACKOFF, REPLACE_FORGOTTEN};

#[derive(Default)]
pub(crate) struct Tries {
    refused: HashMap<ChildId, (Attempted, Lesson)>,
    replaced: HashMap<ChildId, Replaced>,
    pub fights: Fights,
    /// What the last complete walk left and is not there any more.
    pub gone: Vec<ChildId>,
    /// Deleted to be made anew and not yet said: the child, and why.
    pub news: Vec<(String, Why)>,
}

/// The same of it again can only come to the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempted {
    /// Of the object that stood; `None` where it was to be made.
    pub uid: Option<Box<str>>,
    /// Of the rendering.
    pub hash: Arc<str>,
    /// Hash of our entry of managedFields as it was.
    pub fields: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Lesson {
    /// It cannot be changed where it stands; what of it, in words.
    Fixed(String),
    Refused(Refusal),
}

/// Why a child is replaced, as users read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub reason: String,
    pub message: String,
    /// For metrics: of bounded variety.
    pub cause: &'static str,
}

/// The cause of a replacement that the rendering wants.
pub(crate) const REPLACED_BY_EDIT: &str = "ImmutableField";

struct Replaced {
    /// The one that is, or was, to be replaced.
    uid: Box<str>,
    seen: Instant,
    /// Deleted by us; what follows waits until it is gone.
    deleted: Option<Why>,
    /// How many were replaced one after the other, and the last when.
    count: u32,
    last: Option<Instant>,
}

impl Tries {
    pub(crate) fn lesson(&self, id: &ChildId, attempted: &Attempted) -> Option<&Lesson> {
        self.refused.get(id).filter(|(known, _)| known == attempted).map(|(_, lesson)| lesson)
    }

    pub(crate) fn learn(&mut self, id: &ChildId, attempted: Attempted, lesson: Lesson) {
        self.refused.insert(id.clone(), (attempted, lesson));
    }

    /// At a resync: a policy may have changed, and no watch tells.
    pub(crate) fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// When this child may be replaced, at the earliest. `age` is what its
    /// creationTimestamp makes of it.
    pub(crate) fn replace_at(&mut self, known: &Child, age: Duration, has_ended: bool, now: Instant) -> Instant {
        let one = self.replaced.entry(known.id.clone()).or_insert_with(|| Replaced {
            uid: known.uid.clone(),
            seen: now,
            deleted: None,
            count: 0,
            last: None,
        });
        if one.uid != known.uid {
            (one.uid, one.seen, one.deleted) = (known.uid.clone(), now, None);
        }
        if one.last.is_some_and(|last| now.saturating_duration_since(last) >= REPLACE_FORGOTTEN) {
            (one.count, one.last) = (0, None);
        }
        let (first, cap) = REPLACE_BACKOFF;
        let backed_off = match one.last {
            Some(last) => last + first.saturating_mul(1 << (one.count.saturating_sub(1)).min(16)).min(cap),
            // Perhaps by another host, a moment ago. A clock that is off makes it wait the whole time, once.
            None => one.seen + first.saturating_sub(age),
        };
        if has_ended { backed_off.max(one.seen + ENDED_GRACE) } else { backed_off }
    }

    pub(crate) fn replaced(&mut self, known: &Child, title: String, why: Why, now: Instant) {
        if let Some(one) = self.replaced.get_mut(&known.id) {
            one.count = one.count.saturating_add(1);
            one.last = Some(now);
            one.deleted = Some(why.clone());
        }
        self.news.push((title, why));
    }

    /// Why we have deleted this very object.
    pub(crate) fn deleted(&self, known: &Child) -> Option<&Why> {
        self.replaced.get(&known.id).filter(|one| one.uid == known.uid)?.deleted.as_ref()
    }

    /// It is we who have taken it away, to make it anew.
    pub(crate) fn is_replacing(&self, id: &ChildId) -> bool {
        self.replaced.get(id).is_some_and(|one| one.deleted.is_some())
    }

    /// It stood before, as far as this process knows.
    pub(crate) fn has_gone(&self, id: &ChildId) -> bool {
        self.gone.contains(id) || self.fights.has_gone(id)
    }

    /// It has been made anew. Whether it was we who had taken it away.
    pub(crate) fn made(&mut self, id: &ChildId) -> bool {
        self.replaced.get_mut(id).is_some_and(|one| one.deleted.take().is_some())
    }

    /// Of these children only.
    pub(crate) fn retain(&mut self, keep: impl Fn(&ChildId) -> bool) {
        self.refused.retain(|id, _| keep(id));
        self.replaced.retain(|id, _| keep(id));
        self.fights.retain(keep);
    }
}

/// By its creationTimestamp; none where that lies in the future of our clock.
pub(crate) fn age(created: i64) -> Duration {
    Duration::from_secs(u64::try_from(clock::now().as_second().saturating_sub(created)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Duration = Duration::from_secs(3600);

    fn child(uid: &str) -> Child {
        Child {
            id: ChildId { kind: 0, namespace: "n".into(), name: "a".into() },
            uid: uid.into(),
            resource_version: 1,
            reduced: 0,
            created: 0,
            instance: "p".into(),
            owners: Vec::new(),
            going: false,
            hash: None,
            owned_fields: None,
            observed: "{}".into(),
            unready: None,
            ended: None,
            infeasible: None,
            held: None,
        }
    }

    fn why() -> Why {
        Why { reason: "Evicted".into(), message: "m".into(), cause: "Disrupted" }
    }

    #[test]
    fn each_replacement_waits_longer_than_the_last() {
        let (mut tries, mut now) = (Tries::default(), clock::instant());
        assert_eq!(tries.replace_at(&child("u0"), OLD, false, now), now, "the first at once");
        let mut delays = Vec::new();
        for n in 0..8 {
            tries.replaced(&child(&format!("u{n}")), "Pod a".into(), why(), now);
            let at = tries.replace_at(&child(&format!("u{}", n + 1)), Duration::ZERO, false, now);
            delays.push(at - now);
            now = at;
        }
        let (first, cap) = REPLACE_BACKOFF;
        assert_eq!(delays.first(), Some(&first));
        assert!(delays.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(cap)), "{delays:?}");
        let later = now + REPLACE_FORGOTTEN;
        assert!(tries.replace_at(&child("u8"), OLD, false, later) <= later, "it was well for long");
    }

    #[test]
    fn a_host_that_has_just_started_spares_what_is_young() {
        let (mut tries, now, first) = (Tries::default(), clock::instant(), REPLACE_BACKOFF.0);
        assert_eq!(tries.replace_at(&child("u"), Duration::ZERO, false, now), now + first);
        assert_eq!(tries.replace_at(&child("u"), Duration::ZERO, false, now + first), now + first, "once");
        let mut tries = Tries::default();
        assert_eq!(tries.replace_at(&child("u"), OLD, true, now), now + ENDED_GRACE, "told first");
    }

    #[test]
    fn what_we_deleted_is_known_by_its_uid() {
        let (mut tries, now) = (Tries::default(), clock::instant());
        tries.replace_at(&child("u"), OLD, false, now);
        assert_eq!(tries.deleted(&child("u")), None);
        tries.replaced(&child("u"), "Pod a".into(), why(), now);
        assert_eq!(tries.deleted(&child("u")), Some(&why()));
        assert_eq!(tries.deleted(&child("v")), None);
    }

    #[test]
    fn a_lesson_holds_for_the_very_same_attempt() {
        let attempted = |uid: &str, hash: &str, fields| Attempted { uid: Some(uid.into()), hash: hash.into(), fields };
        let mut tries = Tries::default();
        let id = child("u").id;
        tries.learn(&id, attempted("u", "h", 1), Lesson::Fixed("x".into()));
        assert!(tries.lesson(&id, &attempted("u", "h", 1)).is_some());
        for other in [attempted("v", "h", 1), attempted("u", "g", 1), attempted("u", "h", 2)] {
            assert!(tries.lesson(&id, &other).is_none());
        }
        tries.forget_refusals();
        assert!(tries.lesson(&id, &attempted("u", "h", 1)).is_none());
    }
}
