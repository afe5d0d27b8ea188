//! What this host may do, asked at start, so that a missing right is named
//! before an object runs into it. Only says; the watches and walks find out
//! for themselves.

use std::collections::BTreeSet;

use crate::cluster::{Api, Resource};
use crate::plugin::Registry;
use crate::sandbox::model::KindRef;

const PARENT_VERBS: [&str; 3] = ["get", "list", "watch"];
const CHILD_VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
/// Generated Secrets are made and read by name, never listed.
const SECRET_VERBS: [&str; 2] = ["get", "create"];

/// One question, and for whom it is asked.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    kind: KindRef,
    subresource: Option<&'static str>,
    verb: &'static str,
    namespace: Option<String>,
    plugin: String,
}

/// Logs each verb that is missing. Returns how many.
pub(crate) async fn say_what_is_missing(api: &Api, registry: &Registry, namespaces: &[String]) -> usize {
    let mut missing = 0;
    for need in needs(registry, namespaces) {
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
                    "the host's ServiceAccount lacks a right that this plugin needs"
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

fn needs(registry: &Registry, namespaces: &[String]) -> BTreeSet<Need> {
    let scopes: Vec<Option<String>> =
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().cloned().map(Some).collect() };
    let mut needs = BTreeSet::new();
    for plugin in registry.plugins() {
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
            let events = KindRef {
                group: "events.k8s.io".to_owned(),
                version: "v1".to_owned(),
                kind: "Event".to_owned(),
                plural: "events".to_owned(),
            };
            need(&events, None, "create");
        }
    }
    needs
}

fn resource(kind: &KindRef) -> Resource {
    let KindRef { group, version, kind, plural } = kind.clone();
    Resource { group, version, kind, plural, namespaced: true, has_status: false }
}
