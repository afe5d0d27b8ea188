//! Keeps the set of namespaces that are served by their labels.

use std::collections::HashSet;
use std::sync::Arc;

use crate::cluster::{Resource, Watch, WatchEvent, WatchProblem, watch};
use crate::object::host::Host;
use crate::object::queue::Lane;

/// What to do where that is forbidden.
const NAMESPACES_NEED: &str = "a selector of namespaces needs list and watch on namespaces in the whole cluster; \
                               with Roles only, name them by WATCH_NAMESPACE";

/// For ever.
pub(crate) async fn follow(host: Arc<Host>, selector: String) {
    let resource = Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
        namespaced: false,
        has_status: true,
    };
    let request = Watch { resource, namespace: None, selector: Some(selector) };
    let handle = watch(host.api.clone(), request, namespace_sink(Arc::clone(&host)));
    let mut states = handle.state();
    loop {
        let problem = states.borrow_and_update().problem.as_ref().map(|problem| match problem {
            WatchProblem::Forbidden(problem) => format!("{problem}; {NAMESPACES_NEED}"),
            other => other.message().to_owned(),
        });
        if host.namespaces.problem(problem.clone())
            && let Some(problem) = problem
        {
            tracing::error!(verb = "list, watch", resource = "namespaces", "cannot be watched: {problem}");
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

fn namespace_sink(host: Arc<Host>) -> impl FnMut(WatchEvent<'_>) + Send + 'static {
    let mut listed: HashSet<Arc<str>> = HashSet::new();
    let join = |host: &Host, name: &str| {
        if host.namespaces.join(name) {
            tracing::info!(namespace = name, "is served: it has the label");
        }
    };
    move |event| match event {
        WatchEvent::ListStarted => listed.clear(),
        WatchEvent::Listed(namespace) => {
            listed.insert((*namespace.name).into());
            join(&host, &namespace.name);
        }
        WatchEvent::ListDone { .. } => {
            for left in host.namespaces.listed(&listed) {
                leave(&host, &left);
            }
            listed = HashSet::new();
        }
        WatchEvent::Changed(namespace) => join(&host, &namespace.name),
        WatchEvent::Deleted(namespace) => leave(&host, &namespace.name),
    }
}

/// Forgets all that is in a namespace; a worker that finds no parent forgets what it remembers of it.
fn leave(host: &Host, namespace: &str) {
    if !host.namespaces.leave(namespace) {
        return;
    }
    tracing::info!(namespace, "is left as it is: it has lost the label");
    let kinds = host.kinds();
    for index in 0..kinds.parents.len() {
        for key in host.parents.retain(index, Some(namespace), &HashSet::new(), u64::MAX) {
            host.queue.add(key, Lane::Walk);
        }
    }
    for index in 0..kinds.children.len() {
        host.children.retain(index, Some(namespace), &HashSet::new(), u64::MAX);
    }
}
