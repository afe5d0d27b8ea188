//! Data outlives its Database: claims and passwords that are kept, found again, grown, and never lost by an edit.

use crate::strategies::may_also;
use keelson_tests::prelude::*;

const UID: &str = "keelson.dev/retained-uid";

/// A claim of 1Gi, a password, a Service, and a Pod that mounts the one and takes the other. The Pod's annotation says
/// which version of the data its rendering was told.
pub(crate) fn script(version: &str, line: &str) -> Value {
    sized(version, line, "1Gi", "")
}

fn sized(version: &str, line: &str, size: &str, class: &str) -> Value {
    let retain = json!({"dataVersion": version, "line": line});
    let mut script = json!({
        "children": [pod(), probe::service(), claim(size, class)],
        "secrets": [{"name": "{name}-credentials", "key": "password", "retain": retain}],
        "status": {"message": "data {data-version:data}"},
    });
    script["children"][2]["retain"] = retain;
    script
}

/// The same of a Database whose data goes with it.
fn unretained(mut script: Value) -> Value {
    for pointer in ["/children/2", "/secrets/0"] {
        script.pointer_mut(pointer).and_then(Value::as_object_mut).map(|object| object.remove("retain"));
    }
    script
}

pub(crate) fn claim(size: &str, class: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "{name}-data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": size}}}})
}

fn pod() -> Value {
    let password = json!({"secretKeyRef": {"name": "{name}-credentials", "key": "password"}});
    json!({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "{name}", "annotations": {"data": "{data-version:data}"}},
    "spec": {
        "containers": [{"name": "c", "image": "mongo:4.0", "env": [{"name": "PASSWORD", "valueFrom": password}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "{name}-data"}}],
    }})
}

/// A host with one probe for each type; what they render is each Database's own script.
async fn host(case: &Case) -> anyhow::Result<Host> {
    let kinds = [POD, SERVICE, SECRET, CLAIM];
    let probes = [("probe", "mongo"), ("other", "mysql")].map(|(name, of)| Probe::new(name, of).children(&kinds));
    let folder = case.probes(&probes)?;
    case.host().plugins(&folder).start().await
}

/// A volume for a claim, so that it is bound; of a class of its own, which may be enlarged or not.
async fn volume(case: &Case, claim: &str, class: &str, grows: bool) -> Outcome {
    let name = format!("{}-{claim}", case.namespace);
    let expansion = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
        "provisioner": "keelson.test/none", "allowVolumeExpansion": grows});
    case.apply(&expansion.to_string()).await?;
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "claimRef": {"namespace": case.namespace, "name": claim}, "hostPath": {"path": "/tmp"}}});
    case.apply(&volume.to_string()).await?;
    Ok(())
}

async fn stands(case: &Case, name: &str, version: &str) -> anyhow::Result<Object> {
    let message = format!("data {version}");
    case.wait(DATABASE, name, "all applied", |d| d.text("/status/message") == message).await
}

async fn password(case: &Case, name: &str) -> anyhow::Result<String> {
    Ok(case.get(SECRET, &format!("{name}-credentials")).await?.at("/data").to_string())
}

