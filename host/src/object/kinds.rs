//! The kinds that this host watches, and how far each watch has come. The
//! table is made from the plugins; what the API server knows of a kind is
//! filled in when it is found.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::children::Child;
use super::namespaces::Namespaces;
use super::reduction::Reduction;
use crate::cluster::{ObjectView, Resource};
use crate::plugin::{ParentKind, Registry};
use crate::sandbox::model::KindRef;

pub(crate) struct Kinds {
    pub parents: Vec<Kind>,
    pub children: Vec<Kind>,
    reductions: Vec<Reduction>,
    by_ref: HashMap<KindRef, usize>,
    child_names: Vec<String>,
}

pub(crate) struct Kind {
    pub group: String,
    /// Best first; what a cluster serves is taken. Empty: whatever it serves.
    pub versions: Vec<String>,
    pub kind: String,
    /// Empty where only the cluster knows it.
    pub plural: String,
    /// Of a parent: claimed only by plugins that do not serve. Watched to say so.
    pub unserved: bool,
    /// Not watched: looked at by name where it must be.
    pub unwatched: bool,
    scopes: Vec<Scope>,
    resource: RwLock<Option<Arc<Resource>>>,
    served: Arc<Namespaces>,
}

/// One watch: of a namespace, or of all.
pub(crate) struct Scope {
    pub namespace: Option<String>,
    state: RwLock<State>,
    /// Why a filled watch does not go on just now.
    trouble: RwLock<Option<String>>,
    /// The joins of namespaces that its list came after.
    joins: AtomicU64,
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
    /// `namespaces` empty: all, by one watch a kind.
    pub(crate) fn new(registry: &Registry, namespaces: &[String], served: &Arc<Namespaces>) -> Self {
        let mut refs: Vec<KindRef> = registry
            .plugins()
            .iter()
            .flat_map(|plugin| plugin.manifest.children.iter().map(|child| child.kind.clone()))
            .collect();
        refs.sort();
        refs.dedup();
        let reductions: Vec<Reduction> =
            refs.iter().enumerate().map(|(index, kind)| reduction(registry, index, kind)).collect();
        let children = refs.iter().map(|kind| Kind::child(kind, namespaces, served)).collect();
        let parents = registry.parent_kinds().into_iter().map(|kind| Kind::parent(kind, namespaces, served));
        let unserved = registry.unserved_kinds().into_iter();
        let unserved = unserved.map(|(group, kind)| Kind::unserved(group, kind, namespaces, served));
        Self {
            parents: parents.chain(unserved).collect(),
            child_names: refs.iter().map(|kind| kind.kind.clone()).collect(),
            by_ref: refs.into_iter().enumerate().map(|(index, kind)| (kind, index)).collect(),
            children,
            reductions,
        }
    }

    pub(crate) fn child(&self, kind: &KindRef) -> Option<(usize, &Kind)> {
        let index = *self.by_ref.get(kind)?;
        Some((index, self.children.get(index)?))
    }

    pub(crate) fn resource(&self, child: usize) -> Option<Arc<Resource>> {
        self.children.get(child)?.resource()
    }

    pub(crate) fn reduce(&self, child: usize, object: &ObjectView<'_>) -> Option<Child> {
        self.reductions.get(child)?.reduce(object)
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

fn reduction(registry: &Registry, index: usize, kind: &KindRef) -> Reduction {
    let observe = registry.plugins().iter().filter_map(|plugin| {
        let child = plugin.manifest.children.iter().find(|child| child.kind == *kind)?;
        Some((plugin.name.clone(), child.observe.clone()))
    });
    Reduction {
        kind: index,
        group: kind.group.clone(),
        api_version: api_version(&kind.group, &kind.version),
        name: kind.kind.clone(),
        observe: observe.collect(),
    }
}

// === impl Kind ===

impl Kind {
    fn child(kind: &KindRef, namespaces: &[String], served: &Arc<Namespaces>) -> Self {
        let KindRef { group, version, kind, plural } = kind.clone();
        // `list` on Secrets is read access to all of them.
        let unwatched = group.is_empty() && kind == "Secret";
        Self { unwatched, ..Self::new(ParentKind { group, versions: vec![version], kind, plural }, namespaces, served) }
    }

    fn parent(kind: ParentKind, namespaces: &[String], served: &Arc<Namespaces>) -> Self {
        Self::new(kind, namespaces, served)
    }

    /// A grant names neither version nor plural: the cluster knows them.
    fn unserved(group: String, kind: String, namespaces: &[String], served: &Arc<Namespaces>) -> Self {
        let kind = ParentKind { group, versions: Vec::new(), kind, plural: String::new() };
        Self { unserved: true, ..Self::new(kind, namespaces, served) }
    }

    fn new(kind: ParentKind, namespaces: &[String], served: &Arc<Namespaces>) -> Self {
        let ParentKind { group, versions, kind, plural } = kind;
        let scope = |namespace| Scope {
            namespace,
            state: RwLock::new(State::Starting(None)),
            trouble: RwLock::new(None),
            joins: AtomicU64::new(0),
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
            unserved: false,
            unwatched: false,
            scopes,
            resource: RwLock::new(None),
            served: Arc::clone(served),
        }
    }

    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Whether its objects in a namespace are known; an error where they cannot be.
    pub(crate) fn usable(&self, namespace: &str) -> Result<bool, Unusable> {
        let covers = |scope: &&Scope| scope.namespace.as_deref().is_none_or(|own| own == namespace);
        let Some(scope) = self.scopes.iter().find(covers) else { return Ok(false) };
        match scope.state() {
            State::Filled => Ok(self.resource().is_some()
                && (self.unwatched || self.served.covered(namespace, scope.joins.load(Ordering::Relaxed)))),
            State::Unusable(problem) => Err(problem),
            State::Starting(_) => Ok(false),
        }
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

    /// Its list is complete, and was begun after so many joins.
    pub(crate) fn covers(&self, joins: u64) {
        self.joins.store(joins, Ordering::Relaxed);
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
