//! The fixtures of an author's folder: `fixtures/NAME/` with
//!
//! * `object.yaml`: the custom resource,
//! * `request.yaml`, if more is to be known: configuration, children that stand, Secrets, time,
//! * `children.yaml`: all that must be rendered, or `failure.yaml`: the plugin's "no".

mod request;
mod answer;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::super::render::input::{self, Object};
use crate::check::{Parent, syntax};
use crate::limits::FIXTURES;
use crate::plugin::golden::Answer;
use crate::sandbox::{Manifest, Request};

const FOLDER: &str = "fixtures";
const OBJECT: &str = "object.yaml";
const REQUEST: &str = "request.yaml";
const CHILDREN: &str = "children.yaml";
const FAILURE: &str = "failure.yaml";

pub(super) struct Fixture {
    pub(super) name: String,
    folder: PathBuf,
    pub(super) parent: Parent,
    /// What the parent's own fields say, for `userSecrets`.
    pub(super) object: serde_json::Value,
    pub(super) request: Request,
    /// `None` where none is written yet.
    pub(super) answer: Option<Answer>,
}

/// In the order of their names. None where there is no folder of them.
pub(super) fn all(folder: &Path, manifest: &Manifest) -> anyhow::Result<Vec<Fixture>> {
    let folder = folder.join(FOLDER);
    let mut names = Vec::new();
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("read {}", folder.display()))?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    if names.len() > FIXTURES {
        bail!("{} has {} fixtures, at most {FIXTURES} are run", folder.display(), names.len());
    }
    names.into_iter().map(|name| one(folder.join(&name), name, manifest)).collect()
}

fn one(folder: PathBuf, name: String, manifest: &Manifest) -> anyhow::Result<Fixture> {
    if !syntax::dns_1123_label(&name) {
        bail!("{}: the name of a fixture is a DNS label: at most 63 of a-z, 0-9 and -", folder.display());
    }
    let object = folder.join(OBJECT);
    let mut objects = input::read(&object)?;
    let (Some(Object { parent, value, .. }), true) = (objects.pop(), objects.is_empty()) else {
        bail!("{} holds several objects; each has a fixture of its own", object.display());
    };
    let more = read(&folder.join(REQUEST))?;
    let (request, object) = request::of(&parent, value, more.as_deref(), manifest)
        .with_context(|| folder.join(REQUEST).display().to_string())?;
    let (children, failure) = (read(&folder.join(CHILDREN))?, read(&folder.join(FAILURE))?);
    let answer = match (children, failure) {
        (Some(_), Some(_)) => bail!("{} has both {CHILDREN} and {FAILURE}: which is the answer?", folder.display()),
        (Some(text), None) => Some(answer::read(&text).with_context(|| folder.join(CHILDREN).display().to_string())?),
        (None, Some(text)) => {
            Some(answer::read_failure(&text).with_context(|| folder.join(FAILURE).display().to_string())?)
        }
        (None, None) => None,
    };
    Ok(Fixture { name, folder, parent, object, request, answer })
}

fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(text.with_context(|| format!("read {}", file.display()))?)),
    }
}

impl Fixture {
    /// An object that is rendered for somebody to look at.
    pub(super) fn without_answer(object: Object, manifest: &Manifest) -> anyhow::Result<Self> {
        let name = object.to_string();
        let Object { parent, value, .. } = object;
        let (request, object) = request::of(&parent, value, None, manifest)?;
        Ok(Self { name, folder: PathBuf::new(), parent, object, request, answer: None })
    }

    /// What is compared, for messages.
    pub(super) fn file(&self, answer: &Answer) -> PathBuf {
        self.folder.join(if matches!(answer, Answer::Failure(_)) { FAILURE } else { CHILDREN })
    }

    /// Writes the answer in place of the one that is there. The file that was written.
    pub(super) fn update(&self, answer: &Answer) -> anyhow::Result<PathBuf> {
        let file = self.file(answer);
        super::files::replace(&file, answer::write(answer)?.as_bytes())?;
        for other in [CHILDREN, FAILURE].map(|name| self.folder.join(name)) {
            if other != file && other.exists() {
                fs::remove_file(&other).with_context(|| format!("remove {}", other.display()))?;
            }
        }
        Ok(file)
    }
}