pub(crate) async fn data_is_kept_and_found_again(case: Case) -> Outcome {
    let _host = host(&case).await?;
    case.scripted("a", "mongo", &script("4.0", "mongo-4")).await?;
    let mut database = stands(&case, "a", "4.0").await?;
    let (claim, secret) = (case.get(CLAIM, "a-data").await?, password(&case, "a").await?);
    for cascade in ["Background", "Foreground", "Orphan"] {
        for (kind, name) in [(CLAIM, "a-data"), (SECRET, "a-credentials")] {
            let kept = case.get(kind, name).await?;
            ensure!(kept.at("/metadata/ownerReferences").is_null(), "{cascade}: {kept}");
            ensure!(kept.annotation(UID) == Some(database.uid()), "{cascade}: {kept}");
        }
        case.delete_with(DATABASE, "a", cascade).await?;
        case.wait_gone(DATABASE, "a").await?;
        if cascade == "Orphan" {
            case.delete(POD, "a").await?;
            case.delete(SERVICE, "a").await?;
        }
        case.wait_gone(POD, "a").await?;
        case.wait_gone(SERVICE, "a").await?;
        let pods = case.record(POD, "a").await?;
        case.scripted("a", "mongo", &script("4.2", "mongo-4")).await?;
        database = stands(&case, "a", "4.2").await?;
        let first = pods.all().first().cloned().context("no Pod was seen")?;
        let before = if cascade == "Background" { "4.0" } else { "4.2" };
        ensure!(first.annotation("data") == Some(before), "its first rendering did not know the data: {first}");
        let found = case.get(CLAIM, "a-data").await?;
        ensure!(found.uid() == claim.uid() && found.annotation(UID) == Some(database.uid()), "{found}");
        ensure!(found.label("keelson.dev/instance") == Some(database.uid()), "{found}");
        ensure!(found.annotation("keelson.dev/retained-data-version") == Some("4.2"), "{found}");
        ensure!(password(&case, "a").await? == secret, "another password after {cascade}");
        let told = case
            .events("a")
            .await?
            .iter()
            .any(|event| event.text("/reason") == "DataFound" && event.text("/regarding/uid") == database.uid());
        ensure!(told, "{:?}", case.events("a").await?);
    }
    case.quiet(seconds(2)).await
}

pub(crate) async fn data_of_another_line_or_plugin_is_refused(case: Case) -> Outcome {
    let _host = host(&case).await?;
    case.scripted("a", "mongo", &script("4.0", "mongo-4")).await?;
    stands(&case, "a", "4.0").await?;
    let secret = password(&case, "a").await?;
    let rows = [
        ("mongo", script("5.0", "mongo-5"), vec!["mongo-4", "mongo-5", "4.0"]),
        ("mysql", script("8.0", "mongo-4"), vec!["plugin probe", "other"]),
        ("mongo", unretained(script("4.0", "mongo-4")), vec!["would not keep"]),
    ];
    for (of, script, words) in rows {
        case.delete(DATABASE, "a").await?;
        case.wait_gone(POD, "a").await?;
        case.wait_gone(SERVICE, "a").await?;
        let before = case.versions().await?;
        case.scripted("a", of, &script).await?;
        let refused = case.wait(DATABASE, "a", "refused", |d| d.is_not("Ready", "DataMismatch")).await?;
        let message = refused.message("Ready");
        ensure!(message.contains("PersistentVolumeClaim a-data"), "{message}");
        ensure!(words.iter().all(|word| message.contains(word)), "{message}");
        case.throughout("nothing is made", seconds(3), async || Ok(case.versions().await? == before)).await?;
        let warnings = case.events("a").await?.into_iter();
        let warnings = warnings.filter(|e| e.text("/type") == "Warning" && e.text("/regarding/uid") == refused.uid());
        ensure!(warnings.count() == 1, "{:?}", case.events("a").await?);
    }
    // Its own line again.
    case.scripted("a", "mongo", &script("4.2", "mongo-4")).await?;
    stands(&case, "a", "4.2").await?;
    ensure!(password(&case, "a").await? == secret);
    // Its own plugin may move it on: that is an upgrade.
    case.scripted("a", "mongo", &script("5.0", "mongo-5")).await?;
    stands(&case, "a", "5.0").await?;
    let line = case.get(CLAIM, "a-data").await?;
    ensure!(line.annotation("keelson.dev/retained-line") == Some("mongo-5"), "{line}");
    Ok(())
}

