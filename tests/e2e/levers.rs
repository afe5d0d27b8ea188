//! What users and platform engineers can set: pausing, the resync, a render by request, what is passed to children.

use crate::{crd, finalize};
use keelson_tests::{prelude::*, probe};

const PAUSED: &str = "keelson.dev/paused";
const REQUESTED: &str = "keelson.dev/render-requested-at";

fn pause(yes: bool) -> Value {
    json!({"metadata": {"annotations": {PAUSED: if yes { json!("true") } else { Value::Null }}}})
}

fn paused(database: &Object) -> bool {
    database.is("Paused") && database.condition("Ready").is_some_and(|ready| ready.status == "Unknown")
}

async fn wait(case: &Case, condition: &str, name: &str) -> Outcome {
    let (condition, name) = (format!("--for=condition={condition}"), format!("database/{name}"));
    case.cluster.kubectl(&["-n", &case.namespace, "wait", &condition, &name, "--timeout=20s"]).await.map(drop)
}

async fn reasons(case: &Case, name: &str) -> anyhow::Result<Vec<String>> {
    Ok(case.events(name).await?.iter().map(|event| event.text("/reason").to_owned()).collect())
}

fn usual(image: &str) -> Value {
    let mut pod = probe::pod();
    pod["spec"]["containers"][0]["image"] = image.into();
    json!({"children": [probe::service(), pod]})
}

pub(crate) async fn case_11_a_paused_database_can_be_deleted(case: Case) -> Outcome {
    finalize::rights(&case).await?;
    let folder = case.plugin_folder()?;
    std::fs::remove_file(folder.join("mongo.yaml"))?;
    let ends = json!({"children": [probe::service()]});
    Probe::new("ends", "mongo").finalizing().script(&ends).write(&folder)?;
    let _host = case.host().plugins(&folder).start().await?;
    // One that goes at once, one that is finalized first, one in the foreground.
    for (name, kind, how) in [("a", "mysql", "Background"), ("b", "mongo", "Background"), ("c", "mysql", "Foreground")]
    {
        case.database(name, kind).await?;
        case.patch(DATABASE, name, &pause(true)).await?;
        let database = case.wait(DATABASE, name, "paused", paused).await?;
        ensure!(database.condition("Paused").is_some_and(|paused| paused.reason == "PausedByAnnotation"), "{database}");
        case.delete_with(DATABASE, name, how).await?;
        case.wait_gone(DATABASE, name).await?;
        case.wait_gone(SERVICE, name).await?;
    }
    // While it waits, it says both.
    let forever = json!({"waiting": {"reason": "Dumping", "message": "for ever"}}).to_string();
    case.database("d", "mongo").await?;
    let annotations = json!({"metadata": {"annotations": {probe::FINALIZE: forever, PAUSED: "true"}}});
    case.patch(DATABASE, "d", &annotations).await?;
    case.wait(DATABASE, "d", "paused", paused).await?;
    case.delete(DATABASE, "d").await?;
    let both = |database: &Object| database.is("Paused") && database.is_not("Ready", "Dumping");
    case.wait(DATABASE, "d", "paused, and waiting", both).await?;
    Ok(())
}

