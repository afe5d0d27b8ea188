//! Watches generated Secrets in the namespaces where a grant says so: what has
//! changed is looked at at once. Of their data only the revision stays here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};

use super::host::Host;
use super::secrets::{resource, revision_of};
use crate::cluster::{ObjectView, Watch, WatchEvent, watch};
use crate::names;

/// A Secret as it was last seen.
#[derive(PartialEq)]
struct Seen {
    uid: String,
    revision: String,
    /// UID of the parent that it is of, by our label.
    instance: String,
}

/// The task ends with the set, and the watches with it.
pub(crate) fn start(host: &Arc<Host>, tasks: &mut JoinSet<()>) {
    tasks.spawn(keep(Arc::clone(host)));
}

/// One watch for each namespace that a plugin of this moment is granted, for ever.
async fn keep(host: Arc<Host>) {
    let mut changes = host.changes();
    let mut watched = HashMap::new();
    let mut tasks = JoinSet::new();
    loop {
        changes.mark_unchanged();
        let wanted = host.serving().secret_namespaces.clone();
        watched.retain(|namespace, task: &mut AbortHandle| {
            let stays = wanted.contains(namespace);
            if !stays {
                task.abort();
            }
            stays
        });
        for namespace in wanted {
            watched.entry(namespace.clone()).or_insert_with(|| tasks.spawn(follow(Arc::clone(&host), namespace)));
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn follow(host: Arc<Host>, namespace: String) {
    let selector = Some(names::INSTANCE_LABEL.to_owned());
    let request = Watch { resource: resource(), namespace: Some(namespace.clone()), selector };
    let handle = watch(host.api.clone(), request, sink(host));
    let mut states = handle.state();
    let mut said = None;
    loop {
        let problem = states.borrow_and_update().problem.clone();
        if problem != said {
            match &problem {
                Some(problem) => tracing::warn!(namespace, "Secrets cannot be watched as granted: {problem:?}"),
                None => tracing::info!(namespace, "Secrets are watched as granted"),
            }
            said = problem;
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

fn sink(host: Arc<Host>) -> impl FnMut(WatchEvent<'_>) + Send + 'static {
    let mut known: HashMap<String, Seen> = HashMap::new();
    let mut listed = HashSet::new();
    move |event| match event {
        WatchEvent::ListStarted => listed.clear(),
        WatchEvent::Listed(object) => {
            listed.insert(object.name.clone().into_owned());
            see(&host, &mut known, object);
        }
        WatchEvent::ListDone { .. } => {
            known.retain(|name, seen| {
                let there = listed.contains(name);
                if !there {
                    host.secret_moved(&seen.instance);
                }
                there
            });
            listed = HashSet::new();
        }
        WatchEvent::Changed(object) => see(&host, &mut known, object),
        WatchEvent::Deleted(object) => {
            if let Some(seen) = known.remove(&*object.name) {
                host.secret_moved(&seen.instance);
            }
        }
    }
}

/// One that is new here was made by the host, or is read by it anyway.
fn see(host: &Host, known: &mut HashMap<String, Seen>, object: &ObjectView<'_>) {
    let Some(instance) = object.labels.get(names::INSTANCE_LABEL) else { return };
    let (uid, instance) = (object.uid.clone().into_owned(), instance.clone().into_owned());
    let seen = Seen { uid, revision: revision_of(object), instance };
    if let Some(before) = known.get(&*object.name).filter(|before| **before != seen) {
        host.secret_moved(&before.instance);
        host.secret_moved(&seen.instance);
    }
    known.insert(object.name.clone().into_owned(), seen);
}
