//! The kinds that this host watches, and how far each watch has come. The
//! table is made from the plugins; what the API server knows of a kind is
//! filled in when it is found.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tokio::sync::watch as cell;

use super::children::Child;
use super::namespaces::Namespaces;
use super::reduction::Reduction;
use crate::cluster::{ObjectView, Resource};
use crate::plugin::{ParentKind, Plugin, Registry};
use crate::sandbox::model::KindRef;

/// One snapshot. A later one has all kinds of an earlier one under the same
/// index; what nobody needs any more is idle.
#[derive(Default)]
pub(crate) struct Kinds {
    pub parents: Vec<Arc<Kind>>,
    pub children: Vec<Arc<Kind>>,
    /// What plugins look at beside them.
    pub related: Vec<Arc<Kind>>,
    /// Grows with each change of the plugins.
    pub generation: u64,
    reductions: Vec<Arc<Reduction>>,
    by_ref: HashMap<KindRef, usize>,
    related_by_ref: HashMap<KindRef, usize>,
    child_names: Vec<String>,
}

pub(crate) struct Kind {
    pub group: String,
    /// Best first; what a cluster serves is taken. Empty: whatever it serves.
    pub versions: Vec<String>,
    pub kind: String,
    /// Empty where only the cluster knows it.
    pub plural: String,
    /// Not watched: looked at by name where it must be.
    pub unwatched: bool,
    standing: RwLock<Standing>,
    scopes: Vec<Scope>,
    resource: RwLock<Option<Arc<Resource>>>,
    served: Arc<Namespaces>,
    /// The table since which its reduction is as it is: lists that are older lack what is observed now.
    reduced: cell::Sender<u64>,
}

/// Why a kind is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// For plugins that serve.
    Serving,
    /// For plugins that will serve when their caches are filled.
    Staged,
    /// Of a parent: no plugin serves it. Watched to say so.
    Unserved,
    /// For nobody any more; not watched.
    Idle,
}

/// One watch: of a namespace, or of all.
pub(crate) struct Scope {
    pub namespace: Option<String>,
    state: RwLock<State>,
    /// Why a filled watch does not go on just now.
    trouble: RwLock<Option<String>>,
    /// The joins of namespaces that its list came after.
    joins: AtomicU64,
    /// The table of kinds that its list was reduced by.
    listed: AtomicU64,
}

/// How far a watch has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing is known yet, or the API server does not answer.
    Starting(Option<String>),
    /// Listed once; stays so while it reconnects.
    Filled,
    Unusable(Unusable),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    Forbidden(String),
    Missing(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Forbidden(problem) | Self::Missing(problem)) = self;
        f.write_str(problem)
    }
}

// === impl Kinds ===

