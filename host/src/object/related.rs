//! What plugins look at beside their children: the questions that were asked,
//! and their answers as they stand. Of an object that nobody asks for nothing
//! is kept, though its kind is watched.
//!
//! A question is first answered by a read; from then on the watch keeps it. A
//! read that was overtaken by a list of the watch counts for nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::cluster::ObjectView;
use crate::plugin::projection;
use crate::sandbox::model::{KindRef, Selection};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    /// Index in the table of related kinds.
    pub kind: usize,
    pub of: KindRef,
    /// `None` for a kind without namespaces.
    pub namespace: Option<String>,
    pub by: Selection,
    /// JSON pointers.
    pub observe: Vec<String>,
}

/// Name to what is shown of each, JSON text.
pub(crate) type Shown = Vec<(String, Arc<str>)>;

/// An object as one question sees it.
#[derive(Clone)]
pub(crate) struct Seen {
    pub name: String,
    pub version: u64,
    pub shown: Arc<str>,
}

#[derive(Default)]
pub(crate) struct Related {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    answers: HashMap<Arc<Question>, Answer>,
    by_place: HashMap<Place, Vec<Arc<Question>>>,
    by_asker: HashMap<Box<str>, Vec<Arc<Question>>>,
    /// Lists of a kind's watches: what was read before the last one may be older.
    lists: HashMap<usize, u64>,
}

#[derive(Default)]
struct Answer {
    /// It was read, and is kept by the watch.
    filled: bool,
    objects: BTreeMap<String, (u64, Arc<str>)>,
    /// What went before it was read.
    left: HashMap<String, u64>,
    /// UIDs of parents.
    askers: HashSet<Box<str>>,
}

/// Where a question looks.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    kind: usize,
    namespace: Option<String>,
    /// `None`: by labels.
    name: Option<String>,
}

// === impl Question ===

impl Question {
    /// What it shows of an object; `None` where it does not ask for it.
    pub(crate) fn shows(&self, object: &ObjectView<'_>) -> Option<Arc<str>> {
        let asked = match &self.by {
            Selection::Name(name) => *object.name == **name,
            Selection::Labels(labels) => {
                labels.iter().all(|(key, value)| object.labels.get(key).is_some_and(|there| **there == **value))
            }
        };
        asked.then(|| shown(&self.of, &self.observe, object))
    }

    fn place(&self) -> Place {
        let name = match &self.by {
            Selection::Name(name) => Some(name.clone()),
            Selection::Labels(_) => None,
        };
        Place { kind: self.kind, namespace: self.namespace.clone(), name }
    }
}

fn shown(kind: &KindRef, observe: &[String], object: &ObjectView<'_>) -> Arc<str> {
    let api_version = kind.api_version();
    let kind = projection::Kind { group: &kind.group, api_version: &api_version, kind: &kind.kind };
    let pointers = observe.iter().map(String::as_str);
    let at = |pointer: &str| serde_json::from_str::<Value>(object.pointer(pointer)?.get()).ok();
    projection::of(kind, &object.name, &object.uid, pointers, at).into()
}

// === impl Related ===

impl Related {
    /// These are all that a parent wants to know from now on; none: it wants nothing, or has gone.
    pub(crate) fn ask(&self, asker: &str, questions: Vec<Arc<Question>>) {
        let mut inner = self.inner.lock();
        let before = if questions.is_empty() {
            inner.by_asker.remove(asker).unwrap_or_default()
        } else {
            inner.by_asker.insert(asker.into(), questions.clone()).unwrap_or_default()
        };
        for question in before.iter().filter(|question| !questions.contains(question)) {
            inner.leave(asker, question);
        }
        for question in questions {
            if !inner.answers.contains_key(&question) {
                inner.by_place.entry(question.place()).or_default().push(Arc::clone(&question));
            }
            inner.answers.entry(question).or_default().askers.insert(asker.into());
        }
    }

    /// What is known of it; `None` until it was read.
    pub(crate) fn answer(&self, question: &Question) -> Option<Shown> {
        let inner = self.inner.lock();
        let answer = inner.answers.get(question).filter(|answer| answer.filled)?;
        Some(answer.objects.iter().map(|(name, (_, shown))| (name.clone(), Arc::clone(shown))).collect())
    }

    /// To be handed to [`Self::read`] with what is read after this.
    pub(crate) fn moment(&self, kind: usize) -> u64 {
        self.inner.lock().lists.get(&kind).copied().unwrap_or(0)
    }

