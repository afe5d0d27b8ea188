//! Passwords: made once, never replaced while there is data that they open, and told when they change.

use keelson_tests::prelude::*;

const NAME: &str = "a-credentials";
const OWN: &str = "keelson.test/secret";

/// A Pod with this Secret's password, which it is told the revision of; a claim, where there is data.
fn script(secret: &str, data: bool) -> Value {
    let retain = json!({"dataVersion": "1", "line": "one"});
    let password = json!({"secretKeyRef": {"name": secret, "key": "password"}});
    let mut volumes = json!([]);
    let mut children = vec![probe::service()];
    if data {
        volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "{name}-data"}}]);
        children.push(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "{name}-data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "",
                "resources": {"requests": {"storage": "1Gi"}}}, "retain": retain}));
    }
    children.push(json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "{name}", "annotations": {"revision": format!("{{revision:{secret}}}")}},
        "spec": {"volumes": volumes, "containers": [{"name": "c", "image": "mongo:4.0",
            "env": [{"name": "PASSWORD", "valueFrom": password}]}]}}));
    json!({"children": children, "status": {"message": "applied"}})
}

fn generated(data: bool) -> Value {
    let mut script = script(NAME, data);
    let mut secret = json!({"name": NAME, "key": "password"});
    if data {
        secret["retain"] = json!({"dataVersion": "1", "line": "one"});
    }
    script["secrets"] = json!([secret]);
    script
}

async fn host(case: &Case) -> anyhow::Result<Host> {
    let grant = json!({"grant": {"userSecrets": [{"path": "/metadata/annotations/keelson.test~1secret"}]}});
    let probe = Probe::new("probe", "mongo").children(&[POD, SERVICE, SECRET, CLAIM]).spec(&grant);
    case.host().plugins(&case.probes(&[probe])?).start().await
}

fn applied(database: &Object) -> bool {
    let current = database.at("/metadata/generation") == database.at("/status/observedGeneration");
    current && database.text("/status/message") == "applied" && !database.is("Degraded")
}

/// Whoever changes the object has its Secrets looked at.
async fn touch(case: &Case) -> Outcome {
    let now = case.get(DATABASE, "a").await?.version().to_owned();
    case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {"touched": now}}})).await?;
    Ok(())
}

async fn says(case: &Case, annotation: &str, value: &str) -> Outcome {
    case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {annotation: value}}})).await?;
    Ok(())
}

async fn data(case: &Case, name: &str) -> anyhow::Result<Value> {
    Ok(case.get(SECRET, name).await?.at("/data").clone())
}

pub(crate) async fn case_42_a_password_is_made_once_and_an_edit_is_told(case: Case) -> Outcome {
    let host = host(&case).await?;
    let mut script = generated(true);
    case.scripted("a", "mongo", &script).await?;
    case.wait(DATABASE, "a", "applied", applied).await?;
    let secret = case.get(SECRET, NAME).await?;
    // Rendered a hundred times.
    let renders = async || Ok::<_, anyhow::Error>(host.metrics().await?.sum("keelson_renders_total", &[]));
    for round in 0..100 {
        let before = renders().await?;
        script["status"] = json!({"message": format!("round {round}")});
        case.scripted("a", "mongo", &script).await?;
        case.until("a rendering of it", seconds(20), async || Ok(renders().await? > before)).await?;
    }
    ensure!(case.get(SECRET, NAME).await?.version() == secret.version(), "the Secret was written to");
    script["status"] = json!({"message": "applied"});
    case.scripted("a", "mongo", &script).await?;
    case.wait(DATABASE, "a", "applied", applied).await?;
    let pod = case.get(POD, "a").await?;
    ensure!(pod.annotation("revision").is_some_and(|revision| revision.len() == 16), "{pod}");

    // An edit: the Pod's annotation follows, the condition tells, and calls it no rotation.
    case.patch(SECRET, NAME, &json!({"stringData": {"password": "edited"}})).await?;
    let edited = data(&case, NAME).await?;
    touch(&case).await?;
    let told = case.wait(DATABASE, "a", "told", |d| d.is("CredentialsChanged")).await?;
    let words = told.message("CredentialsChanged");
    ensure!(words.contains("Secret a-credentials") && words.contains("inside the data"), "{words}");
    ensure!(!words.to_lowercase().contains("rotat"), "{words}");
    let rolled = |now: &Object| now.annotation("revision") != pod.annotation("revision");
    let now = case.wait(POD, "a", "told the new revision", rolled).await?;
    let revision = now.annotation("revision").unwrap_or_default().to_owned();
    ensure!(now.uid() == pod.uid() && words.contains(&revision), "{words}");
    let warned = |e: &Object| e.text("/reason") == "CredentialsChanged";
    case.until("one Event of it", seconds(10), async || Ok(case.events("a").await?.iter().any(warned))).await?;
    // It outlives the host, and is said once.
    let host = host.restart().await?;
    case.quiet(seconds(2)).await?;
    ensure!(case.get(DATABASE, "a").await?.is("CredentialsChanged"));
    ensure!(case.events("a").await?.iter().filter(|e| warned(e)).count() == 1);
    // Dealt with: silence, also in the next host.
    says(&case, "keelson.dev/acknowledged-credentials", &revision).await?;
    let quiet = |d: &Object| d.condition("CredentialsChanged").is_none();
    case.wait(DATABASE, "a", "no longer told", quiet).await?;
    says(&case, "keelson.dev/acknowledged-credentials", "").await?;
    let _host = host.restart().await?;
    case.quiet(seconds(2)).await?;
    ensure!(quiet(&case.get(DATABASE, "a").await?));
    ensure!(data(&case, NAME).await? == edited, "an edit was put back");
    Ok(())
}

