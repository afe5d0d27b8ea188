//! An author's folder: what it is written in, and the template of its Plugin document.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::document;
use crate::plugin::document::Document;

/// The template of the Plugin document.
pub(super) const TEMPLATE: &str = "plugin.yaml";

pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Of `plugin.yaml`, as it stands.
    pub(super) template: String,
    /// The same, read; its digest is no digest yet.
    pub(super) document: Document,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Python,
    JavaScript,
}

/// The file by which each is known.
const MARKS: [(&str, Language); 3] =
    [("Cargo.toml", Language::Rust), ("app.py", Language::Python), ("app.js", Language::JavaScript)];

impl Folder {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let path = path.canonicalize().with_context(|| format!("no folder {shown}"))?;
        let file = path.join(TEMPLATE);
        let template = fs::read_to_string(&file)
            .with_context(|| format!("{shown} has no {TEMPLATE}, the template of its Plugin document"))?;
        let filled = document::with_digest(&template, b"").with_context(|| file.display().to_string())?;
        let document = Document::parse(&filled).with_context(|| file.display().to_string())?;
        Ok(Self { path, template, document })
    }

    pub(super) fn language(&self) -> anyhow::Result<Language> {
        let found: Vec<_> = MARKS.iter().filter(|(file, _)| self.path.join(file).is_file()).collect();
        match found.as_slice() {
            [(_, language)] => Ok(*language),
            [] => bail!(
                "{} has none of Cargo.toml, app.py, app.js; a component that something else has built is taken by --component FILE",
                self.path.display()
            ),
            [(one, _), (other, _), ..] => {
                bail!("{} has both {one} and {other}: which is the plugin?", self.path.display())
            }
        }
    }

    /// The name of the Plugin document.
    pub(super) fn name(&self) -> &str {
        &self.document.name
    }
}
