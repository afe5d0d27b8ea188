//! What a source finds, and why a file or a whole folder is not taken.

use std::path::PathBuf;

/// A file that should hold a Plugin document.
#[derive(Debug)]
pub struct DocumentFile {
    /// Its name in the folder.
    pub file: String,
    pub text: Result<String, FileError>,
}

/// Why there are no plugins at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("the plugin folder {} does not exist", folder.display())]
    Missing { folder: PathBuf },
    #[error("the plugin folder {} is not a folder", folder.display())]
    NotAFolder { folder: PathBuf },
    #[error("the plugin folder {} cannot be read: {problem}", folder.display())]
    Unreadable { folder: PathBuf, problem: String },
    #[error("the plugin folder {} holds no Plugin document: it wants NAME.yaml beside NAME.wasm", folder.display())]
    Empty { folder: PathBuf },
}

/// Why one file is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}{file} {rule}")]
pub struct FileError {
    /// `spec.source.file.path: ` for a component, nothing for a document.
    pub field: &'static str,
    pub file: String,
    pub rule: FileRule,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileRule {
    #[error("does not exist in the plugin folder")]
    Missing,
    #[error("must be relative to the plugin folder, without `..`")]
    NotRelative,
    #[error("leads out of the plugin folder, to {}", .0.display())]
    Outside(PathBuf),
    #[error("is {0}, not a file")]
    NotAFile(&'static str),
    #[error("is larger than {limit} KiB", limit = .0 / 1024)]
    TooLarge(u64),
    #[error("is not UTF-8 text")]
    NotText,
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

impl FileError {
    pub fn reason(&self) -> &'static str {
        if self.field.is_empty() { "DocumentInvalid" } else { "ArtifactInvalid" }
    }
}
