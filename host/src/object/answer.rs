//! One call of the guest, and its answer held against every rule.

use std::sync::Arc;

use super::ask::failed;
use super::failure::WalkError;
use super::gather::Gathered;
use super::host::Host;
use super::parents::Parent;
use super::{note, render};
use crate::check::{self, CheckedFinalization, CheckedParts, Context};
use crate::plugin::Plugin;

pub(crate) async fn rendering(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    gathered: &Gathered,
) -> Result<CheckedParts, WalkError> {
    let rendered = render::render(host, plugin, parent, gathered.request.clone()).await;
    let rendered = rendered.map_err(|error| failed(host, plugin, parent, gathered, error))?;
    let user_secrets = user_secrets(gathered);
    match check::rendering(rendered, &context(plugin, parent, gathered, &user_secrets)) {
        Ok(checked) => Ok(checked.into_parts()),
        Err(violation) => {
            note::refused(host, plugin, parent, gathered, &violation).await;
            Err(violation.into())
        }
    }
}

pub(crate) async fn finalization(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    gathered: &Gathered,
) -> Result<CheckedFinalization, WalkError> {
    let finalized = render::finalize(host, plugin, parent, gathered.request.clone()).await;
    let finalized = finalized.map_err(|error| failed(host, plugin, parent, gathered, error))?;
    let user_secrets = user_secrets(gathered);
    match check::finalization(finalized, &context(plugin, parent, gathered, &user_secrets)) {
        Ok(checked) => Ok(checked),
        Err(violation) => {
            note::refused(host, plugin, parent, gathered, &violation).await;
            Err(violation.into())
        }
    }
}

fn user_secrets(gathered: &Gathered) -> Vec<String> {
    gathered.user_secrets.iter().map(|user| user.name.clone()).collect()
}

fn context<'a>(
    plugin: &'a Plugin,
    parent: &'a Parent,
    gathered: &'a Gathered,
    user_secrets: &'a [String],
) -> Context<'a> {
    Context {
        parent: &parent.id,
        plugin: &plugin.name,
        grant: &plugin.grant,
        manifest: &plugin.manifest,
        selector_labels: &gathered.request.selector_labels,
        limits: &plugin.limits,
        user_secrets,
        related: &gathered.related,
    }
}