pub(crate) async fn data_of_a_living_database_is_nobody_elses(case: Case) -> Outcome {
    let _host = host(&case).await?;
    case.scripted("b", "mongo", &script("4.0", "mongo-4")).await?;
    let other = stands(&case, "b", "4.0").await?;
    let record = |name: &str| {
        json!({"keelson.dev/retained-group": "zalando.org", "keelson.dev/retained-kind": "Database",
            "keelson.dev/retained-name": name, "keelson.dev/retained-plugin": "probe",
            "keelson.dev/retained-line": "mongo-4", "keelson.dev/retained-data-version": "4.0", UID: other.uid()})
    };
    // With our label and without; and a claim with no record at all.
    for (name, labels, annotations, reason) in [
        ("a", json!({"keelson.dev/instance": other.uid(), "keelson.dev/plugin": "probe"}), record("a"), "NameConflict"),
        ("c", json!({}), record("c"), "NameConflict"),
        ("d", json!({}), json!({}), "NameConflict"),
        ("e", json!({}), record("a"), "NameConflict"),
    ] {
        let mut theirs = claim("1Gi", "");
        theirs["metadata"] = json!({"name": format!("{name}-data"), "labels": labels, "annotations": annotations});
        let before = case.apply(&theirs.to_string()).await?;
        case.scripted(name, "mongo", &script("4.0", "mongo-4")).await?;
        let refused = case.wait(DATABASE, name, "refused", |d| d.is_not("Ready", reason)).await?;
        let message = refused.message("Ready");
        ensure!(message.contains(&format!("PersistentVolumeClaim {name}-data")), "{message}");
        case.throughout("the claim stays as it was, and no Pod mounts it", seconds(2), async || {
            let claim = case.get(CLAIM, &format!("{name}-data")).await?;
            Ok(claim.version() == before.version() && case.find(POD, name).await?.is_none())
        })
        .await?;
    }
    // Once the claim is gone, its name is free.
    case.delete(CLAIM, "d-data").await?;
    case.wait_for(seconds(35), POD, "d", "there", |_| true).await?;
    Ok(())
}

pub(crate) async fn what_happens_to_data_can_be_changed(case: Case) -> Outcome {
    let _host = host(&case).await?;
    let (retain, delete) = (script("4.0", "mongo-4"), unretained(script("4.0", "mongo-4")));
    case.scripted("a", "mongo", &retain).await?;
    let database = stands(&case, "a", "4.0").await?;
    let (claim, secret) = (case.get(CLAIM, "a-data").await?, password(&case, "a").await?);
    for (script, kept) in [(&delete, false), (&retain, true), (&delete, false), (&retain, true)] {
        case.scripted("a", "mongo", script).await?;
        for (kind, name) in [(CLAIM, "a-data"), (SECRET, "a-credentials")] {
            let is =
                |o: &Object| (o.owner() == database.uid()) != kept && o.annotation(UID).is_some() == kept && !o.going();
            let now = case.wait(kind, name, if kept { "kept" } else { "owned" }, is).await?;
            ensure!(kind.kind != "PersistentVolumeClaim" || now.uid() == claim.uid(), "another claim: {now}");
        }
        ensure!(password(&case, "a").await? == secret);
    }
    // Kept at last, and so it stays; then, by the user's word, it goes.
    case.delete(DATABASE, "a").await?;
    case.wait_gone(POD, "a").await?;
    let there = async || Ok(case.find(CLAIM, "a-data").await?.is_some_and(|claim| !claim.going()));
    case.throughout("the claim stays", seconds(5), there).await?;
    case.scripted("a", "mongo", &retain).await?;
    let database = stands(&case, "a", "4.0").await?;
    case.scripted("a", "mongo", &delete).await?;
    case.wait(CLAIM, "a-data", "owned", |claim| claim.owner() == database.uid()).await?;
    case.wait(SECRET, "a-credentials", "owned", |secret| secret.owner() == database.uid()).await?;
    case.delete(DATABASE, "a").await?;
    case.wait_gone(CLAIM, "a-data").await?;
    case.wait_gone(SECRET, "a-credentials").await
}

