//! What the object says of itself: conditions, observedGeneration, the list of
//! children, and the plugin's own fields. Written after the children, only
//! where it differs, and never on a kind without a status subresource.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::children::Child;
use super::host::Host;
use super::memory::{Memory, News, Stop, hash_of};
use super::outcome::{Finalizing, Outcome};
use super::parents::{Named, Parent, ParentKey};
use super::retry::Retry;
use super::secrets;
use crate::clock::{self, Instant};
use crate::cluster::{ApiError, ObjectView, Resource};
use crate::limits::{CONDITION_MESSAGE_BYTES, STATUS_SETTLE};
use crate::names;
use crate::sandbox::model::Condition;

/// Fields of `status` that are the host's.
const HOST_FIELDS: [&str; 4] = ["observedGeneration", "conditions", "children", "renderRequestedAt"];

/// Conditions of the host's that are not always there.
const PASSING_CONDITIONS: [&str; 2] = ["Paused", secrets::CONDITION];

pub(crate) enum Written {
    /// It stands there already.
    Unchanged,
    /// A passing step, held back until then.
    Held(Instant),
    Done,
    /// There is no status to write.
    NoSubresource,
    /// The object is gone or going.
    Gone,
}

/// What is sent. The status is put into words once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Value,
    status: &'a RawValue,
}

pub(crate) async fn write(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    resource: &Resource,
    memory: &mut Memory,
    outcome: &Outcome,
) -> Result<Written, ApiError> {
    if !resource.has_status {
        return Ok(Written::NoSubresource);
    }
    let credentials = memory.credentials.clone().unwrap_or_else(|| secrets::standing(parent));
    let there = parent.status.fields();
    let children = host.children.of(&parent.id.uid);
    let mut desired = desired(parent, &there, outcome, &children, host.kinds().names(), credentials);
    rendered_request(parent, &there, memory, &mut desired);
    let words = serde_json::value::to_raw_value(&desired).unwrap_or_default();
    let sent = hash_of(&words.get());
    // As the server answered to the same words last time: it may prune fields.
    let same_words = memory.report.status == Some((sent, hash_of(&parent.status)));
    let other_words = memory.report.status.is_some_and(|(last, _)| last != sent);
    if same_words || stands(parent, &there, &desired, other_words) {
        memory.report.held_since = None;
        return Ok(Written::Unchanged);
    }
    if let Some(until) = held(&there, &desired, memory, outcome) {
        return Ok(Written::Held(until));
    }
    let said = hash_of(&timeless(&desired).to_string());
    if let Some(until) = fought(host, parent, resource, memory, said).await {
        return Ok(Written::Held(until));
    }
    let metadata = json!({"name": parent.id.name, "namespace": parent.id.namespace, "uid": parent.id.uid});
    let body = Body { api_version: &resource.api_version(), kind: &resource.kind, metadata, status: &words };
    let body = serde_json::to_vec(&body).unwrap_or_default();
    let (namespace, name) = (Some(parent.id.namespace.as_str()), &parent.id.name);
    let answer = match host.api.apply(resource, Some("status"), namespace, name, names::FIELD_MANAGER, body).await {
        Ok(answer) => answer,
        // Deleted, or made anew under the same name: another object's status is not ours to write.
        Err(error) if error.is_not_found() || error.is_conflict() || error.is_uid_mismatch() => {
            return Ok(Written::Gone);
        }
        Err(error) => return Err(error),
    };
    let status = host.wrote_parent(key, &answer)?;
    memory.report.status = Some((sent, status));
    memory.report.said = said;
    memory.report.held_since = None;
    Ok(Written::Done)
}

/// Somebody else has written over what we said, and we have nothing new to say: a fight, if it goes on like that. Until
/// when it is let be. Told by an Event, since a condition is what is fought about.
async fn fought(host: &Host, parent: &Parent, resource: &Resource, memory: &mut Memory, said: u64) -> Option<Instant> {
    let rewritten = memory.report.status.is_some_and(|(_, answered)| answered != hash_of(&parent.status));
    if !rewritten || memory.report.said != said {
        return None;
    }
    let until = memory.report.fight.taken(clock::instant())?;
    if memory.report.fight.wants_manager() {
        let manager = status_writer(host, parent, resource).await;
        memory.report.fight.is_with(manager);
    }
    memory.report.news.push(News {
        warning: true,
        reason: "FieldConflict".to_owned(),
        action: "Status",
        note: format!(
            "status: {} rewrites it again and again; it is put back ever more rarely",
            memory.report.fight.writer()
        ),
        occurrence: parent.generation.to_string(),
    });
    Some(until)
}

/// Who wrote to the status last, but us.
async fn status_writer(host: &Host, parent: &Parent, resource: &Resource) -> Option<String> {
    let answer = host.api.get(resource, Some(&parent.id.namespace), &parent.id.name).await.ok()?;
    let there = ObjectView::from_slice(&answer).ok()?;
    let managed = there.managed_fields().ok()?;
    let others = managed.iter().filter(|entry| entry.manager != names::FIELD_MANAGER && entry.subresource == "status");
    Some(others.max_by(|one, other| one.time.cmp(&other.time))?.manager.clone().into_owned())
}

