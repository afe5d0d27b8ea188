//! What a Pod's spec may hold: the Pod Security Standard `baseline` of Kubernetes
//! 1.37 (what no grant can give) and, beyond it, what would borrow somebody else's
//! rights, secrets or place (what a grant can give by `allowedFields`). A field
//! that a later Kubernetes brings is refused until it is thought through here.

use super::container::CONTAINER;
use super::security::POD_SECURITY;
use super::shape::Shape::{self, Baseline, Each, Fields, Free, Guarded, Metadata, Name};
use super::shape::Table;
use super::volume::VOLUME;

/// `template` of a workload.
pub(super) const TEMPLATE: Shape =
    Fields(&[("metadata", Metadata(&["labels", "annotations"])), ("spec", Fields(SPEC))]);

pub(super) const SPEC: Table = &[
    ("containers", Each(&CONTAINER)),
    ("initContainers", Each(&CONTAINER)),
    ("ephemeralContainers", Baseline("are added to a running Pod, never rendered")),
    ("volumes", Each(&VOLUME)),
    ("securityContext", POD_SECURITY),
    ("hostNetwork", Baseline("shares the node's network")),
    ("hostPID", Baseline("shares the node's processes")),
    ("hostIPC", Baseline("shares the node's IPC")),
    ("serviceAccountName", Guarded(RIGHTS)),
    ("serviceAccount", Guarded(RIGHTS)),
    ("automountServiceAccountToken", Guarded("hands the Pod a token for the API server")),
    ("imagePullSecrets", Each(&Fields(&[("name", Name("Secret"))]))),
    ("nodeName", Guarded("goes past the scheduler")),
    ("schedulerName", Guarded("chooses another scheduler")),
    ("priorityClassName", Guarded(PRIORITY)),
    ("priority", Guarded(PRIORITY)),
    ("runtimeClassName", Guarded("chooses another runtime, perhaps one that isolates less")),
    ("resourceClaims", Guarded("takes devices")),
    ("affinity", AFFINITY),
    ("activeDeadlineSeconds", Free),
    ("dnsConfig", Free),
    ("dnsPolicy", Free),
    ("enableServiceLinks", Free),
    ("hostAliases", Free),
    ("hostUsers", Free),
    ("hostname", Free),
    ("hostnameOverride", Free),
    ("nodeSelector", Free),
    ("os", Free),
    ("preemptionPolicy", Free),
    ("readinessGates", Free),
    ("resources", Free),
    ("restartPolicy", Free),
    ("schedulingGates", Free),
    ("setHostnameAsFQDN", Free),
    ("shareProcessNamespace", Free),
    ("subdomain", Free),
    ("terminationGracePeriodSeconds", Free),
    ("tolerations", Free),
    ("topologySpreadConstraints", Free),
];

const RIGHTS: &str = "takes the rights of a service account";
const PRIORITY: &str = "can push other Pods from their nodes";

/// Repelling or following Pods of other namespaces is those namespaces' matter too.
const AFFINITY: Shape =
    Fields(&[("nodeAffinity", Free), ("podAffinity", POD_AFFINITY), ("podAntiAffinity", POD_AFFINITY)]);

const POD_AFFINITY: Shape = Fields(&[
    ("requiredDuringSchedulingIgnoredDuringExecution", Each(&AFFINITY_TERM)),
    (
        "preferredDuringSchedulingIgnoredDuringExecution",
        Each(&Fields(&[("weight", Free), ("podAffinityTerm", AFFINITY_TERM)])),
    ),
]);

const AFFINITY_TERM: Shape = Fields(&[
    ("labelSelector", Free),
    ("matchLabelKeys", Free),
    ("mismatchLabelKeys", Free),
    ("topologyKey", Free),
    ("namespaces", Guarded("reaches into other namespaces")),
    ("namespaceSelector", Guarded("reaches into other namespaces")),
]);