pub(crate) async fn a_pause_holds_back_writes_and_says_which(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&usual("mongo:4.0"))])?;
    let host = case.host().plugins(&folder).start().await?;
    // One that was never paused can be waited for, too.
    case.database("a", "mongo").await?;
    wait(&case, "Paused=false", "a").await?;
    case.patch(DATABASE, "a", &pause(true)).await?;
    wait(&case, "Paused", "a").await?;
    let held = case.wait(DATABASE, "a", "paused", paused).await?;
    ensure!(held.message("Paused").contains("nothing is held back"), "{held}");
    ensure!(held.message("Ready").contains("all that stands is ready"), "{held}");
    let pod = case.get(POD, "a").await?;
    case.quiet(seconds(2)).await?;
    let writes = case.writes()?.filter(|call| call.resource != "databases" && call.resource != "events").len();

    // Children are still seen, and what would become of them is said: an edit, one that is deleted, a bad edit.
    case.patch(POD, "a", &json!({"metadata": {"labels": {"app": "mine"}}})).await?;
    case.delete(SERVICE, "a").await?;
    let says = async |words: &[&str]| {
        let says = |d: &Object| paused(d) && words.iter().all(|word| d.message("Paused").contains(word));
        case.wait(DATABASE, "a", &format!("to say {words:?}"), says).await
    };
    says(&["Pod a would be changed", "Service a would be made"]).await?;
    let before = case.get(DATABASE, "a").await?;
    let bad = json!({"fail": {"reason": "InvalidSpec", "message": "no such flavour", "fields": ["/spec/x"]}});
    case.scripted("a", "mongo", &bad).await?;
    case.patch(DATABASE, "a", &pause(true)).await?;
    says(&["it would be refused", "InvalidSpec", "no such flavour"]).await?;
    case.scripted("a", "mongo", &usual("mongo:4.2")).await?;
    says(&["Pod a would be changed", "Service a would be made"]).await?;
    case.quiet(seconds(3)).await?;
    ensure!(case.find(SERVICE, "a").await?.is_none() && case.get(POD, "a").await?.uid() == pod.uid());
    let now = case.writes()?.filter(|call| call.resource != "databases" && call.resource != "events").len();
    ensure!(now == writes, "a child was written to: {:?}", case.writes()?);
    let after = case.get(DATABASE, "a").await?;
    let since = |d: &Object| {
        d.at("/status/conditions")
            .as_array()
            .and_then(|all| all.iter().find(|c| c["type"] == "Paused").cloned())
            .map(|c| c["lastTransitionTime"].clone())
    };
    ensure!(since(&before) == since(&after), "moved without a transition");

    // A host that starts anew keeps to it, and says nothing twice.
    let _host = host.restart().await?;
    says(&["Service a would be made"]).await?;
    case.quiet(seconds(2)).await?;
    ensure!(case.find(SERVICE, "a").await?.is_none());
    ensure!(reasons(&case, "a").await?.iter().filter(|reason| *reason == "Paused").count() == 1);

    // It goes on at once.
    case.patch(DATABASE, "a", &pause(false)).await?;
    wait(&case, "Paused=false", "a").await?;
    case.wait(SERVICE, "a", "back", |service| service.owner() == after.uid()).await?;
    let mended = |pod: &Object| pod.text("/spec/containers/0/image") == "mongo:4.2" && pod.label("app") == Some("db");
    case.wait(POD, "a", "mended", mended).await?;
    wait(&case, "Ready", "a").await?;
    case.until("it to be told", seconds(10), async || Ok(reasons(&case, "a").await?.contains(&"Resumed".to_owned())))
        .await?;
    Ok(())
}

pub(crate) async fn a_database_made_paused_gets_nothing_yet(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"type": "mysql"},
        "metadata": {"name": "a", "annotations": {PAUSED: "true"}}});
    case.apply(&database.to_string()).await?;
    wait(&case, "Paused", "a").await?;
    case.quiet(seconds(3)).await?;
    ensure!(case.versions().await?.is_empty(), "{:?}", case.versions().await?);
    // Only "true" counts, and a wait for Ready right after tells the truth.
    case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {PAUSED: "yes"}}})).await?;
    wait(&case, "Ready", "a").await?;
    ensure!(case.get(POD, "a").await?.is("Ready"));
    Ok(())
}

pub(crate) async fn case_69_the_resync_fires_though_nothing_happens(case: Case) -> Outcome {
    const PERIOD: f64 = 4.0;
    const ROUNDS: f64 = 4.0;
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&usual("mongo:4.0"))])?;
    let proxy = case.proxy().await?;
    let host = case.host().plugins(&folder).through(&proxy).arg("--resync").arg("4s").start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let renders = async || anyhow::Ok(host.metrics().await?.sum("keelson_renders_total", &[]));
    // From one resync on, each renders once; none comes more than a tenth too early, and every one comes.
    let before = renders().await?;
    case.until("a first one", seconds(20), async || Ok(renders().await? > before)).await?;
    let (began, before) = (std::time::Instant::now(), renders().await?);
    let all = seconds((PERIOD * ROUNDS) as u64 * 3);
    case.until("the next ones", all, async || Ok(renders().await? >= before + ROUNDS)).await?;
    let least = PERIOD * (ROUNDS - 1.0) * 0.9;
    ensure!(began.elapsed().as_secs_f64() > least, "{ROUNDS} in {:?}", began.elapsed());
    let late = case.writes()?.len();
    case.until("one more", seconds(20), async || Ok(renders().await? >= before + ROUNDS + 1.0)).await?;
    ensure!(case.writes()?.len() == late, "a resync of what stands writes nothing");
    Ok(())
}