/// A status without the times of its conditions.
fn timeless(status: &Map<String, Value>) -> Value {
    let mut status = status.clone();
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(condition) = condition.as_object_mut() {
            condition.remove("lastTransitionTime");
        }
    }
    status.into()
}

/// Whether what should stand there does, word for word. `other_words`: than were
/// sent last, so that a condition which is there and not wanted may be ours.
fn stands(parent: &Parent, there: &Map<String, Value>, desired: &Map<String, Value>, other_words: bool) -> bool {
    let is_over = |there: &Value| {
        let kind = there.get("type").and_then(Value::as_str).unwrap_or_default();
        (other_words || PASSING_CONDITIONS.contains(&kind)) && condition(desired, kind).is_none()
    };
    desired.iter().all(|(name, value)| match (name.as_str(), there.get(name)) {
        // Other managers may have conditions of their own in the list.
        ("conditions", Some(Value::Array(there))) => {
            let wanted = value.as_array().map(Vec::as_slice).unwrap_or_default();
            wanted.iter().all(|condition| there.contains(condition)) && there.iter().all(|one| !is_over(one))
        }
        (_, there) => there == Some(value),
    }) && parent.status_owned.iter().all(|name| desired.contains_key(name))
}

/// A first status is written at once, and so is every change of Ready; a step
/// from one "not yet" to the next waits, since it mostly passes by itself.
fn held(
    there: &Map<String, Value>,
    desired: &Map<String, Value>,
    memory: &mut Memory,
    outcome: &Outcome,
) -> Option<Instant> {
    let ready = |status: &Map<String, Value>| {
        condition(status, "Ready").and_then(|ready| Some(ready.get("status")?.as_str()?.to_owned()))
    };
    let generation = |status: &Map<String, Value>| status.get("observedGeneration").cloned();
    let first = there.is_empty() || generation(there) != generation(desired);
    let stopped = !matches!(outcome, Outcome::Applied(_));
    if first || stopped || ready(there) != ready(desired) {
        return None;
    }
    let since = *memory.report.held_since.get_or_insert_with(clock::instant);
    let until = since + STATUS_SETTLE;
    (clock::instant() < until).then_some(until)
}

fn condition<'a>(status: &'a Map<String, Value>, kind: &str) -> Option<&'a Value> {
    status
        .get("conditions")?
        .as_array()?
        .iter()
        .find(|condition| condition.get("type").is_some_and(|name| name == kind))
}

/// Whether the status says already what stopped a walk.
pub(crate) fn says(parent: &Parent, stop: &Stop) -> bool {
    condition(&parent.status.fields(), "Ready").is_some_and(|ready| {
        let says = |field: &str, text: &str| ready.get(field).is_some_and(|value| value == text);
        says("status", "False")
            && says("reason", &stop.reason)
            && says("message", &cut(&stop.message, CONDITION_MESSAGE_BYTES))
    })
}

/// Whether it says that the object is paused.
pub(crate) fn is_paused(parent: &Parent) -> bool {
    condition(&parent.status.fields(), "Paused")
        .is_some_and(|paused| paused.get("status").is_some_and(|is| is == "True"))
}

/// Which of a user's wishes for a render was the last to be fulfilled; none once the annotation has gone.
fn rendered_request(parent: &Parent, there: &Map<String, Value>, memory: &Memory, status: &mut Map<String, Value>) {
    const FIELD: &str = "renderRequestedAt";
    let Some(wanted) = &parent.render_requested else { return };
    let value = match &memory.render_requested {
        Some(seen) if seen == wanted => Value::from(&**seen),
        _ => there.get(FIELD).cloned().unwrap_or_default(),
    };
    if !value.is_null() {
        status.insert(FIELD.to_owned(), value);
    }
}

/// The whole status as it should stand.
fn desired(
    parent: &Parent,
    there: &Map<String, Value>,
    outcome: &Outcome,
    children: &[Arc<Child>],
    kinds: &[String],
    credentials: Option<Condition>,
) -> Map<String, Value> {
    let [ready, progressing, degraded] = judge(outcome, children, kinds);
    let mut conditions = vec![ready, progressing, degraded, paused(parent, outcome)];
    conditions.extend(credentials);
    let mut status = match outcome {
        Outcome::Applied(applied) => {
            conditions.extend(applied.said().conditions.iter().cloned());
            applied.said().status.clone()
        }
        // What was said of children that still stand stays.
        Outcome::Waiting(_) | Outcome::Stopped(_) | Outcome::Paused(_) | Outcome::Finalizing(_) => parent
            .status_owned
            .iter()
            .filter(|name| !HOST_FIELDS.contains(&name.as_str()))
            .filter_map(|name| Some((name.clone(), there.get(name)?.clone())))
            .collect(),
    };
    let mut listed: Vec<Named> = match outcome {
        Outcome::Applied(applied) => applied.children().to_vec(),
        Outcome::Waiting(stop) | Outcome::Stopped(stop) => {
            stop.children.iter().chain(parent.recorded()).cloned().collect()
        }
        Outcome::Paused(_) => parent.recorded().to_vec(),
        Outcome::Finalizing(finalizing) => finalizing.children.clone(),
    };
    listed.sort();
    listed.dedup();
    let listed: Vec<Value> = listed
        .iter()
        .map(|child| json!({"apiVersion": child.api_version, "kind": child.kind, "name": child.name}))
        .collect();
    status.insert("observedGeneration".to_owned(), parent.generation.into());
    status.insert("children".to_owned(), listed.into());
    let conditions: Vec<Value> = conditions.iter().map(|said| with_times(said, parent, there)).collect();
    status.insert("conditions".to_owned(), conditions.into());
    status
}

