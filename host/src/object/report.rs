//! Tells people: one Event and one log line for each thing that happened.
//!
//! An Event's name is made of what it says, so that saying it again, after a
//! restart or from a second host, is refused by the API server instead of
//! shown twice.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::json;

use super::host::Host;
use super::memory::{Memory, News};
use super::parents::Parent;
use super::status::cut;
use crate::clock;
use crate::cluster::Resource;
use crate::limits::{EVENT_INTERVAL, EVENT_NOTE_BYTES};
use crate::names;

/// Says what has not been said lately. An Event that is refused is logged and
/// let go: it must not hold up anything. While nobody answers it is kept.
pub(crate) async fn say(host: &Host, parent: &Parent, memory: &mut Memory) {
    let now = clock::instant();
    memory.report.events.retain(|_, said| now.duration_since(*said) < EVENT_INTERVAL);
    let mut left = std::mem::take(&mut memory.report.news).into_iter();
    while let Some(news) = left.next() {
        let topic = hash(&(&news.reason, &news.note));
        if memory.report.events.contains_key(&topic) {
            continue;
        }
        match event(host, parent, &news).await {
            Err(error) if error.is_unreachable() => {
                memory.report.news = std::iter::once(news).chain(left).collect();
                return;
            }
            Err(error) => {
                tracing::warn!(namespace = %parent.id.namespace, name = %parent.id.name, "no Event: {error}");
            }
            Ok(()) => {}
        }
        memory.report.events.insert(topic, now);
        log(parent, &news);
    }
}

fn log(parent: &Parent, news: &News) {
    let News { warning, reason, note, .. } = news;
    let (kind, namespace, name) = (&parent.id.kind, &parent.id.namespace, &parent.id.name);
    if *warning {
        tracing::warn!(kind, namespace, name, reason, "{note}");
    } else {
        tracing::info!(kind, namespace, name, reason, "{note}");
    }
}

async fn event(host: &Host, parent: &Parent, news: &News) -> Result<(), crate::cluster::ApiError> {
    let identity = hash(&(&parent.id.uid, &news.reason, &news.note, &news.occurrence));
    let body = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": event_name(&parent.id.name, identity), "namespace": parent.id.namespace},
        "eventTime": clock::rfc3339_micro(clock::now()),
        "reportingController": names::CONTROLLER, "reportingInstance": host.identity,
        "action": news.action, "reason": news.reason,
        "type": if news.warning { "Warning" } else { "Normal" },
        "note": cut(&news.note, EVENT_NOTE_BYTES),
        "regarding": {
            "apiVersion": parent.id.api_version, "kind": parent.id.kind, "namespace": parent.id.namespace,
            "name": parent.id.name, "uid": parent.id.uid,
        },
    });
    let body = serde_json::to_vec(&body).unwrap_or_default();
    match host.api.create(&events(), Some(&parent.id.namespace), names::FIELD_MANAGER, body).await {
        // Said before, by this host or another.
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

/// Of a parent of 253 characters, too: its name is cut.
fn event_name(parent: &str, identity: u64) -> String {
    const PREFIX: usize = 253 - 17;
    let prefix = parent.get(..PREFIX).unwrap_or(parent).trim_end_matches(['.', '-']);
    format!("{prefix}.{identity:016x}")
}

fn events() -> Resource {
    Resource {
        group: "events.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Event".to_owned(),
        plural: "events".to_owned(),
        namespaced: true,
        has_status: false,
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::event_name;

    #[test]
    fn an_event_has_a_valid_name_whatever_its_parents_is() {
        assert_eq!(event_name("a.b", 0xab), "a.b.00000000000000ab");
        let long = event_name(&format!("{}.{}", "a".repeat(235), "b".repeat(17)), 1);
        assert_eq!(long, format!("{}.0000000000000001", "a".repeat(235)));
    }
}
