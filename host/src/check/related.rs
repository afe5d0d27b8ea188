//! What the hook `related` asks for: kinds that the manifest names and the
//! grant gives, in the parent's namespace or one that the grant names, and of
//! Secrets no list.

use std::collections::HashSet;

use super::checked::{Parent, RelatedName};
use super::grant::Grant;
use super::kinds;
use super::syntax;
use super::violation::{Fault, Rule, shown};
use crate::sandbox::model::{KindRef, Manifest, RelatedObject, RelatedQuery, Selection};

/// Characters of a question's id.
const ID_CHARS: usize = 128;

pub(super) fn within_grant(
    queries: &[RelatedQuery],
    parent: &Parent,
    grant: &Grant,
    manifest: &Manifest,
) -> Result<(), Fault> {
    let mut ids = HashSet::new();
    for (index, query) in queries.iter().enumerate() {
        let path = format!("/related/{index}");
        let RelatedQuery { id, kind, namespace, by, observe } = query;
        if id.is_empty() || id.len() > ID_CHARS {
            return Err(Fault::new(Rule::Related, format!("{path}/id"), format!("must have 1 to {ID_CHARS} bytes")));
        }
        if !ids.insert(id) {
            return Err(Fault::new(Rule::Related, format!("{path}/id"), format!("{} stands twice", shown(id))));
        }
        granted(&path, kind, namespace.as_deref(), parent, grant, manifest)?;
        selects(&path, kind, by)?;
        let secret = is_secret(kind);
        for (place, pointer) in observe.iter().enumerate() {
            let path = format!("{path}/observe/{place}");
            if secret {
                return Err(Fault::new(Rule::Related, path, "a Secret shows only its revision"));
            }
            if !syntax::pointer(pointer) {
                return Err(Fault::new(Rule::Related, path, format!("{} is no JSON pointer", shown(pointer))));
            }
        }
    }
    Ok(())
}

/// What children may name: objects of the core group in the parent's own namespace that were found.
pub(super) fn names(queries: &[RelatedQuery], objects: &[RelatedObject], parent: &Parent) -> Vec<RelatedName> {
    let own = |query: &&RelatedQuery| {
        query.kind.group.is_empty() && query.namespace.as_ref().is_none_or(|namespace| *namespace == parent.namespace)
    };
    let asked: HashSet<&str> = queries.iter().filter(own).map(|query| query.id.as_str()).collect();
    let found = objects.iter().filter(|object| object.found.is_some() && asked.contains(object.id.as_str()));
    found.map(|object| RelatedName { kind: object.kind.clone(), name: object.name.clone() }).collect()
}

fn granted(
    path: &str,
    kind: &KindRef,
    namespace: Option<&str>,
    parent: &Parent,
    grant: &Grant,
    manifest: &Manifest,
) -> Result<(), Fault> {
    let told = kinds::shown(&kind.group, &kind.kind);
    if !manifest.related.contains(kind) {
        let message = format!("{told} in version {} is not in the manifest's `related`", shown(&kind.version));
        return Err(Fault::new(Rule::Related, format!("{path}/kind"), message));
    }
    // The manifest was held against an earlier grant, perhaps.
    if !grant.allows_related(&kind.group, &kind.kind) {
        let message = format!("wants to look at {told}, but grant.related does not have it");
        return Err(Fault::new(Rule::NotGranted, format!("{path}/kind"), message));
    }
    let Some(namespace) = namespace.filter(|namespace| *namespace != parent.namespace) else { return Ok(()) };
    let path = format!("{path}/namespace");
    if !syntax::dns_1123_label(namespace) {
        return Err(Fault::new(Rule::Related, path, format!("{} is no namespace", shown(namespace))));
    }
    if grant.allows_related_in(&kind.group, &kind.kind, namespace) {
        return Ok(());
    }
    let message = format!(
        "is not the parent's own namespace, and grant.related of {told} does not name {} in `namespaces`",
        shown(namespace)
    );
    Err(Fault::new(Rule::NotGranted, path, message))
}

/// These become parts of URLs.
fn selects(path: &str, kind: &KindRef, by: &Selection) -> Result<(), Fault> {
    match by {
        // Any that Kubernetes may know: those of roles hold colons and capitals.
        Selection::Name(name) if !is_name(name) => {
            Err(Fault::new(Rule::Related, format!("{path}/by"), format!("{} is no name of an object", shown(name))))
        }
        Selection::Name(_) => Ok(()),
        Selection::Labels(_) if is_secret(kind) => {
            let message = "Secrets are looked at by name only: to list them is to read them all";
            Err(Fault::new(Rule::Related, format!("{path}/by"), message))
        }
        Selection::Labels(labels) => {
            for (key, value) in labels {
                if !syntax::qualified_name(key) || !syntax::label_value(value) {
                    let message = format!("{}={} is no label", shown(key), shown(value));
                    return Err(Fault::new(Rule::Related, format!("{path}/by"), message));
                }
            }
            Ok(())
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=253).contains(&name.len())
        && !matches!(name, "." | "..")
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%'))
}

fn is_secret(kind: &KindRef) -> bool {
    kind.group.is_empty() && kind.kind == "Secret"
}
