//! A plugin for tests: it serves Databases, and does what the annotation `example.org/act` says. What it sees of the world
//! stands in annotations of its Service; on wasm32-unknown-unknown the standard library sees none.

use keelson_sdk::prelude::*;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant, SystemTime};

struct Seer;

impl Plugin for Seer {
    type Spec = Unread;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        Manifest::new("rust", "1.0.0")
            .serves(Serving::new("zalando.org", "v1", "Database", "databases").only("/spec/type", "mongo"))
            .child(POD)
            .child(SERVICE)
    }

    fn render(request: &Request<Self>) -> Result<Rendering, Failure> {
        let name = request.name();
        let act = request.annotation("example.org/act").unwrap_or_default();
        println!("renders {name}");
        eprintln!("takes care");
        match act {
            "raise" => panic!("no such colour"),
            "refuse" => return Err(Failure::invalid("no such colour").reason("WrongColour").field("/spec/colour")),
            "exit" => std::process::exit(3),
            "sleep" => std::thread::sleep(Duration::from_secs(3600)),
            "wait" => {
                let start = Instant::now();
                while start.elapsed() < Duration::from_secs(30) {}
            }
            _ => {}
        }
        let seen = if cfg!(target_os = "wasi") { world() } else { json!({}) };
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "annotations": seen},
            "spec": {"selector": request.selector(), "ports": [{"port": 80}]},
        });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "mongo:4.0"}]},
        });
        Ok(Rendering::of([service, pod]))
    }
}

fn world() -> Value {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    json!({
        "example.org/random": RandomState::new().build_hasher().finish().to_string(),
        "example.org/now": now.to_string(),
        "example.org/environment": format!("{:?}", std::env::vars().collect::<Vec<_>>()),
        "example.org/file": std::fs::read_to_string("/etc/passwd").map_err(|error| error.kind().to_string()).unwrap_or_else(|kind| kind),
        "example.org/network": std::net::TcpStream::connect("127.0.0.1:80").map_or_else(|error| error.kind().to_string(), |_| "connected".into()),
    })
}

keelson_sdk::export!(Seer);
