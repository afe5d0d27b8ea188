//! `make bench`: how fast and how frugal the host is beside peers that do less, on one control plane without scheduler
//! and nodes. Each contender serves the same Databases alone; all take turns, several times over, and medians count.
//! Then the same with a fleet that stays, for memory, repairs and restarts. The API server is the limit: only ratios
//! within one run mean anything.
//!
//! Flags: --count N (300), --rounds N (3), --fleet N (2000; 0: none), --workers N (8), --only NAME,… (host, full,
//! runtime, post, apply).
//! It is no test: it ends with 0 and a table, unless something did not work.

mod load;
mod process;
mod contender;
mod fleet;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use http::Method;
use keelson_tests::{Cluster, HOST_ACCOUNT, HOST_USER, Install, Options, sweep};
use serde_json::json;

use crate::contender::{Contender, Peer};
use crate::load::Sample;
use crate::report::Run;

struct Plan {
    count: usize,
    rounds: usize,
    fleet: usize,
    workers: usize,
    contenders: Vec<Contender>,
}

/// More Databases than the default range of node ports has room for.
const API_FLAGS: &[&str] = &["--service-node-port-range=20000-60000"];
/// A first run finds a server that has never made a Pod: this many go before.
const WARM_UP: usize = 30;
const TOKEN_SECONDS: u32 = 4 * 3600;

fn main() -> ExitCode {
    let done = plan().and_then(|plan| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(bench(&plan))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn plan() -> anyhow::Result<Plan> {
    let mut plan = Plan { count: 300, rounds: 3, fleet: 2000, workers: 8, contenders: Contender::all() };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench"); // cargo's own
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--count" => plan.count = value.parse()?,
            "--rounds" => plan.rounds = value.parse()?,
            "--fleet" => plan.fleet = value.parse()?,
            "--workers" => plan.workers = value.parse()?,
            "--only" => plan.contenders.retain(|contender| value.split(',').any(|name| name == contender.name())),
            _ => bail!("no such flag: {word} (there are --count, --rounds, --fleet, --workers, --only)"),
        }
    }
    ensure!(plan.count > 0 && !plan.contenders.is_empty(), "nothing to measure");
    Ok(plan)
}

async fn bench(plan: &Plan) -> anyhow::Result<()> {
    sweep()?;
    let peer = contender::build_peers().await?;
    let options = Options { kwok: false, scheduler: false, api_flags: API_FLAGS, install: Install::All };
    let cluster = Cluster::up("bench", options).await?;
    peers_may_update(&cluster).await?;
    let token = cluster.token(HOST_ACCOUNT.0, HOST_ACCOUNT.1, TOKEN_SECONDS).await?;
    let setup =
        contender::Setup { cluster: &cluster, peer, kubeconfig: cluster.kubeconfig(&token)?, workers: plan.workers };

    eprintln!(
        "bench: {} Databases, {} rounds, {} workers each; load average {}",
        plan.count,
        plan.rounds,
        plan.workers,
        process::load_average()
    );
    measure(&setup, Contender::Peer(Peer::Full), "warm-up", WARM_UP).await?;
    let mut runs = Vec::new();
    for round in 0..plan.rounds {
        for turn in 0..plan.contenders.len() {
            // Another one begins each round.
            let at = (turn + round) % plan.contenders.len();
            let Some(&contender) = plan.contenders.get(at) else { continue };
            let namespace = format!("bench-{}-{}", contender.name(), round + 1);
            let sample = measure(&setup, contender, &namespace, plan.count).await?;
            eprintln!("bench: {:8} {}", contender.name(), report::line(&sample));
            runs.push(Run { contender, namespace, sample });
        }
    }
    let calls = cluster.calls()?.user(HOST_USER);
    print!("{}", report::table(plan.count, &runs, &calls));
    if plan.fleet > 0 {
        print!("{}", fleet::table(&fleet::run(&setup, plan.fleet).await?));
    }
    Ok(())
}

/// Peers write the status by an update, which the shipped roles do not give: the host only patches.
async fn peers_may_update(cluster: &Cluster) -> anyhow::Result<()> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "bench-peers", "labels": {"keelson.dev/aggregate-to-host": "true"}},
        "rules": [{"apiGroups": ["zalando.org"], "resources": ["databases/status"], "verbs": ["update"]}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    cluster.send(Method::POST, path, "application/json", &role).await.map(drop)
}

/// One contender alone serves so many Databases in a namespace of its own, which is empty again afterwards.
async fn measure(
    setup: &contender::Setup<'_>,
    contender: Contender,
    namespace: &str,
    count: usize,
) -> anyhow::Result<Sample> {
    let cluster = setup.cluster;
    cluster.namespace(namespace, &json!({})).await?;
    process::calm(cluster).await?;
    let process = setup.start(contender, namespace).await?;
    let sample = load::run(cluster, &process, namespace, count).await;
    let sample = sample
        .with_context(|| format!("{namespace}; the last words of {}:\n{}", contender.name(), process.last_words()))?;
    drop(process);
    if contender.is_whole() {
        load::check(cluster, namespace, count).await?;
    }
    load::clear(cluster, namespace).await?;
    Ok(sample)
}

/// Longer than anything here takes where it works.
const PATIENCE: Duration = Duration::from_secs(240);
