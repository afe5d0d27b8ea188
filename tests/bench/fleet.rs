//! A fleet that stays: what it costs in memory, how soon a deleted Pod is back, and how soon a host that starts over it
//! is ready. Each beside a peer that does the same barely.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::StreamExt;
use http::Method;
use keelson_tests::{Cluster, DATABASE, HOST_USER, Kind, Object, POD, SERVICE};
use kube::core::WatchEvent;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::contender::{Contender, Peer, Setup};
use crate::load::{self, Sample};
use crate::{PATIENCE, process};

/// What was found with a fleet of `count`.
pub(crate) struct Fleet {
    count: usize,
    host: Sample,
    full: Sample,
    runtime: Sample,
    /// Medians, from the answer to the delete until the new Pod is seen.
    repair: Duration,
    runtime_repair: Duration,
    bare_repair: Duration,
    /// From the start of the process to its first ready, over the standing fleet.
    ready: Duration,
    runtime_ready: Duration,
    /// The lists that it needs, one after the other, read and thrown away.
    lists: Duration,
    /// Writes of the host that was started over the fleet.
    writes: usize,
}

const REPAIRS: usize = 40;
const STARTS: usize = 3;
/// What a host that wrote needlessly would have written by then.
const QUIET: Duration = Duration::from_secs(10);
/// Longer than a status is held back.
const STILL: Duration = Duration::from_secs(4);
/// As the host asks.
const PAGE: usize = 500;

pub(crate) async fn run(setup: &Setup<'_>, count: usize) -> anyhow::Result<Fleet> {
    let cluster = setup.cluster;
    eprintln!("bench: a fleet of {count}");
    let (full, _) = settle(setup, Contender::Peer(Peer::Full), "fleet-full", count).await?;
    load::clear(cluster, "fleet-full").await?;

    let runtime = Contender::Peer(Peer::Runtime);
    let (theirs, process) = settle(setup, runtime, "fleet-runtime", count).await?;
    let runtime_repair = repair(cluster, "fleet-runtime").await?;
    drop(process);
    let runtime_ready = starts(setup, runtime, "fleet-runtime").await?;
    load::clear(cluster, "fleet-runtime").await?;

    let (host, process) = settle(setup, Contender::Host, "fleet-host", count).await?;
    let repaired = repair(cluster, "fleet-host").await?;
    // What it still has to say of the repairs is not a later host's.
    rest(&process).await?;
    drop(process);
    let mut listed = Vec::new();
    for _ in 0..STARTS {
        listed.push(lists(cluster).await?);
    }
    let lists = middle(listed);
    let ready = starts(setup, Contender::Host, "fleet-host").await?;
    let writes = writes_of_a_start(setup).await?;
    let bare = setup.start(Contender::Peer(Peer::Repair), "fleet-bare").await?;
    let bare_repair = repair(cluster, "fleet-host").await?;
    drop(bare);
    load::clear(cluster, "fleet-host").await?;
    Ok(Fleet {
        count,
        host,
        full,
        runtime: theirs,
        repair: repaired,
        runtime_repair,
        bare_repair,
        ready,
        runtime_ready,
        lists,
        writes,
    })
}

/// The fleet is there, and its contender goes on.
async fn settle(
    setup: &Setup<'_>,
    contender: Contender,
    namespace: &str,
    count: usize,
) -> anyhow::Result<(Sample, process::Process)> {
    setup.cluster.namespace(namespace, &json!({})).await?;
    process::calm(setup.cluster).await?;
    let process = setup.start(contender, namespace).await?;
    let sample = load::run(setup.cluster, &process, namespace, count).await;
    let sample = sample
        .with_context(|| format!("{namespace}; the last words of {}:\n{}", contender.name(), process.last_words()))?;
    eprintln!("bench: {:8} {}", contender.name(), crate::report::line(&sample));
    Ok((sample, process))
}

/// Waits until it has nothing left to do.
async fn rest(process: &process::Process) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = process.cpu()?;
        sleep(STILL).await;
        if process.cpu()?.milliseconds_since(before) <= 20.0 {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "it does not come to rest in {PATIENCE:?}");
    }
}

/// Deletes one Pod after the other, and waits for each to come back.
async fn repair(cluster: &Cluster, namespace: &str) -> anyhow::Result<Duration> {
    let path = format!("{}?watch=true&labelSelector=app%3Ddb", POD.path(namespace, ""));
    let mut events = cluster.watch(&path).await?;
    let mut times = Vec::new();
    for i in 0..REPAIRS {
        let name = format!("d-{i:05}");
        ensure!(cluster.delete(POD, namespace, &name, "Background").await?, "no Pod {name} to delete");
        let (begin, mut gone) = (Instant::now(), false);
        loop {
            match timeout(PATIENCE, events.next()).await.context("a Pod does not come back")? {
                Some(Ok(WatchEvent::Deleted(pod))) => gone |= Object(pod).name() == name,
                Some(Ok(WatchEvent::Added(pod))) if gone && Object(pod.clone()).name() == name => break,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => anyhow::bail!("the watch of the bench has ended"),
            }
        }
        times.push(begin.elapsed());
    }
    Ok(middle(times))
}

