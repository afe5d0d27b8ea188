//! What a guest may import: the contract's own types and log. Compared by semver
//! track, refused with what to do. `log` is capped, escaped, and never affects a
//! rendering but by the fuel that it costs.

use tracing::Level;
use wasmtime::component::Linker;
use wasmtime::component::types::ComponentItem;
use wasmtime::{StoreContextMut, Trap};

use super::component::LoadError;
use super::model::LogLine;
use super::store::State;
use crate::limits;

/// An interface that a guest may import, and the functions in it.
pub(super) type Allowed = (&'static str, &'static [&'static str]);

/// Refuses whatever the interfaces in `allowed` do not provide.
pub(super) fn check(component: &wasmtime::component::Component, allowed: &[Allowed]) -> Result<(), LoadError> {
    let engine = component.engine();
    for (name, item) in component.component_type().imports(engine) {
        let Some((_, functions)) = allowed.iter().find(|(interface, _)| same_track(interface, name)) else {
            return Err(denied(name, allowed));
        };
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            return Err(denied(name, allowed));
        };
        for (export, item) in instance.exports(engine) {
            if !matches!(item.ty, ComponentItem::Type(_)) && !functions.contains(&export) {
                return Err(denied(&format!("{name}#{export}"), allowed));
            }
        }
    }
    Ok(())
}

fn denied(import: &str, allowed: &[Allowed]) -> LoadError {
    let names = || allowed.iter().map(|(interface, _)| *interface).collect::<Vec<_>>().join(" and ");
    let fix = if import.starts_with("wasi:") || import.starts_with("wasi_") {
        "a plugin has no operating system; build Rust for wasm32-unknown-unknown (cargo component build --release \
         --target wasm32-unknown-unknown), Python and JavaScript with --stub-wasi"
            .to_owned()
    } else if import.starts_with("keelson:operator/") {
        format!("this host provides {}; build the plugin against its version of the contract", names())
    } else {
        format!("a plugin only computes and may import nothing but {}", names())
    };
    LoadError::ImportDenied { import: import.to_owned(), fix }
}

/// Whether two interface names are equal up to compatible versions: `0.1.0` and
/// `0.1.7`, `1.2.0` and `1.9.3`, but not `0.1.0` and `0.2.0`.
pub(super) fn same_track(one: &str, other: &str) -> bool {
    let (Some((name, version)), Some((other_name, other_version))) = (one.split_once('@'), other.split_once('@'))
    else {
        return one == other;
    };
    name == other_name
        && (version == other_version || track(version).is_some_and(|it| Some(it) == track(other_version)))
}

fn track(version: &str) -> Option<[u64; 2]> {
    // A pre-release is compatible with nothing but itself.
    if version.contains(['-', '+']) {
        return None;
    }
    let mut numbers = version.split('.').map(str::parse::<u64>);
    match (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?) {
        (0, 0, _) => None,
        (0, minor, _) => Some([0, minor]),
        (major, _, _) => Some([major, 0]),
    }
}

/// Defines `log` for one version of the contract, whose types turn into ours.
pub(super) fn log<L, F>(linker: &mut Linker<State>, interface: &str) -> wasmtime::Result<()>
where
    L: wasmtime::component::Lift + Into<Level> + 'static,
    F: wasmtime::component::Lift + Into<(String, String)> + 'static,
    (L, String, Vec<F>): wasmtime::component::ComponentNamedList + wasmtime::component::Lift,
{
    linker.instance(interface)?.func_wrap(
        "log",
        |mut store: StoreContextMut<'_, State>, (level, message, fields): (L, String, Vec<F>)| {
            let fields: Vec<(String, String)> = fields.into_iter().map(Into::into).collect();
            let bytes = message.len() + fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
            // What is copied is paid for, else a flood would run until the wall-time limit.
            let cost = u64::try_from(bytes).unwrap_or(u64::MAX);
            let left = store.get_fuel()?.checked_sub(cost);
            store.set_fuel(left.unwrap_or(0))?;
            if left.is_none() {
                return Err(Trap::OutOfFuel.into());
            }
            store.data_mut().log.push(level.into(), &message, &fields);
            Ok(())
        },
    )
}

/// The lines of one call.
pub(super) struct Log {
    lines: Vec<LogLine>,
    cap: usize,
    left: usize,
    cut: bool,
    /// Also of a line beyond the cap: a Rust guest's panic comes last.
    last_error: Option<String>,
}

// === impl Log ===

impl Log {
    pub(super) fn new(cap: usize) -> Self {
        Self { lines: Vec::new(), cap, left: cap, cut: false, last_error: None }
    }

    fn push(&mut self, level: Level, message: &str, fields: &[(String, String)]) {
        if level == Level::ERROR {
            self.last_error = Some(escape(message, limits::CONDITION_MESSAGE_BYTES).0);
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

    /// A trap with the last error that the guest logged.
    pub(super) fn explain(&self, trap: Trap) -> String {
        match &self.last_error {
            Some(error) => format!("{trap}, after it logged: {error}"),
            None => trap.to_string(),
        }
    }
}

/// At most `cap` bytes of `text`, with what could forge or hide lines spelled
/// out; and whether that is all of it.
fn escape(text: &str, cap: usize) -> (String, bool) {
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
        assert_eq!(log.explain(Trap::UnreachableCodeReached).split(": ").last(), Some("panicked"));
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

    #[test]
    fn tracks() {
        for (one, other) in [("a:b/c@0.1.0", "a:b/c@0.1.9"), ("a:b/c@1.0.0", "a:b/c@1.4.0"), ("a:b/c", "a:b/c")] {
            assert!(same_track(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("a:b/c@0.1.0", "a:b/c@0.2.0"),
            ("a:b/c@0.0.1", "a:b/c@0.0.2"),
            ("a:b/c@1.0.0", "a:b/c@2.0.0"),
            ("a:b/c@0.1.0", "a:b/d@0.1.0"),
            ("a:b/c@0.1.0", "a:b/c"),
            ("a:b/c@0.1.0", "a:b/c@0.1.0-rc1"),
        ] {
            assert!(!same_track(one, other), "{one} {other}");
        }
    }
}
