//! Keeps the caches: finds each kind, watches it, and wakes the objects that an
//! event matters to. A kind that is missing or forbidden is looked for again,
//! slowly; it works without a restart once it is there.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::children::ChildId;
use super::host::Host;
use super::kinds::{Kind, State, Unusable};
use super::parents::{Parent, ParentKey};
use super::queue::Lane;
use crate::clock;
use crate::cluster::backoff::Backoff;
use crate::cluster::{ObjectView, Resource, Watch, WatchEvent, WatchProblem, WatchState, watch};
use crate::limits::{KIND_RECHECK, WATCH_BACKOFF};
use crate::names;

#[derive(Clone, Copy)]
enum Role {
    Parent(usize),
    Child(usize),
}

/// Watches every kind in every scope, for ever; none counts as filled before it was listed anew. The tasks end with the set.
pub(crate) fn start(host: &Arc<Host>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let parents = host.kinds.parents.iter().enumerate().map(|(index, kind)| (Role::Parent(index), kind));
    let children = host.kinds.children.iter().enumerate().map(|(index, kind)| (Role::Child(index), kind));
    for (role, kind) in parents.chain(children) {
        for (index, scope) in kind.scopes().iter().enumerate() {
            scope.set(State::Starting(None));
            tasks.spawn(subscribe(Arc::clone(host), role, index));
        }
    }
    tasks
}

/// Finds the kind, watches it, and begins anew when it is taken away.
async fn subscribe(host: Arc<Host>, role: Role, scope: usize) {
    let mut backoff = Backoff::new(WATCH_BACKOFF);
    loop {
        let kind = role.kind(&host);
        match find(&host, kind).await {
            Ok(Some(resource)) => {
                let namespaced = resource.namespaced;
                kind.found(Some(resource.clone()));
                if !namespaced {
                    let problem = format!("{} is cluster-scoped; parents and children are namespaced", kind.name());
                    move_to(&host, role, scope, State::Unusable(Unusable::Missing(problem)));
                } else if kind.unwatched {
                    move_to(&host, role, scope, State::Filled);
                    std::future::pending::<()>().await;
                } else if follow(&host, role, scope, resource).await {
                    // It was there: look for it again at once, then slower.
                    backoff.reset();
                }
            }
            Ok(None) => {
                let problem =
                    format!("the API server serves no {} in version {}", kind.name(), kind.versions.join(" or "));
                move_to(&host, role, scope, State::Unusable(Unusable::Missing(problem)));
            }
            Err(problem) => move_to(&host, role, scope, State::Starting(Some(problem))),
        }
        clock::sleep(backoff.next_delay()).await;
    }
}

