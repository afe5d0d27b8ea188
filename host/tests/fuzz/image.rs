//! A guest that returns what it is given, and random renderings for it: children
//! that are nearly right, in memory that is nearly laid out as the canonical ABI
//! has it.

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::guest::{Guest, ZEROS};
use crate::world::UID;

/// The parent's text is the memory of the result, two letters a byte.
pub(crate) fn guest() -> Vec<u8> {
    let mut guest = Guest::default();
    guest.result = ZEROS;
    let nibble =
        |at: u32| format!("(i32.sub (i32.load8_u offset={at} (i32.add (local.get 0) (local.get $i))) (i32.const 97))");
    guest.render = format!(
        "(block $done (loop $l
           (br_if $done (i32.ge_u (local.get $i) (local.get 1)))
           (i32.store8 offset={ZEROS} (i32.shr_u (local.get $i) (i32.const 1))
             (i32.or (i32.shl {} (i32.const 4)) {}))
           (local.set $i (i32.add (local.get $i) (i32.const 2)))
           (br $l)))",
        nibble(0),
        nibble(1),
    );
    guest.component()
}

pub(crate) fn encoded(image: &[u8]) -> String {
    image.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|nibble| char::from(b'a' + nibble)).collect()
}

/// Memory from `ZEROS` on. The result stands first, what it points at behind it.
struct Image {
    bytes: Vec<u8>,
}

const RESULT_WORDS: usize = 18;

impl Image {
    fn text(&mut self, text: &[u8]) -> [u32; 2] {
        let at = self.end();
        self.bytes.extend_from_slice(text);
        [at, u32::try_from(text.len()).unwrap()]
    }

    fn list(&mut self, items: &[Vec<u32>]) -> [u32; 2] {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.end();
        self.bytes.extend(items.iter().flatten().flat_map(|word| word.to_le_bytes()));
        [at, u32::try_from(items.len()).unwrap()]
    }

    fn end(&self) -> u32 {
        ZEROS + u32::try_from(self.bytes.len()).unwrap()
    }
}

