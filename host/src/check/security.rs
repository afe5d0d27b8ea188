//! Security contexts, of a Pod and of a container: the Pod Security Standard
//! `baseline` of Kubernetes 1.37.

use super::shape::Shape::{self, Baseline, BaselineAmong, Each, Fields, Free, Guarded};

pub(super) const POD_SECURITY: Shape = Fields(&[
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

pub(super) const SECURITY: Shape = Fields(&[
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

const DEFAULTS: &str = "must be the runtime's default or one of the node's";

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
