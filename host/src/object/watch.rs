//! Keeps the caches: finds each kind, watches it, and wakes the objects that an
//! event matters to. A kind that is missing or forbidden is looked for again,
//! slowly; it works without a restart once it is there.

mod sinks;
mod labelled;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};

use self::sinks::{child_sink, parent_sink, related_sink};
use super::host::Host;
use super::kinds::{Kind, Kinds, Standing, State, Unusable};
use crate::clock;
use crate::cluster::backoff::Backoff;
use crate::cluster::{Resource, Watch, WatchHandle, WatchProblem, WatchState, watch};
use crate::limits::{KIND_RECHECK, NAMESPACES_SETTLE, WATCH_BACKOFF};
use crate::names;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    Parent(usize),
    Child(usize),
    Related(usize),
}

/// A kind that is watched, and the tasks that do it.
struct Watched {
    kind: Arc<Kind>,
    tasks: Vec<AbortHandle>,
}

/// Watches every kind in every scope, for ever; none counts as filled before it was listed anew. The tasks end with the set.
pub(crate) fn start(host: &Arc<Host>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    host.namespaces.begin();
    for (_, kind) in roles(&host.kinds()) {
        kind.begin();
    }
    tasks.spawn(keep(Arc::clone(host)));
    if let Some(selector) = &host.namespaces.selector {
        tasks.spawn(labelled::follow(Arc::clone(host), selector.clone()));
    }
    tasks
}

fn roles(kinds: &Kinds) -> Vec<(Role, Arc<Kind>)> {
    let parents = kinds.parents.iter().enumerate().map(|(index, kind)| (Role::Parent(index), Arc::clone(kind)));
    let children = kinds.children.iter().enumerate().map(|(index, kind)| (Role::Child(index), Arc::clone(kind)));
    let related = kinds.related.iter().enumerate().map(|(index, kind)| (Role::Related(index), Arc::clone(kind)));
    parents.chain(children).chain(related).collect()
}

/// Watches what the table of kinds holds, whenever it is another.
async fn keep(host: Arc<Host>) {
    let mut changes = host.changes();
    let mut watched: HashMap<Role, Watched> = HashMap::new();
    let mut tasks = JoinSet::new();
    loop {
        changes.mark_unchanged();
        for (role, kind) in roles(&host.kinds()) {
            let idle = kind.standing() == Standing::Idle;
            if let Some(known) = watched.get(&role)
                && (idle || !Arc::ptr_eq(&known.kind, &kind))
            {
                known.tasks.iter().for_each(AbortHandle::abort);
                watched.remove(&role);
                kind.begin();
                if idle {
                    forget(&host, role);
                }
            }
            if !idle && !watched.contains_key(&role) {
                let scopes = 0..kind.scopes().len();
                let tasks =
                    scopes.map(|scope| tasks.spawn(subscribe(Arc::clone(&host), role, Arc::clone(&kind), scope)));
                watched.insert(role, Watched { tasks: tasks.collect(), kind });
            }
        }
        loop {
            tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                Some(ended) = tasks.join_next() => match ended {
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_) => {}
                    // Watches have no end of their own.
                    Ok(()) => return,
                },
            }
        }
    }
}

/// What is not watched is not known.
fn forget(host: &Host, role: Role) {
    match role {
        Role::Child(index) => drop(host.children.retain(index, None, &HashSet::new(), u64::MAX)),
        Role::Related(index) => host.related.forget(index),
        Role::Parent(_) => {}
    }
}

