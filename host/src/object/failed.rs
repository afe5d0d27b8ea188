//! Pods that have ended and will never run again by themselves.
//!
//! | restartPolicy | phase | what becomes of it |
//! |---|---|---|
//! | Always | Failed, Succeeded | replaced: it was meant to run |
//! | any | Failed by its node or the cluster (evicted, preempted, node gone) | replaced |
//! | Never, OnFailure | Failed by itself | kept, unless `Recreate` was asked for |
//! | Never, OnFailure | Succeeded | kept: done, and ready as a Job that completed |
//! | any | Failed by its `activeDeadlineSeconds` | as one that failed by itself |
//!
//! Whatever may still come right (a pull that fails, a crash loop, no node, a
//! node that does not answer) is waited for: the kubelet and the scheduler try
//! again, and two Pods with one volume would be worse than none. Of kinds that
//! make Pods their own controller looks after them.

use serde::Deserialize;

use crate::cluster::ObjectView;

/// A Pod that has ended in a way that somebody must do something about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ended {
    /// CamelCase, as the Pod has it: `Evicted`, `Failed`.
    pub reason: String,
    pub message: String,
    pub cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// Its node or the cluster ended it.
    Disrupted,
    /// It ended though it was to run for good.
    Stopped,
    /// It failed, and its restartPolicy lets it rest.
    Failed,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
    reason: String,
    message: String,
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

/// The kubelet's and the node controller's words for a Pod that they ended or
/// would not take; newer ones give the condition DisruptionTarget too.
const DISRUPTIONS: [&str; 9] = [
    "Evicted",
    "NodeLost",
    "NodeShutdown",
    "Shutdown",
    "Terminated",
    "Preempting",
    "NodeAffinity",
    "NodeSelectorMismatching",
    "UnexpectedAdmissionError",
];

pub(crate) fn ended(group: &str, kind: &str, object: &ObjectView<'_>) -> Option<Ended> {
    if !group.is_empty() || kind != "Pod" {
        return None;
    }
    let phase = object.text_at("/status/phase")?;
    let failed = match &*phase {
        "Failed" => true,
        "Succeeded" => false,
        _ => return None,
    };
    let status: Status = serde_json::from_str(object.fields.get("status")?.get()).unwrap_or_default();
    let always = object.text_at("/spec/restartPolicy").is_none_or(|policy| policy == "Always");
    let target = status.conditions.iter().find(|it| it.r#type == "DisruptionTarget" && it.status == "True");
    let disrupted = target.is_some()
        || DISRUPTIONS.contains(&status.reason.as_str())
        // OutOfcpu, OutOfmemory, OutOfpods
        || status.reason.starts_with("OutOf");
    let cause = match (failed, always) {
        (true, _) if disrupted => Cause::Disrupted,
        (true, _) if status.reason == "DeadlineExceeded" => Cause::Failed,
        (_, true) => Cause::Stopped,
        (true, false) => Cause::Failed,
        (false, false) => return None,
    };
    let first = |texts: [&str; 3]| texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned();
    let condition = |text: fn(&Condition) -> &String| target.map_or("", |target| text(target));
    Some(Ended {
        reason: first([&status.reason, condition(|target| &target.reason), &phase]),
        message: first([&status.message, condition(|target| &target.message), &format!("its phase is {phase}")]),
        cause,
    })
}

impl Cause {
    /// For metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Disrupted => "Disrupted",
            Self::Stopped => "Stopped",
            Self::Failed => "Failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(policy: Option<&str>, status: &Value) -> Option<(String, Cause)> {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"restartPolicy": policy}, "status": status}).to_string();
        let ended = ended("", "Pod", &ObjectView::parse(&pod).unwrap())?;
        Some((ended.reason, ended.cause))
    }

    #[test]
    fn the_table_holds() {
        let target = json!([{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]);
        let rows = [
            (Some("Always"), json!({"phase": "Failed"}), Some(("Failed", Cause::Stopped))),
            (Some("Always"), json!({"phase": "Succeeded"}), Some(("Succeeded", Cause::Stopped))),
            (Some("Always"), json!({"phase": "Failed", "reason": "Evicted"}), Some(("Evicted", Cause::Disrupted))),
            (Some("Never"), json!({"phase": "Failed", "reason": "Evicted"}), Some(("Evicted", Cause::Disrupted))),
            (Some("Never"), json!({"phase": "Failed", "reason": "OutOfcpu"}), Some(("OutOfcpu", Cause::Disrupted))),
            (
                Some("Never"),
                json!({"phase": "Failed", "conditions": target}),
                Some(("DeletionByPodGC", Cause::Disrupted)),
            ),
            (Some("Never"), json!({"phase": "Failed"}), Some(("Failed", Cause::Failed))),
            (Some("OnFailure"), json!({"phase": "Failed"}), Some(("Failed", Cause::Failed))),
            (
                Some("Always"),
                json!({"phase": "Failed", "reason": "DeadlineExceeded"}),
                Some(("DeadlineExceeded", Cause::Failed)),
            ),
            (Some("Never"), json!({"phase": "Succeeded"}), None),
            (Some("OnFailure"), json!({"phase": "Succeeded"}), None),
            (Some("Always"), json!({"phase": "Running"}), None),
            (Some("Always"), json!({"phase": "Unknown", "reason": "NodeLost"}), None),
            (Some("Always"), json!({"phase": "Pending"}), None),
            (Some("Always"), json!({}), None),
            (Some("Always"), json!({"phase": 5}), None),
        ];
        for (policy, status, wanted) in rows {
            assert_eq!(
                of(policy, &status),
                wanted.map(|(reason, cause)| (reason.to_owned(), cause)),
                "{policy:?} {status}"
            );
        }
        let job = json!({"metadata": {}, "status": {"phase": "Failed"}}).to_string();
        assert_eq!(ended("batch", "Job", &ObjectView::parse(&job).unwrap()), None);
    }
}