impl Kinds {
    /// What `next` needs beside this; `now` goes on as it is until [`Self::settle`].
    /// `namespaces` empty: all, by one watch a kind.
    pub(crate) fn staged(
        &self,
        now: &Registry,
        next: &Registry,
        namespaces: &[String],
        served: &Arc<Namespaces>,
    ) -> Self {
        let generation = self.generation + 1;
        let mut kinds = Self {
            parents: self.parents.clone(),
            children: self.children.clone(),
            related: self.related.clone(),
            related_by_ref: self.related_by_ref.clone(),
            generation,
            reductions: self.reductions.clone(),
            by_ref: self.by_ref.clone(),
            child_names: self.child_names.clone(),
        };
        for wanted in next.parent_kinds() {
            let known = kinds.parents.iter_mut().find(|kind| kind.is(&wanted.group, &wanted.kind));
            match known {
                Some(kind) if kind.versions == wanted.versions && kind.plural == wanted.plural => {}
                Some(kind) => *kind = Arc::new(Kind::new(wanted, kind.standing(), namespaces, served)),
                None => kinds.parents.push(Arc::new(Kind::new(wanted, Standing::Staged, namespaces, served))),
            }
        }
        for (group, kind) in next.unserved_kinds() {
            if !kinds.parents.iter().any(|known| known.is(&group, &kind)) {
                // A grant names neither version nor plural: the cluster knows them.
                let kind = ParentKind { group, versions: Vec::new(), kind, plural: String::new() };
                kinds.parents.push(Arc::new(Kind::new(kind, Standing::Staged, namespaces, served)));
            }
        }
        for kind in children_of(next) {
            if !kinds.by_ref.contains_key(&kind) {
                let index = kinds.children.len();
                kinds.children.push(Arc::new(Kind::child(&kind, namespaces, served)));
                kinds.child_names.push(kind.kind.clone());
                kinds.reductions.push(Arc::new(Reduction::new(index, &kind, generation)));
                kinds.by_ref.insert(kind, index);
            }
        }
        for kind in related_to(next) {
            if !kinds.related_by_ref.contains_key(&kind) {
                let index = kinds.related.len();
                kinds.related.push(Arc::new(Kind::child(&kind, namespaces, served)));
                kinds.related_by_ref.insert(kind, index);
            }
        }
        for (kind, &index) in &kinds.by_ref {
            let Some(reduction) = kinds.reductions.get_mut(index) else { continue };
            let observed = now.plugins().iter().chain(next.plugins()).filter_map(|plugin| observed(plugin, kind));
            if let Some(wider) = reduction.widened(observed, generation) {
                *reduction = Arc::new(wider);
            }
        }
        let wanted: HashSet<KindRef> = related_to(next).collect();
        for (_, &index) in kinds.related_by_ref.iter().filter(|(kind, _)| wanted.contains(kind)) {
            if let Some(kind) = kinds.related.get(index).filter(|kind| kind.standing() == Standing::Idle) {
                kind.stand(Standing::Staged);
            }
        }
        for (kind, reduction) in kinds.children.iter().zip(&kinds.reductions) {
            if kind.standing() == Standing::Idle {
                kind.stand(Standing::Staged);
            }
            kind.reduced.send_if_modified(|since| std::mem::replace(since, reduction.since) != reduction.since);
        }
        kinds
    }

    /// From now on these plugins serve.
    pub(crate) fn settle(&self, registry: &Registry) {
        let served: HashSet<(String, String)> =
            registry.parent_kinds().into_iter().map(|kind| (kind.group, kind.kind)).collect();
        for kind in &self.parents {
            let serves = served.contains(&(kind.group.clone(), kind.kind.clone()));
            kind.stand(if serves { Standing::Serving } else { Standing::Unserved });
        }
        let (children, related) = (children_of(registry).collect(), related_to(registry).collect());
        let tables = [(&self.by_ref, &self.children, children), (&self.related_by_ref, &self.related, related)];
        for (by_ref, kinds, needed) in tables {
            let needed: HashSet<KindRef> = needed;
            for (kind, &index) in by_ref {
                if let Some(known) = kinds.get(index) {
                    known.stand(if needed.contains(kind) { Standing::Serving } else { Standing::Idle });
                }
            }
        }
    }

    /// Whether what the plugin observes is kept of its children already.
    pub(crate) fn keep_all_of(&self, plugin: &Plugin) -> bool {
        plugin.manifest.children.iter().all(|child| {
            let reduction = self.by_ref.get(&child.kind).and_then(|index| self.reductions.get(*index));
            reduction.is_some_and(|reduction| reduction.keeps(&plugin.name, &child.observe))
        })
    }

