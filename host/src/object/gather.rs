//! The request, from caches only, and whether it is worth a render.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::children::Child;
use super::host::Host;
use super::kinds::Unusable;
use super::memory::{Memory, Settled};
use super::parents::Parent;
use super::record::{Heir, Record};
use super::retry::Retry;
use crate::check::RelatedName;
use crate::clock;
use crate::cluster::ObjectView;
use crate::limits::PARENT_BYTES;
use crate::plugin::Plugin;
use crate::plugin::bundle::Rules;
use crate::plugin::request::{self, request};
use crate::sandbox::model::{ObservedChild, RelatedObject, Request, SecretRevision};

pub(crate) struct Gathered {
    pub request: Request,
    /// Hash of the plugin and the request.
    pub fingerprint: u64,
    /// All that stands, of whatever kind.
    pub children: Vec<Arc<Child>>,
    /// The Secrets that the object itself names, where the grant lets it.
    pub user_secrets: Vec<UserSecret>,
    /// What was found of what the plugin asked to look at, as children may name it.
    pub related: Vec<RelatedName>,
}

/// One that an object names.
pub(crate) struct UserSecret {
    /// JSON pointer into the parent.
    pub path: String,
    pub name: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum GatherError {
    /// Said by readiness, not by objects: it passes by itself.
    #[error("the cache of {kind} is not filled yet")]
    Unfilled { kind: String },
    #[error("{kind}: {problem}")]
    Unusable { kind: String, problem: Unusable },
    #[error("the object has {bytes} bytes; at most {PARENT_BYTES} are handed to a plugin")]
    TooLarge { bytes: usize },
}

impl GatherError {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Unfilled { .. } => "CachesNotFilled",
            Self::Unusable { problem: Unusable::Forbidden(_), .. } => "Forbidden",
            Self::Unusable { problem: Unusable::Missing(_), .. } => "KindMissing",
            Self::TooLarge { .. } => "TooLarge",
        }
    }

    pub(crate) fn retry(&self) -> Retry {
        match self {
            // A watch that becomes filled wakes every parent.
            Self::Unfilled { .. } | Self::TooLarge { .. } => Retry::Permanent,
            Self::Unusable { .. } => Retry::Blocked,
        }
    }
}

pub(crate) fn gather(host: &Host, plugin: &Plugin, parent: &Parent, memory: &Memory) -> Result<Gathered, GatherError> {
    if parent.guest.len() > PARENT_BYTES {
        return Err(GatherError::TooLarge { bytes: parent.guest.len() });
    }
    let children = standing(host, parent);
    let mut observed = Vec::with_capacity(children.len());
    let serving = host.serving();
    let since = serving.since.get(&plugin.name).copied().unwrap_or(0);
    for child_kind in &plugin.manifest.children {
        let Some((index, kind)) = serving.kinds.child(&child_kind.kind) else { continue };
        match kind.usable(&parent.id.namespace, since) {
            Ok(true) => {}
            Ok(false) => return Err(GatherError::Unfilled { kind: kind.name() }),
            Err(problem) => return Err(GatherError::Unusable { kind: kind.name(), problem }),
        }
        let seen = |child: &&Arc<Child>| child.id.kind == index && is_seen(host, plugin, parent, child);
        observed.extend(children.iter().filter(seen).map(|child| ObservedChild {
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            name: child.id.name.to_string(),
            uid: child.uid.to_string(),
            going: child.going,
            object: Arc::clone(&child.observed),
            data_version: child.record().map(|record| record.data_version.clone()),
        }));
    }
    observed.sort_by(|a, b| (&a.kind, &a.name, &a.api_version).cmp(&(&b.kind, &b.name, &b.api_version)));
    let secrets = memory
        .secrets
        .iter()
        .map(|(name, revision)| SecretRevision { name: name.clone(), revision: revision.clone() })
        .collect();
    let gathered = request::Gathered {
        parent: Arc::clone(&parent.guest),
        generation: parent.generation,
        children: observed,
        secrets,
        now: u64::try_from(clock::now().as_second()).unwrap_or(0),
    };
    let request = request(plugin, &parent.id, gathered);
    let user_secrets = user_secrets(plugin, parent);
    Ok(Gathered { fingerprint: fingerprint(plugin, &request), request, children, user_secrets, related: Vec::new() })
}

