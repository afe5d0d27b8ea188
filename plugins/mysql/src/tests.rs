use crate::MySql;
use keelson_sdk::contract::{RandomText, SecretValue};
use keelson_sdk::prelude::*;
use keelson_sdk::testing::{Crd, Fixture, assert_granted, assert_permitted};

const CRD: &str = include_str!("../../databases.zalando.org.yaml");

#[test]
fn a_database_is_a_pod_and_a_node_port_service() {
    let rendered = Fixture::of::<MySql>("mysql-db").render().unwrap();
    assert_eq!(
        rendered.child(POD, "mysql-db"),
        &json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "mysql-db", "labels": {"app": "db"}},
            "spec": {"containers": [{
                "name": "mysql",
                "image": "mysql:8.0",
                "env": [{
                    "name": "MYSQL_ROOT_PASSWORD",
                    "valueFrom": {"secretKeyRef": {"name": "mysql-db-credentials", "key": "password"}},
                }],
            }]},
        })
    );
    assert_eq!(
        rendered.child(SERVICE, "mysql-db")["spec"],
        json!({
            "type": "NodePort",
            "selector": {"keelson.dev/instance": "11111111-2222-4333-8444-555555555555"},
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
        })
    );
    Crd::read(CRD).assert_keeps(&rendered);
}

#[test]
fn the_files_beside_it_fit_the_manifest() {
    Crd::read(CRD).assert_serves::<MySql>();
    assert_granted::<MySql>(include_str!("../plugin.yaml"));
    assert_permitted::<MySql>(include_str!("../clusterrole.yaml"));
}
