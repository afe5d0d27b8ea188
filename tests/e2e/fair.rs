//! Plugins that fail with every object: slowed down, said, and healed without anybody's doing.

use keelson_tests::{prelude::*, probe};

const OBJECTS: usize = 40;
/// Fewer than that are tried: eight, those that were under way, and a try now and then.
const TRIED: usize = 25;

fn good() -> Value {
    json!({"children": [probe::pod(), probe::service()]})
}

fn traps() -> Probe {
    scripted(&json!({"act": "trap"}))
}

fn scripted(script: &Value) -> Probe {
    Probe::new("traps", "mysql").script(script)
}

fn name(i: usize) -> String {
    format!("t{i}")
}

async fn crowd(case: &Case) -> Outcome {
    for i in 0..OBJECTS {
        case.apply_database(&name(i), "mysql").await?;
    }
    let (mut tried, mut waiting) = (0, 0);
    for i in 0..OBJECTS {
        let told = |database: &Object| ["Trap", "PluginFailing"].iter().any(|one| database.is_not("Ready", one));
        let database = case.wait_for(seconds(60), DATABASE, &name(i), "told", told).await?;
        if database.is_not("Ready", "Trap") {
            tried += 1;
        } else {
            waiting += 1;
            let message = database.message("Ready");
            ensure!(message.contains("plugin traps") && message.contains("Trap"), "{message}");
            ensure!(!database.is("Degraded"), "it was not tried yet: {database}");
        }
    }
    ensure!((8..TRIED).contains(&tried), "{tried} were tried, {waiting} wait");
    Ok(())
}

async fn failing(host: &Host, plugin: &str) -> anyhow::Result<bool> {
    Ok(host.metrics().await?.sum("keelson_plugin_failing", &[("plugin", plugin)]) > 0.5)
}

const CLOSED: &str = "fails with one object after the other";

pub(crate) async fn a_plugin_that_fails_is_asked_more_rarely_and_heals_alone(case: Case) -> Outcome {
    let works = Probe::new("works", "mongo").script(&good());
    let folder = case.probes(&[traps(), works])?;
    let host = case.host().plugins(&folder).start().await?;
    // Served by it while it works, and not touched when it does not.
    case.scripted("stands", "mysql", &good()).await?;
    case.wait(DATABASE, "stands", "Ready", |database| database.is("Ready")).await?;
    let pod = case.get(POD, "stands").await?;
    crowd(&case).await?;
    ensure!(failing(&host, "traps").await? && !failing(&host, "works").await?, "{}", host.metrics().await?.text());
    ensure!(host.log_lines(&["WARN", CLOSED, "\"plugin\":\"traps\"", "Trap"]).len() == 1, "{}", host.log());
    // Another plugin does not notice, and refusals in a plugin's own words are no fault.
    let refuses = json!({"fail": {"class": "invalid", "reason": "NotToday", "message": "no"}});
    for i in 0..12 {
        case.scripted(&format!("refused{i}"), "mongo", &refuses).await?;
    }
    for i in 0..12 {
        let name = format!("refused{i}");
        case.wait(DATABASE, &name, "refused", |database| database.is_not("Ready", "NotToday")).await?;
    }
    ensure!(!failing(&host, "works").await?);
    case.database("a", "mongo").await?;
    ensure!(case.get(DATABASE, "stands").await?.is("Ready"));
    case.delete(POD, "stands").await?;
    // What made it fail is gone: whoever's turn is next finds out, and all the others follow at once.
    for i in 0..OBJECTS {
        case.scripted(&name(i), "mysql", &good()).await?;
    }
    for i in 0..OBJECTS {
        case.wait_for(seconds(120), DATABASE, &name(i), "Ready", |database| database.is("Ready")).await?;
    }
    let back = |again: &Object| !again.going() && again.uid() != pod.uid();
    case.wait(POD, "stands", "back", back).await?;
    ensure!(!failing(&host, "traps").await?);
    for words in [CLOSED, "works again"] {
        ensure!(host.log_lines(&[words]).len() == 1, "{words}: {}", host.log());
    }
    Ok(())
}

pub(crate) async fn another_version_of_a_failing_plugin_begins_anew(case: Case) -> Outcome {
    let folder = case.probes(&[])?;
    std::fs::create_dir_all(&folder)?;
    traps().write_component(&folder)?;
    let host = case.host().plugins(&folder).arg("--plugin-source=both").start().await?;
    case.cluster.apply("", &traps().document()).await?;
    crowd(&case).await?;
    let plugin = case.wait(PLUGIN, "traps", "Failing", |plugin| plugin.text("/status/phase") == "Failing").await?;
    let serving = plugin.condition("Serving").context("no condition Serving")?;
    ensure!(plugin.is("Serving") && serving.reason == "PluginFailing" && serving.message.contains("Trap"), "{plugin}");
    case.cluster.apply("", &scripted(&good()).document()).await?;
    for i in 0..OBJECTS {
        case.wait_for(seconds(60), DATABASE, &name(i), "Ready", |database| database.is("Ready")).await?;
    }
    let heals = |plugin: &Object| {
        plugin.text("/status/phase") == "Serving"
            && plugin.condition("Serving").is_some_and(|serving| serving.reason == "Succeeded")
    };
    case.wait(PLUGIN, "traps", "Serving", heals).await?;
    ensure!(!failing(&host, "traps").await?);
    Ok(())
}
