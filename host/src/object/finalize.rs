//! The end of an object whose plugin exports `finalize`: it stays until the
//! plugin says that it is done.
//!
//! `forced? → dispatch → collector → gather → finalize → check → secrets → own → apply → prune → wait`
//!
//! Level-triggered as a walk is, and asked as often: a host that is killed in
//! the middle goes on with the next. Pausing does not hold it up. Nothing is
//! lost by itself: a plugin that fails, or is away for a while, keeps the object
//! until a user forces it, or the Plugin document says `onTimeout: Release`.
//!
//! While the garbage collector is at work on the children of a parent
//! (foreground, orphan), what is made for it would be taken away, or left
//! behind: that is waited for. Then its owner reference holds as with any other,
//! and what was made goes with the parent.

use std::time::Duration;

use super::children::Child;
use super::failure::{WalkError, stop};
use super::host::Host;
use super::memory::{Memory, News, Settled};
use super::outcome::{Finalizing, Next, Outcome};
use super::own::Owned;
use super::parents::{Parent, ParentKey};
use super::queue::Lane;
use super::{again, answer, apply, ask, dispatch, finalizer, news, own, prune, report, secrets};
use crate::check::{self, CheckedChildren, CheckedFinalization};
use crate::clock::{self, Instant};
use crate::limits::{PASSING_BACKOFF, SECRET_ROUNDS};
use crate::names;
use crate::plugin::document::{FinalizeRule, OnTimeout};

/// How far one try has come.
enum Step {
    /// The finalizer may be taken off, and what is to be said then.
    Release {
        warning: bool,
        reason: &'static str,
        note: String,
    },
    Waiting {
        finalizing: Finalizing,
        wrote: bool,
    },
    /// As before.
    Unchanged,
    /// As before, until it has been tried once more.
    Later(Duration),
}

pub(crate) async fn finalize(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
    outcome: &mut Option<Outcome>,
) -> Next {
    if !parent.is_held() {
        *outcome = None;
        return Next::Rest;
    }
    let resync = again::due(host, parent, memory);
    // Known as soon as the plugin is.
    let mut rule = None;
    let result = attempt(host, key, parent, memory, &mut rule).await;
    let due = rule.and_then(|rule| Some((rule, deadline(host, parent, memory, rule)?)));
    if let Some((_, at)) = due.filter(|(_, at)| *at > clock::instant()) {
        host.queue.add_at(key.clone(), Lane::Walk, at);
    }
    let late = due.filter(|(_, at)| *at <= clock::instant()).map(|(rule, _)| rule);
    let next = match result {
        Ok(Step::Release { warning, reason, note }) => {
            return release(host, key, parent, memory, outcome, (warning, reason, note)).await;
        }
        Ok(Step::Waiting { finalizing, wrote }) => {
            say_once(parent, memory, outcome.as_ref(), &finalizing);
            *outcome = Some(Outcome::Finalizing(finalizing));
            if wrote { Next::Again } else { Next::Settled(again::next(memory, resync)) }
        }
        Ok(Step::Unchanged) => Next::Settled(again::next(memory, resync)),
        Ok(Step::Later(wait)) => Next::Later(wait),
        Err(error) => match error.put_off() {
            Some(again) => Next::Later(again),
            None => Next::Stopped(stop(parent, memory, outcome, &WalkError::Finalize(Box::new(error)))),
        },
    };
    match late {
        None => next,
        Some(FinalizeRule { timeout_seconds, on_timeout: OnTimeout::Release }) => {
            let note = format!("let go unfinalized after {timeout_seconds} s{}", why(outcome.as_ref()));
            release(host, key, parent, memory, outcome, (true, "FinalizeTimeout", note)).await
        }
        Some(FinalizeRule { timeout_seconds, on_timeout: OnTimeout::Hold }) => {
            overdue(parent, memory, outcome, timeout_seconds);
            next
        }
    }
}

