//! A Lease: what it says, and what is written into it. Whatever else others have
//! put there stays.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::clock;

/// As the API server has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record(Map<String, Value>);

/// Moves with every renewal, whoever makes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) holder: String,
    renewed: Value,
    acquired: Value,
    transitions: Value,
}

impl Record {
    pub(super) fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json).map(Self)
    }

    /// One that is not there yet.
    pub(super) fn vacant(namespace: &str, name: &str) -> Self {
        let lease = [
            ("apiVersion", json!("coordination.k8s.io/v1")),
            ("kind", json!("Lease")),
            ("metadata", json!({"namespace": namespace, "name": name})),
        ];
        Self(lease.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(super) fn body(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }

    /// Whether it was read: a write of it meets exactly that state.
    pub(super) fn is_there(&self) -> bool {
        self.0.get("metadata").and_then(|metadata| metadata.get("resourceVersion")).is_some()
    }

    /// Empty: nobody.
    pub(super) fn holder(&self) -> &str {
        self.spec("holderIdentity").and_then(Value::as_str).unwrap_or_default()
    }

    /// How long its holder promises that others may rely on it.
    pub(super) fn lasts(&self) -> Option<Duration> {
        let seconds = self.spec("leaseDurationSeconds")?.as_u64().filter(|seconds| *seconds > 0)?;
        Some(Duration::from_secs(seconds))
    }

    pub(super) fn said(&self) -> Said {
        let field = |name| self.spec(name).cloned().unwrap_or(Value::Null);
        Said {
            holder: self.holder().to_owned(),
            renewed: field("renewTime"),
            acquired: field("acquireTime"),
            transitions: field("leaseTransitions"),
        }
    }

    /// Taken or renewed.
    pub(super) fn hold(&mut self, identity: &str, lasts: Duration, now: Timestamp) {
        let now = clock::rfc3339_micro(now);
        if self.holder() != identity {
            let before = self.spec("leaseTransitions").and_then(Value::as_u64);
            self.set("leaseTransitions", if self.is_there() { json!(before.unwrap_or(0) + 1) } else { json!(0) });
            self.set("acquireTime", json!(now));
            self.set("holderIdentity", json!(identity));
        }
        self.set("renewTime", json!(now));
        self.set("leaseDurationSeconds", json!(lasts.as_secs()));
    }

    pub(super) fn release(&mut self, now: Timestamp) {
        self.set("holderIdentity", json!(""));
        self.set("renewTime", json!(clock::rfc3339_micro(now)));
        // An older candidate that looks at the time alone waits no longer than this.
        self.set("leaseDurationSeconds", json!(1));
    }

    fn spec(&self, field: &str) -> Option<&Value> {
        self.0.get("spec")?.get(field)
    }

    fn set(&mut self, field: &str, value: Value) {
        let spec = self.0.entry("spec").or_insert(Value::Null);
        if !spec.is_object() {
            *spec = json!({});
        }
        if let Some(spec) = spec.as_object_mut() {
            spec.insert(field.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_keeps_what_others_wrote_and_when_it_was_taken() {
        let there = br#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"keelson",
            "resourceVersion":"7","labels":{"x":"y"}},"spec":{"holderIdentity":"a","leaseTransitions":3,
            "acquireTime":"2026-01-01T00:00:00.000000Z","strategy":"z","leaseDurationSeconds":60}}"#;
        let mut record = Record::read(there).unwrap();
        assert_eq!((record.holder(), record.lasts()), ("a", Some(Duration::from_secs(60))));
        let taken: Timestamp = "2026-02-02T00:00:00Z".parse().unwrap();
        record.hold("b", Duration::from_secs(15), taken);
        let renewed = taken + Duration::from_secs(2);
        record.hold("b", Duration::from_secs(15), renewed);
        let written: Value = serde_json::from_slice(&record.body()).unwrap();
        assert_eq!(written["metadata"], json!({"name": "keelson", "resourceVersion": "7", "labels": {"x": "y"}}));
        let spec = json!({"holderIdentity": "b", "leaseTransitions": 4, "acquireTime": "2026-02-02T00:00:00.000000Z",
            "renewTime": "2026-02-02T00:00:02.000000Z", "strategy": "z", "leaseDurationSeconds": 15});
        assert_eq!(written["spec"], spec);
        record.release(renewed);
        assert_eq!((record.holder(), record.lasts()), ("", Some(Duration::from_secs(1))));
    }
}
