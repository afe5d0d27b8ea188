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
        let message = database.message("Ready");
        ensure!(message.contains("plugin probe trapped: unreachable in probe::"), "{message}");
        ensure!(message.contains("after it logged: panicked at") && !message.contains('\u{2190}'), "{message}");
        let said = host.log_lines(&["keelson::guest", "as the script says", &format!("\"name\":\"{name}\"")]);
        ensure!(said.len() == 1, "{name}: {said:?}");
        // The way there, by the names of functions, in one line.
        let stood = host.log_lines(&["keelson::guest", "stopped in ", &format!("\"name\":\"{name}\"")]);
        ensure!(stood.len() == 1 && stood.iter().all(|line| line.contains("probe::play::render")), "{name}: {stood:?}");
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
    // By what it came to itself, or by what it waits for since the plugin hangs with everybody.
    let told = |database: &Object| ["Timeout", "PluginFailing"].iter().any(|reason| database.is_not("Ready", reason));
    case.wait_for(seconds(120), DATABASE, "h0", "told", told).await?;
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
            ensure!(database.message("Ready").contains("metadata.name"), "{bad:?}: {database}");
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

/// A section that no tool knows, so many MiB long.
fn padded(component: &std::path::Path, mib: u32) -> Outcome {
    let bytes = mib * 1024 * 1024;
    let mut section = vec![0];
    let mut left = bytes;
    while left >= 0x80 {
        section.push((left as u8) | 0x80);
        left >>= 7;
    }
    section.push(left as u8);
    section.extend([3, b'p', b'a', b'd']);
    let mut all = std::fs::read(component)?;
    all.extend(section);
    all.resize(all.len() + bytes as usize - 4, 7);
    Ok(std::fs::write(component, all)?)
}

pub(crate) async fn case_61_a_large_plugin_is_told_apart_from_a_small_one(case: Case) -> Outcome {
    specs::install_loose(&case).await?;
    let folder = case.probes(&[])?;
    for (name, mib) in [("small", 0), ("large", 18), ("larger", 65)] {
        Probe::new(name, name).script(&good()).write(&folder)?;
        if mib > 0 {
            padded(&folder.join(format!("{name}.wasm")), mib)?;
        }
    }
    let host = case.host().plugins(&folder).start().await?;
    for name in ["small", "large"] {
        case.database(name, name).await?;
    }
    case.apply_database("larger", "larger").await?;
    let database = case.wait(DATABASE, "larger", "told", |d| d.is_not("Ready", "PluginUnavailable")).await?;
    ensure!(database.message("Ready").contains("larger than 65536 KiB"), "{database}");
    let metrics = host.metrics().await?;
    let bytes = |plugin: &str, of: &str| metrics.sum("keelson_plugin_bytes", &[("plugin", plugin), ("of", of)]);
    ensure!(bytes("large", "component") > 18.0 * 1024.0 * 1024.0, "{}", bytes("large", "component"));
    ensure!(bytes("small", "component") < 1024.0 * 1024.0, "{}", bytes("small", "component"));
    for plugin in ["small", "large"] {
        ensure!(bytes(plugin, "code") > bytes("small", "component"), "{plugin}: {}", bytes(plugin, "code"));
        ensure!(bytes(plugin, "call") >= 65_536.0, "{plugin}: {}", bytes(plugin, "call"));
    }
    ensure!(bytes("larger", "component") < 0.5);
    Ok(())
}

pub(crate) async fn case_63_a_start_compiles_nothing_that_was_compiled(case: Case) -> Outcome {
    let folder = case.plugin_folder()?;
    let cache = folder.with_extension("cache");
    std::fs::create_dir_all(&cache)?;
    let start =
        async || case.host().plugins(&folder).arg("--compile-cache").arg(&cache.to_string_lossy()).start().await;
    let counts = async |host: &Host| {
        let metrics = host.metrics().await?;
        let of = |result: &str| metrics.sum("keelson_compiles_total", &[("result", result)]);
        anyhow::Ok([of("compiled"), of("cached"), of("rebuilt")])
    };
    let host = start().await?;
    ensure!(counts(&host).await? == [2.0, 0.0, 0.0], "{:?}", counts(&host).await?);
    case.database("m", "mongo").await?;
    drop(host);
    let host = start().await?;
    ensure!(counts(&host).await? == [0.0, 2.0, 0.0], "{:?}", counts(&host).await?);
    case.database("y", "mysql").await?;
    drop(host);
    // Cut off, as by a full disk; and of a version that made other code: both are made anew, and that is said once.
    for entry in std::fs::read_dir(cache.join("compiled"))? {
        let path = entry?.path();
        let bytes = std::fs::read(&path)?;
        std::fs::write(&path, bytes.get(..bytes.len() / 2).unwrap_or_default())?;
    }
    let host = start().await?;
    ensure!(counts(&host).await? == [2.0, 0.0, 2.0], "{:?}", counts(&host).await?);
    ensure!(host.log_lines(&["WARN", "made anew", "is damaged"]).len() == 2, "{}", host.log());
    case.database("n", "mongo").await?;
    drop(host);
    let host = start().await?;
    ensure!(counts(&host).await? == [0.0, 2.0, 0.0], "{:?}", counts(&host).await?);
    drop(host);
    // No place to keep it: said once, and all serves.
    std::fs::remove_dir_all(&cache)?;
    std::fs::write(&cache, "a file")?;
    let host = start().await?;
    ensure!(counts(&host).await? == [2.0, 0.0, 0.0], "{:?}", counts(&host).await?);
    ensure!(host.log_lines(&["WARN", "compiled plugins are not kept"]).len() == 1, "{}", host.log());
    Ok(())
}

pub(crate) async fn case_77_a_deadline_always_exists(case: Case) -> Outcome {
    specs::install_loose(&case).await?;
    let folder = case.probes(&[])?;
    let combinations = [
        ("neither", json!({}), ["OutOfFuel", "Timeout"]),
        ("fuel", json!({"fuel": 1_000_000}), ["OutOfFuel", "OutOfFuel"]),
        ("wall", json!({"wallMilliseconds": 50, "fuel": 1_000_000_000_000_u64}), ["Timeout", "Timeout"]),
        ("both", json!({"wallMilliseconds": 60_000, "fuel": 2_000_000}), ["OutOfFuel", "OutOfFuel"]),
    ];
    for (name, limits, _) in &combinations {
        Probe::new(name, name).script(&json!({"act": "loop"})).spec(&json!({"limits": limits})).write(&folder)?;
    }
    Probe::new("good", "good").script(&good()).write(&folder)?;
    // No limit can be left off by saying so.
    for (name, limits) in [("zero", json!({"fuel": 0})), ("none", json!({"wallMilliseconds": 0}))] {
        Probe::new(name, name).script(&good()).spec(&json!({"limits": limits})).write(&folder)?;
    }
    let _host = case.host().plugins(&folder).start().await?;
    for (name, _, reasons) in &combinations {
        case.apply_database(name, name).await?;
        let stopped = |database: &Object| reasons.iter().any(|reason| database.is_not("Ready", reason));
        case.wait_for(seconds(60), DATABASE, name, "stopped", stopped).await?;
        case.database(&format!("good-{name}"), "good").await?;
    }
    for name in ["zero", "none"] {
        case.apply_database(name, name).await?;
        let database = case.wait(DATABASE, name, "refused", |d| d.is_not("Ready", "PluginUnavailable")).await?;
        ensure!(database.message("Ready").contains("spec.limits"), "{database}");
    }
    Ok(())
}
