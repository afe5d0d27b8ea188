use crate::MySql;
use keelson_sdk::contract::{RandomText, SecretValue};
use keelson_sdk::prelude::*;
use keelson_sdk::testing::{Crd, Fixture, Rendered, assert_granted, assert_permitted};

const CRD: &str = include_str!("../../databases.zalando.org.yaml");

fn stored(version: &str) -> Fixture<MySql> {
    Fixture::of::<MySql>("a").with("/spec/storage/size", "1Gi").with("/spec/version", version)
}

fn claimed(version: &str, data: &str) -> Fixture<MySql> {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a-data"}});
    stored(version).retained(claim, data)
}

/// The image begins where the repository's name ends.
fn seen(version: &str, data: &str, image: &str) -> Fixture<MySql> {
    claimed(version, data).child(pod(image, "True"))
}

fn pod(image: &str, ready: &str) -> Value {
    let state = if ready == "True" { json!({"running": {}}) } else { json!({"waiting": {}}) };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"name": "mysql", "image": format!("mirror.example/mysql{image}"), "state": state}],
        },
    })
}

/// The image, what is recorded, and the reason of the plugin's own condition.
fn told(rendered: &Rendered) -> (&str, &str, &str) {
    let image = rendered.child(POD, "a")["spec"]["containers"][0]["image"].as_str().unwrap();
    let data = rendered.status["dataVersion"].as_str().unwrap();
    let retention = rendered.retention(PERSISTENT_VOLUME_CLAIM, "a-data").unwrap();
    assert_eq!((retention.data_version.as_str(), retention.line.as_str()), (data, "mysql"));
    assert_eq!(rendered.secrets[0].retain.as_ref(), Some(retention), "opened by the Secret");
    Crd::read(CRD).assert_keeps(rendered);
    (image, data, rendered.contract.conditions.first().map_or("", |it| it.reason.as_str()))
}

#[test]
fn a_database_is_a_pod_and_a_node_port_service() {
    let rendered = Fixture::of::<MySql>("mysql-db").render().unwrap();
    let pod = rendered.child(POD, "mysql-db");
    assert_eq!(pod["metadata"], json!({"name": "mysql-db", "labels": {"app": "db"}}));
    assert_eq!(
        pod["spec"]["containers"],
        json!([{
            "name": "mysql",
            "image": "mysql:8.0",
            "env": [{
                "name": "MYSQL_ROOT_PASSWORD",
                "valueFrom": {"secretKeyRef": {"name": "mysql-db-credentials", "key": "password"}},
            }],
            "readinessProbe": {"tcpSocket": {"port": 3306}, "periodSeconds": 5},
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }])
    );
    assert_eq!(
        rendered.child(SERVICE, "mysql-db")["spec"],
        json!({
            "type": "NodePort",
            "selector": {"app": "db", "keelson.dev/instance": "11111111-2222-4333-8444-555555555555"},
            "ports": [{"port": 3306, "targetPort": 3306}],
        })
    );
    assert_eq!(rendered.child(SERVICE, "mysql-db")["metadata"]["labels"], json!({"app": "db"}));
    assert_eq!(rendered.children.len(), 2);
}

#[test]
fn the_password_of_root_is_left_to_the_host() {
    let rendered = Fixture::of::<MySql>("mysql-db").render().unwrap();
    let [secret] = rendered.secrets.as_slice() else { panic!("{:?}", rendered.secrets) };
    assert_eq!(secret.name, "mysql-db-credentials");
    let [key] = secret.keys.as_slice() else { panic!("{:?}", secret.keys) };
    assert_eq!(key.name, "password");
    assert_eq!(key.value, SecretValue::Random(RandomText { length: 24, alphabet: None }));
    assert!(secret.retain.is_none(), "there is no data that it opens");
}

