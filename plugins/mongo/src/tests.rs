use crate::Mongo;
use keelson_sdk::prelude::*;
use keelson_sdk::testing::{Crd, Fixture, assert_granted, assert_permitted};

const CRD: &str = include_str!("../../databases.zalando.org.yaml");

#[test]
fn a_database_is_a_pod_and_a_node_port_service() {
    let rendered = Fixture::of::<Mongo>("mongo-db").render().unwrap();
    assert_eq!(
        rendered.child(POD, "mongo-db"),
        &json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "mongo-db", "labels": {"app": "db"}},
            "spec": {"containers": [{"name": "mongo", "image": "mongo:4.0"}]},
        })
    );
    assert_eq!(
        rendered.child(SERVICE, "mongo-db")["spec"],
        json!({
            "type": "NodePort",
            "selector": {"keelson.dev/instance": "11111111-2222-4333-8444-555555555555"},
            "ports": [{"port": 27017, "targetPort": 27017}],
        })
    );
    assert_eq!(rendered.child(SERVICE, "mongo-db")["metadata"]["labels"], json!({"app": "db"}));
    assert_eq!(rendered.children.len(), 2);
    assert!(rendered.secrets.is_empty());
}

#[test]
fn the_status_tells_the_node_port_once_the_service_has_one() {
    let database = Fixture::of::<Mongo>("mongo-db");
    let mut status = json!({
        "message": "Pod and Service created by Database mongo-db",
        "endpoint": "mongo-db.default.svc:27017",
    });
    assert_eq!(database.render().unwrap().status, status);

    let seen = database.child(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mongo-db"},
        "spec": {"ports": [{"port": 27017, "nodePort": 31480}]},
    }));
    status["nodePort"] = json!(31480);
    let rendered = seen.render().unwrap();
    assert_eq!(rendered.status, status);
    Crd::read(CRD).assert_keeps(&rendered);
}

#[test]
fn a_configuration_is_refused_where_there_is_none() {
    let failure = Fixture::of::<Mongo>("mongo-db").config(json!({"image": "mongo:5"})).render().unwrap_err();
    assert_eq!(failure.reason, "InvalidConfig");
    assert!(failure.message.contains("image"), "{}", failure.message);
}

#[test]
fn the_files_beside_it_fit_the_manifest() {
    Crd::read(CRD).assert_serves::<Mongo>();
    assert_granted::<Mongo>(include_str!("../plugin.yaml"));
    assert_permitted::<Mongo>(include_str!("../clusterrole.yaml"));
}
