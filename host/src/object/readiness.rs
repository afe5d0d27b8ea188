//! When a child is ready, and the child's own word for why it is not.
//!
//! A Pod by its condition, a workload by its counts, a Job by its end, a claim
//! by its phase; what has no notion of it is ready by being there.

use serde::Deserialize;

/// `None` is ready.
pub(crate) type Unready = Option<Why>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    /// CamelCase, the child's own where it has one.
    pub reason: String,
    pub message: String,
    /// Can be used all the same: something is under way.
    pub usable: bool,
}

/// The parts of any `status` that are looked at; wrong types count as absent.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    reason: String,
    message: String,
    conditions: Vec<Condition>,
    init_container_statuses: Vec<ContainerStatus>,
    container_statuses: Vec<ContainerStatus>,
    observed_generation: Option<i64>,
    replicas: i64,
    updated_replicas: i64,
    ready_replicas: i64,
    available_replicas: i64,
    desired_number_scheduled: i64,
    updated_number_scheduled: i64,
    number_available: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    #[serde(rename = "observedGeneration")]
    observed_generation: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    name: String,
    state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Stopped>,
    terminated: Option<Stopped>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stopped {
    reason: String,
    message: String,
    exit_code: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    replicas: Option<i64>,
    restart_policy: String,
}

/// `spec` and `status` are the object's own as JSON text, where it has them.
pub(crate) fn of(group: &str, kind: &str, generation: i64, spec: Option<&str>, status: Option<&str>) -> Unready {
    let status = status.and_then(|json| serde_json::from_str::<Status>(json).ok()).unwrap_or_default();
    let spec = || spec.and_then(|json| serde_json::from_str::<Spec>(json).ok()).unwrap_or_default();
    let wanted = || spec().replicas.unwrap_or(1);
    match (group, kind) {
        // Done, as a Job that has completed.
        ("", "Pod")
            if status.phase == "Succeeded" && matches!(spec().restart_policy.as_str(), "Never" | "OnFailure") =>
        {
            None
        }
        ("", "Pod") => pod(&status, generation),
        ("", "PersistentVolumeClaim") => claim(&status),
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => replicas(&status, kind, generation, wanted()),
        ("", "ReplicationController") => replicas(&status, kind, generation, wanted()),
        ("apps", "DaemonSet") => daemons(&status, generation),
        ("batch", "Job") => job(&status),
        _ => None,
    }
}

