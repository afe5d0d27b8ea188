//! JSON text of a guest, limited before it becomes a tree.

use serde_json::{Map, Value};

use super::model::CallError;
use crate::limits;

/// Parses what belongs to one call; the number of values is limited over all of it.
pub(super) struct Json {
    values_left: usize,
}

impl Json {
    pub(super) fn new() -> Self {
        Self { values_left: limits::JSON_VALUES }
    }

    /// `what` names the text in errors, for instance `child 3`.
    pub(super) fn object(
        &mut self,
        text: &str,
        what: impl FnOnce() -> String,
    ) -> Result<Map<String, Value>, CallError> {
        self.limited(text)
            .and_then(|()| match serde_json::from_str(text) {
                Ok(Value::Object(object)) => Ok(object),
                Ok(other) => Err(format!("{}, not a JSON object", kind(&other))),
                Err(error) => Err(format!("not JSON: {error}")),
            })
            .map_err(|error| CallError::OutputInvalid(format!("{} is {error}", what())))
    }

    /// Depth and number of values, without building any. Text that is no JSON
    /// may pass; the parser refuses it.
    fn limited(&mut self, text: &str) -> Result<(), String> {
        let (mut depth, mut values) = (0_usize, 1_usize);
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' => loop {
                    match bytes.next() {
                        Some(b'\\') => {
                            bytes.next();
                        }
                        Some(b'"') | None => break,
                        Some(_) => {}
                    }
                },
                b'{' | b'[' => {
                    (depth, values) = (depth + 1, values + 1);
                    if depth > limits::JSON_DEPTH {
                        return Err(format!("nested deeper than {}", limits::JSON_DEPTH));
                    }
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => values += 1,
                _ => {}
            }
        }
        self.values_left = self
            .values_left
            .checked_sub(values)
            .ok_or_else(|| format!("too much: more than {} JSON values in one call", limits::JSON_VALUES))?;
        Ok(())
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Map<String, Value>, String> {
        Json::new().object(text, || "child 3".into()).map_err(|error| error.to_string())
    }

    /// An object, nested `depth` deep.
    fn nested(depth: usize) -> String {
        format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1))
    }

    #[test]
    fn depth_obeyed() {
        assert!(read(&nested(limits::JSON_DEPTH)).is_ok());
        // Brackets in text are no nesting.
        assert!(read(&format!(r#"{{"a":"{}\"[["}}"#, "[".repeat(1000))).is_ok());
    }

    #[test]
    fn depth_violated() {
        for depth in [limits::JSON_DEPTH + 1, 100_000] {
            assert!(read(&nested(depth)).unwrap_err().ends_with("child 3 is nested deeper than 64"));
        }
    }

    #[test]
    fn values_obeyed_and_violated() {
        let list = |values: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(values - 1));
        assert!(read(&list(60_000)).is_ok());
        assert!(read(&list(70_000)).unwrap_err().contains("too much"));
        // Over all of a rendering, not for each child.
        let mut json = Json::new();
        assert!(json.object(&list(60_000), String::new).is_ok());
        assert!(json.object(&list(60_000), String::new).is_err());
    }

    #[test]
    fn what_is_no_object_is_named() {
        for (text, error) in [
            ("[]", "child 3 is a list, not a JSON object"),
            ("null", "child 3 is null, not a JSON object"),
            ("{\"a\":1e999}", "child 3 is not JSON: number out of range"),
            ("", "child 3 is not JSON: EOF"),
            ("{} {}", "child 3 is not JSON: trailing characters"),
            ("\"", "child 3 is not JSON: EOF"),
        ] {
            assert!(read(text).unwrap_err().contains(error), "{text}: {:?}", read(text));
        }
    }
}
