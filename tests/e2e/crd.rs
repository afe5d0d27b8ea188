//! The CustomResourceDefinition: another than ours, none, taken away, changed under a running host.

use keelson_tests::prelude::*;
use std::time::Instant;

/// As the tutorial has it: no status, nothing required, nothing limited.
const TUTORIAL: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.zalando.org}
spec:
  group: zalando.org
  scope: Namespaced
  names: {kind: Database, plural: databases, singular: database, shortNames: [db, dbs]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {type: {type: string}}}}";

pub(crate) fn without() -> Options {
    Options { install: Install::NoCrd, ..Options::default() }
}

pub(crate) async fn install(case: &Case, crd: &str) -> Outcome {
    case.cluster.apply("", crd).await?;
    let served = async || Ok(case.cluster.kubectl(&["get", "databases", "-A"]).await.is_ok());
    case.until("the kind to be served", seconds(20), served).await
}

pub(crate) async fn install_tutorial(case: &Case) -> Outcome {
    install(case, TUTORIAL).await
}

pub(crate) async fn install_shipped(case: &Case) -> Outcome {
    install(case, &std::fs::read_to_string(repository().join("plugins/databases.zalando.org.yaml"))?).await
}

pub(crate) async fn case_21_the_tutorials_crd_has_no_status(case: Case) -> Outcome {
    install_tutorial(&case).await?;
    let host = case.host().start().await?;
    let odd =
        json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "metadata": {"name": "odd"}, "spec": {}});
    case.apply(&odd.to_string()).await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql"), ("c", "oracle")] {
        case.apply_database(name, kind).await?;
    }
    for name in ["a", "b"] {
        let uid = case.get(DATABASE, name).await?.uid().to_owned();
        case.wait(POD, name, "running", |pod| pod.is("Ready") && pod.owner() == uid).await?;
        case.wait(SERVICE, name, "there", |service| service.owner() == uid).await?;
    }
    let rows = [
        ("a", "Created", "Database a"),
        ("b", "Created", "Database b"),
        ("c", "NoPlugin", "mongo, mysql"),
        ("odd", "InvalidSpec", "/spec/type"),
    ];
    let told = async |host: &Host| {
        for (name, reason, words) in rows {
            let events = case.events(name).await?;
            let [event] = events.as_slice() else { bail!("{name} has the events {events:?}") };
            ensure!(event.text("/reason") == reason && event.text("/note").contains(words), "{name}: {event}");
            let lines = host.log_lines(&[&format!("\"name\":\"{name}\""), reason]);
            ensure!(lines.len() <= 1, "{name} is logged more than once: {lines:?}");
        }
        Ok(())
    };
    case.until("an Event of each", seconds(20), async || {
        Ok(case.events("odd").await?.len() + case.events("c").await?.len() == 2)
    })
    .await?;
    case.quiet(seconds(10)).await?;
    told(&host).await?;
    ensure!(case.writes()?.resource("databases").is_empty(), "{:?}", case.writes()?.resource("databases"));
    ensure!(case.get(DATABASE, "a").await?.at("/status").is_null());

    // Neither a new host nor a repair makes it talk or loop.
    let host = host.restart().await?;
    case.quiet(seconds(5)).await?;
    told(&host).await?;
    case.delete(POD, "a").await?;
    let uid = case.get(DATABASE, "a").await?.uid().to_owned();
    case.wait(POD, "a", "back", |pod| !pod.going() && pod.owner() == uid).await?;
    case.quiet(seconds(5)).await
}

pub(crate) async fn case_21_a_crd_that_gets_a_status_is_noticed(case: Case) -> Outcome {
    install_tutorial(&case).await?;
    let _host = case.host().start().await?;
    case.apply_database("a", "mongo").await?;
    case.wait(POD, "a", "running", |pod| pod.is("Ready")).await?;
    let uid = case.get(POD, "a").await?.uid().to_owned();
    install_shipped(&case).await?;
    case.wait_for(seconds(60), DATABASE, "a", "Ready, without a restart", |database| database.is("Ready")).await?;
    case.database("b", "mysql").await?;
    ensure!(case.get(POD, "a").await?.uid() == uid, "the Pod was made again");
    // And back: no status, and no endless tries to write one.
    install_tutorial(&case).await?;
    case.apply_database("c", "mongo").await?;
    case.wait(POD, "c", "running", |pod| pod.is("Ready")).await?;
    case.quiet(seconds(10)).await
}

