//! Where a volume may come from, and what a claim may ask for.

use super::shape::Shape::{self, Baseline, Each, Fields, Free, Guarded, Metadata, Name};
use super::shape::Table;

/// Sources that stay within the Pod or this rendering; all others are the grant's to give, but the node's own files.
pub(super) static VOLUME: Shape = Fields(&[
    ("name", Free),
    ("emptyDir", Free),
    ("downwardAPI", Free),
    ("image", Free),
    ("configMap", Fields(&[("name", Name("ConfigMap")), ("items", Free), ("defaultMode", Free), ("optional", Free)])),
    ("secret", Fields(&[("secretName", Name("Secret")), ("items", Free), ("defaultMode", Free), ("optional", Free)])),
    ("persistentVolumeClaim", Fields(&[("claimName", Name("PersistentVolumeClaim")), ("readOnly", Free)])),
    (
        "ephemeral",
        Fields(&[(
            "volumeClaimTemplate",
            Fields(&[("metadata", Metadata(&["labels", "annotations"])), ("spec", Fields(CLAIM_SPEC))]),
        )]),
    ),
    ("projected", Fields(&[("sources", Each(&PROJECTION)), ("defaultMode", Free)])),
    ("csi", Guarded("hands the Pod's name to a driver, which may hold secrets")),
    ("hostPath", Baseline("mounts the node's files")),
]);

static PROJECTION: Shape = Fields(&[
    ("downwardAPI", Free),
    ("configMap", Fields(&[("name", Name("ConfigMap")), ("items", Free), ("optional", Free)])),
    ("secret", Fields(&[("name", Name("Secret")), ("items", Free), ("optional", Free)])),
    ("serviceAccountToken", Guarded("hands the Pod a token")),
    ("clusterTrustBundle", Guarded("reads what is the cluster's")),
    ("podCertificate", Guarded("hands the Pod a certificate")),
]);

/// Also of a claim of its own and of those in a StatefulSet.
pub(super) const CLAIM_SPEC: Table = &[
    ("accessModes", Free),
    ("resources", Free),
    ("storageClassName", Free),
    ("volumeAttributesClassName", Free),
    ("volumeMode", Free),
    ("volumeName", Guarded(OTHERS_DATA)),
    ("selector", Guarded(OTHERS_DATA)),
    ("dataSource", Guarded(OTHERS_DATA)),
    ("dataSourceRef", Guarded(OTHERS_DATA)),
];

const OTHERS_DATA: &str = "can take a volume that holds somebody else's data";
