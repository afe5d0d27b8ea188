//! Plugins that finalize: what a deleted object waits for, and how it goes nevertheless.

use crate::storage;
use http::Method;
use keelson_tests::{prelude::*, probe};

const FINALIZER: &str = "keelson.dev/finalize";
const FORCE: &str = "keelson.dev/force-finalize";

/// What a finalizing plugin's ClusterRole gives beside the usual: `patch` on its kind, and here Jobs and Deployments.
pub(crate) async fn rights(case: &Case) -> Outcome {
    case.also_may(
        "
- {apiGroups: [zalando.org], resources: [databases], verbs: [patch]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, patch, delete]}",
    )
    .await?;
    may_patch(case).await
}

pub(crate) async fn may_patch(case: &Case) -> Outcome {
    let ask = format!("--as={HOST_USER}");
    let may = ["auth", "can-i", "patch", "databases.zalando.org", "-n", &case.namespace, &ask];
    case.until("the rights to be in force", seconds(20), async || Ok(case.cluster.kubectl(&may).await.is_ok())).await
}

fn plugin() -> Probe {
    Probe::new("probe", "mongo").finalizing().children(&[JOB, POD, SERVICE]).script(&usual())
}

fn usual() -> Value {
    json!({"children": [probe::service(), probe::pod()]})
}

fn job() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "{name}-dump"}, "spec": {"template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "dump:1"}]}}}})
}

/// Waits for the Job, beside these children.
fn dumps(children: &[Value], name: &str) -> Value {
    let children: Vec<Value> = children.iter().cloned().chain([job()]).collect();
    json!({"script": {"children": children}, "waiting": {"reason": "Dumping", "message": "its data is being dumped"},
        "until": {"kind": "Job", "name": format!("{name}-dump")}})
}

async fn database(case: &Case, name: &str, finalize: &Value) -> anyhow::Result<Object> {
    let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"type": "mongo"},
        "metadata": {"name": name, "annotations": {probe::FINALIZE: finalize.to_string()}}});
    case.apply(&database.to_string()).await?;
    case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await
}

fn finalizers(object: &Object) -> Vec<String> {
    serde_json::from_value(object.at("/metadata/finalizers").clone()).unwrap_or_default()
}

async fn told(case: &Case, name: &str, reason: &str) -> Outcome {
    let told = async || Ok(case.events(name).await?.iter().any(|event| event.text("/reason") == reason));
    case.until(&format!("an Event {reason} of {name}"), seconds(15), told).await
}

/// Ends the Job as its Pod would: the simulated nodes leave this namespace's Pods alone.
async fn dumped(case: &Case, name: &str) -> Outcome {
    let pods = async || {
        let pods = case.list(POD).await?;
        let of = format!("{name}-dump");
        anyhow::Ok(pods.into_iter().find(|pod| pod.label("job-name") == Some(&*of)))
    };
    case.until("the Job's Pod", seconds(15), async || Ok(pods().await?.is_some())).await?;
    let pod = pods().await?.context("the Job's Pod has gone")?;
    let state = json!({"terminated": {"exitCode": 0, "finishedAt": null}});
    let container =
        json!({"name": "c", "image": "dump:1", "imageID": "", "restartCount": 0, "ready": false, "state": state});
    let done = json!({"status": {"phase": "Succeeded", "containerStatuses": [container]}});
    case.patch(POD, &format!("{}/status", pod.name()), &done).await.map(drop)
}