#[test]
fn a_secret_of_the_users_own_takes_its_place() {
    let mine = stored("8.0").with("/spec/credentials/secretRef/name", "mine").secret("mine", "abc");
    let rendered = mine.render().unwrap();
    assert!(rendered.secrets.is_empty());
    let env = &rendered.child(POD, "a")["spec"]["containers"][0]["env"];
    let from = json!({"secretKeyRef": {"name": "mine", "key": "password"}});
    assert_eq!(*env, json!([{"name": "MYSQL_ROOT_PASSWORD", "valueFrom": from}]));
    assert!(!rendered.child(POD, "a").to_string().contains("abc"), "an edit rolls no Pod: it is no rotation");
}

#[test]
fn the_status_tells_the_node_port_once_the_service_has_one() {
    let rendered = Fixture::of::<MySql>("mysql-db")
        .child(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "mysql-db"},
            "spec": {"ports": [{"port": 3306, "nodePort": 31481}]},
        }))
        .render()
        .unwrap();
    assert_eq!(
        rendered.status,
        json!({
            "message": "Pod and Service created by Database mysql-db",
            "endpoint": "mysql-db.default.svc:3306",
            "nodePort": 31481,
            "version": "8.0",
        })
    );
    Crd::read(CRD).assert_keeps(&rendered);
}

#[test]
fn a_step_is_complete_when_the_new_server_is_ready() {
    assert_eq!(told(&stored("8.0").render().unwrap()), ("mysql:8.0", "8.0", ""));
    // Recorded first.
    let rendered = seen("8.4", "8.0", ":8.0").render().unwrap();
    assert_eq!(told(&rendered), ("mysql:8.0", "8.0-to-8.4", "Upgrading"));
    // The old server is ready still, the new one is not ready yet.
    for (image, ready) in [(":8.0.43", "True"), (":8.4.6", "False")] {
        let rendered = claimed("8.4", "8.0-to-8.4").child(pod(image, ready)).render().unwrap();
        assert_eq!(told(&rendered), ("mysql:8.4", "8.0-to-8.4", "Upgrading"), "{image} {ready}");
        assert_eq!(rendered.status["message"], "upgrading from 8.0 to 8.4");
    }
    for image in [":8.4", ":8.4.6-oracle", "@sha256:00"] {
        assert_eq!(told(&seen("8.4", "8.0-to-8.4", image).render().unwrap()), ("mysql:8.4", "8.4", ""), "{image}");
    }
}

#[test]
fn versions_follow_as_the_manual_has_it() {
    let innovations = ["9.0", "9.1", "9.2", "9.3", "9.4", "9.5", "9.6", "9.7"];
    let follows = |from: &str, to: &str| seen(to, from, &format!(":{from}")).render();
    for (from, to) in [("8.0", "8.4"), ("8.4", "9.0"), ("8.4", "9.7"), ("9.0", "9.6"), ("9.6", "9.7")] {
        let rendered = follows(from, to).unwrap();
        assert_eq!(told(&rendered).1, format!("{from}-to-{to}"));
    }
    for (from, to, allowed) in [
        ("8.0", "9.7", [&["8.0", "8.4"][..]].concat()),
        ("8.4", "8.0", [&["8.4"], &innovations[..]].concat()),
        ("9.3", "9.2", innovations[3..].to_vec()),
        ("9.7", "8.4", vec!["9.7"]),
    ] {
        let failure = follows(from, to).unwrap_err();
        assert_eq!(
            (failure.reason.as_str(), failure.allowed.clone()),
            ("VersionNotAllowed", allowed.iter().map(ToString::to_string).collect())
        );
    }
}

#[test]
fn the_crd_takes_the_versions_that_there_are() {
    let versions: Vec<String> = crate::MYSQL.steps.iter().map(|(version, _)| format!("'{version}'")).collect();
    assert!(CRD.contains(&format!("self.version in [{}]", versions.join(", "))), "{versions:?}");
}

#[test]
fn the_files_beside_it_fit_the_manifest() {
    Crd::read(CRD).assert_serves::<MySql>();
    assert_granted::<MySql>(include_str!("../plugin.yaml"));
    assert_permitted::<MySql>(include_str!("../clusterrole.yaml"));
}