fn pod(status: &Status, generation: i64) -> Unready {
    let condition = |kind: &str| status.conditions.iter().find(|condition| condition.r#type == kind);
    if condition("Ready").is_some_and(|ready| ready.status == "True") {
        return resized(status, generation);
    }
    if matches!(status.phase.as_str(), "Failed" | "Succeeded") {
        let reason = if status.reason.is_empty() { &status.phase } else { &status.reason };
        return why(reason, &[&status.message, &format!("its phase is {}", status.phase)]);
    }
    // What became of its node: NodeLost.
    if !status.reason.is_empty() {
        return why(&status.reason, &[&status.message, "it is not ready"]);
    }
    if let Some(scheduled) = condition("PodScheduled").filter(|scheduled| scheduled.status == "False") {
        return why(&scheduled.reason, &[&scheduled.message, "no node has been found for it"]);
    }
    let mut containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    if let Some((name, stopped)) = containers.find_map(|container| Some((&container.name, container.state.stuck()?))) {
        return why(&stopped.reason, &[&stopped.message, &format!("container {name} is not running")]);
    }
    match condition("Ready") {
        Some(ready) => why(&ready.reason, &[&ready.message, "its containers are not ready"]),
        None => why("Pending", &["it has not been started yet"]),
    }
}

/// A change of a Pod's resources that its node has not made yet: it runs as it was meanwhile.
fn resized(status: &Status, generation: i64) -> Unready {
    let pending = pending(status, generation);
    let told = match pending.map(|pending| pending.reason.as_str()) {
        Some(INFEASIBLE) => why("ResizeInfeasible", &["its node can never give it the resources that are asked for"]),
        Some(_) => why("ResizeDeferred", &["its node cannot give it the resources that are asked for yet"]),
        None => {
            let goes_on =
                status.conditions.iter().find(|it| it.r#type == "PodResizeInProgress" && it.status == "True")?;
            match goes_on.reason.as_str() {
                "Error" => why("ResizeError", &[&goes_on.message, "its node could not change its resources"]),
                _ => why("ResizeInProgress", &[&goes_on.message, "its node changes its resources"]),
            }
        }
    };
    let said = pending.map(|pending| pending.message.clone()).filter(|said| !said.is_empty());
    told.map(|why| Why { usable: true, message: said.unwrap_or(why.message), ..why })
}

/// The kubelet's reason for a resize that it will never make on its node.
const INFEASIBLE: &str = "Infeasible";

/// Of the resources that are asked for now: a condition may be of an earlier generation.
fn pending(status: &Status, generation: i64) -> Option<&Condition> {
    let current = |it: &&Condition| it.observed_generation.is_none_or(|observed| observed >= generation);
    let pending = |it: &&Condition| it.r#type == "PodResizePending" && it.status == "True";
    status.conditions.iter().find(pending).filter(current)
}

/// Of a Pod whose resources cannot be changed where it stands: the kubelet's words.
pub(crate) fn infeasible(group: &str, kind: &str, generation: i64, status: Option<&str>) -> Option<Box<str>> {
    // Most Pods are never resized.
    let status = status.filter(|status| (group, kind) == ("", "Pod") && status.contains("PodResizePending"))?;
    let status: Status = serde_json::from_str(status).ok()?;
    let pending = pending(&status, generation).filter(|pending| pending.reason == INFEASIBLE)?;
    Some(if pending.message.is_empty() { INFEASIBLE } else { pending.message.as_str() }.into())
}

impl State {
    /// Waiting for more than its turn, or ended with an error.
    fn stuck(&self) -> Option<&Stopped> {
        let passing = |reason: &str| matches!(reason, "" | "ContainerCreating" | "PodInitializing");
        self.waiting
            .as_ref()
            .filter(|waiting| !passing(&waiting.reason))
            .or(self.terminated.as_ref().filter(|terminated| terminated.exit_code != 0))
    }
}

fn claim(status: &Status) -> Unready {
    match status.phase.as_str() {
        "Lost" => why("ClaimLost", &["its volume is gone"]),
        // A class that binds late waits for the Pod, which is judged by itself.
        _ => resizing(status),
    }
}

/// A claim that grows, or cannot: its data is there meanwhile.
fn resizing(status: &Status) -> Unready {
    const TYPES: [&str; 6] = [
        "ControllerResizeError",
        "NodeResizeError",
        "ModifyVolumeError",
        "FileSystemResizePending",
        "Resizing",
        "ModifyingVolume",
    ];
    let holds = |kind: &str| status.conditions.iter().find(|c| c.r#type == kind && c.status == "True");
    let (kind, condition) = TYPES.iter().find_map(|kind| Some((kind, holds(kind)?)))?;
    let told = match *kind {
        "FileSystemResizePending" => "its volume has grown, and its file system grows when a Pod that uses it starts",
        "Resizing" => "its volume is being enlarged",
        _ => "its volume is being changed",
    };
    why(kind, &[&condition.message, told]).map(|why| Why { usable: true, ..why })
}

fn replicas(status: &Status, kind: &str, generation: i64, wanted: i64) -> Unready {
    if let Some(failed) = status.conditions.iter().find(|condition| {
        (condition.r#type == "Progressing" && condition.status == "False")
            || (condition.r#type == "ReplicaFailure" && condition.status == "True")
    }) {
        return why(&failed.reason, &[&failed.message, "it does not make progress"]);
    }
    if status.observed_generation.unwrap_or(0) < generation {
        return why("RollingOut", &["its controller has not seen the last change yet"]);
    }
    let updated = if kind == "Deployment" || kind == "StatefulSet" { status.updated_replicas } else { status.replicas };
    let available = status.available_replicas.max(if kind == "StatefulSet" { status.ready_replicas } else { 0 });
    if updated >= wanted && available >= wanted {
        return None;
    }
    why("RollingOut", &[&format!("{available} of {wanted} replicas are available, {updated} are up to date")])
}

fn daemons(status: &Status, generation: i64) -> Unready {
    let wanted = status.desired_number_scheduled;
    if status.observed_generation.unwrap_or(0) >= generation
        && status.updated_number_scheduled >= wanted
        && status.number_available >= wanted
    {
        return None;
    }
    why("RollingOut", &[&format!("{} of {wanted} are available", status.number_available)])
}

fn job(status: &Status) -> Unready {
    let condition = |kind: &str| status.conditions.iter().find(|c| c.r#type == kind && c.status == "True");
    if condition("Complete").is_some() {
        return None;
    }
    match condition("Failed") {
        Some(failed) => why(&failed.reason, &[&failed.message, "it failed"]),
        None => why("JobRunning", &["it has not completed yet"]),
    }
}

/// The first message that says something.
fn why(reason: &str, messages: &[&str]) -> Unready {
    let message =
        messages.iter().find(|message| !message.is_empty()).map_or_else(String::new, |text| (*text).to_owned());
    let reason = if reason.is_empty() { "NotReady" } else { reason };
    Some(Why { reason: reason.to_owned(), message, usable: false })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reason(group: &str, kind: &str, status: &Value) -> Option<String> {
        of(group, kind, 2, Some(r#"{"replicas":2}"#), Some(&status.to_string())).map(|why| why.reason)
    }

    #[test]
    fn a_pod_gives_its_own_reason() {
        let waiting = |reason: &str| {
            json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
            "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": reason, "message": "m"}}}]})
        };
        for (status, expected) in [
            (json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}), None),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}),
                Some("Unschedulable"),
            ),
            (waiting("ImagePullBackOff"), Some("ImagePullBackOff")),
            (waiting("ContainerCreating"), Some("ContainersNotReady")),
            (json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}), Some("Evicted")),
            (json!({"phase": "Succeeded"}), Some("Succeeded")),
            (
                json!({"phase": "Running", "reason": "NodeLost", "conditions": [{"type": "Ready", "status": "False"}]}),
                Some("NodeLost"),
            ),
            (json!({}), Some("Pending")),
            (json!({"phase": 5, "conditions": "x"}), Some("Pending")),
        ] {
            assert_eq!(reason("", "Pod", &status).as_deref(), expected, "{status}");
        }
    }

    #[test]
    fn a_resize_that_waits_is_told_and_one_that_cannot_be_is_known() {
        let pod = |kind: &str, reason: &str, observed: i64| {
            json!({"conditions": [{"type": "Ready", "status": "True"},
                {"type": kind, "status": "True", "reason": reason, "message": "m", "observedGeneration": observed}]})
        };
        let said = |status: &Value| {
            let why = of("", "Pod", 2, None, Some(&status.to_string()));
            assert!(why.as_ref().is_none_or(|why| why.usable));
            why.map(|why| (why.reason, why.message))
        };
        let told = |reason: &str| Some((reason.to_owned(), "m".to_owned()));
        let never = |status: &Value| infeasible("", "Pod", 2, Some(&status.to_string()));
        for (kind, reason, wanted) in [
            ("PodResizePending", "Deferred", "ResizeDeferred"),
            ("PodResizePending", "Infeasible", "ResizeInfeasible"),
            ("PodResizeInProgress", "", "ResizeInProgress"),
            ("PodResizeInProgress", "Error", "ResizeError"),
        ] {
            let status = pod(kind, reason, 2);
            assert_eq!(said(&status), told(wanted), "{status}");
            assert_eq!(never(&status).is_some(), reason == "Infeasible", "{status}");
        }
        let earlier = pod("PodResizePending", "Infeasible", 1);
        assert_eq!((said(&earlier), never(&earlier)), (None, None), "of what was asked for before");
        assert_eq!(infeasible("batch", "Job", 2, Some(&pod("PodResizePending", "Infeasible", 2).to_string())), None);
    }

    #[test]
    fn a_pod_that_was_to_end_is_ready_when_it_has() {
        let of = |policy: &str| {
            of("", "Pod", 1, Some(&json!({"restartPolicy": policy}).to_string()), Some(r#"{"phase":"Succeeded"}"#))
        };
        assert_eq!((of("Never"), of("OnFailure")), (None, None));
        assert_eq!(of("Always").map(|why| why.reason).as_deref(), Some("Succeeded"));
    }

    #[test]
    fn a_workload_is_ready_by_its_counts() {
        let ready = json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2});
        assert_eq!(reason("apps", "Deployment", &ready), None);
        let stale = json!({"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2});
        assert_eq!(reason("apps", "Deployment", &stale).as_deref(), Some("RollingOut"));
        let short = json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 1});
        assert_eq!(reason("apps", "Deployment", &short).as_deref(), Some("RollingOut"));
        let stuck =
            json!({"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]});
        assert_eq!(reason("apps", "Deployment", &stuck).as_deref(), Some("ProgressDeadlineExceeded"));
        assert_eq!(reason("batch", "Job", &json!({"conditions": [{"type": "Complete", "status": "True"}]})), None);
        assert_eq!(reason("batch", "Job", &json!({})).as_deref(), Some("JobRunning"));
    }

    #[test]
    fn a_claim_that_grows_can_be_used_and_says_so() {
        let claim = |status: &Value| of("", "PersistentVolumeClaim", 0, None, Some(&status.to_string()));
        let with =
            |kind: &str, status: &str| json!({"phase": "Bound", "conditions": [{"type": kind, "status": status}]});
        assert_eq!(claim(&json!({"phase": "Bound"})), None);
        assert_eq!(claim(&json!({"phase": "Pending"})), None);
        assert_eq!(claim(&with("Resizing", "False")), None);
        let pending = claim(&with("FileSystemResizePending", "True")).unwrap();
        assert!(pending.usable && pending.reason == "FileSystemResizePending" && pending.message.contains("Pod"));
        let lost = claim(&json!({"phase": "Lost", "conditions": [{"type": "Resizing", "status": "True"}]})).unwrap();
        assert_eq!((lost.usable, lost.reason.as_str()), (false, "ClaimLost"));
    }

    #[test]
    fn what_has_no_notion_of_it_is_ready_by_being_there() {
        assert_eq!(of("", "Service", 0, None, None), None);
        assert_eq!(of("example.org", "Pod", 0, None, None), None);
    }
}
