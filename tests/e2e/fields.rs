//! Fields: ours, others', and what the cluster makes of them.

use keelson_tests::prelude::*;
use keelson_tests::probe;

pub(crate) async fn case_14_a_limit_range_and_a_mutating_policy_make_no_noise(case: Case) -> Outcome {
    case.mutates("sidecar").await?;
    let host = case.host().start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        case.database(name, kind).await?;
        let pod = case.get(POD, name).await?;
        ensure!(pod.text("/spec/containers/1/name") == "sidecar", "the policy did not add its container to {pod}");
        ensure!(pod.text("/spec/containers/0/resources/limits/cpu") == "500m", "no limits in {pod}");
        ensure!(pod.label("keelson.test/policy").is_some());
    }
    case.quiet(seconds(12)).await?;
    let before = case.versions().await?;
    // A host that knows nothing of before finds nothing to do.
    let host = host.restart().await?;
    let writes = case.writes()?.len();
    case.quiet(seconds(6)).await?;
    ensure!(case.versions().await? == before, "{before:?} became {:?}", case.versions().await?);
    ensure!(case.writes()?.len() == writes, "a new host wrote: {:?}", case.writes()?);
    drop(host);
    Ok(())
}

pub(crate) async fn case_84_a_rewritten_image_is_applied_once(case: Case) -> Outcome {
    case.mutates("image").await?;
    let _host = case.host().start().await?;
    case.database("a", "mongo").await?;
    let pod = case.get(POD, "a").await?;
    ensure!(pod.text("/spec/containers/0/image") == "mirror.test/mongo:4.0", "{pod}");
    case.quiet(seconds(12)).await?;
    let applies = case.writes()?.resource("pods");
    ensure!(applies.len() == 1, "one apply, not {applies:?}");
    // Somebody takes a label of ours away: put back, and again no quarrel about the image.
    case.patch(POD, "a", &json!({"metadata": {"labels": {"app": null}}})).await?;
    case.wait(POD, "a", "labelled again", |pod| pod.label("app") == Some("db")).await?;
    case.quiet(seconds(6)).await?;
    let after = case.get(POD, "a").await?;
    ensure!(after.uid() == pod.uid() && after.text("/spec/containers/0/image") == "mirror.test/mongo:4.0", "{after}");
    ensure!(case.writes()?.resource("pods").len() == 2, "{:?}", case.writes()?);
    Ok(())
}

pub(crate) async fn case_17_an_edited_field_is_put_back(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let labels = |change: Value| json!({"metadata": {"labels": change}});
    let ports = |change: Value| json!({"spec": {"ports": change}});
    let renumbered = json!([{"port": 27017, "$patch": "delete"}, {"port": 1, "targetPort": 1}]);
    // What is edited, and where it must stand again as it was.
    let edits = [
        (POD, labels(json!({"app": "mine"})), "/metadata/labels/app"),
        (POD, labels(json!({"app": null, "keelson.dev/plugin": null})), "/metadata/labels/keelson.dev~1plugin"),
        (POD, json!({"spec": {"containers": [{"name": "mongo", "image": "mongo:7"}]}}), "/spec/containers/0/image"),
        (
            POD,
            json!({"metadata": {"annotations": {"keelson.dev/hash": "0"}}}),
            "/metadata/annotations/keelson.dev~1hash",
        ),
        (POD, json!({"metadata": {"ownerReferences": [{"$patch": "replace"}]}}), "/metadata/ownerReferences"),
        (SERVICE, json!({"spec": {"selector": {"app": "db", "keelson.dev/instance": null}}}), "/spec/selector"),
        (SERVICE, json!({"spec": {"type": "ClusterIP"}}), "/spec/type"),
        (SERVICE, ports(json!([{"port": 27017, "targetPort": 1}])), "/spec/ports"),
        (SERVICE, ports(renumbered), "/spec/ports"),
    ];
    for (kind, edit, pointer) in edits {
        let before = case.get(kind, "a").await?;
        let known = case.writes()?.len();
        case.edit(kind, "a", &edit).await.with_context(|| format!("the edit {edit}"))?;
        // A Service that was none for nodes for a while gets another port there.
        let same = |object: &Object| match (object.at(pointer), before.at(pointer)) {
            (Value::Array(now), Value::Array(then)) => {
                now.len() == then.len() && now.iter().zip(then).all(|(a, b)| covers(a, b))
            }
            (now, then) => now == then,
        };
        case.wait_for(seconds(20), kind, "a", &format!("as it was before {edit}"), same).await?;
        case.quiet(seconds(1)).await?;
        let sent = Calls(case.writes()?.0.split_off(known)).resource(kind.plural);
        let made = sent.filter(|call| call.code < 300);
        ensure!((1..=2).contains(&made.len()) && sent.len() <= 3, "{edit} was put back by {sent:?}");
        ensure!(case.get(kind, "a").await?.uid() == before.uid(), "{edit}: it was made again");
    }
    Ok(())
}

