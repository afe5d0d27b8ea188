//! What a guest says by `log` during one call: capped, and escaped so that no
//! line can forge another.

use std::fmt::Display;

use tracing::Level;

use super::model::LogLine;
use crate::limits;

/// The lines of one call.
pub(super) struct Log {
    lines: Vec<LogLine>,
    cap: usize,
    left: usize,
    cut: bool,
    /// Also of a line beyond the cap: a panic of Rust, an exception of Python come last.
    last_error: Option<String>,
    errors: usize,
}

// === impl Log ===

impl Log {
    pub(super) fn new(cap: usize) -> Self {
        Self { lines: Vec::new(), cap, left: cap, cut: false, last_error: None, errors: 0 }
    }

    pub(super) fn push(&mut self, level: Level, message: &str, fields: &[(String, String)]) {
        if level == Level::ERROR {
            self.last_words(message);
            self.errors += 1;
        }
        // An empty line costs the host memory too.
        self.charge(limits::LOG_LINE_BYTES);
        if self.cut {
            return;
        }
        let message = self.take(message);
        let mut kept = Vec::new();
        for (key, value) in fields {
            self.charge(limits::LOG_LINE_BYTES);
            if self.cut {
                break;
            }
            kept.push((self.take(key), self.take(value)));
        }
        self.lines.push(LogLine { level, message, fields: kept });
    }

    /// Explains the end, should it come now.
    pub(super) fn last_words(&mut self, words: &str) {
        self.last_error = Some(escape(words, limits::CONDITION_MESSAGE_BYTES).0);
    }

    /// Whether the guest has said something that explains its end.
    pub(super) fn is_explained(&self) -> bool {
        self.last_error.is_some()
    }

    /// How many errors were logged.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    fn charge(&mut self, bytes: usize) {
        self.cut |= bytes > self.left;
        self.left = self.left.saturating_sub(bytes);
    }

    fn take(&mut self, text: &str) -> String {
        let (text, whole) = escape(text, self.left);
        self.left -= text.len();
        self.cut |= !whole;
        text
    }

    pub(super) fn into_lines(mut self) -> Vec<LogLine> {
        if self.cut {
            let message = format!("the plugin logged more than {} bytes in one call, the rest is cut", self.cap);
            self.lines.push(LogLine { level: Level::WARN, message, fields: Vec::new() });
        }
        self.lines
    }

    /// How the guest ended, with the last error that it logged.
    pub(super) fn explain(&self, end: impl Display) -> String {
        match &self.last_error {
            Some(error) => format!("{end}, after it logged: {error}"),
            None => end.to_string(),
        }
    }
}

/// At most `cap` bytes of `text`, with what could forge or hide lines spelled
/// out; and whether that is all of it.
pub(super) fn escape(text: &str, cap: usize) -> (String, bool) {
    let mut out = String::with_capacity(text.len().min(cap));
    for char in text.chars() {
        let before = out.len();
        match char {
            // Line and paragraph separators, and marks that turn the writing direction.
            '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.extend(char.escape_unicode());
            }
            char if char.is_control() => out.extend(char.escape_default()),
            char => out.push(char),
        }
        if out.len() > cap {
            out.truncate(before);
            return (out, false);
        }
    }
    (out, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cap: usize, message: &str) -> Vec<LogLine> {
        let mut log = Log::new(cap);
        log.push(Level::INFO, message, &[("key".into(), "value".into())]);
        log.into_lines()
    }

    #[test]
    fn within_the_cap_all_is_kept() {
        let lines = line(2 * limits::LOG_LINE_BYTES + "hello".len() + "keyvalue".len(), "hello");
        let fields = vec![("key".into(), "value".into())];
        assert_eq!(lines, [LogLine { level: Level::INFO, message: "hello".into(), fields }]);
    }

    #[test]
    fn beyond_the_cap_it_is_cut_on_a_character_and_said_once() {
        let mut log = Log::new(limits::LOG_LINE_BYTES + 3);
        log.push(Level::INFO, "ééé", &[]);
        log.push(Level::INFO, "lost", &[]);
        log.push(Level::ERROR, "panicked", &[]);
        assert_eq!(log.explain("trap").split(": ").last(), Some("panicked"));
        let messages: Vec<_> = log.into_lines().into_iter().map(|line| line.message).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!(messages[0], "é");
        assert!(messages[1].contains("the rest is cut"));
    }

    #[test]
    fn a_flood_of_empty_lines_is_cut() {
        let mut log = Log::new(10 * limits::LOG_LINE_BYTES);
        (0..1000).for_each(|_| log.push(Level::INFO, "", &[]));
        assert_eq!(log.into_lines().len(), 11);
    }

    #[test]
    fn a_line_cannot_forge_another() {
        let text = "a\nb\x1b[31m\u{202e}";
        assert_eq!(line(1000, text)[0].message, r"a\nb\u{1b}[31m\u{202e}");
    }
}
