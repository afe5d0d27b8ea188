//! A table of what may stand where, and the one walk that holds an object
//! against it. Every rule about fields is a line of such a table.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::checked::Context;
use super::metadata::{self, Place};
use super::path::Path;
use super::pod_template;
use super::syntax;
use super::violation::{Fault, Rule, shown};

/// What may stand at one place. `&str`s are why, as the message says it.
#[derive(Debug)]
pub(super) enum Shape {
    /// Anything: the API server judges it.
    Free,
    /// An object of these fields; others only where the grant names them.
    Fields(Table),
    /// A list of these.
    Each(&'static Shape),
    /// Only what is as good as absent (false, 0, "", []): no grant can give it.
    Baseline(&'static str),
    /// One of these, or empty: no grant can give another.
    BaselineAmong(&'static [&'static str], &'static str),
    /// As good as absent, or the grant names it.
    Guarded(&'static str),
    /// One of these, or the grant names it.
    GuardedAmong(&'static [&'static str], &'static str),
    /// The name of an object of this core kind in this rendering, or the grant names it.
    Name(&'static str),
    /// `apiVersion`, `kind` and `name` of an object in this rendering, or the grant names it.
    Target,
    /// A map that selects Pods. Must be there, with all of the selector labels, or the grant names it.
    Labels,
    /// The same with `matchLabels`.
    LabelSelector,
    /// Metadata of a template, with these fields.
    Metadata(&'static [&'static str]),
}

/// Fields by name; what is not here may not stand there.
pub(super) type Table = &'static [(&'static str, Shape)];

/// What one child is held against.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) group: &'a str,
    pub(super) kind: &'a str,
    pub(super) own: &'a Own<'a>,
}

/// Group, kind and name of everything in this rendering, the Secrets to generate included.
pub(super) type Own<'a> = HashSet<(&'a str, &'a str, &'a str)>;