pub(crate) async fn case_85_the_data_of_a_password_stays(case: Case) -> Outcome {
    let _host = host(&case).await?;
    let mut script = generated(true);
    case.scripted("a", "mongo", &script).await?;
    let database = case.wait(DATABASE, "a", "applied", applied).await?;
    let before = data(&case, NAME).await?;
    // Somebody changes its labels: ours come back, theirs stay.
    let labels = json!({"keelson.dev/instance": "x", "keelson.dev/plugin": null, "team": "y"});
    case.patch(SECRET, NAME, &json!({"metadata": {"labels": labels}})).await?;
    touch(&case).await?;
    let ours = |s: &Object| s.label("keelson.dev/instance") == Some(database.uid()) && s.label("team") == Some("y");
    case.wait(SECRET, NAME, "labelled again", ours).await?;
    // Another version of the data is a change of annotations.
    for pointer in ["/children/1/retain", "/secrets/0/retain"] {
        if let Some(retain) = script.pointer_mut(pointer) {
            *retain = json!({"dataVersion": "2", "line": "one"});
        }
    }
    case.scripted("a", "mongo", &script).await?;
    let version = |s: &Object| s.annotation("keelson.dev/retained-data-version") == Some("2");
    case.wait(SECRET, NAME, "of another version", version).await?;
    ensure!(data(&case, NAME).await? == before);
    // A new plugin wants one key more, made of the one that is there.
    script["secrets"][0]["templates"] = json!({"uri": "db://root:{password}@a"});
    case.scripted("a", "mongo", &script).await?;
    let more = case.wait(SECRET, NAME, "with a new key", |s| s.at("/data/uri").is_string()).await?;
    ensure!(more.at("/data/password") == &before["password"]);
    let uri = case
        .cluster
        .kubectl(&[
            "-n",
            &case.namespace,
            "get",
            "secret",
            NAME,
            "-o",
            "go-template={{.data.uri | base64decode}} {{.data.password | base64decode}}",
        ])
        .await?;
    let (uri, password) = uri.split_once(' ').context("two texts")?;
    ensure!(uri == format!("db://root:{password}@a"), "{uri}");
    case.quiet(seconds(2)).await?;
    ensure!(case.get(DATABASE, "a").await?.condition("CredentialsChanged").is_none(), "our own key is no edit");
    // A key that is rendered no more stays.
    script["secrets"][0]["templates"] = json!({});
    case.scripted("a", "mongo", &script).await?;
    case.quiet(seconds(2)).await?;
    ensure!(data(&case, NAME).await? == *more.at("/data"));
    Ok(())
}

