//! For each __KIND__ a Deployment, and a Service in front of it.

use keelson_sdk::prelude::*;
use serde::Deserialize;

struct __KIND__;

#[derive(Deserialize)]
struct Spec {
    image: String,
    port: Option<u16>,
}

impl Plugin for __KIND__ {
    type Spec = Spec;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        let serving = Serving::new("__GROUP__", "v1", "__KIND__", "__PLURAL__");
        Manifest::new("__NAME__", env!("CARGO_PKG_VERSION")).serves(serving).child(DEPLOYMENT).child(SERVICE)
    }

    fn render(object: &Request<Self>) -> Result<Rendering, Failure> {
        let port = object.spec.port.unwrap_or(80);
        if port == 22 {
            return Err(Failure::invalid("port 22 is for ssh").field("/spec/port").remedy("take 8080"));
        }
        let (name, labels) = (object.name(), object.selector());
        let container = json!({"name": "main", "image": object.spec.image, "ports": [{"containerPort": port}]});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"port": port}]}});
        Ok(Rendering::of([deployment, service]).status("endpoint", object.service_address(port)))
    }
}

keelson_sdk::export!(__KIND__);
