//! Plugins that fail: what becomes of their objects, and that nobody else notices.

use crate::specs;
use keelson_tests::{prelude::*, probe};

fn good() -> Value {
    json!({"children": [probe::pod(), probe::service()]})
}

pub(crate) async fn case_45_a_trap_stays_with_its_object(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&good())])?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("good", "mongo").await?;
    case.database("turns", "mongo").await?;
    let pod = case.get(POD, "turns").await?;
    // From the start, and after it has stood.
    for name in ["bad", "turns"] {
        case.scripted(name, "mongo", &json!({"act": "trap"})).await?;
        let database = case.wait(DATABASE, name, "trapped", |database| database.is_not("Ready", "Trap")).await?;
        ensure!(database.message("Ready").contains("plugin probe"), "{database}");
        let said = host.log_lines(&["keelson::guest", "as the script says", &format!("\"name\":\"{name}\"")]);
        ensure!(said.len() == 1, "{name}: {said:?}");
    }
    case.database("another", "mongo").await?;
    ensure!(case.get(POD, "turns").await?.uid() == pod.uid(), "a trap took the Pod away");
    ensure!(case.find(POD, "bad").await?.is_none());
    // It would trap again: it is not asked again.
    let renders = async || anyhow::Ok(host.metrics().await?.sum("keelson_renders_total", &[("result", "Trap")]));
    let before = renders().await?;
    case.quiet(seconds(5)).await?;
    ensure!(renders().await? <= before, "{before} traps became {}", renders().await?);
    for name in ["bad", "turns"] {
        case.scripted(name, "mongo", &good()).await?;
        case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
    }
    ensure!(case.get(POD, "turns").await?.uid() == pod.uid());
    Ok(())
}

