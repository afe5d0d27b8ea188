//! The walk itself, step by step, and what each step's error means.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::apply::{self, Applied, Said};
use super::gather::Gathered;
use super::host::Host;
use super::memory::{Memory, News, Settled, Stop};
use super::outcome::Outcome;
use super::parents::{Named, Parent, ParentKey};
use super::render::RenderError;
use super::retry::{self, Retry};
use super::{dispatch, gather, own, prune, refusal, render, secrets, status};

use crate::check::{self, CheckedChildren, CheckedParts, Context, Violation};
use crate::limits::{LOOK_AGAIN, RESYNC, STALE_CHILD_GRACE};
use crate::plugin::Plugin;
use crate::sandbox::model::CallError;

/// What ended a walk, one variant a step.
#[derive(Debug, thiserror::Error)]
enum WalkError {
    #[error(transparent)]
    Dispatch(#[from] dispatch::DispatchError),
    #[error(transparent)]
    Gather(#[from] gather::GatherError),
    #[error("{}", render::message(error, plugin))]
    Render { plugin: String, error: CallError },
    #[error("plugin {plugin} hangs with other objects; this one waits for its turn")]
    Busy { plugin: String, again: Duration },
    #[error(transparent)]
    Check(#[from] Violation),
    #[error(transparent)]
    Own(#[from] own::OwnError),
    #[error(transparent)]
    Secrets(#[from] secrets::SecretError),
    #[error("{}", errors.message())]
    Apply { errors: apply::ApplyErrors },
    #[error(transparent)]
    Prune(#[from] refusal::Refusal),
}

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
    let owned = own::all(host, children, parent, &plugin.name)?;
    let attempt = apply::apply(host, key, parent, &owned, secrets, said).await;
    memory.first |= outcome.is_none() && parent.recorded().next().is_none();
    let wrote = !attempt.made.is_empty() || attempt.changed;
    memory.made.extend(made_secrets.into_iter().chain(attempt.made));
    let applied = attempt.result.map_err(|errors| WalkError::Apply { errors })?;
    let pruned = prune::prune(host, parent, &owned).await?;
    memory.stale_since = None;
    memory.settled = Some(Settled { request: gathered.fingerprint, children: attempt.settled });
    let news = good_news(memory, &applied, &pruned);
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
    let now = Instant::now();
    let due = memory.resync_at.is_some_and(|at| at <= now);
    if due {
        memory.render_once = true;
        memory.secrets_unread = true;
    }
    if due || memory.resync_at.is_none() {
        memory.resync_at = Some(now + retry::spread(RESYNC, 10));
    }
    memory.resync_at.unwrap_or(now)
}

fn look_again(seconds: u32) -> Instant {
    let (least, most) = LOOK_AGAIN;
    let after = Duration::from_secs(u64::from(seconds)).clamp(least, most);
    Instant::now() + retry::spread(after, 10)
}

/// What was made, said once all of it stands.
fn good_news(memory: &mut Memory, applied: &Applied, pruned: &[String]) -> Vec<News> {
    let mut news = Vec::new();
    let made = std::mem::take(&mut memory.made);
    // Told apart by the time, but the first: its Event is the same from any host.
    let occurrence = if memory.first { String::new() } else { crate::clock::now().to_string() };
    let say = |action, reason: &str, note| News {
        warning: false,
        reason: reason.to_owned(),
        action,
        note,
        occurrence: occurrence.clone(),
    };
    if !made.is_empty() {
        let list = made.iter().map(|child| format!("{} {}", child.kind, child.name)).collect::<Vec<_>>().join(", ");
        let own_words = applied.said().status.get("message").and_then(|message| message.as_str());
        news.push(match (memory.first, own_words) {
            (true, Some(message)) => say("Apply", "Created", message.to_owned()),
            (true, None) => say("Apply", "Created", format!("created {list}")),
            (false, _) => say("Apply", "Recreated", format!("made again what was missing: {list}")),
        });
    }
    if !pruned.is_empty() {
        let note = format!("deleted what is no longer rendered: {}", pruned.join(", "));
        news.push(say("Prune", "Pruned", note));
    }
    news
}

/// What is known of the object as it is now stays; of another generation, or where nothing is, it is said to wait.
fn put_off(parent: &Parent, memory: &mut Memory, outcome: &mut Option<Outcome>, busy: &WalkError) {
    memory.first |= parent.recorded().next().is_none();
    let observed = parent.status.get("observedGeneration").and_then(serde_json::Value::as_i64);
    if outcome.is_none() || observed != Some(parent.generation) {
        *outcome = Some(Outcome::Waiting(Stop {
            reason: "PluginBusy".to_owned(),
            message: busy.to_string(),
            retry: Retry::Passing,
            children: Vec::new(),
        }));
    }
}

/// Turns an error into what is remembered, said and tried again.
fn stop(parent: &Parent, memory: &mut Memory, outcome: &mut Option<Outcome>, error: &WalkError) -> Stop {
    memory.first |= parent.recorded().next().is_none();
    let stop = Stop {
        reason: error.reason(memory),
        message: error.to_string(),
        retry: error.retry(),
        children: error.standing(),
    };
    let same = memory.failing.as_ref() == Some(&stop.reason);
    memory.attempts = if same { memory.attempts.saturating_add(1) } else { 0 };
    memory.failing = Some(stop.reason.clone());
    memory.settled = None;
    if error.is_quiet(memory) {
        return stop;
    }
    if error.is_waiting() && stop.reason == "WaitingForDeletion" {
        *outcome = Some(Outcome::Waiting(stop.clone()));
        return stop;
    }
    if !status::says(parent, &stop) {
        memory.report.news.push(News {
            warning: true,
            reason: stop.reason.clone(),
            action: error.step(),
            note: stop.message.clone(),
            occurrence: parent.generation.to_string(),
        });
    }
    *outcome = Some(Outcome::Stopped(stop.clone()));
    stop
}

impl Memory {
    /// The same request can only be refused again.
    fn refuse(&mut self, error: &WalkError, gathered: &Gathered) {
        if error.retry() == Retry::Permanent {
            self.refused = Some(gathered.fingerprint);
        }
    }
}

// === impl WalkError ===

impl WalkError {
    fn step(&self) -> &'static str {
        match self {
            Self::Dispatch(_) => "Dispatch",
            Self::Gather(_) => "Gather",
            Self::Render { .. } | Self::Busy { .. } => "Render",
            Self::Check(_) => "Check",
            Self::Secrets(_) => "Secrets",
            Self::Own(_) => "Own",
            Self::Apply { .. } => "Apply",
            Self::Prune(_) => "Prune",
        }
    }

    /// What users see as the reason of Ready.
    fn reason(&self, memory: &mut Memory) -> String {
        match self {
            Self::Dispatch(error) => error.reason().to_owned(),
            Self::Gather(error) => error.reason().to_owned(),
            Self::Render { error, .. } => error.reason().to_owned(),
            Self::Busy { .. } => "PluginBusy".to_owned(),
            Self::Check(violation) => violation.reason().to_owned(),
            Self::Secrets(error) => error.reason().to_owned(),
            Self::Own(_) => "KindMissing".to_owned(),
            Self::Apply { errors } => {
                let since = *memory.stale_since.get_or_insert_with(Instant::now);
                let patient = since.elapsed() < STALE_CHILD_GRACE;
                errors.reason(patient).to_owned()
            }
            Self::Prune(error) => error.reason().to_owned(),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Dispatch(error) => error.retry(),
            Self::Gather(error) => error.retry(),
            Self::Render { error, .. } => render::retry(error),
            Self::Busy { .. } => Retry::Passing,
            Self::Check(_) => Retry::Permanent,
            Self::Secrets(error) => error.retry(),
            Self::Own(_) => Retry::Blocked,
            Self::Apply { errors } => errors.retry(),
            Self::Prune(error) => error.retry(),
        }
    }

    /// Children that stand nevertheless.
    fn standing(&self) -> Vec<Named> {
        match self {
            Self::Apply { errors } => errors.standing.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether it passes by itself so soon that nobody needs to hear of it.
    fn is_quiet(&self, memory: &Memory) -> bool {
        match self {
            Self::Gather(gather::GatherError::Unfilled { .. }) => true,
            // It has taken its time already.
            Self::Render { error: CallError::Timeout { .. }, .. } => memory.attempts < 1,
            _ => self.retry() == Retry::Passing && memory.attempts < 3,
        }
    }

    fn is_waiting(&self) -> bool {
        matches!(self, Self::Apply { .. } | Self::Secrets(secrets::SecretError::Going { .. }))
    }
}
