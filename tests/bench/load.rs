//! The load: so many Databases at once, mongo and mysql in turn, and watches that tell when each has its Pod, its
//! Service and its status.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use futures::{StreamExt, TryStreamExt};
use keelson_tests::{Cluster, DATABASE, EVENT, Kind, Outcome, POD, SECRET, SERVICE};
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::PATIENCE;
use crate::process::{Process, machine_cpu, own_cpu, server_cpu};

/// What one contender did with the load. Times are from the first create.
pub(crate) struct Sample {
    pub(crate) created: Duration,
    pub(crate) last_child: Duration,
    pub(crate) last_status: Duration,
    /// From the answer to a Database's creation until both of its children were seen: median, 99th percentile.
    pub(crate) children_p50: Duration,
    pub(crate) children_p99: Duration,
    /// The same until its status was seen.
    pub(crate) status_p50: Duration,
    pub(crate) status_p99: Duration,
    /// Milliseconds of CPU per Database.
    pub(crate) cpu: f64,
    pub(crate) server_cpu: f64,
    /// MiB: before the load, after it, and at its highest.
    pub(crate) idle: f64,
    pub(crate) resident: f64,
    pub(crate) peak: f64,
    /// The share of the machine that others took meanwhile: disturbed runs are to be seen as such.
    pub(crate) others: f64,
}

/// As much of an object as is looked at.
#[derive(Debug, Clone, Deserialize)]
struct Seen {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Status {
    message: Option<String>,
}

/// When each name was seen.
#[derive(Default)]
struct Times {
    first: HashMap<String, Instant>,
    last: Option<Instant>,
}

type Shared = Arc<Mutex<Times>>;

/// Creates in flight.
const CONCURRENCY: usize = 8;
/// Nothing more comes when a contender has been silent and idle for this long.
const SILENCE: Duration = Duration::from_millis(750);

pub(crate) async fn run(cluster: &Cluster, process: &Process, namespace: &str, count: usize) -> anyhow::Result<Sample> {
    let mut watches = JoinSet::new();
    let pods = follow(cluster, POD, namespace, &mut watches, |_| true).await?;
    let services = follow(cluster, SERVICE, namespace, &mut watches, |_| true).await?;
    let statuses = follow(cluster, DATABASE, namespace, &mut watches, |seen| seen.status.message.is_some()).await?;

    let (idle, _) = process.resident()?;
    let (cpu, server) = (process.cpu()?, server_cpu(cluster)?);
    let (own, (busy, machine)) = (own_cpu(cluster, process)?, machine_cpu()?);
    let start = Instant::now();
    let made = create(cluster, namespace, count).await?;
    let created = start.elapsed();
    let all = [&pods, &services, &statuses];
    let deadline = start + PATIENCE;
    while all.iter().any(|seen| lock(seen).first.len() < count) {
        let so_far = all.map(|seen| lock(seen).first.len());
        ensure!(Instant::now() < deadline, "of {count} Databases only {so_far:?} have Pod, Service and status");
        ensure!(watches.try_join_next().is_none(), "a watch of the bench has ended");
        sleep(Duration::from_millis(20)).await;
    }
    let (others_busy, machine) = {
        let ((busy_now, machine_now), own_now) = (machine_cpu()?, own_cpu(cluster, process)?);
        let others = busy_now.milliseconds_since(busy) - own_now.milliseconds_since(own);
        (others.max(0.0), machine_now.milliseconds_since(machine))
    };
    silence(process, &all).await?;

    let (resident, peak) = process.resident()?;
    let per_database = |milliseconds: f64| milliseconds / count as f64;
    let [pods, services, statuses] = all.map(lock);
    let last = |times: &Times| times.last.map_or(Duration::ZERO, |at| at - start);
    let children = latencies(&made, &[&pods, &services]);
    let status = latencies(&made, &[&statuses]);
    Ok(Sample {
        created,
        last_child: last_first(&pods).max(last_first(&services)).map_or(Duration::ZERO, |at| at - start),
        last_status: last(&statuses),
        children_p50: percentile(&children, 50),
        children_p99: percentile(&children, 99),
        status_p50: percentile(&status, 50),
        status_p99: percentile(&status, 99),
        cpu: per_database(process.cpu()?.milliseconds_since(cpu)),
        server_cpu: per_database(server_cpu(cluster)?.milliseconds_since(server)),
        idle,
        resident,
        peak,
        others: others_busy / machine.max(1.0),
    })
}

/// Notes when objects that are `wanted` are seen, from now on.
async fn follow(
    cluster: &Cluster,
    kind: Kind,
    namespace: &str,
    watches: &mut JoinSet<()>,
    wanted: fn(&Seen) -> bool,
) -> anyhow::Result<Shared> {
    let path = format!("{}?watch=true", kind.path(namespace, ""));
    let request = http::Request::get(path).body(Vec::new())?;
    let mut events = Box::pin(cluster.client.request_events::<Seen>(request).await?);
    let times = Shared::default();
    let noted = times.clone();
    watches.spawn(async move {
        while let Some(Ok(event)) = events.next().await {
            if let WatchEvent::Added(seen) | WatchEvent::Modified(seen) = event
                && wanted(&seen)
            {
                let (mut times, now) = (lock(&noted), Instant::now());
                times.first.entry(seen.metadata.name).or_insert(now);
                times.last = Some(now);
            }
        }
    });
    Ok(times)
}

/// When the answer to each create came.
async fn create(cluster: &Cluster, namespace: &str, count: usize) -> anyhow::Result<HashMap<String, Instant>> {
    let one = |i: usize| async move {
        let (name, engine) = (format!("d-{i:05}"), if i.is_multiple_of(2) { "mongo" } else { "mysql" });
        cluster.create(DATABASE, namespace, &json!({"metadata": {"name": name}, "spec": {"type": engine}})).await?;
        anyhow::Ok((name, Instant::now()))
    };
    futures::stream::iter((0..count).map(one)).buffer_unordered(CONCURRENCY).try_collect().await
}

/// Waits until no object changes any more and the contender has nothing to do.
async fn silence(process: &Process, all: &[&Shared]) -> Outcome {
    let last = || all.iter().filter_map(|seen| lock(seen).last).max();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (cpu, seen) = (process.cpu()?, last());
        sleep(SILENCE).await;
        if process.cpu()?.milliseconds_since(cpu) <= 20.0 && last() == seen {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "it does not come to rest in {PATIENCE:?}");
    }
}