pub(crate) async fn case_71_a_missing_kind_stalls_only_its_plugin(case: Case) -> Outcome {
    const GADGET: Kind = Kind::namespaced("example.org/v1", "Gadget", "gadgets");
    let folder = case.plugin_folder()?;
    std::fs::remove_file(folder.join("mysql.yaml"))?;
    let serves = |kind: &str, plural: &str| {
        let served = json!({"group": "example.org", "versions": ["v1"], "kind": kind, "plural": plural});
        (json!({"serves": [served]}), json!({"grant": {"serves": [{"group": "example.org", "kind": kind}]}}))
    };
    let (manifest, grant) = serves("Widget", "widgets");
    // One whose parents are of a kind that nobody serves, one whose children are.
    Probe::new("widgets", "none").manifest(&manifest).spec(&grant).write(&folder)?;
    Probe::new("gadgets", "mysql")
        .children(&[GADGET, POD])
        .script(&json!({"children": [probe::pod()]}))
        .write(&folder)?;
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    case.apply_database("b", "mysql").await?;
    let database = case.wait(DATABASE, "b", "told", |database| database.is_not("Ready", "KindMissing")).await?;
    ensure!(database.message("Ready").contains("gadgets.example.org"), "{database}");
    case.delete(POD, "a").await?;
    case.wait_for(seconds(10), DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    for kind in ["widgets.example.org", "gadgets.example.org"] {
        ensure!(!host.log_lines(&["WARN", "missing", kind]).is_empty(), "{kind} is not named");
    }
    Ok(())
}

pub(crate) async fn case_71_a_plugin_that_hangs_stalls_only_its_objects(case: Case) -> Outcome {
    let folder = case.plugin_folder()?;
    std::fs::remove_file(folder.join("mysql.yaml"))?;
    // No fuel limit to speak of: only the clock ends it, and it is tried again as what may pass.
    let limits = json!({"limits": {"fuel": 1_000_000_000_000_u64, "wallMilliseconds": 500}});
    Probe::new("hangs", "mysql").script(&json!({"act": "loop"})).spec(&limits).write(&folder)?;
    let host = case.host().plugins(&folder).start().await?;
    const HANGING: usize = 40;
    for i in 0..HANGING {
        case.apply_database(&format!("h{i}"), "mysql").await?;
    }
    let hung = async || Ok(host.metrics().await?.sum("keelson_renders_total", &[("result", "Timeout")]) >= 2.0);
    case.until("the first to be stopped", seconds(20), hung).await?;
    for i in 0..3 {
        let name = format!("a{i}");
        case.apply_database(&name, "mongo").await?;
        case.wait_for(seconds(10), DATABASE, &name, "Ready beside those that hang", |database| database.is("Ready"))
            .await?;
    }
    case.wait_for(seconds(120), DATABASE, "h0", "told", |database| database.is_not("Ready", "Timeout")).await?;
    ensure!(host.probe("/readyz").await?.0 == 200);
    Ok(())
}

pub(crate) async fn case_72_a_child_with_an_invalid_name_wedges_nothing(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&good())])?;
    let _host = case.host().plugins(&folder).start().await?;
    let named = |name: &str| {
        let spec = json!({"selector": "{selector}", "ports": [{"port": 80}]});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
        json!({"children": [probe::pod(), service]})
    };
    case.database("stands", "mongo").await?;
    let pod = case.get(POD, "stands").await?;
    let long = format!("{{name}}-{}", "x".repeat(40));
    for (i, bad) in ["{name}.x", "{name}_", "UPPER", "{name}-", "", "another", "{name}/..", &long].iter().enumerate() {
        let name = format!("n{i}");
        for name in [name.as_str(), "stands"] {
            case.scripted(name, "mongo", &named(bad)).await?;
            let database = case.wait(DATABASE, name, "refused", |d| d.is_not("Ready", "InvalidChild")).await?;
            ensure!(database.message("Ready").contains("/metadata/name"), "{bad:?}: {database}");
        }
        ensure!(case.find(POD, &name).await?.is_none(), "{bad:?}: its Pod was made before its Service was refused");
        let recorded = case.get(DATABASE, &name).await?.at("/status/children").clone();
        ensure!(recorded == json!([]) || recorded.is_null(), "{bad:?} is recorded: {recorded}");
        // The next rendering is like a first one.
        case.scripted(&name, "mongo", &good()).await?;
        case.wait(DATABASE, &name, "Ready", |database| database.is("Ready")).await?;
    }
    case.scripted("stands", "mongo", &named("{name}-read")).await?;
    case.wait(SERVICE, "stands-read", "there", |_| true).await?;
    case.wait_gone(SERVICE, "stands").await?;
    case.wait(DATABASE, "stands", "Ready", |database| database.is("Ready")).await?;
    ensure!(case.get(POD, "stands").await?.uid() == pod.uid());
    Ok(())
}

pub(crate) async fn case_75_four_of_five_plugins_serve(case: Case) -> Outcome {
    specs::install_loose(&case).await?;
    let folder = case.plugin_folder()?;
    for name in ["one", "two", "three"] {
        Probe::new(name, name).script(&good()).write(&folder)?;
    }
    std::fs::remove_file(folder.join("two.wasm"))?;
    let host = case.host().plugins(&folder).start().await?;
    for name in ["mongo", "mysql", "one", "three"] {
        case.database(name, name).await?;
    }
    case.apply_database("two", "two").await?;
    let database = case.wait(DATABASE, "two", "told", |database| database.is_not("Ready", "PluginUnavailable")).await?;
    let message = database.message("Ready");
    ensure!(message.contains("plugin two") && message.contains("two.wasm"), "{message}");
    case.until("one Event", seconds(10), async || Ok(case.events("two").await?.len() == 1)).await?;
    ensure!(host.log_lines(&["ERROR", "not serving", "two.wasm"]).len() == 1, "{}", host.log());
    // Once it can be had, the object is served.
    Probe::new("two", "two").script(&good()).write(&folder)?;
    let _host = host.restart().await?;
    case.wait(DATABASE, "two", "Ready", |database| database.is("Ready")).await?;
    Ok(())
}
