//! Changes that cannot be made in place: by the child's strategy, once, and never by asking for them again and again.

use crate::specs;
use keelson_tests::{prelude::*, probe};

const STATEFUL_SET: Kind = Kind::namespaced("apps/v1", "StatefulSet", "statefulsets");

/// Everything with these kinds, for the shipped ServiceAccount in this namespace.
pub(crate) async fn may_also(case: &Case, group: &str, resources: &str) -> Outcome {
    let verbs = "[get, list, watch, create, patch, delete]";
    case.also_may(&format!("[{{apiGroups: ['{group}'], resources: [{resources}], verbs: {verbs}}}]")).await
}

/// Writes that were meant and refused; a dry run asks.
pub(crate) fn refused(case: &Case) -> anyhow::Result<Calls> {
    Ok(case.writes()?.filter(|call| call.code >= 400 && !call.uri.contains("dryRun")))
}

pub(crate) fn deletes(case: &Case, kind: Kind) -> anyhow::Result<Calls> {
    Ok(case.writes()?.resource(kind.plural).verb("delete").filter(|call| call.code < 300))
}

/// A Pod of the parent's name whose container has these fields too.
fn pod_with(container: &Value) -> Value {
    let mut pod = probe::pod();
    for (name, value) in container.as_object().into_iter().flatten() {
        pod["spec"]["containers"][0][name] = value.clone();
    }
    pod
}

fn with_env(value: &str) -> Value {
    pod_with(&json!({"env": [{"name": "A", "value": value}]}))
}

fn env(pod: &Object) -> &str {
    pod.text("/spec/containers/0/env/0/value")
}

fn script(pod: Value, strategy: Option<&str>) -> Value {
    let mut script = json!({"children": [pod, probe::service()]});
    if let Some(strategy) = strategy {
        script["strategies"] = json!({"Pod": strategy});
    }
    script
}

/// A Database of this script that is Ready, and its Pod.
async fn standing(case: &Case, script: &Value) -> anyhow::Result<Object> {
    case.scripted("a", "mongo", script).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.get(POD, "a").await
}

pub(crate) async fn case_13_another_type_replaces_the_pod_once(case: Case) -> Outcome {
    specs::install_loose(&case).await?;
    let _host = case.host().start().await?;
    case.database("a", "mongo").await?;
    let (pod, service) = (case.get(POD, "a").await?, case.get(SERVICE, "a").await?);
    case.patch(DATABASE, "a", &json!({"spec": {"type": "mysql"}})).await?;
    let other = |it: &Object| it.uid() != pod.uid() && it.text("/spec/containers/0/image").contains("mysql");
    case.wait_for(seconds(30), POD, "a", "made anew as mysql", other).await?;
    let database = case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    ensure!(database.text("/status/endpoint").ends_with(":3306"), "{database}");
    ensure!(case.get(SERVICE, "a").await?.uid() == service.uid(), "the Service can be changed where it stands");
    case.quiet(seconds(8)).await?;
    ensure!(deletes(&case, POD)?.len() == 1, "{:?}", deletes(&case, POD)?);
    ensure!(refused(&case)?.is_empty(), "{:?}", refused(&case)?);
    let replaced: Vec<_> =
        case.events("a").await?.into_iter().filter(|event| event.text("/reason") == "Replaced").collect();
    ensure!(replaced.len() == 1 && replaced[0].text("/note").contains("Pod a"), "{replaced:?}");
    Ok(())
}

pub(crate) async fn case_13_a_new_plugin_version_with_other_env(case: Case) -> Outcome {
    let version = |value: &str, image: &str| {
        let mut pod = with_env(value);
        pod["spec"]["containers"][0]["image"] = json!(image);
        case.probes(&[Probe::new("probe", "mongo").script(&script(pod, None))])
    };
    let folder = version("1", "mongo:4.0")?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    let first = case.get(POD, "a").await?;
    // Another image is changed where the Pod stands.
    version("1", "mongo:4.2")?;
    let host = host.restart().await?;
    let image = |pod: &Object| pod.text("/spec/containers/0/image") == "mongo:4.2";
    ensure!(case.wait(POD, "a", "of the new image", image).await?.uid() == first.uid());
    // Anything else: the Pod is made anew, once.
    version("2", "mongo:4.2")?;
    let host = host.restart().await?;
    let anew = case.wait(POD, "a", "of the new env", |pod| env(pod) == "2").await?;
    ensure!(anew.uid() != first.uid());
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(8)).await?;
    // And a host that starts again leaves it.
    let _host = host.restart().await?;
    case.quiet(seconds(5)).await?;
    ensure!(case.get(POD, "a").await?.uid() == anew.uid());
    ensure!(deletes(&case, POD)?.len() == 1 && refused(&case)?.is_empty(), "{:?}", case.writes()?);
    Ok(())
}