pub(crate) async fn case_12_a_deleted_database_is_finalized_at_once(case: Case) -> Outcome {
    rights(&case).await?;
    let folder = case.probes(&[plugin()])?;
    let _host = case.host().plugins(&folder).start().await?;
    for name in ["a", "b"] {
        let database = database(&case, name, &json!({})).await?;
        ensure!(finalizers(&database) == [FINALIZER], "{database}");
    }
    // Before the first child.
    let writes = case.writes()?.filter(|call| call.name == "a" && call.code < 300);
    let resources: Vec<&str> = writes.0.iter().map(|call| call.resource.as_str()).collect();
    ensure!(resources.first() == Some(&"databases") && resources.contains(&"pods"), "{writes:?}");
    // Whoever else holds it is left alone, and its own finalizer is nobody else's to lose.
    let both = json!({"metadata": {"finalizers": ["keelson.test/hold", FINALIZER]}});
    case.patch(DATABASE, "b", &both).await?;
    case.quiet(seconds(2)).await?;
    for name in ["a", "b"] {
        case.delete(DATABASE, name).await?;
    }
    let gone = async || Ok(case.find(DATABASE, "a").await?.is_none());
    case.until("a to go without a resync", seconds(5), gone).await?;
    let held = case.wait(DATABASE, "b", "finalized", |b| finalizers(b) == ["keelson.test/hold"]).await?;
    ensure!(held.going(), "{held}");
    case.wait_gone(POD, "a").await?;
    case.patch(DATABASE, "b", &json!({"metadata": {"finalizers": null}})).await?;
    case.wait_gone(DATABASE, "b").await?;
    case.wait_gone(SERVICE, "b").await?;
    for name in ["a", "b"] {
        told(&case, name, "Finalized").await?;
    }
    let late = case.calls()?.filter(|call| call.code >= 400 && call.code != 404);
    ensure!(late.is_empty(), "{late:?}");
    Ok(())
}

pub(crate) async fn case_46_a_finalization_that_is_cut_short_is_completed(case: Case) -> Outcome {
    case.pods_by_hand().await?;
    rights(&case).await?;
    let folder = case.probes(&[plugin().script(&json!({"children": [probe::service()]}))])?;
    let host = case.host().plugins(&folder).start().await?;
    let database = database(&case, "a", &dumps(&[probe::service()], "a")).await?;
    let service = case.get(SERVICE, "a").await?;
    // Two deletes at once.
    let (one, other) = tokio::join!(case.delete(DATABASE, "a"), case.delete(DATABASE, "a"));
    ensure!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    let dump = case.wait(JOB, "a-dump", "there", |job| job.owner() == database.uid()).await?;
    let waits = |d: &Object| d.is_not("Ready", "Dumping") && d.is("Progressing") && d.going();
    let waiting = case.wait(DATABASE, "a", "waiting for the dump", waits).await?;
    let message = waiting.message("Ready");
    ensure!(message == "its data is being dumped" && waiting.is_not("Degraded", "AsExpected"), "{waiting}");
    ensure!(waiting.at("/status/children").to_string().contains("a-dump"), "{waiting}");
    told(&case, "a", "Finalizing").await?;
    // The host dies in the middle. What it has made stands, and is not made again.
    let mut host = host.restart().await?;
    case.quiet(seconds(3)).await?;
    ensure!(case.list(JOB).await?.len() == 1 && case.get(JOB, "a-dump").await?.uid() == dump.uid());
    ensure!(case.get(SERVICE, "a").await?.uid() == service.uid() && case.get(DATABASE, "a").await?.going());
    // What goes meanwhile is made anew: the rest of the work is to be done.
    case.delete(SERVICE, "a").await?;
    case.wait(SERVICE, "a", "back", |new| new.uid() != service.uid() && !new.going()).await?;
    // Done while no host looks, and the answer to its last write is lost.
    host.kill()?;
    dumped(&case, "a").await?;
    case.wait(JOB, "a-dump", "complete", |job| job.is("Complete")).await?;
    let proxy = case.proxy().await?;
    proxy.add(Match::method(Method::PATCH).path("/databases/a?").times(1), Fault::LoseAnswer);
    let _host = case.host().plugins(&folder).through(&proxy).start().await?;
    case.wait_gone(DATABASE, "a").await?;
    ensure!(proxy.hits() == 1, "its answer was not lost");
    case.wait_gone(JOB, "a-dump").await?;
    case.wait_gone(SERVICE, "a").await?;
    Ok(())
}

