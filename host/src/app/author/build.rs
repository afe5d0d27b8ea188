//! `keelson plugin build`: from a folder to a component with its sections, and the document that trusts it.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, ensure};

use super::super::cli::Exit;
use super::super::cli::author::BuildArgs;
use super::super::said::say;
use super::folder::Folder;
use super::test::{self, Tested};
use super::trial::Trial;
use super::{component, document, files};
use crate::limits::FIXTURES_BYTES;
use crate::plugin::document::{FileSource, Source};
use crate::plugin::golden::{self, Fixtures};
use crate::plugin::sections::{self, Sections};
use crate::sandbox::Manifest;

/// Where the output goes, in the folder.
pub(super) const OUT: &str = "out";

pub(super) fn build(args: BuildArgs) -> anyhow::Result<Exit> {
    let BuildArgs { dir, out, bare, options } = args;
    let folder = Folder::open(&dir)?;
    let component = component::of(&folder, &options)?;
    let component = if bare {
        component
    } else {
        let trial = Trial::start(&component, &folder.document)?;
        let Tested { golden, failed } = test::all(&folder, &trial, false, false, &mut std::io::stderr().lock())?;
        if failed > 0 {
            say(&format!(
                "not built: {failed} of {} fixtures fail, and no host would serve it; what is rendered now is written \
                 into them by keelson plugin test --update",
                golden.len() + failed
            ));
            return Ok(Exit::Failed);
        }
        sealed(&component, &trial.manifest, golden)?
    };
    let out = out.unwrap_or_else(|| folder.path.join(OUT));
    let file = write(&folder, &component, &out)?;
    writeln!(std::io::stdout(), "{:>9} bytes  {}", component.len(), out.join(file).display())?;
    Ok(Exit::Ok)
}

/// With both sections. The same bytes for the same input.
pub(super) fn sealed(component: &[u8], manifest: &Manifest, golden: Vec<golden::Fixture>) -> anyhow::Result<Vec<u8>> {
    let written = serde_json::to_string(manifest)?;
    let fixtures = if golden.is_empty() { None } else { Some(Fixtures::new(golden).to_json()?) };
    let size = fixtures.as_ref().map_or(0, String::len);
    ensure!(size <= FIXTURES_BYTES, "the fixtures have {size} bytes as a section; at most {FIXTURES_BYTES} are read");
    let sections = Sections { manifest: Some(written.as_bytes()), fixtures: fixtures.as_deref().map(str::as_bytes) };
    let sealed = sections::with(component, sections)?;
    // What a host does not read back as it was meant is not written.
    golden::read(&sealed, manifest).context("the sections do not come back as they were written")?;
    Ok(sealed)
}

/// The component, then the document: a host that looks in between finds a digest
/// that does not fit, and keeps what it has. The component's file name.
pub(super) fn write(folder: &Folder, component: &[u8], out: &Path) -> anyhow::Result<String> {
    fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
    let file = match &folder.document.spec.source {
        Source::File(FileSource { path }) => path.clone(),
        // An image is pushed from a file of the plugin's own name.
        Source::Oci(_) => format!("{}.wasm", folder.name()),
    };
    ensure!(!file.contains('/'), "spec.source.file.path: {file}: both files stand in one folder");
    let text = document::with_digest(&folder.template, component)?;
    files::replace(&out.join(&file), component)?;
    files::replace(&out.join(format!("{}.yaml", folder.name())), text.as_bytes())?;
    Ok(file)
}