pub(crate) async fn claims_grow_and_never_shrink(case: Case) -> Outcome {
    let _host = host(&case).await?;
    let (grows, fixed) = (format!("{}-grows", case.namespace), format!("{}-fixed", case.namespace));
    volume(&case, "a-data", &grows, true).await?;
    volume(&case, "b-data", &fixed, false).await?;
    for (name, class) in [("a", &grows), ("b", &fixed)] {
        case.scripted(name, "mongo", &sized("4.0", "mongo-4", "1Gi", class)).await?;
        case.wait(CLAIM, &format!("{name}-data"), "bound", |claim| claim.text("/status/phase") == "Bound").await?;
        case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
    }
    let storage = |claim: &Object| claim.text("/spec/resources/requests/storage").to_owned();
    let claim = case.get(CLAIM, "a-data").await?;
    case.scripted("a", "mongo", &sized("4.0", "mongo-4", "2Gi", &grows)).await?;
    let grown = case.wait(CLAIM, "a-data", "grown", |claim| storage(claim) == "2Gi").await?;
    ensure!(grown.uid() == claim.uid());
    // The same in other words is no change; what is less is told, and all else of it still applied.
    case.scripted("a", "mongo", &sized("4.0", "mongo-4", "2048Mi", &grows)).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.scripted("a", "mongo", &sized("4.2", "mongo-4", "1.5Gi", &grows)).await?;
    let refused = case.wait(DATABASE, "a", "told", |d| d.is_not("Ready", "StorageShrink")).await?;
    let message = refused.message("Ready");
    ensure!(message.contains("1536Mi") || message.contains("1.5Gi"), "{message}");
    ensure!(message.contains("2Gi") && message.contains("PersistentVolumeClaim a-data"), "{message}");
    let kept = case.get(CLAIM, "a-data").await?;
    ensure!(storage(&kept) == "2Gi" && kept.annotation("keelson.dev/retained-data-version") == Some("4.2"), "{kept}");
    case.quiet(seconds(2)).await?;
    case.scripted("a", "mongo", &sized("4.2", "mongo-4", "2Gi", &grows)).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    // What the storage is doing is told while the Database is Ready.
    let resizing = json!({"status": {"conditions": [
        {"type": "FileSystemResizePending", "status": "True", "message": "Waiting for user to (re-)start a pod"}]}});
    case.patch(CLAIM, "a-data/status", &resizing).await?;
    let says =
        |d: &Object| d.is("Ready") && d.condition("Progressing").is_some_and(|p| p.message.contains("a-data: Waiting"));
    case.wait(DATABASE, "a", "Ready and progressing", says).await?;
    // A class that does not let it grow, in the server's words.
    case.scripted("b", "mongo", &sized("4.0", "mongo-4", "2Gi", &fixed)).await?;
    let refused = case.wait(DATABASE, "b", "refused", |d| d.is_not("Ready", "Forbidden")).await?;
    let message = refused.message("Ready");
    ensure!(message.contains("resize"), "{message}");
    ensure!(storage(&case.get(CLAIM, "b-data").await?) == "1Gi");
    // A larger claim that was kept is found again by one who asks for less: it stays as large, and is taken over.
    case.delete(DATABASE, "a").await?;
    case.wait_gone(POD, "a").await?;
    let new = case.scripted("a", "mongo", &sized("4.2", "mongo-4", "1Gi", &grows)).await?;
    case.wait(DATABASE, "a", "told", |d| d.is_not("Ready", "StorageShrink")).await?;
    case.wait(CLAIM, "a-data", "taken over", |c| storage(c) == "2Gi" && c.annotation(UID) == Some(new.uid())).await?;
    Ok(())
}