pub(crate) async fn case_13_what_stays_in_place_is_said(case: Case) -> Outcome {
    // The plugin asks for Recreate, the document has the last word.
    let rule = json!({"strategies": [{"group": "", "kind": "Pod", "strategy": "InPlace"}]});
    let folder = case.probes(&[Probe::new("probe", "mongo").spec(&rule)])?;
    let _host = case.host().plugins(&folder).start().await?;
    let pod = standing(&case, &script(with_env("1"), Some("Recreate"))).await?;
    case.scripted("a", "mongo", &script(with_env("2"), Some("Recreate"))).await?;
    let told = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "ImmutableField")).await?;
    ensure!(
        told.message("Ready").contains("Pod a") && told.message("Ready").contains("/spec/containers/0/env/0/value"),
        "{told}"
    );
    case.quiet(seconds(5)).await?;
    // News of the Pod or the Service is no reason to ask the server again.
    for n in 0..4 {
        case.patch(SERVICE, "a", &json!({"metadata": {"labels": {"app.kubernetes.io/name": format!("x{n}")}}})).await?;
        let back =
            |service: &Object| service.label("app.kubernetes.io/name").is_some_and(|name| !name.starts_with('x'));
        case.wait(SERVICE, "a", "put back beside it", back).await?;
    }
    ensure!(refused(&case)?.is_empty() && deletes(&case, POD)?.is_empty(), "{:?}", case.writes()?);
    let warnings = case.events("a").await?.iter().filter(|event| event.text("/type") == "Warning").count();
    ensure!(warnings == 1, "{warnings} Warning events");
    // Back as it was: nothing is left to do.
    case.scripted("a", "mongo", &script(with_env("1"), Some("Recreate"))).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid());
    Ok(())
}

pub(crate) async fn on_delete_waits_for_a_person(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let host = case.host().plugins(&folder).start().await?;
    let pod = standing(&case, &script(with_env("1"), Some("OnDelete"))).await?;
    case.scripted("a", "mongo", &script(with_env("2"), Some("OnDelete"))).await?;
    let told = |database: &Object| database.is_not("Ready", "OnDelete") && database.is("Progressing");
    let database = case.wait(DATABASE, "a", "told", told).await?;
    ensure!(database.message("Ready").contains("Pod a") && database.message("Ready").contains("deletes"), "{database}");
    ensure!(database.is_not("Degraded", "AsExpected"), "{database}");
    // So it is after a restart.
    let _host = host.restart().await?;
    case.quiet(seconds(6)).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid() && told(&case.get(DATABASE, "a").await?));
    case.delete(POD, "a").await?;
    case.wait_for(seconds(10), POD, "a", "made anew", |pod| env(pod) == "2").await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    ensure!(deletes(&case, POD)?.is_empty() && refused(&case)?.is_empty(), "{:?}", case.writes()?);
    Ok(())
}

/// Each edit of what is fixed costs a Pod: never faster than the back-off, and the last one wins.
pub(crate) async fn replacements_back_off(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    standing(&case, &script(with_env("0"), None)).await?;
    for value in ["1", "2", "3"] {
        case.scripted("a", "mongo", &script(with_env(value), None)).await?;
        case.wait_for(seconds(40), POD, "a", "replaced", |pod| env(pod) == value && !pod.going()).await?;
    }
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let at: Vec<i64> = deletes(&case, POD)?.0.iter().map(|call| milliseconds(&call.at)).collect::<Result<_, _>>()?;
    ensure!(at.len() == 3, "{at:?}");
    let gaps: Vec<i64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    ensure!(gaps[0] >= 4_900 && gaps[1] >= 9_900, "replaced after {gaps:?} ms");
    ensure!(refused(&case)?.is_empty(), "{:?}", refused(&case)?);
    Ok(())
}

