//! Labels and annotations: syntax, size, and what of them is the host's.

use serde_json::{Map, Value};

use super::checked::Context;
use super::path::Path;
use super::syntax;
use super::violation::{Fault, Rule, shown};
use crate::limits::ANNOTATIONS_BYTES;
use crate::names::{
    APP_INSTANCE_LABEL, APP_MANAGED_BY_LABEL, APP_NAME_LABEL, APP_PART_OF_LABEL, GROUP, LAST_APPLIED_ANNOTATION,
    PLUGIN_LABEL,
};

/// Whose metadata it is: the host writes its common labels on children, not on templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Child,
    Template,
}

const APP_LABELS: &[&str] = &[APP_NAME_LABEL, APP_INSTANCE_LABEL, APP_MANAGED_BY_LABEL, APP_PART_OF_LABEL];

/// Annotations by which a Pod asks for a profile (AppArmor until 1.30, seccomp until 1.19), and what baseline takes there.
const PROFILES: &[(&str, &[&str], &[&str])] = &[
    ("container.apparmor.security.beta.kubernetes.io/", &["", "runtime/default"], &["localhost/"]),
    ("container.seccomp.security.alpha.kubernetes.io/", &["runtime/default", "docker/default"], &["localhost/"]),
    ("seccomp.security.alpha.kubernetes.io/", &["runtime/default", "docker/default"], &["localhost/"]),
];

/// Fields beside `allowed` are the API server's, and a finalizer of a guest's would block a delete for ever.
pub(super) fn check(
    metadata: &Map<String, Value>,
    allowed: &[&str],
    place: Place,
    path: &Path<'_>,
    context: &Context<'_>,
) -> Result<(), Fault> {
    for (key, value) in metadata {
        let path = path.key(key);
        if !allowed.contains(&key.as_str()) {
            let message = format!("may not be set by a plugin; it may set {}", allowed.join(", "));
            return Err(Fault::new(Rule::ServerField, path.pointer(), message));
        }
        match key.as_str() {
            "labels" => labels(value, place, &path, context)?,
            "annotations" => annotations(value, &path)?,
            _ => {}
        }
    }
    Ok(())
}

fn labels(labels: &Value, place: Place, path: &Path<'_>, context: &Context<'_>) -> Result<(), Fault> {
    for (key, value) in texts(labels, path)? {
        let path = path.key(key);
        if !syntax::label_value(value) {
            let message = format!("{} is no value of a label (63 of A-Z a-z 0-9 - _ .)", shown(value));
            return Err(Fault::new(Rule::Labels, path.pointer(), message));
        }
        let ours = || {
            key == PLUGIN_LABEL && value == context.plugin
                || context.selector_labels.iter().any(|(ours, equal)| ours == key && equal == value)
        };
        if is_ours(key) && !ours() {
            let message = "is the host's to set, and may only be repeated with its value".to_owned();
            return Err(Fault::new(Rule::ReservedName, path.pointer(), message));
        }
        if place == Place::Child && APP_LABELS.contains(&key) {
            return Err(Fault::new(
                Rule::ReservedName,
                path.pointer(),
                "is set by the host on every child; leave it out",
            ));
        }
    }
    Ok(())
}

fn annotations(annotations: &Value, path: &Path<'_>) -> Result<(), Fault> {
    let mut bytes = 0_usize;
    for (key, value) in texts(annotations, path)? {
        let path = path.key(key);
        if is_ours(key) || key == LAST_APPLIED_ANNOTATION {
            return Err(Fault::new(Rule::ReservedName, path.pointer(), "may not be set by a plugin"));
        }
        for (prefix, equal, begins) in PROFILES {
            let taken = || equal.contains(&value) || begins.iter().any(|begin| value.starts_with(begin));
            if key.starts_with(prefix) && !taken() {
                let message = format!("{} is no profile that the baseline takes", shown(value));
                return Err(Fault::new(Rule::PodSecurity, path.pointer(), message));
            }
        }
        bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
    }
    if bytes > ANNOTATIONS_BYTES {
        let message = format!("annotations have {bytes} bytes, of at most {ANNOTATIONS_BYTES}");
        return Err(Fault::new(Rule::Size, path.pointer(), message));
    }
    Ok(())
}

/// A map of text to text with keys that Kubernetes takes.
fn texts<'a>(map: &'a Value, path: &Path<'_>) -> Result<Vec<(&'a str, &'a str)>, Fault> {
    let Value::Object(map) = map else {
        return Err(Fault::new(Rule::Shape, path.pointer(), "must be an object of strings"));
    };
    let text = |(key, value): (&'a String, &'a Value)| {
        let path = path.key(key);
        if !syntax::qualified_name(key) {
            let message = "is no key of a label or an annotation ([DNS prefix/]63 of A-Z a-z 0-9 - _ .)";
            return Err(Fault::new(Rule::Labels, path.pointer(), message));
        }
        match value {
            Value::String(value) => Ok((key.as_str(), value.as_str())),
            _ => Err(Fault::new(Rule::Labels, path.pointer(), "must be a string; numbers and booleans need quotes")),
        }
    };
    map.iter().map(text).collect()
}

/// `keelson.dev/…` and below.
fn is_ours(key: &str) -> bool {
    key.split_once('/').is_some_and(|(prefix, _)| {
        prefix.strip_suffix(GROUP).is_some_and(|below| below.is_empty() || below.ends_with('.'))
    })
}
