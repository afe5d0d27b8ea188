//! A paused object: nothing is written to its children. What would be is found
//! out all the same, since a rendering is pure, and said.

use super::apply::stands_as_rendered;
use super::failure::WalkError;
use super::gather::GatherError;
use super::host::Host;
use super::memory::{Memory, News};
use super::outcome::{Next, Outcome};
use super::parents::{Parent, ParentKey};
use super::{answer, ask, dispatch, kept, own, status};
use crate::check::{self, CheckedChildren, CheckedParts};
use crate::names;

pub(crate) async fn pause(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
    outcome: &mut Option<Outcome>,
) -> Next {
    if !std::mem::replace(&mut memory.paused, true) && !status::is_paused(parent) {
        let note = format!("{} is \"true\": children are left as they are", names::PAUSED_ANNOTATION);
        memory.report.news.push(news(parent, "Paused", note));
    }
    memory.settled = None;
    let held = match held_back(host, key, parent, memory).await {
        Ok(changes) if changes.is_empty() => "nothing is held back".to_owned(),
        Ok(changes) => format!("held back: {}", changes.join(", ")),
        // What was said stays until it is known; a cache that fills wakes everybody.
        Err(WalkError::Gather(GatherError::Unfilled { .. })) => return Next::Rest,
        Err(error) => match error.put_off() {
            Some(again) => return Next::Later(again),
            None => format!("as it is now it would be refused: {}: {error}", error.reason(memory)),
        },
    };
    *outcome = Some(Outcome::Paused(held));
    Next::Rest
}

/// The first walk after a pause goes on by itself; this tells it.
pub(crate) fn resumed(parent: &Parent, memory: &mut Memory) {
    if std::mem::take(&mut memory.paused) || (memory.settled.is_none() && status::is_paused(parent)) {
        let note = format!("{} is gone: children are looked after again", names::PAUSED_ANNOTATION);
        memory.report.news.push(news(parent, "Resumed", note));
    }
}

/// What a walk would write, in words.
async fn held_back(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    memory: &mut Memory,
) -> Result<Vec<String>, WalkError> {
    let plugin = dispatch::dispatch(&host.registry(), &host.group_of(key), parent)?;
    check::parent(&parent.id, &plugin.name, &plugin.grant, &plugin.manifest)?;
    let gathered = ask::gathered(host, &plugin, parent, memory).await?;
    let CheckedParts { children, secrets, .. } = answer::rendering(host, &plugin, parent, &gathered).await?;
    kept::compatible(host, parent, &plugin.name, &children)?;
    let CheckedChildren::Exactly(children) = children else { return Ok(Vec::new()) };
    // Without the revision of a Secret that a Pod may carry, nothing can be said of the Pod.
    if secrets.iter().any(|secret| !memory.secrets.contains_key(&secret.name)) {
        return Ok(vec!["perhaps changes, once the Secrets have been looked at".to_owned()]);
    }
    let credentials: Vec<&str> = secrets.iter().map(|secret| secret.name.as_str()).collect();
    let owned = own::all(host, children, parent, &plugin, &credentials)?;
    let mut changes = Vec::new();
    for child in &owned {
        let title = format!("{} {}", child.resource().kind, child.id().name);
        match host.children.get(child.id()) {
            None => changes.push(format!("{title} would be made")),
            Some(known) if known.going => changes.push(format!("{title} would be made anew")),
            Some(known) if !stands_as_rendered(&known, child) => changes.push(format!("{title} would be changed")),
            Some(_) => {}
        }
    }
    for child in &gathered.children {
        if !child.going && child.is_owned_by(&parent.id.uid) && !owned.iter().any(|own| *own.id() == child.id) {
            let kinds = host.kinds();
            let kind = kinds.names().get(child.id.kind).map_or("", String::as_str);
            changes.push(format!("{kind} {} is not rendered any more", child.id.name));
        }
    }
    Ok(changes)
}

/// Told apart by the state that it was seen in: it may be paused more than once.
fn news(parent: &Parent, reason: &str, note: String) -> News {
    let (reason, action) = (reason.to_owned(), "Pause");
    News { warning: false, reason, action, note, occurrence: parent.resource_version.to_string() }
}
