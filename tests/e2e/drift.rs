//! What others change of what is ours, and those who do it again and again.

use crate::strategies::{may_also, refused};
use keelson_tests::{prelude::*, probe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SERVICE_ACCOUNT: Kind = Kind::namespaced("v1", "ServiceAccount", "serviceaccounts");

pub(crate) async fn case_65_drift_is_repaired_without_a_generation(case: Case) -> Outcome {
    may_also(&case, "", "configmaps, serviceaccounts").await?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{name}", "labels": {"x": "1"}},
        "data": {"a": "1", "b": "2"}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "{name}", "annotations": {"x": "1"}},
        "automountServiceAccountToken": false});
    let children = json!({"children": [map, account, probe::service(), probe::pod()]});
    let kinds = [CONFIG_MAP, SERVICE_ACCOUNT, SERVICE, POD];
    let folder = case.probes(&[Probe::new("probe", "mongo").children(&kinds).script(&children)])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    let edits = [
        (CONFIG_MAP, json!({"data": {"a": "mine"}}), "/data/a"),
        (CONFIG_MAP, json!({"data": {"b": null}}), "/data/b"),
        (CONFIG_MAP, json!({"data": null}), "/data"),
        (CONFIG_MAP, json!({"metadata": {"labels": {"x": null}}}), "/metadata/labels/x"),
        (SERVICE_ACCOUNT, json!({"automountServiceAccountToken": true}), "/automountServiceAccountToken"),
        (SERVICE_ACCOUNT, json!({"metadata": {"annotations": {"x": "2"}}}), "/metadata/annotations/x"),
        (SERVICE, json!({"spec": {"selector": null}}), "/spec/selector"),
        (SERVICE, json!({"metadata": {"ownerReferences": null}}), "/metadata/ownerReferences"),
    ];
    for (kind, edit, pointer) in &edits {
        let before = case.get(*kind, "a").await?;
        let known = case.writes()?.len();
        case.patch(*kind, "a", edit).await.with_context(|| format!("the edit {edit}"))?;
        let same = |object: &Object| object.at(pointer) == before.at(pointer);
        case.wait_for(seconds(10), *kind, "a", &format!("as it was before {edit}"), same).await?;
        ensure!(case.get(*kind, "a").await?.uid() == before.uid(), "{edit}: it was made again");
        case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
        let writes = async || Ok(!Calls(case.writes()?.0.split_off(known)).resource(kind.plural).is_empty());
        case.until("the repair to be in the log", seconds(5), writes).await?;
        let made = Calls(case.writes()?.0.split_off(known)).resource(kind.plural);
        ensure!(made.len() == 1, "{edit} was put back by {made:?}");
    }
    // What changed while no host looked is found by the next.
    let mut host = host;
    host.kill()?;
    case.patch(CONFIG_MAP, "a", &json!({"data": {"a": "mine", "theirs": "1"}})).await?;
    case.patch(SERVICE_ACCOUNT, "a", &json!({"automountServiceAccountToken": true})).await?;
    let _host = host.restart().await?;
    case.wait(CONFIG_MAP, "a", "as rendered", |map| map.text("/data/a") == "1").await?;
    case.wait(SERVICE_ACCOUNT, "a", "as rendered", |it| it.at("/automountServiceAccountToken") == false).await?;
    case.quiet(seconds(5)).await?;
    ensure!(case.get(CONFIG_MAP, "a").await?.text("/data/theirs") == "1", "taken away from others");
    ensure!(refused(&case)?.is_empty(), "{:?}", refused(&case)?);
    Ok(())
}

