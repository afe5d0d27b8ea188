//! The Pod, within what PodSecurity *restricted* asks for, and what is seen of it.

use crate::plan::{Plan, claim_name};
use crate::spec::Spec;
use crate::{CONTAINERS, Server, version};
use keelson_sdk::prelude::*;
use serde::Deserialize;

/// User and group of the server in the vendors' images.
const USER: u32 = 999;
/// Beside `lost+found`, which some file systems have at their root and mysql does not take.
const SUB_PATH: &str = "data";

pub(crate) fn pod<P: Plugin<Spec = Spec>>(db: &Request<P>, server: &Server, plan: &Plan, env: &Value) -> Child {
    let Server { name, port, data, steps: _ } = server;
    let Spec { version: _, storage, credentials: _, service: _, resources, node_selector, tolerations, affinity } =
        &db.spec;
    let stored = storage.is_some();
    let mounts = stored.then(|| json!([{"name": "data", "mountPath": data, "subPath": SUB_PATH}]));
    let volumes = stored.then(|| json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim_name(db)}}]));
    Child::from(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": db.name(), "labels": {"app": "db"}},
        "spec": {
            "containers": [{
                "name": name,
                "image": format!("{name}:{}", plan.version),
                "env": env,
                "resources": resources,
                // The port opens once the server has made its data ready, an upgrade of it included.
                "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 5},
                "securityContext": no_rights(),
                "volumeMounts": mounts,
            }],
            "securityContext": as_nobody(stored),
            "nodeSelector": node_selector,
            "tolerations": tolerations,
            "affinity": affinity,
            "volumes": volumes,
        },
    }))
    .strategy("Recreate")
}

/// `securityContext` of a container.
#[must_use]
pub fn no_rights() -> Value {
    json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}})
}

/// `securityContext` of a Pod; with a volume, that can be written to.
#[must_use]
pub fn as_nobody(volume: bool) -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": volume.then_some(USER),
        "fsGroupChangePolicy": volume.then_some("OnRootMismatch"),
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// The server's Pod, where it is Ready.
pub fn server<'a, P: Plugin>(db: &'a Request<P>) -> Option<Observed<'a>> {
    db.child(POD, db.name()).filter(|pod| !pod.going && pod.is("Ready"))
}

/// The version of the server that runs, where its image tells one.
#[must_use]
pub fn running<P: Plugin>(db: &Request<P>, server: &Server) -> Option<&'static str> {
    let statuses: Vec<Container> = db.child(POD, db.name())?.get(CONTAINERS)?;
    let own = statuses.into_iter().find(|it| it.name == server.name && it.state.get("running").is_some())?;
    version::of_image(server.steps, &own.image)
}

#[derive(Deserialize)]
struct Container {
    name: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    state: Value,
}
