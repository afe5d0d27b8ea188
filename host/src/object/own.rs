//! Makes what was checked ours: the labels that children are found by, the
//! owner reference, and the hash by which the next walk knows it again.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::children::ChildId;
use super::host::Host;
use super::in_place;
use super::parents::{Named, Parent};
use super::strategy::{self, Policy};
use crate::check::{self, CheckedChild};
use crate::cluster::Resource;
use crate::names;
use crate::plugin::{Plugin, request};

/// Its kind went away between gather and here: the next walk says so.
#[derive(Debug, thiserror::Error)]
#[error("{child}: the API server does not serve its kind any more")]
pub(crate) struct OwnError {
    child: String,
}

/// A child that may be sent. Only this step makes one.
pub(crate) struct Owned {
    id: ChildId,
    resource: Arc<Resource>,
    /// With labels, owner reference and the hash annotation.
    object: Map<String, Value>,
    hash: Arc<str>,
    policy: Policy,
}

impl Owned {
    pub(crate) fn id(&self) -> &ChildId {
        &self.id
    }
    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }
    pub(crate) fn object(&self) -> &Map<String, Value> {
        &self.object
    }
    pub(crate) fn hash(&self) -> &Arc<str> {
        &self.hash
    }
    /// What is to be done where it cannot be changed.
    pub(crate) fn policy(&self) -> Policy {
        self.policy
    }
    pub(crate) fn named(&self) -> Named {
        Named {
            api_version: self.resource.api_version(),
            kind: self.resource.kind.clone(),
            name: self.id.name.to_string(),
        }
    }

    /// The body of an apply with preconditions in its metadata.
    pub(crate) fn body(&self, preconditions: &[(&str, &str)]) -> Vec<u8> {
        let mut object = self.object.clone();
        let metadata = metadata(&mut object);
        metadata.extend(preconditions.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
        serde_json::to_vec(&object).unwrap_or_default()
    }
}

/// All of a rendering, or nothing.
pub(crate) fn all(
    host: &Host,
    children: Vec<CheckedChild>,
    parent: &Parent,
    plugin: &Plugin,
) -> Result<Vec<Owned>, OwnError> {
    children
        .into_iter()
        .map(|child| {
            let missing = || OwnError { child: format!("{} {}", child.kind().kind.kind, child.name()) };
            let (index, kind) = host.kinds.child(&child.kind().kind).ok_or_else(missing)?;
            let resource = kind.resource().ok_or_else(missing)?;
            Ok(own(child, index, resource, &parent.id, plugin))
        })
        .collect()
}

/// `kind` is the child's index in the table of child kinds.
fn own(child: CheckedChild, kind: usize, resource: Arc<Resource>, parent: &check::Parent, plugin: &Plugin) -> Owned {
    let policy = strategy::policy(&plugin.strategies, &child);
    let child_kind = child.kind().clone();
    let name: Box<str> = child.name().into();
    let mut object = child.into_object();
    if let Some(template) = check::pod_template_metadata(&child_kind, &mut object) {
        labels(template).insert(names::INSTANCE_LABEL.to_owned(), parent.uid.as_str().into());
    }
    let metadata = metadata(&mut object);
    metadata.insert("namespace".to_owned(), parent.namespace.as_str().into());
    metadata.insert("ownerReferences".to_owned(), json!([owner_reference(parent)]));
    let labels = labels(metadata);
    for (label, value) in request::labels(&plugin.name, parent) {
        labels.insert(label.to_owned(), value.into());
    }
    let hash: Arc<str> = in_place::hash(&resource.group, &resource.kind, &object).into();
    annotations(self::metadata(&mut object)).insert(names::HASH_ANNOTATION.to_owned(), (*hash).into());
    Owned { id: ChildId { kind, namespace: parent.namespace.as_str().into(), name }, resource, object, hash, policy }
}

pub(crate) fn owner_reference(parent: &check::Parent) -> Value {
    json!({
        "apiVersion": parent.api_version, "kind": parent.kind, "name": parent.name, "uid": parent.uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn metadata(object: &mut Map<String, Value>) -> &mut Map<String, Value> {
    field(object, "metadata")
}

fn labels(metadata: &mut Map<String, Value>) -> &mut Map<String, Value> {
    field(metadata, "labels")
}

fn annotations(metadata: &mut Map<String, Value>) -> &mut Map<String, Value> {
    field(metadata, "annotations")
}

/// A field that is an object, made where it is absent.
fn field<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}