/// The first version that is served.
async fn find(host: &Host, kind: &Kind) -> Result<Option<Resource>, String> {
    for version in &kind.versions {
        match host.api.discover(&kind.group, version, &kind.plural).await {
            Ok(Some(resource)) => return Ok(Some(resource)),
            Ok(None) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(None)
}

/// Watches until the kind is gone, or served in another way. Returns whether it was ever filled.
async fn follow(host: &Arc<Host>, role: Role, scope: usize, resource: Resource) -> bool {
    let namespace = role.kind(host).scopes().get(scope).and_then(|scope| scope.namespace.clone());
    let selector = matches!(role, Role::Child(_)).then(|| names::INSTANCE_LABEL.to_owned());
    let request = Watch { resource: resource.clone(), namespace: namespace.clone(), selector };
    let handle = match role {
        Role::Parent(index) => watch(host.api.clone(), request, parent_sink(Arc::clone(host), index, namespace)),
        Role::Child(index) => watch(host.api.clone(), request, child_sink(Arc::clone(host), index, namespace)),
    };
    let mut states = handle.state();
    let mut filled = false;
    let mut opened = 1;
    let mut recheck = None;
    loop {
        let state = states.borrow_and_update().clone();
        filled |= state.filled;
        if state.opened > opened && matches!(role, Role::Parent(_)) {
            opened = state.opened;
            recheck = Some(clock::instant() + KIND_RECHECK);
        }
        let missing = matches!(state.problem, Some(WatchProblem::Missing(_)));
        move_to(host, role, scope, state.into());
        if missing {
            role.kind(host).found(None);
            return filled;
        }
        let due = async {
            match recheck {
                Some(at) => clock::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = states.changed() => if changed.is_err() { return filled },
            () = due => {
                recheck = None;
                if let Ok(Some(found)) = find(host, role.kind(host)).await && found != resource {
                    tracing::info!(kind = role.kind(host).name(), status = found.has_status, "is served in another way");
                    return filled;
                }
            }
        }
    }
}

/// Records a state, says it once, and wakes whom it matters to.
fn move_to(host: &Host, role: Role, scope: usize, state: State) {
    let kind = role.kind(host);
    let Some(scope) = kind.scopes().get(scope) else { return };
    if !scope.set(state.clone()) {
        return;
    }
    let (kind, place) = (kind.name(), scope.words());
    match state {
        State::Filled => tracing::info!(kind, "watching {place}"),
        State::Starting(None) => {}
        State::Starting(Some(problem)) => tracing::warn!(kind, "cannot be watched {place}: {problem}"),
        State::Unusable(Unusable::Forbidden(problem)) => {
            tracing::error!(kind, verb = "list, watch", resource = kind, scope = place, "forbidden: {problem}");
        }
        State::Unusable(Unusable::Missing(problem)) => tracing::warn!(kind, "missing: {problem}"),
    }
    for index in 0..host.kinds.parents.len() {
        for key in host.parents.keys(index) {
            host.queue.add(key, Lane::Walk);
        }
    }
}

fn parent_sink(
    host: Arc<Host>,
    index: usize,
    namespace: Option<String>,
) -> impl FnMut(WatchEvent<'_>) + Send + 'static {
    let mut listed = HashSet::new();
    move |event| match event {
        WatchEvent::ListStarted => listed.clear(),
        WatchEvent::Listed(object) => {
            listed.insert(key_of(object, index));
            parent_seen(&host, index, object);
        }
        WatchEvent::ListDone { .. } => {
            // A worker that finds no parent forgets what it remembers of it.
            for key in host.parents.retain(index, namespace.as_deref(), &listed) {
                host.queue.add(key, Lane::Walk);
            }
            listed = HashSet::new();
        }
        WatchEvent::Changed(object) => parent_seen(&host, index, object),
        WatchEvent::Deleted(object) => {
            let key = key_of(object, index);
            if host.parents.remove(&key, &object.uid) {
                host.queue.add(key, Lane::Walk);
            }
        }
    }
}

fn key_of(object: &ObjectView<'_>, kind: usize) -> ParentKey {
    ParentKey { kind, namespace: (*object.namespace).into(), name: (*object.name).into() }
}

fn version_of(object: &ObjectView<'_>) -> u64 {
    object.resource_version.parse().unwrap_or(0)
}

fn parent_seen(host: &Host, index: usize, object: &ObjectView<'_>) {
    let Some(kind) = host.kinds.parents.get(index) else { return };
    if host.parents.knows(&key_of(object, index), &object.uid, version_of(object)) {
        return;
    }
    match Parent::reduce(object, &kind.api_version(), &kind.kind) {
        Ok(parent) => {
            if let Some(key) = host.parents.put(index, parent) {
                host.queue.add(key, Lane::Walk);
            }
        }
        Err(error) => {
            tracing::error!(kind = kind.name(), namespace = %object.namespace, name = %object.name, "cannot be read: {error}")
        }
    }
}

fn child_sink(host: Arc<Host>, index: usize, namespace: Option<String>) -> impl FnMut(WatchEvent<'_>) + Send + 'static {
    let mut listed = HashSet::new();
    move |event| match event {
        WatchEvent::ListStarted => listed.clear(),
        WatchEvent::Listed(object) => {
            listed.insert(child_id(object, index));
            child_seen(&host, index, object);
        }
        WatchEvent::ListDone { resource_version } => {
            let version = resource_version.parse().unwrap_or(u64::MAX);
            host.wake(host.children.retain(index, namespace.as_deref(), &listed, version));
            listed = HashSet::new();
        }
        WatchEvent::Changed(object) => child_seen(&host, index, object),
        WatchEvent::Deleted(object) => {
            let id = child_id(object, index);
            host.wake(host.children.remove(&id, &object.uid));
            host.name_is_free(&id);
        }
    }
}

fn child_id(object: &ObjectView<'_>, kind: usize) -> ChildId {
    ChildId { kind, namespace: (*object.namespace).into(), name: (*object.name).into() }
}

fn child_seen(host: &Host, index: usize, object: &ObjectView<'_>) {
    if host.children.knows(&child_id(object, index), &object.uid, version_of(object)) {
        return;
    }
    match host.kinds.reduce(index, object) {
        Some(child) => host.wake(host.children.put(Arc::new(child))),
        // Somebody else's from now on, if it was a child before.
        None => host.wake(host.children.remove(&child_id(object, index), &object.uid)),
    }
}

// === impl Role ===

impl Role {
    fn kind(self, host: &Host) -> &Kind {
        let kind = match self {
            Self::Parent(index) => host.kinds.parents.get(index),
            Self::Child(index) => host.kinds.children.get(index),
        };
        kind.expect("roles are made from the table, which never shrinks")
    }
}

impl From<WatchState> for State {
    fn from(state: WatchState) -> Self {
        match (state.problem, state.filled) {
            (Some(WatchProblem::Forbidden(problem)), _) => Self::Unusable(Unusable::Forbidden(problem)),
            (Some(WatchProblem::Missing(problem)), _) => Self::Unusable(Unusable::Missing(problem)),
            (_, true) => Self::Filled,
            (Some(WatchProblem::Unreachable(problem)), false) => Self::Starting(Some(problem)),
            (None, false) => Self::Starting(None),
        }
    }
}
