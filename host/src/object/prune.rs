//! Takes away what an earlier rendering made and this one leaves out: only what
//! is ours, by UID and resourceVersion, after the new children stand.
//!
//! What holds data is never taken away because a rendering left it out, but on
//! the word of the object's owner: `keelson.dev/delete-data` names it.

use std::sync::Arc;

use super::children::Child;
use super::data;
use super::host::Host;
use super::kinds::Standing;
use super::own::Owned;
use super::parents::{Named, Parent};
use super::record::Record;
use super::refusal::Refusal;
use super::words;
use crate::cluster::{ApiError, ApiErrorKind, ObjectView, Resource};
use crate::names;

#[derive(Default)]
pub(crate) struct Pruned {
    /// Deleted, as users know it.
    pub gone: Vec<String>,
    /// Left out of the rendering, and left as it is: it holds data. With its UID.
    pub kept: Vec<(Named, Box<str>)>,
    /// Left out of the rendering, and not ours to delete by our rights; why.
    pub forbidden: Vec<(Named, String)>,
    /// Something left out has changed since it was seen, and is looked at again.
    pub moved: bool,
}

/// `applied` is what the rendering names, the Secrets included; `secrets` are
/// those of earlier ones that the status may not list yet.
pub(crate) async fn prune(
    host: &Host,
    parent: &Parent,
    wanted: &[Owned],
    applied: &[Named],
    secrets: &[Named],
) -> Result<Pruned, Refusal> {
    let mut pruned = Pruned::default();
    for child in host.children.of(&parent.id.uid) {
        if child.going || wanted.iter().any(|owned| *owned.id() == child.id) || !is_ours(parent, &child) {
            continue;
        }
        let Some(resource) = host.kinds().resource(child.id.kind) else { continue };
        let left = Left {
            named: named(&resource, &child.id.name),
            resource,
            uid: child.uid.clone(),
            version: child.resource_version.to_string(),
            is_kept: child.record().is_some(),
        };
        one(host, parent, left, &mut pruned).await?;
    }
    let mut listed: Vec<Named> = parent.recorded().iter().chain(secrets).cloned().collect();
    listed.sort();
    listed.dedup();
    for named in listed.into_iter().filter(|named| !applied.contains(named)) {
        if let Some(left) = unwatched(host, parent, named, &mut pruned).await? {
            one(host, parent, left, &mut pruned).await?;
        }
    }
    Ok(pruned)
}

/// What the rendering leaves out.
struct Left {
    named: Named,
    resource: Arc<Resource>,
    uid: Box<str>,
    version: String,
    is_kept: bool,
}

async fn one(host: &Host, parent: &Parent, left: Left, pruned: &mut Pruned) -> Result<(), Refusal> {
    let Left { named, resource, uid, version, is_kept } = left;
    let holds_data = is_kept || data::is_data(&resource.group, &resource.kind);
    let word = words::child(&named.kind, &named.name);
    if holds_data && !parent.words.say(names::DELETE_DATA_ANNOTATION, &word) {
        pruned.kept.push((named, uid));
        return Ok(());
    }
    let title = format!("{} {}", named.kind, named.name);
    match host.api.delete(&resource, Some(&parent.id.namespace), &named.name, (&uid, Some(&version))).await {
        Ok(()) => pruned.gone.push(title),
        Err(error) if error.is_not_found() => {}
        Err(error) if error.is_conflict() => pruned.moved = true,
        // Said, and no reason to leave the rest. No watch tells when the right is given: the resync asks again.
        Err(error) if error.is_forbidden() => pruned.forbidden.push((named, error.to_string())),
        Err(error) => return Err(Refusal::new(title, error)),
    }
    Ok(())
}

fn is_ours(parent: &Parent, child: &Child) -> bool {
    child.is_owned_by(&parent.id.uid)
        || child.owners.is_empty() && child.record().is_some_and(|record| record.uid == parent.id.uid)
}

/// What the status lists of a kind that is not watched, a Secret or a kind that
/// no plugin declares any more, by name.
async fn unwatched(host: &Host, parent: &Parent, named: Named, pruned: &mut Pruned) -> Result<Option<Left>, Refusal> {
    let title = || format!("{} {}", named.kind, named.name);
    let (group, version) = named.api_version.split_once('/').unwrap_or(("", &named.api_version));
    let kinds = host.kinds();
    let known = kinds.children.iter().find(|kind| kind.group == group && kind.kind == named.kind);
    let resource = match known {
        Some(kind) if !kind.unwatched && kind.standing() != Standing::Idle => return Ok(None),
        Some(kind) => kind.resource(),
        None => match host.api.discover_by_kind(group, version, &named.kind).await {
            Ok(found) => found.filter(|found| found.namespaced).map(Arc::new),
            Err(error) => return Err(Refusal::new(title(), error)),
        },
    };
    // Where its kind has gone, it went with it.
    let Some(resource) = resource else { return Ok(None) };
    let bytes = match host.api.get(&resource, Some(&parent.id.namespace), &named.name).await {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) if error.is_forbidden() => {
            pruned.forbidden.push((named, error.to_string()));
            return Ok(None);
        }
        Err(error) => return Err(Refusal::new(title(), error)),
    };
    let undecodable = |error: ApiErrorKind| Refusal::new(title(), ApiError::new(format!("get {}", title()), error));
    let there = ObjectView::from_slice(&bytes).map_err(|error| undecodable(error.into()))?;
    let record = Record::read(&there).filter(|record| there.owners.is_empty() && record.uid == parent.id.uid);
    let ours = record.is_some() || there.owners.iter().any(|owner| owner.controller && *owner.uid == *parent.id.uid);
    if !ours || there.deletion {
        return Ok(None);
    }
    let (uid, version, is_kept) = ((*there.uid).into(), there.resource_version.clone().into_owned(), record.is_some());
    Ok(Some(Left { named, resource, uid, version, is_kept }))
}

fn named(resource: &Resource, name: &str) -> Named {
    Named { api_version: resource.api_version(), kind: resource.kind.clone(), name: name.to_owned() }
}
