//! Plugins that change under a running host: in the folder, by files that come, change and go.

use std::path::Path;

use keelson_tests::{prelude::*, probe};

/// Says which version it is.
fn version(number: u32) -> Probe {
    let script =
        json!({"children": [probe::pod(), probe::service()], "status": {"message": format!("version {number}")}});
    Probe::new("probe", "mongo").manifest(&json!({"version": format!("0.0.{number}")})).script(&script)
}

async fn says(case: &Case, name: &str, number: u32) -> anyhow::Result<Object> {
    let message = format!("version {number}");
    case.wait(DATABASE, name, &message, |database| database.text("/status/message") == message && database.is("Ready"))
        .await
}

pub(crate) async fn a_new_version_serves_without_a_restart(case: Case) -> Outcome {
    let folder = case.probes(&[version(1)])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    says(&case, "a", 1).await?;
    let pod = case.get(POD, "a").await?;
    version(2).write(&folder)?;
    says(&case, "a", 2).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid(), "the Pod is another");
    ensure!(host.log_lines(&["serving", "\"version\":\"0.0.2\""]).len() == 1, "{}", host.log());
    // What is said of the component alone, too.
    version(2)
        .script(&json!({"children": [probe::pod(), probe::service()], "status": {"message": "version 3"}}))
        .write(&folder)?;
    says(&case, "a", 3).await?;
    case.quiet(seconds(3)).await
}

pub(crate) async fn a_version_that_fails_leaves_the_last_one_serving(case: Case) -> Outcome {
    let folder = case.probes(&[version(1)])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    let wrong_digest = json!({"trust": {"unsigned": null, "sha256": "0".repeat(64)}});
    let bad: [(&str, Box<dyn Fn() -> Outcome + Send + Sync>); 5] = [
        ("ArtifactInvalid", Box::new(|| Ok(std::fs::write(folder.join("probe.wasm"), b"\0asm")?))),
        ("DigestMismatch", Box::new(|| trusting(&version(2), &wrong_digest, &folder))),
        (
            "NotGranted",
            Box::new(|| {
                version(2)
                    .children(&[POD, SERVICE, JOB])
                    .spec(&json!({"grant": {"children": granted()}}))
                    .write(&folder)
            }),
        ),
        ("OutOfFuel", Box::new(|| version(2).manifest(&json!({"act": "loop"})).write(&folder))),
        ("DocumentInvalid", Box::new(|| Ok(std::fs::write(folder.join("probe.yaml"), "kind: Plugin\nspec: [")?))),
    ];
    for (i, (reason, break_it)) in bad.iter().enumerate() {
        break_it()?;
        let told = async || Ok(!host.log_lines(&["an earlier version goes on serving", reason]).is_empty());
        case.until(&format!("{reason} to be told"), seconds(20), told).await?;
        let name = format!("b{i}");
        case.database(&name, "mongo").await?;
        says(&case, &name, 1).await?;
        ensure!(host.probe("/readyz").await?.0 == 200);
        version(1).write(&folder)?;
        let healed = async || Ok(host.log_lines(&["nothing is held back any more"]).len() == i + 1);
        case.until("the newest to serve", seconds(10), healed).await?;
    }
    // A grant that was narrowed holds at once, for what serves too.
    version(1).spec(&json!({"grant": {"children": [{"group": "", "kind": "Pod"}]}})).write(&folder)?;
    case.wait(DATABASE, "a", "unserved", |database| database.is_not("Ready", "PluginUnavailable")).await?;
    ensure!(case.find(SERVICE, "a").await?.is_some(), "what stands was touched");
    version(4).write(&folder)?;
    says(&case, "a", 4).await.map(drop)
}

fn granted() -> Value {
    json!([{"group": "", "kind": "Pod"}, {"group": "", "kind": "Service"}])
}

/// Another trust in place of `unsigned`.
fn trusting(probe: &Probe, trust: &Value, folder: &Path) -> Outcome {
    probe.write_component(folder)?;
    let mut document: Value = serde_json::from_str(&probe.document())?;
    document["spec"]["trust"] = json!({"sha256": trust["trust"]["sha256"]});
    std::fs::write(folder.join("probe.yaml"), document.to_string())?;
    Ok(())
}