impl Walk<'_> {
    /// A whole child: what stands beside apiVersion, kind and metadata.
    pub(super) fn top(&self, child: &Map<String, Value>, fields: Table) -> Result<(), Fault> {
        self.fields(child, &["apiVersion", "kind", "metadata"], fields, &Path::Root)
    }

    pub(super) fn hold(&self, value: &Value, shape: &Shape, path: &Path<'_>) -> Result<(), Fault> {
        match shape {
            Shape::Free => Ok(()),
            Shape::Fields(fields) => self.fields(object(value, path)?, &[], fields, path),
            Shape::Each(shape) => {
                let Value::Array(list) = value else {
                    return Err(Fault::new(Rule::Shape, path.pointer(), "must be a list"));
                };
                list.iter().enumerate().try_for_each(|(index, item)| self.hold(item, shape, &path.index(index)))
            }
            Shape::Baseline(why) => match is_absent(value) {
                true => Ok(()),
                false => Err(Fault::new(Rule::PodSecurity, path.pointer(), *why)),
            },
            Shape::BaselineAmong(these, why) => match value.as_str() {
                Some(text) if text.is_empty() || these.contains(&text) => Ok(()),
                _ => {
                    let message = format!("{why}: {} is none of {}", told(value), these.join(", "));
                    Err(Fault::new(Rule::PodSecurity, path.pointer(), message))
                }
            },
            Shape::Guarded(why) => match is_absent(value) {
                true => Ok(()),
                false => self.only_granted(Rule::Field, path, why),
            },
            Shape::GuardedAmong(these, why) => match value.as_str() {
                Some(text) if these.contains(&text) => Ok(()),
                _ => self.only_granted(Rule::Field, path, &format!("{} {why}", told(value))),
            },
            Shape::Name(kind) => match value.as_str() {
                Some(name) if self.own.contains(&("", *kind, name)) => Ok(()),
                Some(name) if *kind == "Secret" && self.is_users(name) => Ok(()),
                Some(name) if self.is_related(kind, name) => Ok(()),
                Some(name) => self.foreign(kind, name, path),
                None => Err(Fault::new(Rule::Shape, path.pointer(), "must be a string")),
            },
            Shape::Target => self.target(object(value, path)?, path),
            Shape::Labels => self.selector(Some(value), path),
            Shape::LabelSelector => self.selector(object(value, path)?.get("matchLabels"), path),
            Shape::Metadata(allowed) => {
                metadata::check(object(value, path)?, allowed, Place::Template, path, self.context)
            }
        }
    }

    /// Of the user's own, in a Pod: nothing else may hand it on.
    fn is_users(&self, name: &str) -> bool {
        pod_template::makes_pods(self.group, self.kind) && self.context.user_secrets.iter().any(|own| own == name)
    }

    fn is_related(&self, kind: &str, name: &str) -> bool {
        self.context.related.iter().any(|found| found.kind == kind && found.name == name)
    }

    fn fields(
        &self,
        object: &Map<String, Value>,
        besides: &[&str],
        fields: Table,
        path: &Path<'_>,
    ) -> Result<(), Fault> {
        for (key, value) in object {
            let path = path.key(key);
            match fields.iter().find(|(name, _)| name == key) {
                Some((_, shape)) => self.hold(value, shape, &path)?,
                None if besides.contains(&key.as_str()) => {}
                None => self.only_granted(Rule::Field, &path, "is no field that a plugin may set by itself")?,
            }
        }
        for (name, shape) in fields {
            if matches!(shape, Shape::Labels | Shape::LabelSelector) && !object.contains_key(*name) {
                self.selector(None, &path.key(name))?;
            }
        }
        Ok(())
    }

    fn target(&self, target: &Map<String, Value>, path: &Path<'_>) -> Result<(), Fault> {
        let text = |key: &str| target.get(key).and_then(Value::as_str).unwrap_or_default();
        let group = syntax::api_version(text("apiVersion")).map_or("", |(group, _)| group);
        if self.own.contains(&(group, text("kind"), text("name"))) {
            return Ok(());
        }
        self.foreign(text("kind"), text("name"), path)
    }

    /// All of the selector labels: further ones only narrow.
    fn selector(&self, labels: Option<&Value>, path: &Path<'_>) -> Result<(), Fault> {
        let ours = self.context.selector_labels;
        let has = |(key, value): &(String, String)| {
            labels.and_then(|labels| labels.get(key)).and_then(Value::as_str) == Some(value.as_str())
        };
        if !ours.is_empty() && ours.iter().all(has) {
            return Ok(());
        }
        let wanted: Vec<String> = ours.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let message = format!("must select by {} (request.selector-labels), and may narrow that", wanted.join(","));
        self.only_granted(Rule::Selector, path, &message)
    }

    fn foreign(&self, kind: &str, name: &str, path: &Path<'_>) -> Result<(), Fault> {
        let message =
            format!("{} is no {} of this rendering", shown(name), if kind.is_empty() { "object" } else { kind });
        self.only_granted(Rule::Reference, path, &message)
    }

    fn only_granted(&self, rule: Rule, path: &Path<'_>, why: &str) -> Result<(), Fault> {
        if self.context.grant.allows_field(self.group, self.kind, path) {
            return Ok(());
        }
        let message = format!("{why}; grant.allowedFields of {} may allow it by {}", self.kind, path.pattern());
        Err(Fault::new(rule, path.pointer(), message))
    }
}

pub(super) fn object<'a>(value: &'a Value, path: &Path<'_>) -> Result<&'a Map<String, Value>, Fault> {
    value.as_object().ok_or_else(|| Fault::new(Rule::Shape, path.pointer(), "must be an object"))
}

/// What the API server takes as if it were not there. An empty object is there: `hostPath: {}`.
fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(_) => false,
    }
}

fn told(value: &Value) -> String {
    match value {
        Value::String(text) => shown(text),
        _ => "what is no string".to_owned(),
    }
}