fn user_secrets(plugin: &Plugin, parent: &Parent) -> Vec<UserSecret> {
    if plugin.grant.user_secrets.is_empty() {
        return Vec::new();
    }
    let Ok(object) = ObjectView::parse(&parent.guest) else { return Vec::new() };
    let name = |path: &String| object.text_at(path).filter(|name| !name.is_empty()).map(|name| name.into_owned());
    let granted = plugin.grant.user_secrets.iter().map(|granted| &granted.path);
    granted.filter_map(|path| Some(UserSecret { path: path.clone(), name: name(path)? })).collect()
}

/// What carries the object's label, and what is kept for one of its name.
pub(crate) fn standing(host: &Host, parent: &Parent) -> Vec<Arc<Child>> {
    let mut children = host.children.of(&parent.id.uid);
    if !host.children.keep_any() {
        return children;
    }
    let earlier = host.children.kept_for(&Heir::of(&parent.id));
    children.extend(earlier.into_iter().filter(|child| *child.instance != *parent.id.uid));
    children
}

/// A guest sees its own children, and the data of an earlier object that it could have had itself.
fn is_seen(host: &Host, plugin: &Plugin, parent: &Parent, child: &Child) -> bool {
    *child.instance == *parent.id.uid
        || child.record().is_some_and(|record| record.plugin == plugin.name && !is_alive(host, parent, record))
}

/// Whether the object that a record names is there, and is not this one. That
/// there is none under this one's own name follows from this one being there.
pub(crate) fn is_alive(host: &Host, parent: &Parent, record: &Record) -> bool {
    is_anothers(host, parent, &record.uid)
}

/// Whether a UID is that of another parent that is there.
pub(crate) fn is_anothers(host: &Host, parent: &Parent, uid: &str) -> bool {
    uid != parent.id.uid && host.parents.key_of(uid).is_some()
}

impl Gathered {
    /// What the plugin asked to look at, and what was found of it.
    pub(crate) fn relate(&mut self, plugin: &Plugin, objects: Vec<RelatedObject>, names: Vec<RelatedName>) {
        self.request.related = objects;
        self.related = names;
        self.fingerprint = fingerprint(plugin, &self.request);
    }

    /// What an answer to the request is held against.
    pub(crate) fn rules(&self, plugin: &Plugin) -> Rules {
        Rules {
            limits: plugin.limits,
            grant: plugin.grant.clone(),
            user_secrets: self.user_secrets.iter().map(|user| user.name.clone()).collect(),
            related: self.related.clone(),
        }
    }

    /// Whether the request names these revisions.
    pub(crate) fn has_seen(&self, secrets: &BTreeMap<String, String>) -> bool {
        self.request.secrets.iter().map(|secret| (&secret.name, &secret.revision)).eq(secrets)
    }

    /// Whether the last complete walk was based on the same, and all that it
    /// made still stands as it left it.
    pub(crate) fn is_settled(&self, settled: Option<&Settled>) -> bool {
        let Some(settled) = settled else { return false };
        settled.request == self.fingerprint
            && self.children.iter().all(|there| settled.knows(there))
            && settled.children.iter().all(|child| {
                self.children.iter().any(|there| {
                    there.id == child.id
                        && !there.going
                        && there.hash.as_deref() == Some(&*child.hash)
                        && owned_fields_hash(there) == child.fields
                })
            })
    }
}

/// Of what a walk acts on though the guest does not see it: which fields are ours, whether the child has ended, or cannot
/// be changed.
pub(crate) fn owned_fields_hash(child: &Child) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&child.owned_fields, &child.ended, &child.infeasible).hash(&mut hasher);
    hasher.finish()
}

fn fingerprint(plugin: &Plugin, request: &Request) -> u64 {
    let Request { parent, config, selector_labels, children, related, secrets, now, seed } = request;
    let mut hasher = DefaultHasher::new();
    (&plugin.name, &plugin.digest, plugin.revision, parent, config, selector_labels, now, seed).hash(&mut hasher);
    for child in children {
        let ObservedChild { api_version, kind, name, uid, going, object, data_version } = child;
        (api_version, kind, name, uid, going, object, data_version).hash(&mut hasher);
    }
    for object in related {
        (&object.id, &object.api_version, &object.kind, &object.name, &object.found).hash(&mut hasher);
    }
    for secret in secrets {
        (&secret.name, &secret.revision).hash(&mut hasher);
    }
    hasher.finish()
}
