//! Two writers that take the same thing from each other: a field of a child, the
//! child itself, the status, a finalizer. What a person does is put right at
//! once; what is taken again and again is put back ever more rarely, and said,
//! until the other has stopped.

use std::collections::HashMap;
use std::time::Duration;

use super::children::ChildId;
use crate::clock::Instant;
use crate::limits::{FIGHT_BACKOFF, FIGHT_FORGOTTEN, FIGHT_PATIENCE};

/// The path of a child that is deleted as a whole.
pub(crate) const WHOLE: &str = "";

#[derive(Default)]
pub(crate) struct Fights {
    /// By child and the JSON pointer of the field.
    fights: HashMap<(ChildId, String), Fight>,
}

/// About one thing.
#[derive(Default)]
pub(crate) struct Fight {
    /// How often it was put back, and the last time when.
    repairs: u32,
    last: Option<Instant>,
    /// Whose it is when it is not ours, once that was looked up.
    manager: Option<String>,
    said: bool,
}

/// A fight that is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub path: String,
    /// `None` where it has not been looked up.
    pub manager: Option<String>,
    /// Not before then is it put back again, or the fight over.
    pub until: Instant,
}

impl Fights {
    /// A field of ours was taken. `None`: it is to be put back now.
    pub(crate) fn taken(&mut self, id: &ChildId, path: &str, now: Instant) -> Option<Said> {
        let fight = self.fights.entry((id.clone(), path.to_owned())).or_default();
        let until = fight.taken(now)?;
        Some(fight.words(path, until))
    }

    /// The same of a child that has gone; that it was made anew is counted by `taken`, once it was.
    pub(crate) fn gone(&mut self, id: &ChildId, now: Instant) -> Option<Said> {
        let fight = self.fights.get_mut(&(id.clone(), WHOLE.to_owned()))?;
        let until = fight.held(now)?;
        Some(fight.words(WHOLE, until))
    }

    /// Whether it was made anew before.
    pub(crate) fn has_gone(&self, id: &ChildId) -> bool {
        self.fights.contains_key(&(id.clone(), WHOLE.to_owned()))
    }

    /// The child stands as rendered, but for how long?
    pub(crate) fn still(&self, id: &ChildId, now: Instant) -> Option<Said> {
        self.fights.iter().filter(|((child, _), _)| child == id).find_map(|((_, path), fight)| {
            let until = fight.until().filter(|until| fight.said && now < *until)?;
            Some(fight.words(path, until))
        })
    }

    /// Whether the next repair is one too many to be done without a word.
    pub(crate) fn wants_manager(&self, id: &ChildId, path: &str) -> bool {
        self.fights.get(&(id.clone(), path.to_owned())).is_some_and(Fight::wants_manager)
    }

    pub(crate) fn is_with(&mut self, id: &ChildId, path: &str, manager: String) {
        if let Some(fight) = self.fights.get_mut(&(id.clone(), path.to_owned())) {
            fight.manager = Some(manager);
        }
    }

    /// Of these children only.
    pub(crate) fn retain(&mut self, keep: impl Fn(&ChildId) -> bool) {
        self.fights.retain(|(child, _), _| keep(child));
    }
}

impl Fight {
    /// It was taken. `None`: it is to be put back now, which counts; else not before then.
    pub(crate) fn taken(&mut self, now: Instant) -> Option<Instant> {
        if let Some(until) = self.held(now) {
            return Some(until);
        }
        self.repairs = self.repairs.saturating_add(1);
        self.last = Some(now);
        None
    }

