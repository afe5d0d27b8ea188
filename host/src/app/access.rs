//! What this host may do, asked at start, so that a missing right is named
//! before an object runs into it. Only says; the watches and walks find out
//! for themselves.

use std::collections::BTreeSet;

use crate::cluster::{Api, Resource};
use crate::plugin::{Plugin, Registry};
use crate::sandbox::model::KindRef;

const PARENT_VERBS: [&str; 3] = ["get", "list", "watch"];
/// What plugins look at.
const RELATED_VERBS: [&str; 3] = ["get", "list", "watch"];
const CHILD_VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
/// Generated Secrets are made, read and mended by name, never listed.
const SECRET_VERBS: [&str; 4] = ["get", "create", "patch", "delete"];

/// Those of a selector, in the whole cluster.
const NAMESPACE_VERBS: [&str; 2] = ["list", "watch"];

/// One question, and for whom it is asked.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    pub kind: KindRef,
    pub subresource: Option<&'static str>,
    pub verb: &'static str,
    namespace: Option<String>,
    plugin: String,
}

/// Logs each verb that is missing. Returns how many.
pub(crate) async fn say_what_is_missing(
    api: &Api,
    registry: &Registry,
    namespaces: &[String],
    selects_namespaces: bool,
) -> usize {
    let mut missing = 0;
    let namespaces_too = selects_namespaces.then(of_namespaces).into_iter().flatten();
    for need in needs(registry, namespaces).into_iter().chain(namespaces_too) {
        let Need { kind, subresource, verb, namespace, plugin } = &need;
        let resource = resource(kind);
        match api.may(verb, &resource, *subresource, namespace.as_deref()).await {
            Ok(true) => {}
            Ok(false) => {
                missing += 1;
                let scope =
                    namespace.as_ref().map_or_else(|| "all namespaces".to_owned(), |name| format!("namespace {name}"));
                let path = subresource.map_or_else(String::new, |sub| format!("/{sub}"));
                tracing::warn!(
                    verb,
                    resource = format!("{}{path}", resource.dotted()),
                    scope,
                    plugin,
                    "the host's ServiceAccount lacks a right that it needs"
                );
            }
            Err(error) => {
                tracing::debug!("could not ask for rights: {error}");
                return missing;
            }
        }
    }
    missing
}

/// For a selector of namespaces; no plugin's need.
fn of_namespaces() -> [Need; 2] {
    NAMESPACE_VERBS.map(|verb| Need {
        kind: KindRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            plural: "namespaces".to_owned(),
        },
        subresource: None,
        verb,
        namespace: None,
        plugin: String::new(),
    })
}

fn needs(registry: &Registry, namespaces: &[String]) -> BTreeSet<Need> {
    registry.plugins().iter().flat_map(|plugin| needs_of(plugin, namespaces)).collect()
}

/// What the host must be allowed for one plugin; `namespaces` empty: everywhere.
pub(crate) fn needs_of(plugin: &Plugin, namespaces: &[String]) -> BTreeSet<Need> {
    let scopes: Vec<Option<String>> =
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().cloned().map(Some).collect() };
    let mut needs = BTreeSet::new();
    for namespace in &scopes {
        let mut need = |kind: &KindRef, subresource, verb| {
            needs.insert(Need {
                kind: kind.clone(),
                subresource,
                verb,
                namespace: namespace.clone(),
                plugin: plugin.name.clone(),
            });
        };
        for serving in &plugin.manifest.serves {
            let kind = KindRef {
                group: serving.group.clone(),
                version: serving.versions.first().cloned().unwrap_or_default(),
                kind: serving.kind.clone(),
                plural: serving.plural.clone(),
            };
            PARENT_VERBS.iter().for_each(|verb| need(&kind, None, verb));
            need(&kind, Some("status"), "patch");
            if plugin.component.hooks().finalizer {
                // Its finalizer is put on the parent itself.
                need(&kind, None, "patch");
            }
            // For blockOwnerDeletion, where the admission plugin for it is on.
            need(&kind, Some("finalizers"), "update");
        }
        for child in &plugin.manifest.children {
            let secret = child.kind.group.is_empty() && child.kind.kind == "Secret";
            let verbs: &[&str] = if secret { &SECRET_VERBS } else { &CHILD_VERBS };
            verbs.iter().for_each(|verb| need(&child.kind, None, verb));
            if child.kind.group.is_empty() && child.kind.kind == "Pod" {
                // For changes of resources where a Pod stands.
                need(&child.kind, Some("resize"), "patch");
            }
        }
        for kind in &plugin.manifest.related {
            let secret = kind.group.is_empty() && kind.kind == "Secret";
            let verbs: &[&str] = if secret { &["get"] } else { &RELATED_VERBS };
            verbs.iter().for_each(|verb| need(kind, None, verb));
        }
        if !plugin.grant.user_secrets.is_empty() {
            need(&secret(), None, "get");
        }
        let events = KindRef {
            group: "events.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "Event".to_owned(),
            plural: "events".to_owned(),
        };
        need(&events, None, "create");
    }
    let watched = plugin.grant.watch_secrets.iter();
    for namespace in watched.filter(|name| namespaces.is_empty() || namespaces.contains(*name)) {
        for verb in ["list", "watch"] {
            needs.insert(Need {
                kind: secret(),
                subresource: None,
                verb,
                namespace: Some(namespace.clone()),
                plugin: plugin.name.clone(),
            });
        }
    }
    needs
}

fn secret() -> KindRef {
    KindRef { group: String::new(), version: "v1".to_owned(), kind: "Secret".to_owned(), plural: "secrets".to_owned() }
}

fn resource(kind: &KindRef) -> Resource {
    let KindRef { group, version, kind, plural } = kind.clone();
    Resource { group, version, kind, plural, namespaced: true, has_status: false }
}