/// From the start of a process until it is ready, several times.
async fn starts(setup: &Setup<'_>, contender: Contender, namespace: &str) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        process::calm(setup.cluster).await?;
        let begin = Instant::now();
        let process = setup.start(contender, namespace).await?;
        times.push(begin.elapsed());
        drop(process);
    }
    Ok(middle(times))
}

async fn writes_of_a_start(setup: &Setup<'_>) -> anyhow::Result<usize> {
    let writes = || Ok::<_, anyhow::Error>(setup.cluster.calls()?.user(HOST_USER).writes().len());
    let before = writes()?;
    let process = setup.start(Contender::Host, "fleet-again").await?;
    sleep(QUIET).await;
    drop(process);
    // A review of our own rights is a POST, and changes nothing.
    let reviews = setup.cluster.calls()?.user(HOST_USER).writes().0.split_off(before);
    Ok(reviews.iter().filter(|call| !call.resource.ends_with("accessreviews")).count())
}

/// All pages of all that the host lists, one kind after the other.
async fn lists(cluster: &Cluster) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    for (kind, selector) in [(DATABASE, ""), (POD, "keelson.dev%2Finstance"), (SERVICE, "keelson.dev%2Finstance")] {
        pages(cluster, kind, selector).await?;
    }
    Ok(begin.elapsed())
}

async fn pages(cluster: &Cluster, kind: Kind, selector: &str) -> anyhow::Result<()> {
    let root = kind.path("", "").replace("/namespaces//", "/");
    let mut token = String::new();
    loop {
        let path = format!("{root}?limit={PAGE}&labelSelector={selector}&continue={token}");
        let request = http::Request::builder().method(Method::GET).uri(path).body(Vec::new())?;
        let text = cluster.client.request_text(request).await?;
        token = serde_json::from_str::<Page>(&text)?.metadata.next;
        if token.is_empty() {
            return Ok(());
        }
    }
}

#[derive(serde::Deserialize)]
struct Page {
    metadata: PageMetadata,
}

#[derive(serde::Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

pub(crate) fn table(fleet: &Fleet) -> String {
    let seconds = |time: Duration| time.as_secs_f64();
    let growth = |sample: &Sample| (sample.resident - sample.idle) * 1024.0 / fleet.count as f64;
    let rows = [
        ("last child / full floor", seconds(fleet.host.last_child) / seconds(fleet.full.last_child), None),
        (
            "last child / controller-runtime",
            seconds(fleet.host.last_child) / seconds(fleet.runtime.last_child),
            Some(1.0),
        ),
        ("memory growth / controller-runtime", growth(&fleet.host) / growth(&fleet.runtime), Some(0.5)),
        ("repair / bare watch and create", seconds(fleet.repair) / seconds(fleet.bare_repair), None),
        ("repair / controller-runtime", seconds(fleet.repair) / seconds(fleet.runtime_repair), None),
        ("ready after a start / bare lists", seconds(fleet.ready) / seconds(fleet.lists), Some(2.0)),
        ("ready / controller-runtime", seconds(fleet.ready) / seconds(fleet.runtime_ready), None),
        ("writes after a start", fleet.writes as f64, Some(0.0)),
    ];
    let mut text =
        format!("\n{:38}{:>11}{:>11}\n", format!("{} Databases that stay", fleet.count), "measured", "bound");
    for (what, measured, bound) in rows {
        let verdict = if bound.is_some_and(|bound| measured > bound) { "  MISSED" } else { "" };
        let bound = bound.map_or_else(String::new, |bound| format!("<= {bound:.2}"));
        let _ = writeln!(text, "{what:38}{measured:>11.2}{bound:>11}{verdict}");
    }
    for (who, sample) in [("keelson", &fleet.host), ("full floor", &fleet.full), ("controller-runtime", &fleet.runtime)]
    {
        let Sample { last_child, idle, resident, peak, .. } = sample;
        let _ = writeln!(
            text,
            "{who:38}last child {:.2} s; {idle:.1} MiB idle, {resident:.1} after ({peak:.1} at most): {:.1} KiB each",
            seconds(*last_child),
            growth(sample)
        );
    }
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let _ = writeln!(
        text,
        "{:38}keelson {:.1} ms, controller-runtime {:.1} ms, bare {:.1} ms",
        "a deleted Pod is back after",
        milliseconds(fleet.repair),
        milliseconds(fleet.runtime_repair),
        milliseconds(fleet.bare_repair)
    );
    let _ = writeln!(
        text,
        "{:38}keelson {:.0} ms, controller-runtime {:.0} ms, bare lists {:.0} ms",
        "ready after",
        milliseconds(fleet.ready),
        milliseconds(fleet.runtime_ready),
        milliseconds(fleet.lists)
    );
    text
}
