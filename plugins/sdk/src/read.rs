//! From JSON text to the author's types, with errors that a user understands.

use crate::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

/// A spec (or a configuration) that the plugin does not look at.
pub type Unread = serde::de::IgnoredAny;

/// The configuration of a plugin that has none: anything given is an error.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// Messages are read in `kubectl describe`; a value of the user's may be long.
const MESSAGE_CHARACTERS: usize = 400;

/// What serde calls a type, and what a person does.
const PLAIN_WORDS: [(&str, &str); 12] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number, not negative"),
    ("usize", "a whole number, not negative"),
    ("i32", "a whole number of 32 bits"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a sequence", "a list"),
    ("a map", "an object"),
    ("string or map", "a string"),
];

/// `base` is the pointer of the text itself in the request's document.
pub(crate) fn typed<T: DeserializeOwned>(text: &str, base: &str) -> Result<T, Failure> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
        .map_err(|error| explain(base, error.path(), &error.inner().to_string()))
}

/// Not generic, so that it is in a plugin once.
fn explain(base: &str, path: &Path, error: &str) -> Failure {
    // The position in our own text tells a user nothing.
    let error = error.rsplit_once(" at line ").map_or(error, |(what, _)| what);
    let mut field = pointer(base, path);
    if let Some(missing) = error.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        push(&mut field, missing);
    }
    let (what, expected) = error.rsplit_once("expected ").unwrap_or((error, ""));
    let message = if let Some((_, plain)) = PLAIN_WORDS.iter().find(|(word, _)| *word == expected) {
        format!("{field}: {what}expected {plain}")
    } else if expected.starts_with("struct ") {
        format!("{field}: {what}expected an object")
    } else {
        format!("{field}: {error}")
    };
    let mut failure = Failure::invalid(message.chars().take(MESSAGE_CHARACTERS).collect::<String>()).field(field);
    // "unknown variant `x`, expected one of `a`, `b`": every second piece is a name.
    if error.starts_with("unknown ") {
        failure = failure.allowed(expected.split('`').skip(1).step_by(2));
    }
    failure
}

fn pointer(base: &str, path: &Path) -> String {
    let mut pointer = base.to_owned();
    for segment in path {
        match segment {
            Segment::Seq { index } => push(&mut pointer, &index.to_string()),
            Segment::Map { key } | Segment::Enum { variant: key } => push(&mut pointer, key),
            Segment::Unknown => {}
        }
    }
    pointer
}

fn push(pointer: &mut String, key: &str) {
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
}
