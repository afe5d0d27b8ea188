//! When an object is looked at again though nothing has changed: at its resync,
//! when its plugin has asked for it, when a user has.

use std::time::Duration;

use serde_json::Value;

use super::host::Host;
use super::memory::{Memory, News, hash_of};
use super::parents::Parent;
use super::retry;
use crate::clock::{self, Instant};
use crate::limits::LOOK_AGAIN;
use crate::names;

/// What is due is done by this walk: it renders, and reads what is not watched. Returns the time of the next resync.
pub(crate) fn due(host: &Host, parent: &Parent, memory: &mut Memory) -> Instant {
    let now = clock::instant();
    requested(parent, memory);
    let words = hash_of(&parent.words);
    if host.take_secret_moved(&parent.id.uid) || memory.words.is_some_and(|before| before != words) {
        memory.render_once = true;
    }
    memory.words = Some(words);
    if memory.look_again_at.is_some_and(|at| at <= now) {
        memory.look_again_at = None;
        memory.render_once = true;
    }
    let due = memory.resync_at.is_some_and(|at| at <= now);
    if due {
        memory.render_once = true;
        memory.secrets_unread = true;
        memory.tries.forget_refusals();
    }
    if due || memory.resync_at.is_none() {
        memory.resync_at = Some(now + retry::spread(host.resync, 10));
    }
    memory.resync_at.unwrap_or(now)
}

/// Each new value of the annotation counts once, on whatever host: the status says which was the last.
fn requested(parent: &Parent, memory: &mut Memory) {
    if memory.render_requested == parent.render_requested {
        return;
    }
    memory.render_requested.clone_from(&parent.render_requested);
    let Some(request) = &parent.render_requested else { return };
    let done = parent.status.fields().remove("renderRequestedAt");
    if done.as_ref().and_then(Value::as_str) == Some(&**request) {
        return;
    }
    memory.render_once = true;
    memory.secrets_unread = true;
    memory.tries.forget_refusals();
    memory.report.news.push(News {
        warning: false,
        reason: "RenderRequested".to_owned(),
        action: "Render",
        note: format!("rendered anew, as asked by {}: {request}", names::RENDER_REQUESTED_ANNOTATION),
        occurrence: String::new(),
    });
}

/// Of a guest's `look-again-after`: the time, also remembered, since an event in between must not make it forgotten.
pub(crate) fn look_again(memory: &mut Memory, seconds: Option<u32>) {
    let (least, most) = LOOK_AGAIN;
    memory.look_again_at = seconds.map(|seconds| {
        let after = Duration::from_secs(u64::from(seconds)).clamp(least, most);
        clock::instant() + retry::spread(after, 10)
    });
}

/// The earlier of both.
pub(crate) fn next(memory: &Memory, resync: Instant) -> Instant {
    memory.look_again_at.map_or(resync, |at| at.min(resync))
}
