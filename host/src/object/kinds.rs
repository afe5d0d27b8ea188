//! The kinds that this host watches, and how far each watch has come. The
//! table is made from the plugins; what the API server knows of a kind is
//! filled in when it is found.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use super::children::{Child, Reduction};
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
    /// Best first; what a cluster serves is taken.
    pub versions: Vec<String>,
    pub kind: String,
    pub plural: String,
    /// Not watched: looked at by name where it must be.
    pub unwatched: bool,
    scopes: Vec<Scope>,
    resource: RwLock<Option<Arc<Resource>>>,
}

/// One watch: of a namespace, or of all.
pub(crate) struct Scope {
    pub namespace: Option<String>,
    state: RwLock<State>,
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
    pub(crate) fn new(registry: &Registry, namespaces: &[String]) -> Self {
        let mut refs: Vec<KindRef> = registry
            .plugins()
            .iter()
            .flat_map(|plugin| plugin.manifest.children.iter().map(|child| child.kind.clone()))
            .collect();
        refs.sort();
        refs.dedup();
        let reductions: Vec<Reduction> =
            refs.iter().enumerate().map(|(index, kind)| reduction(registry, index, kind)).collect();
        let children: Vec<Kind> = refs.iter().map(|kind| Kind::child(kind, namespaces)).collect();
        let parents = registry.parent_kinds().into_iter().map(|kind| Kind::parent(kind, namespaces)).collect();
        Self {
            parents,
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
    fn child(kind: &KindRef, namespaces: &[String]) -> Self {
        let KindRef { group, version, kind, plural } = kind.clone();
        // `list` on Secrets is read access to all of them.
        let unwatched = group.is_empty() && kind == "Secret";
        Self::new(group, vec![version], kind, plural, unwatched, namespaces)
    }

    fn parent(kind: ParentKind, namespaces: &[String]) -> Self {
        let ParentKind { group, versions, kind, plural } = kind;
        Self::new(group, versions, kind, plural, false, namespaces)
    }

    fn new(
        group: String,
        versions: Vec<String>,
        kind: String,
        plural: String,
        unwatched: bool,
        namespaces: &[String],
    ) -> Self {
        let scope = |namespace| Scope { namespace, state: RwLock::new(State::Starting(None)) };
        let scopes = if namespaces.is_empty() {
            vec![scope(None)]
        } else {
            namespaces.iter().map(|namespace| scope(Some(namespace.clone()))).collect()
        };
        Self { group, versions, kind, plural, unwatched, scopes, resource: RwLock::new(None) }
    }

    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Whether its objects in a namespace are known; an error where they cannot be.
    pub(crate) fn usable(&self, namespace: &str) -> Result<bool, Unusable> {
        let covers = |scope: &&Scope| scope.namespace.as_deref().is_none_or(|own| own == namespace);
        match self.scopes.iter().find(covers).map(Scope::state) {
            Some(State::Filled) => Ok(self.resource().is_some()),
            Some(State::Unusable(problem)) => Err(problem),
            Some(State::Starting(_)) | None => Ok(false),
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
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
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
