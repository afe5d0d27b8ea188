//! What another version of a plugin would change, told before it is installed.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use keelson_tests::{binary, prelude::*, probe};

/// As whoever may read what the host reads.
async fn keelson(case: &Case, folder: &Path, args: &[&str]) -> anyhow::Result<Output> {
    let token = case.cluster.token(HOST_ACCOUNT.0, HOST_ACCOUNT.1, 600).await?;
    let mut command = Command::new(binary());
    command.args(args).stdin(Stdio::null());
    let config = folder.with_extension("kubeconfig");
    std::fs::write(&config, case.cluster.kubeconfig(&token)?)?;
    command.env("KUBECONFIG", config).env("WATCH_NAMESPACE", &case.namespace);
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn script(image: &str, env: bool, service: bool) -> Value {
    let mut pod = probe::pod();
    pod["spec"]["containers"][0]["image"] = image.into();
    pod["metadata"]["annotations"] = json!({"root": "{revision:root}"});
    if env {
        pod["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
    }
    let children: Vec<Value> = service.then(probe::service).into_iter().chain([pod]).collect();
    json!({"children": children, "secrets": [{"name": "{name}-root", "key": "password"}]})
}

fn plugin(script: &Value) -> Probe {
    Probe::new("probe", "mongo").children(&[POD, SERVICE, SECRET]).script(script)
}

async fn diff(case: &Case, folder: &Path, to: &Path) -> anyhow::Result<(i32, String)> {
    let (plugins, to) = (folder.display().to_string(), to.display().to_string());
    let output = keelson(case, folder, &["plugin", "diff", "probe", "--plugins", &plugins, "--to", &to]).await?;
    let code = output.status.code().context("it was killed")?;
    Ok((code, format!("{}{}", text(&output.stdout), text(&output.stderr))))
}

pub(crate) async fn a_diff_tells_what_a_version_then_does(case: Case) -> Outcome {
    case.also_may("[{apiGroups: [''], resources: [secrets], verbs: [get, create, patch, delete]}]").await?;
    let now = script("mongo:4.0", false, true);
    let folder = case.probes(&[plugin(&now)])?;
    let host = case.host().plugins(&folder).start().await?;
    for name in ["a", "b", "c"] {
        case.database(name, "mongo").await?;
    }
    // One has its own script, which is the same by every version; one is refused as it is.
    case.scripted("own", "mongo", &json!({"children": [probe::pod()]})).await?;
    case.wait(DATABASE, "own", "Ready", |database| database.is("Ready")).await?;
    let mut bad = probe::pod();
    bad["spec"]["hostPID"] = true.into();
    case.scripted("bad", "mongo", &json!({"children": [bad]})).await?;
    case.wait(DATABASE, "bad", "refused", |database| database.is_not("Ready", "InvalidChild")).await?;
    case.quiet(seconds(2)).await?;
    let (before, writes) = (case.versions().await?, case.writes()?.0.len());

    let next = folder.join("next");
    let other = |probe: &Probe| -> anyhow::Result<_> {
        std::fs::create_dir_all(&next)?;
        probe.write(&next)?;
        Ok(next.join("probe.yaml"))
    };
    let (code, told) = diff(&case, &folder, &other(&plugin(&now))?).await?;
    ensure!(code == 0 && told.contains("5 objects: 4 as they are, 0 would change"), "{code} {told}");
    // By the image: in place.
    let (code, told) = diff(&case, &folder, &other(&plugin(&script("mongo:4.2", false, true)))?).await?;
    ensure!(
        code == 1 && told.contains("3 would change (0 with children made anew), 1 would be refused (1 are already)")
    );
    let image = r#"spec.containers[0].image: "mongo:4.0" → "mongo:4.2""#;
    ensure!(told.contains("Pod a would be changed") && told.matches(image).count() == 3, "{told}");
    ensure!(!told.contains("Service"), "{told}");
    // By the environment: anew; without the Service: that is deleted.
    let wanted = plugin(&script("mongo:4.0", true, false));
    let file = other(&wanted)?;
    let (code, told) = diff(&case, &folder, &file).await?;
    ensure!(code == 1 && told.contains("3 would change (3 with children made anew)"), "{told}");
    ensure!(
        told.contains("Pod b would be deleted and made anew") && told.contains("Service b would be deleted"),
        "{told}"
    );
    ensure!(told.contains("spec.containers[0].env: nothing → "), "{told}");
    // What a grant refuses, and what it does not serve any more.
    let (code, told) = diff(&case, &folder, &other(&plugin(&now).spec(&json!({"grant": {"children": []}})))?).await?;
    ensure!(code == 3 && told.contains("would not serve: NotGranted"), "{code} {told}");
    let mut bad = script("mongo:4.0", false, true);
    bad["children"][1]["spec"]["hostPID"] = true.into();
    let (code, told) = diff(&case, &folder, &other(&plugin(&bad))?).await?;
    ensure!(
        code == 1 && told.contains("4 would be refused (1 are already)") && told.contains("InvalidChild"),
        "{told}"
    );
    let elsewhere = Probe::new("probe", "mysql").script(&now);
    let (code, told) = diff(&case, &folder, &other(&elsewhere)?).await?;
    ensure!(code == 1 && told.contains("5 would be served no more"), "{code} {told}");
    // A component alone: another build of the same.
    plugin(&now).manifest(&json!({"version": "0.0.1"})).write_component(&next)?;
    let (code, told) = diff(&case, &folder, &next.join("probe.wasm")).await?;
    ensure!(code == 0, "{code} {told}");

    ensure!(case.versions().await? == before, "something was written");
    ensure!(case.writes()?.0.len() == writes, "{:?}", case.writes()?);
    // It was the truth.
    let pod = case.get(POD, "b").await?;
    wanted.write(&folder)?;
    case.wait(POD, "b", "made anew", |new| new.uid() != pod.uid() && !new.going()).await?;
    case.wait_gone(SERVICE, "b").await?;
    case.wait(DATABASE, "b", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(2)).await?;
    // What stands is what this program renders, which is what a new host is held against.
    let plugins = folder.display().to_string();
    let check = keelson(&case, &folder, &["plugin", "check", "--plugins", &plugins]).await?;
    ensure!(check.status.success(), "{}{}", text(&check.stdout), text(&check.stderr));
    drop(host);
    case.patch(POD, "a", &json!({"metadata": {"labels": {"app": "other"}}})).await?;
    let check = keelson(&case, &folder, &["plugin", "check", "--plugins", &plugins]).await?;
    let told = text(&check.stdout);
    ensure!(check.status.code() == Some(1) && told.contains(r#"metadata.labels.app: "other" → "db""#), "{told}");
    Ok(())
}
