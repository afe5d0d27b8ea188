//! When Secrets are made and read, and what is told of those that users bring.

use crate::crd;
use keelson_tests::{prelude::*, probe};

fn host(case: &Case, script: &Value) -> anyhow::Result<HostBuilder> {
    let probe = Probe::new("probe", "mongo").children(&[POD, SERVICE, SECRET, CLAIM]).script(script);
    Ok(case.host().plugins(&case.probes(&[probe])?))
}

/// A plugin that names a second Secret once it knows the first: both are there before any child.
pub(crate) async fn a_secret_that_follows_from_another_is_made_in_the_same_walk(case: Case) -> Outcome {
    let env = |name: &str| json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}});
    let mut pod = probe::pod();
    pod["metadata"]["annotations"] = json!({"one": "{revision:one}", "two": "{revision:two}"});
    pod["spec"]["containers"][0]["env"] = json!([env("{name}-one")]);
    let secrets = json!([{"name": "{name}-one", "key": "password"},
        {"name": "{name}-two", "key": "password", "after": "a-one"},
        {"name": "{name}-three", "key": "password", "after": "a-two"}]);
    let _host = host(&case, &json!({"children": [pod, probe::service()], "secrets": secrets}))?.start().await?;
    case.database("a", "mongo").await?;
    for name in ["a-one", "a-two", "a-three"] {
        ensure!(case.find(SECRET, name).await?.is_some(), "{name} is not there, and the Database is Ready");
    }
    let writes = case.writes()?.filter(|call| call.code == 201);
    let made: Vec<&str> = writes.0.iter().map(|call| &*call.resource).filter(|it| *it != "events").collect();
    ensure!(made == ["secrets", "secrets", "secrets", "pods", "services"], "{made:?}");
    let pod = case.get(POD, "a").await?;
    for name in ["one", "two"] {
        ensure!(pod.annotation(name).is_some_and(|revision| revision.len() == 16), "without {name}: {pod}");
    }
    case.quiet(seconds(2)).await
}

/// While it lasts, events of the children make no reads; a change of the object does.
pub(crate) async fn a_secret_that_is_missing_is_not_asked_for_at_each_event(case: Case) -> Outcome {
    let retain = json!({"dataVersion": "1", "line": "one"});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "{name}-data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}},
        "retain": retain});
    let secrets = json!([{"name": "{name}-credentials", "key": "password", "retain": retain}]);
    let script = json!({"children": [claim, probe::pod(), probe::service()], "secrets": secrets});
    let _host = host(&case, &script)?.start().await?;
    case.database("a", "mongo").await?;
    let kept = case.get(SECRET, "a-credentials").await?;
    case.delete(SECRET, "a-credentials").await?;
    case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {"touched": "1"}}})).await?;
    let lost = |database: &Object| database.is_not("Ready", "CredentialsLost");
    case.wait(DATABASE, "a", "told", lost).await?;
    let reads = || anyhow::Ok(case.calls()?.reads().resource("secrets").len());
    let before = reads()?;
    // The Pod's state goes up and down.
    const EVENTS: usize = 60;
    for n in 0..EVENTS {
        let status = if n % 2 == 0 { "False" } else { "True" };
        let condition = json!({"type": "keelson.test/flaps", "status": status, "reason": format!("R{n}")});
        case.cluster
            .send(
                http::Method::PATCH,
                &POD.path(&case.namespace, "a/status"),
                "application/strategic-merge-patch+json",
                &json!({"status": {"conditions": [condition]}}),
            )
            .await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let made = reads()? - before;
    // The back-off's own: 1 s, 2 s, 4 s, 8 s.
    ensure!(made <= 8, "{made} reads for {EVENTS} events");
    ensure!(lost(&case.get(DATABASE, "a").await?));
    // What its owner does counts at once.
    let bare = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a-credentials",
        "labels": kept.at("/metadata/labels"), "annotations": kept.at("/metadata/annotations")}, "data": kept.at("/data")});
    case.apply(&bare.to_string()).await?;
    let adopt = json!({"metadata": {"annotations": {"keelson.dev/adopt": "Secret/a-credentials"}}});
    case.patch(DATABASE, "a", &adopt).await?;
    case.wait_for(seconds(10), DATABASE, "a", "Ready", |database| database.is("Ready")).await.map(drop)
}