pub(crate) fn rendering(chance: &mut Chance) -> Vec<u8> {
    let mut image = Image { bytes: vec![0; RESULT_WORDS * 4] };
    let children: Vec<Vec<u32>> = (0..1 + chance.below(4))
        .map(|_| {
            let text = object(chance);
            let object = image.text(&text);
            let retain = retention(chance, &mut image);
            let strategy = option(chance, &mut image, &["InPlace", "Recreate", "OnDelete", "Never"]);
            [&object[..], &retain, &strategy].concat()
        })
        .collect();
    let children = image.list(&children);
    let secrets: Vec<Vec<u32>> =
        (0..chance.below(if chance.is_tame() { 2 } else { 3 })).map(|_| secret(chance, &mut image)).collect();
    let secrets = image.list(&secrets);
    let status = status(chance, &mut image);
    let conditions: Vec<Vec<u32>> = (0..chance.below(2)).map(|_| condition(chance, &mut image)).collect();
    let conditions = image.list(&conditions);
    let ready = match chance.below(4) {
        0 => {
            let [reason, message] = ["Waiting", "for something"].map(|text| image.text(text.as_bytes()));
            [&[1][..], &reason, &message].concat()
        }
        _ => vec![0; 5],
    };
    let kind = if !chance.is_tame() && chance.one_in(8) { chance.below(4) as u32 } else { 1 };
    let again = [u32::from(chance.one_in(4)), chance.any() as u32];
    let result = [&[0, kind][..], &children, &secrets, &status, &conditions, &ready, &again].concat();
    for (at, word) in result.iter().enumerate() {
        image.bytes[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    // What points, points elsewhere; what is text, is another.
    if !chance.is_tame() && chance.one_in(3) {
        for _ in 0..1 + chance.below(4) {
            let at = if chance.one_in(2) { chance.below(RESULT_WORDS * 4) } else { chance.below(image.bytes.len()) };
            image.bytes[at] =
                if chance.one_in(2) { chance.any() as u8 } else { image.bytes[at] ^ (1 << chance.below(8)) };
        }
    }
    image.bytes
}

fn option(chance: &mut Chance, image: &mut Image, texts: &[&str]) -> [u32; 3] {
    if chance.one_in(3) {
        let [at, length] = image.text(chance.of(texts).as_bytes());
        return [1, at, length];
    }
    [0; 3]
}

fn retention(chance: &mut Chance, image: &mut Image) -> Vec<u32> {
    if chance.one_in(4) {
        let version = image.text(chance.of(&["4.0", "", "a b", "x".repeat(300).as_str()]).as_bytes());
        let line = image.text(chance.of(&["mongo-4", "-", "ü"]).as_bytes());
        return [&[1][..], &version, &line].concat();
    }
    vec![0; 5]
}

fn secret(chance: &mut Chance, image: &mut Image) -> Vec<u32> {
    let name = image.text(chance.of(&["db-own", "db-own", "db-a", "other", "DB", ""]).as_bytes());
    let keys: Vec<Vec<u32>> = (0..1 + if chance.is_tame() { 0 } else { chance.below(3) })
        .map(|_| {
            let name = image.text(chance.of(&["password", "user", "a/b", "..", ""]).as_bytes());
            let value = match chance.below(3) {
                0 => vec![0, chance.of(&[24, 8, 256, 0, 257, u32::MAX]).to_owned(), 0, 0, 0],
                case => {
                    let text = image
                        .text(chance.of(&["root", "{password}", "{{x}}", "{", "{user|url}@{password}"]).as_bytes());
                    vec![case as u32, text[0], text[1], 0, 0]
                }
            };
            [&name[..], &value].concat()
        })
        .collect();
    let keys = image.list(&keys);
    let kind = option(chance, image, &["Opaque", "kubernetes.io/service-account-token", "kubernetes.io/tls"]);
    let retain = retention(chance, image);
    [&name[..], &keys, &kind, &retain].concat()
}

fn status(chance: &mut Chance, image: &mut Image) -> Vec<u32> {
    if chance.one_in(2) {
        return vec![0; 3];
    }
    let text = match chance.of(&[7, 0, 1, 2, 3, 4, 5]) {
        0 => json!({"conditions": []}).to_string(),
        1 => json!({"observedGeneration": 7, "children": []}).to_string(),
        2 => "[1]".to_owned(),
        3 => json!({"a": any(chance, 5)}).to_string(),
        _ => json!({"message": "fine", "endpoint": "db.shop.svc:1"}).to_string(),
    };
    let [at, length] = image.text(text.as_bytes());
    vec![1, at, length]
}

fn condition(chance: &mut Chance, image: &mut Image) -> Vec<u32> {
    let kind = image.text(chance.of(&["Backup", "Ready", "Paused", "example.com/x", "a b"]).as_bytes());
    let reason = image.text(chance.of(&["Fine", "", "a b"]).as_bytes());
    let message = image.text(b"m");
    [&kind[..], &[chance.below(3) as u32], &reason, &message].concat()
}

/// A child's text: one that is fine, with a few fields that may not be.
fn object(chance: &mut Chance) -> Vec<u8> {
    let mut object = child(chance);
    for _ in 0..if chance.is_tame() { chance.below(2) } else { chance.below(4) } {
        let (pointer, value) = spoil(chance);
        put(&mut object, &pointer, value);
    }
    let mut text = object.to_string().into_bytes();
    if !chance.is_tame() && chance.one_in(6) {
        for _ in 0..1 + chance.below(3) {
            let at = chance.below(text.len());
            text[at] = *chance.any_of(b"\"{}[],:0e\\\xff ");
        }
    }
    text
}

fn child(chance: &mut Chance) -> Value {
    let name = *chance.any_of(&["db", "db-own", "db-a", "db-b", "db-c"]);
    let pod = json!({"containers": [{"name": "c", "image": "mongo:4.0", "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "b"}], "securityContext": {"capabilities": {"drop": ["ALL"]}}}],
        "volumes": [{"name": "v", "emptyDir": {}}]});
    let labels = json!({"app": "db", "keelson.dev/instance": UID});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let selector = json!({"matchLabels": labels});
    let (api_version, kind, spec) = match chance.below(8) {
        0 => return json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}),
        1 => (
            "v1",
            "PersistentVolumeClaim",
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
        ),
        2 => ("v1", "Service", json!({"selector": {"keelson.dev/instance": UID}, "ports": [{"port": 80}]})),
        3 => ("apps/v1", "Deployment", json!({"replicas": 1, "selector": selector, "template": template})),
        4 => (
            "apps/v1",
            "StatefulSet",
            json!({"serviceName": name, "selector": selector, "template": template, "volumeClaimTemplates": []}),
        ),
        5 => ("batch/v1", "CronJob", json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}})),
        6 => ("batch/v1", "Job", json!({"template": template})),
        _ => ("v1", "Pod", pod),
    };
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Where Pods stand in the kinds above.
const PODS: [&str; 3] = ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec"];

const HOST: [&str; 3] = ["/hostNetwork", "/hostPID", "/hostIPC"];
const PLACE: [&str; 3] = ["/serviceAccountName", "/serviceAccount", "/nodeName"];

