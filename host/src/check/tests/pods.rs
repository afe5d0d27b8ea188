use super::*;
use crate::check::pod_template::pod_template_metadata;

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db"},
        "spec": {"containers": [{"name": "a", "image": "b", "env": [{"name": "X", "value": "y"}]}]}})
}

/// Refused, and no grant can help.
const BASELINE: &[(&str, &str)] = &[
    ("/spec/hostNetwork", "true"),
    ("/spec/hostPID", "true"),
    ("/spec/hostIPC", "true"),
    ("/spec/hostNetwork", "\"true\""),
    ("/spec/ephemeralContainers", "[{}]"),
    ("/spec/volumes/0/hostPath", "{}"),
    ("/spec/securityContext/sysctls/0/name", "\"kernel.msgmax\""),
    ("/spec/securityContext/seccompProfile/type", "\"Unconfined\""),
    ("/spec/securityContext/appArmorProfile/type", "\"Unconfined\""),
    ("/spec/securityContext/seLinuxOptions/type", "\"spc_t\""),
    ("/spec/securityContext/seLinuxOptions/user", "\"system_u\""),
    ("/spec/securityContext/windowsOptions/hostProcess", "true"),
    ("/spec/containers/0/securityContext/privileged", "true"),
    ("/spec/containers/0/securityContext/privileged", "1"),
    ("/spec/initContainers/0/securityContext/privileged", "true"),
    ("/spec/containers/0/securityContext/capabilities/add/0", "\"NET_RAW\""),
    ("/spec/containers/0/securityContext/capabilities/add/0", "\"ALL\""),
    ("/spec/containers/0/securityContext/procMount", "\"Unmasked\""),
    ("/spec/containers/0/securityContext/windowsOptions/hostProcess", "true"),
    ("/spec/containers/0/livenessProbe/httpGet/host", "\"169.254.169.254\""),
    ("/spec/containers/0/lifecycle/preStop/tcpSocket/host", "\"10.0.0.1\""),
    ("/spec/containers/0/volumeMounts/0/mountPropagation", "\"Bidirectional\""),
    ("/metadata/annotations/container.apparmor.security.beta.kubernetes.io~1a", "\"unconfined\""),
];

/// Refused, but where the grant names the path.
const GUARDED: &[(&str, &str, Rule)] = &[
    ("/spec/serviceAccountName", "\"admin\"", Rule::Field),
    ("/spec/serviceAccount", "\"admin\"", Rule::Field),
    ("/spec/automountServiceAccountToken", "true", Rule::Field),
    ("/spec/nodeName", "\"n\"", Rule::Field),
    ("/spec/schedulerName", "\"s\"", Rule::Field),
    ("/spec/priorityClassName", "\"system-node-critical\"", Rule::Field),
    ("/spec/runtimeClassName", "\"r\"", Rule::Field),
    ("/spec/resourceClaims", "[{}]", Rule::Field),
    ("/spec/fieldOfTomorrow", "false", Rule::Field),
    ("/spec/containers/0/fieldOfTomorrow", "{}", Rule::Field),
    ("/spec/containers/0/ports/0/hostPort", "80", Rule::Field),
    ("/spec/initContainers/0/ports/0/hostPort", "80", Rule::Field),
    ("/spec/containers/0/ports/0/hostIP", "\"::\"", Rule::Field),
    ("/spec/securityContext/windowsOptions/gmsaCredentialSpecName", "\"x\"", Rule::Field),
    ("/spec/volumes/0/csi", "{\"driver\": \"secrets-store.csi.k8s.io\"}", Rule::Field),
    ("/spec/volumes/0/nfs", "{}", Rule::Field),
    ("/spec/volumes/0/gitRepo", "{}", Rule::Field),
    ("/spec/volumes/0/projected/sources/0/serviceAccountToken", "{\"path\": \"t\"}", Rule::Field),
    ("/spec/volumes/0/projected/sources/0/clusterTrustBundle", "{}", Rule::Field),
    ("/spec/volumes/0/projected/sources/0/podCertificate", "{}", Rule::Field),
    ("/spec/volumes/0/ephemeral/volumeClaimTemplate/spec/volumeName", "\"v\"", Rule::Field),
    ("/spec/volumes/0/secret/secretName", "\"foreign\"", Rule::Reference),
    ("/spec/volumes/0/configMap/name", "\"foreign\"", Rule::Reference),
    ("/spec/volumes/0/persistentVolumeClaim/claimName", "\"foreign\"", Rule::Reference),
    ("/spec/volumes/0/projected/sources/0/secret/name", "\"foreign\"", Rule::Reference),
    ("/spec/volumes/0/projected/sources/1/configMap/name", "\"foreign\"", Rule::Reference),
    ("/spec/imagePullSecrets/0/name", "\"foreign\"", Rule::Reference),
    ("/spec/containers/0/env/1/valueFrom/secretKeyRef/name", "\"foreign\"", Rule::Reference),
    ("/spec/containers/0/env/1/valueFrom/configMapKeyRef/name", "\"foreign\"", Rule::Reference),
    ("/spec/initContainers/0/envFrom/0/secretRef/name", "\"foreign\"", Rule::Reference),
    ("/spec/containers/0/envFrom/0/configMapRef/name", "\"\"", Rule::Reference),
    (
        "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/namespaceSelector",
        "{}",
        Rule::Field,
    ),
];

