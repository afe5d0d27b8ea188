//! The plugin's code without a sandbox, for the host's bench: for each number
//! read from standard input renders so often and answers in nanoseconds.

#[path = "../src/lib.rs"]
#[allow(dead_code, unused_imports, unreachable_pub, reason = "a cdylib cannot be linked, so it is taken in as it is")]
mod mongo;

use keelson_sdk::contract::{Label, Request};
use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parent = std::env::args().nth(1).ok_or("the parent's JSON is the only argument")?;
    let request = || Request {
        parent: parent.clone(),
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
    for line in std::io::stdin().lock().lines() {
        let times: u64 = line?.trim().parse()?;
        let start = Instant::now();
        for _ in 0..times {
            black_box(keelson_sdk::entry::render::<mongo::Mongo>(black_box(request())).map_err(|it| it.message)?);
        }
        println!("{}", start.elapsed().as_nanos());
    }
    Ok(())
}
