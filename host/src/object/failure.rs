//! What ended a walk early, and what that means: the reason that users see,
//! what metrics count, and when it is tried again. Decided here for all steps.

use std::time::Duration;

use super::gather::Gathered;
use super::memory::{Memory, News, Stop};
use super::outcome::Outcome;
use super::parents::{Named, Parent};
use super::retry::Retry;
use super::{apply, dispatch, finalizer, gather, kept, look, own, refusal, render, secrets, status};
use crate::check::Violation;
use crate::clock::{self, Instant};
use crate::limits::STALE_CHILD_GRACE;
use crate::names;
use crate::sandbox::model::CallError;

/// Reasons of an object whose plugin was not asked.
const PLUGIN_BUSY: &str = "PluginBusy";
const PLUGIN_FAILING: &str = "PluginFailing";

/// What ended a walk, one variant a step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    #[error(transparent)]
    Dispatch(#[from] dispatch::DispatchError),
    #[error(transparent)]
    Gather(#[from] gather::GatherError),
    #[error(transparent)]
    Look(#[from] look::LookError),
    #[error("{}", render::message(error, plugin))]
    Render { plugin: String, error: CallError },
    #[error("plugin {plugin} is busy with other objects; this one waits for its turn")]
    Busy { plugin: String, again: Duration },
    #[error("plugin {plugin} fails with one object after the other ({reason}); this one waits for its turn")]
    Failing { plugin: String, reason: String, again: Duration },
    #[error(transparent)]
    Check(#[from] Violation),
    #[error(transparent)]
    Kept(#[from] kept::KeptError),
    #[error(transparent)]
    Own(#[from] own::OwnError),
    #[error(transparent)]
    Secrets(#[from] secrets::SecretError),
    #[error("{}", errors.message())]
    Apply { errors: apply::ApplyErrors },
    #[error(transparent)]
    Prune(#[from] refusal::Refusal),
    /// Of the parent itself: our finalizer could not be put on or taken off.
    #[error("{0}")]
    Finalizer(finalizer::HoldError),
    /// Any of the others, in the walk of an object that is going.
    #[error("{0}; to let it go as it is, annotate it {force}=true", force = names::FORCE_FINALIZE_ANNOTATION)]
    Finalize(Box<WalkError>),
}

/// Turns an error into what is remembered, said and tried again.
pub(crate) fn stop(parent: &Parent, memory: &mut Memory, outcome: &mut Option<Outcome>, error: &WalkError) -> Stop {
    memory.first |= parent.recorded().is_empty();
    let stop = Stop {
        reason: error.reason(memory),
        message: error.to_string(),
        retry: error.retry(),
        children: error.standing(),
        again: error.again(),
    };
    let same = memory.failing.as_ref() == Some(&stop.reason);
    memory.attempts = if same { memory.attempts.saturating_add(1) } else { 0 };
    memory.failing = Some(stop.reason.clone());
    memory.settled = None;
    memory.secrets_again = error.secrets_again(memory.attempts);
    if error.is_quiet(memory) {
        return stop;
    }
    if error.is_waiting(memory) {
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

/// What is known of the object as it is now stays; of another generation, or where nothing is, it is said to wait, and for
/// what it waits now. Nor is anything known any more where only a change could help: there was one, else nobody would ask.
pub(crate) fn put_off(parent: &Parent, memory: &mut Memory, outcome: &mut Option<Outcome>, why: &WalkError) {
    memory.first |= parent.recorded().is_empty();
    let observed = parent.status.fields().get("observedGeneration").and_then(serde_json::Value::as_i64);
    let stale = |outcome: &Outcome| match outcome {
        Outcome::Stopped(stop) => stop.retry == Retry::Permanent,
        Outcome::Waiting(stop) => [PLUGIN_BUSY, PLUGIN_FAILING].contains(&stop.reason.as_str()),
        _ => false,
    };
    if outcome.as_ref().is_none_or(stale) || observed != Some(parent.generation) {
        *outcome = Some(Outcome::Waiting(Stop {
            reason: why.reason(memory),
            message: why.to_string(),
            retry: Retry::Passing,
            children: Vec::new(),
            again: None,
        }));
    }
}

impl Memory {
    /// The same request can only be refused again.
    pub(crate) fn refuse(&mut self, error: &WalkError, gathered: &Gathered) {
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
            Self::Look(_) => "Look",
            Self::Render { .. } | Self::Busy { .. } | Self::Failing { .. } => "Render",
            Self::Check(_) => "Check",
            Self::Kept(_) => "Kept",
            Self::Secrets(_) => "Secrets",
            Self::Own(_) => "Own",
            Self::Apply { .. } => "Apply",
            Self::Prune(_) => "Prune",
            Self::Finalizer(_) | Self::Finalize(_) => "Finalize",
        }
    }

    /// What users see as the reason of Ready.
    pub(crate) fn reason(&self, memory: &mut Memory) -> String {
        match self {
            Self::Dispatch(error) => error.reason().to_owned(),
            Self::Gather(error) => error.reason().to_owned(),
            Self::Look(error) => error.reason().to_owned(),
            Self::Render { error, .. } => error.reason().to_owned(),
            Self::Busy { .. } => PLUGIN_BUSY.to_owned(),
            Self::Failing { .. } => PLUGIN_FAILING.to_owned(),
            Self::Check(violation) => violation.reason().to_owned(),
            Self::Secrets(error) => error.reason().to_owned(),
            Self::Own(error) => error.reason().to_owned(),
            Self::Kept(error) => error.reason().to_owned(),
            Self::Apply { errors } => errors.reason(is_patient(memory)).to_owned(),
            Self::Prune(error) => error.reason().to_owned(),
            Self::Finalizer(error) => error.reason().to_owned(),
            Self::Finalize(error) => error.reason(memory),
        }
    }

    /// Where the plugin was not asked: when the object comes again.
    pub(crate) fn put_off(&self) -> Option<Duration> {
        match self {
            Self::Busy { again, .. } | Self::Failing { again, .. } => Some(*again),
            _ => None,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Dispatch(error) => error.retry(),
            Self::Gather(error) => error.retry(),
            Self::Look(error) => error.retry(),
            Self::Render { error, .. } => render::retry(error),
            Self::Busy { .. } | Self::Failing { .. } => Retry::Passing,
            Self::Check(_) => Retry::Permanent,
            Self::Secrets(error) => error.retry(),
            Self::Kept(error) => error.retry(),
            Self::Own(_) => Retry::Blocked,
            Self::Apply { errors } => errors.retry(),
            Self::Prune(error) => error.retry(),
            Self::Finalizer(error) => error.retry(),
            Self::Finalize(error) => error.retry(),
        }
    }

    /// Children that stand nevertheless.
    fn standing(&self) -> Vec<Named> {
        match self {
            Self::Apply { errors } => errors.standing.clone(),
            Self::Finalize(error) => error.standing(),
            _ => Vec::new(),
        }
    }

    /// Whether it passes by itself so soon that nobody needs to hear of it.
    fn is_quiet(&self, memory: &Memory) -> bool {
        match self.refusal() {
            // The way to the server is the host's matter: its readiness, log and metrics tell it, once.
            Some(refusal) if refusal.error.is_unreachable() => return true,
            // A server that starts refuses everybody until it has read its roles.
            Some(refusal) if refusal.error.is_without_right() && memory.attempts < 2 => return true,
            _ => {}
        }
        match self {
            Self::Gather(gather::GatherError::Unfilled { .. }) | Self::Look(look::LookError::Unfilled { .. }) => true,
            Self::Finalize(error) => error.is_quiet(memory),
            // Its event tells the rest.
            Self::Apply { errors } if errors.is_parents_end() => true,
            // It has taken its time already.
            Self::Render { error: CallError::Timeout { .. }, .. } => memory.attempts < 1,
            _ => self.retry() == Retry::Passing && memory.attempts < 3,
        }
    }

    /// Not before then are Secrets read for the same once more.
    fn secrets_again(&self, attempt: u32) -> Option<Instant> {
        match self {
            Self::Secrets(error) => Some(clock::instant() + error.retry().least(attempt)?),
            Self::Finalize(error) => error.secrets_again(attempt),
            _ => None,
        }
    }

    /// What the server said, where a call ended the walk.
    pub(crate) fn refusal(&self) -> Option<&refusal::Refusal> {
        match self {
            Self::Secrets(error) => error.refusal(),
            Self::Look(error) => error.refusal(),
            Self::Apply { errors } => errors.refusal(),
            Self::Prune(refusal) => Some(refusal),
            Self::Finalizer(error) => error.refusal(),
            Self::Finalize(error) => error.refusal(),
            _ => None,
        }
    }

    fn is_waiting(&self, memory: &mut Memory) -> bool {
        match self {
            Self::Apply { errors } => errors.is_waiting(is_patient(memory)),
            Self::Secrets(secrets::SecretError::Going { .. }) => true,
            Self::Finalize(error) => error.is_waiting(memory),
            _ => false,
        }
    }

    /// Where a time is known at which it is to be looked at again.
    fn again(&self) -> Option<Instant> {
        match self {
            Self::Apply { errors } => errors.again(),
            Self::Finalizer(error) => error.again(),
            Self::Finalize(error) => error.again(),
            _ => None,
        }
    }
}

/// With what an earlier object of the same name left.
fn is_patient(memory: &mut Memory) -> bool {
    let since = *memory.stale_since.get_or_insert_with(clock::instant);
    clock::since(since) < STALE_CHILD_GRACE
}