/// Ready, Progressing, Degraded.
fn judge(outcome: &Outcome, children: &[Arc<Child>], kinds: &[String]) -> [Condition; 3] {
    let fine = || said("Degraded", "False", "AsExpected", String::new());
    match outcome {
        // Of the object as it is now: nobody sees to it that the children follow.
        Outcome::Paused(_) => {
            let seen = unready(children, kinds, false).map_or_else(
                || "all that stands is ready".to_owned(),
                |(reason, message)| format!("{message} ({reason})"),
            );
            [
                said("Ready", "Unknown", "Paused", format!("paused, so nothing is looked after; {seen}")),
                said("Progressing", "False", "Paused", String::new()),
                fine(),
            ]
        }
        Outcome::Finalizing(Finalizing { reason, message, overdue, children: _ }) => [
            said("Ready", "False", reason, message.clone()),
            said("Progressing", "True", reason, message.clone()),
            if *overdue { said("Degraded", "True", reason, message.clone()) } else { fine() },
        ],
        Outcome::Waiting(Stop { reason, message, .. }) => [
            said("Ready", "False", reason, message.clone()),
            said("Progressing", "True", reason, message.clone()),
            fine(),
        ],
        Outcome::Stopped(Stop { reason, message, retry, .. }) => [
            said("Ready", "False", reason, message.clone()),
            said("Progressing", if *retry == Retry::Permanent { "False" } else { "True" }, reason, message.clone()),
            said("Degraded", "True", reason, message.clone()),
        ],
        Outcome::Applied(applied) => {
            let under_way = unready(children, kinds, true);
            let own = applied.said().not_ready.as_ref().map(|own| (own.reason.clone(), own.message.clone()));
            // A plugin that says something knows more than one child.
            match own.or_else(|| unready(children, kinds, false)) {
                None => [
                    said("Ready", "True", "Ready", "all children are ready".to_owned()),
                    match under_way {
                        Some((reason, message)) => said("Progressing", "True", &reason, message),
                        None => said("Progressing", "False", "Ready", String::new()),
                    },
                    fine(),
                ],
                Some((reason, message)) => [
                    said("Ready", "False", &reason, message),
                    said("Progressing", "True", "WaitingForChildren", String::new()),
                    fine(),
                ],
            }
        }
    }
}

/// The first child that says something: that it cannot be used, or (`usable`) only what goes on in it.
fn unready(children: &[Arc<Child>], kinds: &[String], usable: bool) -> Option<(String, String)> {
    children.iter().find_map(|child| {
        let why = child.unready.as_ref().filter(|why| why.usable == usable)?;
        let kind = kinds.get(child.id.kind).map_or("", String::as_str);
        Some((why.reason.clone(), format!("{kind} {}: {}", child.id.name, why.message)))
    })
}

/// Always there, so that one can wait for its end.
fn paused(parent: &Parent, outcome: &Outcome) -> Condition {
    if !parent.paused {
        return said("Paused", "False", "NotPaused", String::new());
    }
    let what = match outcome {
        Outcome::Paused(held) => format!("children are left as they are; {held}"),
        _ => "but the object is going, which goes on".to_owned(),
    };
    said("Paused", "True", "PausedByAnnotation", format!("{} is \"true\": {what}", names::PAUSED_ANNOTATION))
}

fn said(kind: &str, status: &'static str, reason: &str, message: String) -> Condition {
    Condition { kind: kind.to_owned(), status, reason: reason.to_owned(), message }
}

/// With the time of its last transition: that of the condition that stands
/// there, unless its status is another.
fn with_times(said: &Condition, parent: &Parent, there: &Map<String, Value>) -> Value {
    let since = condition(there, &said.kind)
        .filter(|there| there.get("status").is_some_and(|status| status == said.status))
        .and_then(|there| there.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| clock::rfc3339(clock::now()).into());
    json!({
        "type": said.kind, "status": said.status, "reason": said.reason, "message": cut(&said.message, CONDITION_MESSAGE_BYTES),
        "lastTransitionTime": since, "observedGeneration": parent.generation,
    })
}

/// At most so many bytes, on a character's border.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}
