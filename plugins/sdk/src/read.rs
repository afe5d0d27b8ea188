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

/// How serde ends a sentence, and how a person would.
const PLAIN_WORDS: [(&str, &str); 11] = [
    ("expected u8", "expected a whole number from 0 to 255"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected u64", "expected a whole number, not negative"),
    ("expected usize", "expected a whole number, not negative"),
    ("expected i32", "expected a whole number of 32 bits"),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("expected a boolean", "expected true or false"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected an object"),
];

/// `base` is the pointer of the text itself in the request's document.
pub(crate) fn typed<T: DeserializeOwned>(text: &str, base: &str) -> Result<T, Failure> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
        .map_err(|error| explain(base, error.path(), error.inner()))
}

/// Not generic, so that it is in a plugin once.
fn explain(base: &str, path: &Path, error: &serde_json::Error) -> Failure {
    let text = error.to_string();
    // The position in our own text tells a user nothing.
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(position.as_str()).unwrap_or(&text);
    let mut field = pointer(base, path);
    if let Some(missing) = text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        push(&mut field, missing);
    }
    let plain = PLAIN_WORDS.iter().find_map(|(word, plain)| Some((text.strip_suffix(word)?, *plain)));
    let (what, expected) = plain.unwrap_or((text, ""));
    let message: String = format!("{field}: {what}{expected}").chars().take(MESSAGE_CHARACTERS).collect();
    let failure = Failure::invalid(message).field(field);
    match text.strip_prefix("unknown ") {
        // "variant `x`, expected one of `a`, `b`": from the second on, they are the accepted ones.
        Some(names) => failure.allowed(names.split('`').skip(3).step_by(2)),
        None => failure,
    }
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
    for character in key.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}
