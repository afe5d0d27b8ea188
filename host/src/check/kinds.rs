//! The kinds that Kubernetes 1.37 brings, and what each may be to a plugin. For
//! others, discovery knows the scope and the grant names the kind.

/// What a kind may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A child, where it is granted.
    Child,
    /// Has no namespace.
    Cluster,
    /// Nothing: no grant can give it. Why.
    Never(&'static str),
}

use Standing::{Child, Cluster, Never};

const RIGHTS: &str = "gives rights in the cluster";
const SERVER: &str = "changes what the API server does for everybody";
const TRAFFIC: &str = "can take over the traffic of any Service in the namespace";
const ACTION: &str = "is an action, not an object that stays";

/// Whole groups, those of OpenShift beside.
const GROUPS: &[(&str, &str)] = &[
    ("rbac.authorization.k8s.io", RIGHTS),
    ("authorization.k8s.io", RIGHTS),
    ("authentication.k8s.io", RIGHTS),
    ("certificates.k8s.io", RIGHTS),
    ("authorization.openshift.io", RIGHTS),
    ("oauth.openshift.io", RIGHTS),
    ("security.openshift.io", RIGHTS),
    ("user.openshift.io", RIGHTS),
    ("keelson.dev", "decides what plugins may do"),
    ("admissionregistration.k8s.io", SERVER),
    ("apiextensions.k8s.io", SERVER),
    ("apiregistration.k8s.io", SERVER),
    ("flowcontrol.apiserver.k8s.io", SERVER),
    ("internal.apiserver.k8s.io", SERVER),
    ("storagemigration.k8s.io", SERVER),
    ("lifecycle.k8s.io", ACTION),
];

/// Group, kind, plural, standing. The core group is listed whole.
const KINDS: &[(&str, &str, &str, Standing)] = &[
    ("", "Binding", "bindings", Never(ACTION)),
    ("", "ComponentStatus", "componentstatuses", Cluster),
    ("", "ConfigMap", "configmaps", Child),
    ("", "Endpoints", "endpoints", Never(TRAFFIC)),
    ("", "Event", "events", Never("is the host's to write")),
    ("", "LimitRange", "limitranges", Child),
    ("", "Namespace", "namespaces", Cluster),
    ("", "Node", "nodes", Cluster),
    ("", "PersistentVolume", "persistentvolumes", Cluster),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims", Child),
    ("", "Pod", "pods", Child),
    ("", "PodTemplate", "podtemplates", Child),
    ("", "ReplicationController", "replicationcontrollers", Child),
    ("", "ResourceQuota", "resourcequotas", Child),
    ("", "Secret", "secrets", Child),
    ("", "Service", "services", Child),
    ("", "ServiceAccount", "serviceaccounts", Child),
    ("apps", "ControllerRevision", "controllerrevisions", Child),
    ("apps", "DaemonSet", "daemonsets", Child),
    ("apps", "Deployment", "deployments", Child),
    ("apps", "ReplicaSet", "replicasets", Child),
    ("apps", "StatefulSet", "statefulsets", Child),
    ("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", Child),
    ("batch", "CronJob", "cronjobs", Child),
    ("batch", "Job", "jobs", Child),
    ("coordination.k8s.io", "Lease", "leases", Child),
    ("coordination.k8s.io", "LeaseCandidate", "leasecandidates", Never("decides who leads")),
    ("discovery.k8s.io", "EndpointSlice", "endpointslices", Never(TRAFFIC)),
    ("events.k8s.io", "Event", "events", Never("is the host's to write")),
    ("networking.k8s.io", "IPAddress", "ipaddresses", Cluster),
    ("networking.k8s.io", "Ingress", "ingresses", Child),
    ("networking.k8s.io", "IngressClass", "ingressclasses", Cluster),
    ("networking.k8s.io", "NetworkPolicy", "networkpolicies", Child),
    ("networking.k8s.io", "ServiceCIDR", "servicecidrs", Cluster),
    ("node.k8s.io", "RuntimeClass", "runtimeclasses", Cluster),
    ("policy", "Eviction", "evictions", Never(ACTION)),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets", Child),
    ("resource.k8s.io", "DeviceClass", "deviceclasses", Cluster),
    ("resource.k8s.io", "DeviceTaintRule", "devicetaintrules", Cluster),
    ("resource.k8s.io", "ResourceClaim", "resourceclaims", Child),
    ("resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", Child),
    ("resource.k8s.io", "ResourcePoolStatusRequest", "resourcepoolstatusrequests", Cluster),
    ("resource.k8s.io", "ResourceSlice", "resourceslices", Cluster),
    ("scheduling.k8s.io", "PriorityClass", "priorityclasses", Cluster),
    ("storage.k8s.io", "CSIDriver", "csidrivers", Cluster),
    ("storage.k8s.io", "CSINode", "csinodes", Cluster),
    ("storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", Never("is a storage driver's to write")),
    ("storage.k8s.io", "StorageClass", "storageclasses", Cluster),
    ("storage.k8s.io", "VolumeAttachment", "volumeattachments", Cluster),
    ("storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", Cluster),
];

/// What `group` and `kind` may be; `None` where Kubernetes does not bring the kind.
pub(super) fn standing(group: &str, kind: &str) -> Option<Standing> {
    let of_group = GROUPS.iter().find(|(name, _)| *name == group).map(|(_, why)| Never(why));
    let of_kind = || KINDS.iter().find(|entry| entry.0 == group && entry.1 == kind).map(|entry| entry.3);
    let core = || group.is_empty().then_some(Never("is no kind of the core group that can be made"));
    of_group.or_else(of_kind).or_else(core)
}

/// The kind's name in URLs, where Kubernetes brings the kind.
pub(super) fn plural(group: &str, kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|entry| entry.0 == group && entry.1 == kind).map(|entry| entry.2)
}

/// Kind and group as people write them: `Deployment.apps`, `Pod`.
pub(super) fn shown(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}