const OWN: &str = "keelson.test/secret";

/// A plugin that hands the Secret which the object names to its Pod.
async fn with_users_secrets(case: &Case, name: &str) -> anyhow::Result<(Host, Value)> {
    let env = json!([{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "{/metadata/annotations/keelson.test~1secret}",
        "key": "password"}}}]);
    let mut pod = probe::pod();
    pod["metadata"]["annotations"] = json!({"one": "{revision:one}", "two": "{revision:two}"});
    pod["spec"]["containers"][0]["env"] = env;
    let grant = json!({"grant": {"userSecrets": [{"path": "/metadata/annotations/keelson.test~1secret"}]}});
    let probe = Probe::new("probe", "mongo").children(&[POD, SERVICE, SECRET]).spec(&grant);
    let folder = case.probes(&[probe.script(&json!({"children": [pod, probe::service()]}))])?;
    let host = case.host().plugins(&folder).start().await?;
    for (name, password) in [("one", "x"), ("two", "y")] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": password}});
        case.apply(&secret.to_string()).await?;
    }
    let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"type": "mongo"},
        "metadata": {"name": name, "annotations": {OWN: "one"}}});
    case.apply(&database.to_string()).await?;
    case.wait(POD, name, "told the revision", |pod| pod.annotation("one").is_some_and(|it| it.len() == 16)).await?;
    Ok((host, database))
}

async fn told(case: &Case) -> anyhow::Result<usize> {
    Ok(case.events("a").await?.iter().filter(|event| event.text("/reason") == "CredentialsChanged").count())
}

/// Another name is another password as well, whatever becomes of the host in between.
pub(crate) async fn naming_another_secret_is_told(case: Case) -> Outcome {
    let (mut host, mut database) = with_users_secrets(&case, "a").await?;
    case.wait(DATABASE, "a", "as first seen", |it| it.is_not("CredentialsChanged", "AsExpected")).await?;
    host.kill()?;
    database["metadata"]["annotations"][OWN] = json!("two");
    case.apply(&database.to_string()).await?;
    let host = host.restart().await?;
    let changed = case.wait(DATABASE, "a", "told", |database| database.is("CredentialsChanged")).await?;
    ensure!(changed.message("CredentialsChanged").contains("Secret two"), "{}", changed.message("CredentialsChanged"));
    case.until("one Event", seconds(15), async || Ok(told(&case).await? == 1)).await?;
    // The first one again is what the data was made with.
    database["metadata"]["annotations"][OWN] = json!("one");
    case.apply(&database.to_string()).await?;
    case.wait(DATABASE, "a", "no longer told", |it| it.is_not("CredentialsChanged", "AsExpected")).await?;
    ensure!(host.log_lines(&["panicked"]).is_empty());
    Ok(())
}

/// Without a status there is nowhere to remember the first revision: an edit is told as long as the host lives that saw it.
pub(crate) async fn without_a_status_an_edit_is_told_by_the_host_that_saw_it(case: Case) -> Outcome {
    crd::install_tutorial(&case).await?;
    let (mut host, _) = with_users_secrets(&case, "a").await?;
    case.quiet(seconds(1)).await?;
    let edit = async |password: &str, touch: &str| {
        case.patch(SECRET, "one", &json!({"stringData": {"password": password}})).await?;
        case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {"touched": touch}}})).await
    };
    let pod = case.get(POD, "a").await?;
    edit("z", "1").await?;
    let rolled = |before: Object| move |now: &Object| now.annotation("one") != before.annotation("one");
    let pod = case.wait(POD, "a", "told the new revision", rolled(pod)).await?;
    case.until("an Event", seconds(15), async || Ok(told(&case).await? == 1)).await?;
    host.kill()?;
    edit("w", "2").await?;
    let _host = host.restart().await?;
    case.wait(POD, "a", "told the newest revision", rolled(pod)).await?;
    case.quiet(seconds(3)).await?;
    ensure!(told(&case).await? == 1, "the next host takes what it finds for the first: {:?}", case.events("a").await?);
    Ok(())
}
