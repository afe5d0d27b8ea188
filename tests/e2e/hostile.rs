//! Every hostile component of the sandbox's own table, in one host: each is stopped for the reason of its row, and said so
//! in its object, while others are served.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the table is written for another test")]

#[path = "../../host/tests/hostile/cases.rs"]
mod cases;
#[allow(dead_code, reason = "as far as the table wants it")]
#[path = "../../host/tests/hostile/guest.rs"]
mod guest;

use crate::specs;
use cases::{Limits, Stopped};
use keelson_tests::prelude::*;
use std::path::Path;

/// `NAME.wasm` and `NAME.yaml`, granted the Databases of this type.
fn write(folder: &Path, case: &cases::Case) -> Outcome {
    let name = case.slug();
    std::fs::write(folder.join(format!("{name}.wasm")), &case.bytes)?;
    let discriminator = json!({"path": "/spec/type", "value": name});
    let Limits { memory_mib, fuel, wall_milliseconds } = case.limits;
    let spec = json!({"source": {"file": {"path": format!("{name}.wasm")}}, "trust": {"unsigned": true},
        "limits": {"memoryMiB": memory_mib, "fuel": fuel, "wallMilliseconds": wall_milliseconds},
        "grant": {"namespaces": ["*"], "serves": [{"group": "zalando.org", "kind": "Database", "discriminator": discriminator}]}});
    let document =
        json!({"apiVersion": "keelson.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name}, "spec": spec});
    std::fs::write(folder.join(format!("{name}.yaml")), document.to_string())?;
    Ok(())
}

pub(crate) async fn case_79_each_hostile_component_is_stopped_while_others_serve(case: Case) -> Outcome {
    specs::install_loose(&case).await?;
    let folder = case.plugin_folder()?;
    let table = cases::all();
    ensure!(table.len() >= 30, "{} kinds", table.len());
    for hostile in &table {
        write(&folder, hostile)?;
    }
    let mut host = case.host().plugins(&folder).start().await?;
    case.database("good", "mongo").await?;
    for hostile in &table {
        let name = hostile.slug();
        specs::create(&case, &name, json!({"type": name})).await?;
    }
    let (mut wrong, mut others) = (Vec::new(), 0);
    for hostile in &table {
        let name = hostile.slug();
        // Where it was stopped, in the words that its object's user reads.
        let (reason, words) = match hostile.stopped {
            Stopped::Load(reason, words) | Stopped::Describe(reason, words) => {
                ("PluginUnavailable", [format!("{name} is not serving: {reason}"), words.to_owned()])
            }
            Stopped::Render(reason, words) => (reason, [format!("plugin {name}"), words.to_owned()]),
        };
        let told = |database: &Object| database.condition("Ready").is_some_and(|ready| !ready.reason.is_empty());
        let database = case.wait_for(seconds(60), DATABASE, &name, "told", told).await?;
        let said = database.message("Ready");
        if !database.is_not("Ready", reason) || !words.iter().all(|words| said.contains(words)) {
            wrong.push(format!(
                "{}: wanted {:?}, and its Database says {database}: {said}",
                hostile.name, hostile.stopped
            ));
        }
        // Beside it somebody else makes a Database.
        if others % 8 == 0 {
            case.database(&format!("good-{others}"), if others % 16 == 0 { "mongo" } else { "mysql" }).await?;
        }
        others += 1;
    }
    ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.len(), wrong.join("\n"));
    case.delete(SERVICE, "good").await?;
    case.wait(SERVICE, "good", "back", |service| !service.going()).await?;
    host.ready().await?;
    // Two of the plugins log that they do.
    let own: Vec<String> =
        host.log_lines(&["panicked"]).into_iter().filter(|it| !it.contains("panicked at lib.rs")).collect();
    ensure!(own.is_empty(), "{own:?}");
    let made = case.list(POD).await?.into_iter().filter(|pod| pod.name().starts_with("x-")).count();
    ensure!(made == 0, "{made} Pods of hostile plugins");
    Ok(())
}
