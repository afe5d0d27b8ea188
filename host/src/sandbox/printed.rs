//! What a guest prints, cut into lines for its log.

use std::collections::VecDeque;

use tracing::Level;

use super::log::Log;
use crate::limits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Error,
}

/// The begun lines of both streams, never more than a line may hold, and the last ones of stderr: they tell why it ends.
#[derive(Default)]
pub(super) struct Printed {
    out: Vec<u8>,
    error: Vec<u8>,
    last: VecDeque<String>,
    /// How many errors were logged before those.
    errors: usize,
}

impl Printed {
    pub(super) fn print(&mut self, stream: Stream, mut text: &[u8], log: &mut Log) {
        while let Some(at) = memchr::memchr(b'\n', text) {
            let (line, rest) = text.split_at(at);
            self.begin(stream, line, log);
            self.end(stream, log);
            text = rest.get(1..).unwrap_or_default();
        }
        self.begin(stream, text, log);
    }

    /// At the end of a call: what no line feed has ended, and what explains the end.
    pub(super) fn finish(&mut self, log: &mut Log) {
        for stream in [Stream::Out, Stream::Error] {
            if !self.begun(stream).is_empty() {
                self.end(stream, log);
            }
        }
        self.forget_before_an_error(log);
        let lines: Vec<&str> = self.last.iter().map(String::as_str).collect();
        if let Some(words) = last_words(&lines) {
            log.last_words(&words);
        }
    }

    /// What was logged as an error since then explains more.
    fn forget_before_an_error(&mut self, log: &Log) {
        if self.errors != log.errors() {
            self.errors = log.errors();
            self.last.clear();
        }
    }

    fn begun(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Error => &mut self.error,
        }
    }

    /// What is too long for one line goes on in the next.
    fn begin(&mut self, stream: Stream, mut text: &[u8], log: &mut Log) {
        while self.begun(stream).len() + text.len() > limits::PRINTED_LINE_BYTES {
            let (now, later) = text.split_at(limits::PRINTED_LINE_BYTES.saturating_sub(self.begun(stream).len()));
            self.begun(stream).extend_from_slice(now);
            self.end(stream, log);
            text = later;
        }
        self.begun(stream).extend_from_slice(text);
    }

    fn end(&mut self, stream: Stream, log: &mut Log) {
        let line = std::mem::take(self.begun(stream));
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        match stream {
            _ if line.is_empty() => {}
            Stream::Out => log.push(Level::INFO, line, &[]),
            Stream::Error => {
                log.push(Level::WARN, line, &[]);
                self.forget_before_an_error(log);
                if self.last.len() == limits::PRINTED_LAST_LINES {
                    self.last.pop_front();
                }
                self.last.push_back(line.to_owned());
            }
        }
    }
}

/// What the end of stderr says of the end of the guest. A language's runtime is itself a program of Rust that panics when
/// the code that it runs has failed: where there is a traceback before the panic, that is the cause.
fn last_words(lines: &[&str]) -> Option<String> {
    let panicked = |line: &&str| line.starts_with("thread '") && line.contains(" panicked at ");
    let (before, panic) = lines.split_at(lines.iter().rposition(panicked).unwrap_or(lines.len()));
    let frame = |line: &&str| line.starts_with("  File \"") && line.contains(", line ");
    if let Some(innermost) = before.iter().rposition(frame) {
        return Some(join(before.get(innermost..)?));
    }
    match panic {
        [] => before.last().map(|line| (*line).to_owned()),
        [_, message @ ..] => {
            let hint = |line: &&str| line.starts_with("note: run with `RUST_BACKTRACE");
            Some(join(message.get(..message.iter().position(hint).unwrap_or(message.len()))?))
        }
    }
}

fn join(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[(Stream, &str)]) -> Vec<(Level, String)> {
        let (mut printed, mut log) = (Printed::default(), Log::new(64 << 10));
        for (stream, text) in pieces {
            printed.print(*stream, text.as_bytes(), &mut log);
        }
        printed.finish(&mut log);
        log.into_lines().into_iter().map(|line| (line.level, line.message)).collect()
    }

    #[test]
    fn pieces_become_lines_of_their_stream() {
        use Stream::{Error, Out};
        let printed =
            lines(&[(Out, "a"), (Error, "x\n\n"), (Out, "b\nc\r\n"), (Error, "y"), (Out, "\nd"), (Error, "")]);
        let expected =
            [(Level::WARN, "x"), (Level::INFO, "ab"), (Level::INFO, "c"), (Level::INFO, "d"), (Level::WARN, "y")];
        assert_eq!(printed, expected.map(|(level, line)| (level, line.to_owned())));
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let long = "x".repeat(limits::PRINTED_LINE_BYTES + 7);
        let lengths =
            |pieces: &[(Stream, &str)]| -> Vec<usize> { lines(pieces).iter().map(|(_, line)| line.len()).collect() };
        assert_eq!(lengths(&[(Stream::Out, &long)]), [limits::PRINTED_LINE_BYTES, 7]);
        assert_eq!(lengths(&[(Stream::Out, "yyy"), (Stream::Out, &long)]), [limits::PRINTED_LINE_BYTES, 10]);
    }

    #[test]
    fn the_last_words_name_the_cause() {
        let python = [
            "warned",
            "Traceback (most recent call last):",
            "  File \"/0/app.py\", line 9, in render",
            "  File \"/0/app.py\", line 23, in pick",
            "ValueError: no such mode:",
            "  none",
            "thread '<unnamed>' (1) panicked at runtime/src/lib.rs:1293:29:",
            "Python function threw an unexpected exception",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        ];
        let cause = "File \"/0/app.py\", line 23, in pick ValueError: no such mode: none";
        assert_eq!(last_words(&python).as_deref(), Some(cause));
        let script = ["warned", "thread '<unnamed>' (1) panicked at i.rs:5:1:", "Failed (", "  Error", ")", python[8]];
        assert_eq!(last_words(&script).as_deref(), Some("Failed ( Error )"));
        assert_eq!(last_words(&["one", "two"]).as_deref(), Some("two"));
        assert_eq!(last_words(&[]), None);
    }

    #[test]
    fn an_error_that_was_logged_later_explains_more() {
        let (mut printed, mut log) = (Printed::default(), Log::new(1 << 10));
        printed.print(Stream::Error, b"warned\n", &mut log);
        log.push(Level::ERROR, "panicked", &[]);
        printed.finish(&mut log);
        assert_eq!(log.explain("trap"), "trap, after it logged: panicked");
        printed.print(Stream::Error, b"cannot go on", &mut log);
        printed.finish(&mut log);
        assert_eq!(log.explain("trap"), "trap, after it logged: cannot go on");
    }

    #[test]
    fn what_is_no_utf_8_is_shown_as_such() {
        let (mut printed, mut log) = (Printed::default(), Log::new(1 << 10));
        printed.print(Stream::Out, b"a\xffb\n", &mut log);
        assert_eq!(log.into_lines()[0].message, "a\u{fffd}b");
    }
}