pub(crate) async fn a_render_can_be_asked_for(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&usual("mongo:4.0"))])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let (versions, renders) = (case.versions().await?, async |host: &Host| {
        anyhow::Ok(host.metrics().await?.sum("keelson_renders_total", &[]))
    });
    let mut before = renders(&host).await?;
    for value in ["2026-12-01T00:00:00Z", "again, please"] {
        case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {REQUESTED: value}}})).await?;
        let done = |database: &Object| database.text("/status/renderRequestedAt") == value && database.is("Ready");
        case.wait(DATABASE, "a", "rendered as asked", done).await?;
        case.quiet(seconds(1)).await?;
        let now = renders(&host).await?;
        ensure!((now - before - 1.0).abs() < 0.5, "{} renders for one wish", now - before);
        before = now;
        let note = async || Ok(case.events("a").await?.iter().any(|event| event.text("/note").contains(value)));
        case.until("an Event", seconds(10), note).await?;
    }
    ensure!(case.versions().await? == versions, "the same request gives the same children");
    // A new host knows what was done.
    let events = case.events("a").await?.len();
    let _host = host.restart().await?;
    case.quiet(seconds(2)).await?;
    ensure!(case.events("a").await?.len() == events, "{:?}", case.events("a").await?);
    case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {REQUESTED: null}}})).await?;
    case.wait(DATABASE, "a", "without", |database| database.at("/status/renderRequestedAt").is_null()).await?;
    Ok(())
}

pub(crate) async fn a_plugin_is_asked_again_when_it_wants(case: Case) -> Outcome {
    let mut again = usual("mongo:4.0");
    again["lookAgainAfter"] = 5.into();
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&again)])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let renders = async || anyhow::Ok(host.metrics().await?.sum("keelson_renders_total", &[]));
    let (before, writes) = (renders().await?, case.writes()?.len());
    case.until("two more renders", seconds(30), async || Ok(renders().await? >= before + 2.0)).await?;
    // What happens in between makes it forget nothing.
    case.patch(POD, "a", &json!({"metadata": {"annotations": {"x": "y"}}})).await?;
    let before = renders().await?;
    case.until("one more", seconds(15), async || Ok(renders().await? > before)).await?;
    ensure!(case.writes()?.len() == writes, "written: {:?}", Calls(case.writes()?.0.split_off(writes)));
    Ok(())
}