pub(crate) async fn a_lost_password_is_told_while_there_is_data(case: Case) -> Outcome {
    let mut host = host(&case).await?;
    case.scripted("a", "mongo", &generated(true)).await?;
    case.wait(DATABASE, "a", "applied", applied).await?;
    let (before, pod) = (data(&case, NAME).await?, case.get(POD, "a").await?);
    let lost = |d: &Object| d.is_not("Ready", "CredentialsLost");
    let stays = async || {
        let away = case.find(SECRET, NAME).await?.is_none();
        Ok(away && case.get(POD, "a").await?.uid() == pod.uid())
    };

    case.delete(SECRET, NAME).await?;
    touch(&case).await?;
    let told = case.wait(DATABASE, "a", "told", lost).await?;
    let words = told.message("Ready");
    for part in ["Secret a-credentials", "password", "PersistentVolumeClaim a-data", "keelson.dev/new-credentials"] {
        ensure!(words.contains(part), "no {part:?} in {words}");
    }
    case.throughout("no other password is made", seconds(4), stays).await?;
    // Restored by hand without our labels: it takes the owner's word.
    let bare = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}, "data": before});
    case.apply(&bare.to_string()).await?;
    let conflict =
        case.wait_for(seconds(35), DATABASE, "a", "in conflict", |d| d.is_not("Ready", "NameConflict")).await?;
    ensure!(conflict.message("Ready").contains("keelson.dev/adopt"), "{}", conflict.message("Ready"));
    says(&case, "keelson.dev/adopt", "Secret/a-credentials").await?;
    case.wait(DATABASE, "a", "healed", applied).await?;
    let adopted = case.get(SECRET, NAME).await?;
    ensure!(adopted.label("keelson.dev/instance") == Some(told.uid()) && adopted.at("/data") == &before, "{adopted}");
    says(&case, "keelson.dev/adopt", "").await?;

    // A key alone; and what goes while no host looks.
    case.patch(SECRET, NAME, &json!({"data": {"password": null, "other": "eA=="}})).await?;
    touch(&case).await?;
    let told = case.wait(DATABASE, "a", "told", lost).await?;
    ensure!(told.message("Ready").contains("of Secret a-credentials key password"), "{}", told.message("Ready"));
    case.patch(SECRET, NAME, &json!({"data": {"password": before["password"], "other": null}})).await?;
    case.wait_for(seconds(35), DATABASE, "a", "healed", applied).await?;
    host.kill()?;
    case.delete(SECRET, NAME).await?;
    let host = host.restart().await?;
    case.wait(DATABASE, "a", "told", lost).await?;
    case.throughout("no other password is made", seconds(3), stays).await?;

    // The data is found again by another Database, whose password is gone: the same.
    case.delete(DATABASE, "a").await?;
    case.wait_gone(POD, "a").await?;
    case.wait_gone(SERVICE, "a").await?;
    case.scripted("a", "mongo", &generated(true)).await?;
    case.wait(DATABASE, "a", "told", lost).await?;
    let nothing = async || Ok(case.find(SECRET, NAME).await?.is_none() && case.find(POD, "a").await?.is_none());
    case.throughout("neither password nor Pod", seconds(3), nothing).await?;
    // By the owner's word there is a new one.
    says(&case, "keelson.dev/new-credentials", NAME).await?;
    case.wait(DATABASE, "a", "healed", applied).await?;
    ensure!(data(&case, NAME).await? != before);
    drop(host);
    Ok(())
}

pub(crate) async fn a_lost_password_without_data_is_made_anew(case: Case) -> Outcome {
    let _host = host(&case).await?;
    case.scripted("a", "mongo", &generated(false)).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let (before, pod) = (data(&case, NAME).await?, case.get(POD, "a").await?);
    case.delete(SECRET, NAME).await?;
    touch(&case).await?;
    case.wait(SECRET, NAME, "made anew", |_| true).await?;
    ensure!(data(&case, NAME).await? != before);
    let rolled = |now: &Object| now.annotation("revision") != pod.annotation("revision");
    case.wait(POD, "a", "told the new revision", rolled).await?;
    let told = |e: &Object| e.text("/reason") == "Recreated" && e.text("/note").contains("Secret a-credentials");
    case.until("an Event of it", seconds(10), async || Ok(case.events("a").await?.iter().any(told))).await?;
    case.quiet(seconds(2)).await
}