    /// What a read found, all of it. Whether it counts: the watch may have come further.
    pub(crate) fn read(&self, question: &Question, moment: u64, found: Vec<Seen>) -> bool {
        let mut inner = self.inner.lock();
        if inner.lists.get(&question.kind).copied().unwrap_or(0) != moment {
            return false;
        }
        let Some(answer) = inner.answers.get_mut(question) else { return true };
        if answer.filled {
            return true;
        }
        for Seen { name, version, shown } in found {
            let gone = answer.left.get(&name).is_some_and(|at| *at >= version);
            if !gone && answer.objects.get(&name).is_none_or(|(known, _)| *known < version) {
                answer.objects.insert(name, (version, shown));
            }
        }
        answer.left = HashMap::new();
        answer.filled = true;
        true
    }

    /// What is not watched was read once more. Returns the other parents that it matters to.
    pub(crate) fn reread(&self, question: &Question, found: Vec<Seen>) -> Vec<Box<str>> {
        let mut inner = self.inner.lock();
        let Some(answer) = inner.answers.get_mut(question) else { return Vec::new() };
        let objects = found.into_iter().map(|Seen { name, version, shown }| (name, (version, shown))).collect();
        let before = std::mem::replace(&mut answer.objects, objects);
        let same = before
            .iter()
            .map(|(name, (_, shown))| (name, shown))
            .eq(answer.objects.iter().map(|(name, (_, shown))| (name, shown)));
        let known = std::mem::replace(&mut answer.filled, true);
        if same || !known { Vec::new() } else { answer.askers.iter().cloned().collect() }
    }

    /// An object as the watch has it. Returns the parents that it matters to.
    pub(crate) fn seen(&self, kind: usize, object: &ObjectView<'_>) -> Vec<Box<str>> {
        let version = version_of(object);
        self.inner.lock().each(kind, object, |question, answer| {
            let known = answer.objects.get(&*object.name).map(|(version, shown)| (*version, Arc::clone(shown)));
            if known.as_ref().is_some_and(|(known, _)| *known >= version) {
                return false;
            }
            match question.shows(object) {
                Some(shown) => {
                    let same = known.is_some_and(|(_, before)| before == shown);
                    answer.objects.insert(object.name.clone().into_owned(), (version, shown));
                    !same
                }
                // It has lost the labels.
                None => answer.lose(&object.name, version),
            }
        })
    }

    pub(crate) fn gone(&self, kind: usize, object: &ObjectView<'_>) -> Vec<Box<str>> {
        let version = version_of(object);
        self.inner.lock().each(kind, object, |_, answer| answer.lose(&object.name, version))
    }

    /// A list of a kind in a namespace (all: `None`) is complete as of `version`; what it did not name is gone.
    pub(crate) fn listed(
        &self,
        kind: usize,
        namespace: Option<&str>,
        listed: &HashSet<(String, String)>,
        version: u64,
    ) -> Vec<Box<str>> {
        let mut inner = self.inner.lock();
        *inner.lists.entry(kind).or_default() += 1;
        let mut woken = HashSet::new();
        for (question, answer) in &mut inner.answers {
            let place = question.namespace.as_deref();
            if question.kind != kind || namespace.is_some() && place.is_some() && namespace != place {
                continue;
            }
            let before = answer.objects.len();
            let place = place.unwrap_or_default();
            answer
                .objects
                .retain(|name, (known, _)| *known > version || listed.contains(&(place.to_owned(), name.clone())));
            if answer.objects.len() != before {
                woken.extend(answer.askers.iter().cloned());
            }
        }
        woken.into_iter().collect()
    }

    /// Nobody watches the kind any more: whoever asks again has it read anew.
    pub(crate) fn forget(&self, kind: usize) {
        let mut inner = self.inner.lock();
        *inner.lists.entry(kind).or_default() += 1;
        for (_, answer) in inner.answers.iter_mut().filter(|(question, _)| question.kind == kind) {
            (answer.filled, answer.objects, answer.left) = (false, BTreeMap::new(), HashMap::new());
        }
    }
}

impl Inner {
    /// Every answer that an object may stand in; collects who asked, where it changed.
    fn each(
        &mut self,
        kind: usize,
        object: &ObjectView<'_>,
        mut change: impl FnMut(&Question, &mut Answer) -> bool,
    ) -> Vec<Box<str>> {
        if self.answers.is_empty() {
            return Vec::new();
        }
        let namespace = (!object.namespace.is_empty()).then(|| object.namespace.clone().into_owned());
        let mut woken = HashSet::new();
        for name in [Some(object.name.clone().into_owned()), None] {
            let place = Place { kind, namespace: namespace.clone(), name };
            for question in self.by_place.get(&place).into_iter().flatten() {
                if let Some(answer) = self.answers.get_mut(question)
                    && change(question, answer)
                {
                    woken.extend(answer.askers.iter().cloned());
                }
            }
        }
        woken.into_iter().collect()
    }

