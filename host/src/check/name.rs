//! Names: one rule that holds for every kind on every supported Kubernetes, the
//! older ones included, which take DNS-1035 only for a Service.

use super::checked::Parent;
use super::grant::Grant;
use super::syntax;
use super::violation::{Fault, Rule, shown};
use crate::limits::{CHILD_SUFFIX_CHARS, PARENT_NAME_CHARS};
use crate::sandbox::model::Manifest;

/// Kinds that take less than a DNS-1035 label of 63 characters: they append to their name for what they make.
const SHORTER: &[(&str, &str, usize)] = &[("apps", "StatefulSet", 52), ("batch", "CronJob", 52)];

/// Child kinds by how little they take, and what: the first that a plugin makes is named to the user.
const LIMITING: &[(&str, &str, &str)] = &[
    ("", "Service", "a DNS-1035 label of at most 63 characters"),
    ("apps", "StatefulSet", "a DNS-1123 label of at most 52 characters"),
    ("batch", "CronJob", "a DNS-1123 label of at most 52 characters"),
    ("batch", "Job", "a DNS-1123 label of at most 63 characters"),
    ("", "Pod", "a DNS-1123 label of at most 63 characters, its host name"),
];

/// Before any call of the guest: whether the plugin may serve this parent at all.
pub(super) fn parent(parent: &Parent, grant: &Grant, manifest: &Manifest) -> Result<(), Fault> {
    let Parent { api_version: _, kind, namespace, name, uid: _ } = parent;
    if !grant.allows_namespace(namespace) {
        let message = format!("grant.namespaces of the plugin does not have {}", shown(namespace));
        return Err(Fault::new(Rule::ParentNamespace, "/metadata/namespace", message));
    }
    let length = name.chars().count();
    let problem = if length > PARENT_NAME_CHARS {
        format!("has {length} characters, of at most {PARENT_NAME_CHARS}")
    } else if !syntax::dns_1035_label(name) {
        "is no DNS-1035 label (a-z, 0-9 and -, a letter first, no dash last)".to_owned()
    } else {
        return Ok(());
    };
    let makes = |group: &str, kind: &str| {
        manifest.children.iter().any(|child| child.kind.group == group && child.kind.kind == kind)
    };
    let (limiting, takes) = LIMITING
        .iter()
        .find(|(group, kind, _)| makes(group, kind))
        .map_or(("label app.kubernetes.io/instance", "at most 63 characters"), |(_, kind, takes)| (*kind, *takes));
    let message = format!(
        "the name {} {problem}: its {limiting}, named after the {kind} with up to {CHILD_SUFFIX_CHARS} characters more, takes {takes}",
        shown(name)
    );
    Err(Fault::new(Rule::ParentName, "/metadata/name", message))
}

/// A child's or a generated Secret's: the parent's name, or that with `-` and a few characters more.
pub(super) fn child(path: &str, group: &str, kind: &str, name: &str, parent: &str) -> Result<(), Fault> {
    let refuse = |message: String| Err(Fault::new(Rule::ChildName, path, message));
    let suffix = name.strip_prefix(parent).filter(|suffix| suffix.is_empty() || suffix.starts_with('-'));
    let Some(suffix) = suffix else {
        return refuse(format!("{} is neither the parent's name, {parent}, nor begins with {parent}-", shown(name)));
    };
    let length = suffix.chars().count();
    if length > CHILD_SUFFIX_CHARS {
        return refuse(format!("appends {length} characters to the parent's name, of at most {CHILD_SUFFIX_CHARS}"));
    }
    if !syntax::dns_1035_label(name) {
        return refuse(format!("{} is no DNS-1035 label (a-z, 0-9 and -, no dash last)", shown(name)));
    }
    let shorter = SHORTER.iter().find(|entry| entry.0 == group && entry.1 == kind);
    match shorter {
        Some((_, _, most)) if name.len() > *most => {
            refuse(format!("has {} characters; a {kind} takes {most}, since it appends to its name", name.len()))
        }
        _ => Ok(()),
    }
}