/// Of an audit timestamp, from any day.
pub(crate) fn milliseconds(at: &str) -> anyhow::Result<i64> {
    let time = at.split_once('T').and_then(|(day, time)| Some((day.rsplit('-').next()?, time.strip_suffix('Z')?)));
    let (day, time) = time.with_context(|| format!("no time: {at}"))?;
    let parts: Vec<f64> = time.split(':').map(str::parse).collect::<Result<_, _>>()?;
    let [hours, minutes, seconds] = parts.as_slice() else { bail!("no time: {at}") };
    let seconds = day.parse::<f64>()? * 86_400.0 + hours * 3_600.0 + minutes * 60.0 + seconds;
    Ok((seconds * 1_000.0) as i64)
}

/// What runs is not taken away for something that the API server would refuse.
pub(crate) async fn a_pod_stays_where_its_replacement_would_be_refused(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let pod = standing(&case, &script(with_env("1"), None)).await?;
    let wrong =
        json!({"env": [{"name": "A", "value": "2"}], "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "1"}}});
    case.scripted("a", "mongo", &script(pod_with(&wrong), None)).await?;
    let told = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "Rejected")).await?;
    ensure!(told.message("Ready").contains("must be less than or equal to cpu limit"), "{told}");
    case.quiet(seconds(5)).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid() && deletes(&case, POD)?.is_empty());
    case.scripted("a", "mongo", &script(with_env("2"), None)).await?;
    case.wait(POD, "a", "replaced", |pod| env(pod) == "2").await?;
    Ok(())
}

pub(crate) async fn a_stateful_set_is_never_replaced(case: Case) -> Outcome {
    may_also(&case, "apps", "statefulsets").await?;
    let set = |service: &str| {
        let labels = "{selector}";
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c"}]}});
        let spec =
            json!({"serviceName": service, "replicas": 0, "selector": {"matchLabels": labels}, "template": template});
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "{name}"}, "spec": spec});
        json!({"children": [set, probe::service()], "strategies": {"StatefulSet": "Recreate"}})
    };
    let rule = json!({"strategies": [{"group": "apps", "kind": "StatefulSet", "strategy": "Recreate"}]});
    let folder = case.probes(&[Probe::new("probe", "mongo").children(&[STATEFUL_SET, SERVICE]).spec(&rule)])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.scripted("a", "mongo", &set("a")).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let before = case.get(STATEFUL_SET, "a").await?;
    case.scripted("a", "mongo", &set("b")).await?;
    let told = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "ImmutableField")).await?;
    let words = told.message("Ready");
    ensure!(
        words.contains("StatefulSet a") && words.contains("spec.serviceName") && words.contains("holds data"),
        "{words}"
    );
    // Neither news of it nor of its sibling makes it ask again.
    case.patch(STATEFUL_SET, "a/status", &json!({"status": {"replicas": 1}})).await?;
    case.patch(SERVICE, "a", &json!({"metadata": {"labels": {"app.kubernetes.io/name": "x"}}})).await?;
    case.wait(SERVICE, "a", "put back", |service| service.label("app.kubernetes.io/name") != Some("x")).await?;
    case.quiet(seconds(8)).await?;
    ensure!(refused(&case)?.len() == 1, "{:?}", refused(&case)?);
    ensure!(deletes(&case, STATEFUL_SET)?.is_empty() && case.get(STATEFUL_SET, "a").await?.uid() == before.uid());
    case.scripted("a", "mongo", &set("a")).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    Ok(())
}

