//! One child: what it is, whose it is, and every rule that holds for all kinds.

use serde_json::{Map, Value};

use super::checked::{CheckedChild, Context, Parent};
use super::grant::Strategy;
use super::kinds::{self, Standing};
use super::metadata::{self, Place};
use super::path::Path;
use super::shape::{Own, Walk, object};
use super::violation::{Fault, Rule, shown};
use super::{name, objects, pod_template, syntax};
use crate::limits::CHILD_BYTES;
use crate::sandbox::model::{Child, ChildKind, Retention};

/// A child that is of a declared kind and has a name of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity<'a> {
    pub(super) group: &'a str,
    pub(super) kind: &'a ChildKind,
    pub(super) name: &'a str,
}

/// Kind and namespace first: what a guest should never have asked for is said before what is misspelt.
pub(super) fn identify<'a>(object: &'a Map<String, Value>, context: &Context<'a>) -> Result<Identity<'a>, Fault> {
    let api_version = text(object, "apiVersion", &Path::Root)?;
    let kind = text(object, "kind", &Path::Root)?;
    let Some((group, version)) = syntax::api_version(api_version) else {
        return Err(Fault::new(Rule::Shape, "/apiVersion", format!("{} is no apiVersion", shown(api_version))));
    };
    let declared = declared(group, version, kind, context)?;
    let metadata = metadata_of(object)?;
    let at = Path::Root;
    let at = at.key("metadata");
    if let Some(namespace) = metadata.get("namespace")
        && namespace.as_str() != Some(&context.parent.namespace)
    {
        let message = format!("must be absent or the parent's, {}", context.parent.namespace);
        return Err(Fault::new(Rule::Namespace, "/metadata/namespace", message));
    }
    if metadata.contains_key("generateName") {
        let message = "makes another object at each apply; give metadata.name";
        return Err(Fault::new(Rule::ServerField, "/metadata/generateName", message));
    }
    let name = text(metadata, "name", &at)?;
    name::child("/metadata/name", group, kind, name, &context.parent.name)?;
    let Parent { api_version: parents_version, kind: parents_kind, namespace: _, name: parents_name, uid: _ } =
        context.parent;
    let parents_group = syntax::api_version(parents_version).map(|(group, _)| group);
    if parents_group == Some(group) && parents_kind == kind && parents_name == name {
        return Err(Fault::new(Rule::Duplicate, "/metadata/name", "is the parent itself"));
    }
    Ok(Identity { group, kind: declared, name })
}

fn declared<'a>(group: &str, version: &str, kind: &str, context: &Context<'a>) -> Result<&'a ChildKind, Fault> {
    let shown_kind = || if syntax::kind(kind) { kinds::shown(group, kind) } else { shown(kind) };
    match kinds::standing(group, kind) {
        Some(Standing::Cluster) => {
            let message = format!("{} has no namespace, and children live in their parent's", shown_kind());
            return Err(Fault::new(Rule::ClusterScoped, "/kind", message));
        }
        Some(Standing::Never(why)) => {
            return Err(Fault::new(
                Rule::NeverGranted,
                "/kind",
                format!("no grant can give {}: it {why}", shown_kind()),
            ));
        }
        Some(Standing::Child) | None => {}
    }
    let of_kind = context.manifest.children.iter().find(|child| child.kind.group == group && child.kind.kind == kind);
    let Some(declared) = of_kind.filter(|_| context.grant.allows_child(group, kind)) else {
        let declared: Vec<String> =
            context.manifest.children.iter().map(|child| kinds::shown(&child.kind.group, &child.kind.kind)).collect();
        let message = format!("the plugin does not declare {} as a child, only {}", shown_kind(), declared.join(", "));
        return Err(Fault::new(Rule::Kind, "/kind", message));
    };
    if declared.kind.version != version {
        let message = format!("the plugin declares {kind} in version {}, not {version}", declared.kind.version);
        return Err(Fault::new(Rule::Kind, "/apiVersion", message));
    }
    Ok(declared)
}

