//! What plugins read of their objects: held against the kind's schema, and made into one.
//! Each that writes CustomResourceDefinitions on a control plane of its own.

use std::process::Command;

use keelson_tests::{prelude::*, probe};

/// Fields of `spec` in the shipped definition.
const FIELDS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
const CRD: &str = "databases.zalando.org";

/// Reads `storage.speed` and `replicas`, which the shipped definition lacks, `service.nodePort` as a text, and what is
/// there already.
fn reader() -> Probe {
    let text = json!({"type": "string"});
    reading(&json!({"type": "object", "required": ["type"], "properties": {
        "type": text,
        "replicas": {"type": "integer"},
        "storage": {"type": "object", "properties": {"size": text, "speed": text}},
        "service": {"type": "object", "properties": {"nodePort": text}},
        // Kept, though it is named nowhere.
        "affinity": {"type": "object", "properties": {"odd": {"type": "object", "properties": {"deep": text}}}},
    }}))
}

fn reading(schema: &Value) -> Probe {
    let script = json!({"children": [probe::pod(), probe::service()], "status": {"message": "wants {/spec/replicas}"}});
    Probe::new("probe", "mongo").manifest(&json!({"schema": schema})).script(&script)
}

const MISMATCHES: [&str; 3] = [
    "spec.replicas of databases.zalando.org v1 is pruned",
    "spec.storage.speed of databases.zalando.org v1 is pruned",
    "spec.service.nodePort of databases.zalando.org v1 is of type integer, and is read as string",
];

/// Whether the plugin serves, with this reason.
fn serves(plugin: &Object, reason: &str) -> bool {
    plugin.is("Serving")
        && plugin.text("/status/phase") == "Serving"
        && plugin.condition("Serving").is_some_and(|condition| condition.reason == reason)
}

async fn patch_crd(case: &Case, patch: &Value) -> Outcome {
    case.cluster.kubectl(&["patch", "crd", CRD, "--type=json", "-p", &patch.to_string()]).await.map(drop)
}

fn database(name: &str, spec: &Value) -> String {
    json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "metadata": {"name": name}, "spec": spec})
        .to_string()
}

pub(crate) async fn a_mismatch_is_told_and_heals(case: Case) -> Outcome {
    let folder = case.probes(&[])?;
    reader().write_component(&folder)?;
    let host = case.host().plugins(&folder).arg("--plugin-source=both").start().await?;
    case.cluster.apply("", &reader().document()).await?;
    let told = |plugin: &Object| {
        let message = plugin.message("Serving");
        serves(plugin, "SchemaMismatch") && MISMATCHES.iter().all(|words| message.contains(words))
    };
    let plugin = case.wait(PLUGIN, "probe", "told", told).await?;
    for innocent in ["size", "affinity", "spec.type"] {
        ensure!(!plugin.message("Serving").contains(innocent), "{plugin}");
    }
    // It goes on serving all the same.
    case.database("a", "mongo").await?;
    case.quiet(seconds(5)).await?;
    let lines = || host.log_lines(&["SchemaMismatch", "spec.storage.speed"]);
    ensure!(lines().len() == 1, "said once: {:?}", lines());

    // Part of it, then the rest.
    let field = |name: &str| format!("{FIELDS}/{name}");
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let replicas = json!({"op": "add", "path": field("replicas"), "value": number});
    patch_crd(&case, &json!([replicas])).await?;
    let less = |plugin: &Object| {
        let message = plugin.message("Serving");
        serves(plugin, "SchemaMismatch") && !message.contains("replicas") && message.contains("speed")
    };
    case.wait(PLUGIN, "probe", "told the rest", less).await?;
    let speed = json!({"op": "add", "path": field("storage/properties/speed"), "value": text});
    let port = json!({"op": "replace", "path": field("service/properties/nodePort"), "value": text});
    patch_crd(&case, &json!([speed, port])).await?;
    case.wait(PLUGIN, "probe", "healed", |plugin| serves(plugin, "Succeeded")).await?;
    ensure!(host.log_lines(&["the API server keeps all that it reads"]).len() == 1, "{}", host.log());
    case.apply(&database("b", &json!({"type": "mongo", "replicas": 3}))).await?;
    case.wait(DATABASE, "b", "seen whole", |database| database.text("/status/message") == "wants 3").await?;

    // An older definition comes back.
    patch_crd(&case, &json!([{"op": "remove", "path": field("replicas")}])).await?;
    let again = |plugin: &Object| serves(plugin, "SchemaMismatch") && plugin.message("Serving").contains(MISMATCHES[0]);
    case.wait_for(seconds(60), PLUGIN, "probe", "told again", again).await?;
    // A plugin that reads less fits.
    let modest = reading(&json!({"type": "object"})).manifest(&json!({"version": "0.0.1"}));
    modest.write_component(&folder)?;
    case.wait(PLUGIN, "probe", "another version", |plugin| {
        serves(plugin, "Succeeded") && plugin.text("/status/version") == "0.0.1"
    })
    .await?;
    Ok(())
}

pub(crate) async fn a_role_is_enough_to_tell_it(case: Case) -> Outcome {
    crate::scope::a_role_only(&case).await?;
    let folder = case.probes(&[reader(), Probe::new("plain", "mysql")])?;
    let host = case.host().plugins(&folder).account(&case.namespace, "host").start().await?;
    let told =
        async || Ok(!host.log_lines(&["WARN", "SchemaMismatch", "\"plugin\":\"probe\"", MISMATCHES[1]]).is_empty());
    case.until("the mismatch to be told", seconds(20), told).await?;
    case.database("a", "mongo").await?;
    ensure!(host.log_lines(&["SchemaMismatch"]).len() == 1, "{:?}", host.log_lines(&["SchemaMismatch"]));
    let lacking = host.log_lines(&["lacks a right"]);
    ensure!(lacking.is_empty(), "{lacking:?}");
    Ok(())
}