/// Whether what no watch was on is there too: an Event for each, a Secret for every mysql.
pub(crate) async fn check(cluster: &Cluster, namespace: &str, count: usize) -> Outcome {
    let (events, secrets) = (cluster.list(EVENT, namespace).await?.len(), cluster.list(SECRET, namespace).await?.len());
    ensure!(events >= count, "{namespace}: {events} Events for {count} Databases");
    ensure!(secrets == count / 2, "{namespace}: {secrets} Secrets for {count} Databases");
    Ok(())
}

/// Deletes all that a run has left, and waits until it has gone.
pub(crate) async fn clear(cluster: &Cluster, namespace: &str) -> Outcome {
    for kind in [DATABASE, POD, SERVICE, SECRET, EVENT] {
        cluster.delete(kind, namespace, "", "Background").await?;
    }
    let deadline = Instant::now() + PATIENCE;
    for kind in [DATABASE, POD, SERVICE] {
        while !cluster.list(kind, namespace).await?.is_empty() {
            ensure!(Instant::now() < deadline, "objects of {namespace} are still there after {PATIENCE:?}");
            sleep(Duration::from_millis(250)).await;
        }
    }
    Ok(())
}

fn last_first(times: &Times) -> Option<Instant> {
    times.first.values().max().copied()
}

/// Sorted: from each create's answer until the last of these was seen.
fn latencies(made: &HashMap<String, Instant>, seen: &[&Times]) -> Vec<Duration> {
    let one = |(name, at): (&String, &Instant)| {
        let last = seen.iter().filter_map(|times| times.first.get(name)).max()?;
        Some(last.saturating_duration_since(*at))
    };
    let mut all: Vec<Duration> = made.iter().filter_map(one).collect();
    all.sort_unstable();
    all
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

fn lock(times: &Shared) -> std::sync::MutexGuard<'_, Times> {
    times.lock().unwrap_or_else(PoisonError::into_inner)
}
