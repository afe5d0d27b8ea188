//! What the host costs the API server: until a Database is Ready, and from then on.

use keelson_tests::prelude::*;

/// One in three is a mysql, with its Secret.
async fn apply(case: &Case, count: usize) -> Outcome {
    for i in 0..count {
        case.apply_database(&format!("d{i}"), if i % 3 == 0 { "mysql" } else { "mongo" }).await?;
    }
    Ok(())
}

/// As a user waits for them.
async fn all_ready(case: &Case, patience: &str) -> Outcome {
    let timeout = format!("--timeout={patience}");
    let wait = ["-n", &case.namespace, "wait", "--for=condition=Ready", "databases", "--all", &timeout];
    case.cluster.kubectl(&wait).await.map(drop)
}

/// Writes of the host in this namespace that changed something.
fn successes(case: &Case) -> anyhow::Result<Calls> {
    Ok(case.writes()?.filter(|call| call.code < 300))
}

pub(crate) async fn case_22_steady_databases_cost_nothing(case: Case) -> Outcome {
    const DATABASES: usize = 300;
    let host = case.host().start().await?;
    apply(&case, DATABASES).await?;
    all_ready(&case, "300s").await?;
    case.quiet(seconds(1)).await?;

    let renders = async || anyhow::Ok(host.metrics().await?.sum("keelson_renders_total", &[]));
    let (before, calls) = (renders().await?, case.calls()?.len());
    ensure!(before >= 2.0 * DATABASES as f64, "{before} renders for {DATABASES} Databases");
    // A Pod's heartbeat is an event and no news.
    for pod in case.list(POD).await?.iter().take(10) {
        case.patch(POD, &format!("{}/status", pod.name()), &json!({"status": {"message": "alive"}})).await?;
    }
    case.throughout("nothing is rendered", seconds(60), async || Ok(renders().await? <= before)).await?;
    let made = Calls(case.calls()?.0.split_off(calls)).filter(|call| call.verb != "watch");
    ensure!(made.is_empty(), "{DATABASES} steady Databases cost in 60 s:\n{made:?}");
    ensure!(host.resident()? < 64 * 1024, "{} KiB resident", host.resident()?);
    Ok(())
}

pub(crate) async fn a_database_costs_its_children_two_statuses_and_an_event(case: Case) -> Outcome {
    const DATABASES: usize = 20;
    let _host = case.host().start().await?;
    apply(&case, DATABASES).await?;
    all_ready(&case, "60s").await?;
    case.quiet(seconds(1)).await?;
    let calls = case.calls()?.filter(|call| !call.name.is_empty());
    ensure!(calls.reads().is_empty(), "nothing needs to be read, yet {:?}", calls.reads());
    let mut allowed = 0;
    for i in 0..DATABASES {
        let (name, children) = (format!("d{i}"), if i % 3 == 0 { 3 } else { 2 });
        allowed += children + 3;
        let of = |call: &Call| {
            let rest = call.name.strip_prefix(&name);
            rest.is_some_and(|rest| rest.is_empty() || rest == "-credentials" || rest.starts_with('.'))
        };
        let of = calls.filter(of);
        let count = |resource: &str| of.resource(resource).len();
        ensure!(count("pods") == 1 && count("services") == 1 && count("events") == 1, "{name} cost {of:?}");
        ensure!(count("secrets") == children - 2, "{name} cost {of:?}");
        ensure!((1..=2).contains(&count("databases")), "{name} cost {of:?}");
    }
    ensure!(
        calls.len() <= allowed,
        "{} calls for {DATABASES} Databases, of at most {allowed}:\n{calls:?}",
        calls.len()
    );
    Ok(())
}

pub(crate) async fn a_host_that_is_killed_and_started_again_writes_nothing(case: Case) -> Outcome {
    let foreign = "{apiVersion: v1, kind: Service, metadata: {name: taken}, spec: {ports: [{port: 1}]}}";
    case.apply(foreign).await?;
    let host = case.host().start().await?;
    apply(&case, 6).await?;
    all_ready(&case, "60s").await?;
    case.apply_database("taken", "mongo").await?;
    case.wait(DATABASE, "taken", "in conflict", |taken| taken.is_not("Ready", "NameConflict")).await?;
    case.until("its Event", seconds(10), async || Ok(!case.events("taken").await?.is_empty())).await?;
    case.wait(POD, "taken", "running", |pod| pod.is("Ready")).await?;
    let (versions, databases) = (settled(&case).await?, case.list(DATABASE).await?);
    let (writes, events) = (successes(&case)?.len(), case.list(EVENT).await?.len());

    let host = host.restart().await?;
    let seen = async || Ok(host.metrics().await?.sum("controller_runtime_reconcile_total", &[]) >= 7.0);
    case.until("every Database to be looked at", seconds(20), seen).await?;
    ensure!(settled(&case).await? == versions, "{versions:?} became {:?}", case.versions().await?);
    let made = Calls(successes(&case)?.0.split_off(writes));
    ensure!(made.is_empty(), "the new host wrote {made:?}");
    ensure!(case.list(EVENT).await?.len() == events, "the new host told old news");
    for (now, then) in case.list(DATABASE).await?.iter().zip(&databases) {
        ensure!(now.version() == then.version(), "{then} became {now}");
    }
    Ok(())
}

/// The children, once nothing has been written for a while that is longer than any hold of the host.
async fn settled(case: &Case) -> anyhow::Result<Vec<String>> {
    let known = std::cell::Cell::new((usize::MAX, std::time::Instant::now()));
    case.until("the host to come to rest", seconds(40), async || {
        let (count, since) = known.get();
        let now = successes(case)?.len();
        if now != count {
            known.set((now, std::time::Instant::now()));
        }
        Ok(now == count && since.elapsed() > seconds(5))
    })
    .await?;
    case.versions().await
}
