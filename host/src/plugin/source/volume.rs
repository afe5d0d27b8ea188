//! A flat folder of `NAME.yaml` beside `NAME.wasm`, as a volume holds it.
//!
//! A ConfigMap's or Secret's volume is full of links (`a.yaml → ..data/a.yaml`,
//! `..data → ..2026_…`): links are followed, as long as they end inside the
//! folder. Names that begin with a dot are passed over.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::file::{DocumentFile, FileError, FileRule, SourceError};
use crate::limits::{COMPONENT_BYTES, DOCUMENT_BYTES, SIGNATURE_BYTES};

/// After a component's name: what signs it.
pub const BUNDLE: &str = ".sigstore.json";
const COMPONENT_FIELD: &str = "spec.source.file.path: ";

/// Every `*.yaml` and `*.yml` of the folder, in the order of their names.
pub fn read(folder: &Path) -> Result<Vec<DocumentFile>, SourceError> {
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => SourceError::Missing { folder: folder.to_owned() },
        ErrorKind::NotADirectory => SourceError::NotAFolder { folder: folder.to_owned() },
        _ => SourceError::Unreadable { folder: folder.to_owned(), problem: error.to_string() },
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = PathBuf::from(entry.map_err(unreadable)?.file_name());
        let document = name.extension().is_some_and(|end| end == "yaml" || end == "yml");
        if document && !name.as_os_str().as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Err(SourceError::Empty { folder: folder.to_owned() });
    }
    names.sort();
    Ok(names
        .into_iter()
        .map(|name| {
            let text = bytes(folder, &name, DOCUMENT_BYTES)
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| FileRule::NotText));
            let file = name.to_string_lossy().into_owned();
            DocumentFile { text: text.map_err(|rule| FileError { field: "", file: file.clone(), rule }), file }
        })
        .collect())
}

/// Another whenever a file of the folder is another: names, sizes, times and inodes, where all links end.
pub fn stamp(folder: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let mut names: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    names.sort();
    for path in names {
        let state = fs::metadata(&path).ok().map(|it| (it.len(), it.mtime(), it.mtime_nsec(), it.ino()));
        (path, state).hash(&mut hasher);
    }
    hasher.finish()
}

/// The bytes of the component that a document names.
pub fn artifact(folder: &Path, path: &str) -> Result<Vec<u8>, FileError> {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let read = if inside && !path.is_empty() {
        bytes(folder, Path::new(path), COMPONENT_BYTES)
    } else {
        Err(FileRule::NotRelative)
    };
    read.map_err(|rule| FileError { field: COMPONENT_FIELD, file: path.to_owned(), rule })
}

/// What signs a component: the bundle beside it, where there is one.
pub fn bundle(folder: &Path, path: &str) -> Result<Option<Vec<u8>>, FileError> {
    let file = format!("{path}{BUNDLE}");
    match bytes(folder, Path::new(&file), SIGNATURE_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FileRule::Missing) => Ok(None),
        Err(rule) => Err(FileError { field: COMPONENT_FIELD, file, rule }),
    }
}

fn bytes(folder: &Path, name: &Path, limit: u64) -> Result<Vec<u8>, FileRule> {
    let real = resolve(folder, name)?;
    // Asked before it is opened: opening a pipe would wait for a writer.
    let kind = fs::metadata(&real).map_err(|error| rule(&error))?.file_type();
    if kind.is_dir() {
        return Err(FileRule::NotAFile("a folder"));
    }
    if !kind.is_file() {
        return Err(FileRule::NotAFile("a pipe, socket or device"));
    }
    let mut bytes = Vec::new();
    let file = File::open(&real).map_err(|error| rule(&error))?;
    // The limit holds while reading: the size told before can have changed.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| rule(&error))?;
    if bytes.len() as u64 > limit {
        return Err(FileRule::TooLarge(limit));
    }
    Ok(bytes)
}

/// Where all links end; inside the folder, or an error.
fn resolve(folder: &Path, name: &Path) -> Result<PathBuf, FileRule> {
    let root = fs::canonicalize(folder).map_err(|error| rule(&error))?;
    let real = fs::canonicalize(root.join(name)).map_err(|error| rule(&error))?;
    if real.starts_with(&root) { Ok(real) } else { Err(FileRule::Outside(real)) }
}

fn rule(error: &std::io::Error) -> FileRule {
    match error.kind() {
        ErrorKind::NotFound => FileRule::Missing,
        _ => FileRule::Unreadable(error.to_string()),
    }
}
