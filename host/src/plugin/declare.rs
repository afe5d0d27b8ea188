//! What the component says that it is, held against itself, against what this
//! host can run, and against the grant.

use std::collections::BTreeMap;

use super::syntax;
use crate::check::{self, Grant, Violation};
use crate::sandbox::{CallError, ChildKind, Component, Hooks, KindRef, Manifest, Serving};

#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    #[error("describe: {0}")]
    Describe(#[from] CallError),
    #[error("describe gave two different manifests in two calls")]
    Unsteady,
    #[error("manifest: {field}: {rule}")]
    Manifest { field: String, rule: String },
    #[error("exports the hook `{0}`, which this host does not run yet")]
    Hook(&'static str),
    #[error(transparent)]
    NotGranted(#[from] Violation),
}

impl DeclareError {
    pub fn reason(&self) -> &str {
        match self {
            Self::Describe(error) => error.reason(),
            Self::Unsteady | Self::Manifest { .. } => "OutputInvalid",
            Self::Hook(_) => "ArtifactInvalid",
            Self::NotGranted(violation) => violation.reason(),
        }
    }
}

pub fn declare(component: &Component, grant: &Grant) -> Result<Manifest, DeclareError> {
    // A hook that is passed over would be a promise broken: a finalizer's data
    // not saved, a render without the objects that it asked for.
    let Hooks { finalizer, relations } = component.hooks();
    for (name, exported) in [("finalizer", finalizer), ("relations", relations)] {
        if exported {
            return Err(DeclareError::Hook(name));
        }
    }
    let manifest = component.describe().0?;
    if component.describe().0? != manifest {
        return Err(DeclareError::Unsteady);
    }
    sound(&manifest)?;
    check::manifest(&manifest, grant)?;
    Ok(manifest)
}

/// Whether the manifest holds together, whatever is granted.
fn sound(manifest: &Manifest) -> Result<(), DeclareError> {
    let Manifest { name, version, serves, children, related, schema, uses_time: _ } = manifest;
    rule(syntax::dns_label(name), "name", || format!("{name:?} must be a DNS-1123 label"))?;
    rule(syntax::semver(version), "version", || format!("{version:?} must be a semantic version, such as 0.1.0"))?;
    rule(!serves.is_empty(), "serves", || "must name at least one kind".to_owned())?;
    let mut parents = BTreeMap::new();
    for (index, serving) in serves.iter().enumerate() {
        let Serving { group, versions, kind, plural, discriminator } = serving;
        let at = format!("serves[{index}]");
        rule(!versions.is_empty(), &at, || "must name at least one version".to_owned())?;
        for version in versions {
            kind_ref(&at, group, version, kind, plural)?;
        }
        if let Some(discriminator) = discriminator {
            pointer(&format!("{at}.discriminator.path"), &discriminator.path)?;
        }
        let same = *parents.entry((group, kind)).or_insert((versions, plural)) == (versions, plural);
        rule(same, &at, || format!("{kind}.{group} is served twice with different versions or plurals"))?;
    }
    let mut kinds = BTreeMap::new();
    for (index, ChildKind { kind, observe }) in children.iter().enumerate() {
        let at = format!("children[{index}]");
        let KindRef { group, version, kind, plural } = kind;
        kind_ref(&at, group, version, kind, plural)?;
        let once = kinds.insert((group, kind), ()).is_none();
        rule(once, &at, || format!("{kind} of group {group:?} is named twice"))?;
        observe.iter().try_for_each(|path| pointer(&format!("{at}.observe"), path))?;
    }
    for (index, KindRef { group, version, kind, plural }) in related.iter().enumerate() {
        kind_ref(&format!("related[{index}]"), group, version, kind, plural)?;
    }
    rule(schema.as_ref().is_none_or(serde_json::Value::is_object), "schema", || "must be a JSON object".to_owned())
}

fn kind_ref(at: &str, group: &str, version: &str, kind: &str, plural: &str) -> Result<(), DeclareError> {
    rule(group.is_empty() || syntax::dns_subdomain(group), at, || format!("{group:?} is not an API group"))?;
    rule(syntax::dns_1035_label(version), at, || format!("{version:?} is not a version, such as v1"))?;
    rule(syntax::kind(kind), at, || format!("{kind:?} is not a kind, such as Pod"))?;
    rule(syntax::dns_1035_label(plural), at, || format!("{plural:?} is not the name of a resource, such as pods"))
}

fn pointer(at: &str, path: &str) -> Result<(), DeclareError> {
    rule(syntax::json_pointer(path), at, || format!("{path:?} is not a JSON pointer, such as /spec/type"))
}

fn rule(holds: bool, field: &str, message: impl FnOnce() -> String) -> Result<(), DeclareError> {
    if holds { Ok(()) } else { Err(DeclareError::Manifest { field: field.to_owned(), rule: message() }) }
}

#[cfg(test)]
mod tests;
