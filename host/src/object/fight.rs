//! Two writers that take the same field from each other. What a person edits is
//! put back at once; what is taken again and again is put back ever more rarely,
//! and said, until the other has stopped.

use std::collections::HashMap;
use std::time::Duration;

use super::children::ChildId;
use crate::clock::Instant;
use crate::limits::{FIGHT_BACKOFF, FIGHT_FORGOTTEN, FIGHT_PATIENCE};

#[derive(Default)]
pub(crate) struct Fights {
    /// By child and the JSON pointer of the field.
    fights: HashMap<(ChildId, String), Fight>,
}

struct Fight {
    /// How often the field was put back.
    repairs: u32,
    last: Instant,
    /// Whose it is when it is not ours, once that was looked up.
    manager: Option<String>,
    said: bool,
}

impl Fight {
    fn new(now: Instant) -> Self {
        Self { repairs: 0, last: now, manager: None, said: false }
    }
}

/// A fight that is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub path: String,
    /// `None` where it has not been looked up.
    pub manager: Option<String>,
    /// Not before then is the field put back again, or the fight over.
    pub until: Instant,
}

impl Fights {
    /// A field of ours was taken. `None`: it is to be put back now.
    pub(crate) fn taken(&mut self, id: &ChildId, path: &str, now: Instant) -> Option<Said> {
        let key = (id.clone(), path.to_owned());
        let fight = self.fights.entry(key).or_insert_with(|| Fight::new(now));
        if now.saturating_duration_since(fight.last) >= FIGHT_FORGOTTEN {
            *fight = Fight::new(now);
        }
        if let Some(until) = fight.until().filter(|until| now < *until) {
            fight.said = true;
            return Some(fight.words(path, until));
        }
        fight.repairs = fight.repairs.saturating_add(1);
        fight.last = now;
        None
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
        let fight = self.fights.get(&(id.clone(), path.to_owned()));
        fight.is_some_and(|fight| fight.repairs >= FIGHT_PATIENCE && fight.manager.is_none())
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
    /// When the field may be put back again; `None` while patience lasts.
    fn until(&self) -> Option<Instant> {
        let beyond = self.repairs.checked_sub(FIGHT_PATIENCE)?;
        let (first, cap) = FIGHT_BACKOFF;
        let delay: Duration = first.saturating_mul(1 << beyond.min(16)).min(cap);
        Some(self.last + delay)
    }

    fn words(&self, path: &str, until: Instant) -> Said {
        Said { path: path.to_owned(), manager: self.manager.clone(), until }
    }
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
}