    /// When it may be put back, where that is not now; what was long ago is forgotten.
    fn held(&mut self, now: Instant) -> Option<Instant> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= FIGHT_FORGOTTEN) {
            *self = Self::default();
        }
        let until = self.until().filter(|until| now < *until)?;
        self.said = true;
        Some(until)
    }

    pub(crate) fn wants_manager(&self) -> bool {
        self.repairs >= FIGHT_PATIENCE && self.manager.is_none()
    }

    pub(crate) fn is_with(&mut self, manager: Option<String>) {
        self.manager = manager;
    }

    /// The other writer, as users read it.
    pub(crate) fn writer(&self) -> String {
        writer(self.manager.as_deref())
    }

    /// `None` while patience lasts.
    fn until(&self) -> Option<Instant> {
        let beyond = self.repairs.checked_sub(FIGHT_PATIENCE)?;
        let (first, cap) = FIGHT_BACKOFF;
        let delay: Duration = first.saturating_mul(1 << beyond.min(16)).min(cap);
        Some(self.last? + delay)
    }

    fn words(&self, path: &str, until: Instant) -> Said {
        Said { path: path.to_owned(), manager: self.manager.clone(), until }
    }
}

pub(crate) fn writer(manager: Option<&str>) -> String {
    manager.map_or_else(|| "another writer".to_owned(), |manager| format!("the field manager {manager}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn id(name: &str) -> ChildId {
        ChildId { kind: 0, namespace: "n".into(), name: name.into() }
    }

    #[test]
    fn a_person_is_put_right_at_once_and_a_writer_ever_more_rarely() {
        let (mut fights, child, mut now) = (Fights::default(), id("a"), clock::instant());
        for _ in 0..FIGHT_PATIENCE {
            assert_eq!((fights.taken(&child, "/x", now), fights.still(&child, now)), (None, None));
        }
        let (first, cap) = FIGHT_BACKOFF;
        let mut delays = Vec::new();
        for _ in 0..8 {
            let said = fights.taken(&child, "/x", now).unwrap();
            assert_eq!(fights.still(&child, now), Some(said.clone()));
            delays.push(said.until - now);
            now = said.until;
            assert_eq!(fights.taken(&child, "/x", now), None, "put back once its time has come");
        }
        assert_eq!(delays.first(), Some(&first));
        assert!(delays.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(cap)), "{delays:?}");
        assert_eq!(fights.taken(&child, "/y", now), None, "another field");
        assert_eq!(fights.taken(&id("b"), "/x", now), None, "another child");
    }

    #[test]
    fn it_is_over_once_the_field_stays_ours_and_forgotten_later() {
        let (mut fights, child, now) = (Fights::default(), id("a"), clock::instant());
        while fights.taken(&child, "/x", now).is_none() {}
        let until = fights.still(&child, now).unwrap().until;
        assert_eq!(fights.still(&child, until), None);
        assert_eq!(fights.taken(&child, "/x", until), None);
        let said = fights.taken(&child, "/x", until).unwrap();
        assert_eq!(said.until - until, FIGHT_BACKOFF.0 * 2, "it has not been forgotten");
        let later = until + FIGHT_FORGOTTEN;
        for _ in 0..FIGHT_PATIENCE {
            assert_eq!(fights.taken(&child, "/x", later), None, "it has");
        }
        assert!(fights.taken(&child, "/x", later).is_some());
    }

    #[test]
    fn a_child_that_others_delete_for_ever_is_made_ever_more_rarely() {
        let (mut fights, child, mut now) = (Fights::default(), id("a"), clock::instant());
        for _ in 0..FIGHT_PATIENCE {
            assert_eq!(fights.gone(&child, now), None, "a person's delete is repaired at once");
            assert_eq!((fights.taken(&child, WHOLE, now), fights.still(&child, now)), (None, None));
        }
        let (first, cap) = FIGHT_BACKOFF;
        for delay in [first, first * 2, first * 4] {
            let said = fights.gone(&child, now).unwrap();
            assert_eq!((said.until - now, said.path.as_str()), (delay.min(cap), WHOLE));
            assert_eq!(fights.gone(&child, now), Some(said.clone()), "asking does not count");
            now = said.until;
            assert_eq!(fights.gone(&child, now), None);
            assert_eq!(fights.taken(&child, WHOLE, now), None, "made anew");
        }
        assert_eq!(fights.gone(&child, now + FIGHT_FORGOTTEN), None);
        assert_eq!(fights.gone(&id("b"), now), None, "another child");
    }
}
