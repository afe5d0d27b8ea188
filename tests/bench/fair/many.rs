//! Many different plugins in one host: what each costs in memory beyond the first, and how soon the host is ready where
//! their code is compiled already.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use keelson_tests::{Probe, probe, state};
use serde_json::json;

use crate::{Row, Setup};

const STARTS: usize = 5;
const MIB_EACH: f64 = 1.0;
const READY: f64 = 1.0;

pub(crate) async fn run(setup: &Setup, count: usize) -> anyhow::Result<Vec<Row>> {
    let one = measure(setup, "one-plugin", 1).await?;
    let all = measure(setup, "all-plugins", count).await?;
    let each = (all.resident - one.resident) / (count - 1) as f64;
    let row = |what: String, measured, bound| Row { what, measured, bound };
    Ok(vec![
        row(format!("{count} plugins: MiB each beyond the first"), each, Some(MIB_EACH)),
        row("MiB with one".to_owned(), one.resident, None),
        row(format!("MiB with {count}"), all.resident, None),
        row(format!("{count} plugins: ready, s"), all.ready.as_secs_f64(), Some(READY)),
        row("ready with one, s".to_owned(), one.ready.as_secs_f64(), None),
    ])
}

struct Measured {
    ready: Duration,
    /// MiB.
    resident: f64,
}

/// Medians of some starts after one that compiles.
async fn measure(setup: &Setup, name: &str, count: usize) -> anyhow::Result<Measured> {
    let folder = folder(name, count)?;
    eprintln!("bench: {count} plugins, compiled for the first time");
    let (process, first) = setup.start(&folder, name).await?;
    let served =
        process.log().lines().filter(|line| line.contains("\"serving\"") && line.contains("\"digest\"")).count();
    ensure!(served == count, "of {count} plugins {served} serve: {}", process.last_words());
    drop(process);
    eprintln!("bench: {count} plugins: ready after {:.2} s when compiled first", first.as_secs_f64());
    let (mut ready, mut resident) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let (process, took) = setup.start(&folder, name).await?;
        ready.push(took);
        resident.push(process.resident()?.0);
    }
    ready.sort_unstable();
    resident.sort_by(f64::total_cmp);
    let (ready, resident) = (ready.get(STARTS / 2).copied(), resident.get(STARTS / 2).copied());
    Ok(Measured { ready: ready.unwrap_or_default(), resident: resident.unwrap_or_default() })
}

/// Each another component: what it says that it is stands in its bytes.
fn folder(name: &str, count: usize) -> anyhow::Result<PathBuf> {
    let folder = state("bench-fair-plugins")?.join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    for i in 0..count {
        let name = format!("plugin-{i:03}");
        Probe::new(&name, &name).script(&json!({"children": [probe::pod(), probe::service()]})).write(&folder)?;
    }
    Ok(folder)
}
