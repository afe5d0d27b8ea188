//! Holds what a plugin says against what it may do. Pure: no cluster, no guest,
//! no clock. Allow-lists: what is not known here is refused, and the first broken
//! rule refuses the whole, before anything is applied.
//!
//! `manifest` once when a plugin is loaded, `parent` before each render,
//! `rendering` after it.

mod path;
mod violation;
mod grant;
mod checked;
pub(crate) mod syntax;
mod kinds;
mod manifest;
mod name;
mod pod_template;

pub use checked::{Checked, CheckedChild, CheckedChildren, CheckedParts, Context, Parent};
pub use grant::{AllowedFields, Grant, GrantedDiscriminator, GrantedKind, GrantedParent, Strategy};
pub use pod_template::pod_template_metadata;
pub use violation::{Rule, Violation};

use crate::sandbox::model::{Children, Manifest, Rendered, Rendering};

/// The manifest within the grant, and the grant sound in itself.
pub fn manifest(manifest: &Manifest, grant: &Grant) -> Result<(), Violation> {
    manifest::within_grant(manifest, grant).map_err(|fault| fault.of(&manifest.name, None))
}

/// The parent's name and namespace: before any render, so that nothing is half-made.
pub fn parent(parent: &Parent, plugin: &str, grant: &Grant, manifest: &Manifest) -> Result<(), Violation> {
    name::parent(parent, grant, manifest).map_err(|fault| fault.of(plugin, None))
}

/// The whole rendering, the first violation or none.
pub fn rendering(rendered: Rendered, context: &Context<'_>) -> Result<Checked, Violation> {
    every_rule(rendered.into_rendering(), context)
}

fn every_rule(rendering: Rendering, context: &Context<'_>) -> Result<Checked, Violation> {
    let Rendering { children, secrets, status, conditions, not_ready, look_again_after } = rendering;
    parent(context.parent, context.plugin, context.grant, context.manifest)?;
    let children = match children {
        Children::Keep => CheckedChildren::Keep,
        Children::None => CheckedChildren::Exactly(Vec::new()),
        // The rules for children land next; until then none passes.
        Children::Exactly(_) => CheckedChildren::Exactly(Vec::new()),
    };
    Ok(Checked { parts: CheckedParts { children, secrets, status, conditions, not_ready, look_again_after } })
}
