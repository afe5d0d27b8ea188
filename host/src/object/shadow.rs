//! What these plugins, or this host, would make of all that is there: the walk
//! of every object up to its first write, and what that write would change.
//!
//! Nothing is written. What stands is read where it is not as rendered, so that
//! the fields can be named.

use std::cmp::Ordering;

use futures::StreamExt;
use futures::stream;
use serde_json::{Map, Value};

use super::apply::stands_as_rendered;
use super::children::Child;
use super::failure::WalkError;
use super::host::Host;
use super::look::LookError;
use super::memory::Memory;
use super::own::Owned;
use super::parents::{Parent, ParentKey};
use super::refusal::Refusal;
use super::{answer, ask, data, dispatch, fields, in_place, kept, own, quantity, secrets};
use crate::check::{self, CheckedChildren, CheckedParts, GrantedParent, Strategy};
use crate::cluster::ObjectView;
use crate::limits::{SECRET_ROUNDS, SHADOWED_AT_ONCE};
use crate::names;

/// One object.
pub struct Shadowed {
    /// `Kind namespace/name`.
    pub object: String,
    pub verdict: Verdict,
}

pub enum Verdict {
    Same,
    Changes(Vec<Change>),
    /// Nothing would be made or changed; the object would say this.
    Refused {
        reason: String,
        message: String,
        /// It says so already.
        already: bool,
    },
    /// What it depends on may not be read by whoever asks.
    Unknown(String),
    /// Another than these plugins, or nobody, would serve it.
    Unserved,
}

pub struct Change {
    /// `Kind name`.
    pub child: String,
    pub effect: Effect,
    pub fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Made,
    Changed,
    /// Deleted and made anew.
    Recreated,
    /// Changed when somebody deletes it.
    AtDelete,
    /// It cannot be changed where it stands, and is not replaced.
    Stuck,
    Deleted,
    /// Not rendered any more, and kept since it holds data.
    Kept,
}

impl Effect {
    pub fn words(self) -> &'static str {
        match self {
            Self::Made => "would be made",
            Self::Changed => "would be changed",
            Self::Recreated => "would be deleted and made anew",
            Self::AtDelete => "would be changed once somebody deletes it",
            Self::Stuck => "cannot be changed where it stands, and would stay as it is",
            Self::Deleted => "would be deleted",
            Self::Kept => "would be rendered no more, and kept: it holds data",
        }
    }
}

/// A value that would be another.
#[derive(Debug, PartialEq)]
pub struct Field {
    /// As authors write it: `spec.ports[0].port`.
    pub path: String,
    /// `None`: nothing.
    pub stands: Option<Value>,
    pub rendered: Option<Value>,
}

impl Host {
    /// Every object, in the order of namespace and name. `claims`: what the plugins in question are there to serve; an
    /// object of theirs that nobody serves now is told.
    pub async fn shadow(&self, claims: &[GrantedParent]) -> Vec<Shadowed> {
        self.gates.unguard();
        let kinds = self.kinds();
        let mut keys: Vec<ParentKey> = (0..kinds.parents.len()).flat_map(|kind| self.parents.keys(kind)).collect();
        keys.sort_by(|a, b| (&a.namespace, &a.name, a.kind).cmp(&(&b.namespace, &b.name, b.kind)));
        let each = stream::iter(keys).map(|key| async move { one(self, &key, claims).await });
        each.buffered(SHADOWED_AT_ONCE).filter_map(|shadowed| async { shadowed }).collect().await
    }
}

/// `None` for what is no concern of these plugins, or goes.
async fn one(host: &Host, key: &ParentKey, claims: &[GrantedParent]) -> Option<Shadowed> {
    let parent = host.parents.get(key).filter(|parent| !parent.deleting)?;
    let object = format!("{} {}/{}", parent.id.kind, parent.id.namespace, parent.id.name);
    let mut memory = Memory::default();
    let group = host.group_of(key);
    if dispatch::dispatch(&host.registry(), &group, &parent).is_err() {
        claims.iter().find(|claim| is_claimed(claim, &group, &parent))?;
        return Some(Shadowed { object, verdict: Verdict::Unserved });
    }
    let verdict = match changes(host, key, &parent, &mut memory).await {
        Ok(changes) if changes.is_empty() => Verdict::Same,
        Ok(changes) => Verdict::Changes(changes),
        Err(error) if error.refusal().is_some() => Verdict::Unknown(error.to_string()),
        Err(error) => {
            let (reason, message) = (error.reason(&mut memory), error.to_string());
            let already = says(&parent, &reason);
            Verdict::Refused { reason, message, already }
        }
    };
    Some(Shadowed { object, verdict })
}

