//! Where a guest stood when it was stopped: its functions, innermost first, by the names that its component kept.
//!
//! Names are the guest's: each is cut, escaped, and taken apart only where it is short enough to cost nothing.

use std::fmt::{self, Write};

use wasmtime::WasmBacktrace;

use super::log::escape;
use crate::limits::{FRAME_BYTES, SYMBOL_BYTES};

pub(super) struct Frames {
    frames: Vec<Frame>,
}

#[derive(Debug, PartialEq)]
enum Frame {
    Named(String),
    /// By its index in its module.
    Nameless(u32),
}

/// What stands between a guest's own code and the trap of a panic, or around the guest.
const RUNTIME: [&str; 9] = [
    "__rustc",
    "core",
    "std",
    "alloc",
    "dlmalloc",
    "compiler_builtins",
    "wit_bindgen",
    "keelson_sdk",
    "componentize_py_runtime",
];

// === impl Frames ===

impl Frames {
    pub(super) fn none() -> Self {
        Self { frames: Vec::new() }
    }

    /// None where the guest did not run.
    pub(super) fn of(error: &wasmtime::Error) -> Self {
        let frames = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames).unwrap_or_default();
        let frame =
            |name: Option<&str>, index| name.map_or(Frame::Nameless(index), |name| Frame::Named(readable(name)));
        Self { frames: frames.iter().map(|it| frame(it.func_name(), it.func_index())).collect() }
    }

    /// The innermost function that somebody wrote as part of the plugin.
    pub(super) fn own(&self) -> Option<&str> {
        self.frames.iter().find_map(|frame| match frame {
            Frame::Named(name) if is_own(name) => Some(name.as_str()),
            Frame::Named(_) | Frame::Nameless(_) => None,
        })
    }

    /// All of them in one line; `None` where they say nothing: there are none, or the plugin's own have no names and the
    /// guest has `explained` its end itself, as interpreters do.
    pub(super) fn line(&self, explained: bool) -> Option<String> {
        let nameless = self.own().is_none();
        if self.frames.is_empty() || (nameless && explained) {
            return None;
        }
        let frames: Vec<String> = self.frames.iter().map(Frame::to_string).collect();
        let why = if nameless { " (the component keeps no names of its functions)" } else { "" };
        Some(format!("stopped in {}{why}", frames.join(" \u{2190} ")))
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Nameless(index) => write!(f, "function {index}"),
        }
    }
}

/// As it was written, where it is a mangled name of Rust.
fn readable(symbol: &str) -> String {
    let mut name = Cut { text: String::new(), cut: false };
    let demangled = (symbol.len() <= SYMBOL_BYTES).then(|| rustc_demangle::try_demangle(symbol).ok()).flatten();
    // It ends early where no more is wanted.
    let _ = match demangled {
        Some(demangled) => write!(name, "{demangled:#}"),
        None => name.write_str(symbol),
    };
    let (mut text, whole) = escape(&name.text, FRAME_BYTES);
    if name.cut || !whole {
        text.push('…');
    }
    text
}

/// Takes `FRAME_BYTES`, then no more.
struct Cut {
    text: String,
    cut: bool,
}

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.floor_char_boundary(FRAME_BYTES - self.text.len());
        let (kept, rest) = text.split_at(end);
        self.text.push_str(kept);
        self.cut |= !rest.is_empty();
        if self.cut { Err(fmt::Error) } else { Ok(()) }
    }
}

/// By the crate in a path of Rust; a plain name is of another language.
fn is_own(name: &str) -> bool {
    match name.split_once("::") {
        Some((first, _)) => {
            let first = first.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
            !RUNTIME.contains(&first) && !first.is_empty()
        }
        None => {
            !name.starts_with(['_', '<']) && !name.contains(['#', ':']) && !GLUE.iter().any(|it| name.starts_with(it))
        }
    }
}

const GLUE: [&str; 5] = ["abort", "cabi_", "rust_", "runtime.", "wit_"];

#[cfg(test)]
mod tests {
    use super::*;

    fn named(symbols: &[&str]) -> Frames {
        Frames { frames: symbols.iter().map(|symbol| Frame::Named(readable(symbol))).collect() }
    }

    #[test]
    fn the_innermost_own_function_is_below_the_panic() {
        let frames = named(&[
            "_RNvCsdBezzDwma51_7___rustc10rust_panic",
            "_ZN3std9panicking11begin_panic17h0123456789abcdefE",
            "_ZN54_$LT$core..option..Option$LT$T$GT$$u20$as$u20$x..Y$GT$4took17h0123456789abcdefE",
            "_RNvNtCs1234_4shop5paint4pick",
            "_ZN4shop6render17h0123456789abcdefE",
            "keelson:operator/operator@0.1.0#render",
        ]);
        assert_eq!(frames.own(), Some("shop::paint::pick"));
        let line = frames.line(true).unwrap();
        assert!(line.starts_with("stopped in __rustc::rust_panic \u{2190} std::panicking::begin_panic"), "{line}");
        assert!(
            line.ends_with(
                "\u{2190} shop::paint::pick \u{2190} shop::render \u{2190} keelson:operator/operator@0.1.0#render"
            ),
            "{line}"
        );
    }

    #[test]
    fn methods_and_plain_names_are_own_too() {
        assert_eq!(
            named(&["abort", "<shop::Shop as keelson_sdk::Plugin>::render"]).own(),
            Some("<shop::Shop as keelson_sdk::Plugin>::render")
        );
        assert_eq!(named(&["abort", "cabi_realloc", "render"]).own(), Some("render"));
        assert_eq!(named(&["abort", "cabi_realloc", "_start"]).own(), None);
        // Python's interpreter, whose traceback says more.
        let python =
            named(&["abort", "std::process::abort", "wit_dylib_export_call", "keelson:operator/operator@0.1.0#render"]);
        assert_eq!((python.own(), python.line(true)), (None, None));
    }

    #[test]
    fn without_names_it_is_said() {
        let frames = Frames { frames: vec![Frame::Nameless(12), Frame::Nameless(7)] };
        assert_eq!(frames.own(), None);
        let line = frames.line(false).unwrap();
        assert_eq!(line, "stopped in function 12 \u{2190} function 7 (the component keeps no names of its functions)");
        assert_eq!((frames.line(true), Frames::none().line(false)), (None, None));
    }

    #[test]
    fn a_name_forges_nothing_and_costs_nothing() {
        assert_eq!(readable("a\nb\u{1b}[31m"), r"a\nb\u{1b}[31m");
        let long = "é".repeat(50_000);
        for name in [long.as_str(), &format!("_ZN{}{}E", long.len(), long), &"\n".repeat(1000)] {
            let shown = readable(name);
            assert!(shown.len() <= FRAME_BYTES + '…'.len_utf8() && shown.ends_with('…'), "{}", shown.len());
        }
    }
}
