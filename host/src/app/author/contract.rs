//! The contract's own text, in the program, for authors who do not have this repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where it stands in an author's folder.
pub(super) const FOLDER: &str = "wit/operator-0.1.0";

pub(super) const FILES: [(&str, &str); 3] = [
    ("log.wit", include_str!("../../../../wit/operator-0.1.0/log.wit")),
    ("types.wit", include_str!("../../../../wit/operator-0.1.0/types.wit")),
    ("world.wit", include_str!("../../../../wit/operator-0.1.0/world.wit")),
];

/// Writes it into `folder`, which is made, and leaves what stands there already.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    for (name, text) in FILES {
        let file = folder.join(name);
        if !file.exists() {
            fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        }
    }
    Ok(())
}

/// The author's copy, or else one made in `scratch`.
pub(super) fn of(folder: &Path, scratch: &Path) -> anyhow::Result<PathBuf> {
    let own = folder.join(FOLDER);
    if own.is_dir() {
        return Ok(own);
    }
    let made = scratch.join(FOLDER);
    write(&made)?;
    Ok(made)
}
