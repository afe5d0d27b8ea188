//! `keelson crd`, and `keelson plugin crd`: one definition of what several
//! plugins read of one kind.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};

use super::cli::{Exit, MergeArgs};
use crate::limits::{COMPONENT_BYTES, PluginLimits};
use crate::plugin::{self, Registry, definition};
use crate::sandbox::{Engine, Manifest};

pub fn print() -> anyhow::Result<Exit> {
    let text = plugin::crd::crd().context("write the CustomResourceDefinition as YAML")?;
    std::io::stdout().write_all(text.as_bytes()).context("write to stdout")?;
    Ok(Exit::Ok)
}

pub(crate) async fn merge(args: MergeArgs) -> anyhow::Result<Exit> {
    let MergeArgs { parts, plugins: folder } = args;
    let engine = Engine::new(1).context("start the sandbox")?;
    let registry = match &folder {
        Some(folder) => Some(Registry::load(folder, &engine).await?),
        None => None,
    };
    let mut plugins: Vec<Manifest> = Vec::new();
    for part in &parts {
        let manifest = if part.contains('/') || part.ends_with(".wasm") {
            of_file(Path::new(part), &engine).with_context(|| part.clone())?
        } else {
            let Some(registry) = &registry else {
                bail!("{part} is no component file (FILE.wasm); to name a plugin of a folder, give --plugins");
            };
            of_name(part, registry)?
        };
        plugins.push(manifest);
    }
    let names: Vec<String> = plugins.iter().map(|one| format!("{} {}", one.name, one.version)).collect();
    let mut texts = Vec::new();
    for crd in definition::definitions(&plugins)? {
        let text = serde_saphyr::to_string(&crd).context("write the CustomResourceDefinition as YAML")?;
        texts.push(format!("# Made by `keelson plugin crd` of the plugins {}.\n{text}", names.join(", ")));
    }
    std::io::stdout().write_all(texts.join("---\n").as_bytes()).context("write to stdout")?;
    Ok(Exit::Ok)
}

/// As it says itself, whoever has made it: it runs in the sandbox, and nothing is granted.
fn of_file(file: &Path, engine: &Engine) -> anyhow::Result<Manifest> {
    let size = std::fs::metadata(file).context("it cannot be read")?.len();
    if size > COMPONENT_BYTES {
        bail!("it has {size} bytes; at most {COMPONENT_BYTES} are read");
    }
    let bytes = std::fs::read(file).context("it cannot be read")?;
    let component = engine.compile(&bytes, PluginLimits::default())?;
    component.describe().0.context("describe")
}

fn of_name(name: &str, registry: &Registry) -> anyhow::Result<Manifest> {
    if let Some(plugin) = registry.plugin(name) {
        return Ok(Manifest { name: name.to_owned(), ..plugin.manifest.clone() });
    }
    match registry.problems().iter().find(|problem| problem.name() == name) {
        Some(problem) => bail!("{}: {}", problem.reason, problem.message),
        None => {
            let there: Vec<&str> = registry.plugins().iter().map(|plugin| plugin.name.as_str()).collect();
            bail!("the folder has no plugin {name}; it has {}", there.join(", "))
        }
    }
}
