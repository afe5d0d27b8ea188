//! What commands say beside their output: lines on stderr.

use std::io::Write;

pub(crate) fn say_log(plugin: &str, line: &crate::sandbox::LogLine) {
    let level = line.level.as_str().to_ascii_lowercase();
    let fields: String = line.fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    say(&format!("plugin {plugin}: {level}: {}{fields}", line.message));
}

/// One line on stderr. Nobody is there to be told that it is closed.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "keelson: {text}");
}