/// Every other rule, given what else the rendering holds.
pub(super) fn rules(child: &Child, identity: Identity<'_>, own: &Own<'_>, context: &Context<'_>) -> Result<(), Fault> {
    let Child { object: child, retain, strategy } = child;
    let Identity { group, kind, name: _ } = identity;
    let kind = kind.kind.kind.as_str();
    if group.is_empty() && kind == "Secret" {
        let message =
            "credentials never come from a plugin: name the Secret and its keys in `secrets` of the rendering";
        return Err(Fault::new(Rule::RenderedSecret, "/kind", message));
    }
    if let Some(retention) = retain {
        self::retention(retention)?;
    }
    if let Some(wanted) = strategy
        && Strategy::parse(wanted).is_none()
    {
        let known: Vec<&str> = Strategy::ALL.iter().map(|strategy| strategy.name()).collect();
        return Err(Fault::new(
            Rule::Strategy,
            "",
            format!("strategy {} is none of {}", shown(wanted), known.join(", ")),
        ));
    }
    no_null(child, &Path::Root)?;
    if child.contains_key("status") {
        return Err(Fault::new(Rule::Status, "/status", "is written by the kind's own controller; leave it out"));
    }
    let at = Path::Root;
    let at = at.key("metadata");
    metadata::check(metadata_of(child)?, &["name", "namespace", "labels", "annotations"], Place::Child, &at, context)?;
    small_enough(child)?;
    let Some(fields) = objects::fields(group, kind) else { return Ok(()) };
    Walk { context, group, kind, own }.top(child, fields)
}

/// Both are written into annotations, and read by people.
pub(super) fn retention(retention: &Retention) -> Result<(), Fault> {
    let Retention { data_version, line } = retention;
    for (what, text) in [("data-version", data_version), ("line", line)] {
        if text.is_empty() || !syntax::label_value(text) {
            let message = format!("its {what} {} must be 1 to 63 of A-Z a-z 0-9 - _ .", shown(text));
            return Err(Fault::new(Rule::Retain, "", message));
        }
    }
    Ok(())
}

/// The stage's child, with what the rules leave to the host.
pub(super) fn checked(child: Child, kind: ChildKind, name: String, context: &Context<'_>) -> CheckedChild {
    let Child { mut object, retain, strategy } = child;
    pod_template::without_token(&kind, &mut object, context.grant);
    let strategy = strategy.as_deref().and_then(Strategy::parse);
    CheckedChild { kind, name, object, strategy, retain }
}

/// Kind and name, as far as they can be told, for a message.
pub(super) fn told(object: &Map<String, Value>) -> String {
    let kind = object.get("kind").and_then(Value::as_str).filter(|kind| syntax::kind(kind));
    let name = object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    let name = name.map(|name| if syntax::dns_1123_subdomain(name) { name.to_owned() } else { shown(name) });
    match (kind, name) {
        (Some(kind), Some(name)) => format!("{kind} {name}"),
        (Some(kind), None) => format!("{kind} without a name"),
        (None, _) => "a child without a kind".to_owned(),
    }
}

/// In an apply `null` neither sets nor leaves: it never shows in managedFields, and so would be applied for ever.
pub(super) fn no_null(object: &Map<String, Value>, path: &Path<'_>) -> Result<(), Fault> {
    object.iter().try_for_each(|(key, value)| value_without_null(value, &path.key(key)))
}

fn value_without_null(value: &Value, path: &Path<'_>) -> Result<(), Fault> {
    match value {
        Value::Null => Err(Fault::new(Rule::Null, path.pointer(), "is null; leave the field out")),
        Value::Object(object) => no_null(object, path),
        Value::Array(list) => {
            list.iter().enumerate().try_for_each(|(index, item)| value_without_null(item, &path.index(index)))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn small_enough(object: &Map<String, Value>) -> Result<(), Fault> {
    match bytes(object) {
        bytes if bytes > CHILD_BYTES => {
            Err(Fault::new(Rule::Size, "", format!("has {bytes} bytes, of at most {CHILD_BYTES}")))
        }
        _ => Ok(()),
    }
}

/// As JSON text, without making it.
pub(super) fn bytes(object: &Map<String, Value>) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that cannot be written is too large for anybody.
    serde_json::to_writer(&mut count, object).map_or(usize::MAX, |()| count.0)
}

fn metadata_of(child: &Map<String, Value>) -> Result<&Map<String, Value>, Fault> {
    match child.get("metadata") {
        Some(metadata) => object(metadata, &Path::Root.key("metadata")),
        None => Err(Fault::new(Rule::Shape, "/metadata", "is missing")),
    }
}

fn text<'a>(object: &'a Map<String, Value>, key: &str, path: &Path<'_>) -> Result<&'a str, Fault> {
    match object.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Fault::new(Rule::Shape, path.key(key).pointer(), "must be a string")),
        None => Err(Fault::new(Rule::Shape, path.key(key).pointer(), "is missing")),
    }
}
