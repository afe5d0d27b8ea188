//! Data that was kept when an earlier object of the same name went: whether this
//! one may have it. Asked before anything is made, so that nothing uses it that
//! cannot open it.

use super::children::{Child, ChildId};
use super::gather::is_alive;
use super::host::Host;
use super::parents::Parent;
use super::record::Record;
use super::retry::Retry;
use super::words;
use crate::check::{CheckedChild, CheckedChildren};
use crate::names;
use crate::sandbox::model::Retention;

#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    #[error("{child} holds data that this object must not use: {why}; it is left as it is, and nothing is made")]
    Mismatch { child: String, why: String },
    /// The object that it was kept for is there, under whatever name.
    #[error("{child} is kept for another {kind} that exists; it is left as it is")]
    InUse { child: String, kind: String },
}

impl KeptError {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Mismatch { .. } => "DataMismatch",
            Self::InUse { .. } => "NameConflict",
        }
    }

    /// It heals when that object is deleted or given another name.
    pub(crate) fn retry(&self) -> Retry {
        Retry::Blocked
    }
}

/// Of every child that is rendered, what stands under its name.
pub(crate) fn compatible(
    host: &Host,
    parent: &Parent,
    plugin: &str,
    children: &CheckedChildren,
) -> Result<(), KeptError> {
    let CheckedChildren::Exactly(children) = children else { return Ok(()) };
    children.iter().try_for_each(|child| one(host, parent, plugin, child))
}

fn one(host: &Host, parent: &Parent, plugin: &str, child: &CheckedChild) -> Result<(), KeptError> {
    let kind = &child.kind().kind;
    let kinds = host.kinds();
    let Some((index, _)) = kinds.child(kind) else { return Ok(()) };
    let id = ChildId { kind: index, namespace: parent.id.namespace.as_str().into(), name: child.name().into() };
    let Some(known) = host.children.get(&id) else { return Ok(()) };
    match known.record().filter(|record| record.is_for(&parent.id)) {
        Some(record) => may_have(host, parent, plugin, child.retain(), record, (&kind.kind, child.name())),
        None => made_by(parent, plugin, &known, (&kind.kind, child.name())),
    }
}

/// By its record. `child` is kind and name.
pub(crate) fn may_have(
    host: &Host,
    parent: &Parent,
    plugin: &str,
    retention: Option<&Retention>,
    record: &Record,
    (kind, name): (&str, &str),
) -> Result<(), KeptError> {
    let child = format!("{kind} {name}");
    if is_alive(host, parent, record) {
        return Err(KeptError::InUse { child, kind: record.kind.clone() });
    }
    let Some(why) = record.mismatch(&parent.id, plugin, retention) else { return Ok(()) };
    if parent.words.say(names::ADOPT_ANNOTATION, &words::child(kind, name)) {
        return Ok(());
    }
    Err(KeptError::Mismatch { child, why })
}

/// What is not kept but owned holds the data of the plugin that made it.
fn made_by(parent: &Parent, plugin: &str, known: &Child, (kind, name): (&str, &str)) -> Result<(), KeptError> {
    let Some(held) = known.held.as_ref().filter(|_| *known.instance == *parent.id.uid) else { return Ok(()) };
    if *held.plugin == *plugin
        || held.plugin.is_empty()
        || parent.words.say(names::ADOPT_ANNOTATION, &words::child(kind, name))
    {
        return Ok(());
    }
    let why = format!("it was made by plugin {}, and this object is served by {plugin}", held.plugin);
    Err(KeptError::Mismatch { child: format!("{kind} {name}"), why })
}
