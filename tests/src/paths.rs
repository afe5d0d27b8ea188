//! Where things are: what was built, what the repository holds, where a run keeps its state.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// The checkout.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The host's program.
pub fn binary() -> PathBuf {
    from_environment("KEELSON_BIN", "release/keelson")
}

/// The host's program with a clock that can be put wrong: `make test-clock`.
pub(crate) fn test_clock_binary() -> PathBuf {
    from_environment("KEELSON_TEST_CLOCK_BIN", "release/keelson-test-clock")
}

/// The folder of built plugins.
pub fn plugins() -> PathBuf {
    from_environment("KEELSON_PLUGINS", "plugins")
}

/// The guests of the tests: `make test-guests`.
pub fn guests() -> PathBuf {
    from_environment("KEELSON_GUESTS", "test-guests")
}

/// The guests that toolchains of other languages have made: `make test-languages`.
pub fn languages() -> PathBuf {
    from_environment("KEELSON_LANGUAGES", "test-languages")
}

/// A folder of this run for `name`; what runs that have ended left behind is removed first, by their own script.
pub fn state(name: &str) -> anyhow::Result<PathBuf> {
    let all = from_environment("KEELSON_TESTS_DIR", "keelson-tests");
    let dir = all.join(std::process::id().to_string()).join(name);
    std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir)
}

/// Ends what crashed runs left running, and removes their folders.
pub fn sweep() -> anyhow::Result<()> {
    let all = from_environment("KEELSON_TESTS_DIR", "keelson-tests");
    for run in std::fs::read_dir(&all).into_iter().flatten().flatten() {
        let name = run.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        if Path::new("/proc").join(pid.to_string()).exists() {
            continue;
        }
        for cluster in std::fs::read_dir(run.path()).into_iter().flatten().flatten() {
            crate::cluster::script("down", &cluster.path(), &[])?;
        }
        std::fs::remove_dir_all(run.path())?;
    }
    Ok(())
}

fn from_environment(name: &str, in_target: &str) -> PathBuf {
    std::env::var_os(name).filter(|v| !v.is_empty()).map_or_else(|| target().join(in_target), PathBuf::from)
}

/// The target folder: test programs are in TARGET/release/deps.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(3).map_or_else(|| repository().join("target"), Path::to_path_buf)
}
