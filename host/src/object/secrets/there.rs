//! One Secret as it stands there, and whose it is.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::error::{SecretError, refused};
use super::revision::revision;
use crate::cluster::{ApiError, ApiErrorKind, ObjectView, Resource};
use crate::names;
use crate::object::host::Host;
use crate::object::parents::Parent;
use crate::object::record::{Record, is_earlier_self};

pub(crate) struct There {
    pub uid: String,
    pub version: String,
    pub kind: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// As they stand there.
    pub owners: Vec<Value>,
    pub data: Map<String, Value>,
    pub whose: Whose,
}

pub(crate) enum Whose {
    Ours,
    /// Of this object by its label alone: somebody took its owner away, or an orphaning delete does.
    Loose,
    /// Kept when an earlier object of the same name went.
    Kept(Record),
    Nobodys,
    /// Of an earlier object of the same name, with which it goes.
    Going,
    Others,
}

pub(crate) fn resource() -> Resource {
    Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespaced: true,
        has_status: false,
    }
}

pub(crate) async fn read(host: &Host, parent: &Parent, name: &str) -> Result<Option<There>, SecretError> {
    match host.api.get(&resource(), Some(&parent.id.namespace), name).await {
        Ok(bytes) => There::parse(parent, &bytes).map(Some).map_err(|problem| {
            refused(name, ApiError::new(format!("get secrets {name}"), ApiErrorKind::Decode(problem)))
        }),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(refused(name, error)),
    }
}

/// The same of an object that a watch brings.
pub(crate) fn revision_of(object: &ObjectView<'_>) -> String {
    let data = object.fields.get("data").and_then(|data| serde_json::from_str::<Map<String, Value>>(data.get()).ok());
    let key = object.annotations.get(names::REVISION_KEY_ANNOTATION).unwrap_or(&object.uid);
    revision(key, &data.unwrap_or_default())
}

impl There {
    fn parse(parent: &Parent, bytes: &[u8]) -> Result<Self, String> {
        let view = ObjectView::from_slice(bytes).map_err(|error| error.to_string())?;
        let map = |fields: &crate::cluster::meta::Fields<'_, std::borrow::Cow<'_, str>>| {
            fields.iter().map(|(name, value)| (name.to_owned(), value.clone().into_owned())).collect()
        };
        let list = view.pointer("/metadata/ownerReferences");
        let owners = list.and_then(|raw| serde_json::from_str::<Option<Vec<Value>>>(raw.get()).ok().flatten());
        let data = match view.fields.get("data") {
            Some(data) => serde_json::from_str::<Option<_>>(data.get()).map_err(|error| error.to_string())?,
            None => None,
        };
        Ok(Self {
            uid: view.uid.clone().into_owned(),
            version: view.resource_version.clone().into_owned(),
            kind: view.text_at("/type").unwrap_or_default().into_owned(),
            labels: map(&view.labels),
            annotations: map(&view.annotations),
            owners: owners.unwrap_or_default(),
            data: data.unwrap_or_default(),
            whose: whose(parent, &view),
        })
    }

    /// Under its key; without one (somebody took it away, or it is a user's own) under its UID.
    pub(crate) fn revision(&self) -> String {
        revision(self.annotations.get(names::REVISION_KEY_ANNOTATION).unwrap_or(&self.uid), &self.data)
    }

    /// The texts of its keys; what is no text is left out.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| String::from_utf8(BASE64.decode(value.as_str()?).ok()?).ok();
        self.data.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
    }
}

fn whose(parent: &Parent, there: &ObjectView<'_>) -> Whose {
    let own = &*parent.id.uid;
    if there.owners.iter().any(|owner| *owner.uid == *own) {
        return if there.deletion { Whose::Going } else { Whose::Ours };
    }
    if there.deletion || there.controller().is_some_and(|owner| is_earlier_self(owner, &parent.id)) {
        return Whose::Going;
    }
    if !there.owners.is_empty() {
        return Whose::Others;
    }
    match Record::read(there).filter(|record| record.is_for(&parent.id)) {
        Some(record) if record.uid == own => Whose::Ours,
        Some(record) => Whose::Kept(record),
        None if there.labels.get(names::INSTANCE_LABEL).is_some_and(|uid| **uid == *own) => Whose::Loose,
        None => Whose::Nobodys,
    }
}
