//! The plugin's code as a program of WASI preview 1, for the host's bench: the parent's JSON on standard input, the
//! children on standard output.

#[path = "../src/lib.rs"]
#[allow(dead_code, unused_imports, unreachable_pub, reason = "a cdylib cannot be linked, so it is taken in as it is")]
mod mongo;

use keelson_sdk::contract::{Children, Label, Request};
use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut parent = String::new();
    std::io::stdin().read_to_string(&mut parent)?;
    let request = Request {
        parent,
        config: "{}".into(),
        selector_labels: vec![Label {
            key: "keelson.dev/instance".into(),
            value: "11111111-2222-4333-8444-555555555555".into(),
        }],
        children: Vec::new(),
        related: Vec::new(),
        secrets: Vec::new(),
        now: None,
        seed: 1,
    };
    let rendering = keelson_sdk::entry::render::<mongo::Mongo>(request).map_err(|it| it.message)?;
    let Children::Exactly(children) = rendering.children else { return Err("no children".into()) };
    let mut out = std::io::stdout().lock();
    for child in children {
        writeln!(out, "{}", child.object)?;
    }
    Ok(())
}
