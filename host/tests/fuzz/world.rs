//! One object, and what its plugin may make.

use keelson::check::{Context, Grant, Parent};
use keelson::limits::PluginLimits;
use keelson::sandbox::{ChildKind, KindRef, Manifest, Request};
use serde_json::json;

pub(crate) const UID: &str = "0b8c2a3e-5f1d-4a5e-9f43-3f0d4f4e7a11";
pub(crate) const PARENT: &str = r#"{"apiVersion":"zalando.org/v1","kind":"Database","metadata":{"name":"db","namespace":"shop","uid":"0b8c2a3e-5f1d-4a5e-9f43-3f0d4f4e7a11","generation":1},"spec":{"type":"mongo"}}"#;
/// A Secret that the object itself names, as the grant lets it.
pub(crate) const USERS: &str = "mine";

pub(crate) const GRANTED: &[(&str, &str, &str, &str)] = &[
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "Service", "services"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("batch", "v1", "Job", "jobs"),
];

pub(crate) struct World {
    parent: Parent,
    grant: Grant,
    manifest: Manifest,
    selector_labels: Vec<(String, String)>,
    limits: PluginLimits,
    user_secrets: Vec<String>,
}

impl Default for World {
    fn default() -> Self {
        let kind = |(group, version, kind, plural): &(&str, &str, &str, &str)| KindRef {
            group: (*group).into(),
            version: (*version).into(),
            kind: (*kind).into(),
            plural: (*plural).into(),
        };
        let children: Vec<_> = GRANTED.iter().map(|kind| json!({"group": kind.0, "kind": kind.2})).collect();
        let grant = json!({"serves": [{"group": "zalando.org", "kind": "Database"}], "children": children,
            "namespaces": ["shop"]});
        Self {
            parent: Parent {
                api_version: "zalando.org/v1".into(),
                kind: "Database".into(),
                namespace: "shop".into(),
                name: "db".into(),
                uid: UID.into(),
            },
            grant: serde_json::from_value(grant).unwrap(),
            manifest: Manifest {
                name: "fuzz".into(),
                version: "1.0.0".into(),
                serves: Vec::new(),
                children: GRANTED.iter().map(|entry| ChildKind { kind: kind(entry), observe: Vec::new() }).collect(),
                related: Vec::new(),
                schema: None,
                uses_time: false,
            },
            selector_labels: labels(),
            limits: PluginLimits::default(),
            user_secrets: vec![USERS.into()],
        }
    }
}

impl World {
    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            parent: &self.parent,
            plugin: "fuzz",
            grant: &self.grant,
            manifest: &self.manifest,
            selector_labels: &self.selector_labels,
            limits: &self.limits,
            user_secrets: &self.user_secrets,
            related: &[],
        }
    }
}

fn labels() -> Vec<(String, String)> {
    vec![("keelson.dev/instance".into(), UID.into())]
}

pub(crate) fn request(parent: &str) -> Request {
    Request {
        parent: parent.into(),
        config: "{}".into(),
        selector_labels: labels(),
        children: Vec::new(),
        related: Vec::new(),
        secrets: Vec::new(),
        now: None,
        seed: 1,
    }
}