/// Learned from one refusal, since no table knows it beforehand.
pub(crate) async fn an_immutable_config_map_is_made_anew(case: Case) -> Outcome {
    may_also(&case, "", "configmaps").await?;
    let folder = case.probes(&[Probe::new("probe", "mongo").children(&[CONFIG_MAP])])?;
    let _host = case.host().plugins(&folder).start().await?;
    let map = |value: &str| json!({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{name}"}, "immutable": true, "data": {"a": value}}]});
    case.scripted("a", "mongo", &map("1")).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.scripted("a", "mongo", &map("2")).await?;
    case.wait(CONFIG_MAP, "a", "made anew", |map| map.text("/data/a") == "2").await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(4)).await?;
    ensure!(refused(&case)?.len() == 1 && deletes(&case, CONFIG_MAP)?.len() == 1, "{:?}", case.writes()?);
    Ok(())
}

pub(crate) async fn case_83_labels_change_under_a_limit_range(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let labelled = |label: &str| {
        let mut pod = with_env("1");
        pod["metadata"]["labels"] = json!({"team": label});
        pod["spec"]["terminationGracePeriodSeconds"] = json!(5);
        script(pod, None)
    };
    let pod = standing(&case, &labelled("x")).await?;
    ensure!(pod.text("/spec/containers/0/resources/limits/cpu") == "500m", "no limits in {pod}");
    case.scripted("a", "mongo", &labelled("y")).await?;
    let after = case.wait(POD, "a", "labelled anew", |pod| pod.label("team") == Some("y")).await?;
    case.quiet(seconds(5)).await?;
    ensure!(after.uid() == pod.uid() && after.text("/spec/containers/0/resources/limits/cpu") == "500m", "{after}");
    ensure!(refused(&case)?.is_empty() && deletes(&case, POD)?.is_empty(), "{:?}", case.writes()?);
    Ok(())
}

/// A policy wrote another value into a field of ours that cannot be changed later: it is left alone.
pub(crate) async fn labels_change_where_a_policy_rewrote_what_is_fixed(case: Case) -> Outcome {
    case.mutates("grace").await?;
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let labelled = |label: &str| {
        let mut pod = pod_with(&json!({"resources": {"requests": {"cpu": "100m"}}}));
        pod["metadata"]["labels"] = json!({"team": label});
        pod["spec"]["terminationGracePeriodSeconds"] = json!(5);
        script(pod, None)
    };
    let pod = standing(&case, &labelled("x")).await?;
    ensure!(pod.at("/spec/terminationGracePeriodSeconds") == 77, "the policy did not write to {pod}");
    for label in ["y", "z"] {
        case.scripted("a", "mongo", &labelled(label)).await?;
        case.wait(POD, "a", "labelled anew", |pod| pod.label("team") == Some(label)).await?;
    }
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(5)).await?;
    let after = case.get(POD, "a").await?;
    ensure!(after.uid() == pod.uid() && after.at("/spec/terminationGracePeriodSeconds") == 77, "{after}");
    ensure!(refused(&case)?.len() <= 2 && deletes(&case, POD)?.is_empty(), "{:?}", case.writes()?);
    Ok(())
}

fn with_cpu(request: &str, limit: &str) -> Value {
    let resources =
        json!({"requests": {"cpu": request, "memory": "64Mi"}, "limits": {"cpu": limit, "memory": "128Mi"}});
    script(pod_with(&json!({"resources": resources})), None)
}