fn is_claimed(claim: &GrantedParent, group: &str, parent: &Parent) -> bool {
    if claim.group != group || claim.kind != parent.id.kind {
        return false;
    }
    let Some(only) = &claim.discriminator else { return true };
    let object = ObjectView::parse(&parent.guest).ok();
    object.is_some_and(|object| object.text_at(&only.path).is_some_and(|text| *text == *only.value))
}

fn says(parent: &Parent, reason: &str) -> bool {
    let fields = parent.status.fields();
    let conditions = fields.get("conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition.get("type") == Some(&"Ready".into()));
    ready.is_some_and(|ready| ready.get("reason") == Some(&reason.into()))
}

/// The walk of the object, as far as the first write.
async fn changes(host: &Host, key: &ParentKey, parent: &Parent, memory: &mut Memory) -> Result<Vec<Change>, WalkError> {
    let plugin = dispatch::dispatch(&host.registry(), &host.group_of(key), parent)?;
    check::parent(&parent.id, &plugin.name, &plugin.grant, &plugin.manifest)?;
    let mut changes = Vec::new();
    let mut gathered = ask::gathered(host, &plugin, parent, memory).await?;
    let mut parts = answer::rendering(host, &plugin, parent, &gathered).await?;
    for _ in 0..SECRET_ROUNDS {
        changes.clear();
        let names = parts.secrets.iter().map(|secret| secret.name.clone());
        for name in names.chain(gathered.user_secrets.iter().map(|user| user.name.clone())) {
            match secrets::stands(host, parent, &name).await? {
                Some(revision) => drop(memory.secrets.insert(name, revision)),
                None => {
                    let child = format!("Secret {name}");
                    changes.push(Change { child, effect: Effect::Made, fields: Vec::new() });
                }
            }
        }
        if gathered.has_seen(&memory.secrets) {
            break;
        }
        gathered = ask::gathered(host, &plugin, parent, memory).await?;
        parts = answer::rendering(host, &plugin, parent, &gathered).await?;
    }
    let CheckedParts { children, secrets, .. } = parts;
    kept::compatible(host, parent, &plugin.name, &children)?;
    let CheckedChildren::Exactly(children) = children else { return Ok(changes) };
    let credentials: Vec<&str> = secrets.iter().map(|secret| secret.name.as_str()).collect();
    let owned = own::all(host, children, parent, &plugin, &credentials)?;
    for child in &owned {
        changes.extend(of_child(host, child).await?);
    }
    let kinds = host.kinds();
    for child in &gathered.children {
        let rendered = owned.iter().any(|own| *own.id() == child.id);
        if !rendered && !child.going && child.is_owned_by(&parent.id.uid) {
            let Some(resource) = kinds.resource(child.id.kind) else { continue };
            let holds_data = data::is_data(&resource.group, &resource.kind);
            let effect = if holds_data { Effect::Kept } else { Effect::Deleted };
            let child = format!("{} {}", resource.kind, child.id.name);
            changes.push(Change { child, effect, fields: Vec::new() });
        }
    }
    Ok(changes)
}

async fn of_child(host: &Host, child: &Owned) -> Result<Option<Change>, WalkError> {
    let title = format!("{} {}", child.resource().kind, child.id().name);
    let change = |effect, fields| Some(Change { child: title.clone(), effect, fields });
    let Some(known) = host.children.get(child.id()).filter(|known| !known.going) else {
        return Ok(change(Effect::Made, Vec::new()));
    };
    if stands_as_rendered(&known, child) {
        return Ok(None);
    }
    let fields = match host.api.get(child.resource(), Some(&child.id().namespace), &child.id().name).await {
        Ok(bytes) => serde_json::from_slice::<Value>(&bytes).map(|stands| differences(&known, child, &stands)),
        Err(error) if error.is_not_found() => return Ok(change(Effect::Made, Vec::new())),
        Err(error) => {
            return Err(LookError::Refused(Refusal::new(title.clone(), error)).into());
        }
    };
    Ok(change(effect(&known, child), fields.unwrap_or_default()))
}

fn effect(known: &Child, child: &Owned) -> Effect {
    let fixed = known.hash.as_deref().and_then(|stands| in_place::change(stands, child.hash()));
    if !fixed.is_some_and(|change| change.fixed) {
        return Effect::Changed;
    }
    match child.policy().strategy {
        Strategy::Recreate => Effect::Recreated,
        Strategy::OnDelete => Effect::AtDelete,
        Strategy::InPlace => Effect::Stuck,
    }
}

fn differences(known: &Child, child: &Owned, stands: &Value) -> Vec<Field> {
    let mut found = Vec::new();
    let mut rendered = child.object().clone();
    // The host's own bookkeeping differs with every change.
    for ours in ["apiVersion", "kind"] {
        rendered.remove(ours);
    }
    if let Some(annotations) = rendered.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations")) {
        annotations.as_object_mut().into_iter().for_each(|all| drop(all.remove(names::HASH_ANNOTATION)));
    }
    compare(Some(&Value::Object(rendered)), Some(stands), "", &mut found);
    let owned: Map<String, Value> =
        known.owned_fields.as_deref().and_then(|owned| serde_json::from_str(owned).ok()).unwrap_or_default();
    for pointer in fields::surplus(child.object(), &owned) {
        let stands = stands.pointer(&pointer).cloned();
        found.push(Field { path: check::field(&pointer), stands, rendered: None });
    }
    found
}

