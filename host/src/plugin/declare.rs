//! What the component says that it is, held against itself, against what this
//! host can run, and against the grant.

use crate::check::{self, Grant, Violation};
use crate::sandbox::{CallError, Component, Manifest, Serving};

#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    #[error("describe: {0}")]
    Describe(#[from] CallError),
    #[error("describe gave two different manifests in two calls")]
    Unsteady,
    #[error("manifest: {field}: {rule}")]
    Manifest { field: String, rule: &'static str },
    #[error(transparent)]
    NotGranted(#[from] Violation),
}

impl DeclareError {
    pub fn reason(&self) -> &str {
        match self {
            Self::Describe(error) => error.reason(),
            Self::Unsteady | Self::Manifest { .. } => "OutputInvalid",
            Self::NotGranted(violation) => violation.reason(),
        }
    }
}

pub fn declare(component: &Component, grant: &Grant) -> Result<Manifest, DeclareError> {
    let manifest = component.describe().0?;
    if component.describe().0? != manifest {
        return Err(DeclareError::Unsteady);
    }
    check::manifest(&manifest, grant)?;
    consistent(&manifest)?;
    let rule = "names kinds, and the plugin exports no `relations` interface to ask for them";
    agree(manifest.related.is_empty() || component.hooks().relations, "/related", rule)?;
    Ok(manifest)
}

/// What `check::manifest` leaves: the manifest at one with itself.
fn consistent(manifest: &Manifest) -> Result<(), DeclareError> {
    let Manifest { serves, schema, .. } = manifest;
    for (index, serving) in serves.iter().enumerate() {
        let Serving { group, versions, kind, plural, discriminator: _ } = serving;
        let other = |other: &&Serving| other.group == *group && other.kind == *kind;
        let agrees =
            serves.iter().find(other).is_none_or(|first| first.versions == *versions && first.plural == *plural);
        let rule = "a kind that is served twice has the same versions and plural each time";
        agree(agrees, &format!("/serves/{index}"), rule)?;
    }
    agree(schema.as_ref().is_none_or(serde_json::Value::is_object), "/schema", "must be a JSON object")
}

fn agree(holds: bool, field: &str, rule: &'static str) -> Result<(), DeclareError> {
    if holds { Ok(()) } else { Err(DeclareError::Manifest { field: field.to_owned(), rule }) }
}