pub(crate) async fn labels_and_annotations_are_passed_by_an_allow_list(case: Case) -> Outcome {
    finalize::rights(&case).await?;
    let template = json!({"metadata": {"labels": {"tier": "rendered"}},
        "spec": {"containers": [{"name": "c", "image": "mongo:4.0"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "{name}"},
        "spec": {"selector": {"matchLabels": "{selector}"}, "template": template}});
    let passed = json!({"passed": {"labels": ["team", "tier", "cost.example.com/*"],
        "annotations": ["prometheus.io/scrape", "mesh.example.com/*"]}});
    let script = json!({"children": [probe::service(), probe::pod(), deployment]});
    let plugin = Probe::new("probe", "mongo").children(&[DEPLOYMENT, POD, SERVICE]).script(&script);
    let folder = case.probes(&[plugin.clone().spec(&passed)])?;
    let mut host = case.host().plugins(&folder).start().await?;
    let database = |labels: Value, annotations: Value| {
        json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"type": "mongo"},
            "metadata": {"name": "a", "labels": labels, "annotations": annotations}})
        .to_string()
    };
    let labels = json!({"team": "x", "tier": "of the database".replace(' ', "-"), "cost.example.com/centre": "7",
        "other": "no", "app.kubernetes.io/instance": "argo-app"});
    let annotations = json!({"prometheus.io/scrape": "true", "prometheus.io/port": "9", "mesh.example.com/inject": "yes",
        "argocd.argoproj.io/tracking-id": "a:b/c:d/e"});
    case.apply(&database(labels, annotations)).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let all = [
        (POD, "/metadata"),
        (SERVICE, "/metadata"),
        (DEPLOYMENT, "/metadata"),
        (DEPLOYMENT, "/spec/template/metadata"),
    ];
    for (kind, at) in all {
        let child = case.get(kind, "a").await?;
        let (labels, annotations) = (child.at(&format!("{at}/labels")), child.at(&format!("{at}/annotations")));
        ensure!(
            labels["team"] == "x" && labels["cost.example.com/centre"] == "7" && labels["other"].is_null(),
            "{child}"
        );
        ensure!(labels["tier"] == if at == "/metadata" { "of-the-database" } else { "rendered" }, "{child}");
        ensure!(labels["app.kubernetes.io/instance"] != "argo-app", "{child}");
        ensure!(
            annotations["prometheus.io/scrape"] == "true" && annotations["mesh.example.com/inject"] == "yes",
            "{child}"
        );
        ensure!(
            annotations["prometheus.io/port"].is_null() && annotations["argocd.argoproj.io/tracking-id"].is_null(),
            "{child}"
        );
    }
    ensure!(!case.get(SERVICE, "a").await?.at("/spec/selector").to_string().contains("team"));
    ensure!(!case.get(DEPLOYMENT, "a").await?.at("/spec/selector").to_string().contains("team"));
    // What goes from the Database goes from its children; what another has put on them stays.
    let pod = case.patch(POD, "a", &json!({"metadata": {"labels": {"theirs": "1"}}})).await?;
    case.apply(&database(json!({"team": "y"}), json!({}))).await?;
    let follows = |child: &Object| {
        child.label("team") == Some("y")
            && child.label("cost.example.com/centre").is_none()
            && child.annotation("mesh.example.com/inject").is_none()
    };
    for kind in [POD, SERVICE, DEPLOYMENT] {
        case.wait(kind, "a", "like its Database", follows).await?;
    }
    let now = case.get(POD, "a").await?;
    ensure!(now.uid() == pod.uid() && now.label("theirs") == Some("1"), "{now}");
    // Nothing passes by default.
    host.kill()?;
    case.probes(&[plugin])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.wait(SERVICE, "a", "bare", |service| service.label("team").is_none()).await?;
    case.quiet(seconds(2)).await
}

pub(crate) async fn case_74_a_burst_of_edits_is_rendered_at_most_once_each(case: Case) -> Outcome {
    const EDITS: usize = 60;
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&usual("mongo:4.0"))])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let renders = async || anyhow::Ok(host.metrics().await?.sum("keelson_renders_total", &[]));
    // A Pod's heartbeats give none.
    let before = renders().await?;
    for beat in 0..10 {
        case.patch(POD, "a/status", &json!({"status": {"message": format!("beat {beat}")}})).await?;
    }
    case.quiet(seconds(2)).await?;
    ensure!(renders().await? <= before, "heartbeats gave {} renders", renders().await? - before);

    let service = |i: usize| {
        let mut service = probe::service();
        service["metadata"]["labels"] = json!({"edit": i.to_string()});
        json!({"children": [service, probe::pod()]}).to_string()
    };
    for i in 1..=EDITS {
        case.patch(DATABASE, "a", &json!({"metadata": {"annotations": {probe::SCRIPT: service(i)}}})).await?;
    }
    let last = EDITS.to_string();
    case.wait(SERVICE, "a", "as the last edit says", |service| service.label("edit") == Some(&*last)).await?;
    case.quiet(seconds(2)).await?;
    let now = renders().await? - before;
    ensure!((1.0..=EDITS as f64).contains(&now), "{EDITS} edits gave {now} renders");
    ensure!(case.get(SERVICE, "a").await?.label("edit") == Some(&*last));
    Ok(())
}

