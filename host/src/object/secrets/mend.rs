//! Brings a generated Secret that is there to what is rendered: whose it is, how
//! long it is kept, keys that are new. Never a key that is there already, and
//! never but by a patch of exactly the state that was seen.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::generate::generate;
use super::revision::revision;
use super::there::There;
use crate::check;
use crate::names;
use crate::object::own::owner_reference;
use crate::object::record::{self, Record};
use crate::plugin::request;
use crate::sandbox::model::GeneratedSecret;

/// Random bytes under which revisions are computed.
pub(crate) fn new_key() -> Result<String, getrandom::Error> {
    let mut key = [0; 16];
    getrandom::fill(&mut key)?;
    Ok(BASE64.encode(key))
}

/// The whole Secret, for a POST. With its revision.
pub(crate) fn whole(
    parent: &check::Parent,
    plugin: &str,
    secret: &GeneratedSecret,
) -> Result<(Value, String), getrandom::Error> {
    let key = new_key()?;
    let data: Map<String, Value> = encoded(generate(secret, Default::default())?);
    let revision = revision(&key, &data);
    let labels: Map<String, Value> =
        request::labels(plugin, parent).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut annotations: Map<String, Value> = [
        (names::REVISION_KEY_ANNOTATION, key),
        (names::REVISION_SEEN_ANNOTATION, revision.clone()),
        (names::KEYS_ANNOTATION, keys(secret, "")),
    ]
    .map(|(name, value)| (name.to_owned(), value.into()))
    .into_iter()
    .collect();
    let owners = match &secret.retain {
        Some(retention) => {
            let record = Record::new(parent, plugin, retention);
            annotations.extend(record.annotations().map(|(name, value)| (name.to_owned(), value.into())));
            json!([])
        }
        None => json!([owner_reference(parent)]),
    };
    let metadata = json!({
        "name": secret.name, "namespace": parent.namespace, "labels": labels, "annotations": annotations,
        "ownerReferences": owners,
    });
    let kind = secret.secret_type.as_deref().unwrap_or("Opaque");
    Ok((json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": data}), revision))
}

/// Keys that were made once and are not there any more.
pub(crate) fn lost(secret: &GeneratedSecret, there: &There) -> Vec<String> {
    let made = there.annotations.get(names::KEYS_ANNOTATION);
    let was_made = |name: &str| made.is_none_or(|made| made.split(',').any(|made| made == name));
    let gone = secret.keys.iter().filter(|key| !there.data.contains_key(&key.name) && was_made(&key.name));
    gone.map(|key| key.name.clone()).collect()
}

pub(crate) struct Mended {
    /// A merge patch; `None` where all is as it should be.
    pub patch: Option<Value>,
    /// After it.
    pub revision: String,
    /// Somebody has edited it, and nobody has acknowledged that.
    pub is_edited: bool,
}

/// `acknowledged`: the edit that was made is known to users.
pub(crate) fn mended(
    parent: &check::Parent,
    plugin: &str,
    secret: &GeneratedSecret,
    there: &There,
    acknowledged: bool,
) -> Result<Mended, getrandom::Error> {
    let mut metadata = Map::new();
    let labels: Map<String, Value> = request::labels(plugin, parent)
        .into_iter()
        .filter(|(name, value)| there.labels.get(*name) != Some(value))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let added: Map<String, Value> = encoded(generate(secret, there.texts())?)
        .into_iter()
        .filter(|(name, _)| !there.data.contains_key(name))
        .collect();
    let mut data = there.data.clone();
    data.extend(added.clone());

    let standing = |name: &str| there.annotations.get(name).map(String::as_str);
    let mut annotations: Vec<(&str, Option<String>)> = Vec::new();
    let (key, is_new) = match standing(names::REVISION_KEY_ANNOTATION) {
        Some(key) => (key.to_owned(), false),
        None => (new_key()?, true),
    };
    let revision = revision(&key, &data);
    let seen = standing(names::REVISION_SEEN_ANNOTATION);
    // What we add is no edit; what somebody edited before stays told.
    let as_seen = is_new || acknowledged || seen.is_none_or(|seen| seen == there.revision());
    annotations.push((
        names::REVISION_SEEN_ANNOTATION,
        if as_seen { Some(revision.clone()) } else { seen.map(str::to_owned) },
    ));
    annotations.push((names::REVISION_KEY_ANNOTATION, Some(key)));
    let made = standing(names::KEYS_ANNOTATION).unwrap_or_default();
    annotations.push((names::KEYS_ANNOTATION, Some(keys(secret, made))));
    match &secret.retain {
        Some(retention) => {
            let record = Record::new(parent, plugin, retention);
            annotations.extend(record.annotations().map(|(name, value)| (name, Some(value.to_owned()))));
        }
        None => annotations.extend(record::ANNOTATIONS.map(|name| (name, None))),
    }
    let annotations: Map<String, Value> = annotations
        .into_iter()
        .filter(|(name, value)| standing(name) != value.as_deref())
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();

    let is_own = |owner: &Value| owner.get("uid").is_some_and(|uid| *uid == parent.uid);
    if secret.retain.is_some() == there.owners.iter().any(is_own) {
        let mut owners: Vec<Value> = there.owners.iter().filter(|owner| !is_own(owner)).cloned().collect();
        if secret.retain.is_none() {
            owners.push(owner_reference(parent));
        }
        metadata.insert("ownerReferences".to_owned(), owners.into());
    }
    for (field, entries) in [("labels", labels), ("annotations", annotations)] {
        if !entries.is_empty() {
            metadata.insert(field.to_owned(), entries.into());
        }
    }
    if metadata.is_empty() && added.is_empty() {
        return Ok(Mended { patch: None, revision, is_edited: !as_seen });
    }
    metadata.insert("uid".to_owned(), there.uid.as_str().into());
    metadata.insert("resourceVersion".to_owned(), there.version.as_str().into());
    let patch = Some(json!({"metadata": metadata, "data": added}));
    Ok(Mended { patch, revision, is_edited: !as_seen })
}

fn encoded(texts: impl IntoIterator<Item = (String, String)>) -> Map<String, Value> {
    texts.into_iter().map(|(name, text)| (name, BASE64.encode(text).into())).collect()
}

/// The names of all keys that were ever made, with commas.
fn keys(secret: &GeneratedSecret, made: &str) -> String {
    let mut keys: Vec<&str> = made.split(',').filter(|name| !name.is_empty()).collect();
    keys.extend(secret.keys.iter().map(|key| key.name.as_str()));
    keys.sort_unstable();
    keys.dedup();
    keys.join(",")
}

#[cfg(test)]
mod tests {
    use super::super::there::Whose;
    use super::*;
    use crate::sandbox::model::{Retention, SecretKey, SecretValue};

    fn parent() -> check::Parent {
        check::Parent {
            api_version: "example.org/v1".into(),
            kind: "Widget".into(),
            namespace: "n".into(),
            name: "a".into(),
            uid: "u".into(),
        }
    }

    fn secret(keys: &[&str], retain: bool) -> GeneratedSecret {
        let random = || SecretValue::Random { length: 16, alphabet: None };
        GeneratedSecret {
            name: "a-s".into(),
            keys: keys.iter().map(|name| SecretKey { name: (*name).into(), value: random() }).collect(),
            secret_type: None,
            retain: retain.then(|| Retention { data_version: "1".into(), line: "l".into() }),
        }
    }

    /// As the server would hold it.
    fn there(object: &Value) -> There {
        let map = |pointer: &str| serde_json::from_value(object.pointer(pointer).unwrap().clone()).unwrap();
        There {
            uid: "s".into(),
            version: "7".into(),
            kind: "Opaque".into(),
            labels: map("/metadata/labels"),
            annotations: map("/metadata/annotations"),
            owners: serde_json::from_value(object["metadata"]["ownerReferences"].clone()).unwrap(),
            data: serde_json::from_value(object["data"].clone()).unwrap(),
            whose: Whose::Ours,
        }
    }

    fn merge(into: &mut Value, patch: &Value) {
        for (name, value) in patch.as_object().unwrap() {
            match value {
                Value::Null => drop(into.as_object_mut().unwrap().remove(name)),
                Value::Object(_) => merge(&mut into[name], value),
                _ => into[name] = value.clone(),
            }
        }
    }

    #[test]
    fn what_was_made_needs_no_mending_and_its_end_can_be_changed() {
        let (made, revision) = whole(&parent(), "p", &secret(&["password"], false)).unwrap();
        let same = mended(&parent(), "p", &secret(&["password"], false), &there(&made), false).unwrap();
        assert_eq!((same.patch, same.revision, same.is_edited), (None, revision, false));
        let mut kept = made.clone();
        merge(
            &mut kept,
            &mended(&parent(), "p", &secret(&["password"], true), &there(&made), false).unwrap().patch.unwrap(),
        );
        assert_eq!(kept["metadata"]["ownerReferences"], json!([]));
        assert_eq!(kept["metadata"]["annotations"][names::RETAINED_UID_ANNOTATION], "u");
        assert!(mended(&parent(), "p", &secret(&["password"], true), &there(&kept), false).unwrap().patch.is_none());
        let back = mended(&parent(), "p", &secret(&["password"], false), &there(&kept), false).unwrap().patch.unwrap();
        merge(&mut kept, &back);
        assert_eq!(kept["data"], made["data"]);
        assert_eq!(kept["metadata"]["annotations"], made["metadata"]["annotations"]);
        assert_eq!(kept["metadata"]["ownerReferences"], made["metadata"]["ownerReferences"]);
        assert_eq!((&back["metadata"]["uid"], &back["metadata"]["resourceVersion"]), (&json!("s"), &json!("7")));
    }

    #[test]
    fn new_keys_are_added_and_lost_ones_are_named() {
        let (mut made, _) = whole(&parent(), "p", &secret(&["a"], false)).unwrap();
        let wanted = secret(&["a", "b"], false);
        assert!(lost(&wanted, &there(&made)).is_empty(), "b was never made");
        let added = mended(&parent(), "p", &wanted, &there(&made), false).unwrap();
        merge(&mut made, added.patch.as_ref().unwrap());
        assert!(!added.is_edited && added.patch.unwrap()["data"].as_object().unwrap().len() == 1);
        assert!(mended(&parent(), "p", &wanted, &there(&made), false).unwrap().patch.is_none());
        made["data"].as_object_mut().unwrap().remove("b");
        assert_eq!(lost(&wanted, &there(&made)), ["b"]);
    }

    #[test]
    fn an_edit_stays_told_until_it_is_acknowledged() {
        let (mut made, revision) = whole(&parent(), "p", &secret(&["a"], false)).unwrap();
        made["data"]["a"] = "eA==".into();
        let edited = mended(&parent(), "p", &secret(&["a"], false), &there(&made), false).unwrap();
        assert!(edited.is_edited && edited.patch.is_none() && edited.revision != revision);
        let more = mended(&parent(), "p", &secret(&["a", "b"], false), &there(&made), false).unwrap();
        assert!(more.is_edited, "a key of ours beside it does not hide it");
        let known = mended(&parent(), "p", &secret(&["a"], false), &there(&made), true).unwrap();
        merge(&mut made, &known.patch.unwrap());
        assert!(!mended(&parent(), "p", &secret(&["a"], false), &there(&made), false).unwrap().is_edited);
    }
}