pub(crate) async fn data_that_is_left_out_stays(case: Case) -> Outcome {
    let _host = host(&case).await?;
    case.scripted("a", "mongo", &unretained(script("4.0", "mongo-4"))).await?;
    case.wait(POD, "a", "there", |_| true).await?;
    let (claim, secret) = (case.get(CLAIM, "a-data").await?, case.get(SECRET, "a-credentials").await?);
    // Neither claim nor password nor Pod is rendered any more.
    let without = json!({"children": [probe::service()], "status": {"message": "without"}});
    case.scripted("a", "mongo", &without).await?;
    case.wait_gone(POD, "a").await?;
    let told = case.wait(DATABASE, "a", "listed", |d| d.text("/status/message") == "without").await?;
    let listed = told.at("/status/children").to_string();
    ensure!(listed.contains("a-data") && listed.contains("a-credentials"), "{listed}");
    let events = async |reason: &str| {
        Ok::<_, anyhow::Error>(case.events("a").await?.into_iter().filter(|e| e.text("/reason") == reason).count())
    };
    case.until("both to be told", seconds(10), async || Ok(events("DataKept").await? == 2)).await?;
    // The walk is settled all the same: what happens to a child asks the plugin nothing.
    case.quiet(seconds(2)).await?;
    let renders = async || {
        let metrics = _host.metrics().await?;
        Ok::<_, anyhow::Error>(metrics.sum("keelson_renders_total", &[]))
    };
    let before = renders().await?;
    case.patch(SERVICE, "a", &json!({"metadata": {"annotations": {"theirs": "1"}}})).await?;
    case.patch(CLAIM, "a-data", &json!({"metadata": {"annotations": {"theirs": "1"}}})).await?;
    case.quiet(seconds(2)).await?;
    ensure!(renders().await? == before, "rendered again for what does not matter");
    ensure!(case.get(CLAIM, "a-data").await?.uid() == claim.uid());
    ensure!(case.get(SECRET, "a-credentials").await?.uid() == secret.uid());
    ensure!(events("DataKept").await? == 2);
    // Rendered again, all is as it was.
    case.scripted("a", "mongo", &unretained(script("4.0", "mongo-4"))).await?;
    case.wait(POD, "a", "there", |_| true).await?;
    ensure!(case.get(SECRET, "a-credentials").await?.at("/data") == secret.at("/data"));
    // By the owner's word they go, each named.
    case.scripted("a", "mongo", &without).await?;
    case.wait_gone(POD, "a").await?;
    let word = json!({"metadata": {"annotations": {"keelson.dev/delete-data": "PersistentVolumeClaim/a-data"}}});
    case.patch(DATABASE, "a", &word).await?;
    case.wait_gone(CLAIM, "a-data").await?;
    ensure!(case.get(SECRET, "a-credentials").await?.uid() == secret.uid());
    let word = json!({"metadata": {"annotations": {"keelson.dev/delete-data": "Secret/a-credentials"}}});
    case.patch(DATABASE, "a", &word).await?;
    case.wait_gone(SECRET, "a-credentials").await
}

/// A kind that no plugin declares any more is not watched; what was made of it goes by what the status lists.
pub(crate) async fn a_kind_that_is_declared_no_more_is_pruned(case: Case) -> Outcome {
    may_also(&case, "", "configmaps").await?;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{name}"}, "data": {"a": "b"}});
    let folder = case.probes(&[Probe::new("probe", "mongo").children(&[SERVICE, CONFIG_MAP])])?;
    let mut host = case.host().plugins(&folder).start().await?;
    case.scripted("a", "mongo", &json!({"children": [probe::service(), config]})).await?;
    case.wait(CONFIG_MAP, "a", "there", |_| true).await?;
    let listed = |d: &Object| d.at("/status/children").to_string().contains("ConfigMap");
    case.wait(DATABASE, "a", "listed", listed).await?;
    host.kill()?;
    case.scripted("a", "mongo", &json!({"children": [probe::service()]})).await?;
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.wait_gone(CONFIG_MAP, "a").await?;
    case.wait(DATABASE, "a", "listed no more", |d| !listed(d)).await?;
    Ok(())
}