pub(crate) async fn case_68_a_plugin_that_fails_for_a_while_recovers_alone(case: Case) -> Outcome {
    let plugin = Probe::new("probe", "mongo").manifest(&json!({"usesTime": true}));
    let folder = case.probes(&[plugin.script(&usual("mongo:4.0"))])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    let (pod, service) = (case.get(POD, "a").await?, case.get(SERVICE, "a").await?);
    // Until the next full minute but one, by the only clock that a plugin has.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let until = (now / 60 + 1 + u64::from(now % 60 > 50)) * 60;
    let mut script = usual("mongo:4.0");
    script["fail"] = json!({"class": "internal", "reason": "LostItsWay", "message": "for a while"});
    script["failUntil"] = until.into();
    script["status"] = json!({"message": "found again"});
    case.scripted("a", "mongo", &script).await?;
    case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "LostItsWay")).await?;
    let failures = async || anyhow::Ok(host.metrics().await?.sum("keelson_renders_total", &[("result", "Internal")]));
    let recovered = |database: &Object| database.is("Ready") && database.text("/status/message") == "found again";
    case.wait_for(seconds(200), DATABASE, "a", "well again, by itself", recovered).await?;
    // 0.2 s, doubled to a minute: ten tries or so in that time, not hundreds.
    ensure!((3.0..=14.0).contains(&failures().await?), "{} tries", failures().await?);
    for (kind, before) in [(POD, pod), (SERVICE, service)] {
        let after = case.get(kind, "a").await?;
        ensure!(after.uid() == before.uid() && after.at("/spec") == before.at("/spec"), "{before} became {after}");
    }
    Ok(())
}

/// As the tutorial has it, with a schema of status: what is written there would raise the generation.
const WITHOUT_SUBRESOURCE: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.zalando.org}
spec:
  group: zalando.org
  scope: Namespaced
  names: {kind: Database, plural: databases, singular: database}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {type: {type: string}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}";

pub(crate) async fn case_66_a_status_of_ours_starts_no_reconcile(case: Case) -> Outcome {
    crd::install(&case, WITHOUT_SUBRESOURCE).await?;
    let host = case.host().start().await?;
    case.apply_database("a", "mongo").await?;
    case.wait(POD, "a", "running", |pod| pod.is("Ready")).await?;
    let none = async |host: &Host, database: &Object| {
        case.quiet(seconds(2)).await?;
        let walks = host.metrics().await?.sum("controller_runtime_reconcile_total", &[]);
        let walked = async || anyhow::Ok(host.metrics().await?.sum("controller_runtime_reconcile_total", &[]) > walks);
        case.throughout("nothing is walked", seconds(8), async || Ok(!walked().await?)).await?;
        let now = case.get(DATABASE, "a").await?;
        ensure!(now.version() == database.version(), "{database} became {now}");
        Ok(())
    };
    let database = case.get(DATABASE, "a").await?;
    ensure!(database.at("/status").is_null() && database.at("/metadata/generation") == 1, "{database}");
    none(&host, &database).await?;
    drop(host);
    // With the subresource, the same: the event of our own write is known already.
    crd::install_shipped(&case).await?;
    let host = case.host().start().await?;
    let database = case.wait_for(seconds(60), DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    none(&host, &database).await
}

pub(crate) async fn objects_of_plugins_that_all_fail_are_told(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let component = std::fs::read(folder.join("probe.wasm"))?;
    std::fs::remove_file(folder.join("probe.wasm"))?;
    let host = case.host().plugins(&folder).spawn().await?;
    case.apply_database("a", "mongo").await?;
    let database = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "PluginUnavailable")).await?;
    ensure!(database.message("Ready").contains("probe.wasm"), "{database}");
    case.until("one Event", seconds(10), async || Ok(case.events("a").await?.len() == 1)).await?;
    // It watches, and yet serves nothing.
    let (status, body) = host.probe("/readyz").await?;
    ensure!(status == 503 && body.contains("no plugin serves"), "{status} {body}");
    std::fs::write(folder.join("probe.wasm"), component)?;
    let _host = host.restart().await?;
    case.wait(DATABASE, "a", "served", |database| !database.is_not("Ready", "PluginUnavailable")).await?;
    Ok(())
}
