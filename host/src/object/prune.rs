//! Takes away what an earlier rendering made and this one leaves out: only what
//! is ours, by UID and resourceVersion, after the new children stand.
//!
//! What holds data is never taken away because a rendering left it out.

use super::data::is_data;
use super::host::Host;
use super::own::Owned;
use super::parents::Parent;
use super::refusal::Refusal;

/// Returns what was deleted, as users know it.
pub(crate) async fn prune(host: &Host, parent: &Parent, wanted: &[Owned]) -> Result<Vec<String>, Refusal> {
    let mut gone = Vec::new();
    for child in host.children.of(&parent.id.uid) {
        if child.going || wanted.iter().any(|owned| *owned.id() == child.id) || !child.is_owned_by(&parent.id.uid) {
            continue;
        }
        let Some(resource) = host.kinds.resource(child.id.kind) else { continue };
        let title = format!("{} {}", resource.kind, child.id.name);
        if is_data(&resource.group, &resource.kind) {
            tracing::warn!(namespace = %parent.id.namespace, name = %parent.id.name, child = title, "left out of the rendering, and kept: it holds data");
            continue;
        }
        let version = child.resource_version.to_string();
        let preconditions = (&*child.uid, Some(version.as_str()));
        match host.api.delete(&resource, Some(&child.id.namespace), &child.id.name, preconditions).await {
            Ok(()) => gone.push(title),
            // Gone already, or changed since: its event brings the next walk.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => return Err(Refusal::new(title, error)),
        }
    }
    Ok(gone)
}
