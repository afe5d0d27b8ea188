//! The source of `keelson-sdk`, in the program.

macro_rules! source {
    ($($file:literal,)+) => {
        /// By path in `src`.
        pub(super) const FILES: &[(&str, &str)] =
            &[$(($file, include_str!(concat!("../../../../../plugins/sdk/src/", $file))),)+];
    };
}

source![
    "alloc.rs",
    "bindings.rs",
    "entry.rs",
    "failure.rs",
    "finalize.rs",
    "kinds.rs",
    "lib.rs",
    "log.rs",
    "manifest.rs",
    "read.rs",
    "related.rs",
    "rendering.rs",
    "request.rs",
    "testing.rs",
    "testing/finalize.rs",
    "testing/rules.rs",
    "testing/yaml.rs",
];