pub(crate) async fn case_37_a_missing_crd_is_waited_for(case: Case) -> Outcome {
    let host = case.host().spawn().await?;
    let missing = async || {
        let (status, body) = host.probe("/readyz").await.unwrap_or_default();
        Ok(status == 503 && body.contains("databases.zalando.org") && body.contains("serves no"))
    };
    case.until("/readyz to name the missing kind", seconds(30), missing).await?;
    ensure!(host.probe("/healthz").await?.0 == 200);
    let says = host.log_lines(&["WARN", "missing", "databases.zalando.org"]);
    ensure!(says.len() == 1, "said once, not {says:?}");
    // Asked for ever more rarely.
    let asked = || {
        anyhow::Ok(
            case.cluster.calls()?.filter(|call| call.user.ends_with(":keelson") && call.uri == "/apis/zalando.org/v1"),
        )
    };
    let cap = async || Ok(asked()?.len() >= 7);
    case.until("the back-off to reach its cap", seconds(60), cap).await?;
    let (tries, began) = (asked()?.len(), Instant::now());
    ensure!(tries == 7, "{:?}", asked()?);
    case.throughout("there is one request in 30 s", seconds(29), async || Ok(asked()?.len() == tries)).await?;
    ensure!(began.elapsed() >= seconds(29) && says == host.log_lines(&["WARN", "missing", "databases.zalando.org"]));

    install_shipped(&case).await?;
    case.apply_database("a", "mongo").await?;
    case.wait_for(seconds(45), DATABASE, "a", "Ready, without a restart", |database| database.is("Ready")).await?;
    ensure!(host.probe("/readyz").await?.0 == 200);

    case.cluster.kubectl(&["delete", "crd/databases.zalando.org"]).await?;
    case.until("/readyz to tell it", seconds(30), missing).await?;
    ensure!(host.probe("/healthz").await?.0 == 200);
    // The garbage collector looks for new kinds every half minute.
    case.until("the Pod to go", seconds(90), async || Ok(case.find(POD, "a").await?.is_none())).await?;
    install_shipped(&case).await?;
    case.apply_database("b", "mysql").await?;
    case.wait_for(seconds(60), DATABASE, "b", "Ready, without a restart", |database| database.is("Ready")).await?;
    ensure!(host.probe("/readyz").await?.0 == 200);
    Ok(())
}

pub(crate) async fn case_37_a_server_that_is_down_is_not_called_a_missing_crd(case: Case) -> Outcome {
    // Whether only discovery fails, or all of it.
    let faults = [
        (Match::any(), Fault::Cut),
        (Match::any(), Fault::Answer(503, "shutting down")),
        (Match::any().path("/apis/zalando.org"), Fault::Answer(500, "out of luck")),
        (Match::any().path("/apis/zalando.org"), Fault::Silence),
    ];
    let proxy = case.proxy().await?;
    for (matches, fault) in faults {
        let name = format!("{fault:?}");
        proxy.add(matches, fault.clone());
        let mut host = case.host().through(&proxy).spawn().await?;
        let unready = async || {
            let (status, body) = host.probe("/readyz").await.unwrap_or_default();
            Ok(status == 503 && body.contains("databases.zalando.org") && body.contains("not listed yet"))
        };
        case.until(&format!("/readyz to say that it waits, with {name}"), seconds(20), unready).await?;
        let alive = async || Ok(host.probe("/healthz").await?.0 == 200 && unready().await?);
        case.throughout("it is alive and not ready", seconds(2), alive).await?;
        proxy.clear();
        if !matches!(fault, Fault::Silence) {
            host.ready().await?; // else only after the time-out of one call
        }
        let wrong = [host.log_lines(&["serves no"]), host.log_lines(&["missing"])].concat();
        ensure!(wrong.is_empty(), "{name} is called a missing kind: {wrong:?}");
    }
    Ok(())
}
