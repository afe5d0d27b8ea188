//! Plugin objects of the API server, as they are at this moment.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::sync::watch as cell;

use crate::clock;
use crate::cluster::backoff::Backoff;
use crate::cluster::{Api, ObjectView, Resource, Watch, WatchEvent, WatchProblem, watch};
use crate::limits::WATCH_BACKOFF;
use crate::names;
use crate::plugin::status::PluginStatus;

const PLURAL: &str = "plugins";

/// All that are there. Filled by [`follow`].
pub struct Objects {
    inner: RwLock<Inner>,
    changed: cell::Sender<()>,
}

#[derive(Default)]
struct Inner {
    by_name: BTreeMap<String, Arc<Object>>,
    /// Listed once.
    filled: bool,
    /// Why they cannot be listed, or do not come further for now.
    problem: Option<String>,
    /// It is known that they cannot be listed: the kind is missing, or forbidden.
    impossible: bool,
    resource: Option<Resource>,
}

/// One Plugin object.
#[derive(Debug, PartialEq)]
pub struct Object {
    pub name: String,
    pub uid: String,
    pub generation: i64,
    /// As a Plugin document, JSON text.
    pub text: String,
    pub status: PluginStatus,
}

// === impl Objects ===

impl Default for Objects {
    fn default() -> Self {
        Self { inner: RwLock::default(), changed: cell::Sender::new(()) }
    }
}

impl Objects {
    /// In the order of their names.
    pub fn all(&self) -> Vec<Arc<Object>> {
        self.inner.read().by_name.values().cloned().collect()
    }

    /// Told of each change.
    pub fn changes(&self) -> cell::Receiver<()> {
        self.changed.subscribe()
    }

    /// Whether all are known, or it is known that none can be.
    pub fn are_known(&self) -> bool {
        let inner = self.inner.read();
        inner.filled || inner.impossible
    }

    pub fn are_filled(&self) -> bool {
        self.inner.read().filled
    }

    /// Why they are not seen, or not any more.
    pub fn problem(&self) -> Option<String> {
        self.inner.read().problem.clone()
    }

    /// Where they stand in the API, once it is known.
    pub fn resource(&self) -> Option<Resource> {
        self.inner.read().resource.clone()
    }

    fn set(&self, problem: Option<String>, impossible: bool) {
        let mut inner = self.inner.write();
        if inner.problem == problem && inner.impossible == impossible {
            return;
        }
        match &problem {
            Some(problem) => tracing::warn!("Plugin objects cannot be watched: {problem}"),
            None => tracing::info!("Plugin objects are watched again"),
        }
        (inner.problem, inner.impossible) = (problem, impossible);
        drop(inner);
        self.changed.send_replace(());
    }

    fn put(&self, object: &ObjectView<'_>) {
        let Some(object) = read(object) else { return };
        self.inner.write().by_name.insert(object.name.clone(), Arc::new(object));
    }
}

/// Keeps them, for ever.
pub async fn follow(api: Api, objects: Arc<Objects>) {
    let mut backoff = Backoff::new(WATCH_BACKOFF);
    loop {
        match api.discover(names::GROUP, names::VERSION, PLURAL).await {
            Ok(Some(resource)) => {
                objects.inner.write().resource = Some(resource.clone());
                until_missing(&api, resource, &objects).await;
                backoff.reset();
            }
            Ok(None) => {
                let kind = format!("{PLURAL}.{} in version {}", names::GROUP, names::VERSION);
                objects.set(Some(format!("the API server serves no {kind}; apply the CRD of `keelson crd`")), true);
            }
            Err(error) => objects.set(Some(error.to_string()), false),
        }
        clock::sleep(backoff.next_delay()).await;
    }
}

async fn until_missing(api: &Api, resource: Resource, objects: &Arc<Objects>) {
    let request = Watch { resource, namespace: None, selector: None };
    let handle = watch(api.clone(), request, sink(Arc::clone(objects)));
    let mut states = handle.state();
    loop {
        let problem = states.borrow_and_update().problem.clone();
        let impossible = matches!(problem, Some(WatchProblem::Forbidden(_) | WatchProblem::Missing(_)));
        let missing = matches!(problem, Some(WatchProblem::Missing(_)));
        objects.set(problem.as_ref().map(|problem| problem.message().to_owned()), impossible);
        if missing || states.changed().await.is_err() {
            return;
        }
    }
}

fn sink(objects: Arc<Objects>) -> impl FnMut(WatchEvent<'_>) + Send + 'static {
    let mut listed = HashSet::new();
    move |event| {
        match event {
            WatchEvent::ListStarted => return listed.clear(),
            WatchEvent::Listed(object) => {
                listed.insert(object.name.clone().into_owned());
                return objects.put(object);
            }
            WatchEvent::ListDone { .. } => {
                let mut inner = objects.inner.write();
                inner.by_name.retain(|name, _| listed.contains(name));
                inner.filled = true;
                listed = HashSet::new();
            }
            WatchEvent::Changed(object) => objects.put(object),
            WatchEvent::Deleted(object) => drop(objects.inner.write().by_name.remove(&*object.name)),
        }
        objects.changed.send_replace(());
    }
}

/// Of the object only what its author wrote is a document.
fn read(object: &ObjectView<'_>) -> Option<Object> {
    let field = |name: &str| object.fields.get(name).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let api_version = format!("{}/{}", names::GROUP, names::VERSION);
    let text = json!({
        "apiVersion": api_version,
        "kind": "Plugin",
        "metadata": {"name": object.name},
        "spec": field("spec").unwrap_or(Value::Null),
    });
    Some(Object {
        name: object.name.clone().into_owned(),
        uid: object.uid.clone().into_owned(),
        generation: object.generation.unwrap_or(0),
        text: text.to_string(),
        status: field("status").and_then(|status| serde_json::from_value(status).ok()).unwrap_or_default(),
    })
}
