//! Secrets that the host generates once and then keeps, and those of the user's
//! own that the object names.
//!
//! Generated ones are made by a manager of their own and never part of a later
//! apply, which would empty them. Not watched: `list` on Secrets is read access
//! to all of them. A plugin learns the name and a revision. One that is gone is
//! not made anew while there is data that it opens.

mod generate;
mod revision;
mod error;
mod there;
mod users;
mod mend;
mod told;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::error::SecretError;
use self::error::refused;
use self::mend::Mended;
use self::there::{There, Whose, read};
pub(crate) use self::there::{resource, revision_of};
pub(crate) use self::told::{CONDITION, standing};
use self::told::{condition, first_seen};
use super::children::Child;
use super::gather::{self, UserSecret, is_anothers};
use super::host::Host;
use super::kept;
use super::memory::{Memory, News, hash_of};
use super::parents::{Named, Parent, ParentKey};
use super::words;
use crate::clock;
use crate::names;
use crate::plugin::Plugin;
use crate::sandbox::model::GeneratedSecret;

/// What was done to the generated ones.
#[derive(Default)]
pub(crate) struct Kept {
    pub made: Vec<Named>,
    /// Of an earlier object of the same name.
    pub found: Vec<Named>,
    pub adopted: Vec<Named>,
}

/// How long they are not read again, since that was in vain a moment ago and nothing has changed that could mend it:
/// neither the object, nor its owner's words, nor what it has. `at_once`: whatever was in vain.
pub(crate) fn wait(parent: &Parent, children: &[Arc<Child>], memory: &mut Memory, at_once: bool) -> Option<Duration> {
    let children: Vec<&str> = children.iter().filter(|child| !child.going).map(|child| &*child.uid).collect();
    let asked = hash_of(&(&parent.guest, &parent.words, children));
    let same = std::mem::replace(&mut memory.secrets_asked, asked) == asked;
    let again = memory.secrets_again.filter(|_| same && !at_once)?;
    Some(again.saturating_duration_since(clock::instant())).filter(|wait| !wait.is_zero())
}

/// Sees to it that each is there; remembers its revision, and what is to be told.
pub(crate) async fn keep(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    plugin: &Plugin,
    users: &[UserSecret],
    secrets: &[GeneratedSecret],
    memory: &mut Memory,
) -> Result<Kept, SecretError> {
    let is_users = |user: &&UserSecret| secrets.iter().all(|own| own.name != user.name);
    let users: Vec<&UserSecret> = users.iter().filter(is_users).collect();
    // Whoever changes the object may have changed its Secrets before.
    let seen = hash_of(&parent.guest);
    memory.secrets_unread |= memory.secrets_of != seen;
    let wanted =
        |name: &String| secrets.iter().any(|own| own.name == *name) || users.iter().any(|user| user.name == *name);
    memory.secrets.retain(|name, _| wanted(name));
    memory.edits.retain(|name, _| wanted(name));
    let mut kept = Kept::default();
    for secret in secrets {
        if memory.secrets_unread || !memory.secrets.contains_key(&secret.name) {
            let revision = one(host, key, parent, &plugin.name, secret, memory, &mut kept).await?;
            memory.secrets.insert(secret.name.clone(), revision);
        }
        let standing = named(&secret.name);
        if !memory.secrets_standing.contains(&standing) {
            memory.secrets_standing.push(standing);
        }
    }
    own_by_users(host, parent, &users, memory).await?;
    memory.secrets_unread = false;
    memory.secrets_again = None;
    memory.secrets_of = seen;
    tell(parent, memory);
    Ok(kept)
}

/// The revision of one that stands.
pub(crate) async fn stands(host: &Host, parent: &Parent, name: &str) -> Result<Option<String>, SecretError> {
    Ok(read(host, parent, name).await?.map(|there| there.revision()))
}

pub(crate) fn named(name: &str) -> Named {
    Named { api_version: "v1".to_owned(), kind: "Secret".to_owned(), name: name.to_owned() }
}

pub(crate) fn is_secret(child: &Named) -> bool {
    child.api_version == "v1" && child.kind == "Secret"
}

/// Its revision.
async fn one(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    plugin: &str,
    secret: &GeneratedSecret,
    memory: &mut Memory,
    kept: &mut Kept,
) -> Result<String, SecretError> {
    let name = &secret.name;
    let data = gather::standing(host, parent).into_iter().find(|child| !child.going && child.is_opened_by(name));
    let data = data.filter(|_| !parent.words.say(names::NEW_CREDENTIALS_ANNOTATION, name));
    let lost = |what: String| match &data {
        Some(child) => {
            let kinds = host.kinds();
            let kind = kinds.names().get(child.id.kind).map_or("", String::as_str);
            Err(SecretError::Lost { name: name.clone(), what, child: format!("{kind} {}", child.id.name) })
        }
        None => Ok(()),
    };
    // One that may be there is asked for; a new object's is made without asking first.
    let known = data.is_some() || memory.secrets.contains_key(name) || parent.recorded().contains(&named(name));
    let mut there = if known { read(host, parent, name).await? } else { None };
    if there.is_none() {
        lost(format!("Secret {name} with {}", keys(secret.keys.iter().map(|key| key.name.as_str()))))?;
        match make(host, parent, plugin, secret).await? {
            Some(revision) => {
                kept.made.push(named(name));
                memory.edits.remove(name);
                return Ok(revision);
            }
            None => there = read(host, parent, name).await?,
        }
    }
    let Some(there) = there else { return Err(SecretError::Going { name: name.clone() }) };
    let became = whose(host, key, parent, plugin, secret, &there).await?;
    let gone = mend::lost(secret, &there);
    if !gone.is_empty() {
        lost(format!("of Secret {name} {}", keys(gone.iter().map(String::as_str))))?;
    }
    let acknowledged = parent.words.say(names::ACKNOWLEDGED_ANNOTATION, &there.revision());
    let Mended { patch, revision, is_edited } =
        mend::mended(&parent.id, plugin, secret, &there, acknowledged).map_err(SecretError::NoRandom)?;
    let loose = parent.deleting && matches!(there.whose, Whose::Loose);
    if let Some(patch) = patch.filter(|_| !loose) {
        let body = serde_json::to_vec(&patch).unwrap_or_default();
        let sent =
            host.api.patch(&resource(), Some(&parent.id.namespace), name, names::SECRETS_FIELD_MANAGER, body).await;
        sent.map_err(|error| refused(name, error))?;
    }
    match became {
        Became::Ours => {}
        Became::Found => kept.found.push(named(name)),
        Became::Adopted => kept.adopted.push(named(name)),
    }
    if is_edited {
        memory.edits.insert(name.clone(), revision.clone());
    } else {
        memory.edits.remove(name);
    }
    Ok(revision)
}

