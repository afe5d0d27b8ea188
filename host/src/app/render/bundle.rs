//! `keelson render --bundle`: a call that a host made, made again here.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};

use super::super::cli::Exit;
use super::super::said::say;
use crate::plugin::Registry;
use crate::plugin::bundle::{Bundle, Called, Outcome, Used, lines};
use crate::plugin::golden::{Difference, differences};
use crate::plugin::source::hash::sha256;
use crate::sandbox::{Component, Engine, Manifest};

pub(super) async fn again(file: &Path, plugins: Option<&Path>, other: Option<&Path>) -> anyhow::Result<Exit> {
    let shown = file.display();
    let text = std::fs::read(file).with_context(|| format!("cannot read {shown}"))?;
    let bundle = Bundle::parse(&text).map_err(|problem| anyhow::anyhow!("{shown} {problem}"))?;
    let engine = Engine::new(1).context("start the sandbox")?;
    let (component, manifest) = component(&bundle, &engine, plugins, other).await?;
    let Called { outcome, usage } = bundle.again(&component, &manifest);
    for line in lines(&usage) {
        let fields: String = line.fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        say(&format!("plugin {}: {}: {}{fields}", bundle.plugin.name, line.level, line.message));
    }
    let Used { fuel, microseconds, memory_bytes } = Used::of(&usage);
    say(&format!("{fuel} fuel, {microseconds} µs, {memory_bytes} bytes of memory"));
    let text = serde_json::to_string_pretty(&outcome).context("write the outcome")?;
    writeln!(std::io::stdout(), "{text}").context("write to stdout")?;
    Ok(if tell(&bundle.outcome, &outcome) { Exit::Failed } else { Exit::Ok })
}

/// The component of the bundle by its digest, or the other one.
async fn component(
    bundle: &Bundle,
    engine: &Engine,
    plugins: Option<&Path>,
    other: Option<&Path>,
) -> anyhow::Result<(Component, Manifest)> {
    if let Some(file) = other {
        let shown = file.display();
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {shown}"))?;
        if sha256(&bytes) != bundle.plugin.digest {
            say(&format!("{shown} is another component than the host had ({})", bundle.plugin.digest));
        }
        let component = engine.compile(&bytes, bundle.rules.limits).with_context(|| shown.to_string())?;
        let manifest = component.describe().0.with_context(|| format!("{shown}: describe"))?;
        return Ok((component, manifest));
    }
    let Some(folder) = plugins else { bail!("where is the component? --plugins DIR or --plugin FILE.wasm") };
    let registry = Registry::load(folder, engine).await?;
    let same = registry.plugins().iter().find(|plugin| plugin.digest == bundle.plugin.digest);
    let Some(plugin) = same else {
        bail!("no plugin of {} has the component {} of the bundle", folder.display(), bundle.plugin.digest)
    };
    // With the limits of the host that made the call.
    if plugin.limits == bundle.rules.limits {
        return Ok((plugin.component.clone(), plugin.manifest.clone()));
    }
    bail!(
        "plugin {} has other limits in {} than in the bundle; give its component by --plugin",
        plugin.name,
        folder.display()
    )
}

/// Whether there is a difference.
fn tell(then: &Outcome, now: &Outcome) -> bool {
    if then == now {
        say("the same as the host had");
        return false;
    }
    let told = |outcome: &Outcome| {
        let told = outcome.stopped.as_ref().or(outcome.refused.as_ref());
        told.map_or_else(|| "taken".to_owned(), |told| format!("{}: {}", told.reason, told.message))
    };
    say(&format!("then {}", told(then)));
    say(&format!("now {}", told(now)));
    if let (Some(then), Some(now)) = (&then.answer, &now.answer) {
        for Difference { part, path, wanted, given } in differences(then, now) {
            let shown =
                |value: Option<serde_json::Value>| value.map_or("nothing".to_owned(), |value| value.to_string());
            say(&format!("{part}{path}: then {}, now {}", shown(wanted), shown(given)));
        }
    }
    true
}
