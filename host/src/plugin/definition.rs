//! One CustomResourceDefinition of what several plugins read of their objects:
//! pure, the same for the same plugins in the same order.

use serde_json::{Map, Value, json};

use super::claims::{Claims, ParentKind};
use super::fit::Name;
use super::union::{UnionError, union};
use crate::limits::PARENT_NAME_CHARS;
use crate::sandbox::{Discriminator, Manifest};

#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    #[error("plugin {plugin}: {overlap}")]
    Overlap { plugin: String, overlap: String },
    #[error("plugin {0} has no schema of what it reads of spec: its manifest must give one")]
    NoSchema(String),
    #[error("{kind}.{group}: no CustomResourceDefinition makes a kind that is built in")]
    BuiltIn { group: String, kind: String },
    #[error("{kind}.{group} is told apart by {one} and by {other}; it must be one of them")]
    Discriminators { group: String, kind: String, one: String, other: String },
    #[error(
        "{path} tells the plugins apart, so it must be a string in an object, and is no such thing in their schemas"
    )]
    NoString { path: String },
    #[error(transparent)]
    Union(#[from] UnionError),
}

/// A definition for each kind that is served.
pub fn definitions(plugins: &[Manifest]) -> Result<Vec<Value>, DefinitionError> {
    let mut claims = Claims::<(), ()>::default();
    for manifest in plugins {
        let taken = claims.serve(&manifest.name, &manifest.serves, ());
        taken.map_err(|overlap| DefinitionError::Overlap { plugin: manifest.name.clone(), overlap })?;
    }
    claims.kinds().iter().map(|kind| definition(kind, plugins)).collect()
}

fn definition(kind: &ParentKind, plugins: &[Manifest]) -> Result<Value, DefinitionError> {
    let ParentKind { group, versions, kind, plural } = kind;
    if !group.contains('.') {
        return Err(DefinitionError::BuiltIn { group: group.clone(), kind: kind.clone() });
    }
    let (mut parts, mut told_apart) = (Vec::new(), Vec::<&Discriminator>::new());
    for manifest in plugins {
        let mut serves = manifest.serves.iter().filter(|one| one.group == *group && one.kind == *kind).peekable();
        if serves.peek().is_none() {
            continue;
        }
        told_apart.extend(serves.filter_map(|serving| serving.discriminator.as_ref()));
        let schema = manifest.schema.as_ref().ok_or_else(|| DefinitionError::NoSchema(manifest.name.clone()))?;
        parts.push((manifest.name.as_str(), schema));
    }
    let mut spec = union("spec", &parts)?;
    let mut columns = Vec::new();
    if let Some(first) = told_apart.first() {
        if let Some(other) = told_apart.iter().find(|other| other.path != first.path) {
            let (group, kind, one, other) = (group.clone(), kind.clone(), first.path.clone(), other.path.clone());
            return Err(DefinitionError::Discriminators { group, kind, one, other });
        }
        let values: Vec<&str> = told_apart.iter().map(|one| one.value.as_str()).collect();
        columns.extend(tell_apart(&mut spec, &first.path, &values, kind)?);
    }
    for (name, at) in [("Ready", "status"), ("Status", "reason")] {
        let path = format!(".status.conditions[?(@.type==\"Ready\")].{at}");
        columns.push(json!({"name": name, "type": "string", "jsonPath": path}));
    }
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    let schema = schema(&spec, kind);
    let version = |(at, version): (usize, &String)| {
        json!({"name": version, "served": true, "storage": at == 0, "subresources": {"status": {}},
            "additionalPrinterColumns": columns, "schema": {"openAPIV3Schema": schema}})
    };
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase()},
            "versions": versions.iter().enumerate().map(version).collect::<Vec<_>>(),
        },
    }))
}

