//! Many of everything: Databases, other people's Secrets, node ports.

use futures::{StreamExt, TryStreamExt};
use keelson_tests::prelude::*;

const DATABASES: usize = 5_000;
const FOREIGN_SECRETS: usize = 2_000;
const FOREIGN_BYTES: usize = 50_000;
/// Ports of a default range, 30000–32767, but for one.
const ALL_BUT_ONE: usize = 2_767;
/// Requests of the test in flight.
const CONCURRENCY: usize = 16;

/// Nothing runs: only the API server and the host are of interest.
pub(crate) fn bare() -> Options {
    Options { kwok: false, scheduler: false, ..Options::default() }
}

pub(crate) async fn case_40_a_crowd_stays_within_the_shipped_memory_limit(case: Case) -> Outcome {
    let limit = memory_limit()?;
    let secret = |i: usize| {
        json!({"metadata": {"name": format!("foreign-{i}"), "labels": {"app": "db"}},
        "type": "Opaque", "stringData": {"blob": "x".repeat(FOREIGN_BYTES)}})
    };
    let database = |i: usize| json!({"metadata": {"name": format!("d{i}")}, "spec": {"type": "mongo"}});
    each(FOREIGN_SECRETS, |i| make(&case, SECRET, secret(i))).await?;
    each(DATABASES, |i| make(&case, DATABASE, database(i))).await?;
    let script = json!({"children": [probe::pod(), probe::service()], "status": {"message": "made"}});
    // So that memory is what stops it, not fuel.
    let greedy = Probe::new("greedy", "mysql")
        .script(&json!({"act": "allocate"}))
        .spec(&json!({"limits": {"fuel": 2_000_000_000_u64}}));
    let folder = case.probes(&[Probe::new("calm", "mongo").script(&script), greedy])?;
    for i in 0..20 {
        case.apply_database(&format!("greedy{i}"), "mysql").await?;
    }
    let host = case.host().plugins(&folder).arg("--workers=16").start().await?;
    let mut largest = 0;
    let bounded = async || {
        let active = host.metrics().await?.sum("controller_runtime_active_workers", &[]);
        ensure!(active <= 16.0, "{active} walks with 16 workers");
        let resident = host.resident()?;
        ensure!(resident < limit, "{resident} KiB resident, the Deployment allows {limit}");
        Ok::<_, anyhow::Error>(resident)
    };
    let all = async || {
        Ok::<_, anyhow::Error>(case.list(POD).await?.len() == DATABASES && case.list(SERVICE).await?.len() == DATABASES)
    };
    let deadline = std::time::Instant::now() + seconds(500);
    loop {
        largest = largest.max(bounded().await?);
        if all().await? {
            break;
        }
        ensure!(std::time::Instant::now() < deadline, "not done after 500 s");
        tokio::time::sleep(seconds(2)).await;
    }
    for i in 0..20 {
        // After eight of them it is asked more rarely.
        let stopped =
            |database: &Object| ["OutOfMemory", "PluginFailing"].iter().any(|one| database.is_not("Ready", one));
        case.wait(DATABASE, &format!("greedy{i}"), "stopped for its memory", stopped).await?;
    }
    println!("case 40: {DATABASES} Databases beside {FOREIGN_SECRETS} Secrets: {largest} KiB resident at most");
    // Started over all of it.
    let again = host.restart().await?;
    case.until("its queue to be empty", seconds(120), async || {
        let metrics = again.metrics().await?;
        Ok(metrics.sum("workqueue_depth", &[]) == 0.0 && metrics.sum("controller_runtime_active_workers", &[]) == 0.0)
    })
    .await?;
    let resident = again.resident()?;
    println!("case 40: {resident} KiB after a restart");
    ensure!(resident < limit, "{resident} KiB resident after a restart, the Deployment allows {limit}");
    let calls = case.calls()?.resource("secrets");
    ensure!(
        calls.filter(|call| matches!(call.verb.as_str(), "list" | "watch")).is_empty(),
        "it lists Secrets:\n{calls:?}"
    );
    Ok(())
}

/// KiB, from the shipped Deployment.
fn memory_limit() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(repository().join("deploy/workload/deployment.yaml"))?;
    let deployment: Value = serde_saphyr::from_str(&text)?;
    let limit = deployment.pointer("/spec/template/spec/containers/0/resources/limits/memory").and_then(Value::as_str);
    let mebibytes: u64 = limit.and_then(|limit| limit.strip_suffix("Mi")).context("a limit in Mi")?.parse()?;
    Ok(mebibytes * 1024)
}

async fn make(case: &Case, kind: Kind, object: Value) -> Outcome {
    case.cluster.create(kind, &case.namespace, &object).await.map(drop)
}

async fn each<F: Future<Output = Outcome>>(count: usize, one: impl Fn(usize) -> F) -> Outcome {
    futures::stream::iter((0..count).map(one)).buffer_unordered(CONCURRENCY).try_collect::<()>().await
}

pub(crate) async fn case_81_the_last_node_port_is_told_and_heals(case: Case) -> Outcome {
    let service = |i: usize| json!({"metadata": {"name": format!("s{i}")}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    each(ALL_BUT_ONE, |i| make(&case, SERVICE, service(i))).await?;
    let host = case.host().start().await?;
    case.apply_database("a", "mongo").await?;
    case.wait(SERVICE, "a", "there", |service| !service.owner().is_empty()).await?;
    case.apply_database("b", "mongo").await?;
    let told = |database: &Object| database.is_not("Ready", "PortsExhausted");
    let database = case.wait(DATABASE, "b", "told", told).await?;
    let message = database.message("Ready");
    ensure!(message.contains("range is full") && message.contains("Pod b"), "{message}");
    case.get(POD, "b").await?;
    // Not a fault of the server: no more asked than the back-off of what the environment blocks.
    let asked =
        || Ok::<_, anyhow::Error>(case.calls()?.filter(|call| call.name == "b" && call.resource == "services").len());
    let before = asked()?;
    let few = async || Ok(asked()? <= before + 4);
    case.throughout("it backs off", seconds(8), few).await?;
    ensure!(host.log_lines(&["PortsExhausted"]).len() == 1, "said {} times", host.log_lines(&["PortsExhausted"]).len());
    case.delete(DATABASE, "a").await?;
    case.wait_for(seconds(60), SERVICE, "b", "there, as a port is free", |service| !service.owner().is_empty()).await?;
    case.wait(DATABASE, "b", "without the complaint", |database| !told(database)).await.map(drop)
}
