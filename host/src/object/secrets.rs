//! Secrets that the host generates once and then keeps.
//!
//! Made by a manager of their own and never part of a later apply, which would
//! empty them. Not watched: `list` on Secrets is read access to all of them. A
//! plugin learns the name and a revision, an HMAC of the data under random
//! bytes that stand in the Secret itself, so that it is the same on every host.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use super::host::Host;
use super::memory::Memory;
use super::own;
use super::parents::{Named, Parent};
use super::refusal::Refusal;
use super::retry::Retry;
use crate::check::{self, Piece};
use crate::cluster::resource::escape;
use crate::cluster::{ApiError, ApiErrorKind, ObjectView, Resource};
use crate::names;
use crate::plugin::request;
use crate::plugin::verify::hex;
use crate::sandbox::model::{GeneratedSecret, SecretValue};

const DEFAULT_ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("Secret {name} exists already and is not of this object; it is left as it is")]
    NameConflict { name: String },
    #[error("Secret {name} is being deleted")]
    Going { name: String },
    #[error("{0}")]
    Refused(Refusal),
    #[error("no random bytes from the system: {0}")]
    NoRandom(getrandom::Error),
}

impl SecretError {
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::NameConflict { .. } | Self::Going { .. } | Self::NoRandom(_) => None,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NameConflict { .. } => "NameConflict",
            Self::Going { .. } => "WaitingForDeletion",
            Self::Refused(refusal) => refusal.reason(),
            Self::NoRandom(_) => "HostError",
        }
    }
    pub(crate) fn retry(&self) -> Retry {
        match self {
            Self::NameConflict { .. } | Self::Going { .. } => Retry::Blocked,
            Self::Refused(refusal) => refusal.retry(),
            Self::NoRandom(_) => Retry::Passing,
        }
    }
}

/// Sees to it that each is there; remembers its revision. Returns those made now.
pub(crate) async fn keep(
    host: &Host,
    parent: &Parent,
    plugin: &str,
    secrets: &[GeneratedSecret],
    memory: &mut Memory,
) -> Result<Vec<Named>, SecretError> {
    let mut made = Vec::new();
    memory.secrets.retain(|name, _| secrets.iter().any(|secret| secret.name == *name));
    for secret in secrets {
        let remembered = memory.secrets.contains_key(&secret.name);
        if remembered && !memory.secrets_unread {
            continue;
        }
        // One that was reported is read; a new object's is made without asking first.
        let known = remembered || parent.recorded().contains(&named(&secret.name));
        let found = if known { read(host, parent, &secret.name).await? } else { None };
        let revision = match found {
            Some(revision) => revision,
            None => {
                if let Some(revision) = make(host, parent, plugin, secret).await? {
                    made.push(named(&secret.name));
                    revision
                } else {
                    read(host, parent, &secret.name)
                        .await?
                        .ok_or_else(|| SecretError::Going { name: secret.name.clone() })?
                }
            }
        };
        memory.secrets.insert(secret.name.clone(), revision);
    }
    memory.secrets_unread = false;
    Ok(made)
}

pub(crate) fn named(name: &str) -> Named {
    Named { api_version: "v1".to_owned(), kind: "Secret".to_owned(), name: name.to_owned() }
}

fn resource() -> Resource {
    Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespaced: true,
        has_status: false,
    }
}

/// `None`: there is one of that name already.
async fn make(
    host: &Host,
    parent: &Parent,
    plugin: &str,
    secret: &GeneratedSecret,
) -> Result<Option<String>, SecretError> {
    let data = generate(secret).map_err(SecretError::NoRandom)?;
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(SecretError::NoRandom)?;
    let key = BASE64.encode(key);
    let encoded: Map<String, Value> =
        data.iter().map(|(name, text)| (name.clone(), BASE64.encode(text).into())).collect();
    let labels: Map<String, Value> = request::labels(plugin, &parent.id)
        .into_iter()
        .map(|(label, value)| (label.to_owned(), value.into()))
        .collect();
    let revision = revision(&key, &encoded);
    let body = json!({
        "apiVersion": "v1", "kind": "Secret", "type": secret.secret_type.as_deref().unwrap_or("Opaque"),
        "metadata": {
            "name": secret.name, "namespace": parent.id.namespace, "labels": labels,
            "annotations": {names::REVISION_KEY_ANNOTATION: key},
            "ownerReferences": [own::owner_reference(&parent.id)],
        },
        "data": encoded,
    });
    let body = serde_json::to_vec(&body).unwrap_or_default();
    match host.api.create(&resource(), Some(&parent.id.namespace), names::SECRETS_FIELD_MANAGER, body).await {
        Ok(_) => Ok(Some(revision)),
        Err(error) if error.is_already_exists() => Ok(None),
        Err(error) => Err(refused(&secret.name, error)),
    }
}