const FREE: &[(&str, &str)] = &[
    ("/spec/hostNetwork", "false"),
    ("/spec/serviceAccountName", "\"\""),
    ("/spec/automountServiceAccountToken", "false"),
    ("/spec/tolerations", "[{\"operator\": \"Exists\"}]"),
    (
        "/spec/securityContext",
        "{\"runAsNonRoot\": true, \"fsGroup\": 999, \"seccompProfile\": {\"type\": \"RuntimeDefault\"}}",
    ),
    ("/spec/securityContext/sysctls/0/name", "\"net.ipv4.tcp_rmem\""),
    ("/spec/containers/0/securityContext/capabilities", "{\"add\": [\"CHOWN\"], \"drop\": [\"ALL\"]}"),
    ("/spec/containers/0/ports/0/hostPort", "0"),
    ("/spec/containers/0/readinessProbe/httpGet", "{\"path\": \"/\", \"port\": 1, \"host\": \"\"}"),
    ("/spec/containers/0/env/1/valueFrom/secretKeyRef", "{\"name\": \"db-own\", \"key\": \"password\"}"),
    ("/spec/containers/0/env/1/valueFrom/fieldRef/fieldPath", "\"metadata.name\""),
    ("/spec/volumes/0/secret/secretName", "\"db-own\""),
    ("/spec/volumes/0/configMap/name", "\"db-own\""),
    ("/spec/volumes/0/persistentVolumeClaim/claimName", "\"db-own\""),
    ("/spec/volumes/0/emptyDir", "{}"),
    ("/metadata/annotations/container.apparmor.security.beta.kubernetes.io~1a", "\"runtime/default\""),
];

/// Kinds with a Pod template, and where it is.
const TEMPLATES: &[(&str, &str, &str)] = &[
    ("v1", "PodTemplate", "/template"),
    ("v1", "ReplicationController", "/spec/template"),
    ("apps/v1", "DaemonSet", "/spec/template"),
    ("apps/v1", "Deployment", "/spec/template"),
    ("apps/v1", "ReplicaSet", "/spec/template"),
    ("apps/v1", "StatefulSet", "/spec/template"),
    ("batch/v1", "CronJob", "/spec/jobTemplate/spec/template"),
    ("batch/v1", "Job", "/spec/template"),
];

/// The child of `kind` around the Pod's spec and annotations, and where its Pod is.
fn around(pod: &Value, api_version: &str, kind: &str, at: &str) -> Value {
    let mut child = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "db"}});
    if api_version == "apps/v1" {
        child["spec"]["selector"]["matchLabels"]["keelson.dev/instance"] = json!(UID);
    }
    if kind == "ReplicationController" {
        child["spec"]["selector"]["keelson.dev/instance"] = json!(UID);
    }
    let mut template = json!({"spec": pod["spec"]});
    if let Some(annotations) = pod["metadata"].get("annotations") {
        template["metadata"]["annotations"] = annotations.clone();
    }
    with(&child, at, &template)
}

