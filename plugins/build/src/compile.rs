//! Sources to WebAssembly, by plain cargo or by cargo-component.

use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Via {
    /// Plain cargo; this program makes the component.
    Cargo,
    /// `cargo component build`.
    CargoComponent,
}

/// Builds all members and says where their outputs are.
pub(crate) fn build(source: &Path, via: Via) -> Result<PathBuf> {
    ensure_target()?;
    let target = target_dir(source, via);
    let mut cargo = Command::new("cargo");
    if via == Via::CargoComponent {
        cargo.arg("component").env("PATH", path_with_tools()?);
    }
    cargo
        .args(["build", "--release", "--locked", "--target", TARGET, "--target-dir"])
        .arg(&target)
        .current_dir(source)
        .env("CARGO_ENCODED_RUSTFLAGS", without_this_machine())
        .env("CARGO_INCREMENTAL", "0");
    let status = cargo.status().context("cannot start cargo")?;
    match via {
        _ if status.success() => Ok(target.join(TARGET).join("release")),
        Via::Cargo => bail!("the plugins do not build ({status}), see above"),
        Via::CargoComponent => bail!(
            "cargo component failed ({status}), see above; where it is missing: \
             cargo install cargo-component --version 0.21.1 --locked"
        ),
    }
}

/// A missing target is a page of errors about `core`; better one line.
fn ensure_target() -> Result<()> {
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .context("cannot start rustc")?;
    let folder = PathBuf::from(String::from_utf8_lossy(&libraries.stdout).trim_end());
    ensure!(folder.is_dir(), "the Rust target {TARGET} is missing: rustup target add {TARGET}");
    Ok(())
}

/// The two ways write the same file names with different content, so each has
/// a folder of its own.
fn target_dir(source: &Path, via: Via) -> PathBuf {
    let base = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(set) => std::path::absolute(&set).unwrap_or_else(|_| set.into()).join("guests"),
        None => source.join("target"),
    };
    match via {
        Via::Cargo => base,
        Via::CargoComponent => base.join("cargo-component"),
    }
}

/// Panic messages hold the paths of dependencies; the same source must give the
/// same digest on every machine.
fn without_this_machine() -> OsString {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .unwrap_or_default();
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(home);
    flag.push("=/cargo");
    flag
}

fn path_with_tools() -> Result<OsString> {
    let cache = match (std::env::var_os("KEELSON_CACHE"), std::env::var_os("XDG_CACHE_HOME"), std::env::home_dir()) {
        (Some(cache), _, _) => PathBuf::from(cache),
        (None, Some(caches), _) => Path::new(&caches).join("keelson"),
        (None, None, Some(home)) => home.join(".cache/keelson"),
        (None, None, None) => bail!("neither KEELSON_CACHE, XDG_CACHE_HOME nor HOME is set"),
    };
    let mut folders = vec![cache.join("tools/bin")];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    std::env::join_paths(folders).context("the path of a folder has a colon")
}
