//! What plugins look at beside their children: found, absent or unreadable, followed, and never beyond the grant.

use keelson_tests::{prelude::*, probe};

const CONFIG_MAPS: &str = "
- {apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [''], resources: [secrets], verbs: [get]}";

fn plugin() -> Probe {
    let script = json!({"children": [probe::service(), probe::pod()],
        "status": {"message": "{related:one} | {related:all} | {related:secret}"}});
    Probe::new("probe", "mongo").relating(&[CONFIG_MAP, SECRET]).script(&script)
}

fn query(id: &str, kind: Kind, by: &Value) -> Value {
    let mut query = json!({"id": id, "version": "v1", "kind": kind.kind, "plural": kind.plural});
    if let (Some(query), Some(by)) = (query.as_object_mut(), by.as_object()) {
        query.extend(by.clone());
    }
    query
}

fn prices() -> Value {
    query("one", CONFIG_MAP, &json!({"name": "prices", "observe": ["/data/a"]}))
}

async fn asking(case: &Case, name: &str, queries: &[Value], script: Option<&Value>) -> anyhow::Result<Object> {
    let mut annotations = json!({probe::RELATED: json!(queries).to_string()});
    if let Some(script) = script {
        annotations[probe::SCRIPT] = script.to_string().into();
    }
    let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"type": "mongo"},
        "metadata": {"name": name, "annotations": annotations}});
    case.apply(&database.to_string()).await
}

fn config_map(name: &str, labels: &Value, a: &str, b: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels},
        "data": {"a": a, "b": b}})
    .to_string()
}

async fn message(case: &Case, name: &str, what: &str, is: impl Fn(&str) -> bool) -> anyhow::Result<String> {
    let said = |database: &Object| database.text("/status/message").to_owned();
    let database = case.wait(DATABASE, name, what, |database| is(&said(database))).await?;
    Ok(said(&database))
}

