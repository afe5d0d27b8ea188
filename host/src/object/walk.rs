//! The walk itself, step by step.

use std::sync::Arc;
use std::time::Duration;

use super::apply::{self, Applied, Said};
use super::failure::{WalkError, put_off, stop};
use super::gather::Gathered;
use super::host::Host;
use super::memory::{Memory, Settled, Stop};
use super::outcome::Outcome;
use super::parents::{Named, Parent, ParentKey};
use super::render::RenderError;
use super::{dispatch, gather, news, own, prune, render, retry, secrets};
use crate::check::{self, CheckedChildren, CheckedParts, Context};
use crate::clock::{self, Instant};
use crate::limits::{LOOK_AGAIN, RESYNC};
use crate::plugin::Plugin;

/// What is to be done after a walk.
pub(crate) enum Next {
    /// Everything stands; at the latest at this time it is looked at again.
    Settled(Instant),
    /// Something was written: the plugin may have more to say of it.
    Again,
    Stopped(Stop),
    /// Not ours to touch: being deleted, or paused.
    Rest,
    /// Nothing was found out: the plugin is busy.
    Later(Duration),
}

/// Children and what goes before them. Everything that users read is left in `memory`.
pub(crate) async fn walk(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
    outcome: &mut Option<Outcome>,
) -> Next {
    if parent.deleting {
        *outcome = None;
        return Next::Rest;
    }
    if parent.paused {
        *outcome = Some(Outcome::Paused);
        memory.settled = None;
        return Next::Rest;
    }
    match steps(host, key, parent, memory, outcome).await {
        Ok(next) => next,
        Err(WalkError::Busy { plugin, again }) => {
            put_off(parent, memory, outcome, &WalkError::Busy { plugin, again });
            Next::Later(again)
        }
        Err(error) => Next::Stopped(stop(parent, memory, outcome, &error)),
    }
}

async fn steps(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
    outcome: &mut Option<Outcome>,
) -> Result<Next, WalkError> {
    let plugin = dispatch::dispatch(&host.registry, host.group_of(key), parent)?;
    check::parent(&parent.id, &plugin.name, &plugin.grant, &plugin.manifest)?;
    let resync = resync(memory);
    let mut gathered = gather::gather(host, &plugin, parent, memory)?;
    if !memory.render_once && gathered.is_settled(memory.settled.as_ref()) {
        return Ok(Next::Settled(resync));
    }
    if !memory.render_once && memory.refused == Some(gathered.fingerprint) {
        return Ok(Next::Rest);
    }
    let mut parts =
        rendering(host, &plugin, parent, &gathered).await.inspect_err(|error| memory.refuse(error, &gathered))?;
    let made_secrets = secrets::keep(host, parent, &plugin.name, &parts.secrets, memory).await?;
    if gathered.request.secrets.iter().map(|secret| (&secret.name, &secret.revision)).ne(&memory.secrets) {
        // The plugin has not seen these revisions yet, and may put them into a Pod.
        gathered = gather::gather(host, &plugin, parent, memory)?;
        parts = rendering(host, &plugin, parent, &gathered).await?;
    }
    memory.render_once = false;
    let CheckedParts { children, secrets, status, conditions, not_ready, look_again_after } = parts;
    let said = Said { status, conditions, not_ready };
    let look_again = look_again_after.map_or(resync, |seconds| look_again(seconds).min(resync));
    let secrets: Vec<Named> = secrets.iter().map(|secret| secrets::named(&secret.name)).collect();
    let CheckedChildren::Exactly(children) = children else {
        *outcome = Some(Outcome::Applied(Applied::kept(parent, said)));
        memory.settled = None;
        return Ok(Next::Settled(look_again));
    };
    let owned = own::all(host, children, parent, &plugin)?;
    let attempt = apply::apply(host, key, parent, &owned, secrets, said, &mut memory.tries).await;
    memory.report.news.extend(news::replaced(&mut memory.tries));
    memory.first |= outcome.is_none() && parent.recorded().is_empty();
    let wrote = !attempt.made.is_empty() || attempt.changed;
    memory.made.extend(made_secrets.into_iter().chain(attempt.made));
    let applied = attempt.result.map_err(|errors| WalkError::Apply { errors })?;
    let pruned = prune::prune(host, parent, &owned).await?;
    memory.stale_since = None;
    memory.settled = Some(Settled { request: gathered.fingerprint, children: attempt.settled });
    let news = news::of(memory, &applied, &pruned);
    memory.report.news.extend(news);
    memory.first = false;
    memory.refused = None;
    *outcome = Some(Outcome::Applied(applied));
    Ok(if wrote || !pruned.is_empty() { Next::Again } else { Next::Settled(look_again) })
}

/// One call of the guest, and its answer held against every rule.
async fn rendering(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    gathered: &Gathered,
) -> Result<CheckedParts, WalkError> {
    let request = gathered.request.clone();
    let context = Context {
        parent: &parent.id,
        plugin: &plugin.name,
        grant: &plugin.grant,
        manifest: &plugin.manifest,
        selector_labels: &gathered.request.selector_labels,
        limits: &plugin.limits,
    };
    match render::render(host, plugin, parent, request).await {
        Ok(rendered) => Ok(check::rendering(rendered, &context)?.into_parts()),
        Err(RenderError::Call(error)) => Err(WalkError::Render { plugin: plugin.name.clone(), error }),
        Err(RenderError::Busy(again)) => Err(WalkError::Busy { plugin: plugin.name.clone(), again }),
    }
}

/// When everything is looked at again. Once that has come, this walk does it.
fn resync(memory: &mut Memory) -> Instant {
    let now = clock::instant();
    let due = memory.resync_at.is_some_and(|at| at <= now);
    if due {
        memory.render_once = true;
        memory.secrets_unread = true;
        memory.tries.forget_refusals();
    }
    if due || memory.resync_at.is_none() {
        memory.resync_at = Some(now + retry::spread(RESYNC, 10));
    }
    memory.resync_at.unwrap_or(now)
}

fn look_again(seconds: u32) -> Instant {
    let (least, most) = LOOK_AGAIN;
    let after = Duration::from_secs(u64::from(seconds)).clamp(least, most);
    clock::instant() + retry::spread(after, 10)
}
