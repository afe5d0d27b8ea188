//! Python by componentize-py, JavaScript by componentize-qjs: to a component.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::super::cli::author::BuildOptions;
use super::contract;
use super::files::Scratch;
use super::tools::{COMPONENTIZE_PY, COMPONENTIZE_QJS, WITHOUT_WASI};

/// The contract's worlds, by the hooks that a source exports.
const WORLDS: [(bool, bool, &str); 4] = [
    (false, false, "plugin"),
    (false, true, "plugin-with-finalizer"),
    (true, false, "plugin-with-relations"),
    (true, true, "plugin-with-relations-and-finalizer"),
];

pub(super) fn python(folder: &Path, options: &BuildOptions) -> anyhow::Result<Vec<u8>> {
    let scratch = Scratch::new()?;
    let (wit, out) = (contract::of(folder, scratch.path())?, scratch.path().join("app.wasm"));
    let world = world(folder, "app.py", options, ["class Relations", "class Finalizer"])?;
    let mut command = COMPONENTIZE_PY.command(folder)?;
    command.arg("--wit-path").arg(wit).args(["--world", &world, "componentize"]).args(WITHOUT_WASI);
    command.args(["app", "--output"]).arg(&out);
    COMPONENTIZE_PY.run(&mut command)?;
    fs::read(&out).context("componentize-py has written nothing")
}

pub(super) fn javascript(folder: &Path, options: &BuildOptions) -> anyhow::Result<Vec<u8>> {
    let scratch = Scratch::new()?;
    let (wit, out) = (contract::of(folder, scratch.path())?, scratch.path().join("app.wasm"));
    let world = world(folder, "app.js", options, ["const relations", "const finalizer"])?;
    let mut command = COMPONENTIZE_QJS.command(folder)?;
    command.arg("--wit").arg(wit).args(["--js", "app.js", "--world", &world]).args(WITHOUT_WASI);
    command.args(["--sync", "--opt-size", "--output"]).arg(&out);
    COMPONENTIZE_QJS.run(&mut command)?;
    fs::read(&out).context("componentize-qjs has written nothing")
}

/// As the source's exports have it, by their names at the start of a line; a flag says it where they hide.
fn world(folder: &Path, file: &str, options: &BuildOptions, marks: [&str; 2]) -> anyhow::Result<String> {
    if let Some(world) = &options.world {
        return Ok(world.clone());
    }
    let source = fs::read_to_string(folder.join(file)).with_context(|| format!("read {file}"))?;
    let has = |mark: &str| source.lines().any(|line| line.strip_prefix("export ").unwrap_or(line).starts_with(mark));
    let [relations, finalizer] = marks.map(has);
    Ok(world_with(relations, finalizer).to_owned())
}

pub(super) fn world_with(relations: bool, finalizer: bool) -> &'static str {
    let known = WORLDS.iter().find(|(one, other, _)| (*one, *other) == (relations, finalizer));
    known.map_or("plugin", |(_, _, world)| world)
}