async fn attempt(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
    rule: &mut Option<FinalizeRule>,
) -> Result<Step, WalkError> {
    if parent.forced {
        let note = format!("let go unfinalized, as {} says", names::FORCE_FINALIZE_ANNOTATION);
        return Ok(Step::Release { warning: true, reason: "FinalizeForced", note });
    }
    let unheld = |note| Ok(Step::Release { warning: false, reason: "FinalizerRemoved", note });
    let registry = host.registry();
    let plugin = match dispatch::dispatch(&registry, &host.group_of(key), parent) {
        Ok(plugin) if plugin.component.hooks().finalizer => plugin,
        Ok(plugin) => return unheld(format!("plugin {} does not finalize", plugin.name)),
        // The plugin that put it there is not installed any more. One that only fails to load is: that is waited for.
        Err(error) if error.is_nobodys(&registry) => return unheld(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    *rule = Some(plugin.finalize);
    if let Some(finalizer) = parent.in_collection() {
        let message = format!("the garbage collector is at work on the children first ({finalizer})");
        let reason = "WaitingForGarbageCollection".to_owned();
        let finalizing = Finalizing { reason, message, overdue: false, children: parent.recorded().to_vec() };
        return Ok(Step::Waiting { finalizing, wrote: false });
    }
    check::parent(&parent.id, &plugin.name, &plugin.grant, &plugin.manifest)?;
    let mut gathered = ask::gathered(host, &plugin, parent, memory).await?;
    let refused = memory.refused == Some(gathered.fingerprint);
    let once = std::mem::take(&mut memory.render_once);
    memory.secrets_unread |= once;
    if !once && (refused || gathered.is_settled(memory.settled.as_ref())) {
        return Ok(Step::Unchanged);
    }
    if let Some(wait) = secrets::wait(parent, &gathered.children, memory, once) {
        return Ok(Step::Later(wait));
    }
    let asked = answer::finalization(host, &plugin, parent, &gathered).await;
    let mut parts = asked.inspect_err(|error| memory.refuse(error, &gathered))?;
    for round in 0.. {
        if parts.waiting.is_none() {
            break;
        }
        secrets::keep(host, key, parent, &plugin, &gathered.user_secrets, &parts.secrets, memory).await?;
        if round == SECRET_ROUNDS || gathered.has_seen(&memory.secrets) {
            break;
        }
        gathered = ask::gathered(host, &plugin, parent, memory).await?;
        parts = answer::finalization(host, &plugin, parent, &gathered).await?;
    }
    memory.refused = None;
    let CheckedFinalization { children, secrets, waiting, look_again_after } = parts;
    let Some(waiting) = waiting else {
        return Ok(Step::Release { warning: false, reason: "Finalized", note: "finalized".to_owned() });
    };
    again::look_again(memory, look_again_after);
    let mut finalizing =
        Finalizing { reason: waiting.reason, message: waiting.message, overdue: false, children: Vec::new() };
    let CheckedChildren::Exactly(children) = children else {
        memory.settled = None;
        finalizing.children = parent.recorded().to_vec();
        return Ok(Step::Waiting { finalizing, wrote: false });
    };
    let credentials: Vec<&str> = secrets.iter().map(|secret| secret.name.as_str()).collect();
    let owned = own::all(host, children, parent, &plugin, &credentials)?;
    // What an orphaning delete has cut loose is its user's: neither owned again nor written to. Kept data has no owner ever.
    let is_loose = |known: &Child| known.owners.is_empty() && known.record().is_none();
    let loose = |child: &Owned| host.children.get(child.id()).is_some_and(|known| is_loose(&known));
    let (loose, mut owned): (Vec<Owned>, Vec<Owned>) = owned.into_iter().partition(loose);
    let secrets = credentials.into_iter().map(secrets::named).collect();
    memory.note_gone(|id| host.children.get(id).is_some());
    let attempt = apply::apply(host, key, parent, &owned, secrets, apply::Said::default(), &mut memory.tries).await;
    memory.report.news.extend(news::replaced(&mut memory.tries));
    let wrote = !attempt.made.is_empty() || attempt.changed;
    let applied = attempt.result.map_err(|errors| WalkError::Apply { errors })?;
    owned.extend(loose);
    let pruned = prune::prune(host, parent, &owned, applied.children(), &memory.secrets_standing).await?;
    let left = own::left(host, parent, &owned);
    let settled = Settled { request: gathered.fingerprint, children: attempt.settled, left };
    memory.settled = Some(settled).filter(|_| !pruned.moved);
    finalizing.children = applied.children().to_vec();
    finalizing.children.extend(pruned.kept.into_iter().map(|(named, _)| named));
    if pruned.moved {
        host.queue.add_at(key.clone(), Lane::Walk, clock::instant() + PASSING_BACKOFF.0);
    }
    Ok(Step::Waiting { finalizing, wrote: wrote || !pruned.gone.is_empty() })
}

/// Takes the finalizer off and says why, at once: soon there is nobody left to say it of.
async fn release(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
    outcome: &mut Option<Outcome>,
    (warning, reason, note): (bool, &str, String),
) -> Next {
    if let Err(refusal) = finalizer::take_off(host, key, parent, &mut memory.hold).await {
        return Next::Stopped(stop(parent, memory, outcome, &WalkError::Finalizer(refusal)));
    }
    let (reason, action) = (reason.to_owned(), "Finalize");
    memory.report.news.push(News { warning, reason, action, note, occurrence: String::new() });
    report::say(host, parent, memory).await;
    *outcome = None;
    Next::Rest
}

/// By the steady clock, from when this host first saw it going. How long it had been by then, perhaps under another host,
/// the API server's two times tell, its own and that of the delete: this machine's clock may be wrong, and an object that
/// is let go too soon cannot be brought back.
fn deadline(host: &Host, parent: &Parent, memory: &mut Memory, rule: FinalizeRule) -> Option<Instant> {
    let deleted = parent.deleted_at?;
    let (since, passed) = *memory.going_since.get_or_insert_with(|| {
        let passed = host.api.server_time().map(|now| now.duration_since(deleted));
        (clock::instant(), passed.and_then(|passed| Duration::try_from(passed).ok()).unwrap_or_default())
    });
    let whole = Duration::from_secs(u64::from(rule.timeout_seconds));
    Some(since + whole.saturating_sub(passed))
}

/// Says what it waits for, where that is another thing than before.
fn say_once(parent: &Parent, memory: &mut Memory, before: Option<&Outcome>, now: &Finalizing) {
    if let Some(Outcome::Finalizing(before)) = before
        && (before.overdue || before.reason == now.reason)
    {
        return;
    }
    let Finalizing { reason, message, .. } = now;
    let note = format!("{reason}: {message}");
    let occurrence = parent.generation.to_string();
    let news = News { warning: false, reason: "Finalizing".to_owned(), action: "Finalize", note, occurrence };
    memory.report.news.push(news);
}

/// It is held all the same, and said how to end that.
fn overdue(parent: &Parent, memory: &mut Memory, outcome: &mut Option<Outcome>, seconds: u32) {
    let message = format!("not finalized in {seconds} s{}; {}", why(outcome.as_ref()), how_to_force());
    let children = match outcome.take() {
        Some(Outcome::Finalizing(before)) if before.overdue => {
            *outcome = Some(Outcome::Finalizing(before));
            return;
        }
        Some(Outcome::Finalizing(before)) => before.children,
        _ => parent.recorded().to_vec(),
    };
    let reason = "FinalizeTimeout".to_owned();
    memory.report.news.push(News {
        warning: true,
        reason: reason.clone(),
        action: "Finalize",
        note: message.clone(),
        occurrence: parent.generation.to_string(),
    });
    *outcome = Some(Outcome::Finalizing(Finalizing { reason, message, overdue: true, children }));
}

fn why(outcome: Option<&Outcome>) -> String {
    match outcome {
        Some(Outcome::Finalizing(Finalizing { reason, message, .. })) => format!(": {reason}: {message}"),
        Some(Outcome::Stopped(stop) | Outcome::Waiting(stop)) => format!(": {}: {}", stop.reason, stop.message),
        Some(Outcome::Applied(_) | Outcome::Paused(_)) | None => String::new(),
    }
}

fn how_to_force() -> String {
    format!("to let it go as it is, annotate it {}=true", names::FORCE_FINALIZE_ANNOTATION)
}
