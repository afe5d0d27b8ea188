//! Programs of an author's language: where they are looked for, and what is said where one is missing.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};

/// What componentize-py and componentize-qjs are told as long as a plugin may import no WASI. The one place for it.
pub(super) const WITHOUT_WASI: &[&str] = &["--stub-wasi"];

pub(super) struct Tool {
    pub(super) program: &'static str,
    /// The command that installs it.
    pub(super) install: &'static str,
}

pub(super) const CARGO: Tool = Tool { program: "cargo", install: "see https://rustup.rs" };
pub(super) const CARGO_COMPONENT: Tool =
    Tool { program: "cargo-component", install: "cargo install cargo-component --version 0.21.1 --locked" };
pub(super) const COMPONENTIZE_PY: Tool = Tool {
    program: "componentize-py",
    install: "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1",
};
pub(super) const COMPONENTIZE_QJS: Tool =
    Tool { program: "componentize-qjs", install: "npm install --save-dev componentize-qjs@0.4.5" };

/// Where languages install what belongs to one folder.
const OWN: [&str; 2] = [".venv/bin", "node_modules/.bin"];

impl Tool {
    /// A command in `folder`, which finds what is installed there first.
    pub(super) fn command(&self, folder: &Path) -> anyhow::Result<Command> {
        let mut command = Command::new(self.program);
        command.current_dir(folder).env("PATH", path(folder)?).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs it; its stderr is the user's. `Err` where it is missing or fails.
    pub(super) fn run(&self, command: &mut Command) -> anyhow::Result<Output> {
        let output = match command.stderr(Stdio::inherit()).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("{} is not installed: {}", self.program, self.install)
            }
            output => output.with_context(|| format!("start {}", self.program))?,
        };
        if !output.status.success() {
            bail!("{} failed ({}), see above", self.program, output.status);
        }
        Ok(output)
    }
}

fn path(folder: &Path) -> anyhow::Result<OsString> {
    let mut folders: Vec<_> = OWN.iter().map(|own| folder.join(own)).collect();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    std::env::join_paths(folders).context("the path of a folder has a colon")
}
