//! What becomes of each event: into the caches, and into the queue what it matters to.

use std::collections::HashSet;
use std::sync::Arc;

use crate::cluster::{ObjectView, WatchEvent};
use crate::object::children::ChildId;
use crate::object::host::Host;
use crate::object::parents::{Parent, ParentKey};
use crate::object::queue::Lane;

pub(crate) fn parent_sink(
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
        WatchEvent::ListDone { resource_version } => {
            let version = resource_version.parse().unwrap_or(u64::MAX);
            // A worker that finds no parent forgets what it remembers of it.
            for key in host.parents.retain(index, namespace.as_deref(), &listed, version) {
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
    let Some(kind) = host.parent_kind(index) else { return };
    let Some(_admission) = host.namespaces.admit(&object.namespace) else { return };
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

pub(crate) fn child_sink(
    host: Arc<Host>,
    index: usize,
    namespace: Option<String>,
) -> impl FnMut(WatchEvent<'_>) + Send + 'static {
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
    let Some(_admission) = host.namespaces.admit(&object.namespace) else { return };
    let kinds = host.kinds();
    if host.children.knows(&child_id(object, index), &object.uid, version_of(object), kinds.reduced_since(index)) {
        return;
    }
    match kinds.reduce(index, object) {
        Some(child) => host.wake(host.children.put(Arc::new(child))),
        // Somebody else's from now on, if it was a child before.
        None => host.wake(host.children.remove(&child_id(object, index), &object.uid)),
    }
}

/// Whatever namespaces are served: what is asked for in others was granted.
pub(crate) fn related_sink(
    host: Arc<Host>,
    index: usize,
    namespace: Option<String>,
) -> impl FnMut(WatchEvent<'_>) + Send + 'static {
    let mut listed = HashSet::new();
    move |event| match event {
        WatchEvent::ListStarted => listed.clear(),
        WatchEvent::Listed(object) => {
            listed.insert((object.namespace.clone().into_owned(), object.name.clone().into_owned()));
            host.wake(host.related.seen(index, object));
        }
        WatchEvent::ListDone { resource_version } => {
            let version = resource_version.parse().unwrap_or(u64::MAX);
            host.wake(host.related.listed(index, namespace.as_deref(), &listed, version));
            listed = HashSet::new();
        }
        WatchEvent::Changed(object) => host.wake(host.related.seen(index, object)),
        WatchEvent::Deleted(object) => host.wake(host.related.gone(index, object)),
    }
}