pub(crate) async fn case_17_an_edited_status_is_put_back(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let before = case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let not_ready = json!([{"type": "Ready", "status": "False", "reason": "Edited", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    for edit in [json!({"message": "mine"}), json!({"endpoint": null}), json!({"conditions": not_ready}), Value::Null] {
        let known = case.writes()?.len();
        case.patch(DATABASE, "a/status", &json!({"status": edit})).await.with_context(|| format!("the edit {edit}"))?;
        let same = |database: &Object| {
            ["/status/message", "/status/endpoint"].iter().all(|field| database.at(field) == before.at(field))
                && database.is("Ready")
        };
        case.wait(DATABASE, "a", &format!("as it was before {edit}"), same).await?;
        case.quiet(seconds(1)).await?;
        let made = Calls(case.writes()?.0.split_off(known));
        ensure!(made.len() <= 2, "{edit} was put back by {made:?}");
    }
    Ok(())
}

/// Equal but for what the server chooses anew.
fn covers(now: &Value, then: &Value) -> bool {
    let plain = |value: &Value| {
        let mut value = value.clone();
        value.as_object_mut().map(|map| map.remove("nodePort"));
        value
    };
    plain(now) == plain(then)
}

pub(crate) async fn case_18_what_others_add_is_theirs(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let labelled = |labels: Value| {
        let mut service = probe::service();
        service["metadata"]["labels"] = labels;
        json!({"children": [probe::pod(), service]})
    };
    case.scripted("a", "mongo", &labelled(json!({"ours": "1", "passing": "1"}))).await?;
    let database = case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let rendered = |labels: &[&str]| {
        let mut paths: Vec<String> = labels.iter().map(|label| format!("f:metadata/f:labels/f:{label}")).collect();
        let always = [
            "app.kubernetes.io/instance",
            "app.kubernetes.io/managed-by",
            "app.kubernetes.io/name",
            "app.kubernetes.io/part-of",
            "keelson.dev/instance",
            "keelson.dev/plugin",
        ];
        paths.extend(always.map(|label| format!("f:metadata/f:labels/f:{label}")));
        paths.push("f:metadata/f:annotations/f:keelson.dev/hash".to_owned());
        paths.push(format!("f:metadata/f:ownerReferences/k:{{\"uid\":\"{}\"}}", database.uid()));
        paths.push("f:spec/f:ports/k:{\"port\":80,\"protocol\":\"TCP\"}/.".to_owned());
        paths.push("f:spec/f:ports/k:{\"port\":80,\"protocol\":\"TCP\"}/f:port".to_owned());
        paths.push("f:spec/f:selector".to_owned());
        paths.sort();
        paths
    };
    let service = case.get(SERVICE, "a").await?;
    ensure!(paths(&service) == rendered(&["ours", "passing"]), "{:#?}", paths(&service));
    let pod: Vec<String> =
        paths(&case.get(POD, "a").await?).into_iter().filter(|path| path.starts_with("f:spec")).collect();
    let container = |field: &str| format!("f:spec/f:containers/k:{{\"name\":\"c\"}}/{field}");
    let token = "f:spec/f:automountServiceAccountToken".to_owned(); // the host's own: a Pod gets no token
    ensure!(pod == [token, container("."), container("f:image"), container("f:name")], "{pod:#?}");

    let add = json!({"metadata": {"labels": {"theirs": "1"}, "annotations": {"theirs": "1"}}});
    case.patch(POD, "a", &add).await?;
    case.patch(SERVICE, "a", &add).await?;
    case.patch(SERVICE, "a", &json!({"spec": {"sessionAffinity": "ClientIP", "publishNotReadyAddresses": true}}))
        .await?;
    let theirs = |object: &Object| object.label("theirs").is_some() && object.annotation("theirs").is_some();
    let kept = async || {
        let (pod, service) = (case.get(POD, "a").await?, case.get(SERVICE, "a").await?);
        let fields =
            service.text("/spec/sessionAffinity") == "ClientIP" && service.at("/spec/publishNotReadyAddresses") == true;
        anyhow::Ok(theirs(&pod) && theirs(&service) && fields)
    };
    case.quiet(seconds(6)).await?;
    ensure!(kept().await?, "taken away from others");
    // A repair of ours, and a rendering without a label: theirs stays through both.
    case.patch(SERVICE, "a", &json!({"metadata": {"labels": {"ours": "2"}}})).await?;
    case.wait(SERVICE, "a", "repaired", |service| service.label("ours") == Some("1")).await?;
    case.scripted("a", "mongo", &labelled(json!({"ours": "1"}))).await?;
    let service =
        case.wait(SERVICE, "a", "without what is no longer rendered", |s| s.label("passing").is_none()).await?;
    case.quiet(seconds(4)).await?;
    ensure!(kept().await?, "taken away from others");
    ensure!(paths(&service) == rendered(&["ours"]), "{:#?}", paths(&service));
    Ok(())
}

/// The leaves of our entry in managedFields; what the rendering gave as a whole is one.
fn paths(object: &Object) -> Vec<String> {
    let entries = object.at("/metadata/managedFields").as_array().cloned().unwrap_or_default();
    let ours = entries.iter().filter(|entry| entry["manager"] == "keelson");
    let mut paths = Vec::new();
    ours.for_each(|entry| leaves(&entry["fieldsV1"], String::new(), &mut paths));
    paths.sort();
    paths
}

fn leaves(tree: &Value, path: String, into: &mut Vec<String>) {
    match tree.as_object() {
        Some(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, below)| {
                leaves(below, format!("{path}{}{name}", if path.is_empty() { "" } else { "/" }), into)
            });
        }
        _ => into.push(path),
    }
}
