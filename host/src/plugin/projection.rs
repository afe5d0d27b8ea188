//! An object cut down to what a guest may see of it: its identity, and the
//! values at the paths that its plugin asked for.

use serde_json::{Map, Value};

use crate::limits::JSON_DEPTH;

/// What is seen of every child, beside its identity.
pub const ALWAYS: [&str; 2] = ["/status/phase", "/status/conditions"];

/// Of what kind the object is.
#[derive(Clone, Copy)]
pub struct Kind<'a> {
    pub group: &'a str,
    pub api_version: &'a str,
    pub kind: &'a str,
}

/// JSON text. `at` finds the value at a JSON pointer.
pub fn of<'a>(
    kind: Kind<'_>,
    name: &str,
    uid: &str,
    pointers: impl Iterator<Item = &'a str>,
    at: impl Fn(&str) -> Option<Value>,
) -> String {
    let mut projection = Map::from_iter([
        ("apiVersion".to_owned(), kind.api_version.into()),
        ("kind".to_owned(), kind.kind.into()),
        ("metadata".to_owned(), serde_json::json!({"name": name, "uid": uid})),
    ]);
    // Secret data never enters a guest, whatever the plugin asks for.
    let secret = kind.group.is_empty() && kind.kind == "Secret";
    for pointer in pointers {
        if secret && ["/data", "/stringData"].iter().any(|data| pointer.starts_with(data)) {
            continue;
        }
        if let Some(value) = at(pointer) {
            put(&mut projection, pointer, value);
        }
    }
    Value::Object(projection).to_string()
}

/// Puts a value where a JSON pointer says. List items keep their index: what
/// stands before is filled with null.
fn put(root: &mut Map<String, Value>, pointer: &str, value: Value) {
    let mut tokens = pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).peekable();
    let Some(first) = tokens.next() else { return };
    let mut at = root.entry(first).or_insert(Value::Null);
    for token in tokens {
        if let Ok(index) = token.parse::<usize>().map(|index| index.min(JSON_DEPTH)) {
            if !at.is_array() {
                *at = Value::Array(Vec::new());
            }
            let Value::Array(items) = at else { return };
            if items.len() <= index {
                items.resize(index + 1, Value::Null);
            }
            let Some(item) = items.get_mut(index) else { return };
            at = item;
        } else {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            let Value::Object(fields) = at else { return };
            at = fields.entry(token).or_insert(Value::Null);
        }
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_is_put_back_where_it_stood() {
        let mut root = Map::new();
        put(&mut root, "/spec/ports/1/nodePort", json!(30000));
        put(&mut root, "/spec/a~1b", json!("x"));
        assert_eq!(Value::Object(root), json!({"spec": {"ports": [null, {"nodePort": 30000}], "a/b": "x"}}));
    }

    #[test]
    fn no_data_of_a_secret_is_shown() {
        let secret = json!({"data": {"a": "Yg=="}, "type": "Opaque"});
        let kind = Kind { group: "", api_version: "v1", kind: "Secret" };
        let shown = of(kind, "s", "u", ["/data/a", "/data", "/type"].into_iter(), |at| secret.pointer(at).cloned());
        assert_eq!(
            serde_json::from_str::<Value>(&shown).unwrap(),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "uid": "u"}, "type": "Opaque"})
        );
    }
}
