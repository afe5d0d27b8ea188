//! What the API server says of an apply that does not fit its own OpenAPI schema, told as this host tells it.
//!
//! The server answers 500 with a text: `failed to create typed patch object (ns/a; /v1, Kind=Service):` and then one
//! error, or `errors:` and a line for each. An error is `.spec.ports[port=80,protocol="TCP"].prot: words`.

use serde_json::{Map, Value};

const MARK: &str = "failed to create typed patch object (";

/// A field that does not fit.
#[derive(Debug, PartialEq)]
pub(crate) struct Misfit {
    /// As Kubernetes writes it: `spec.ports[0].prot`.
    pub field: String,
    pub words: String,
}

/// None where the server speaks of something else, for instance of a schema that it has not read yet.
pub(crate) fn misfits(message: &str, object: &Map<String, Value>) -> Vec<Misfit> {
    let Some((_, after)) = message.split_once(MARK) else { return Vec::new() };
    let Some((_, errors)) = after.split_once("): ") else { return Vec::new() };
    errors.lines().filter_map(|line| misfit(line.trim_start(), object)).collect()
}

fn misfit(line: &str, object: &Map<String, Value>) -> Option<Misfit> {
    let (mut field, mut rest) = (String::new(), line);
    // What stands there, as long as it is known.
    let mut at: Option<&Value> = None;
    while !rest.starts_with(": ") {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner)?;
            let (inside, after) = inner.split_at(end);
            let place = at.and_then(Value::as_array).and_then(|list| position(list, inside));
            at = place.and_then(|place| at?.get(place));
            field.push_str(&place.map_or_else(|| format!("[{inside}]"), |place| format!("[{place}]")));
            rest = after.strip_prefix(']')?;
        } else {
            let name = rest.strip_prefix('.')?;
            let (name, after) = name.split_at(name.find(['.', '[', ':'])?);
            at = if field.is_empty() { object.get(name) } else { at.and_then(|at| at.get(name)) };
            if !field.is_empty() {
                field.push('.');
            }
            field.push_str(name);
            rest = after;
        }
    }
    let words = rest.strip_prefix(": ").filter(|_| !field.is_empty())?;
    Some(Misfit { field, words: in_our_words(words) })
}

fn in_our_words(words: &str) -> String {
    let wanted = words.strip_prefix("expected ").and_then(|wanted| Some(wanted.split_once(", got")?.0));
    match wanted {
        Some("numeric (int or float)") => "must be a number".to_owned(),
        Some("map") => "must be an object".to_owned(),
        Some("boolean") => "must be true or false".to_owned(),
        Some(wanted @ ("string" | "list")) => format!("must be a {wanted}"),
        _ if words == "field not declared in schema" => "is no field that the API server knows".to_owned(),
        _ => words.to_owned(),
    }
}

/// Where the bracket ends, which text in quotes does not.
fn closing(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    text.char_indices().find_map(|(at, char)| {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
        None
    })
}

/// Of the item with these keys, `port=80,protocol="TCP"`; one that an item leaves out has its default.
fn position(list: &[Value], keys: &str) -> Option<usize> {
    if let Ok(index) = keys.parse() {
        return (index < list.len()).then_some(index);
    }
    let mut wanted = Vec::new();
    let mut rest = keys;
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        wanted.push((name, values.next()?.ok()?));
        rest = after.get(values.byte_offset()..)?.trim_start_matches(',');
    }
    // The key of a list that is a set has no name.
    let part = |item: &Value, name: &str| if name.is_empty() { Some(item.clone()) } else { item.get(name).cloned() };
    list.iter().position(|item| {
        let parts: Vec<bool> = wanted.iter().filter_map(|(name, value)| Some(part(item, name)? == *value)).collect();
        !parts.is_empty() && parts.iter().all(|same| *same)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(errors: &str) -> Vec<(String, String)> {
        let object = json!({
            "spec": {"ports": [{"port": 81}, {"port": 80, "prot": "TCP"}, {"name": "a]\": .b", "port": "x"}]},
            "metadata": {"finalizers": ["a", "b"]},
        });
        let message = format!("failed to create typed patch object (ns/a; /v1, Kind=Service): {errors}");
        let found = misfits(&message, object.as_object().unwrap());
        found.into_iter().map(|Misfit { field, words }| (field, words)).collect()
    }

    #[test]
    fn keys_of_an_item_become_its_index() {
        for (error, field, words) in [
            (
                r#".spec.ports[port=80,protocol="TCP"].prot: field not declared in schema"#,
                "spec.ports[1].prot",
                "is no field that the API server knows",
            ),
            (
                r#".spec.ports[name="a]\": .b"].port: expected numeric (int or float), got string"#,
                "spec.ports[2].port",
                "must be a number",
            ),
            (r#".metadata.finalizers[="b"]: duplicate entries"#, "metadata.finalizers[1]", "duplicate entries"),
            (".spec.ports[0].port: expected list, got &{one}", "spec.ports[0].port", "must be a list"),
            (".spec: expected map, got &{1}", "spec", "must be an object"),
            // An item that is not there is told as the server tells it.
            (".spec.ports[port=7].x: expected boolean, got &{1}", "spec.ports[port=7].x", "must be true or false"),
            (".spec.ports[9].x.y: expected string, got &{1}", "spec.ports[9].x.y", "must be a string"),
        ] {
            assert_eq!(told(error), [(field.to_owned(), words.to_owned())]);
        }
    }

    #[test]
    fn several_are_all_told() {
        let both = told("errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema");
        assert_eq!(both.iter().map(|(field, _)| field.as_str()).collect::<Vec<_>>(), ["spec.a", "spec.b"]);
    }

    #[test]
    fn what_is_said_of_something_else_is_no_misfit() {
        for other in [
            "no corresponding type for example.com/v1, Kind=Gadget",
            "",
            ".spec",
            ".spec.ports[port=80",
            ": x",
            "[0]x: y",
        ] {
            assert_eq!(told(other), [], "{other}");
        }
        assert_eq!(misfits("etcdserver: request timed out", &Map::new()), []);
    }
}