pub(crate) async fn a_finalization_fits_every_kind_of_delete(case: Case) -> Outcome {
    case.pods_by_hand().await?;
    rights(&case).await?;
    let folder = case.probes(&[plugin().script(&json!({"children": [probe::service()]}))])?;
    let _host = case.host().plugins(&folder).start().await?;
    // In the foreground the children go first; what orphans them leaves them, with whatever makes them so.
    for (name, how) in [("fore", "Foreground"), ("orphan", "Orphan")] {
        let database = database(&case, name, &dumps(&[], name)).await?;
        let service = case.get(SERVICE, name).await?;
        case.delete_with(DATABASE, name, how).await?;
        case.wait(JOB, &format!("{name}-dump"), "there", |job| job.owner() == database.uid()).await?;
        case.wait(DATABASE, name, "waiting", |database| database.is_not("Ready", "Dumping")).await?;
        match how {
            "Foreground" => case.wait_gone(SERVICE, name).await?,
            _ => drop(case.wait(SERVICE, name, "cut loose", |service| service.owner().is_empty()).await?),
        }
        case.quiet(seconds(3)).await?;
        ensure!(!case.get(JOB, &format!("{name}-dump")).await?.going(), "taken away before its work was done");
        dumped(&case, name).await?;
        case.wait_gone(DATABASE, name).await?;
        case.wait_gone(JOB, &format!("{name}-dump")).await?;
        if how == "Orphan" {
            let left = case.get(SERVICE, name).await?;
            ensure!(left.uid() == service.uid() && left.owner().is_empty(), "{left}");
        }
    }
    // Where the finalization names what was cut loose, that is left as it is all the same.
    let owner = database(&case, "named", &dumps(&[probe::service()], "named")).await?;
    case.delete_with(DATABASE, "named", "Orphan").await?;
    case.wait(JOB, "named-dump", "there", |job| job.owner() == owner.uid()).await?;
    let loose = case.wait(SERVICE, "named", "cut loose", |service| service.owner().is_empty()).await?;
    case.quiet(seconds(3)).await?;
    dumped(&case, "named").await?;
    case.wait_gone(DATABASE, "named").await?;
    case.wait_gone(JOB, "named-dump").await?;
    ensure!(case.get(SERVICE, "named").await?.version() == loose.version(), "written to");
    Ok(())
}

pub(crate) async fn a_finalization_that_fails_holds_until_it_is_forced(case: Case) -> Outcome {
    rights(&case).await?;
    let folder = case.probes(&[plugin()])?;
    let host = case.host().plugins(&folder).start().await?;
    let fails =
        json!({"script": {"fail": {"class": "not-yet", "reason": "NoBackup", "message": "the bucket is away"}}});
    let traps = json!({"script": {"act": "trap"}});
    for (name, finalize, reason) in [("a", &fails, "NoBackup"), ("b", &traps, "Trap")] {
        database(&case, name, finalize).await?;
        let pod = case.get(POD, name).await?;
        case.delete(DATABASE, name).await?;
        let database = case.wait(DATABASE, name, reason, |database| database.is_not("Ready", reason)).await?;
        let message = database.message("Ready");
        ensure!(message.contains(&format!("{FORCE}=true")), "{message}");
        told(&case, name, reason).await?;
        ensure!(case.get(POD, name).await?.uid() == pod.uid(), "its children are untouched");
    }
    // Fuel and traps are the same at each try, a bucket may come back.
    let renders =
        async |result: &str| host.metrics().await.map(|all| all.sum("keelson_renders_total", &[("result", result)]));
    let traps = renders("Trap").await?;
    case.until("it to be asked again", seconds(60), async || Ok(renders("NotYet").await? >= 3.0)).await?;
    ensure!(renders("Trap").await? <= traps, "asked again what can only trap");
    ensure!(case.get(DATABASE, "a").await?.going() && case.get(DATABASE, "b").await?.going());
    // The cause goes: it goes on by itself. Or somebody decides.
    case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {probe::FINALIZE: "{}"}}})).await?;
    case.patch(DATABASE, "b", &json!({"metadata": {"annotations": {FORCE: "true"}}})).await?;
    for (name, reason) in [("a", "Finalized"), ("b", "FinalizeForced")] {
        case.wait_gone(DATABASE, name).await?;
        case.wait_gone(POD, name).await?;
        told(&case, name, reason).await?;
    }
    // The annotation alone ends nothing.
    database(&case, "c", &json!({})).await?;
    case.patch(DATABASE, "c", &json!({"metadata": {"annotations": {FORCE: "true"}}})).await?;
    case.quiet(seconds(2)).await?;
    ensure!(finalizers(&case.get(DATABASE, "c").await?) == [FINALIZER]);
    Ok(())
}

