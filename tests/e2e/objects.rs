//! Plugins as objects of the cluster: what `kubectl apply` of a Plugin does, and what its status tells.
//! Each on a control plane of its own: Plugin objects are everybody's.

use std::path::PathBuf;

use keelson_tests::{prelude::*, probe};

/// Without the right to read them, until it is given.
pub(crate) fn bare() -> Options {
    Options::default()
}

fn script(message: &str) -> Value {
    json!({"children": [probe::pod(), probe::service()], "status": {"message": message}})
}

/// A folder with the probe's component and no document.
fn component(case: &Case, probes: &[&Probe]) -> anyhow::Result<PathBuf> {
    let folder = case.probes(&[])?;
    std::fs::create_dir_all(&folder)?;
    probes.iter().try_for_each(|probe| probe.write_component(&folder))?;
    Ok(folder)
}

fn host(case: &Case, folder: &std::path::Path) -> HostBuilder {
    case.host().plugins(folder).arg("--plugin-source=both")
}

async fn phase(case: &Case, name: &str, phase: &str) -> anyhow::Result<Object> {
    case.wait(PLUGIN, name, phase, |plugin| plugin.text("/status/phase") == phase).await
}

pub(crate) async fn case_76_a_plugin_object_installs_and_its_status_tells(case: Case) -> Outcome {
    let probe = Probe::new("probe", "mongo").script(&script("one"));
    let folder = component(&case, &[&probe])?;
    // Ready without any plugin: they come as objects.
    let host = host(&case, &folder).start().await?;
    case.cluster.apply("", &probe.document()).await?;
    let database = case.database("a", "mongo").await?;
    ensure!(database.text("/status/message") == "one", "{database}");
    let pod = case.get(POD, "a").await?;

    let counted =
        |plugin: &Object| plugin.at("/status/objects") == &json!(1) && plugin.text("/status/phase") == "Serving";
    let plugin = case.wait(PLUGIN, "probe", "counted", counted).await?;
    let digest = plugin.text("/status/servingDigest").to_owned();
    ensure!(digest.len() == "sha256:".len() + 64 && digest == plugin.text("/status/digest"), "{plugin}");
    for (at, wanted) in
        [("version", "0.0.0"), ("contract", "0.1.0"), ("serves", "databases.zalando.org (/spec/type=mongo)")]
    {
        ensure!(plugin.text(&format!("/status/{at}")) == wanted, "{at}: {plugin}");
    }
    ensure!(plugin.at("/status/exports") == &json!(["render"]), "{plugin}");
    for condition in ["Fetched", "Verified", "Compiled", "Serving"] {
        ensure!(plugin.is(condition), "{condition}: {plugin}");
    }
    let table = case.cluster.kubectl(&["get", "plugins"]).await?;
    for word in ["NAME", "SERVES", "VERSION", "PHASE", "DIGEST", "OBJECTS", "AGE", "probe", "Serving", &digest] {
        ensure!(table.contains(word), "{word}:\n{table}");
    }

    // An edit takes effect.
    case.cluster.apply("", &probe.clone().script(&script("two")).document()).await?;
    case.wait(DATABASE, "a", "rendered anew", |database| database.text("/status/message") == "two").await?;
    // One that cannot serve leaves the last one serving, and says why.
    let mut wrong: Value = serde_json::from_str(&probe.document())?;
    wrong["spec"]["trust"] = json!({"sha256": "0".repeat(64)});
    wrong["spec"]["source"] = json!({"file": {"path": "other.wasm"}});
    std::fs::write(folder.join("other.wasm"), b"\0asm\x0d\0\x01\0")?;
    let replaced = case.cluster.kubectl(&["replace", "-f", &file(&case, &wrong.to_string())?]).await;
    ensure!(replaced.is_ok(), "{replaced:?}");
    let plugin = phase(&case, "probe", "Held").await?;
    ensure!(plugin.is_not("Verified", "DigestMismatch") && plugin.is("Serving") && plugin.is("Fetched"), "{plugin}");
    ensure!(plugin.text("/status/servingDigest") == digest && plugin.text("/status/digest") != digest, "{plugin}");
    ensure!(plugin.message("Serving").contains("sha256"), "{plugin}");
    case.database("b", "mongo").await?;

    // Deleting it leaves all as it is, and says so in each.
    case.cluster.kubectl(&["delete", "plugin", "probe"]).await?;
    case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "NoPlugin")).await?;
    case.wait(DATABASE, "b", "told", |database| database.is_not("Ready", "NoPlugin")).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid(), "its Pod went with the plugin");
    ensure!(host.probe("/readyz").await?.0 == 200);
    case.cluster.apply("", &probe.document()).await?;
    case.wait(DATABASE, "a", "Ready again", |database| {
        database.is("Ready") && database.text("/status/message") == "one"
    })
    .await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid());
    phase(&case, "probe", "Serving").await?;
    case.quiet(seconds(5)).await
}

fn file(case: &Case, text: &str) -> anyhow::Result<String> {
    let path = case.probes(&[])?.with_extension("object.json");
    std::fs::write(&path, text)?;
    Ok(path.to_string_lossy().into_owned())
}