/// Makes the field that tells plugins apart one that must be there, has their values, and stays as it is. Returns its column.
fn tell_apart(spec: &mut Value, path: &str, values: &[&str], kind: &str) -> Result<Option<Value>, DefinitionError> {
    let names: Vec<String> = path.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let [root, above @ .., field] = names.as_slice() else { return Ok(None) };
    if root != "spec" {
        // Of metadata no definition says anything.
        return Ok(None);
    }
    let no_string = || DefinitionError::NoString { path: path.to_owned() };
    let mut at = spec;
    for name in above {
        at = require(at, name, json!({"type": "object"})).ok_or_else(no_string)?;
    }
    let field_schema = require(at, field, json!({"type": "string"})).and_then(Value::as_object_mut);
    let field_schema =
        field_schema.filter(|schema| schema.get("type") == Some(&json!("string"))).ok_or_else(no_string)?;
    field_schema.insert("enum".to_owned(), values.into());
    let shown = names.iter().map(|name| Name(name).to_string()).collect::<Vec<_>>().join(".");
    let rule = json!({"rule": "self == oldSelf", "reason": "FieldValueForbidden",
        "message": format!("{shown} cannot be changed; delete this {kind} and create another")});
    match field_schema.entry("x-kubernetes-validations").or_insert_with(|| json!([])) {
        Value::Array(rules) => rules.push(rule),
        other => *other = json!([rule]),
    }
    let plain = !shown.contains('"');
    let mut letters = field.chars();
    let title = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>();
    Ok(plain.then(|| json!({"name": title, "type": "string", "jsonPath": format!(".{shown}")})))
}

/// The field of an object's schema, from now on required.
fn require<'a>(schema: &'a mut Value, name: &str, new: Value) -> Option<&'a mut Value> {
    let map = schema.as_object_mut().filter(|map| map.get("type") == Some(&json!("object")))?;
    if map.contains_key("additionalProperties") {
        return None;
    }
    let required = map.entry("required").or_insert_with(|| json!([])).as_array_mut()?;
    if !required.iter().any(|one| one == name) {
        required.push(name.into());
    }
    let fields = map.entry("properties").or_insert_with(|| Map::new().into()).as_object_mut()?;
    Some(fields.entry(name).or_insert(new))
}

/// Of the whole object. Names limit children, which are named after it; asked at creation only, so that what is there
/// already can still be changed and deleted.
fn schema(spec: &Value, kind: &str) -> Value {
    let name = |rule: &str, message: String| {
        json!({"rule": format!("oldSelf.hasValue() || {rule}"), "optionalOldSelf": true, "reason": "FieldValueInvalid",
            "fieldPath": ".metadata.name", "message": message})
    };
    let text = || json!({"type": "string"});
    let condition = json!({
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {"type": text(), "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": text(), "message": text(), "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64"}},
    });
    let child = json!({"type": "object", "required": ["apiVersion", "kind", "name"],
        "properties": {"apiVersion": text(), "kind": text(), "name": text()}});
    json!({
        "description": format!("What the plugins of {kind} read. Made by keelson plugin crd."),
        "type": "object",
        "required": ["spec"],
        "x-kubernetes-validations": [
            name("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "must be lower-case letters, digits and dashes, start with a letter, and end with a letter or digit (DNS-1035)".to_owned()),
            name(&format!("size(self.metadata.name) <= {PARENT_NAME_CHARS}"),
                format!("must have at most {PARENT_NAME_CHARS} characters, since names of children are made of it")),
        ],
        "properties": {
            "apiVersion": text(),
            "kind": text(),
            "metadata": {"type": "object", "properties": {"name": text()}},
            "spec": spec,
            "status": {
                "type": "object",
                // Plugins add fields of their own.
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {
                    "observedGeneration": {"type": "integer", "format": "int64"},
                    "conditions": {"type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["type"], "items": condition},
                    "children": {"type": "array", "x-kubernetes-list-type": "atomic", "items": child},
                },
            },
        },
    })
}

#[cfg(test)]
mod tests;
