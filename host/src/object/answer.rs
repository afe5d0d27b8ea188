//! One call of the guest, and its answer held against every rule.

use std::sync::Arc;

use super::failure::WalkError;
use super::gather::Gathered;
use super::host::Host;
use super::parents::Parent;
use super::render::{self, RenderError};
use crate::check::{self, CheckedFinalization, CheckedParts, Context};
use crate::plugin::Plugin;

pub(crate) async fn rendering(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    gathered: &Gathered,
) -> Result<CheckedParts, WalkError> {
    let rendered = render::render(host, plugin, parent, gathered.request.clone()).await;
    let rendered = rendered.map_err(|error| failed(plugin, error))?;
    Ok(check::rendering(rendered, &context(plugin, parent, gathered))?.into_parts())
}

pub(crate) async fn finalization(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    gathered: &Gathered,
) -> Result<CheckedFinalization, WalkError> {
    let finalized = render::finalize(host, plugin, parent, gathered.request.clone()).await;
    let finalized = finalized.map_err(|error| failed(plugin, error))?;
    Ok(check::finalization(finalized, &context(plugin, parent, gathered))?)
}

fn context<'a>(plugin: &'a Plugin, parent: &'a Parent, gathered: &'a Gathered) -> Context<'a> {
    Context {
        parent: &parent.id,
        plugin: &plugin.name,
        grant: &plugin.grant,
        manifest: &plugin.manifest,
        selector_labels: &gathered.request.selector_labels,
        limits: &plugin.limits,
    }
}

fn failed(plugin: &Plugin, error: RenderError) -> WalkError {
    let plugin = plugin.name.clone();
    match error {
        RenderError::Call(error) => WalkError::Render { plugin, error },
        RenderError::Busy(again) => WalkError::Busy { plugin, again },
    }
}
