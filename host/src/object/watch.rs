//! Keeps the caches: finds each kind, watches it, and wakes the objects that an
//! event matters to. A kind that is missing or forbidden is looked for again,
//! slowly; it works without a restart once it is there.

mod sinks;
mod labelled;

use std::sync::Arc;

use tokio::task::JoinSet;

use self::sinks::{child_sink, parent_sink};
use super::host::Host;
use super::kinds::{Kind, State, Unusable};
use super::queue::Lane;
use crate::clock;
use crate::cluster::backoff::Backoff;
use crate::cluster::{Resource, Watch, WatchHandle, WatchProblem, WatchState, watch};
use crate::limits::{KIND_RECHECK, NAMESPACES_SETTLE, WATCH_BACKOFF};
use crate::names;

#[derive(Clone, Copy)]
enum Role {
    Parent(usize),
    Child(usize),
}

/// Watches every kind in every scope, for ever; none counts as filled before it was listed anew. The tasks end with the set.
pub(crate) fn start(host: &Arc<Host>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    host.namespaces.begin();
    let parents = host.kinds.parents.iter().enumerate().map(|(index, kind)| (Role::Parent(index), kind));
    let children = host.kinds.children.iter().enumerate().map(|(index, kind)| (Role::Child(index), kind));
    for (role, kind) in parents.chain(children) {
        for (index, scope) in kind.scopes().iter().enumerate() {
            scope.set(State::Starting(None));
            tasks.spawn(subscribe(Arc::clone(host), role, index));
        }
    }
    if let Some(selector) = &host.namespaces.selector {
        tasks.spawn(labelled::follow(Arc::clone(host), selector.clone()));
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
                host.namespaces.known().await;
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
                let versions = if kind.unserved {
                    "any version".to_owned()
                } else {
                    format!("version {}", kind.versions.join(" or "))
                };
                let problem = format!("the API server serves no {} in {versions}", kind.name());
                move_to(&host, role, scope, State::Unusable(Unusable::Missing(problem)));
            }
            Err(problem) => move_to(&host, role, scope, State::Starting(Some(problem))),
        }
        clock::sleep(backoff.next_delay()).await;
    }
}

/// The first version that is served.
async fn find(host: &Host, kind: &Kind) -> Result<Option<Resource>, String> {
    if kind.unserved {
        return host.api.discover_kind(&kind.group, &kind.kind).await.map_err(|error| error.to_string());
    }
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
    let open = || {
        let request = Watch { resource: resource.clone(), namespace: namespace.clone(), selector: selector.clone() };
        let (host, namespace) = (Arc::clone(host), namespace.clone());
        match role {
            Role::Parent(index) => watch(host.api.clone(), request, parent_sink(host, index, namespace)),
            Role::Child(index) => watch(host.api.clone(), request, child_sink(host, index, namespace)),
        }
    };
    let mut joined = host.namespaces.joins();
    let mut joins = *joined.borrow_and_update();
    let mut handle = open();
    let mut states = handle.state();
    // What lists anew, for namespaces that have joined: it takes over when its list is complete.
    let mut next: Option<(WatchHandle, u64)> = None;
    let mut filled = false;
    let mut opened = 1;
    let mut recheck = None;
    loop {
        let state = states.borrow_and_update().clone();
        if state.filled
            && let Some(scope) = role.kind(host).scopes().get(scope)
        {
            scope.covers(joins);
            scope.set_trouble(state.problem.as_ref().map(WatchProblem::message));
        }
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
        let listed = async {
            match &next {
                Some((next, _)) => next.state().wait_for(|state| state.filled).await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = states.changed() => if changed.is_err() { return filled },
            Ok(()) = joined.changed() => {
                clock::sleep(NAMESPACES_SETTLE).await;
                let joins = *joined.borrow_and_update();
                next = Some((open(), joins));
            }
            true = listed => if let Some((new, since)) = next.take() {
                (handle, joins) = (new, since);
                states = handle.state();
                opened = 1;
                if let Some(scope) = role.kind(host).scopes().get(scope) {
                    scope.covers(joins);
                }
                wake_all(host);
            },
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
    wake_all(host);
}

fn wake_all(host: &Host) {
    for index in 0..host.kinds.parents.len() {
        for key in host.parents.keys(index) {
            host.queue.add(key, Lane::Walk);
        }
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