fn everywhere(pod: &Value) -> Vec<(Value, &'static str, &'static str)> {
    let templates = TEMPLATES.iter().map(|(version, kind, at)| (around(pod, version, kind, at), *kind, *at));
    std::iter::once((pod.clone(), "Pod", "")).chain(templates).collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

#[test]
fn harmless_pods_pass_in_every_kind() {
    for (path, value) in FREE {
        for (child, kind, _) in everywhere(&with(&pod(), path, &parsed(value))) {
            world().child(child).unwrap_or_else(|violation| panic!("{kind} {path} {value}: {violation}"));
        }
    }
}

#[test]
fn the_baseline_holds_in_every_kind_and_no_grant_lifts_it() {
    for (path, value) in BASELINE {
        for (child, kind, at) in everywhere(&with(&pod(), path, &parsed(value))) {
            let path = format!("{at}{path}");
            let world = world().allowing(kind, &[&path]);
            refused(world.child(child), Rule::PodSecurity, &path, &format!("{kind} {value}"));
        }
    }
}

#[test]
fn what_is_others_needs_the_grants_word_in_every_kind() {
    for (path, value, rule) in GUARDED {
        for (child, kind, at) in everywhere(&with(&pod(), path, &parsed(value))) {
            let path = format!("{at}{path}");
            refused(world().child(child.clone()), *rule, &path, &format!("{kind} {value}"));
            let stars: String = path
                .split('/')
                .skip(1)
                .map(|key| format!("/{}", if key.parse::<usize>().is_ok() { "*" } else { key }))
                .collect();
            let allowing = world().allowing(kind, &[&stars]);
            allowing.child(child).unwrap_or_else(|violation| panic!("{kind} {path}: {violation}"));
        }
    }
}

#[test]
fn the_standards_own_examples_come_out_the_same() {
    let examples = parsed(include_str!("baseline-1.37.json"));
    let made = |example: &Value| {
        let pod = with(&pod(), "/spec", &example["spec"]);
        match example.get("annotations") {
            Some(annotations) => with(&pod, "/metadata/annotations", annotations),
            None => pod,
        }
    };
    for (name, example) in examples["pass"].as_object().unwrap() {
        // Those of newer user namespaces: refused here, since older Kubernetes refuse them.
        let expected = world().child(made(example));
        if let Err(violation) = expected {
            assert_eq!(name, "procmount1", "{violation}");
        }
    }
    for (name, example) in examples["fail"].as_object().unwrap() {
        let violation = world().child(made(example)).expect_err(name);
        assert!(matches!(violation.rule, Rule::PodSecurity | Rule::Field), "{name}: {violation}");
    }
}

#[test]
fn templates_have_labels_and_annotations_only() {
    let set = around(&pod(), "apps/v1", "StatefulSet", "/spec/template");
    for (path, value, expected) in [
        ("/spec/template/metadata/labels/app.kubernetes.io~1name", json!("x"), None),
        ("/spec/template/metadata/labels/keelson.dev~1instance", json!(UID), None),
        ("/spec/volumeClaimTemplates/0/metadata/name", json!("data"), None),
        ("/spec/template/metadata/labels/keelson.dev~1instance", json!("x"), Some(Rule::ReservedName)),
        ("/spec/template/metadata/finalizers", json!(["a/b"]), Some(Rule::ServerField)),
        ("/spec/template/metadata/ownerReferences", json!([]), Some(Rule::ServerField)),
        ("/spec/volumeClaimTemplates/0/metadata/finalizers", json!(["a/b"]), Some(Rule::ServerField)),
        ("/spec/volumeClaimTemplates/0/spec/volumeName", json!("v"), Some(Rule::Field)),
        ("/spec/template/spec/containers", json!({}), Some(Rule::Shape)),
        ("/spec/template/spec/containers/0", json!("x"), Some(Rule::Shape)),
        ("/spec/template", json!([]), Some(Rule::Shape)),
    ] {
        let result = world().child(with(&set, path, &value));
        match expected {
            None => drop(result.unwrap_or_else(|violation| panic!("{path}: {violation}"))),
            Some(rule) => drop(refused(result, rule, path, path)),
        }
    }
}

#[test]
fn a_pod_without_a_service_account_gets_no_token() {
    for (child, kind, at) in everywhere(&pod()) {
        let pointer = format!("{at}/spec/automountServiceAccountToken");
        let token = |world: World, child: Value| {
            Value::Object(world.child(child).unwrap().into_object()).pointer(&pointer).cloned()
        };
        assert_eq!(token(world(), child.clone()), Some(json!(false)), "{kind}");
        assert_eq!(token(world().allowing(kind, &[&pointer]), child.clone()), None, "{kind}: the grant allows it");
        let account = format!("{at}/spec/serviceAccountName");
        let named = with(&child, &account, &json!("db"));
        assert_eq!(token(world().allowing(kind, &[&account]), named), None, "{kind}: the grant allows the account");
    }
}

#[test]
fn every_kind_with_a_template_shows_it_to_the_host() {
    for (child, kind, at) in everywhere(&pod()) {
        let checked = world().child(child).unwrap();
        let kind_of = checked.kind().clone();
        let mut object = checked.into_object();
        match pod_template_metadata(&kind_of, &mut object) {
            Some(metadata) => drop(metadata.insert("labels".into(), json!({"x": "y"}))),
            None => assert_eq!(kind, "Pod"),
        }
        let labelled = Value::Object(object).pointer(&format!("{at}/metadata/labels/x")).cloned();
        assert_eq!(labelled, (kind != "Pod").then(|| json!("y")), "{kind}");
    }
}

#[test]
fn a_secret_that_the_parent_names_is_a_pods_to_take_and_nobody_elses() {
    let env = |name: &str| json!([{"name": "P", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]);
    world().child(with(&pod(), "/spec/containers/0/env", &env("mine"))).unwrap();
    let at = "/spec/containers/0/env/0/valueFrom/secretKeyRef/name";
    let other = world().child(with(&pod(), "/spec/containers/0/env", &env("theirs")));
    refused(other, Rule::Reference, at, "a Secret that nobody named");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "db"}, "secrets": [{"name": "mine"}]});
    refused(world().child(account), Rule::Reference, "/secrets/0/name", "a service account");
    let config = json!([{"name": "P", "valueFrom": {"configMapKeyRef": {"name": "mine", "key": "k"}}}]);
    let at = "/spec/containers/0/env/0/valueFrom/configMapKeyRef/name";
    refused(world().child(with(&pod(), "/spec/containers/0/env", &config)), Rule::Reference, at, "a ConfigMap");
}