/// As a kubelet that can resize writes it; the simulated ones do not say so.
async fn can_resize(case: &Case) -> Outcome {
    let container = json!({"name": "c", "image": "mongo:4.0", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": null}}, "resources": {"requests": {"cpu": "100m"}}});
    let ready = json!({"type": "Ready", "status": "True"});
    let status = json!({"status": {"phase": "Running", "conditions": [ready], "containerStatuses": [container]}});
    case.patch(POD, "a/status", &status).await.map(|_| ())
}

pub(crate) async fn resources_are_changed_where_the_pod_stands(case: Case) -> Outcome {
    case.pods_by_hand().await?;
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.scripted("a", "mongo", &with_cpu("100m", "200m")).await?;
    let pod = case.wait(POD, "a", "there", |pod| !pod.text("/spec/nodeName").is_empty()).await?;
    can_resize(&case).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let requests = "/spec/containers/0/resources/requests/cpu";
    case.scripted("a", "mongo", &with_cpu("150m", "300m")).await?;
    case.wait(POD, "a", "resized", |pod| pod.text(requests) == "150m").await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(4)).await?;
    ensure!(refused(&case)?.is_empty() && deletes(&case, POD)?.is_empty(), "{:?}", case.writes()?);
    ensure!(case.writes()?.filter(|call| call.subresource == "resize").len() == 1);
    // What is ours by applying is what was rendered, all of it.
    let after = case.get(POD, "a").await?;
    let ours = after.at("/metadata/managedFields").as_array().cloned().unwrap_or_default();
    let ours = ours.into_iter().find(|it| it["manager"] == "keelson" && it["operation"] == "Apply").unwrap_or_default();
    let fields = json!({"f:limits": {"f:cpu": {}, "f:memory": {}}, "f:requests": {"f:cpu": {}, "f:memory": {}}});
    ensure!(ours["fieldsV1"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"]["f:resources"] == fields, "{ours:#}");
    // Somebody else resizes it: put back in the same way.
    let resize = |cpu: &str| json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
    case.edit(POD, "a/resize", &resize("180m")).await?;
    case.wait(POD, "a", "put back", |pod| pod.text(requests) == "150m").await?;
    case.quiet(seconds(4)).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid());
    ensure!(refused(&case)?.is_empty(), "{:?}", refused(&case)?);
    // Another class of service cannot be had in place: told by the API server once, then by strategy.
    let equal = json!({"cpu": "1", "memory": "1Gi"});
    let guaranteed = pod_with(&json!({"resources": {"requests": equal, "limits": equal}}));
    case.scripted("a", "mongo", &script(guaranteed, None)).await?;
    case.wait(POD, "a", "made anew", |it| it.uid() != pod.uid() && it.text(requests) == "1").await?;
    can_resize(&case).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(4)).await?;
    ensure!(refused(&case)?.len() <= 1 && deletes(&case, POD)?.len() == 1, "{:?}", case.writes()?);
    Ok(())
}

/// A node without support for it: told once by the API server, then by strategy.
pub(crate) async fn resources_are_changed_by_strategy_where_the_node_cannot(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let pod = standing(&case, &with_cpu("100m", "200m")).await?;
    case.scripted("a", "mongo", &with_cpu("150m", "200m")).await?;
    let anew = |it: &Object| it.uid() != pod.uid() && it.text("/spec/containers/0/resources/requests/cpu") == "150m";
    case.wait(POD, "a", "made anew", anew).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(4)).await?;
    ensure!(refused(&case)?.len() == 1 && deletes(&case, POD)?.len() == 1, "{:?}", case.writes()?);
    Ok(())
}

/// The kubelet's word on the size that is asked for now.
async fn resize_is(case: &Case, name: &str, reason: &str) -> Outcome {
    let generation = case.get(POD, name).await?.at("/metadata/generation").clone();
    let condition = json!({"type": "PodResizePending", "status": "True", "reason": reason,
        "message": "Node didn't have enough capacity: cpu", "observedGeneration": generation});
    let path = POD.path(&case.namespace, &format!("{name}/status"));
    let patch = json!({"status": {"conditions": [condition]}});
    let content = "application/strategic-merge-patch+json";
    case.cluster.send(http::Method::PATCH, &path, content, &patch).await.map(drop)
}

/// Taken by the API server, and not by the node: told while it may come right, and by the strategy where it cannot.
pub(crate) async fn a_resize_that_the_node_puts_off_or_refuses_is_told(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let pod = standing(&case, &with_cpu("100m", "200m")).await?;
    let ready = |database: &Object| database.is("Ready");
    can_resize(&case).await?;
    case.scripted("a", "mongo", &with_cpu("150m", "200m")).await?;
    let cpu = |pod: &Object| pod.text("/spec/containers/0/resources/requests/cpu") == "150m";
    case.wait(POD, "a", "resized", cpu).await?;
    resize_is(&case, "a", "Deferred").await?;
    let deferred = |database: &Object| {
        let progressing = database.condition("Progressing");
        ready(database) && progressing.is_some_and(|it| it.status == "True" && it.reason == "ResizeDeferred")
    };
    let told = case.wait(DATABASE, "a", "Ready, and told what waits", deferred).await?;
    ensure!(told.message("Progressing").contains("enough capacity"), "{}", told.message("Progressing"));
    case.quiet(seconds(2)).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid(), "what may come right is waited for");
    // For good: another node may have the room.
    resize_is(&case, "a", "Infeasible").await?;
    case.wait(POD, "a", "made anew", |it| it.uid() != pod.uid() && !it.going() && cpu(it)).await?;
    case.wait(DATABASE, "a", "Ready", ready).await?;
    let words = async || {
        let events = case.events("a").await?;
        Ok(events.iter().any(|it| it.text("/reason") == "Replaced" && it.text("/note").contains("cannot resize")))
    };
    case.until("an Event of it", seconds(15), words).await?;
    case.quiet(seconds(2)).await?;
    ensure!(deletes(&case, POD)?.len() == 1, "{:?}", deletes(&case, POD)?);
    // By another strategy it stays.
    let mut script = with_cpu("150m", "200m");
    script["strategies"] = json!({"Pod": "OnDelete"});
    case.scripted("a", "mongo", &script).await?;
    case.wait(DATABASE, "a", "Ready", ready).await?;
    let pod = case.get(POD, "a").await?;
    resize_is(&case, "a", "Infeasible").await?;
    let told = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "OnDelete")).await?;
    ensure!(told.message("Ready").contains("enough capacity"), "{}", told.message("Ready"));
    case.quiet(seconds(2)).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid());
    Ok(())
}
