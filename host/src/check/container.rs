//! What a container may hold.

use super::security::SECURITY;
use super::shape::Shape::{self, Baseline, BaselineAmong, Each, Fields, Free, Guarded, Name};

pub(super) static CONTAINER: Shape = Fields(&[
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
