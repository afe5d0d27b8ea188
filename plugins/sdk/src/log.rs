//! Lines in the host's log. They never affect the rendering.

pub use crate::bindings::keelson::operator::log::Level;

/// Writes one line with fields; natively to stderr.
pub fn write(level: Level, message: &str, fields: &[(&str, String)]) {
    #[cfg(target_family = "wasm")]
    {
        use crate::bindings::keelson::operator::log::{Field, log};
        let fields: Vec<Field> =
            fields.iter().map(|(key, value)| Field { key: (*key).to_owned(), value: value.clone() }).collect();
        log(level, message, &fields);
    }
    #[cfg(not(target_family = "wasm"))]
    {
        let fields: String = fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        eprintln!("{level:?} {message}{fields}");
    }
}

/// `log!(Level::Info, port = 80, "listens as {name}")`: fields first, each with
/// a `Display` value, then what `format!` takes. [`info!`] and its like know
/// their level.
#[macro_export]
macro_rules! log {
    ($level:expr, $($key:ident = $value:expr,)* $message:literal $($arguments:tt)*) => {
        $crate::log::write(
            $level,
            &::std::format!($message $($arguments)*),
            &[$((::std::stringify!($key), ::std::string::ToString::to_string(&$value))),*],
        )
    };
}

#[macro_export]
macro_rules! trace { ($($line:tt)+) => { $crate::log!($crate::Level::Trace, $($line)+) }; }
#[macro_export]
macro_rules! debug { ($($line:tt)+) => { $crate::log!($crate::Level::Debug, $($line)+) }; }
#[macro_export]
macro_rules! info { ($($line:tt)+) => { $crate::log!($crate::Level::Info, $($line)+) }; }
#[macro_export]
macro_rules! warn { ($($line:tt)+) => { $crate::log!($crate::Level::Warn, $($line)+) }; }
#[macro_export]
macro_rules! error { ($($line:tt)+) => { $crate::log!($crate::Level::Error, $($line)+) }; }