pub(crate) async fn a_file_goes_before_an_object_of_the_same_name(case: Case) -> Outcome {
    let probe = Probe::new("probe", "mongo").script(&script("of the file"));
    let folder = case.probes(&[probe.clone()])?;
    let _host = host(&case, &folder).start().await?;
    case.cluster.apply("", &probe.script(&script("of the object")).document()).await?;
    let plugin = phase(&case, "probe", "Shadowed").await?;
    ensure!(plugin.is_not("Serving", "Shadowed") && plugin.message("Serving").contains("probe.yaml"), "{plugin}");
    ensure!(plugin.at("/status/objects") == &json!(0), "{plugin}");
    let database = case.database("a", "mongo").await?;
    ensure!(database.text("/status/message") == "of the file", "{database}");
    std::fs::remove_file(folder.join("probe.yaml"))?;
    case.wait(DATABASE, "a", "served by the object", |d| d.text("/status/message") == "of the object").await?;
    phase(&case, "probe", "Serving").await.map(drop)
}

pub(crate) async fn who_serves_a_kind_keeps_it(case: Case) -> Outcome {
    let (zeta, alpha) =
        (Probe::new("zeta", "mongo").script(&script("zeta")), Probe::new("alpha", "mongo").script(&script("alpha")));
    let folder = component(&case, &[&zeta, &alpha])?;
    let running = host(&case, &folder).start().await?;
    case.cluster.apply("", &zeta.document()).await?;
    case.database("a", "mongo").await?;
    phase(&case, "zeta", "Serving").await?;
    case.cluster.apply("", &alpha.document()).await?;
    let plugin = phase(&case, "alpha", "Conflict").await?;
    ensure!(plugin.message("Serving").contains("zeta"), "{plugin}");
    // Whoever starts, and in whatever order it finds them.
    let _running = running.restart().await?;
    case.database("b", "mongo").await?;
    ensure!(case.get(DATABASE, "b").await?.text("/status/message") == "zeta");
    case.quiet(seconds(3)).await?;
    ensure!(case.get(PLUGIN, "alpha").await?.text("/status/phase") == "Conflict");
    case.cluster.kubectl(&["delete", "plugin", "zeta"]).await?;
    phase(&case, "alpha", "Serving").await?;
    case.wait(DATABASE, "a", "served by the other", |database| database.text("/status/message") == "alpha").await?;
    Ok(())
}

pub(crate) async fn without_the_kind_or_the_right_the_folder_serves_on(case: Case) -> Outcome {
    let of_object = Probe::new("object", "mysql").script(&script("object"));
    let folder = case.probes(&[Probe::new("file", "mongo").script(&script("file"))])?;
    of_object.write_component(&folder)?;
    let crd = case.cluster.kubectl(&["get", "crd", "plugins.keelson.dev", "-o", "json"]).await?;
    case.cluster.kubectl(&["delete", "crd", "plugins.keelson.dev"]).await?;
    let host = host(&case, &folder).start().await?;
    case.database("a", "mongo").await?;
    let told = async || Ok(host.probe("/readyz").await?.1.contains("plugins.keelson.dev"));
    case.until("the missing kind to be told", seconds(20), told).await?;
    // Without the right, then with it: no restart.
    case.cluster.kubectl(&["delete", "clusterrolebinding", "keelson-plugin-objects"]).await?;
    let mut crd: Value = serde_json::from_str(&crd)?;
    crd["metadata"] = json!({"name": crd["metadata"]["name"]});
    crd["status"] = Value::Null;
    case.cluster.apply("", &crd.to_string()).await?;
    let forbidden = async || Ok(host.probe("/readyz").await?.1.to_lowercase().contains("forbidden"));
    case.until("the missing right to be told", seconds(60), forbidden).await?;
    case.database("b", "mongo").await?;
    case.cluster.kubectl(&["apply", "-f", "deploy/overlays/plugins-cluster/access.yaml"]).await?;
    case.cluster.apply("", &of_object.document()).await?;
    case.apply_database("c", "mysql").await?;
    case.wait_for(seconds(60), DATABASE, "c", "Ready", |database| database.is("Ready")).await?;
    case.until("all to be well", seconds(20), async || Ok(host.probe("/readyz").await?.1 == "ready\n")).await
}

pub(crate) async fn a_standby_follows_and_says_nothing(case: Case) -> Outcome {
    let probe = Probe::new("probe", "mongo").script(&script("one"));
    let folder = component(&case, &[&probe])?;
    let (a, b) = (case.rival("a").await?, case.rival("b").await?);
    for rival in ["a", "b"] {
        let account = format!("--serviceaccount={}:{rival}", case.namespace);
        case.cluster
            .kubectl(&[
                "create",
                "clusterrolebinding",
                &format!("plugins-{rival}"),
                "--clusterrole=keelson-plugin-objects",
                &account,
            ])
            .await?;
    }
    let start = |rival: &Rival| rival.host().plugins(&folder).arg("--plugin-source=both");
    let mut leader = start(&a).start().await?;
    let standby = start(&b).start().await?;
    ensure!(leader.leads().await? && standby.stands_by().await?);
    case.cluster.apply("", &probe.document()).await?;
    case.database("a", "mongo").await?;
    phase(&case, "probe", "Serving").await?;
    let compiled = async || Ok(!standby.log_lines(&["serving", "\"plugin\":\"probe\""]).is_empty());
    case.until("the standby to have it too", seconds(10), compiled).await?;
    let written = b.calls()?.writes();
    ensure!(written.is_empty(), "a standby has written:\n{written:?}");
    leader.stop().await?;
    case.until("the standby to lead", seconds(20), async || standby.leads().await).await?;
    case.cluster.apply("", &probe.clone().script(&script("two")).document()).await?;
    case.wait(DATABASE, "a", "rendered anew", |database| database.text("/status/message") == "two").await?;
    let counted = |plugin: &Object| plugin.at("/status/objects") == &json!(1);
    case.wait(PLUGIN, "probe", "counted by the new leader", counted).await.map(drop)
}