fn spoil(chance: &mut Chance) -> (String, Value) {
    let pod = *chance.any_of(&PODS);
    let below = |path: &str, value: Value| (format!("{pod}{path}"), value);
    let named =
        |name: &str, field: &str| json!([{"name": "S", "valueFrom": {field: {"name": name, "key": "password"}}}]);
    let (host, place) = (*chance.any_of(&HOST), *chance.any_of(&PLACE));
    let name = *chance.any_of(&["db-own", "db-a", "mine", "other", ""]);
    match chance.below(36) {
        0 => (
            "/kind".into(),
            json!(*chance.any_of(&["ClusterRole", "Secret", "Namespace", "Pod", "Service", "pod", ""])),
        ),
        1 => {
            ("/apiVersion".into(), json!(*chance.any_of(&["v2", "rbac.authorization.k8s.io/v1", "apps/v1", "/v1", ""])))
        }
        2 => (
            "/metadata/name".into(),
            json!(*chance.any_of(&["other", "db-", "dbx", "db-UPPER", "db-0123456789abcdef"])),
        ),
        3 => ("/metadata/namespace".into(), json!(*chance.any_of(&["shop", "kube-system", ""]))),
        4 => ("/metadata/generateName".into(), json!("db-")),
        5 => ("/metadata/ownerReferences".into(), json!([{"uid": UID, "name": "db", "kind": "Database"}])),
        6 => ("/metadata/finalizers".into(), json!(["a/b"])),
        7 => ("/metadata/labels".into(), json!({"keelson.dev/instance": *chance.any_of(&["other", UID]), "a": "b"})),
        8 => ("/metadata/annotations".into(), json!({*chance.any_of(&["keelson.dev/hash", "a/b", "a b"]): "x"})),
        9 => ("/metadata/uid".into(), json!("u")),
        10 => ("/status".into(), json!({"phase": "Running"})),
        11 => below(host, json!(chance.one_in(2))),
        12 => below(place, json!("admin")),
        13 => below("/containers/0/securityContext/privileged", json!(true)),
        14 => below("/containers/0/securityContext/capabilities/add", json!([*chance.any_of(&["SYS_ADMIN", "CHOWN"])])),
        15 => below("/containers/0/ports/0/hostPort", json!(*chance.any_of(&[0, 80]))),
        16 => below("/volumes", json!([{"name": "v", "hostPath": {"path": "/"}}])),
        17 => below("/volumes", json!([{"name": "v", "secret": {"secretName": name}}])),
        18 => below("/volumes", json!([{"name": "v", "configMap": {"name": name}}])),
        19 => below("/volumes", json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}])),
        20 => below(
            "/volumes",
            json!([{"name": "v", "projected": {"sources": [{"secret": {"name": name}}, {"serviceAccountToken": {"path": "t"}}]}}]),
        ),
        21 => below("/volumes", json!([{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": name}}}])),
        22 => below("/containers/0/env", named(name, "secretKeyRef")),
        23 => below("/containers/0/env", named(name, "configMapKeyRef")),
        24 => below("/containers/0/envFrom", json!([{"secretRef": {"name": name}}])),
        25 => below("/initContainers", json!([{"name": "i", "image": "x", "securityContext": {"privileged": true}}])),
        26 => below("/ephemeralContainers", json!([{"name": "e", "image": "x"}])),
        27 => below("/imagePullSecrets", json!([{"name": name}])),
        28 => below("/containers/0/securityContext/procMount", json!("Unmasked")),
        29 => below("/automountServiceAccountToken", json!(true)),
        30 => ("/spec/externalIPs".into(), json!(["1.2.3.4"])),
        31 => ("/spec/type".into(), json!(*chance.any_of(&["ExternalName", "NodePort", "LoadBalancer"]))),
        32 => ("/spec/selector".into(), json!(*chance.any_of(&["", "x"]))),
        33 => ("/spec/selector".into(), json!({"app": "db"})),
        34 => (
            format!("{pod}{}", chance.any_of(&["/containers", "/volumes", "/securityContext", "/containers/0/env"])),
            any(chance, 3),
        ),
        _ => (
            chance.any_of(&["/spec", "/metadata", "/spec/template", "/metadata/labels", "/data", "/x"]).to_string(),
            any(chance, 4),
        ),
    }
}

/// Any JSON, with keys that the rules look for.
fn any(chance: &mut Chance, depth: usize) -> Value {
    match chance.below(if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(chance.one_in(2)),
        2 => json!(chance.any() as i64),
        3 => json!(f64::from_bits(chance.any())),
        4 => json!(*chance.any_of(&["db", "mine", "other", UID, "", "\u{0}\n", "ü"])),
        5 => json!("x".repeat(chance.below(300))),
        6 => (0..chance.below(4)).map(|_| any(chance, depth - 1)).collect(),
        _ => {
            const KEYS: [&str; 14] = [
                "name",
                "spec",
                "template",
                "metadata",
                "labels",
                "containers",
                "volumes",
                "secret",
                "secretName",
                "hostPath",
                "valueFrom",
                "secretKeyRef",
                "selector",
                "keelson.dev/instance",
            ];
            (0..chance.below(4)).map(|_| ((*chance.any_of(&KEYS)).to_owned(), any(chance, depth - 1))).collect()
        }
    }
}

/// What is in the way of the pointer is replaced.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for key in pointer.split('/').skip(1) {
        at = match key.parse::<usize>() {
            Ok(index) if at.as_array().is_some_and(|items| index < items.len()) => &mut at[index],
            Ok(_) => {
                *at = json!([{}]);
                &mut at[0]
            }
            Err(_) => {
                if !at.is_object() {
                    *at = json!({});
                }
                &mut at[key]
            }
        };
    }
    *at = value;
}