pub(crate) async fn a_finalization_that_takes_too_long_is_told_or_given_up(case: Case) -> Outcome {
    rights(&case).await?;
    let forever = json!({"script": {}, "waiting": {"reason": "Dumping", "message": "for ever"}});
    let rule = |on_timeout: &str| json!({"finalize": {"timeoutSeconds": 3, "onTimeout": on_timeout}});
    let folder = case.probes(&[plugin().spec(&rule("Hold"))])?;
    let host = case.host().plugins(&folder).start().await?;
    for name in ["a", "b"] {
        database(&case, name, &forever).await?;
        case.delete(DATABASE, name).await?;
        case.wait(DATABASE, name, "waiting", |database| database.is_not("Ready", "Dumping")).await?;
        let late = |database: &Object| database.is_not("Ready", "FinalizeTimeout") && database.is("Degraded");
        let late = case.wait(DATABASE, name, "late", late).await?;
        let message = late.message("Ready");
        ensure!(message.contains("for ever") && message.contains(FORCE) && message.contains("3 s"), "{message}");
        told(&case, name, "FinalizeTimeout").await?;
    }
    case.quiet(seconds(5)).await?;
    ensure!(case.get(DATABASE, "a").await?.going(), "nothing is lost by itself");
    let warnings = case.events("a").await?.iter().filter(|event| event.text("/reason") == "FinalizeTimeout").count();
    ensure!(warnings == 1, "{:?}", case.events("a").await?);
    case.patch(DATABASE, "b", &json!({"metadata": {"annotations": {FORCE: "true"}}})).await?;
    case.wait_gone(DATABASE, "b").await?;
    // The document may say that it goes. The time is that since the delete, whatever host looks.
    drop(host);
    case.probes(&[plugin().spec(&rule("Release"))])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.wait_gone(DATABASE, "a").await?;
    told(&case, "a", "FinalizeTimeout").await?;
    case.wait_gone(POD, "a").await
}

pub(crate) async fn a_finalizer_goes_with_its_plugin(case: Case) -> Outcome {
    rights(&case).await?;
    let forever = json!({"script": {}, "waiting": {"reason": "Dumping", "message": "for ever"}});
    let other = Probe::new("other", "mysql").script(&usual());
    let folder = case.probes(&[plugin(), other.clone()])?;
    let mut host = case.host().plugins(&folder).start().await?;
    for name in ["stands", "goes", "late"] {
        database(&case, name, &forever).await?;
    }
    case.delete(DATABASE, "goes").await?;
    case.wait(DATABASE, "goes", "waiting", |database| database.is_not("Ready", "Dumping")).await?;
    // A plugin that does not load is not gone: what it promised is still to be done.
    host.kill()?;
    let component = std::fs::read(folder.join("probe.wasm"))?;
    std::fs::remove_file(folder.join("probe.wasm"))?;
    let mut host = case.host().plugins(&folder).start().await?;
    let held = case.wait(DATABASE, "goes", "held", |d| d.is_not("Ready", "PluginUnavailable")).await?;
    ensure!(finalizers(&held) == [FINALIZER] && held.text("/status/conditions/0/message").contains(FORCE), "{held}");
    ensure!(finalizers(&case.get(DATABASE, "stands").await?) == [FINALIZER]);
    // Another version without the hook: off from what stands and what goes.
    host.kill()?;
    std::fs::write(folder.join("probe.wasm"), component)?;
    case.probes(&[Probe::new("probe", "mongo").script(&usual())])?;
    let mut host = case.host().plugins(&folder).start().await?;
    case.wait_gone(DATABASE, "goes").await?;
    for name in ["stands", "late"] {
        let free = |database: &Object| finalizers(database).is_empty() && database.is("Ready");
        case.wait(DATABASE, name, "free", free).await?;
    }
    // It comes back, and the plugin goes for good.
    host.kill()?;
    case.probes(&[plugin()])?;
    let mut host = case.host().plugins(&folder).start().await?;
    case.wait(DATABASE, "stands", "held", |database| finalizers(database) == [FINALIZER]).await?;
    case.delete(DATABASE, "late").await?;
    case.wait(DATABASE, "late", "waiting", |database| database.is_not("Ready", "Dumping")).await?;
    host.kill()?;
    std::fs::remove_file(folder.join("probe.yaml"))?;
    let _host = case.host().plugins(&folder).start().await?;
    case.wait_gone(DATABASE, "late").await?;
    case.wait(DATABASE, "stands", "free", |database| finalizers(database).is_empty()).await?;
    case.delete(DATABASE, "stands").await?;
    case.wait_gone(DATABASE, "stands").await
}