pub(crate) async fn what_cannot_be_read_is_said_once(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    proxy.add(Match::any().path("/openapi/v3"), Fault::Answer(403, "not for you"));
    let folder = case.probes(&[reader()])?;
    let host = case.host().plugins(&folder).through(&proxy).start().await?;
    let lines = || host.log_lines(&["WARN", "is not known", "/openapi/v3", "not for you"]);
    case.until("the refusal to be told", seconds(20), async || Ok(!lines().is_empty())).await?;
    case.database("a", "mongo").await?;
    // A plugin that changes is a reason to ask again, and none to say it again.
    reader().manifest(&json!({"version": "0.0.1"})).write(&folder)?;
    let asked = proxy.hits();
    case.until("it to ask again", seconds(20), async || Ok(proxy.hits() > asked)).await?;
    proxy.clear();
    reader().manifest(&json!({"version": "0.0.2"})).write(&folder)?;
    let told = async || Ok(!host.log_lines(&["SchemaMismatch", MISMATCHES[0]]).is_empty());
    case.until("the mismatch to be told", seconds(60), told).await?;
    ensure!(lines().len() == 1, "{:?}", lines());
    Ok(())
}

pub(crate) async fn the_shipped_plugins_fit_the_shipped_definition(case: Case) -> Outcome {
    let host = case.host().start().await?;
    case.database("a", "mongo").await?;
    let read = |uri: &str| {
        let calls = case.cluster.calls()?;
        anyhow::Ok(calls.filter(|call| call.user.ends_with(":keelson") && call.uri.starts_with(uri)).len())
    };
    let held = async || Ok(read("/openapi/v3/apis/zalando.org/v1")? > 0);
    case.until("the schemas to be read", seconds(20), held).await?;
    case.quiet(seconds(5)).await?;
    ensure!(host.log_lines(&["SchemaMismatch"]).is_empty(), "{}", host.log());
    ensure!(host.log_lines(&["is not known"]).is_empty(), "{}", host.log());
    Ok(())
}

/// Standard output, or the error in its words.
fn merged(args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(binary()).args(["plugin", "crd"]).args(args).output()?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{words}");
    Ok(String::from_utf8(output.stdout)?)
}

pub(crate) async fn a_merged_definition_is_accepted_and_served(case: Case) -> Outcome {
    let (folder, mysql) = (plugins(), plugins().join("mysql.wasm"));
    let (folder, mysql) = (folder.to_string_lossy(), mysql.to_string_lossy());
    let crd = merged(&["mongo", "mysql", "--plugins", &folder])?;
    ensure!(crd == merged(&["mongo", &mysql, "--plugins", &folder])?, "a file is another than its plugin");
    let file = case.dir.join("merged.yaml");
    std::fs::write(&file, &crd)?;
    // With every field known: no warning, and nothing dropped.
    case.cluster.kubectl(&["create", "--validate=strict", "-f", &file.to_string_lossy()]).await?;
    crate::crd::install(&case, &crd).await?;

    let host = case.host().start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        case.database(name, kind).await?;
    }
    let spec = json!({"type": "mongo", "version": "4.2", "storage": {"size": "1Gi"}, "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "a", "operator": "Exists"}], "resources": {"requests": {"cpu": "10m"}}});
    let stored = case.apply(&database("c", &spec)).await?;
    ensure!(stored.at("/spec") == &spec, "something was pruned: {stored}");
    case.wait(DATABASE, "c", "served", |database| !database.conditions().is_empty()).await?;

    for (name, spec, words) in [
        ("d", json!({"type": "oracle"}), "Unsupported value"),
        ("d", json!({}), "spec.type"),
        ("d", json!({"type": "mongo", "storage": {}}), "spec.storage.size"),
        ("d", json!({"type": "mongo", "service": {"nodePort": "a"}}), "spec.service.nodePort"),
        ("1d", json!({"type": "mongo"}), "DNS-1035"),
        ("a", json!({"type": "mysql"}), "spec.type cannot be changed"),
    ] {
        let refusal = case.refused(&database(name, &spec)).await?;
        ensure!(refusal.contains(words), "{name}: {refusal}");
    }
    let table = case.cluster.kubectl(&["-n", &case.namespace, "get", "databases"]).await?;
    for word in ["TYPE", "READY", "STATUS", "AGE", "mysql", "True"] {
        ensure!(table.contains(word), "{word}:\n{table}");
    }
    case.quiet(seconds(3)).await?;
    let [index, held] = ["/openapi/v3", "SchemaMismatch"];
    ensure!(!case.cluster.calls()?.filter(|call| call.uri.starts_with(index)).is_empty());
    ensure!(host.log_lines(&[held]).is_empty(), "{:?}", host.log_lines(&[held]));
    // The shipped one in its place, and back: to Kubernetes they are versions of one definition.
    crate::crd::install_shipped(&case).await?;
    crate::crd::install(&case, &crd).await?;
    case.delete(POD, "a").await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;

    // Parts that do not go together.
    let odd = reader().manifest(&json!({"serves": [{"group": "zalando.org", "versions": ["v1"], "kind": "Database",
        "plural": "databases", "discriminator": {"path": "/spec/type", "value": "odd"}}]}));
    let odd = case.probes(&[odd])?.join("probe.wasm");
    let error = merged(&["mongo", &odd.to_string_lossy(), "--plugins", &folder]).err().context("it is merged")?;
    let words = "spec.service.nodePort: plugin mongo reads it as integer, plugin probe as string";
    ensure!(error.to_string().contains(words), "{error}");
    Ok(())
}
