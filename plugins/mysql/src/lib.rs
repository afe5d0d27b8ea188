//! MySQL for a Database with `spec.type: mysql`: a Pod, a NodePort
//! Service in front of it, and a Secret with the password of root, which the
//! host generates and keeps.

use keelson_sdk::prelude::*;

const IMAGE: &str = "mysql:8.0";
const PORT: u16 = 3306;
const NODE_PORT: &str = "/spec/ports/0/nodePort";

struct MySql;

impl Plugin for MySql {
    type Spec = Unread;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        Manifest::new("mysql", env!("CARGO_PKG_VERSION"))
            .serves(Serving::new("zalando.org", "v1", "Database", "databases").only("/spec/type", "mysql"))
            .child(POD)
            .child(SERVICE.observing(&[NODE_PORT]))
            .child(SECRET)
            .spec_schema(json!({
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string", "enum": ["mysql"]}},
            }))
    }

    fn render(db: &Request<Self>) -> Result<Rendering, Failure> {
        let name = db.name();
        let credentials = Secret::generated(db.name_with("credentials")).random("password", 24);

        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "db"}},
            "spec": {"containers": [{
                "name": "mysql",
                "image": IMAGE,
                "env": [credentials.env("MYSQL_ROOT_PASSWORD", "password")],
            }]},
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
            .secret(credentials)
            .status("message", format!("Pod and Service created by Database {name}"))
            .status("endpoint", db.service_address(PORT))
            .status("nodePort", db.child(SERVICE, name).and_then(|service| service.get::<u16>(NODE_PORT))))
    }
}

keelson_sdk::export!(MySql);

#[cfg(test)]
mod tests;
