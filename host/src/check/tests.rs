//! Each rule in pairs: what it lets pass, and what it refuses with path and rule.

mod manifest;
mod children;
mod pods;
mod secrets;
mod report;
mod fuzz;

use serde_json::{Map, Value, json};

use super::*;
use crate::limits::PluginLimits;
use crate::sandbox::model::{Discriminator, Explanation, KindRef, Retention, SecretKey, SecretValue, Serving};

const UID: &str = "0b8c2a3e-5f1d-4a5e-9f43-3f0d4f4e7a11";

/// A parent `shop/db` whose plugin may make every kind in these tests.
struct World {
    parent: Parent,
    grant: Grant,
    manifest: Manifest,
    selector_labels: Vec<(String, String)>,
    limits: PluginLimits,
    user_secrets: Vec<String>,
}

const KINDS: &[(&str, &str, &str, &str)] = &[
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "PodTemplate", "podtemplates"),
    ("", "v1", "ReplicationController", "replicationcontrollers"),
    ("", "v1", "Secret", "secrets"),
    ("", "v1", "Service", "services"),
    ("", "v1", "ServiceAccount", "serviceaccounts"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("batch", "v1", "Job", "jobs"),
    ("example.com", "v1", "Gadget", "gadgets"),
    ("example.com", "v1", "Widget", "widgets"),
    ("networking.k8s.io", "v1", "Ingress", "ingresses"),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
];

fn world() -> World {
    let kind = |(group, version, kind, plural): &(&str, &str, &str, &str)| KindRef {
        group: (*group).into(),
        version: (*version).into(),
        kind: (*kind).into(),
        plural: (*plural).into(),
    };
    let children: Vec<Value> = KINDS.iter().map(|kind| json!({"group": kind.0, "kind": kind.2})).collect();
    World {
        parent: Parent {
            api_version: "example.com/v1".into(),
            kind: "Widget".into(),
            namespace: "shop".into(),
            name: "db".into(),
            uid: UID.into(),
        },
        grant: serde_json::from_value(json!({
            "serves": [{"group": "example.com", "kind": "Widget", "discriminator": {"path": "/spec/type", "value": "one"}}],
            "children": children,
            "namespaces": ["shop"],
        }))
        .unwrap(),
        manifest: Manifest {
            name: "one".into(),
            version: "1.0.0".into(),
            serves: vec![Serving {
                group: "example.com".into(),
                versions: vec!["v1".into()],
                kind: "Widget".into(),
                plural: "widgets".into(),
                discriminator: Some(Discriminator { path: "/spec/type".into(), value: "one".into() }),
            }],
            children: KINDS.iter().map(|entry| ChildKind { kind: kind(entry), observe: Vec::new() }).collect(),
            related: Vec::new(),
            schema: None,
            uses_time: false,
        },
        selector_labels: vec![("keelson.dev/instance".into(), UID.into())],
        limits: PluginLimits::default(),
        user_secrets: vec!["mine".into()],
    }
}

impl World {
    fn allowing(mut self, kind: &str, paths: &[&str]) -> Self {
        let group = KINDS.iter().find(|entry| entry.2 == kind).expect("a kind of these tests").0.to_owned();
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        self.grant.allowed_fields.push(AllowedFields { group, kind: kind.to_owned(), paths });
        self
    }

    fn context(&self) -> Context<'_> {
        Context {
            parent: &self.parent,
            plugin: "one",
            grant: &self.grant,
            manifest: &self.manifest,
            selector_labels: &self.selector_labels,
            limits: &self.limits,
            user_secrets: &self.user_secrets,
            related: &[],
        }
    }

    fn hold(&self, rendering: Rendering) -> Result<CheckedParts, Violation> {
        every_rule(rendering, &self.context()).map(Checked::into_parts)
    }

    fn children(&self, children: &[Value]) -> Result<Vec<CheckedChild>, Violation> {
        self.hold(rendering_of(children)).map(|parts| match parts.children {
            CheckedChildren::Exactly(children) => children,
            CheckedChildren::Keep => panic!("nothing was kept"),
        })
    }

    /// Holds one child, beside a ConfigMap, a claim, a Service and a Secret of the rendering's own.
    fn child(&self, child: Value) -> Result<CheckedChild, Violation> {
        let mut rendering = rendering_of(&[
            child,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db-own"}}),
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "db-own"}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db-own"},
                "spec": {"selector": {"keelson.dev/instance": UID}}}),
        ]);
        rendering.secrets.push(secret("db-own", vec![random(16)]));
        self.hold(rendering).map(|parts| match parts.children {
            CheckedChildren::Exactly(mut children) => children.swap_remove(0),
            CheckedChildren::Keep => panic!("nothing was kept"),
        })
    }
}

fn rendering_of(children: &[Value]) -> Rendering {
    let child = |value: &Value| Child {
        object: value.as_object().expect("a child is an object").clone(),
        retain: None,
        strategy: None,
    };
    Rendering {
        children: Children::Exactly(children.iter().map(child).collect()),
        secrets: Vec::new(),
        status: Map::new(),
        conditions: Vec::new(),
        not_ready: None,
        look_again_after: None,
    }
}

fn secret(name: &str, keys: Vec<SecretKey>) -> GeneratedSecret {
    GeneratedSecret { name: name.into(), keys, secret_type: None, retain: None }
}

fn random(length: u32) -> SecretKey {
    SecretKey { name: "password".into(), value: SecretValue::Random { length, alphabet: None } }
}

/// Refused by this rule at this path, with a sentence that names both and the plugin.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Violation>, rule: Rule, path: &str, row: &str) -> Violation {
    let violation = result.expect_err(row);
    assert_eq!((violation.rule, violation.path.as_str()), (rule, path), "{row}: {violation}");
    let sentence = violation.to_string();
    assert!(
        sentence.contains("plugin one") && sentence.contains(&field(path)) && sentence.contains(rule.name()),
        "{sentence}"
    );
    violation
}

/// `value` at a pointer of `object`, whose lists get one item.
fn with(object: &Value, pointer: &str, value: &Value) -> Value {
    fn put(at: &mut Value, keys: &[&str], value: &Value) {
        let Some((key, rest)) = keys.split_first() else {
            *at = value.clone();
            return;
        };
        match key.parse::<usize>() {
            Ok(index) => {
                if !at.is_array() {
                    *at = json!([]);
                }
                let list = at.as_array_mut().unwrap();
                while list.len() <= index {
                    list.push(json!({}));
                }
                put(&mut list[index], rest, value);
            }
            Err(_) => put(&mut at[key.replace("~1", "/").as_str()], rest, value),
        }
    }
    let mut object = object.clone();
    put(&mut object, &pointer.split('/').skip(1).collect::<Vec<_>>(), value);
    object
}