pub(crate) async fn what_a_plugin_looks_at_is_shown_and_followed(case: Case) -> Outcome {
    case.also_may(CONFIG_MAPS).await?;
    case.apply(r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"k": "hush"}}"#)
        .await?;
    let folder = case.probes(&[plugin()])?;
    let mut host = case.host().plugins(&folder).arg("--resync").arg("3s").start().await?;
    let picked = json!({"pick": "me"});
    let all = query("all", CONFIG_MAP, &json!({"labels": picked, "observe": ["/data/a"]}));
    let secret = query("secret", SECRET, &json!({"name": "key"}));
    asking(&case, "a", &[prices(), all, secret], None).await?;
    // Another of the same question costs no second read.
    asking(&case, "b", &[prices()], None).await?;
    let first = message(&case, "a", "the answers", |said| said.starts_with("prices: absent |  | key: {")).await?;
    ensure!(first.contains("revision") && !first.contains("aHVzaA") && !first.contains("hush"), "{first}");
    message(&case, "b", "the answers", |said| said.starts_with("prices: absent")).await?;

    case.apply(&config_map("prices", &json!({}), "1", "unseen")).await?;
    for name in ["a", "b"] {
        let said = message(&case, name, "the ConfigMap", |said| said.contains(r#""data":{"a":"1"}"#)).await?;
        ensure!(!said.contains("unseen"), "{said}");
    }
    case.apply(&config_map("prices", &json!({}), "2", "unseen")).await?;
    message(&case, "a", "its change", |said| said.contains(r#""data":{"a":"2"}"#)).await?;
    // By labels they come in the order of their names, and go when they lose the label.
    for name in ["y", "x"] {
        case.apply(&config_map(name, &picked, name, "")).await?;
    }
    let in_order = |said: &str| said.find("x: {").zip(said.find("y: {")).is_some_and(|(x, y)| x < y);
    message(&case, "a", "both in order", in_order).await?;
    case.apply(&config_map("x", &json!({"pick": null}), "x", "")).await?;
    message(&case, "a", "one without the label", |said| !said.contains("x: {") && said.contains("y: {")).await?;
    // A Secret is not watched: the resync sees it.
    let revision = |said: &str| said.split("revision").nth(1).map(str::to_owned);
    case.patch(SECRET, "key", &json!({"stringData": {"k": "other"}})).await?;
    message(&case, "a", "another revision", |said| revision(said) != revision(&first)).await?;
    case.delete(CONFIG_MAP, "prices").await?;
    for name in ["a", "b"] {
        message(&case, name, "it gone", |said| said.starts_with("prices: absent")).await?;
    }
    // What nobody sees causes nothing.
    host.stop().await?;
    let host = case.host().plugins(&folder).start().await?;
    case.quiet(seconds(2)).await?;
    let before = host.metrics().await?.sum("keelson_renders_total", &[]);
    case.apply(&config_map("y", &picked, "y", "another")).await?;
    case.apply(&config_map("nobodys", &json!({}), "y", "another")).await?;
    case.quiet(seconds(2)).await?;
    let after = host.metrics().await?.sum("keelson_renders_total", &[]);
    ensure!(before == after, "{before} renders, then {after}");
    Ok(())
}

pub(crate) async fn what_cannot_be_read_stops_the_render(case: Case) -> Outcome {
    let folder = case.probes(&[plugin()])?;
    let host = case.host().plugins(&folder).start().await?;
    case.apply(&config_map("prices", &json!({}), "1", "")).await?;
    asking(&case, "a", &[prices()], None).await?;
    let stopped = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "Forbidden")).await?;
    ensure!(stopped.message("Ready").contains("configmaps"), "{stopped}");
    ensure!(case.list(POD).await?.is_empty() && case.list(SERVICE).await?.is_empty());
    let lacking = host.log_lines(&["lacks a right", "configmaps", "\"plugin\":\"probe\""]);
    ensure!(!lacking.is_empty(), "{}", host.log());
    // Who asks for nothing is rendered.
    asking(&case, "b", &[], None).await?;
    case.wait(DATABASE, "b", "Ready", |database| database.is("Ready")).await?;
    case.also_may(CONFIG_MAPS).await?;
    case.wait_for(seconds(60), DATABASE, "a", "Ready once it may be read", |database| database.is("Ready")).await?;
    ensure!(message(&case, "a", "the answer", |said| said.contains(r#""a":"1""#)).await?.starts_with("prices: {"));
    Ok(())
}

pub(crate) async fn nothing_is_looked_at_beyond_the_grant(case: Case) -> Outcome {
    case.also_may(CONFIG_MAPS).await?;
    let elsewhere = case.beside("else", &json!({})).await?;
    elsewhere.also_may(CONFIG_MAPS).await?;
    elsewhere.apply(&config_map("prices", &json!({}), "9", "")).await?;
    let namespaces = format!("{},{}", case.namespace, elsewhere.namespace);
    let folder = case.probes(&[plugin()])?;
    let _host = case.host().plugins(&folder).watch(&namespaces).start().await?;
    let mut far = prices();
    far["namespace"] = elsewhere.namespace.as_str().into();
    let mut unwatched = prices();
    unwatched["namespace"] = "kube-system".into();
    let service = query("one", SERVICE, &json!({"name": "a"}));
    let secrets = query("one", SECRET, &json!({"labels": {"a": "b"}}));
    let data = query("one", SECRET, &json!({"name": "key", "observe": ["/data"]}));
    let rows = [
        ("far", far.clone(), "NotGranted", "grant.related"),
        ("service", service, "OutputInvalid", "manifest's `related`"),
        ("secrets", secrets, "OutputInvalid", "by name only"),
        ("data", data, "OutputInvalid", "only its revision"),
        ("path", query("one", CONFIG_MAP, &json!({"name": "../secrets/key"})), "OutputInvalid", "no name"),
    ];
    for (name, query, reason, words) in &rows {
        asking(&case, name, std::slice::from_ref(query), None).await?;
        let stopped = case.wait(DATABASE, name, reason, |database| database.is_not("Ready", reason)).await?;
        ensure!(stopped.message("Ready").contains(words), "{stopped}");
    }
    ensure!(case.list(POD).await?.is_empty());
    let calls = case.calls()?.filter(|call| call.resource == "secrets" || call.namespace == "kube-system");
    ensure!(calls.is_empty(), "{calls:?}");
    // Once the grant names the namespace it is shown; what this host does not watch is said.
    let granted = [json!({"group": "", "kind": "ConfigMap", "namespaces": [elsewhere.namespace, "kube-system"]})];
    plugin()
        .spec(&json!({"grant": {"related": granted}}))
        .manifest(&json!({"related": [{"group": "", "version": "v1",
        "kind": "ConfigMap", "plural": "configmaps"}]}))
        .write(&folder)?;
    case.wait(DATABASE, "far", "Ready", |database| database.is("Ready")).await?;
    message(&case, "far", "the answer", |said| said.contains(r#""a":"9""#)).await?;
    asking(&case, "away", &[unwatched], None).await?;
    let stopped = case.wait(DATABASE, "away", "told", |d| d.is_not("Ready", "NamespaceNotWatched")).await?;
    ensure!(stopped.message("Ready").contains("kube-system/prices"), "{stopped}");
    Ok(())
}

pub(crate) async fn children_may_name_what_was_found(case: Case) -> Outcome {
    case.also_may(CONFIG_MAPS).await?;
    let folder = case.probes(&[plugin()])?;
    let _host = case.host().plugins(&folder).start().await?;
    let mut pod = probe::pod();
    pod["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "prices"}}]);
    let script = json!({"children": [pod]});
    asking(&case, "a", &[prices()], Some(&script)).await?;
    let refused = case.wait(DATABASE, "a", "refused", |database| database.is_not("Ready", "InvalidChild")).await?;
    ensure!(refused.message("Ready").contains("\"prices\" is no ConfigMap of this rendering"), "{refused}");
    case.apply(&config_map("prices", &json!({}), "1", "")).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    // A token of the cluster's own is never shown, and never handed on.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "token", "annotations": {"kubernetes.io/service-account.name": "default"}}});
    case.apply(&secret.to_string()).await?;
    asking(&case, "b", &[query("one", SECRET, &json!({"name": "token"}))], None).await?;
    let refused = case.wait(DATABASE, "b", "refused", |database| database.is_not("Ready", "InvalidSpec")).await?;
    ensure!(refused.message("Ready").contains("trusts"), "{refused}");
    Ok(())
}
