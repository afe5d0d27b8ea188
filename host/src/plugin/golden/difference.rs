//! Where two answers differ, by values: in the words of who wrote the plugin.

use std::fmt;

use serde_json::{Map, Value, json};

use super::fixture::Answer;
use crate::sandbox::{Child, Children, Failure, Finalization, GeneratedSecret, Rendering};

/// Characters of a value in a message; a condition has room for little more.
const SHOWN: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What it is about, such as `Pod shop` or `status`.
    pub part: String,
    /// JSON pointer in it; empty for the whole.
    pub path: String,
    /// What the fixture has; `None`: nothing.
    pub wanted: Option<Value>,
    pub given: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, path, wanted, given } = self;
        let colon = if path.is_empty() { "" } else { ": " };
        write!(f, "{part}{colon}{path}: wanted {}, given {}", shown(wanted.as_ref()), shown(given.as_ref()))
    }
}

/// All differences, in the order of parts and paths. Children are matched by
/// kind and name: their order says nothing.
pub fn differences(wanted: &Answer, given: &Answer) -> Vec<Difference> {
    let (wanted, given) = (parts(wanted), parts(given));
    let mut found = Vec::new();
    for (part, wanted) in &wanted {
        compare(part, &mut String::new(), Some(wanted), given.get(part), &mut found);
    }
    for (part, given) in given.iter().filter(|(part, _)| !wanted.contains_key(*part)) {
        compare(part, &mut String::new(), None, Some(given), &mut found);
    }
    found
}

fn compare(part: &str, path: &mut String, wanted: Option<&Value>, given: Option<&Value>, found: &mut Vec<Difference>) {
    let mut at = |key: &str, wanted: Option<&Value>, given: Option<&Value>| {
        let length = path.len();
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        compare(part, path, wanted, given, found);
        path.truncate(length);
    };
    match (wanted, given) {
        (Some(wanted), Some(given)) if wanted == given => {}
        (Some(Value::Object(wanted)), Some(Value::Object(given))) => {
            for (key, value) in wanted {
                at(key, Some(value), given.get(key));
            }
            for (key, value) in given.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
                at(key, None, Some(value));
            }
        }
        (Some(Value::Array(wanted)), Some(Value::Array(given))) => {
            for index in 0..wanted.len().max(given.len()) {
                at(&index.to_string(), wanted.get(index), given.get(index));
            }
        }
        (wanted, given) => found.push(Difference {
            part: part.to_owned(),
            path: path.clone(),
            wanted: wanted.cloned(),
            given: given.cloned(),
        }),
    }
}

/// An answer as named parts.
fn parts(answer: &Answer) -> Map<String, Value> {
    let mut parts = Map::new();
    match answer {
        Answer::Failure(failure) => {
            let Failure { class: _, reason: _, message: _, fields: _, allowed: _, remedy: _, retry_after: _ } = failure;
            parts.insert("failure".to_owned(), json!(failure));
        }
        Answer::Rendering(rendering) => {
            let Rendering { children, secrets, status, conditions, not_ready, look_again_after } = rendering;
            made(&mut parts, children, secrets);
            put(&mut parts, "status", (!status.is_empty()).then(|| json!(status)));
            put(&mut parts, "conditions", (!conditions.is_empty()).then(|| json!(conditions)));
            put(&mut parts, "notReady", not_ready.as_ref().map(|why| json!(why)));
            put(&mut parts, "lookAgainAfter", look_again_after.map(Value::from));
        }
        Answer::Finalization(finalization) => {
            let Finalization { children, secrets, waiting, look_again_after } = finalization;
            made(&mut parts, children, secrets);
            put(&mut parts, "waiting", Some(json!(waiting)));
            put(&mut parts, "lookAgainAfter", look_again_after.map(Value::from));
        }
    }
    parts
}

fn made(parts: &mut Map<String, Value>, children: &Children, secrets: &[GeneratedSecret]) {
    match children {
        Children::Keep => put(parts, "children", Some("keep".into())),
        Children::None => put(parts, "children", Some("none".into())),
        Children::Exactly(children) => {
            for Child { object, retain, strategy } in children {
                let text = |pointer: &str| word(object, pointer);
                let name = format!("{} {}", text("/kind"), text("/metadata/name"));
                put(parts, &name, Some(Value::Object(object.clone())));
                put(parts, &format!("{name}, retain"), retain.as_ref().map(|retain| json!(retain)));
                put(parts, &format!("{name}, strategy"), strategy.as_ref().map(|strategy| json!(strategy)));
            }
        }
    }
    for secret in secrets {
        put(parts, &format!("generated Secret {}", secret.name), Some(json!(secret)));
    }
}

