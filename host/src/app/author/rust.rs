//! Rust, by plain cargo or by cargo-component: to what stands in a `.wasm` file,
//! a core module or a component.
//!
//! The target is `wasm32-unknown-unknown`, unless flags or
//! `[package.metadata.keelson]` (`target`, `via`) in Cargo.toml say otherwise.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::super::cli::author::{BuildOptions, Via};
use super::tools::{CARGO, CARGO_COMPONENT, Tool};

const TARGET: &str = "wasm32-unknown-unknown";
/// Its modules need an adapter, which cargo-component brings.
const NEEDS_ADAPTER: &str = "wasm32-wasip1";

pub(super) fn build(folder: &Path, options: &BuildOptions) -> anyhow::Result<Vec<u8>> {
    let asked = asked(folder)?;
    let target = options.target.clone().or_else(|| word(&asked, "target")).unwrap_or_else(|| TARGET.to_owned());
    let via = match (options.via, word(&asked, "via").as_deref()) {
        (Some(via), _) => via,
        (None, None | Some("cargo")) => Via::Cargo,
        (None, Some("cargo-component")) => Via::CargoComponent,
        (None, Some(other)) => bail!("package.metadata.keelson.via is {other:?}: cargo or cargo-component"),
    };
    ensure!(
        via == Via::CargoComponent || target != NEEDS_ADAPTER,
        "plain cargo makes no component for {NEEDS_ADAPTER}: --via cargo-component, or --target wasm32-wasip2"
    );
    ensure_target(folder, &target)?;
    if via == Via::CargoComponent {
        // Asked for itself, so that a missing one is told from a failed build.
        CARGO_COMPONENT.run(CARGO_COMPONENT.command(folder)?.arg("--version"))?;
    }
    let mut cargo = CARGO.command(folder)?;
    if via == Via::CargoComponent {
        cargo.arg("component");
    }
    cargo.args(["build", "--release", "--message-format", "json-render-diagnostics", "--target", &target]);
    let built = CARGO.run(without_this_machine(&mut cargo)).context("the plugin does not build")?;
    let file = artifact(&built.stdout).context("cargo has built no .wasm: is the crate-type a cdylib?")?;
    std::fs::read(&file).with_context(|| format!("read {}", file.display()))
}

/// The last one that is told: that of the package itself, after those of its dependencies.
fn artifact(messages: &[u8]) -> Option<PathBuf> {
    let lines = messages.split(|byte| *byte == b'\n');
    let artifacts = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let files = artifacts.filter(|line| line.get("reason").is_some_and(|reason| reason == "compiler-artifact"));
    let names = files.flat_map(|line| line.get("filenames").and_then(Value::as_array).cloned().unwrap_or_default());
    let mut wasm = names.filter_map(|name| Some(PathBuf::from(name.as_str()?)));
    wasm.rfind(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

/// `[package.metadata.keelson]` of the package in this folder.
fn asked(folder: &Path) -> anyhow::Result<Value> {
    let mut cargo = CARGO.command(folder)?;
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_slice(&CARGO.run(&mut cargo)?.stdout).context("read cargo metadata")?;
    let packages = metadata.get("packages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let manifest = folder.join("Cargo.toml");
    let of = |package: &&Value| package.get("manifest_path").and_then(Value::as_str).map(Path::new) == Some(&manifest);
    let package = packages.iter().find(of).with_context(|| format!("{} is no package", manifest.display()))?;
    Ok(package.pointer("/metadata/keelson").cloned().unwrap_or_default())
}

fn word(asked: &Value, key: &str) -> Option<String> {
    asked.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A missing target is a page of errors about `core`; better one line. Where rustc is asked in the folder, its
/// `rust-toolchain.toml` counts.
fn ensure_target(folder: &Path, target: &str) -> anyhow::Result<()> {
    const RUSTC: Tool = Tool { program: "rustc", install: CARGO.install };
    let libraries = RUSTC.run(RUSTC.command(folder)?.args(["--print", "target-libdir", "--target", target]))?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&libraries.stdout).trim_end());
    ensure!(libraries.is_dir(), "the Rust target {target} is missing: rustup target add {target}");
    Ok(())
}

/// Panic messages hold the paths of dependencies; the same source must give the
/// same digest on every machine.
fn without_this_machine(cargo: &mut Command) -> &mut Command {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .unwrap_or_default();
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(home);
    flag.push("=/cargo");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flag).env("CARGO_INCREMENTAL", "0")
}
