//! The wire to the API server: silent, cut, answered with 410, and a server that restarts or withdraws a right.

use keelson_tests::prelude::*;
use std::time::Instant;

/// More than one page of a list.
const MANY: usize = 510;

pub(crate) async fn case_36_a_410_lists_anew_wherever_it_comes(case: Case) -> Outcome {
    // Served by nobody: they fill a second page.
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&json!({"children": [probe::pod()]}))])?;
    for i in 0..MANY {
        case.apply_database(&format!("z{i}"), "mysql").await?;
    }
    let proxy = case.proxy().await?;
    let _host = case.host().plugins(&folder).through(&proxy).start().await?;
    for (place, hits, arm) in places() {
        for name in ["stays", "goes"] {
            case.database(&format!("{name}-{place}"), "mongo").await?;
        }
        let [stays, goes] = [format!("stays-{place}"), format!("goes-{place}")];
        let old = case.get(POD, &stays).await?;
        // What happens now the watches never tell.
        proxy.silence();
        case.delete(POD, &stays).await?;
        case.delete(DATABASE, &goes).await?;
        case.wait_gone(POD, &goes).await?;
        let lists = |kind: &str| Ok::<_, anyhow::Error>(case.calls()?.resource(kind).verb("list").len());
        let before = (lists("databases")?, lists("pods")?);
        arm(&proxy);
        proxy.speak();
        let back = |pod: &Object| pod.uid() != old.uid() && pod.is("Ready");
        case.wait(POD, &stays, "back, though its deletion was missed", back)
            .await
            .with_context(|| format!("a 410 {place}; {} requests met it", proxy.hits()))?;
        let anew = async || Ok(lists("databases")? > before.0 && lists("pods")? > before.1);
        case.until(&format!("both kinds to be listed anew after a 410 {place}"), seconds(20), anew).await?;
        let nothing = async || Ok(case.find(POD, &goes).await?.is_none());
        case.throughout("nothing is made for what went unseen", seconds(2), nothing).await?;
        ensure!(proxy.hits() == hits, "{} requests met the 410 {place}, not {hits}", proxy.hits());
        proxy.clear();
    }
    Ok(())
}

type Arm = fn(&FaultProxy);

/// A name, how many requests meet it, and how.
fn places() -> [(&'static str, usize, Arm); 3] {
    fn old(proxy: &FaultProxy) {
        for kind in ["/databases?", "/pods?"] {
            proxy.add(Match::any().path(kind).watches().times(1), Fault::Answer(410, "too old resource version"));
        }
        proxy.cut();
    }
    [
        ("as-an-event", 0, FaultProxy::expire_watches),
        ("at-the-start", 2, old),
        ("in-a-list", 3, |proxy| {
            proxy.add(Match::any().path("continue=").times(1), Fault::Answer(410, "the continue token is too old"));
            old(proxy);
        }),
    ]
}

pub(crate) async fn case_35_silence_a_restart_and_a_right_that_is_withdrawn(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let host = case.host().through(&proxy).start().await?;
    case.database("a", "mongo").await?;
    let watches = async |state: &str| {
        Ok::<_, anyhow::Error>(host.metrics().await?.sum("keelson_watch_state", &[("state", state)]))
    };
    let all = watches("filled").await?;

    // No word, and no end of any connection: noticed, told, alive all the while.
    proxy.silence();
    case.delete(POD, "a").await?;
    let told = async || {
        ensure!(host.probe("/healthz").await?.0 == 200, "not alive in the silence");
        Ok(watches("unreachable").await? > 0.0)
    };
    case.until("the silence to be noticed", seconds(180), told).await?;
    ensure!(!host.log_lines(&["watch is unreachable"]).is_empty(), "not in the log");
    let body = host.probe("/readyz").await?.1;
    ensure!(body.contains("unreachable"), "/readyz says {body:?}");
    let spoke = Instant::now();
    proxy.speak();
    case.wait_for(seconds(120), POD, "a", "back", |pod| pod.is("Ready") && !pod.going()).await?;
    println!("case 35: repaired {:?} after the silence", spoke.elapsed());
    case.until("all watches to go on", seconds(120), async || Ok(watches("filled").await? == all)).await?;

    // The server restarts.
    case.cluster.restart("apiserver").await?;
    case.delete(POD, "a").await?;
    let back = async || {
        // As a kubelet would: the scheduler may end a while after its server did (seen on 1.37).
        for program in case.cluster.ended() {
            case.cluster.restart(program).await?;
        }
        Ok(case.find(POD, "a").await?.is_some_and(|pod| pod.is("Ready") && !pod.going()))
    };
    case.until("Pod a to be back", seconds(120), back).await?;
    case.until("all watches to go on", seconds(120), async || Ok(watches("filled").await? == all)).await?;

    // A right goes: said by the objects that need it, with verb, resource and scope in the log; and comes back.
    for plugin in ["mongo", "mysql"] {
        let without: Vec<Value> = rules(&case, plugin).await?.into_iter().map(no_services).collect();
        case.cluster.patch(CLUSTER_ROLE, "", &format!("keelson-plugin-{plugin}"), &json!({"rules": without})).await?;
    }
    let gone = async || {
        proxy.cut();
        Ok(watches("forbidden").await? > 0.0)
    };
    case.until("the watch of Services to be forbidden", seconds(90), gone).await?;
    case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "Forbidden")).await?;
    ensure!(!host.log_lines(&["forbidden", "services", "watch"]).is_empty(), "the log names no verb and resource");
    ensure!(host.probe("/readyz").await?.0 == 200, "one kind that is forbidden is classified");
    case.cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", "plugins"]).await?;
    case.wait_for(seconds(120), DATABASE, "a", "Ready again", |database| database.is("Ready")).await.map(drop)
}

const CLUSTER_ROLE: Kind = Kind::cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles");

fn no_services(mut rule: Value) -> Value {
    if let Some(resources) = rule.get_mut("resources").and_then(Value::as_array_mut) {
        resources.retain(|resource| resource != "services");
    }
    rule
}

async fn rules(case: &Case, plugin: &str) -> anyhow::Result<Vec<Value>> {
    let role = case.cluster.get(CLUSTER_ROLE, "", &format!("keelson-plugin-{plugin}")).await?;
    role.context("the shipped role")?.at("/rules").as_array().cloned().context("a role without rules")
}