pub(crate) async fn what_nobody_owns_is_adopted_by_the_users_word(case: Case) -> Outcome {
    let _host = host(&case).await?;
    let other = case.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}").await?;
    let service = |name: &str, owners: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "ownerReferences": owners},
            "spec": {"ports": [{"port": 80}]}})
    };
    let owned =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other.uid(), "controller": true}]);
    let free = case.apply(&service("a", json!([])).to_string()).await?;
    let taken = case.apply(&service("b", owned.clone()).to_string()).await?;
    let mut theirs = claim("1Gi", "");
    theirs["metadata"] = json!({"name": "a-data"});
    let data = case.apply(&theirs.to_string()).await?;
    for name in ["a", "b"] {
        case.scripted(name, "mongo", &script("4.0", "mongo-4")).await?;
        case.wait(DATABASE, name, "in conflict", |d| d.is_not("Ready", "NameConflict")).await?;
    }
    let adopt = |list: &str| json!({"metadata": {"annotations": {"keelson.dev/adopt": list}}});
    case.patch(DATABASE, "b", &adopt("Service/b")).await?;
    let database = case.patch(DATABASE, "a", &adopt("Service/a, PersistentVolumeClaim/a-data")).await?;
    let adopted = case.wait(SERVICE, "a", "adopted", |service| service.owner() == database.uid()).await?;
    ensure!(adopted.uid() == free.uid());
    let claim = case.wait(CLAIM, "a-data", "adopted", |claim| claim.annotation(UID) == Some(database.uid())).await?;
    ensure!(claim.uid() == data.uid());
    case.wait(POD, "a", "there", |pod| pod.owner() == database.uid()).await?;
    let adopted = case.events("a").await?.iter().filter(|event| event.text("/reason") == "Adopted").count();
    ensure!(adopted == 2, "{:?}", case.events("a").await?);
    // What another controls is never taken; nor is what a Database that is there has lost the reference to.
    let b = case.get(DATABASE, "b").await?.uid().to_owned();
    theirs["metadata"] = json!({"name": "c-data", "labels": {"keelson.dev/instance": b}});
    let lost = case.apply(&theirs.to_string()).await?;
    case.scripted("c", "mongo", &script("4.0", "mongo-4")).await?;
    case.patch(DATABASE, "c", &adopt("PersistentVolumeClaim/c-data")).await?;
    case.wait(DATABASE, "c", "in conflict", |d| d.is_not("Ready", "NameConflict")).await?;
    case.throughout("what is others' stays as it was", seconds(4), async || {
        let claim = case.get(CLAIM, "c-data").await?;
        Ok(case.get(SERVICE, "b").await?.version() == taken.version() && claim.version() == lost.version())
    })
    .await
}

/// Killed at each of the writes that take data over: none is orphaned, none is made twice.
pub(crate) async fn a_host_that_is_killed_while_it_takes_data_over_completes_it(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let kinds = [POD, SERVICE, SECRET, CLAIM];
    let folder = case.probes(&[Probe::new("probe", "mongo").children(&kinds)])?;
    let mut host = case.host().plugins(&folder).through(&proxy).start().await?;
    case.scripted("a", "mongo", &script("4.0", "mongo-4")).await?;
    stands(&case, "a", "4.0").await?;
    let (claim, secret) = (case.get(CLAIM, "a-data").await?, case.get(SECRET, "a-credentials").await?);
    for (path, fault) in [
        ("/secrets/a-credentials?", Fault::Silence),
        ("/secrets/a-credentials?", Fault::LoseAnswer),
        ("/persistentvolumeclaims/a-data?", Fault::Silence),
        ("/persistentvolumeclaims/a-data?", Fault::LoseAnswer),
        ("/pods/a?", Fault::Silence),
    ] {
        case.delete(DATABASE, "a").await?;
        case.wait_gone(POD, "a").await?;
        case.wait_gone(SERVICE, "a").await?;
        proxy.clear();
        // The claim's first apply is the one that asks whether it is there.
        let after = usize::from(path.contains("claims"));
        proxy.add(Match::method(http::Method::PATCH).path(path).after(after), fault);
        case.scripted("a", "mongo", &script("4.0", "mongo-4")).await?;
        case.until("the write to be on its way", seconds(20), async || Ok(proxy.hits() >= 1)).await?;
        host.kill()?;
        proxy.clear();
        host = case.host().plugins(&folder).through(&proxy).start().await?;
        let database = stands(&case, "a", "4.0").await?;
        for (kind, name, before) in [(CLAIM, "a-data", &claim), (SECRET, "a-credentials", &secret)] {
            let now = case.get(kind, name).await?;
            ensure!(now.uid() == before.uid() && now.annotation(UID) == Some(database.uid()), "{path}: {now}");
            ensure!(now.at("/data") == before.at("/data"));
            ensure!(case.list(kind).await?.len() == 1);
        }
        ensure!(case.get(POD, "a").await?.owner() == database.uid());
    }
    Ok(())
}
