//! What is kept of a child, cut out of the object when its event arrives.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::children::{Child, ChildId, Held};
use super::record::Record;
use super::{data, failed, readiness};
use crate::clock;
use crate::cluster::ObjectView;
use crate::names;
use crate::plugin::projection;
use crate::sandbox::model::KindRef;

/// What one kind of child is watched for.
pub(crate) struct Reduction {
    pub kind: usize,
    pub group: String,
    pub api_version: String,
    pub name: String,
    /// Plugin name to the JSON pointers that it observes.
    pub observe: HashMap<String, Vec<String>>,
    /// The table of kinds in which it became as it is.
    pub since: u64,
}

impl Reduction {
    pub(crate) fn new(index: usize, kind: &KindRef, since: u64) -> Self {
        let KindRef { group, version, kind, plural: _ } = kind;
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        let (group, name) = (group.clone(), kind.clone());
        Self { kind: index, group, api_version, name, observe: HashMap::new(), since }
    }

    /// Whether all of these pointers are kept for that plugin.
    pub(crate) fn keeps(&self, plugin: &str, pointers: &[String]) -> bool {
        let kept = self.observe.get(plugin).map(Vec::as_slice).unwrap_or_default();
        pointers.iter().all(|pointer| kept.contains(pointer))
    }

    /// With these pointers too; none where they are kept already. Nothing is taken away: that would be worth no list.
    pub(crate) fn widened<'a>(
        &self,
        observed: impl Iterator<Item = (&'a str, &'a [String])>,
        since: u64,
    ) -> Option<Self> {
        let mut observe = self.observe.clone();
        for (plugin, pointers) in observed.filter(|(plugin, pointers)| !self.keeps(plugin, pointers)) {
            let kept = observe.entry(plugin.to_owned()).or_default();
            kept.extend_from_slice(pointers);
            kept.sort();
            kept.dedup();
        }
        if observe == self.observe {
            return None;
        }
        let (group, api_version, name) = (self.group.clone(), self.api_version.clone(), self.name.clone());
        Some(Self { kind: self.kind, group, api_version, name, observe, since })
    }

    /// Cuts an object down. `None` where what makes a child is missing, and for
    /// what a child has made in turn: the Pod of a Job carries our label by its
    /// template, and is looked after by the Job's own controller.
    pub(crate) fn reduce(&self, object: &ObjectView<'_>) -> Option<Child> {
        let label = |name: &str| object.labels.get(name).map(|value| &**value);
        let instance = label(names::INSTANCE_LABEL)?;
        if object.controller().is_some_and(|owner| *owner.uid != *instance) {
            return None;
        }
        let text = |name: &str| object.fields.get(name).map(|raw| raw.get());
        let pointers = label(names::PLUGIN_LABEL).and_then(|plugin| self.observe.get(plugin));
        Some(Child {
            id: ChildId { kind: self.kind, namespace: (*object.namespace).into(), name: (*object.name).into() },
            uid: (*object.uid).into(),
            resource_version: object.resource_version.parse().unwrap_or(0),
            reduced: self.since,
            created: object.creation_timestamp.as_deref().and_then(clock::seconds).unwrap_or(0),
            instance: instance.into(),
            owners: object.owners.iter().map(|owner| (*owner.uid).into()).collect(),
            going: object.deletion,
            hash: object.annotations.get(names::HASH_ANNOTATION).map(|hash| (**hash).into()),
            owned_fields: object
                .managed_fields()
                .unwrap_or_default()
                .iter()
                .find(|entry| {
                    entry.manager == names::FIELD_MANAGER && entry.operation == "Apply" && entry.subresource.is_empty()
                })
                .and_then(|entry| entry.fields_v1)
                .map(|fields| fields.get().into()),
            observed: self.project(object, pointers.map_or(&[], Vec::as_slice)),
            unready: readiness::of(
                &self.group,
                &self.name,
                object.generation.unwrap_or(0),
                text("spec"),
                text("status"),
            ),
            ended: failed::ended(&self.group, &self.name, object).map(Box::new),
            infeasible: readiness::infeasible(&self.group, &self.name, object.generation.unwrap_or(0), text("status")),
            held: self.held(object),
        })
    }

    fn held(&self, object: &ObjectView<'_>) -> Option<Box<Held>> {
        let record = Record::read(object);
        if record.is_none() && !data::is_data(&self.group, &self.name) {
            return None;
        }
        let text = |text: Option<&Cow<'_, str>>| text.map_or_else(Box::default, |text| Box::from(&**text));
        Some(Box::new(Held {
            record,
            plugin: text(object.labels.get(names::PLUGIN_LABEL)),
            storage: object.text_at(data::REQUESTED_STORAGE).map(|text| (*text).into()),
            credentials: text(object.annotations.get(names::CREDENTIALS_ANNOTATION)),
        }))
    }

    fn project(&self, object: &ObjectView<'_>, pointers: &[String]) -> Arc<str> {
        let kind = projection::Kind { group: &self.group, api_version: &self.api_version, kind: &self.name };
        let pointers = projection::ALWAYS.into_iter().chain(pointers.iter().map(String::as_str));
        projection::of(kind, &object.name, &object.uid, pointers, |pointer| {
            serde_json::from_str(object.pointer(pointer)?.get()).ok()
        })
        .into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_a_child_makes_is_no_child() {
        let reduction = Reduction {
            kind: 0,
            group: String::new(),
            api_version: "v1".into(),
            name: "Pod".into(),
            observe: HashMap::new(),
            since: 0,
        };
        let owned_by = |owners: Value| {
            let pod = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1",
                "labels": {names::INSTANCE_LABEL: "parent"}, "ownerReferences": owners}});
            reduction.reduce(&ObjectView::parse(&pod.to_string()).unwrap()).is_some()
        };
        let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": uid, "controller": true});
        assert!(owned_by(json!([owner("parent")])));
        assert!(owned_by(json!([])), "kept, or robbed of its owner");
        assert!(!owned_by(json!([owner("job")])));
    }
}
