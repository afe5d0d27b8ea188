//! Compiling as `keelson run` does it: in a child that is limited, with what it made kept in a folder.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use keelson::limits::PluginLimits;
use keelson::sandbox::{Cache, Compiler, Engine, LoadError};

/// Removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("keelson-compile-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn entries(&self) -> Vec<PathBuf> {
        let mut all: Vec<_> =
            fs::read_dir(self.0.join("compiled")).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn engine(cache: Option<&Path>) -> Engine {
    let cache = cache.map(|folder| Cache::open(folder).unwrap());
    Engine::with_compiler(1, Compiler::Child { program: env!("CARGO_BIN_EXE_keelson").into(), cache }).unwrap()
}

/// Compiles, and is no plugin all the same: that is said after the compiler was asked.
fn component(number: usize) -> Vec<u8> {
    wat::parse_str(format!("(component (core module (func (export \"f\") (result i32) i32.const {number})))")).unwrap()
}

fn compile(engine: &Engine, bytes: &[u8]) -> LoadError {
    engine.compile(bytes, PluginLimits::default()).unwrap_err()
}

fn counts(engine: &Engine) -> [u64; 3] {
    [engine.counts().compiled(), engine.counts().cached(), engine.counts().rebuilt()]
}

#[test]
fn what_was_compiled_once_is_not_compiled_again() {
    let folder = Folder::new("once");
    let first = engine(Some(&folder.0));
    let error = compile(&first, &component(1)).to_string();
    assert!(error.contains("it exports no keelson:operator/operator"), "{error}");
    assert_eq!(compile(&first, &component(1)).to_string(), error);
    assert_eq!(counts(&first), [1, 1, 0]);
    let second = engine(Some(&folder.0));
    assert_eq!(compile(&second, &component(1)).to_string(), error);
    compile(&second, &component(2));
    assert_eq!(counts(&second), [1, 1, 0]);
    assert_eq!(folder.entries().len(), 2);
    for entry in folder.entries() {
        assert_eq!(fs::metadata(&entry).unwrap().permissions().mode() & 0o777, 0o600, "{}", entry.display());
    }
}

#[test]
fn a_damaged_entry_is_made_anew() {
    let folder = Folder::new("damaged");
    let damages: [fn(&mut Vec<u8>); 5] = [
        |bytes| bytes.truncate(bytes.len() / 2),
        Vec::clear,
        |bytes| bytes.push(0),
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        |bytes| bytes[20] ^= 0x80,
    ];
    compile(&engine(Some(&folder.0)), &component(1));
    for (i, damage) in damages.iter().enumerate() {
        let entry = folder.entries().remove(0);
        let mut bytes = fs::read(&entry).unwrap();
        damage(&mut bytes);
        fs::write(&entry, bytes).unwrap();
        let engine = engine(Some(&folder.0));
        compile(&engine, &component(1));
        compile(&engine, &component(1));
        assert_eq!(counts(&engine), [1, 1, 1], "damage {i}");
    }
}

#[test]
fn what_others_could_have_written_does_not_count() {
    let folder = Folder::new("others");
    compile(&engine(Some(&folder.0)), &component(1));
    let entry = folder.entries().remove(0);
    // Writable for others; a link to the very same bytes.
    fs::set_permissions(&entry, fs::Permissions::from_mode(0o622)).unwrap();
    let first = engine(Some(&folder.0));
    compile(&first, &component(1));
    assert_eq!(counts(&first), [1, 0, 1]);
    let elsewhere = folder.0.join("elsewhere");
    fs::rename(&entry, &elsewhere).unwrap();
    symlink(&elsewhere, &entry).unwrap();
    let second = engine(Some(&folder.0));
    compile(&second, &component(1));
    assert_eq!(counts(&second), [1, 0, 1]);
    // Nor a folder that is a link, or that others can write.
    let compiled = folder.0.join("compiled");
    fs::set_permissions(&compiled, fs::Permissions::from_mode(0o777)).unwrap();
    let error = Cache::open(&folder.0).unwrap_err().to_string();
    assert!(error.contains("can be written by others"), "{error}");
    fs::set_permissions(&compiled, fs::Permissions::from_mode(0o700)).unwrap();
    let linked = Folder::new("linked");
    symlink(&compiled, linked.0.join("compiled")).unwrap();
    let error = Cache::open(&linked.0).unwrap_err().to_string();
    assert!(error.contains("is no folder"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_at_once() {
    let error = Cache::open(Path::new("/proc/self")).unwrap_err().to_string();
    assert!(error.contains("/proc/self/compiled"), "{error}");
}

/// Few bytes, and much to keep track of: loops in loops, each of which changes every local.
fn bomb() -> Vec<u8> {
    const LOCALS: usize = 20_000;
    const LOOPS: usize = 200;
    let body: String =
        (1..LOCALS).map(|i| format!("(local.set {i} (i32.add (local.get {}) (local.get {i})))", i - 1)).collect();
    let (open, close) = ("(loop ".repeat(LOOPS), "(br_if 0 (local.get 0)))".repeat(LOOPS));
    let locals = "i32 ".repeat(LOCALS);
    wat::parse_str(format!("(component (core module (func (param i32) (local {locals}) {open} {body} {close})))"))
        .unwrap()
}

#[test]
fn a_compiler_that_takes_too_much_is_ended_and_others_go_on() {
    let engine = engine(None);
    let bytes = bomb();
    assert!(bytes.len() < 512 * 1024, "{}", bytes.len());
    let error = compile(&engine, &bytes);
    assert_eq!(error.reason(), "CompileFailed", "{error}");
    let text = error.to_string();
    assert!(
        text.contains("MiB of memory") || text.contains("longer than") || text.contains("processor time"),
        "{text}"
    );
    assert!(compile(&engine, &component(1)).to_string().contains("it exports no"));
    assert_eq!(counts(&engine), [1, 0, 0]);
}

#[test]
fn the_child_has_nothing_of_its_parent() {
    // A descriptor that is not closed by itself, as a careless parent leaves them.
    let open = fs::File::open("/proc/self/status").unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&open);
    let mut child = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("exec 7</dev/null 9</dev/null {fd}</dev/null; SECRET=x exec \"$0\" compile-component pooling"),
        ])
        .arg(env!("CARGO_BIN_EXE_keelson"))
        .env("SECRET", "x")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let descriptors = format!("/proc/{}/fd", child.id());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let open = loop {
        let names = fs::read_dir(&descriptors).unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut open: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
        open.sort_unstable();
        let program = fs::read_link(format!("/proc/{}/exe", child.id())).unwrap_or_default();
        if program.ends_with("keelson") && open == [0, 1, 2] {
            break open;
        }
        assert!(std::time::Instant::now() < deadline, "{open:?} of {}", program.display());
        std::thread::yield_now();
    };
    assert_eq!(open, [0, 1, 2]);
    drop(child.stdin.take());
    child.wait().unwrap();
}
