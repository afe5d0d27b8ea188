//! What a child may hold beside apiVersion, kind and metadata, by kind. A kind
//! that is not here is the grant's risk: it was named there.

use super::pod::{SPEC, TEMPLATE};
use super::shape::Shape::{
    self, Each, Fields, Free, Guarded, GuardedAmong, LabelSelector, Labels, Metadata, Name, Target,
};
use super::shape::Table;
use super::volume::CLAIM_SPEC;

pub(super) fn fields(group: &str, kind: &str) -> Option<Table> {
    OBJECTS.iter().find(|entry| entry.0 == group && entry.1 == kind).map(|entry| entry.2)
}

static OBJECTS: &[(&str, &str, Table)] = &[
    ("", "ConfigMap", &[("data", Free), ("binaryData", Free), ("immutable", Free)]),
    ("", "PersistentVolumeClaim", &[("spec", Fields(CLAIM_SPEC))]),
    ("", "Pod", &[("spec", Fields(SPEC))]),
    ("", "PodTemplate", &[("template", TEMPLATE)]),
    (
        "",
        "ReplicationController",
        &[(
            "spec",
            Fields(&[("replicas", Free), ("minReadySeconds", Free), ("selector", Labels), ("template", TEMPLATE)]),
        )],
    ),
    ("", "Service", &[("spec", SERVICE)]),
    (
        "",
        "ServiceAccount",
        &[
            ("secrets", Each(&Fields(&[("name", Name("Secret"))]))),
            ("imagePullSecrets", Each(&Fields(&[("name", Name("Secret"))]))),
            ("automountServiceAccountToken", Free),
        ],
    ),
    (
        "apps",
        "DaemonSet",
        &[(
            "spec",
            Fields(&[
                ("selector", LabelSelector),
                ("template", TEMPLATE),
                ("updateStrategy", Free),
                ("minReadySeconds", Free),
                ("revisionHistoryLimit", Free),
            ]),
        )],
    ),
    (
        "apps",
        "Deployment",
        &[(
            "spec",
            Fields(&[
                ("replicas", Free),
                ("selector", LabelSelector),
                ("template", TEMPLATE),
                ("strategy", Free),
                ("minReadySeconds", Free),
                ("revisionHistoryLimit", Free),
                ("paused", Free),
                ("progressDeadlineSeconds", Free),
            ]),
        )],
    ),
    (
        "apps",
        "ReplicaSet",
        &[(
            "spec",
            Fields(&[
                ("replicas", Free),
                ("minReadySeconds", Free),
                ("selector", LabelSelector),
                ("template", TEMPLATE),
            ]),
        )],
    ),
    (
        "apps",
        "StatefulSet",
        &[(
            "spec",
            Fields(&[
                ("replicas", Free),
                ("selector", LabelSelector),
                ("template", TEMPLATE),
                ("volumeClaimTemplates", Each(&CLAIM_TEMPLATE)),
                ("serviceName", Free),
                ("podManagementPolicy", Free),
                ("updateStrategy", Free),
                ("revisionHistoryLimit", Free),
                ("minReadySeconds", Free),
                ("persistentVolumeClaimRetentionPolicy", Free),
                ("ordinals", Free),
            ]),
        )],
    ),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        &[(
            "spec",
            Fields(&[
                ("scaleTargetRef", Target),
                ("minReplicas", Free),
                ("maxReplicas", Free),
                ("metrics", Free),
                ("behavior", Free),
                ("targetCPUUtilizationPercentage", Free),
            ]),
        )],
    ),
    (
        "batch",
        "CronJob",
        &[(
            "spec",
            Fields(&[
                ("schedule", Free),
                ("timeZone", Free),
                ("startingDeadlineSeconds", Free),
                ("concurrencyPolicy", Free),
                ("suspend", Free),
                ("jobTemplate", Fields(&[("metadata", Metadata(&["labels", "annotations"])), ("spec", JOB)])),
                ("successfulJobsHistoryLimit", Free),
                ("failedJobsHistoryLimit", Free),
            ]),
        )],
    ),
    ("batch", "Job", &[("spec", JOB)]),
    (
        "networking.k8s.io",
        "Ingress",
        &[(
            "spec",
            Fields(&[
                ("ingressClassName", Free),
                ("defaultBackend", BACKEND),
                ("tls", Each(&Fields(&[("hosts", Free), ("secretName", Name("Secret"))]))),
                ("rules", Each(&INGRESS_RULE)),
            ]),
        )],
    ),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        &[(
            "spec",
            Fields(&[("podSelector", LabelSelector), ("ingress", Free), ("egress", Free), ("policyTypes", Free)]),
        )],
    ),
    (
        "policy",
        "PodDisruptionBudget",
        &[(
            "spec",
            Fields(&[
                ("selector", LabelSelector),
                ("minAvailable", Free),
                ("maxUnavailable", Free),
                ("unhealthyPodEvictionPolicy", Free),
            ]),
        )],
    ),
];

const SERVICE: Shape = Fields(&[
    ("selector", Labels),
    ("type", GuardedAmong(&["ClusterIP", "NodePort", "LoadBalancer"], "lends a name of the cluster to any host")),
    ("externalName", Guarded("lends a name of the cluster to any host")),
    ("externalIPs", Guarded("takes traffic of any address")),
    ("loadBalancerIP", Guarded("takes an address of the load balancer")),
    ("ports", Free),
    ("clusterIP", Free),
    ("clusterIPs", Free),
    ("sessionAffinity", Free),
    ("sessionAffinityConfig", Free),
    ("loadBalancerSourceRanges", Free),
    ("loadBalancerClass", Free),
    ("allocateLoadBalancerNodePorts", Free),
    ("externalTrafficPolicy", Free),
    ("internalTrafficPolicy", Free),
    ("trafficDistribution", Free),
    ("healthCheckNodePort", Free),
    ("publishNotReadyAddresses", Free),
    ("ipFamilies", Free),
    ("ipFamilyPolicy", Free),
]);

/// The Job's own selector is right; another one adopts Pods of others.
const JOB: Shape = Fields(&[
    ("selector", Guarded("takes Pods of others for its own")),
    ("manualSelector", Guarded("takes Pods of others for its own")),
    ("managedBy", Guarded("hands the Job to another controller")),
    ("template", TEMPLATE),
    ("parallelism", Free),
    ("completions", Free),
    ("completionMode", Free),
    ("activeDeadlineSeconds", Free),
    ("podFailurePolicy", Free),
    ("podReplacementPolicy", Free),
    ("successPolicy", Free),
    ("backoffLimit", Free),
    ("backoffLimitPerIndex", Free),
    ("maxFailedIndexes", Free),
    ("ttlSecondsAfterFinished", Free),
    ("suspend", Free),
]);

/// `apiVersion` and `kind` are said by some, and taken as said by the API server.
static CLAIM_TEMPLATE: Shape = Fields(&[
    ("apiVersion", Free),
    ("kind", Free),
    ("metadata", Metadata(&["name", "labels", "annotations"])),
    ("spec", Fields(CLAIM_SPEC)),
]);

static INGRESS_RULE: Shape = Fields(&[
    ("host", Free),
    ("http", Fields(&[("paths", Each(&Fields(&[("path", Free), ("pathType", Free), ("backend", BACKEND)])))])),
]);

const BACKEND: Shape = Fields(&[
    ("service", Fields(&[("name", Name("Service")), ("port", Free)])),
    ("resource", Guarded("leads to what is no Service")),
]);