    /// Whether all that the plugin needs is listed, or known to be impossible.
    pub(crate) fn are_filled_for(&self, plugin: &Plugin, since: u64) -> bool {
        let serves = |kind: &&Arc<Kind>| plugin.manifest.serves.iter().any(|one| kind.is(&one.group, &one.kind));
        let parents = self.parents.iter().filter(serves).map(|kind| (kind, 0));
        let children = plugin.manifest.children.iter().filter_map(|child| self.by_ref.get(&child.kind));
        let children = children.filter_map(|index| self.children.get(*index)).map(|kind| (kind, since));
        let related = plugin.manifest.related.iter().filter_map(|kind| self.related(kind)).map(|(_, kind)| (kind, 0));
        parents.chain(children).chain(related).all(|(kind, since)| {
            kind.scopes.iter().all(|scope| match scope.state() {
                State::Starting(_) => false,
                State::Filled => kind.unwatched || scope.listed.load(Ordering::Relaxed) >= since,
                State::Unusable(_) => true,
            })
        })
    }

    pub(crate) fn child(&self, kind: &KindRef) -> Option<(usize, &Arc<Kind>)> {
        let index = *self.by_ref.get(kind)?;
        Some((index, self.children.get(index)?))
    }

    pub(crate) fn related(&self, kind: &KindRef) -> Option<(usize, &Arc<Kind>)> {
        let index = *self.related_by_ref.get(kind)?;
        Some((index, self.related.get(index)?))
    }

    pub(crate) fn resource(&self, child: usize) -> Option<Arc<Resource>> {
        self.children.get(child)?.resource()
    }

    pub(crate) fn reduce(&self, child: usize, object: &ObjectView<'_>) -> Option<Child> {
        self.reductions.get(child)?.reduce(object)
    }

    /// The table since which children of this kind are reduced as they are.
    pub(crate) fn reduced_since(&self, child: usize) -> u64 {
        self.reductions.get(child).map_or(0, |reduction| reduction.since)
    }

    /// Reads a child from an answer of the API server.
    pub(crate) fn read(&self, child: usize, json: &[u8]) -> Result<Child, String> {
        let view = ObjectView::from_slice(json).map_err(|error| error.to_string())?;
        self.reduce(child, &view).ok_or_else(|| "the answer lacks the label that was applied".to_owned())
    }

    /// The kinds of children by index, for messages.
    pub(crate) fn names(&self) -> &[String] {
        &self.child_names
    }
}

fn children_of(registry: &Registry) -> impl Iterator<Item = KindRef> {
    registry.plugins().iter().flat_map(|plugin| plugin.manifest.children.iter().map(|child| child.kind.clone()))
}

fn related_to(registry: &Registry) -> impl Iterator<Item = KindRef> {
    registry.plugins().iter().flat_map(|plugin| plugin.manifest.related.iter().cloned())
}

fn observed<'a>(plugin: &'a Plugin, kind: &KindRef) -> Option<(&'a str, &'a [String])> {
    let child = plugin.manifest.children.iter().find(|child| child.kind == *kind)?;
    Some((&plugin.name, &child.observe))
}

// === impl Kind ===

impl Kind {
    fn child(kind: &KindRef, namespaces: &[String], served: &Arc<Namespaces>) -> Self {
        let KindRef { group, version, kind, plural } = kind.clone();
        // `list` on Secrets is read access to all of them.
        let unwatched = group.is_empty() && kind == "Secret";
        let kind = ParentKind { group, versions: vec![version], kind, plural };
        Self { unwatched, ..Self::new(kind, Standing::Staged, namespaces, served) }
    }

    fn new(kind: ParentKind, standing: Standing, namespaces: &[String], served: &Arc<Namespaces>) -> Self {
        let ParentKind { group, versions, kind, plural } = kind;
        let scope = |namespace| Scope {
            namespace,
            state: RwLock::new(State::Starting(None)),
            trouble: RwLock::new(None),
            joins: AtomicU64::new(0),
            listed: AtomicU64::new(0),
        };
        let scopes = if namespaces.is_empty() {
            vec![scope(None)]
        } else {
            namespaces.iter().map(|namespace| scope(Some(namespace.clone()))).collect()
        };
        Self {
            group,
            versions,
            kind,
            plural,
            unwatched: false,
            standing: RwLock::new(standing),
            scopes,
            resource: RwLock::new(None),
            served: Arc::clone(served),
            reduced: cell::Sender::new(0),
        }
    }

    fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    pub(crate) fn standing(&self) -> Standing {
        *self.standing.read()
    }

    fn stand(&self, standing: Standing) {
        *self.standing.write() = standing;
    }

    /// Told of each change of what is kept of its objects.
    pub(crate) fn reduced(&self) -> cell::Receiver<u64> {
        self.reduced.subscribe()
    }

    /// Nothing of it counts as known, until it is listed anew.
    pub(crate) fn begin(&self) {
        for scope in &self.scopes {
            scope.set(State::Starting(None));
        }
    }

    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Whether its objects in a namespace are known, reduced as they are since that table; an error where they cannot be.
    pub(crate) fn usable(&self, namespace: &str, since: u64) -> Result<bool, Unusable> {
        let covers = |scope: &&Scope| scope.namespace.as_deref().is_none_or(|own| own == namespace);
        let Some(scope) = self.scopes.iter().find(covers) else { return Ok(false) };
        match scope.state() {
            State::Filled => Ok(self.resource().is_some()
                && (self.unwatched
                    || scope.listed.load(Ordering::Relaxed) >= since
                        && self.served.covered(namespace, scope.joins.load(Ordering::Relaxed)))),
            State::Unusable(problem) => Err(problem),
            State::Starting(_) => Ok(false),
        }
    }

    /// How far the watch has come that would tell of an object, of whichever parent; `None` where there is none. Without a
    /// namespace: of a kind that has none.
    pub(crate) fn watched(&self, namespace: Option<&str>) -> Option<State> {
        let covers = |scope: &&Scope| match namespace {
            Some(namespace) => scope.namespace.as_deref().is_none_or(|own| own == namespace),
            None => true,
        };
        self.scopes.iter().find(covers).map(Scope::state)
    }

    pub(crate) fn resource(&self) -> Option<Arc<Resource>> {
        self.resource.read().clone()
    }

    pub(crate) fn found(&self, resource: Option<Resource>) {
        *self.resource.write() = resource.map(Arc::new);
    }

    /// As users write it: `widgets.example.org`.
    pub(crate) fn name(&self) -> String {
        let plural = match self.resource() {
            Some(resource) => resource.plural.clone(),
            None if self.plural.is_empty() => self.kind.to_ascii_lowercase(),
            None => self.plural.clone(),
        };
        if self.group.is_empty() { plural } else { format!("{plural}.{}", self.group) }
    }

    pub(crate) fn api_version(&self) -> String {
        let version = self.resource().map(|resource| resource.version.clone());
        api_version(&self.group, &version.or_else(|| self.versions.first().cloned()).unwrap_or_default())
    }
}

impl Scope {
    pub(crate) fn state(&self) -> State {
        self.state.read().clone()
    }

    /// Returns whether it is another than before.
    pub(crate) fn set(&self, state: State) -> bool {
        let mut current = self.state.write();
        let changed = *current != state;
        *current = state;
        changed
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.read().clone()
    }

    pub(crate) fn set_trouble(&self, trouble: Option<&str>) {
        if self.trouble.read().as_deref() != trouble {
            *self.trouble.write() = trouble.map(str::to_owned);
        }
    }

    /// Its list is complete, and was begun after so many joins, with this table of kinds.
    pub(crate) fn covers(&self, joins: u64, table: u64) {
        self.joins.store(joins, Ordering::Relaxed);
        self.listed.store(table, Ordering::Relaxed);
    }

    /// `in all namespaces`, `in namespace x`.
    pub(crate) fn words(&self) -> String {
        self.namespace
            .as_ref()
            .map_or_else(|| "in all namespaces".to_owned(), |namespace| format!("in namespace {namespace}"))
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
