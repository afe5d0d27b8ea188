//! `keelson plugin copy SRC DIR`: fills a volume from a plugin folder, for an
//! init container.
//!
//! Components go before documents, each under a hidden name that is then
//! renamed: whoever reads DIR meanwhile never sees half a file, nor a document
//! whose component is still to come. Done twice it changes nothing. A document
//! that is no good is copied all the same, and said: the host tells the cluster.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, bail};

use super::cli::{CopyArgs, Exit};
use crate::plugin::document::{Document, FileSource, Source};
use crate::plugin::source::{self, SourceError};

/// The host runs as another user than an init container may.
const MODE: u32 = 0o644;

pub fn copy(args: &CopyArgs) -> anyhow::Result<Exit> {
    let CopyArgs { src, dir } = args;
    let files = match source::read(src) {
        Ok(files) => files,
        Err(error) => {
            say(&error.to_string());
            return Ok(if matches!(error, SourceError::Empty { .. }) { Exit::NoPlugin } else { Exit::Usage });
        }
    };
    let (mut components, mut documents, mut plugins) = (Vec::new(), Vec::new(), 0);
    for source::DocumentFile { file, text } in files {
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                say(&format!("not copied: {error}"));
                continue;
            }
        };
        match Document::parse(&text) {
            Ok(Document { name: _, spec }) => {
                plugins += 1;
                if let Source::File(FileSource { path }) = spec.source {
                    match source::bundle(src, &path) {
                        Ok(Some(bytes)) => components.push((format!("{path}{}", source::BUNDLE), bytes)),
                        Ok(None) => {}
                        Err(error) => say(&format!("{file}: {error}")),
                    }
                    match source::artifact(src, &path) {
                        Ok(bytes) => components.push((path, bytes)),
                        Err(error) => say(&format!("{file}: {error}")),
                    }
                }
            }
            Err(error) => say(&format!("{file}: {error}")),
        }
        documents.push((file, text.into_bytes()));
    }
    if plugins == 0 {
        say(&format!("{} holds no Plugin document that can be read; nothing is copied", src.display()));
        return Ok(Exit::NoPlugin);
    }
    fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
    if fs::canonicalize(src).ok() == fs::canonicalize(dir).ok() {
        bail!("{} and {} are the same folder", src.display(), dir.display());
    }
    for (name, bytes) in components.iter().chain(&documents) {
        put(dir, name, bytes).with_context(|| format!("write {name} into {}", dir.display()))?;
    }
    Ok(Exit::Ok)
}

fn put(dir: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let target = dir.join(name);
    if fs::read(&target).is_ok_and(|there| there == bytes) {
        return Ok(fs::set_permissions(&target, Permissions::from_mode(MODE))?);
    }
    let (Some(parent), Some(file)) = (target.parent(), target.file_name()) else { bail!("no name of a file") };
    fs::create_dir_all(parent)?;
    let hidden = parent.join(format!(".{}.keelson-{}", file.to_string_lossy(), std::process::id()));
    let written = (|| {
        fs::write(&hidden, bytes)?;
        fs::set_permissions(&hidden, Permissions::from_mode(MODE))?;
        fs::rename(&hidden, &target)
    })();
    if written.is_err() {
        // What is left would only take room.
        let _ = fs::remove_file(&hidden);
    }
    Ok(written?)
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "keelson: {text}");
}
