//! Which namespaces are served, where a label decides: `--watch-namespace-selector`.
//!
//! The API server selects: a namespace that gets or loses the label comes and
//! goes in the watch. Each kind has one watch of the whole cluster all the same,
//! and drops what is of other namespaces as it arrives. So when a namespace
//! joins, every kind is listed anew, and its objects are walked once all lists
//! know it: what is not in a cache yet is not missing. One that leaves is
//! forgotten on the spot, and left exactly as it is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::watch as cell;

/// Of one host. Without a selector every namespace is served that is watched.
pub(crate) struct Namespaces {
    pub selector: Option<String>,
    served: RwLock<Served>,
    /// How many times namespaces have joined.
    joins: cell::Sender<u64>,
}

#[derive(Default)]
struct Served {
    /// Listed once.
    filled: bool,
    problem: Option<String>,
    /// By name: the join it came with.
    names: HashMap<Arc<str>, u64>,
}

/// Holds the set as it is while an object is put into a cache.
pub(crate) struct Admission<'a> {
    _served: Option<RwLockReadGuard<'a, Served>>,
}

// === impl Namespaces ===

impl Namespaces {
    pub(crate) fn new(selector: Option<String>) -> Self {
        Self { selector, served: RwLock::default(), joins: cell::Sender::new(0) }
    }

    /// From now on it counts as unknown until it was listed anew: a lagging set serves what is not served any more.
    pub(crate) fn begin(&self) {
        self.served.write().filled = false;
    }

    /// None where objects of this namespace are none of ours. To be held while the caches are written.
    pub(crate) fn admit(&self, namespace: &str) -> Option<Admission<'_>> {
        if self.selector.is_none() {
            return Some(Admission { _served: None });
        }
        let served = self.served.read();
        served.names.contains_key(namespace).then_some(Admission { _served: Some(served) })
    }

    /// Whether lists that were begun after so many joins hold this namespace's objects.
    pub(crate) fn covered(&self, namespace: &str, joins: u64) -> bool {
        self.selector.is_none() || self.served.read().names.get(namespace).is_some_and(|join| *join <= joins)
    }

    /// Told of each join; never, without a selector.
    pub(crate) fn joins(&self) -> cell::Receiver<u64> {
        self.joins.subscribe()
    }

    /// Waits until it is known which namespaces there are.
    pub(crate) async fn known(&self) {
        let mut joins = self.joins();
        while self.selector.is_some() && !self.served.read().filled {
            // The sender is ours: it lives as long as `self`.
            let _ = joins.changed().await;
        }
    }

    /// Why it is not known yet, in words.
    pub(crate) fn unmet(&self) -> Option<String> {
        let served = self.served.read();
        let selector = self.selector.as_ref().filter(|_| !served.filled)?;
        let problem = served.problem.as_ref().map_or_else(String::new, |problem| format!(": {problem}"));
        Some(format!("namespaces with {selector} not listed yet{problem}"))
    }

    /// Returns whether it is another than before.
    pub(crate) fn problem(&self, problem: Option<String>) -> bool {
        let mut served = self.served.write();
        let changed = served.problem != problem;
        served.problem = problem;
        changed
    }

    /// Returns whether it is new.
    pub(crate) fn join(&self, name: &str) -> bool {
        let mut served = self.served.write();
        if served.names.contains_key(name) {
            return false;
        }
        let join = *self.joins.borrow() + 1;
        served.names.insert(name.into(), join);
        drop(served);
        self.joins.send_replace(join);
        true
    }

    /// From now on nothing of it is admitted; what is in the caches is the caller's to take out.
    pub(crate) fn leave(&self, name: &str) -> bool {
        self.served.write().names.remove(name).is_some()
    }

    /// The list is complete. Returns what is served still and was not on it.
    pub(crate) fn listed(&self, names: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        let mut served = self.served.write();
        let first = !std::mem::replace(&mut served.filled, true);
        let left: Vec<Arc<str>> = served.names.keys().filter(|name| !names.contains(*name)).cloned().collect();
        drop(served);
        // Whoever waits for the first list goes on, with no namespace too.
        if first {
            self.joins.send_modify(|_| {});
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_selector_all_is_served() {
        let all = Namespaces::new(None);
        assert!(all.admit("x").is_some() && all.covered("x", 0) && all.unmet().is_none());
    }

    #[test]
    fn a_namespace_is_served_while_it_is_selected_and_walked_when_all_lists_know_it() {
        let some = Namespaces::new(Some("a=b".into()));
        assert!(some.unmet().is_some_and(|why| why.contains("a=b")));
        assert!(some.join("x") && !some.join("x"));
        assert!(some.listed(&HashSet::from(["x".into()])).is_empty());
        assert!(some.unmet().is_none());
        assert!(some.admit("x").is_some() && some.admit("y").is_none());
        let before = *some.joins().borrow();
        assert!(some.join("y"));
        assert!(some.covered("x", before) && !some.covered("y", before));
        assert!(some.covered("y", *some.joins().borrow()));
        // A list that was begun anew and does not name one.
        assert_eq!(some.listed(&HashSet::from(["y".into()])), vec!["x".into()]);
        assert!(some.leave("x") && !some.leave("x") && some.admit("x").is_none());
    }
}