/// How it comes that it is this object's.
enum Became {
    Ours,
    Found,
    Adopted,
}

async fn whose(
    host: &Host,
    key: &ParentKey,
    parent: &Parent,
    plugin: &str,
    secret: &GeneratedSecret,
    there: &There,
) -> Result<Became, SecretError> {
    let name = &secret.name;
    let became = match &there.whose {
        Whose::Ours => return Ok(Became::Ours),
        // Cut loose by an orphaning delete it is its user's: only looked at.
        Whose::Loose if parent.deleting => return Ok(Became::Ours),
        Whose::Loose => Became::Ours,
        Whose::Going => return Err(SecretError::Going { name: name.clone() }),
        Whose::Others => return Err(SecretError::NameConflict { name: name.clone(), adoptable: false }),
        Whose::Kept(record) => {
            let named = ("Secret", name.as_str());
            kept::may_have(host, parent, plugin, secret.retain.as_ref(), record, named).map_err(SecretError::Kept)?;
            Became::Found
        }
        Whose::Nobodys if there.labels.get(names::INSTANCE_LABEL).is_some_and(|uid| is_anothers(host, parent, uid)) => {
            return Err(SecretError::NameConflict { name: name.clone(), adoptable: false });
        }
        Whose::Nobodys if parent.words.say(names::ADOPT_ANNOTATION, &words::child("Secret", name)) => Became::Adopted,
        Whose::Nobodys => return Err(SecretError::NameConflict { name: name.clone(), adoptable: true }),
    };
    if host.is_there(key, parent).await.map_err(|error| refused(name, error))? {
        return Ok(became);
    }
    Err(SecretError::ParentGone)
}

/// `None`: there is one of that name already.
async fn make(
    host: &Host,
    parent: &Parent,
    plugin: &str,
    secret: &GeneratedSecret,
) -> Result<Option<String>, SecretError> {
    let (body, revision) = mend::whole(&parent.id, plugin, secret).map_err(SecretError::NoRandom)?;
    let body = serde_json::to_vec(&body).unwrap_or_default();
    match host.api.create(&resource(), Some(&parent.id.namespace), names::SECRETS_FIELD_MANAGER, body).await {
        Ok(_) => Ok(Some(revision)),
        Err(error) if error.is_already_exists() => Ok(None),
        Err(error) => Err(refused(&secret.name, error)),
    }
}

async fn own_by_users(
    host: &Host,
    parent: &Parent,
    users: &[&UserSecret],
    memory: &mut Memory,
) -> Result<(), SecretError> {
    let known = memory.first_seen.get_or_insert_with(|| first_seen(parent)).clone();
    let mut first = told::FirstSeen::new();
    for user in users {
        let revision = match memory.secrets.get(&user.name).filter(|_| !memory.secrets_unread) {
            Some(revision) => revision.clone(),
            None => users::look(host, parent, user).await.inspect_err(|_| {
                memory.secrets.remove(&user.name);
            })?,
        };
        memory.secrets.insert(user.name.clone(), revision.clone());
        let acknowledged = parent.words.say(names::ACKNOWLEDGED_ANNOTATION, &revision);
        let seen = known.get(&user.path).filter(|_| !acknowledged).unwrap_or(&revision);
        if *seen == revision {
            memory.edits.remove(&user.name);
        } else {
            memory.edits.insert(user.name.clone(), revision.clone());
        }
        first.insert(user.path.clone(), seen.clone());
    }
    memory.first_seen = Some(first);
    Ok(())
}

/// By a condition, and once by an Event.
fn tell(parent: &Parent, memory: &mut Memory) {
    let told = condition(&memory.edits, memory.first_seen.as_ref().unwrap_or(&told::FirstSeen::new()));
    let changed = |told: &&crate::sandbox::model::Condition| {
        told.status == "True"
            && memory.credentials.as_ref().map_or_else(|| standing(parent), Clone::clone).as_ref() != Some(*told)
    };
    if let Some(told) = told.as_ref().filter(changed) {
        memory.report.news.push(News {
            warning: true,
            reason: told.kind.clone(),
            action: "Secrets",
            note: told.message.clone(),
            occurrence: String::new(),
        });
    }
    memory.credentials = Some(told);
}

fn keys<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    format!("{} {}", if names.len() == 1 { "key" } else { "keys" }, names.join(", "))
}