pub(crate) async fn without_the_right_to_hold_an_object_nothing_is_made_for_it(case: Case) -> Outcome {
    // Jobs are not needed here, and so not asked for.
    let folder = case.probes(&[plugin().children(&[POD, SERVICE])])?;
    let host = case.host().plugins(&folder).start().await?;
    let lacks = || host.log_lines(&["lacks a right", "\"verb\":\"patch\"", "\"resource\":\"databases.zalando.org\""]);
    case.until("the right to be named", seconds(20), async || Ok(!lacks().is_empty())).await?;
    case.apply_database("a", "mongo").await?;
    let refused = case.wait(DATABASE, "a", "forbidden", |database| database.is_not("Ready", "Forbidden")).await?;
    let message = refused.message("Ready");
    ensure!(message.contains(FINALIZER) && message.contains("databases"), "{message}");
    ensure!(case.versions().await?.is_empty(), "{:?}", case.versions().await?);
    // It was never held, so it goes.
    case.delete(DATABASE, "a").await?;
    case.wait_gone(DATABASE, "a").await?;
    case.apply_database("b", "mongo").await?;
    rights(&case).await?;
    let held = case.wait_for(seconds(40), DATABASE, "b", "Ready", |database| database.is("Ready")).await?;
    ensure!(finalizers(&held) == [FINALIZER]);
    Ok(())
}

pub(crate) async fn case_70_a_plugin_exports_only_the_hooks_that_it_needs(case: Case) -> Outcome {
    rights(&case).await?;
    let folder = case.probes(&[
        Probe::new("finalizes", "mongo").finalizing().script(&usual()),
        Probe::new("renders", "mysql").script(&usual()),
    ])?;
    let _host = case.host().plugins(&folder).start().await?;
    for (name, kind, held) in [("a", "mongo", true), ("b", "mysql", false)] {
        let database = case.database(name, kind).await?;
        ensure!(finalizers(&database).is_empty() != held, "{database}");
        case.delete(DATABASE, name).await?;
        case.wait_gone(DATABASE, name).await?;
    }
    Ok(())
}

/// Data that the finalization itself renders is not left out, whatever the object's owner has said of what is.
pub(crate) async fn a_finalization_keeps_the_data_that_it_renders(case: Case) -> Outcome {
    rights(&case).await?;
    let script = storage::script("4.0", "line");
    let kept = script.pointer("/children/2").context("the claim of the script")?;
    let held = json!({"script": {"children": [kept]}, "waiting": {"reason": "Dumping", "message": "for ever"}});
    let kinds = [JOB, POD, SERVICE, SECRET, CLAIM];
    let folder = case.probes(&[plugin().children(&kinds).script(&script)])?;
    let _host = case.host().plugins(&folder).start().await?;
    let words = json!({probe::FINALIZE: held.to_string(), "keelson.dev/delete-data": "PersistentVolumeClaim/a-data"});
    let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"type": "mongo"},
        "metadata": {"name": "a", "annotations": words}});
    case.apply(&database.to_string()).await?;
    let claim = case.wait(CLAIM, "a-data", "there", |_| true).await?;
    case.wait(DATABASE, "a", "listed", |d| d.at("/status/children").to_string().contains("a-data")).await?;
    case.delete(DATABASE, "a").await?;
    let waiting = case.wait(DATABASE, "a", "waiting", |database| database.is_not("Ready", "Dumping")).await?;
    ensure!(waiting.at("/status/children").to_string().contains("a-data"), "{waiting}");
    case.wait_gone(POD, "a").await?;
    let same =
        async || Ok(case.find(CLAIM, "a-data").await?.is_some_and(|now| now.uid() == claim.uid() && !now.going()));
    case.throughout("the claim stands", seconds(4), same).await?;
    case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {FORCE: "true"}}})).await?;
    case.wait_gone(DATABASE, "a").await?;
    case.throughout("it outlives its Database", seconds(4), same).await
}

