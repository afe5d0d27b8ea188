//! The manifest within the grant: once, before a plugin serves anything. Then
//! every kind that a rendering declares is granted as well.

use super::grant::{Grant, GrantedParent, UserSecrets};
use super::kinds::{self, Standing};
use super::syntax;
use super::violation::{Fault, Rule, shown};
use crate::sandbox::model::{ChildKind, KindRef, Manifest, Serving};

/// The grant by itself, then everything in the manifest against it.
pub(super) fn within_grant(manifest: &Manifest, grant: &Grant) -> Result<(), Fault> {
    grant_is_sound(grant)?;
    let Manifest { name, version, serves, children, related, schema: _, uses_time: _ } = manifest;
    if !syntax::dns_1123_label(name) {
        return invalid("/name", format!("{} is no DNS-1123 label", shown(name)));
    }
    if version.is_empty() || version.len() > 128 || version.contains(|c: char| !c.is_ascii_graphic()) {
        return invalid("/version", format!("{} is no version", shown(version)));
    }
    if serves.is_empty() {
        return invalid("/serves", "the plugin serves nothing");
    }
    for (index, serving) in serves.iter().enumerate() {
        served(&format!("/serves/{index}"), serving, grant)?;
        let same = |other: &Serving| {
            (&other.group, &other.kind, &other.discriminator) == (&serving.group, &serving.kind, &serving.discriminator)
        };
        if serves.iter().take(index).any(same) {
            return invalid(format!("/serves/{index}"), "stands twice; name all versions in one");
        }
    }
    for (index, child) in children.iter().enumerate() {
        let path = format!("/children/{index}");
        made(&path, child, grant)?;
        let same = |other: &ChildKind| (&other.kind.group, &other.kind.kind) == (&child.kind.group, &child.kind.kind);
        if children.iter().take(index).any(same) {
            return invalid(path, format!("{} stands twice; a kind is made in one version", shown(&child.kind.kind)));
        }
    }
    for (index, kind) in related.iter().enumerate() {
        let path = format!("/related/{index}");
        well_formed(&path, kind)?;
        if !grant.allows_related(&kind.group, &kind.kind) {
            return not_granted(path, "look at", &kind.group, &kind.kind, "related");
        }
    }
    Ok(())
}

/// Lines of a grant that can never have the effect that somebody wants.
fn grant_is_sound(grant: &Grant) -> Result<(), Fault> {
    let Grant { serves, children, related: _, namespaces: _, user_secrets, watch_secrets: _, allowed_fields } = grant;
    for (index, parent) in serves.iter().enumerate() {
        if let Some(wanted) = &parent.discriminator
            && !syntax::pointer(&wanted.path)
        {
            let path = format!("/spec/grant/serves/{index}/discriminator/path");
            return Err(Fault::new(Rule::InvalidGrant, path, format!("{} is no JSON pointer", shown(&wanted.path))));
        }
    }
    for (index, kind) in children.iter().enumerate() {
        grantable(&format!("/spec/grant/children/{index}"), &kind.group, &kind.kind)?;
    }
    for (index, UserSecrets { path: pointer }) in user_secrets.iter().enumerate() {
        if !syntax::pointer(pointer) {
            let path = format!("/spec/grant/userSecrets/{index}/path");
            return Err(Fault::new(Rule::InvalidGrant, path, format!("{} is no JSON pointer", shown(pointer))));
        }
    }
    for (index, allowed) in allowed_fields.iter().enumerate() {
        let path = format!("/spec/grant/allowedFields/{index}");
        if !grant.allows_child(&allowed.group, &allowed.kind) {
            let kind = kinds::shown(&allowed.group, &allowed.kind);
            return Err(Fault::new(Rule::InvalidGrant, path, format!("{kind} is not in grant.children")));
        }
        for (place, pattern) in allowed.paths.iter().enumerate() {
            if !syntax::pointer(pattern) {
                let path = format!("{path}/paths/{place}");
                return Err(Fault::new(Rule::InvalidGrant, path, format!("{} is no JSON pointer", shown(pattern))));
            }
        }
    }
    Ok(())
}

