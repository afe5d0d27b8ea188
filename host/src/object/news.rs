//! What a walk that went well has to tell: children made, made again, taken away.

use super::apply::Applied;
use super::memory::{Memory, News};
use super::parents::Named;
use super::prune::Pruned;
use super::tries::{REPLACED_BY_EDIT, Tries, Why};
use super::words;
use crate::clock;
use crate::names;

/// Whose children became this object's, each by its own Event.
pub(crate) fn taken(found: &[Named], adopted: &[Named]) -> Vec<News> {
    let say = |reason: &str, words: &str, child: &Named| News {
        warning: false,
        reason: reason.to_owned(),
        action: "Apply",
        note: format!("{words}: {} {}", child.kind, child.name),
        occurrence: clock::now().to_string(),
    };
    let found =
        found.iter().map(|child| say("DataFound", "found again, kept from an earlier object of this name", child));
    found.chain(adopted.iter().map(|child| say("Adopted", "taken over, as the annotation says", child))).collect()
}

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
pub(crate) fn of(memory: &mut Memory, applied: &Applied, pruned: &Pruned) -> Vec<News> {
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
    if !pruned.gone.is_empty() {
        let note = format!("deleted what is no longer rendered: {}", pruned.gone.join(", "));
        news.push(say("Prune", "Pruned", note));
    }
    news.extend(left(memory, pruned));
    news
}

/// What is no longer rendered and stays, said once.
fn left(memory: &mut Memory, pruned: &Pruned) -> Vec<News> {
    let mut news = Vec::new();
    memory.kept.retain(|uid| pruned.kept.iter().any(|(_, kept)| kept == uid));
    let say = |reason: &str, note, occurrence: &str| News {
        warning: true,
        reason: reason.to_owned(),
        action: "Prune",
        note,
        occurrence: occurrence.to_owned(),
    };
    for (Named { kind, name, .. }, uid) in &pruned.kept {
        if memory.kept.insert(uid.clone()) {
            let note = format!(
                "{kind} {name} is no longer rendered and is left as it is, since it holds data; to have it deleted annotate this object with {}={}",
                names::DELETE_DATA_ANNOTATION,
                words::child(kind, name),
            );
            news.push(say("DataKept", note, uid));
        }
    }
    for (Named { kind, name, .. }, why) in &pruned.forbidden {
        news.push(say("PruneForbidden", format!("{kind} {name} is no longer rendered and is left: {why}"), ""));
    }
    news
}
