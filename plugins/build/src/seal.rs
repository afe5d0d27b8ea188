//! From what a compiler made to a plugin in the output folder: by `keelson plugin build`, as every author does it.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Without them nothing is known that a component must give; the guests of tests have none, and are changed afterwards.
const FIXTURES: &str = "fixtures";

/// The program beside this one.
pub(crate) fn beside_this_program() -> PathBuf {
    let this = std::env::current_exe().unwrap_or_default();
    this.with_file_name("keelson")
}

pub(crate) fn seal(keelson: &Path, source: &Path, compiled: &Path, out: &Path) -> Result<()> {
    let mut command = Command::new(keelson);
    command.args(["plugin", "build"]).arg(source).arg("--component").arg(compiled).arg("--out").arg(out);
    if !source.join(FIXTURES).is_dir() {
        command.arg("--bare");
    }
    let status = command.status().with_context(|| format!("cannot start {}", keelson.display()))?;
    ensure!(status.success(), "{} is no plugin ({status}), see above", source.display());
    Ok(())
}