fn served(path: &str, serving: &Serving, grant: &Grant) -> Result<(), Fault> {
    let Serving { group, versions, kind, plural, discriminator } = serving;
    if versions.is_empty() {
        return invalid(format!("{path}/versions"), "names no version");
    }
    for version in versions {
        named(path, group, version, kind, plural)?;
    }
    // A Secret as a parent would hand its data to the guest.
    if kinds::standing(group, kind).is_some_and(|standing| standing != Standing::Child) || is_secret(group, kind) {
        let message = format!("{} cannot be served by a plugin", kinds::shown(group, kind));
        return Err(Fault::new(Rule::NeverGranted, path, message));
    }
    if let Some(wanted) = discriminator
        && !syntax::pointer(&wanted.path)
    {
        return invalid(format!("{path}/discriminator/path"), format!("{} is no JSON pointer", shown(&wanted.path)));
    }
    let lines: Vec<&GrantedParent> =
        grant.serves.iter().filter(|granted| granted.group == *group && granted.kind == *kind).collect();
    if lines.is_empty() {
        return not_granted(path.to_owned(), "serve", group, kind, "serves");
    }
    let covers = |granted: &&GrantedParent| match (&granted.discriminator, discriminator) {
        (None, _) => true,
        (Some(granted), Some(wanted)) => granted.path == wanted.path && granted.value == wanted.value,
        (Some(_), None) => false,
    };
    if lines.iter().any(covers) {
        return Ok(());
    }
    let wanted = match discriminator {
        Some(wanted) => format!("those with {} = {}", wanted.path, shown(&wanted.value)),
        None => "all".to_owned(),
    };
    let given: Vec<String> = lines
        .iter()
        .filter_map(|line| line.discriminator.as_ref())
        .map(|given| format!("{} = {}", given.path, shown(&given.value)))
        .collect();
    let kind = kinds::shown(group, kind);
    let message = format!("wants to serve {wanted} of {kind}, but grant.serves gives only {}", given.join(" and "));
    Err(Fault::new(Rule::NotGranted, format!("{path}/discriminator"), message))
}

fn made(path: &str, child: &ChildKind, grant: &Grant) -> Result<(), Fault> {
    let ChildKind { kind, observe } = child;
    well_formed(path, kind)?;
    grantable(path, &kind.group, &kind.kind)?;
    if !grant.allows_child(&kind.group, &kind.kind) {
        return not_granted(path.to_owned(), "make", &kind.group, &kind.kind, "children");
    }
    if is_secret(&kind.group, &kind.kind) && !observe.is_empty() {
        return invalid(format!("{path}/observe"), "a Secret shows only its revision");
    }
    for (index, pointer) in observe.iter().enumerate() {
        if !syntax::pointer(pointer) {
            return invalid(format!("{path}/observe/{index}"), format!("{} is no JSON pointer", shown(pointer)));
        }
    }
    Ok(())
}

/// Whether a grant can give the kind at all.
fn grantable(path: &str, group: &str, kind: &str) -> Result<(), Fault> {
    let name = kinds::shown(group, kind);
    match kinds::standing(group, kind) {
        Some(Standing::Never(why)) => {
            Err(Fault::new(Rule::NeverGranted, path, format!("no grant can give {name}: it {why}")))
        }
        Some(Standing::Cluster) => {
            let message = format!("{name} has no namespace, and children live in their parent's");
            Err(Fault::new(Rule::ClusterScoped, path, message))
        }
        Some(Standing::Child) | None => Ok(()),
    }
}

fn well_formed(path: &str, kind: &KindRef) -> Result<(), Fault> {
    named(path, &kind.group, &kind.version, &kind.kind, &kind.plural)
}

/// These become parts of URLs: a plural with a slash, or that of another kind, reads what is not granted.
fn named(path: &str, group: &str, version: &str, kind: &str, plural: &str) -> Result<(), Fault> {
    let fields: [(&str, &str, bool); 4] = [
        ("group", group, group.is_empty() || syntax::dns_1123_subdomain(group)),
        ("version", version, syntax::dns_1035_label(version)),
        ("kind", kind, syntax::kind(kind)),
        ("plural", plural, syntax::dns_1035_label(plural)),
    ];
    for (field, value, valid) in fields {
        if !valid {
            return invalid(format!("{path}/{field}"), format!("{} is no {field} of the API", shown(value)));
        }
    }
    match kinds::plural(group, kind) {
        Some(known) if known != plural => {
            invalid(format!("{path}/plural"), format!("the plural of {kind} is {known}, not {}", shown(plural)))
        }
        _ => Ok(()),
    }
}

fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}

fn invalid(path: impl Into<String>, message: impl Into<String>) -> Result<(), Fault> {
    Err(Fault::new(Rule::InvalidManifest, path, message))
}

fn not_granted(path: String, what: &str, group: &str, kind: &str, line: &str) -> Result<(), Fault> {
    let message = format!(
        "wants to {what} {}, but grant.{line} has no {{group: \"{group}\", kind: {kind}}}",
        kinds::shown(group, kind)
    );
    Err(Fault::new(Rule::NotGranted, path, message))
}