/// Of what is rendered; what others added is theirs.
fn compare(rendered: Option<&Value>, stands: Option<&Value>, path: &str, found: &mut Vec<Field>) {
    match (rendered, stands) {
        (Some(Value::Object(rendered)), Some(Value::Object(stands))) => {
            for (name, value) in rendered {
                compare(Some(value), stands.get(name), &format!("{path}/{}", fields::escape(name)), found);
            }
        }
        (Some(Value::Array(rendered)), Some(Value::Array(stands))) => {
            for (index, item) in rendered.iter().enumerate() {
                compare(Some(item), counterpart(item, index, stands), &format!("{path}/{index}"), found);
            }
        }
        (Some(rendered), Some(stands)) if is_same(rendered, stands, path) => {}
        (rendered, stands) => {
            found.push(Field { path: check::field(path), stands: stands.cloned(), rendered: rendered.cloned() });
        }
    }
}

/// The item with the same name, port or path; else the one at the same place.
fn counterpart<'a>(item: &Value, index: usize, stands: &'a [Value]) -> Option<&'a Value> {
    for key in ["name", "containerPort", "port", "mountPath", "uid", "key"] {
        if let Some(value) = item.get(key) {
            return stands.iter().find(|other| other.get(key) == Some(value));
        }
    }
    stands.get(index)
}

/// The server writes quantities in its own way.
fn is_same(rendered: &Value, stands: &Value, path: &str) -> bool {
    if rendered == stands {
        return true;
    }
    let amount = ["/requests/", "/limits/", "/hard/"].iter().any(|part| path.contains(part));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    amount && quantity::compare(&text(rendered), &text(stands)) == Some(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_rendered_and_differs_is_a_difference() {
        let rendered = json!({"spec": {"ports": [{"port": 81}, {"port": 80, "name": "x"}], "type": "NodePort",
            "resources": {"requests": {"cpu": "1000m", "memory": "1Gi"}}},
            "metadata": {"labels": {"a.b/c": "1"}}});
        let stands = json!({"spec": {"ports": [{"port": 80, "name": "x", "nodePort": 3}], "type": "ClusterIP",
            "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}, "clusterIP": "1.2.3.4"}, "status": {},
            "metadata": {"labels": {"a.b/c": "2"}}});
        let mut found = Vec::new();
        compare(Some(&rendered), Some(&stands), "", &mut found);
        let found: Vec<(&str, Option<&Value>)> =
            found.iter().map(|field| (field.path.as_str(), field.stands.as_ref())).collect();
        assert_eq!(
            found,
            [
                ("metadata.labels[a.b/c]", Some(&json!("2"))),
                ("spec.ports[0]", None),
                ("spec.resources.requests.memory", Some(&json!("2Gi"))),
                ("spec.type", Some(&json!("ClusterIP"))),
            ]
        );
    }
}
