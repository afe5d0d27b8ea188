//! Plugins that other toolchains have made: `make test-languages` builds them (tests/languages) and runs these.

use keelson_tests::prelude::*;
use std::path::PathBuf;

const ACT: &str = "example.org/act";
const REQUESTED: &str = "keelson.dev/render-requested-at";

/// A folder with this guest as the only plugin, which serves Databases of this type.
fn folder(case: &Case, guest: &str, database_type: &str) -> anyhow::Result<PathBuf> {
    let folder = case.dir.join("plugins");
    std::fs::create_dir_all(&folder)?;
    let component = languages().join(format!("{guest}.wasm"));
    let to = folder.join(format!("{guest}.wasm"));
    std::fs::copy(&component, to).with_context(|| format!("{}: make test-languages", component.display()))?;
    let serves = json!({"group": "zalando.org", "kind": "Database", "discriminator": {"path": "/spec/type", "value": database_type}});
    let children = json!([{"group": "", "kind": "Pod"}, {"group": "", "kind": "Service"}]);
    let document = json!({"apiVersion": "keelson.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": guest},
        "spec": {"source": {"file": {"path": format!("{guest}.wasm")}}, "trust": {"unsigned": true},
            "grant": {"serves": [serves], "children": children, "namespaces": ["*"]}}});
    std::fs::write(folder.join(format!("{guest}.yaml")), document.to_string())?;
    Ok(folder)
}

/// Its objects get their children and stay as they are when they are rendered anew; what it prints is in the host's log;
/// where it fails, its object says why, in its own words.
async fn serves(case: Case, guest: &str, database_type: &str, failure: (&str, &str, &str)) -> Outcome {
    let host = case.host().plugins(&folder(&case, guest, database_type)?).spawn().await?;
    // Compiling Python takes its time beside other tests.
    case.until("the host is ready", seconds(150), async || {
        Ok(host.probe("/readyz").await.is_ok_and(|(code, _)| code == 200))
    })
    .await?;
    let database = case.database("one", database_type).await?;
    let service = case.get(SERVICE, "one").await?;
    ensure!(service.owner() == database.uid());
    let world = |service: &Object| -> Vec<(String, String)> {
        let all = service.at("/metadata/annotations").as_object().into_iter().flatten();
        let ours = all.filter(|(key, _)| key.starts_with("example.org/"));
        ours.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    };
    let seen = world(&service);
    let created = database.text("/metadata/creationTimestamp").trim_end_matches('Z').to_owned();
    let seconds_since: i64 = format!("{created}Z").parse::<jiff::Timestamp>()?.as_second();
    let now = service.annotation("example.org/now").context("no clock")?;
    ensure!(
        now.starts_with(&created) || now == seconds_since.to_string(),
        "made at {created}, the guest's clock: {now}"
    );
    ensure!(service.annotation("example.org/random").is_some_and(|number| number.len() > 3), "{service}");
    for level in [("INFO", "renders one"), ("WARN", "takes care")] {
        let lines = host.log_lines(&["keelson::guest", level.0, level.1, &format!("\"plugin\":\"{guest}\"")]);
        ensure!(!lines.is_empty(), "no {level:?} in the host's log");
    }

    let again = json!({"metadata": {"annotations": {REQUESTED: "now"}}});
    case.patch(DATABASE, "one", &again).await?;
    case.wait(DATABASE, "one", "rendered anew", |database| database.text("/status/renderRequestedAt") == "now").await?;
    let anew = case.get(SERVICE, "one").await?;
    ensure!(world(&anew) == seen && anew.version() == service.version(), "another world: {service} {anew}");
    case.database("other", database_type).await?;
    let other = case.get(SERVICE, "other").await?;
    ensure!(other.annotation("example.org/random") != service.annotation("example.org/random"), "{service} {other}");

    let (act, reason, words) = failure;
    case.patch(DATABASE, "one", &json!({"metadata": {"annotations": {ACT: act}}})).await?;
    let failed = case.wait(DATABASE, "one", "stopped", |database| database.is_not("Ready", reason)).await?;
    ensure!(failed.message("Ready").contains(words), "{words:?} is not in {failed}");
    ensure!(case.get(POD, "one").await?.owner() == database.uid(), "a failure took the Pod away");
    ensure!(case.get(DATABASE, "other").await?.is("Ready"));
    case.patch(DATABASE, "one", &json!({"metadata": {"annotations": {ACT: Value::Null}}})).await?;
    case.wait(DATABASE, "one", "Ready again", |database| database.is("Ready")).await?;
    Ok(())
}

