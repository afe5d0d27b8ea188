//! The children that every Database has, and what its status says of them.

use crate::plan::{Plan, claim_name};
use crate::spec::{OnDelete, Service, ServiceType, Spec, Storage};
use crate::version::Data;
use crate::{BALANCER, DATA_VERSION, NODE_PORT, SERVER_BEFORE, Server, pod};
use keelson_sdk::prelude::*;

/// Claim, Pod and Service; `env` is the server's, or null. The claim first, so
/// that what becomes of the data is recorded before a server touches it.
pub fn render<P: Plugin<Spec = Spec>>(db: &Request<P>, server: &Server, plan: &Plan, env: &Value) -> Rendering {
    let claim = db.spec.storage.as_ref().zip(plan.data).map(|(storage, data)| claim(db, server, storage, data, plan));
    let made = if claim.is_some() { "Pod, Service and PersistentVolumeClaim" } else { "Pod and Service" };
    let pods = [pod::pod(db, server, plan, env), service(db, server).into()];
    Rendering::of(claim.into_iter().chain(pods))
        .status("message", format!("{made} created by Database {}", db.name()))
        .status("endpoint", db.service_address(server.port))
        .status("version", pod::running(db, server).unwrap_or(plan.version))
        .status("dataVersion", plan.data.map(|data| data.to_string()))
        .status("nodePort", node_port(db))
        .status("externalEndpoint", external_endpoint(db, server.port))
}

/// A Secret to generate, kept as long as the data that it opens.
pub fn credentials<P: Plugin<Spec = Spec>>(db: &Request<P>, server: &Server, plan: &Plan) -> Secret {
    let secret = Secret::generated(db.name_with("credentials"));
    match plan.data.filter(|_| is_kept(db)) {
        Some(data) => secret.retained(&data.to_string(), server.name),
        None => secret,
    }
}

/// An entry of a container's `env` from a Secret that the user has brought.
#[must_use]
pub fn secret_env(variable: &str, secret: &str, key: &str) -> Value {
    json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
}

fn is_kept<P: Plugin<Spec = Spec>>(db: &Request<P>) -> bool {
    db.spec.storage.as_ref().is_some_and(|storage| storage.on_delete == OnDelete::Retain)
}

fn claim<P: Plugin<Spec = Spec>>(
    db: &Request<P>,
    server: &Server,
    storage: &Storage,
    data: Data,
    plan: &Plan,
) -> Child {
    let Storage { size, storage_class_name, on_delete: _ } = storage;
    let data = data.to_string();
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name(db), "labels": {"app": "db"}, "annotations": {DATA_VERSION: data, SERVER_BEFORE: plan.before}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage_class_name,
        },
    });
    // The line is the plugin's name: it knows the way from each version to a later one.
    if is_kept(db) { Child::from(claim).retained(&data, server.name) } else { claim.into() }
}

fn service<P: Plugin<Spec = Spec>>(db: &Request<P>, server: &Server) -> Value {
    let Service { kind, node_port } = db.spec.service();
    let port = json!({"port": server.port, "targetPort": server.port, "nodePort": node_port});
    // Jobs of the same Database carry the host's label too; they are no servers.
    let mut selector = db.selector();
    selector.insert("app".to_owned(), json!("db"));
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": db.name(), "labels": {"app": "db"}},
        "spec": {"type": kind.name(), "selector": selector, "ports": [port]},
    })
}

fn node_port<P: Plugin<Spec = Spec>>(db: &Request<P>) -> Option<u16> {
    let service = db.child(SERVICE, db.name()).filter(|_| db.spec.service().kind != ServiceType::ClusterIP)?;
    service.get(NODE_PORT)
}

/// Where a load balancer answers, once there is one.
fn external_endpoint<P: Plugin<Spec = Spec>>(db: &Request<P>, port: u16) -> Option<String> {
    let service = db.child(SERVICE, db.name()).filter(|_| db.spec.service().kind == ServiceType::LoadBalancer)?;
    let ingress: Value = service.get(BALANCER)?;
    let host = ["hostname", "ip"].iter().find_map(|field| ingress.get(field)?.as_str().filter(|it| !it.is_empty()))?;
    Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}
