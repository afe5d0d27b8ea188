//! The walk itself, step by step.

use super::apply::{self, Applied, Said};
use super::failure::{WalkError, put_off, stop};
use super::host::Host;
use super::memory::{Memory, Settled};
use super::outcome::{Next, Outcome};
use super::parents::{Parent, ParentKey};
use super::{again, answer, ask, dispatch, finalize, finalizer, kept, news, own, pause, prune, secrets};
use crate::check::{self, CheckedChildren, CheckedParts};
use crate::limits::{PASSING_BACKOFF, SECRET_ROUNDS};

/// Children and what goes before them. Everything that users read is left in `memory`.
pub(crate) async fn walk(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
    outcome: &mut Option<Outcome>,
) -> Next {
    if parent.deleting {
        return finalize::finalize(host, key, parent, memory, outcome).await;
    }
    if parent.paused {
        return pause::pause(host, key, parent, memory, outcome).await;
    }
    pause::resumed(parent, memory);
    match steps(host, key, parent, memory, outcome).await {
        Ok(next) => next,
        Err(error) => match error.put_off() {
            Some(again) => {
                put_off(parent, memory, outcome, &error);
                tracing::debug!(namespace = %parent.id.namespace, name = %parent.id.name, "put off for {again:?}: {error}");
                Next::Later(again)
            }
            None => Next::Stopped(stop(parent, memory, outcome, &error)),
        },
    }
}

async fn steps(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
    outcome: &mut Option<Outcome>,
) -> Result<Next, WalkError> {
    let resync = again::due(host, parent, memory);
    let registry = host.registry();
    let plugin = match dispatch::dispatch(&registry, &host.group_of(key), parent) {
        Ok(plugin) => plugin,
        Err(error) => {
            host.census.count(&mut memory.plugin, None);
            if error.is_nobodys(&registry) {
                finalizer::take_off(host, key, parent, &mut memory.hold).await.map_err(WalkError::Finalizer)?;
            }
            return Err(error.into());
        }
    };
    host.census.count(&mut memory.plugin, Some(&plugin.name));
    check::parent(&parent.id, &plugin.name, &plugin.grant, &plugin.manifest)?;
    let mut gathered = ask::gathered(host, &plugin, parent, memory).await?;
    let finalizes = plugin.component.hooks().finalizer;
    let held_right = parent.is_held() == finalizes;
    // Whatever this walk comes to: the next is one like any other.
    let once = std::mem::take(&mut memory.render_once);
    memory.secrets_unread |= once;
    if !once && held_right && gathered.is_settled(memory.settled.as_ref()) {
        return Ok(Next::Settled(again::next(memory, resync)));
    }
    if !once && memory.refused == Some(gathered.fingerprint) {
        return Ok(Next::Rest);
    }
    if let Some(wait) = secrets::wait(parent, &gathered.children, memory, once) {
        return Ok(Next::Later(wait));
    }
    let mut parts = answer::rendering(host, &plugin, parent, &gathered).await.inspect_err(|error| {
        memory.refuse(error, &gathered);
        // It was not asked: the wish for a render stays.
        memory.render_once |= once && error.put_off().is_some();
    })?;
    kept::compatible(host, parent, &plugin.name, &parts.children)?;
    if finalizes {
        finalizer::put_on(host, key, parent, &mut memory.hold).await.map_err(WalkError::Finalizer)?;
    }
    for round in 0.. {
        let kept = secrets::keep(host, key, parent, &plugin, &gathered.user_secrets, &parts.secrets, memory).await?;
        memory.made.extend(kept.made);
        memory.report.news.extend(news::taken(&kept.found, &kept.adopted));
        if round == SECRET_ROUNDS || gathered.has_seen(&memory.secrets) {
            break;
        }
        // The plugin has not seen these revisions yet, and may put them into a Pod, or want one more Secret.
        gathered = ask::gathered(host, &plugin, parent, memory).await?;
        parts = answer::rendering(host, &plugin, parent, &gathered).await?;
        kept::compatible(host, parent, &plugin.name, &parts.children)?;
    }
    let CheckedParts { children, secrets, status, conditions, not_ready, look_again_after } = parts;
    let said = Said { status, conditions, not_ready };
    again::look_again(memory, look_again_after);
    let look_again = again::next(memory, resync);
    let credentials: Vec<&str> = secrets.iter().map(|secret| secret.name.as_str()).collect();
    let CheckedChildren::Exactly(children) = children else {
        if !finalizes {
            finalizer::take_off(host, key, parent, &mut memory.hold).await.map_err(WalkError::Finalizer)?;
        }
        *outcome = Some(Outcome::Applied(Applied::kept(parent, said)));
        memory.settled = None;
        return Ok(Next::Settled(look_again));
    };
    let owned = own::all(host, children, parent, &plugin, &credentials)?;
    let secrets = credentials.into_iter().map(secrets::named).collect();
    memory.note_gone(|id| host.children.get(id).is_some());
    let attempt = apply::apply(host, key, parent, &owned, secrets, said, &mut memory.tries).await;
    memory.report.news.extend(news::replaced(&mut memory.tries));
    memory.report.news.extend(news::taken(&attempt.found, &attempt.adopted));
    memory.first |= outcome.is_none() && parent.recorded().is_empty();
    let wrote = !attempt.made.is_empty() || attempt.changed;
    memory.made.extend(attempt.made);
    let mut applied = attempt.result.map_err(|errors| WalkError::Apply { errors })?;
    let pruned = prune::prune(host, parent, &owned, applied.children(), &memory.secrets_standing).await?;
    applied.and(
        pruned.kept.iter().map(|(named, _)| named).chain(pruned.forbidden.iter().map(|(named, _)| named)).cloned(),
    );
    memory.secrets_standing = applied.children().iter().filter(|child| secrets::is_secret(child)).cloned().collect();
    if !finalizes {
        // Of an earlier plugin, or an earlier version of this one: after what its users wait for.
        finalizer::take_off(host, key, parent, &mut memory.hold).await.map_err(WalkError::Finalizer)?;
    }
    memory.stale_since = None;
    let left = own::left(host, parent, &owned);
    let settled = Settled { request: gathered.fingerprint, children: attempt.settled, left };
    memory.settled = Some(settled).filter(|_| !pruned.moved);
    let news = news::of(memory, &applied, &pruned);
    memory.report.news.extend(news);
    memory.first = false;
    memory.refused = None;
    *outcome = Some(Outcome::Applied(applied));
    if pruned.moved {
        return Ok(Next::Later(PASSING_BACKOFF.0));
    }
    Ok(if wrote || !pruned.gone.is_empty() { Next::Again } else { Next::Settled(look_again) })
}