pub(crate) async fn python_serves(case: Case) -> Outcome {
    serves(case, "python", "mongo", ("raise", "Trap", "in pick KeyError: 'colour'")).await
}

pub(crate) async fn javascript_serves(case: Case) -> Outcome {
    serves(case, "javascript", "mysql", ("raise", "Trap", "no such colour")).await
}

pub(crate) async fn rust_for_wasip1_serves(case: Case) -> Outcome {
    serves(case, "rust-wasip1", "mongo", ("exit", "Exited", "ended itself with code 1")).await
}

pub(crate) async fn rust_for_wasip2_serves(case: Case) -> Outcome {
    serves(case, "rust-wasip2", "mongo", ("raise", "Trap", "panicked at src/lib.rs")).await
}

/// The example in Python, of a kind that is no database, from its own files.
pub(crate) async fn static_site_in_python_serves(case: Case) -> Outcome {
    const SITE: Kind = Kind::namespaced("example.org/v1", "StaticSite", "staticsites");
    let example = repository().join("examples/staticsite");
    for file in ["crd.yaml", "clusterrole.yaml"] {
        case.cluster.apply("", &std::fs::read_to_string(example.join(file))?).await?;
    }
    let served = async || Ok(case.cluster.kubectl(&["get", "staticsites", "-A"]).await.is_ok());
    case.until("the kind to be served", seconds(20), served).await?;
    let host = case.host().plugins(&languages().join("staticsite")).spawn().await?;
    case.until("the host is ready", seconds(150), async || {
        Ok(host.probe("/readyz").await.is_ok_and(|(code, _)| code == 200))
    })
    .await?;
    case.apply(&std::fs::read_to_string(example.join("fixtures/small/object.yaml"))?).await?;
    let site = case.wait(SITE, "small", "Ready", |site| site.is("Ready")).await?;
    ensure!(site.at("/status/pages") == 1, "{site}");
    ensure!(site.text("/status/endpoint") == format!("small.{}.svc:80", case.namespace), "{site}");
    for kind in [CONFIG_MAP, DEPLOYMENT, SERVICE] {
        ensure!(case.get(kind, "small").await?.owner() == site.uid());
    }
    ensure!(!host.log_lines(&["keelson::guest", "renders small: 14 characters in pages"]).is_empty());
    let digest =
        |deployment: &Object| deployment.text("/spec/template/metadata/annotations/example.org~1pages").to_owned();
    let before = digest(&case.get(DEPLOYMENT, "small").await?);

    // A page more is another ConfigMap and other Pods.
    case.patch(SITE, "small", &json!({"spec": {"pages": {"news.html": "None today."}}})).await?;
    case.wait(CONFIG_MAP, "small", "of two pages", |map| map.text("/data/news.html") == "None today.").await?;
    case.wait(DEPLOYMENT, "small", "rolled", |deployment| digest(deployment) != before).await?;
    case.wait(SITE, "small", "Ready with two pages", |site| site.is("Ready") && site.at("/status/pages") == 2).await?;

    case.patch(SITE, "small", &json!({"spec": {"pages": {"index.html": Value::Null}}})).await?;
    let refused = case.wait(SITE, "small", "refused", |site| site.is_not("Ready", "InvalidSpec")).await?;
    ensure!(refused.message("Ready").contains("there is no index.html"), "{refused}");
    ensure!(case.get(CONFIG_MAP, "small").await?.text("/data/index.html") == "<h1>Hello</h1>");
    case.delete(SITE, "small").await?;
    case.wait_gone(DEPLOYMENT, "small").await
}
