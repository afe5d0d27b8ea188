//! What a walk that went well has to tell: children made, made again, taken away.

use super::apply::Applied;
use super::memory::{Memory, News};
use super::tries::{REPLACED_BY_EDIT, Tries, Why};
use crate::clock;

/// Children that were deleted to be made anew.
pub(crate) fn replaced(tries: &mut Tries) -> Vec<News> {
    let news = std::mem::take(&mut tries.news);
    let say = |(child, Why { reason, message, cause }): (String, Why)| {
        let edited = cause == REPLACED_BY_EDIT;
        News {
            warning: !edited,
            reason: "Replaced".to_owned(),
            action: "Replace",
            note: format!(
                "{child} is made anew: {}{message}",
                if edited { String::new() } else { format!("{reason}: ") }
            ),
            occurrence: clock::now().to_string(),
        }
    };
    news.into_iter().map(say).collect()
}

/// What was made, said once all of it stands.
pub(crate) fn of(memory: &mut Memory, applied: &Applied, pruned: &[String]) -> Vec<News> {
    let mut news = Vec::new();
    let made = std::mem::take(&mut memory.made);
    // Told apart by the time, but the first: its Event is the same from any host.
    let occurrence = if memory.first { String::new() } else { clock::now().to_string() };
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
