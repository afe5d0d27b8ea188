//! From an edit of one plugin's object to its child, with and without another plugin that fails with all of its own.
//! Both hosts meet the same edits of the same objects; in one of them nobody serves half of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use keelson_tests::{DATABASE, Object, POD, Probe, SERVICE, probe, state};
use kube::core::WatchEvent;
use serde_json::json;
use tokio::time::{Instant, interval, timeout};

use crate::{NAMESPACE, PATIENCE, Row, Setup};

const BOUND: f64 = 1.2;
/// What the other plugin does with every object.
const ACTS: [&str; 3] = ["trap", "loop", "allocate"];
const GOOD: usize = 20;
const BAD: usize = 60;
/// Between two edits of the other plugin's objects.
const PACE: Duration = Duration::from_millis(40);
/// Edits before those that count.
const WARM_UP: usize = 20;

pub(crate) async fn run(setup: &Setup, rounds: usize, edits: usize) -> anyhow::Result<Vec<Row>> {
    let cluster = &setup.cluster;
    for (prefix, kind, count) in [("g", "mongo", GOOD), ("b", "mysql", BAD)] {
        for i in 0..count {
            let object = json!({"metadata": {"name": format!("{prefix}{i}")}, "spec": {"type": kind}});
            cluster.create(DATABASE, NAMESPACE, &object).await?;
        }
    }
    let mut all: BTreeMap<&str, Vec<[Duration; 2]>> = BTreeMap::new();
    for round in 0..rounds {
        for turn in 0..=ACTS.len() {
            // Another one begins each round.
            let act = ["alone"].iter().chain(&ACTS).nth((turn + round) % (ACTS.len() + 1)).copied().unwrap_or_default();
            let folder = folder(act)?;
            let run = format!("{act}-{round}");
            let (process, _) = setup.start(&folder, &run).await?;
            let times = times(setup, &run, edits).await;
            let times = times.with_context(|| format!("{run}; its last words:\n{}", process.last_words()))?;
            let [p50, p99] = times;
            eprintln!("bench: {act:10} p50 {:.2} ms, p99 {:.2} ms", milliseconds(p50), milliseconds(p99));
            all.entry(act).or_default().push(times);
        }
    }
    let middle = |act: &str, which: usize| {
        let mut times: Vec<f64> =
            all.get(act).into_iter().flatten().filter_map(|times| times.get(which)).map(|t| milliseconds(*t)).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    let mut rows = vec![
        Row { what: "edit to child, alone: p50, ms".to_owned(), measured: middle("alone", 0), bound: None },
        Row { what: "edit to child, alone: p99, ms".to_owned(), measured: middle("alone", 1), bound: None },
    ];
    for act in ACTS {
        for (what, which, bound) in [("p50", 0, None), ("p99", 1, Some(BOUND))] {
            let measured = middle(act, which) / middle("alone", which);
            rows.push(Row { what: format!("beside one whose objects all {act}: {what} / alone"), measured, bound });
        }
    }
    Ok(rows)
}

/// A plugin that copies an annotation into its Service, and beside it one that only does this `act`.
fn folder(act: &str) -> anyhow::Result<PathBuf> {
    let folder = state("bench-fair-plugins")?.join(act);
    if Path::new(&folder).exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let mut service = probe::service();
    if let Some(metadata) = service.get_mut("metadata").and_then(|metadata| metadata.as_object_mut()) {
        metadata.insert("annotations".to_owned(), json!({"edit": "{/metadata/annotations/edit}"}));
    }
    let works = Probe::new("works", "mongo").children(&[SERVICE, POD]).script(&json!({"children": [service]}));
    works.write(&folder)?;
    if ACTS.contains(&act) {
        Probe::new("fails", "mysql").script(&json!({"act": act})).write(&folder)?;
    }
    Ok(folder)
}

/// Median and 99th percentile.
async fn times(setup: &Setup, run: &str, edits: usize) -> anyhow::Result<[Duration; 2]> {
    let cluster = &setup.cluster;
    let client = cluster.client.clone();
    let stop = Arc::new(tokio::sync::Notify::new());
    let (ended, mark) = (Arc::clone(&stop), run.to_owned());
    let others = tokio::spawn(async move {
        let mut pace = interval(PACE);
        for i in 0_usize.. {
            tokio::select! { () = ended.notified() => break, _ = pace.tick() => {} }
            let patch = json!({"metadata": {"annotations": {"edit": format!("{mark}-{i}")}}}).to_string();
            let request = http::Request::patch(DATABASE.path(NAMESPACE, &format!("b{}", i % BAD)))
                .header("content-type", "application/merge-patch+json")
                .body(patch.into_bytes())?;
            client.request_text(request).await?;
        }
        anyhow::Ok(())
    });
    let mut events = cluster.watch(&format!("{}?watch=true", SERVICE.path(NAMESPACE, ""))).await?;
    let mut times = Vec::new();
    for i in 0..WARM_UP + edits {
        let (name, value) = (format!("g{}", i % GOOD), format!("{run}-{i}"));
        let begin = Instant::now();
        cluster.patch(DATABASE, NAMESPACE, &name, &json!({"metadata": {"annotations": {"edit": value}}})).await?;
        loop {
            match timeout(PATIENCE, events.next()).await.context("a child does not come")? {
                Some(Ok(WatchEvent::Added(child) | WatchEvent::Modified(child))) => {
                    let child = Object(child);
                    if child.name() == name && child.annotation("edit") == Some(value.as_str()) {
                        break;
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => bail!("the watch of the bench has ended"),
            }
        }
        if i >= WARM_UP {
            times.push(begin.elapsed());
        }
    }
    stop.notify_one();
    others.await??;
    times.sort_unstable();
    let at = |percent: usize| {
        times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
    };
    Ok([at(50), at(99)])
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
