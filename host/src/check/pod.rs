//! What a Pod's spec may hold: the Pod Security Standard `baseline` of Kubernetes
//! 1.37 (what no grant can give) and, beyond it, what would borrow somebody else's
//! rights, secrets or place (what a grant can give by `allowedFields`). A field
//! that a later Kubernetes brings is refused until it is thought through here.

use super::shape::Shape::{self, Baseline, BaselineAmong, Each, Fields, Free, Guarded, Metadata, Name};

type Table = &'static [(&'static str, Shape)];

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
const DEFAULTS: &str = "must be the runtime's default or one of the node's";

static CONTAINER: Shape = Fields(&[
    ("name", Free),
    ("image", Free),
    ("command", Free),
    ("args", Free),
    ("workingDir", Free),
    ("ports", Each(&PORT)),
    ("env", Each(&ENV)),
    ("envFrom", Each(&ENV_FROM)),
    ("resources", Free),
    ("resizePolicy", Free),
    ("restartPolicy", Free),
    ("restartPolicyRules", Free),
    ("volumeMounts", Each(&MOUNT)),
    ("volumeDevices", Free),
    ("livenessProbe", PROBE),
    ("readinessProbe", PROBE),
    ("startupProbe", PROBE),
    ("lifecycle", Fields(&[("postStart", HANDLER), ("preStop", HANDLER), ("stopSignal", Free)])),
    ("terminationMessagePath", Free),
    ("terminationMessagePolicy", Free),
    ("imagePullPolicy", Free),
    ("securityContext", SECURITY),
    ("stdin", Free),
    ("stdinOnce", Free),
    ("tty", Free),
]);

static PORT: Shape = Fields(&[
    ("name", Free),
    ("containerPort", Free),
    ("protocol", Free),
    ("hostPort", Guarded("takes a port of the node")),
    ("hostIP", Guarded("takes an address of the node")),
]);

static ENV: Shape = Fields(&[
    ("name", Free),
    ("value", Free),
    (
        "valueFrom",
        Fields(&[
            ("fieldRef", Free),
            ("resourceFieldRef", Free),
            ("fileKeyRef", Free),
            ("configMapKeyRef", Fields(&[("name", Name("ConfigMap")), ("key", Free), ("optional", Free)])),
            ("secretKeyRef", Fields(&[("name", Name("Secret")), ("key", Free), ("optional", Free)])),
        ]),
    ),
]);

static ENV_FROM: Shape = Fields(&[
    ("prefix", Free),
    ("configMapRef", Fields(&[("name", Name("ConfigMap")), ("optional", Free)])),
    ("secretRef", Fields(&[("name", Name("Secret")), ("optional", Free)])),
]);

static MOUNT: Shape = Fields(&[
    ("name", Free),
    ("mountPath", Free),
    ("subPath", Free),
    ("subPathExpr", Free),
    ("readOnly", Free),
    ("recursiveReadOnly", Free),
    ("bindMountOptions", Free),
    ("mountPropagation", BaselineAmong(&["None", "HostToContainer"], "must not mount into the node")),
]);

const PROBE: Shape = Fields(&[
    ("exec", Free),
    ("grpc", Free),
    ("httpGet", HTTP_GET),
    ("tcpSocket", TCP_SOCKET),
    ("initialDelaySeconds", Free),
    ("timeoutSeconds", Free),
    ("periodSeconds", Free),
    ("successThreshold", Free),
    ("failureThreshold", Free),
    ("terminationGracePeriodSeconds", Free),
]);

const HANDLER: Shape = Fields(&[("exec", Free), ("sleep", Free), ("httpGet", HTTP_GET), ("tcpSocket", TCP_SOCKET)]);

const HTTP_GET: Shape = Fields(&[
    ("path", Free),
    ("port", Free),
    ("scheme", Free),
    ("protocol", Free),
    ("httpHeaders", Free),
    ("host", Baseline(PROBED)),
]);

const TCP_SOCKET: Shape = Fields(&[("port", Free), ("host", Baseline(PROBED))]);

const PROBED: &str = "makes the node connect to another host";

const POD_SECURITY: Shape = Fields(&[
    ("appArmorProfile", PROFILE),
    ("seccompProfile", PROFILE),
    ("seLinuxOptions", SELINUX),
    ("windowsOptions", WINDOWS),
    ("sysctls", Each(&Fields(&[("name", BaselineAmong(SYSCTLS, "is not safe")), ("value", Free)]))),
    ("fsGroup", Free),
    ("fsGroupChangePolicy", Free),
    ("runAsGroup", Free),
    ("runAsNonRoot", Free),
    ("runAsUser", Free),
    ("seLinuxChangePolicy", Free),
    ("supplementalGroups", Free),
    ("supplementalGroupsPolicy", Free),
]);

const SECURITY: Shape = Fields(&[
    ("appArmorProfile", PROFILE),
    ("seccompProfile", PROFILE),
    ("seLinuxOptions", SELINUX),
    ("windowsOptions", WINDOWS),
    ("privileged", Baseline("has all rights on the node")),
    ("procMount", BaselineAmong(&["Default"], "must keep /proc masked")),
    (
        "capabilities",
        Fields(&[("add", Each(&BaselineAmong(CAPABILITIES, "is beyond the default set"))), ("drop", Free)]),
    ),
    ("allowPrivilegeEscalation", Free),
    ("readOnlyRootFilesystem", Free),
    ("runAsGroup", Free),
    ("runAsNonRoot", Free),
    ("runAsUser", Free),
]);

const PROFILE: Shape =
    Fields(&[("type", BaselineAmong(&["RuntimeDefault", "Localhost"], DEFAULTS)), ("localhostProfile", Free)]);

const SELINUX: Shape = Fields(&[
    (
        "type",
        BaselineAmong(
            &["container_t", "container_init_t", "container_kvm_t", "container_engine_t"],
            "must be a container's",
        ),
    ),
    ("level", Free),
    ("user", Baseline("sets a user of SELinux")),
    ("role", Baseline("sets a role of SELinux")),
]);

const WINDOWS: Shape = Fields(&[
    ("hostProcess", Baseline("has all rights on the node")),
    ("gmsaCredentialSpecName", Guarded("takes the rights of a service account of Active Directory")),
    ("gmsaCredentialSpec", Guarded("takes the rights of a service account of Active Directory")),
    ("runAsUserName", Free),
]);

const CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

const SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

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

/// Sources that stay within the Pod or this rendering; all others are the grant's to give, but the node's own files.
static VOLUME: Shape = Fields(&[
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
