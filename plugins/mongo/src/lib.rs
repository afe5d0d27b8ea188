//! MongoDB for a Database with `spec.type: mongo`: a Pod, and a NodePort
//! Service in front of it.

use keelson_sdk::prelude::*;

const IMAGE: &str = "mongo:4.0";
const PORT: u16 = 27017;
const NODE_PORT: &str = "/spec/ports/0/nodePort";

pub struct Mongo;

impl Plugin for Mongo {
    type Spec = Unread;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        Manifest::new("mongo", env!("CARGO_PKG_VERSION"))
            .serves(Serving::new("zalando.org", "v1", "Database", "databases").only("/spec/type", "mongo"))
            .child(POD)
            .child(SERVICE.observing(&[NODE_PORT]))
            .spec_schema(json!({
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string", "enum": ["mongo"]}},
            }))
    }

    fn render(db: &Request<Self>) -> Result<Rendering, Failure> {
        let name = db.name();

        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "db"}},
            "spec": {"containers": [{"name": "mongo", "image": IMAGE}]},
        });
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "labels": {"app": "db"}},
            "spec": {
                "type": "NodePort",
                "selector": db.selector(),
                "ports": [{"port": PORT, "targetPort": PORT}],
            },
        });

        Ok(Rendering::of([pod, service])
            .status("message", format!("Pod and Service created by Database {name}"))
            .status("endpoint", db.service_address(PORT))
            .status("nodePort", db.child(SERVICE, name).and_then(|service| service.get::<u16>(NODE_PORT))))
    }
}

keelson_sdk::export!(Mongo);

#[cfg(test)]
mod tests;