/// What an orphaning delete has cut loose stays loose, a password too.
pub(crate) async fn an_orphaned_password_is_not_owned_again(case: Case) -> Outcome {
    rights(&case).await?;
    let secrets = json!([{"name": "{name}-credentials", "key": "password"}]);
    let script = json!({"children": [probe::service()], "secrets": secrets});
    let kinds = [JOB, POD, SERVICE, SECRET];
    let folder = case.probes(&[plugin().children(&kinds).script(&script)])?;
    let _host = case.host().plugins(&folder).start().await?;
    let reads = json!({"script": {"secrets": secrets}, "waiting": {"reason": "Dumping", "message": "for ever"}});
    database(&case, "a", &reads).await?;
    let password = case.get(SECRET, "a-credentials").await?;
    case.delete_with(DATABASE, "a", "Orphan").await?;
    case.wait(DATABASE, "a", "finalizing", |database| database.is_not("Ready", "Dumping")).await?;
    let loose = async || {
        let now = case.get(SECRET, "a-credentials").await?;
        Ok(now.uid() == password.uid() && now.owner().is_empty() && now.at("/data") == password.at("/data"))
    };
    case.throughout("it is nobody's while the object is finalized", seconds(4), loose).await?;
    case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {FORCE: "true"}}})).await?;
    case.wait_gone(DATABASE, "a").await?;
    case.throughout("it stays when the object has gone", seconds(6), loose).await
}

/// Nobody knows what a plugin would serve whose document cannot be read: what it has promised is kept.
pub(crate) async fn a_document_that_cannot_be_read_takes_no_finalizer_off(case: Case) -> Outcome {
    rights(&case).await?;
    let forever = json!({"script": {}, "waiting": {"reason": "Dumping", "message": "for ever"}});
    let folder = case.probes(&[plugin(), Probe::new("other", "mysql").script(&usual())])?;
    let mut host = case.host().plugins(&folder).start().await?;
    for name in ["stands", "goes"] {
        database(&case, name, &forever).await?;
    }
    case.delete(DATABASE, "goes").await?;
    case.wait(DATABASE, "goes", "waiting", |database| database.is_not("Ready", "Dumping")).await?;
    host.kill()?;
    let document = std::fs::read(folder.join("probe.yaml"))?;
    std::fs::write(folder.join("probe.yaml"), "{apiVersion: keelson.dev/v1alpha1, spec: [")?;
    let mut host = case.host().plugins(&folder).start().await?;
    for name in ["stands", "goes"] {
        case.wait(DATABASE, name, "told", |database| database.is_not("Ready", "NoPlugin")).await?;
    }
    let held = async || {
        Ok(finalizers(&case.get(DATABASE, "stands").await?) == [FINALIZER]
            && case.find(DATABASE, "goes").await?.is_some_and(|database| finalizers(&database) == [FINALIZER]))
    };
    case.throughout("both are held", seconds(4), held).await?;
    host.kill()?;
    std::fs::write(folder.join("probe.yaml"), document)?;
    let _host = case.host().plugins(&folder).start().await?;
    case.wait(DATABASE, "stands", "Ready again", |database| database.is("Ready")).await?;
    case.wait(DATABASE, "goes", "waiting as before", |database| database.is_not("Ready", "Dumping")).await.map(drop)
}
