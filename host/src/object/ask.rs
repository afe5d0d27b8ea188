//! All that a render depends on: what was gathered, and what the plugin asks to
//! look at beside it.

use std::sync::Arc;

use super::failure::WalkError;
use super::gather::{self, Gathered};
use super::host::Host;
use super::look::look;
use super::memory::{Memory, hash_of};
use super::note;
use super::parents::Parent;
use super::render::{self, RenderError};
use crate::check;
use crate::plugin::Plugin;

pub(crate) async fn gathered(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    memory: &mut Memory,
) -> Result<Gathered, WalkError> {
    let mut gathered = gather::gather(host, plugin, parent, memory)?;
    if !plugin.component.hooks().relations {
        if memory.related.take().is_some() {
            host.related.ask(&parent.id.uid, Vec::new());
        }
        return Ok(gathered);
    }
    let same = memory.related.as_ref().is_some_and(|(of, _)| *of == gathered.fingerprint);
    // As Secrets of its own: an event of a child is no reason to read them.
    let afresh = memory.render_once || memory.secrets_unread || memory.secrets_of != hash_of(&parent.guest);
    // What could only be refused again is not asked for: the walk sees it by the hash, a paused object tells why.
    let refused = memory.refused == Some(gathered.fingerprint) && !memory.render_once && !memory.paused;
    if !same && refused {
        return Ok(gathered);
    }
    if !same {
        let asked = render::related(host, plugin, parent, gathered.request.clone()).await;
        let asked = asked.map_err(|error| failed(host, plugin, parent, &gathered, error));
        let asked = asked.inspect_err(|error| memory.refuse(error, &gathered))?;
        let queries = check::related(asked, &parent.id, &plugin.name, &plugin.grant, &plugin.manifest);
        let queries = queries.map_err(WalkError::from).inspect_err(|error| memory.refuse(error, &gathered))?;
        memory.related = Some((gathered.fingerprint, queries));
    }
    let queries = memory.related.as_ref().map(|(_, queries)| queries.clone()).unwrap_or_default();
    let objects = look(host, parent, &queries, afresh).await?;
    let names = check::related_names(&queries, &objects, &parent.id);
    gathered.relate(plugin, objects, names);
    Ok(gathered)
}

pub(crate) fn failed(
    host: &Host,
    plugin: &Plugin,
    parent: &Parent,
    gathered: &Gathered,
    error: RenderError,
) -> WalkError {
    match error {
        RenderError::Call(error, usage) => {
            note::stopped(host, plugin, parent, gathered, &error, usage);
            WalkError::Render { plugin: plugin.name.clone(), error }
        }
        RenderError::Busy(again) => WalkError::Busy { plugin: plugin.name.clone(), again },
        RenderError::Failing { reason, again } => WalkError::Failing { plugin: plugin.name.clone(), reason, again },
    }
}