pub(crate) async fn a_users_own_secret_is_used_and_never_written_to(case: Case) -> Outcome {
    let host = host(&case).await?;
    let mut database = json!({"apiVersion": DATABASE.api_version, "kind": "Database", "spec": {"type": "mongo"},
        "metadata": {"name": "a", "annotations":
            {"keelson.test/script": script("mine", false).to_string(), OWN: "mine"}}});
    case.apply(&database.to_string()).await?;
    let missing = |d: &Object| d.is_not("Ready", "SecretMissing");
    let told = case.wait(DATABASE, "a", "told", missing).await?;
    ensure!(told.message("Ready").contains("Secret mine"), "{}", told.message("Ready"));
    ensure!(case.find(POD, "a").await?.is_none());
    let secret =
        case.apply("{apiVersion: v1, kind: Secret, metadata: {name: mine}, stringData: {password: x}}").await?;
    case.wait_for(seconds(35), DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let pod = case.get(POD, "a").await?;
    let first = pod.annotation("revision").unwrap_or_default().to_owned();
    ensure!(first.len() == 16, "{pod}");
    let unchanged = |d: &Object| d.is_not("CredentialsChanged", "AsExpected");
    case.wait(DATABASE, "a", "as first seen", unchanged).await?;

    // An edit is told, also by a host that has not seen what was there before.
    let mut host = host;
    host.kill()?;
    let edited = case.patch(SECRET, "mine", &json!({"stringData": {"password": "y"}})).await?;
    let host = host.restart().await?;
    let told = case.wait(DATABASE, "a", "told", |d| d.is("CredentialsChanged")).await?;
    let rolled = |now: &Object| now.annotation("revision").is_some_and(|revision| revision != first);
    let now = case.wait(POD, "a", "told the new revision", rolled).await?;
    let revision = now.annotation("revision").unwrap_or_default();
    ensure!(told.message("CredentialsChanged").contains(revision), "{}", told.message("CredentialsChanged"));
    says(&case, "keelson.dev/acknowledged-credentials", revision).await?;
    case.wait(DATABASE, "a", "acknowledged", unchanged).await?;
    case.quiet(seconds(2)).await?;

    // Gone: told, and the Pod stays.
    case.delete(SECRET, "mine").await?;
    touch(&case).await?;
    case.wait(DATABASE, "a", "told", missing).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid());
    ensure!(edited.label("keelson.dev/instance").is_none() && edited.at("/metadata/ownerReferences").is_null());
    let writes = case.writes()?.resource("secrets");
    ensure!(writes.is_empty(), "{writes:?} of {}", secret.name());

    // One that the object does not name is no plugin's to use; nor is a token of the cluster's.
    case.apply("{apiVersion: v1, kind: Secret, metadata: {name: other}, stringData: {password: x}}").await?;
    database["metadata"]["annotations"]["keelson.test/script"] = script("other", false).to_string().into();
    case.apply(&database.to_string()).await?;
    let refused = case.wait(DATABASE, "a", "refused", |d| d.is_not("Ready", "InvalidChild")).await?;
    ensure!(refused.message("Ready").contains("other"), "{}", refused.message("Ready"));
    let token = "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
        metadata: {name: token, annotations: {kubernetes.io/service-account.name: default}}}";
    case.apply(token).await?;
    database["metadata"]["annotations"]["keelson.test/script"] = script("token", false).to_string().into();
    database["metadata"]["annotations"][OWN] = "token".into();
    case.apply(&database.to_string()).await?;
    let refused = case.wait(DATABASE, "a", "refused", |d| d.is_not("Ready", "InvalidSpec")).await?;
    ensure!(refused.message("Ready").contains("service-account-token"), "{}", refused.message("Ready"));
    drop(host);
    Ok(())
}

/// Where the grant lets Secrets be watched, nobody has to touch the object.
pub(crate) async fn a_watched_secret_is_noticed_at_once(case: Case) -> Outcome {
    case.also_may("[{apiGroups: [''], resources: [secrets], verbs: [list, watch]}]").await?;
    let grant = json!({"grant": {"watchSecrets": [case.namespace, "elsewhere"]}});
    let probe = Probe::new("probe", "mongo").children(&[POD, SERVICE, SECRET, CLAIM]).spec(&grant);
    let host = case.host().plugins(&case.probes(&[probe])?).start().await?;
    case.until("the watch", seconds(20), async || Ok(!host.log_lines(&["watch is filled", "\"secrets\""]).is_empty()))
        .await?;
    case.scripted("a", "mongo", &generated(true)).await?;
    case.wait(DATABASE, "a", "applied", applied).await?;
    case.quiet(seconds(1)).await?;
    let before = data(&case, NAME).await?;
    case.patch(SECRET, NAME, &json!({"stringData": {"password": "edited"}})).await?;
    case.wait(DATABASE, "a", "told", |d| d.is("CredentialsChanged")).await?;
    case.patch(SECRET, NAME, &json!({"data": before})).await?;
    case.wait(DATABASE, "a", "no longer told", |d| d.condition("CredentialsChanged").is_none()).await?;
    case.delete(SECRET, NAME).await?;
    case.wait(DATABASE, "a", "told", |d| d.is_not("Ready", "CredentialsLost")).await?;
    Ok(())
}