pub(crate) async fn a_new_version_sees_what_the_old_one_did_not(case: Case) -> Outcome {
    // Of the name of a real plugin, which observes the Service's port and follows it.
    let mut service = probe::service();
    service["spec"] = json!({"selector": "{selector}", "type": "NodePort", "ports": [{"port": 27017}]});
    let first = Probe::new("mongo", "mongo").script(&json!({"children": [probe::pod(), service]}));
    let folder = case.probes(&[first])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    let recording = case.record(DATABASE, "a").await?;
    for file in ["mongo.wasm", "mongo.yaml"] {
        std::fs::copy(plugins().join(file), folder.join(file))?;
    }
    case.wait(DATABASE, "a", "told its port", |database| database.at("/status/nodePort").is_i64()).await?;
    let blind = |database: &Object| {
        database.text("/status/message").starts_with("Pod and Service") && !database.at("/status/nodePort").is_i64()
    };
    ensure!(!recording.saw(blind), "it was rendered before what it observes was there");
    Ok(())
}

pub(crate) async fn a_swap_under_load_fails_no_render(case: Case) -> Outcome {
    const OBJECTS: usize = 20;
    const VERSIONS: u32 = 12;
    let folder = case.probes(&[version(1)])?;
    let host = case.host().plugins(&folder).start().await?;
    for i in 0..OBJECTS {
        case.apply_database(&format!("d{i}"), "mongo").await?;
    }
    for number in 2..=VERSIONS {
        version(number).write(&folder)?;
        let serves = || !host.log_lines(&["serving", &format!("\"version\":\"0.0.{number}\"")]).is_empty();
        // Edits all the while: each is a render.
        let mut edits = 0;
        while !serves() {
            let name = format!("d{}", edits % OBJECTS);
            case.patch(DATABASE, &name, &json!({"metadata": {"labels": {"edit": format!("e{number}-{edits}")}}}))
                .await?;
            edits += 1;
            ensure!(edits < 20_000, "version {number} never came");
        }
    }
    for i in 0..OBJECTS {
        says(&case, &format!("d{i}"), VERSIONS).await?;
    }
    let metrics = host.metrics().await?;
    let (all, good) =
        (metrics.sum("keelson_renders_total", &[]), metrics.sum("keelson_renders_total", &[("result", "ok")]));
    ensure!(good > 100.0 && (all - good).abs() < 0.5, "{good} of {all} renders came to a rendering");
    Ok(())
}

pub(crate) async fn a_plugin_may_come_and_go(case: Case) -> Outcome {
    let folder = case.plugin_folder()?;
    let mysql = std::fs::read(folder.join("mysql.yaml"))?;
    std::fs::remove_file(folder.join("mysql.yaml"))?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("m", "mongo").await?;
    case.apply_database("y", "mysql").await?;
    case.wait(DATABASE, "y", "told", |database| database.is_not("Ready", "NoPlugin")).await?;
    std::fs::write(folder.join("mysql.yaml"), &mysql)?;
    case.wait(DATABASE, "y", "Ready", |database| database.is("Ready")).await?;
    let pod = case.get(POD, "y").await?;
    std::fs::remove_file(folder.join("mysql.yaml"))?;
    case.wait(DATABASE, "y", "told", |database| database.is_not("Ready", "NoPlugin")).await?;
    ensure!(case.get(POD, "y").await?.uid() == pod.uid(), "its children went with the plugin");
    ensure!(host.probe("/readyz").await?.0 == 200);
    case.delete(POD, "m").await?;
    case.wait(POD, "m", "back", |pod| !pod.going()).await?;
    std::fs::write(folder.join("mysql.yaml"), &mysql)?;
    case.wait(DATABASE, "y", "Ready again", |database| database.is("Ready")).await?;
    ensure!(case.get(POD, "y").await?.uid() == pod.uid());
    case.quiet(seconds(3)).await
}