async fn read(host: &Host, parent: &Parent, name: &str) -> Result<Option<String>, SecretError> {
    let bytes = match host.api.get(&resource(), Some(&parent.id.namespace), name).await {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(refused(name, error)),
    };
    let undecodable =
        |problem: String| refused(name, ApiError::new(format!("get secrets {name}"), ApiErrorKind::Decode(problem)));
    let there = ObjectView::from_slice(&bytes).map_err(|error| undecodable(error.to_string()))?;
    if !there.owners.iter().any(|owner| *owner.uid == *parent.id.uid) {
        let name = name.to_owned();
        return Err(if there.deletion { SecretError::Going { name } } else { SecretError::NameConflict { name } });
    }
    if there.deletion {
        return Err(SecretError::Going { name: name.to_owned() });
    }
    let data = match there.fields.get("data") {
        Some(data) => serde_json::from_str::<Option<Map<String, Value>>>(data.get())
            .map_err(|error| undecodable(error.to_string()))?,
        None => None,
    };
    // Without its key (somebody took it away) the UID serves: as stable, if less opaque.
    let key = there.annotations.get(names::REVISION_KEY_ANNOTATION).map_or(&*there.uid, |key| &**key);
    Ok(Some(revision(key, &data.unwrap_or_default())))
}

/// 16 hex digits that change exactly with the data.
fn revision(key: &str, data: &Map<String, Value>) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes a key of any length");
    // Length before text, so that no two data give the same bytes.
    for (name, value) in data {
        for text in [name.as_str(), value.as_str().unwrap_or_default()] {
            mac.update(&(text.len() as u64).to_be_bytes());
            mac.update(text.as_bytes());
        }
    }
    let mut digits = hex(&mac.finalize().into_bytes());
    digits.truncate(16);
    digits
}

/// The texts of all keys. Templates refer to other keys, never to templates:
/// that was checked.
fn generate(secret: &GeneratedSecret) -> Result<BTreeMap<String, String>, getrandom::Error> {
    let mut texts = BTreeMap::new();
    for key in &secret.keys {
        match &key.value {
            SecretValue::Random { length, alphabet } => {
                let alphabet = alphabet.as_deref().unwrap_or(DEFAULT_ALPHABET);
                texts.insert(key.name.clone(), random_text(*length, alphabet.as_bytes())?);
            }
            SecretValue::Literal(text) => {
                texts.insert(key.name.clone(), text.clone());
            }
            SecretValue::Template(_) => {}
        }
    }
    for key in &secret.keys {
        if let SecretValue::Template(template) = &key.value {
            let text = fill_in(template, &texts);
            texts.insert(key.name.clone(), text);
        }
    }
    Ok(texts)
}

/// Each character with the same probability: bytes beyond the last whole
/// multiple of the alphabet are drawn again.
fn random_text(length: u32, alphabet: &[u8]) -> Result<String, getrandom::Error> {
    let fair = 256 - 256 % alphabet.len().max(1);
    let mut text = String::with_capacity(length as usize);
    let mut bytes = [0; 64];
    while text.len() < length as usize {
        getrandom::fill(&mut bytes)?;
        let left = length as usize - text.len();
        let chosen = bytes.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < fair);
        text.extend(
            chosen.filter_map(|byte| alphabet.get(byte % alphabet.len())).take(left).map(|byte| char::from(*byte)),
        );
    }
    Ok(text)
}

/// A template that was checked has no errors left.
fn fill_in(template: &str, texts: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(template.len());
    for piece in check::template(template).unwrap_or_default() {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Key { name, percent_encoded } => {
                let text = texts.get(name).map_or("", String::as_str);
                if percent_encoded { escape(&mut out, text) } else { out.push_str(text) }
            }
        }
    }
    out
}

fn refused(name: &str, error: ApiError) -> SecretError {
    SecretError::Refused(Refusal::new(format!("Secret {name}"), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::model::SecretKey;

    #[test]
    fn random_text_is_of_its_length_and_alphabet_and_never_the_same() {
        let text = random_text(200, b"0123456789").unwrap();
        assert_eq!(text.len(), 200);
        assert!(text.bytes().all(|byte| byte.is_ascii_digit()));
        assert!((b'0'..=b'9').all(|digit| text.as_bytes().contains(&digit)), "every character comes up");
        assert_ne!(text, random_text(200, b"0123456789").unwrap());
    }

    #[test]
    fn templates_are_filled_from_the_other_keys() {
        let key = |name: &str, value| SecretKey { name: name.into(), value };
        let secret = GeneratedSecret {
            name: "s".into(),
            keys: vec![
                key("uri", SecretValue::Template("db://root:{password|url}@{host}/{{x}}".into())),
                key("password", SecretValue::Literal("a/b@c".into())),
                key("host", SecretValue::Literal("h".into())),
            ],
            secret_type: None,
            retain: None,
        };
        assert_eq!(generate(&secret).unwrap()["uri"], "db://root:a%2Fb%40c@h/{x}");
    }

    #[test]
    fn a_revision_moves_with_the_data_only() {
        let data = |text: &str| Map::from_iter([("k".to_owned(), Value::from(text))]);
        assert_eq!(revision("key", &data("a")), revision("key", &data("a")));
        assert_ne!(revision("key", &data("a")), revision("key", &data("b")));
        assert_ne!(revision("key", &data("a")), revision("other", &data("a")));
    }
}
