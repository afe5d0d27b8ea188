//! Differences as a person reads them: by child and field, what was and what is.

use std::fmt::Write;

use serde_json::Value;

use crate::plugin::golden::Difference;

/// Lines of one value; the rest is counted.
const LINES: usize = 12;

/// `-` is what the fixture has, `+` what is rendered.
pub(super) fn differences(found: &[Difference]) -> String {
    let mut text = String::new();
    for Difference { part, path, wanted, given } in found {
        let colon = if path.is_empty() { "" } else { ": " };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {part}{colon}{path}");
        for (sign, value) in [('-', wanted), ('+', given)] {
            match value {
                Some(value) => lines(&mut text, sign, value),
                None => drop(writeln!(text, "  {sign} (nothing)")),
            }
        }
    }
    text
}

fn lines(text: &mut String, sign: char, value: &Value) {
    let yaml = match value {
        Value::Object(_) | Value::Array(_) => serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string()),
        other => other.to_string(),
    };
    let count = yaml.lines().count();
    for line in yaml.lines().take(LINES) {
        let _ = writeln!(text, "  {sign} {line}");
    }
    if count > LINES {
        let _ = writeln!(text, "  {sign} … {} more lines", count - LINES);
    }
}