/// A second one of a name stays apart from the first.
fn put(parts: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    let Some(value) = value else { return };
    let mut key = name.to_owned();
    for count in 2.. {
        if !parts.contains_key(&key) {
            break;
        }
        key = format!("{name} ({count})");
    }
    parts.insert(key, value);
}

fn word(object: &Map<String, Value>, pointer: &str) -> String {
    let mut keys = pointer.split('/').skip(1);
    let first = keys.next().and_then(|key| object.get(key));
    let value = keys.fold(first, |at, key| at.and_then(|at| at.get(key)));
    value.and_then(Value::as_str).unwrap_or("?").to_owned()
}

/// As JSON, cut.
fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Explanation;

    fn rendering(children: &[Value]) -> Answer {
        let child =
            |object: &Value| Child { object: object.as_object().unwrap().clone(), retain: None, strategy: None };
        Answer::Rendering(Rendering {
            children: Children::Exactly(children.iter().map(child).collect()),
            secrets: Vec::new(),
            status: Map::new(),
            conditions: Vec::new(),
            not_ready: None,
            look_again_after: None,
        })
    }

    fn told(wanted: &Answer, given: &Answer) -> Vec<String> {
        differences(wanted, given).iter().map(Difference::to_string).collect()
    }

    #[test]
    fn values_are_compared_and_not_their_order_or_spelling() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"n": 1}});
        let service: Value = serde_json::from_str(r#"{"metadata":{"name":"a"},  "kind":"S\u0065rvice"}"#).unwrap();
        let other = json!({"kind": "Service", "metadata": {"name": "a"}});
        assert_eq!(told(&rendering(&[pod.clone(), service]), &rendering(&[other, pod])), [""; 0]);
    }

    #[test]
    fn each_difference_has_its_place_and_both_values() {
        let wanted = rendering(&[
            json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "a/b": true}}),
            json!({"kind": "Service", "metadata": {"name": "a"}}),
        ]);
        let given = rendering(&[
            json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 81}, {"port": 1}], "a/b": null}}),
            json!({"kind": "ConfigMap", "metadata": {"name": "a"}}),
        ]);
        assert_eq!(
            told(&wanted, &given),
            [
                "Pod a: /spec/a~1b: wanted true, given null",
                "Pod a: /spec/ports/0/port: wanted 80, given 81",
                r#"Pod a: /spec/ports/1: wanted nothing, given {"port":1}"#,
                r#"Service a: wanted {"kind":"Service","metadata":{"name":"a"}}, given nothing"#,
                r#"ConfigMap a: wanted nothing, given {"kind":"ConfigMap","metadata":{"name":"a"}}"#,
            ]
        );
    }

    #[test]
    fn what_stands_beside_the_children_counts_as_well() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "a"}});
        let Answer::Rendering(plain) = rendering(std::slice::from_ref(&pod)) else { panic!("a rendering") };
        let mut full = plain.clone();
        full.not_ready = Some(Explanation { reason: "R".into(), message: "m".into() });
        full.status.insert("x".into(), 1.into());
        full.look_again_after = Some(5);
        if let Children::Exactly(children) = &mut full.children {
            children[0].strategy = Some("OnDelete".into());
        }
        assert_eq!(
            told(&Answer::Rendering(full), &Answer::Rendering(plain.clone())),
            [
                "Pod a, strategy: wanted \"OnDelete\", given nothing",
                "lookAgainAfter: wanted 5, given nothing",
                r#"notReady: wanted {"message":"m","reason":"R"}, given nothing"#,
                r#"status: wanted {"x":1}, given nothing"#,
            ]
        );
        // Two of one name do not hide each other.
        let (one, two) = (rendering(std::slice::from_ref(&pod)), rendering(&[pod.clone(), pod]));
        assert_eq!(told(&one, &two), [r#"Pod a (2): wanted nothing, given {"kind":"Pod","metadata":{"name":"a"}}"#]);
        let keep = Answer::Rendering(Rendering { children: Children::Keep, ..plain });
        assert_eq!(told(&keep, &one).len(), 2);
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = Value::from("ü".repeat(300));
        let text = shown(Some(&long));
        assert!(text.ends_with('…') && text.chars().count() == SHOWN + 1, "{text}");
    }
}