/// Finds the kind, watches it, and begins anew when it is taken away.
async fn subscribe(host: Arc<Host>, role: Role, kind: Arc<Kind>, scope: usize) {
    let mut backoff = Backoff::new(WATCH_BACKOFF);
    loop {
        match find(&host, &kind).await {
            Ok(Some(resource)) => {
                let namespaced = resource.namespaced;
                host.namespaces.known().await;
                kind.found(Some(resource.clone()));
                if !namespaced && !matches!(role, Role::Related(_)) {
                    let problem = format!("{} is cluster-scoped; parents and children are namespaced", kind.name());
                    move_to(&host, &kind, scope, State::Unusable(Unusable::Missing(problem)));
                } else if kind.unwatched || !namespaced && scope > 0 {
                    // Of a kind without namespaces the first watch tells all.
                    move_to(&host, &kind, scope, State::Filled);
                    std::future::pending::<()>().await;
                } else if follow(&host, role, &kind, scope, resource).await {
                    // It was there: look for it again at once, then slower.
                    backoff.reset();
                }
            }
            Ok(None) => {
                let versions = if kind.plural.is_empty() {
                    "any version".to_owned()
                } else {
                    format!("version {}", kind.versions.join(" or "))
                };
                let problem = format!("the API server serves no {} in {versions}", kind.name());
                move_to(&host, &kind, scope, State::Unusable(Unusable::Missing(problem)));
            }
            Err(problem) => move_to(&host, &kind, scope, State::Starting(Some(problem))),
        }
        clock::sleep(backoff.next_delay()).await;
    }
}

/// The first version that is served.
async fn find(host: &Host, kind: &Kind) -> Result<Option<Resource>, String> {
    if kind.plural.is_empty() {
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
async fn follow(host: &Arc<Host>, role: Role, kind: &Kind, scope: usize, resource: Resource) -> bool {
    let Some(place) = kind.scopes().get(scope) else { return false };
    let namespace = place.namespace.clone().filter(|_| resource.namespaced);
    let selector = matches!(role, Role::Child(_)).then(|| names::INSTANCE_LABEL.to_owned());
    let open = || {
        let request = Watch { resource: resource.clone(), namespace: namespace.clone(), selector: selector.clone() };
        let (host, namespace) = (Arc::clone(host), namespace.clone());
        match role {
            Role::Parent(index) => watch(host.api.clone(), request, parent_sink(host, index, namespace)),
            Role::Child(index) => watch(host.api.clone(), request, child_sink(host, index, namespace)),
            Role::Related(index) => watch(host.api.clone(), request, related_sink(host, index, namespace)),
        }
    };
    let (mut joined, mut reduced) = (host.namespaces.joins(), kind.reduced());
    let mut begun = (*joined.borrow_and_update(), *reduced.borrow_and_update());
    let mut handle = open();
    let mut states = handle.state();
    // What lists anew, for namespaces that have joined or for more of each object: it takes over when its list is complete.
    let mut next: Option<(WatchHandle, (u64, u64))> = None;
    let mut filled = false;
    let mut opened = 1;
    let mut recheck = None;
    loop {
        let state = states.borrow_and_update().clone();
        if state.filled {
            place.covers(begun.0, begun.1);
            place.set_trouble(state.problem.as_ref().map(WatchProblem::message));
        }
        filled |= state.filled;
        if state.opened > opened && matches!(role, Role::Parent(_)) {
            opened = state.opened;
            recheck = Some(clock::instant() + KIND_RECHECK);
        }
        let missing = matches!(state.problem, Some(WatchProblem::Missing(_)));
        move_to(host, kind, scope, state.into());
        if missing {
            kind.found(None);
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
            Ok(()) = joined.changed(), if !matches!(role, Role::Related(_)) => {
                clock::sleep(NAMESPACES_SETTLE).await;
                let since = (*joined.borrow_and_update(), *reduced.borrow_and_update());
                next = Some((open(), since));
            }
            Ok(()) = reduced.changed() => {
                let since = (*joined.borrow_and_update(), *reduced.borrow_and_update());
                next = Some((open(), since));
            }
            true = listed => if let Some((new, since)) = next.take() {
                (handle, begun) = (new, since);
                states = handle.state();
                opened = 1;
                place.covers(begun.0, begun.1);
                host.progressed();
                host.wake_all();
            },
            () = due => {
                recheck = None;
                if let Ok(Some(found)) = find(host, kind).await && found != resource {
                    tracing::info!(kind = kind.name(), status = found.has_status, "is served in another way");
                    return filled;
                }
            }
        }
    }
}

/// Records a state, says it once, and wakes whom it matters to.
fn move_to(host: &Host, kind: &Kind, scope: usize, state: State) {
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
    host.progressed();
    host.wake_all();
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
