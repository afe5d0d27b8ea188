//! Several structural schemas of one thing as one, which lets through whatever
//! one of them lets through: pure.
//!
//! Types must agree. Of the rest a bound that all have is as wide as the widest;
//! what only some have is left out, since it would refuse what another reads.

use serde_json::{Map, Value, json};

use super::fit::Name;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

/// Kept where all have the same.
const ALIKE: [&str; 21] = [
    "title",
    "format",
    "default",
    "pattern",
    "multipleOf",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "example",
    "externalDocs",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    "nullable",
    "type",
    INT_OR_STRING,
];
/// The least of all, and the most.
const LEAST: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];
const MOST: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
/// Each in its own way.
const OWN: [&str; 7] = ["description", "properties", "additionalProperties", "items", "required", "enum", PRESERVE];

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum UnionError {
    #[error("{path}: plugin {one} reads it as {is}, plugin {other} as {other_is}")]
    Types { path: String, one: String, is: String, other: String, other_is: String },
    #[error("{path}: the schema of plugin {plugin} {rule}")]
    Schema { path: String, plugin: String, rule: String },
}

/// The schema of one plugin, by its name.
pub type Part<'a> = (&'a str, &'a Value);

/// `path` is that of the thing, for messages. There is at least one part.
pub fn union(path: &str, parts: &[Part<'_>]) -> Result<Value, UnionError> {
    let mut maps = Vec::new();
    for (plugin, schema) in parts {
        let wrong = |rule: String| UnionError::Schema { path: path.to_owned(), plugin: (*plugin).to_owned(), rule };
        let map = schema.as_object().ok_or_else(|| wrong("is no JSON object here".to_owned()))?;
        let known = |key: &&str| [&ALIKE[..], &LEAST, &MOST, &OWN].iter().any(|keys| keys.contains(key));
        if let Some(key) = map.keys().map(String::as_str).find(|key| !known(key)) {
            return Err(wrong(format!("has {}, which no CustomResourceDefinition may have", Name(key))));
        }
        let read = shape(map).ok_or_else(|| {
            wrong(format!("has no type here (one of {}, or {INT_OR_STRING}, or {PRESERVE})", TYPES.join(", ")))
        })?;
        maps.push((*plugin, map, read));
    }
    if let Some((first, _, is)) = maps.first()
        && let Some((other, _, other_is)) = maps.iter().find(|(.., read)| read != is)
    {
        let [one, is, other, other_is] = [*first, is, *other, other_is].map(str::to_owned);
        return Err(UnionError::Types { path: path.to_owned(), one, is, other, other_is });
    }
    let maps: Vec<(&str, &Map<String, Value>)> = maps.into_iter().map(|(plugin, map, _)| (plugin, map)).collect();
    let mut all = alike(&maps);
    bounds(&maps, &mut all);
    match maps.first().and_then(|(_, map)| map.get("type")).and_then(Value::as_str) {
        Some("object") => object(path, &maps, &mut all)?,
        Some("array") => drop(all.insert("items".to_owned(), items(path, &maps)?)),
        None if !all.contains_key(INT_OR_STRING) => drop(all.insert(PRESERVE.to_owned(), true.into())),
        _ => {}
    }
    Ok(all.into())
}

/// What it is read as; none where that is not said.
fn shape(map: &Map<String, Value>) -> Option<&str> {
    match map.get("type").map(Value::as_str) {
        Some(known) => TYPES.into_iter().find(|one| Some(*one) == known),
        None if map.get(INT_OR_STRING) == Some(&Value::Bool(true)) => Some("an integer or a string"),
        None if map.get(PRESERVE) == Some(&Value::Bool(true)) => Some("anything"),
        None => None,
    }
}

fn alike(maps: &[(&str, &Map<String, Value>)]) -> Map<String, Value> {
    let mut all = Map::new();
    let Some((_, first)) = maps.first() else { return all };
    for (key, value) in first.iter().filter(|(key, _)| ALIKE.contains(&key.as_str())) {
        if maps.iter().all(|(_, map)| map.get(key) == Some(value)) {
            all.insert(key.clone(), value.clone());
        }
    }
    // Keys without their list type, or the other way about, are refused.
    if !["x-kubernetes-list-type", "x-kubernetes-list-map-keys"]
        .iter()
        .all(|key| maps.iter().all(|(_, map)| map.get(*key) == first.get(*key)))
    {
        all.retain(|key, _| !key.starts_with("x-kubernetes-list-"));
    }
    if let Some(words) = maps.iter().find_map(|(_, map)| map.get("description")) {
        all.insert("description".to_owned(), words.clone());
    }
    if maps.iter().any(|(_, map)| map.get("nullable") == Some(&Value::Bool(true))) {
        all.insert("nullable".to_owned(), true.into());
    }
    all
}

fn bounds(maps: &[(&str, &Map<String, Value>)], all: &mut Map<String, Value>) {
    let of_all = |key: &str| maps.iter().map(|(_, map)| map.get(key)).collect::<Option<Vec<&Value>>>();
    for (key, least) in LEAST.iter().map(|key| (key, true)).chain(MOST.iter().map(|key| (key, false))) {
        let number = |value: &&Value| value.as_f64().unwrap_or_default();
        let by = |one: &&Value, other: &&Value| number(one).total_cmp(&number(other));
        let widest = of_all(key)
            .and_then(|values| if least { values.into_iter().min_by(by) } else { values.into_iter().max_by(by) });
        if let Some(widest) = widest {
            all.insert((*key).to_owned(), widest.clone());
        }
    }
    if let Some(lists) = of_all("enum") {
        let mut values: Vec<Value> = Vec::new();
        for value in lists.into_iter().filter_map(Value::as_array).flatten() {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        all.insert("enum".to_owned(), values.into());
    }
}

fn object(path: &str, maps: &[(&str, &Map<String, Value>)], all: &mut Map<String, Value>) -> Result<(), UnionError> {
    let mut fields = Map::new();
    let named = || maps.iter().filter_map(|(plugin, map)| Some((*plugin, map.get("properties")?.as_object()?)));
    for name in named().flat_map(|(_, fields)| fields.keys()) {
        if !fields.contains_key(name) {
            let parts: Vec<Part<'_>> =
                named().filter_map(|(plugin, fields)| Some((plugin, fields.get(name)?))).collect();
            fields.insert(name.clone(), union(&format!("{path}.{}", Name(name)), &parts)?);
        }
    }
    let rest: Vec<Part<'_>> =
        maps.iter().filter_map(|(plugin, map)| Some((*plugin, map.get("additionalProperties")?))).collect();
    let rest: Vec<Part<'_>> = rest.into_iter().filter(|(_, rest)| **rest != Value::Bool(false)).collect();
    if let Some((plugin, _)) = rest.first()
        && !fields.is_empty()
    {
        let rule =
            "takes any field, and fields are named as well: a CustomResourceDefinition cannot have both".to_owned();
        return Err(UnionError::Schema { path: path.to_owned(), plugin: (*plugin).to_owned(), rule });
    }
    // One that names no field reads whatever is there.
    let open = |map: &Map<String, Value>| {
        let none = |key: &str| map.get(key).is_none_or(|value| value == &json!({}) || value == &Value::Bool(false));
        map.get(PRESERVE) == Some(&Value::Bool(true)) || none("properties") && none("additionalProperties")
    };
    if maps.iter().any(|(_, map)| open(map)) || rest.iter().any(|(_, rest)| **rest == Value::Bool(true)) {
        all.insert(PRESERVE.to_owned(), true.into());
    } else if !rest.is_empty() {
        all.insert("additionalProperties".to_owned(), union(&format!("{path}.*"), &rest)?);
    }
    // What only some ask for must not be asked of the others' objects.
    let required =
        |map: &Map<String, Value>| map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut asked = maps.first().map(|(_, map)| required(map)).unwrap_or_default();
    asked.retain(|name| maps.iter().all(|(_, map)| required(map).contains(name)));
    if !asked.is_empty() {
        all.insert("required".to_owned(), asked.into());
    }
    if !fields.is_empty() {
        all.insert("properties".to_owned(), fields.into());
    }
    Ok(())
}

fn items(path: &str, maps: &[(&str, &Map<String, Value>)]) -> Result<Value, UnionError> {
    let parts: Option<Vec<Part<'_>>> = maps.iter().map(|(plugin, map)| Some((*plugin, map.get("items")?))).collect();
    match parts {
        Some(parts) => union(&format!("{path}[]"), &parts),
        // One that says nothing of the items reads whatever they are.
        None => Ok(json!({PRESERVE: true})),
    }
}

#[cfg(test)]
mod tests;
