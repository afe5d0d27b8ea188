//! Files that are written whole or not at all, and a place for what is in between.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A folder that goes with the value.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut name = [0; 8];
        getrandom::fill(&mut name).context("get random bytes")?;
        let path = std::env::temp_dir().join(format!("keelson-{:016x}", u64::from_be_bytes(name)));
        // Fails where it is there already: nobody else's folder is written to.
        fs::create_dir(&path).with_context(|| format!("make {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left takes room in a folder for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Beside its final name first: nobody sees half a file. What is equal stays.
pub(super) fn replace(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if fs::read(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    let name = path.file_name().context("no name of a file")?.to_string_lossy();
    let part = path.with_file_name(format!(".{name}.part"));
    fs::write(&part, content).with_context(|| format!("write {}", part.display()))?;
    fs::rename(&part, path).with_context(|| format!("write {}", path.display()))
}