    fn leave(&mut self, asker: &str, question: &Arc<Question>) {
        let Some(answer) = self.answers.get_mut(question) else { return };
        answer.askers.remove(asker);
        if !answer.askers.is_empty() {
            return;
        }
        self.answers.remove(question);
        let place = question.place();
        if let Some(questions) = self.by_place.get_mut(&place) {
            questions.retain(|other| other != question);
            if questions.is_empty() {
                self.by_place.remove(&place);
            }
        }
    }
}

impl Answer {
    fn lose(&mut self, name: &str, version: u64) -> bool {
        if !self.filled {
            self.left.insert(name.to_owned(), version);
        }
        self.objects.remove(name).is_some()
    }
}

fn version_of(object: &ObjectView<'_>) -> u64 {
    object.resource_version.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(by: Selection) -> Arc<Question> {
        let of = KindRef {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
        };
        Arc::new(Question { kind: 0, of, namespace: Some("n".into()), by, observe: vec!["/data/a".into()] })
    }

    fn named() -> Arc<Question> {
        question(Selection::Name("x".into()))
    }

    fn map(name: &str, version: u64, labels: &Value, value: &str) -> String {
        json!({"metadata": {"name": name, "namespace": "n", "uid": "u", "resourceVersion": version.to_string(),
            "labels": labels}, "data": {"a": value, "b": version.to_string()}})
        .to_string()
    }

    fn event(related: &Related, object: &str) -> Vec<Box<str>> {
        related.seen(0, &ObjectView::parse(object).unwrap())
    }

    fn found(question: &Question, object: &str) -> Vec<Seen> {
        let view = ObjectView::parse(object).unwrap();
        let shown = question.shows(&view).unwrap();
        vec![Seen { name: view.name.clone().into_owned(), version: version_of(&view), shown }]
    }

    fn names(related: &Related, question: &Question) -> Vec<String> {
        related.answer(question).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn only_a_change_of_what_is_asked_for_wakes() {
        let (related, x) = (Related::default(), named());
        related.ask("p", vec![Arc::clone(&x)]);
        assert!(related.answer(&x).is_none());
        assert!(related.read(&x, related.moment(0), found(&x, &map("x", 3, &json!({}), "1"))));
        assert!(event(&related, &map("y", 4, &json!({}), "9")).is_empty(), "nobody asked");
        assert!(event(&related, &map("x", 5, &json!({}), "1")).is_empty(), "another field");
        assert_eq!(event(&related, &map("x", 6, &json!({}), "2")), ["p".into()]);
        assert!(event(&related, &map("x", 4, &json!({}), "1")).is_empty(), "an old state");
        let (_, shown) = related.answer(&x).unwrap().remove(0);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["data"], json!({"a": "2"}));
        let last = map("x", 7, &json!({}), "2");
        assert_eq!(related.gone(0, &ObjectView::parse(&last).unwrap()), ["p".into()]);
        assert!(names(&related, &x).is_empty());
        related.ask("p", Vec::new());
        assert!(related.inner.lock().answers.is_empty() && related.inner.lock().by_place.is_empty());
    }

    #[test]
    fn a_read_that_was_overtaken_counts_for_nothing() {
        let (related, x) = (Related::default(), named());
        related.ask("p", vec![Arc::clone(&x)]);
        let old = found(&x, &map("x", 3, &json!({}), "1"));
        let moment = related.moment(0);
        // Deleted while the answer was on its way.
        let last = map("x", 5, &json!({}), "1");
        related.gone(0, &ObjectView::parse(&last).unwrap());
        assert!(related.read(&x, moment, old.clone()));
        assert!(names(&related, &x).is_empty());
        related.ask("p", Vec::new());
        related.ask("p", vec![Arc::clone(&x)]);
        let moment = related.moment(0);
        related.listed(0, None, &HashSet::new(), 9);
        assert!(!related.read(&x, moment, old), "the watch has listed anew meanwhile");
    }

    #[test]
    fn objects_come_and_go_by_their_labels_and_lists() {
        let (related, all) = (Related::default(), question(Selection::Labels(vec![("a".into(), "b".into())])));
        related.ask("p", vec![Arc::clone(&all)]);
        assert!(related.read(&all, related.moment(0), Vec::new()));
        assert_eq!(event(&related, &map("x", 3, &json!({"a": "b"}), "1")), ["p".into()]);
        assert_eq!(event(&related, &map("y", 4, &json!({"a": "b", "c": "d"}), "1")), ["p".into()]);
        assert_eq!(names(&related, &all), ["x", "y"]);
        assert_eq!(event(&related, &map("x", 5, &json!({}), "1")), ["p".into()], "it has lost the label");
        assert!(related.listed(0, Some("other"), &HashSet::new(), 9).is_empty());
        assert!(related.listed(0, None, &HashSet::new(), 3).is_empty(), "the list is older");
        assert_eq!(related.listed(0, Some("n"), &HashSet::new(), 9), ["p".into()]);
        assert!(names(&related, &all).is_empty());
    }
}
