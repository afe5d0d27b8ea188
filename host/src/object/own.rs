//! Makes what was checked ours: the labels that children are found by, the
//! owner reference, and the hash by which the next walk knows it again.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::children::ChildId;
use super::data;
use super::gather;
use super::host::Host;
use super::in_place;
use super::parents::{Named, Parent};
use super::quantity;
use super::record::Record;
use super::strategy::{self, Policy};
use crate::check::{self, CheckedChild};
use crate::cluster::meta::ViewError;
use crate::cluster::{ObjectView, Resource};
use crate::names;
use crate::plugin::passed::{Given, Passed};
use crate::plugin::{Plugin, request};
use crate::sandbox::model::Retention;

#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnError {
    /// Its kind went away between gather and here: the next walk says so.
    #[error("{child}: the API server does not serve its kind any more")]
    Missing { child: String },
    #[error("the object could not be read: {0}")]
    Unreadable(ViewError),
}

impl OwnError {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "KindMissing",
            Self::Unreadable(_) => "InvalidSpec",
        }
    }
}

/// A child that may be sent. Only this step makes one.
pub(crate) struct Owned {
    /// Its place in the rendering.
    index: usize,
    id: ChildId,
    resource: Arc<Resource>,
    /// With labels, owner reference and the hash annotation.
    object: Map<String, Value>,
    hash: Arc<str>,
    policy: Policy,
    /// It is kept when its parent goes.
    retain: Option<Retention>,
}

impl Owned {
    pub(crate) fn index(&self) -> usize {
        self.index
    }
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
    pub(crate) fn retain(&self) -> Option<&Retention> {
        self.retain.as_ref()
    }
    /// The name of the Plugin document that it is of.
    pub(crate) fn plugin(&self) -> &str {
        self.object
            .get("metadata")
            .and_then(|metadata| metadata.get("labels")?.get(names::PLUGIN_LABEL)?.as_str())
            .unwrap_or_default()
    }
    pub(crate) fn is_claim(&self) -> bool {
        self.resource.group.is_empty() && self.resource.kind == "PersistentVolumeClaim"
    }
    /// The storage that a claim asks for, where that is less than `there`.
    pub(crate) fn asks_for_less_than(&self, there: &str) -> Option<&str> {
        let spec = self.object.get("spec").filter(|_| self.is_claim())?;
        let wanted = spec.pointer("/resources/requests/storage")?.as_str()?;
        (quantity::compare(wanted, there) == Some(Ordering::Less)).then_some(wanted)
    }
    /// The same with the storage that it has.
    pub(crate) fn with_storage(&self, there: &str) -> Self {
        let mut object = self.object.clone();
        if let Some(storage) = object.get_mut("spec").and_then(|spec| spec.pointer_mut("/resources/requests/storage")) {
            *storage = there.into();
        }
        let Self { index, id, resource, object: _, hash, policy, retain } = self;
        let (id, resource, hash, retain) = (id.clone(), Arc::clone(resource), Arc::clone(hash), retain.clone());
        Self { index: *index, id, resource, object, hash, policy: *policy, retain }
    }
    /// Whether it puts a claim of this name into a Pod.
    pub(crate) fn mounts(&self, claim: &str) -> bool {
        fn below(value: &Value, claim: &str) -> bool {
            match value {
                Value::Object(fields) => fields
                    .iter()
                    .any(|(name, value)| if name == "claimName" { value == claim } else { below(value, claim) }),
                Value::Array(items) => items.iter().any(|item| below(item, claim)),
                _ => false,
            }
        }
        self.object.values().any(|value| below(value, claim))
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

/// All of a rendering, or nothing; claims first, so that nothing is made that
/// would mount another's. `credentials` are the names of its generated Secrets.
pub(crate) fn all(
    host: &Host,
    children: Vec<CheckedChild>,
    parent: &Parent,
    plugin: &Plugin,
    credentials: &[&str],
) -> Result<Vec<Owned>, OwnError> {
    let given = given(parent, plugin)?;
    let credentials = credentials.join(",");
    let kinds = host.kinds();
    let mut owned: Vec<Owned> = children
        .into_iter()
        .enumerate()
        .map(|(place, child)| {
            let missing = || OwnError::Missing { child: format!("{} {}", child.kind().kind.kind, child.name()) };
            let (index, kind) = kinds.child(&child.kind().kind).ok_or_else(missing)?;
            let resource = kind.resource().ok_or_else(missing)?;
            Ok(own((place, child), index, resource, &parent.id, (plugin, &given), &credentials))
        })
        .collect::<Result<_, _>>()?;
    owned.sort_by_key(|child| !child.is_claim());
    Ok(owned)
}

/// UIDs of what stands beside what is wanted.
pub(crate) fn left(host: &Host, parent: &Parent, wanted: &[Owned]) -> Vec<Box<str>> {
    let standing = gather::standing(host, parent).into_iter();
    let left = standing.filter(|there| wanted.iter().all(|owned| *owned.id() != there.id));
    left.map(|there| there.uid.clone()).collect()
}

/// What the parent passes on by its plugin's document.
fn given(parent: &Parent, plugin: &Plugin) -> Result<Given, OwnError> {
    if plugin.passed == Passed::default() {
        return Ok(Given::default());
    }
    let view = ObjectView::parse(&parent.guest).map_err(OwnError::Unreadable)?;
    Ok(plugin.passed.of(&view))
}

/// `kind` is the child's index in the table of child kinds.
fn own(
    (index, child): (usize, CheckedChild),
    kind: usize,
    resource: Arc<Resource>,
    parent: &check::Parent,
    (plugin, given): (&Plugin, &Given),
    credentials: &str,
) -> Owned {
    let policy = strategy::policy(&plugin.strategies, &child);
    let retain = child.retain().cloned();
    let child_kind = child.kind().clone();
    let name: Box<str> = child.name().into();
    let mut object = child.into_object();
    given.put_on(&child_kind, &mut object);
    if let Some(template) = check::pod_template_metadata(&child_kind, &mut object) {
        labels(template).insert(names::INSTANCE_LABEL.to_owned(), parent.uid.as_str().into());
    }
    let metadata = metadata(&mut object);
    metadata.insert("namespace".to_owned(), parent.namespace.as_str().into());
    // The garbage collector takes what has an owner, and no more.
    match &retain {
        Some(retention) => {
            let record = Record::new(parent, &plugin.name, retention);
            let entries = record.annotations().map(|(name, value)| (name.to_owned(), value.into()));
            annotations(metadata).extend(entries);
        }
        None => {
            metadata.insert("ownerReferences".to_owned(), json!([owner_reference(parent)]));
        }
    }
    let holds_data = retain.is_some() || data::is_data(&resource.group, &resource.kind);
    if holds_data && !credentials.is_empty() {
        annotations(metadata).insert(names::CREDENTIALS_ANNOTATION.to_owned(), credentials.into());
    }
    let labels = labels(metadata);
    for (label, value) in request::labels(&plugin.name, parent) {
        labels.insert(label.to_owned(), value.into());
    }
    let hash: Arc<str> = in_place::hash(&resource.group, &resource.kind, &object).into();
    annotations(self::metadata(&mut object)).insert(names::HASH_ANNOTATION.to_owned(), (*hash).into());
    let id = ChildId { kind, namespace: parent.namespace.as_str().into(), name };
    Owned { index, id, resource, object, hash, policy, retain }
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