/// A controller that forces the Service `a` into its own shape, whenever it is in another.
struct Other {
    goes_on: Arc<AtomicBool>,
    writes: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Other {
    /// `content` is how the patch is to be read, and says what it does.
    fn start(case: &Case, content: &'static str, patch: Value, has_its_way: fn(&Object) -> bool) -> Self {
        let (goes_on, writes) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (case, on, count) = (case.clone(), goes_on.clone(), writes.clone());
        let task = tokio::spawn(async move {
            let force = if content.contains("apply") { "&force=true" } else { "" };
            let path = format!("{}?fieldManager=other-controller{force}", SERVICE.path(&case.namespace, "a"));
            while on.load(Ordering::Relaxed) {
                if case.get(SERVICE, "a").await.is_ok_and(|service| !has_its_way(&service)) {
                    let forced = case.cluster.send(http::Method::PATCH, &path, content, &patch).await;
                    count.fetch_add(usize::from(forced.is_ok()), Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { goes_on, writes, task }
    }

    fn labels(case: &Case, labels: Value, has_its_way: fn(&Object) -> bool) -> Self {
        let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "labels": labels}});
        Self::start(case, "application/apply-patch+yaml", body, has_its_way)
    }

    async fn stop(self) -> anyhow::Result<usize> {
        self.goes_on.store(false, Ordering::Relaxed);
        self.task.await?;
        Ok(self.writes.load(Ordering::Relaxed))
    }
}

pub(crate) async fn two_writers_that_fight_are_told(case: Case) -> Outcome {
    let host = case.host().start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let before = case.writes()?.len();
    let other = Other::labels(&case, json!({"app": "theirs"}), |service| service.label("app") == Some("theirs"));
    let told = |database: &Object| database.is_not("Ready", "FieldConflict");
    let database = case.wait(DATABASE, "a", "told", told).await?;
    let words = database.message("Ready");
    for word in ["Service a", "/metadata/labels/app", "other-controller"] {
        ensure!(words.contains(word), "{word}: {words}");
    }
    ensure!(database.is("Degraded"), "{database}");
    // It is said all the while, once, and the writes get rarer.
    let services = || -> anyhow::Result<Calls> { Ok(Calls(case.writes()?.0.split_off(before)).resource("services")) };
    let first = services()?.len();
    ensure!(first <= 6, "{:?}", services()?);
    let rarely = async || Ok(told(&case.get(DATABASE, "a").await?) && services()?.len() <= first + 2);
    case.throughout("it is told, and hardly fought", seconds(25), rarely).await?;
    let warnings = async || {
        let events = case.events("a").await?;
        anyhow::Ok(events.iter().filter(|event| event.text("/type") == "Warning").count())
    };
    ensure!(warnings().await? == 1, "{:?}", case.events("a").await?);
    // The other stops: nobody has to do anything.
    let theirs = other.stop().await?;
    ensure!(theirs >= 5, "the other wrote {theirs} times only");
    case.wait_for(seconds(60), SERVICE, "a", "as rendered", |service| service.label("app") == Some("db")).await?;
    case.wait_for(seconds(60), DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(4)).await?;
    ensure!(refused(&case)?.is_empty() && host.log_lines(&["panicked"]).is_empty());
    Ok(())
}

/// Somebody takes away the label that children are found by, again and again.
pub(crate) async fn a_fight_about_our_label_is_told(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let before = case.writes()?.len();
    let other = Other::labels(&case, json!({"keelson.dev/instance": "theirs"}), |service| {
        service.label("keelson.dev/instance") == Some("theirs")
    });
    case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "FieldConflict")).await?;
    let count = || anyhow::Ok(Calls(case.writes()?.0.split_off(before)).resource("services").len());
    let first = count()?;
    case.throughout("it is hardly fought", seconds(15), async || Ok(count()? <= first + 4)).await?;
    other.stop().await?;
    case.wait_for(seconds(60), DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    Ok(())
}

/// Of a list, an item is replaced by another: each repair takes a refused apply and a patch.
pub(crate) async fn a_fight_about_a_list_is_told(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let before = case.writes()?.len();
    let ports = json!([{"port": 27017, "$patch": "delete"}, {"port": 1, "targetPort": 1}]);
    let patch = json!({"spec": {"ports": ports}});
    let other = Other::start(&case, "application/strategic-merge-patch+json", patch, |service| {
        service.at("/spec/ports/0/port") == 1
    });
    let told = |database: &Object| database.is_not("Ready", "FieldConflict");
    let database = case.wait(DATABASE, "a", "told", told).await?;
    ensure!(
        database.message("Ready").contains("/spec/ports") && database.message("Ready").contains("other-controller"),
        "{database}"
    );
    let count = || anyhow::Ok(Calls(case.writes()?.0.split_off(before)).resource("services").len());
    let first = count()?;
    ensure!(first <= 6 * 3, "{first} writes to five repairs");
    case.throughout("it is hardly fought", seconds(15), async || Ok(count()? <= first + 3)).await?;
    other.stop().await?;
    case.wait_for(seconds(60), DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    ensure!(case.get(SERVICE, "a").await?.at("/spec/ports/0/port") == 27017);
    case.quiet(seconds(3)).await
}

pub(crate) async fn case_49_a_status_write_leaves_others_fields_alone(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let said = |n: usize| json!({"children": [probe::pod(), probe::service()], "status": {"message": format!("{n}")}});
    case.scripted("a", "mongo", &said(0)).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let path = DATABASE.path(&case.namespace, "a") + "?fieldManager=other&force=true";
    const WRITES: usize = 12;
    for n in 1..=WRITES {
        let theirs = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind,
            "metadata": {"name": "a", "annotations": {"other/n": n.to_string()}}, "spec": {"type": "mongo"}});
        case.scripted("a", "mongo", &said(n)).await?;
        case.cluster.send(http::Method::PATCH, &path, "application/apply-patch+yaml", &theirs).await?;
        case.wait(DATABASE, "a", "told", |database| database.text("/status/message") == n.to_string()).await?;
    }
    let database = case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let managed = database.at("/metadata/managedFields").as_array().cloned().unwrap_or_default();
    let theirs = managed.iter().find(|entry| entry["manager"] == "other").context("the other's entry is gone")?;
    ensure!(theirs["fieldsV1"]["f:spec"]["f:type"].is_object(), "{theirs:#}");
    ensure!(theirs["fieldsV1"]["f:metadata"]["f:annotations"]["f:other/n"].is_object(), "{theirs:#}");
    // Ours are of the status, and nothing else.
    for entry in managed.iter().filter(|entry| entry["manager"] == "keelson") {
        let fields: Vec<&String> = entry["fieldsV1"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
        ensure!(entry["subresource"] == "status" && fields == ["f:status"], "{entry:#}");
    }
    Ok(())
}

pub(crate) async fn case_67_a_concurrent_writer_on_the_parent(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let host = case.host().plugins(&folder).start().await?;
    let said = |n: usize| json!({"children": [probe::pod(), probe::service()], "status": {"message": format!("{n}")}});
    case.scripted("a", "mongo", &said(0)).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let states = case.record(DATABASE, "a").await?;
    // Another writes to it all the while, to the object and to its status.
    let goes_on = Arc::new(AtomicBool::new(true));
    let writer = tokio::spawn({
        let (case, goes_on) = (case.clone(), goes_on.clone());
        async move {
            let mut n = 0;
            while goes_on.load(Ordering::Relaxed) {
                n += 1;
                case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {"other/n": format!("{n}")}}})).await?;
                let condition = json!({"type": "Theirs", "status": "True", "reason": "Other", "message": format!("{n}"),
                    "lastTransitionTime": "2026-01-01T00:00:00Z"});
                let body = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind,
                    "metadata": {"name": "a"}, "status": {"conditions": [condition]}});
                let path = DATABASE.path(&case.namespace, "a/status") + "?fieldManager=other&force=true";
                case.cluster.send(http::Method::PATCH, &path, "application/apply-patch+yaml", &body).await?;
            }
            anyhow::Ok(n)
        }
    });
    for n in 1..=10 {
        case.scripted("a", "mongo", &said(n)).await?;
        case.wait(DATABASE, "a", "told", |database| database.text("/status/message") == n.to_string()).await?;
    }
    goes_on.store(false, Ordering::Relaxed);
    let theirs = writer.await??;
    case.quiet(seconds(4)).await?;
    let database = case.get(DATABASE, "a").await?;
    ensure!(database.is("Ready") && database.text("/status/message") == "10", "{database}");
    let condition = database.condition("Theirs").context("the other's condition is lost")?;
    ensure!(condition.message == theirs.to_string(), "{condition:?}");
    let told = |words: &str| states.saw(|database| database.at("/status").to_string().contains(words));
    ensure!(!told("has been modified") && host.log_lines(&["has been modified"]).is_empty());
    ensure!(!states.saw(|database| database.condition("Ready").is_some_and(|ready| ready.status != "True")));
    ensure!(refused(&case)?.is_empty(), "{:?}", refused(&case)?);
    Ok(())
}
