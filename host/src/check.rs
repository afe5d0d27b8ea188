//! Holds what a plugin says against what it may do. Pure: no cluster, no guest,
//! no clock. Allow-lists: what is not known here is refused, and the first broken
//! rule refuses the whole, before anything is applied.
//!
//! `manifest` once when a plugin is loaded, `parent` before each render,
//! `rendering` after it.

mod path;
mod violation;
pub(crate) mod syntax;
mod kinds;
mod grant;
mod checked;
mod manifest;
mod name;
mod metadata;
mod pod_template;
mod shape;
mod security;
mod container;
mod volume;
mod pod;
mod objects;
mod child;
mod secret;
mod report;
mod related;

pub use checked::{
    Checked, CheckedChild, CheckedChildren, CheckedFinalization, CheckedParts, Context, Parent, RelatedName,
};
pub use grant::{
    AllowedFields, Grant, GrantedDiscriminator, GrantedKind, GrantedParent, GrantedRelated, Strategy, UserSecrets,
};
pub use path::{field, in_child};
pub use pod_template::pod_template_metadata;
pub use secret::{Piece, is_plain as is_plain_secret, template};
pub use violation::{Rule, Violation};

use shape::Own;
use violation::Fault;

use crate::sandbox::model::{
    Asked, Child, ChildKind, Children, Finalization, Finalized, GeneratedSecret, Manifest, RelatedObject, RelatedQuery,
    Rendered, Rendering,
};

/// The manifest within the grant, and the grant sound in itself.
pub fn manifest(manifest: &Manifest, grant: &Grant) -> Result<(), Violation> {
    manifest::within_grant(manifest, grant).map_err(|fault| fault.of(&manifest.name))
}

/// The parent's name and namespace: before any render, so that nothing is half-made.
pub fn parent(parent: &Parent, plugin: &str, grant: &Grant, manifest: &Manifest) -> Result<(), Violation> {
    name::parent(parent, grant, manifest).map_err(|fault| fault.of(plugin))
}

/// What the plugin wants to look at, within manifest and grant.
pub fn related(
    asked: Asked,
    parent: &Parent,
    plugin: &str,
    grant: &Grant,
    manifest: &Manifest,
) -> Result<Vec<RelatedQuery>, Violation> {
    let queries = asked.into_queries();
    related::within_grant(&queries, parent, grant, manifest).map_err(|fault| fault.of(plugin))?;
    Ok(queries)
}

/// What children may name of what was found.
pub fn related_names(queries: &[RelatedQuery], objects: &[RelatedObject], parent: &Parent) -> Vec<RelatedName> {
    related::names(queries, objects, parent)
}

/// The whole rendering, the first violation or none.
pub fn rendering(rendered: Rendered, context: &Context<'_>) -> Result<Checked, Violation> {
    every_rule(rendered.into_rendering(), context)
}

/// As [`rendering`]: what is made for a parent that goes keeps the same rules.
pub fn finalization(finalized: Finalized, context: &Context<'_>) -> Result<CheckedFinalization, Violation> {
    let Finalization { children, secrets, waiting, look_again_after } = finalized.into_finalization();
    let rendering = Rendering {
        children,
        secrets,
        status: serde_json::Map::new(),
        conditions: Vec::new(),
        not_ready: waiting,
        look_again_after,
    };
    let Checked { parts } = every_rule(rendering, context)?;
    let CheckedParts { children, secrets, status: _, conditions: _, not_ready, look_again_after } = parts;
    Ok(CheckedFinalization { children, secrets, waiting: not_ready, look_again_after })
}

fn every_rule(rendering: Rendering, context: &Context<'_>) -> Result<Checked, Violation> {
    let Rendering { children, secrets, status, conditions, not_ready, look_again_after } = rendering;
    let said = |fault: Fault| fault.of(context.plugin);
    parent(context.parent, context.plugin, context.grant, context.manifest)?;
    let (keep, children) = match children {
        Children::Keep => (true, Vec::new()),
        Children::Exactly(children) => (false, children),
        Children::None => (false, Vec::new()),
    };
    let count = children.len().saturating_add(secrets.len());
    let most = context.limits.children as usize;
    if count > most {
        return Err(said(Fault::new(Rule::Count, "", format!("{count} children and Secrets, of at most {most}"))));
    }

    let owned = identities(&children, &secrets, context)?;
    let children = match keep {
        true => CheckedChildren::Keep,
        false => CheckedChildren::Exactly(
            children
                .into_iter()
                .zip(owned)
                .map(|(child, (kind, name))| child::checked(child, kind, name, context))
                .collect(),
        ),
    };
    report::status(&status).map_err(said)?;
    let conditions = report::conditions(conditions).map_err(said)?;
    let not_ready = not_ready.map(report::not_ready).transpose().map_err(said)?;
    Ok(Checked { parts: CheckedParts { children, secrets, status, conditions, not_ready, look_again_after } })
}

/// Kind and name of each child, after every rule for children and Secrets: first what each is, since they may name each other.
fn identities(
    children: &[Child],
    secrets: &[GeneratedSecret],
    context: &Context<'_>,
) -> Result<Vec<(ChildKind, String)>, Violation> {
    let refused = |fault: Fault, index: usize, child: &Child| {
        fault.in_item(context.plugin, in_child(index, ""), child::told(&child.object))
    };
    let mut own = Own::new();
    let mut identities = Vec::with_capacity(children.len());
    for (index, child) in children.iter().enumerate() {
        let identity = child::identify(&child.object, context).map_err(|fault| refused(fault, index, child))?;
        if !own.insert((identity.group, &identity.kind.kind.kind, identity.name)) {
            let fault = Fault::new(Rule::Duplicate, "/metadata/name", "stands twice in this rendering");
            return Err(refused(fault, index, child));
        }
        identities.push(identity);
    }
    for (index, secret) in secrets.iter().enumerate() {
        let said = |fault: Fault| fault.in_item(context.plugin, format!("secrets[{index}]"), secret::told(secret));
        secret::rules(secret, context).map_err(said)?;
        if !own.insert(("", "Secret", &secret.name)) {
            return Err(said(Fault::new(Rule::Duplicate, "/name", "stands twice in this rendering")));
        }
    }
    for (index, (child, identity)) in children.iter().zip(&identities).enumerate() {
        child::rules(child, *identity, &own, context).map_err(|fault| refused(fault, index, child))?;
    }
    Ok(identities.into_iter().map(|identity| (identity.kind.clone(), identity.name.to_owned())).collect())
}

#[cfg(test)]
mod tests;
