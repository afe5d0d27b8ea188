//! What whoever runs a host can find out about an object: the call, and the same call on a laptop.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use keelson_tests::{binary, plugins, prelude::*, probe};

async fn keelson(args: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new(binary());
    command.args(args).stdin(Stdio::null());
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}

/// The bundle of an object, and the file that it is in.
async fn bundle(host: &Host, folder: &Path, object: &str) -> anyhow::Result<(String, Value)> {
    let output = keelson(&["debug", object, "--debug-address", &host.debug_address()?]).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = folder.join(format!("{}.json", object.replace('/', "-")));
    std::fs::write(&file, &output.stdout)?;
    Ok((file.display().to_string(), serde_json::from_slice(&output.stdout)?))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) async fn a_bundle_gives_the_same_on_a_laptop(case: Case) -> Outcome {
    case.also_may("[{apiGroups: [''], resources: [secrets], verbs: [get, create, patch, delete]}]").await?;
    let script = json!({"children": [probe::service(), probe::pod()], "log": ["said by the guest"],
        "secrets": [{"name": "{name}-root", "key": "password", "templates": {"url": "hush://{password}"}}],
        "status": {"message": "{revision:root}"}});
    let probe = Probe::new("probe", "mongo").children(&[POD, SERVICE, SECRET]).script(&script);
    let folder = case.probes(&[probe])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    let secret = case.get(SECRET, "a-root").await?;
    let files = folder.join("bundles");
    std::fs::create_dir_all(&files)?;
    let (file, a) = bundle(&host, &files, &format!("{}/a", case.namespace)).await?;
    let at = |pointer: &str| a.pointer(pointer).cloned().unwrap_or_default();
    ensure!(at("/outcome/answer/rendering/children/exactly").as_array().is_some_and(|children| children.len() == 2));
    ensure!(at("/log/0/message") == "said by the guest" && at("/used/fuel").as_u64().is_some_and(|fuel| fuel > 0));
    ensure!(at("/plugin/digest").as_str().is_some_and(|digest| digest.len() == 64), "{a}");
    // What the host has seen is in the request; nothing of what is secret is anywhere.
    ensure!(at("/request/children").as_array().is_some_and(|children| children.len() == 2), "{a}");
    ensure!(at("/request/secrets/0/name") == "a-root", "{a}");
    let data = secret.at("/data").as_object().cloned().unwrap_or_default();
    ensure!(!data.is_empty() && !at("/outcome").to_string().contains("hush"), "{a}");
    for value in data.values().filter_map(Value::as_str) {
        ensure!(!a.to_string().contains(value), "{a}");
    }
    let of = folder.display().to_string();
    let again = keelson(&["render", "--bundle", &file, "--plugins", &of]).await?;
    ensure!(again.status.success(), "{}", text(&again.stderr));
    ensure!(
        text(&again.stderr).contains("the same as the host had") && text(&again.stderr).contains("said by the guest")
    );
    ensure!(serde_json::from_slice::<Value>(&again.stdout)? == at("/outcome"));
    // Another plugin is held against the same.
    let other = plugins().join("mongo.wasm").display().to_string();
    let again = keelson(&["render", "--bundle", &file, "--plugin", &other]).await?;
    ensure!(again.status.code() == Some(1), "{again:?}");
    ensure!(text(&again.stderr).contains("another component than the host had"), "{}", text(&again.stderr));
    let missing = keelson(&["render", "--bundle", &file]).await?;
    ensure!(!missing.status.success() && text(&missing.stderr).contains("--plugin FILE.wasm"));
    Ok(())
}

pub(crate) async fn what_failed_is_kept_with_the_rule_that_refused_it(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let host = case.host().plugins(&folder).start().await?;
    let mut pod = probe::pod();
    pod["spec"]["hostPID"] = true.into();
    case.scripted("rule", "mongo", &json!({"children": [pod]})).await?;
    case.scripted("trap", "mongo", &json!({"act": "trap"})).await?;
    for (name, reason) in [("rule", "InvalidChild"), ("trap", "Trap")] {
        case.wait(DATABASE, name, reason, |database| database.is_not("Ready", reason)).await?;
    }
    let address = host.debug_address()?;
    let kept = keelson(&["debug", "--failures", "probe", "--debug-address", &address]).await?;
    let bundles: Vec<Value> = text(&kept.stdout).lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let of = |name: &str| bundles.iter().find(|bundle| bundle["parent"]["name"] == name).cloned().unwrap_or_default();
    let (rule, trap) = (of("rule"), of("trap"));
    ensure!(rule["outcome"]["refused"]["rule"] == "PodSecurity", "{rule}");
    ensure!(rule["outcome"]["answer"].to_string().contains("hostPID"), "{rule}");
    ensure!(trap["outcome"]["stopped"]["reason"] == "Trap" && trap["outcome"]["answer"].is_null(), "{trap}");
    // Not more than is said, however often it fails; soon it is not even asked.
    for index in 0..20 {
        let name = format!("t{index}");
        case.scripted(&name, "mongo", &json!({"act": "trap"})).await?;
        let told = |database: &Object| ["Trap", "PluginFailing"].iter().any(|one| database.is_not("Ready", one));
        case.wait(DATABASE, &name, "told", told).await?;
    }
    let kept = keelson(&["debug", "--failures", "probe", "--debug-address", &address]).await?;
    ensure!(text(&kept.stdout).lines().count() == 8, "{}", text(&kept.stdout));
    // An object that is refused is looked at as well, and who asks in vain is told why.
    let (_, now) = bundle(&host, &folder, &format!("{}/rule", case.namespace)).await?;
    ensure!(now["outcome"]["refused"]["message"] == rule["outcome"]["refused"]["message"], "{now}");
    for (args, words) in [
        (vec!["debug", "nowhere/a"], "no plugin serves an object nowhere/a"),
        (vec!["debug", "a"], "NAMESPACE/NAME"),
        (vec!["debug", "--failures", "other"], "no plugin other serves here"),
    ] {
        let output = keelson(&[args.as_slice(), &["--debug-address", &address]].concat()).await?;
        ensure!(output.status.code() == Some(1) && text(&output.stderr).contains(words), "{args:?}: {output:?}");
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let nobody = keelson(&["debug", "a/b", "--debug-address", &free]).await?;
    ensure!(text(&nobody.stderr).contains(&format!("no host answers at {free}")), "{nobody:?}");
    let far = keelson(&["run", "--plugins", "x", "--debug-address", "10.0.0.1:1"]).await?;
    ensure!(far.status.code() == Some(2) && text(&far.stderr).contains("loopback"), "{far:?}");
    Ok(())
}
