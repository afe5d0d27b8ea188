//! Plugins as the toolchains of other languages make them, WASI and all, in this host's sandbox: `make test-languages`
//! builds them (tests/languages) and runs these tests, which a plain `cargo test` leaves out.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use keelson::limits::PluginLimits;
use keelson::sandbox::{CallError, Children, Component, Engine, Request, Usage};
use serde_json::{Value, json};
use wit_component::DecodedWasm;
use wit_parser::WorldItem;

const WITH_WASI: [&str; 4] = ["python", "javascript", "rust-wasip1", "rust-wasip2"];
const STUBBED: [&str; 2] = ["python-stub", "javascript-stub"];

fn languages() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-languages");
    std::env::var_os("KEELSON_LANGUAGES").map_or(default, PathBuf::from)
}

fn bytes(guest: &str) -> Vec<u8> {
    let path = languages().join(format!("{guest}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}: make test-languages", path.display()))
}

/// Compiled once for all tests: Python takes seconds.
fn component(guest: &str) -> Component {
    static COMPILED: Mutex<BTreeMap<String, Component>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let compile = || Engine::new(8).unwrap().compile(&bytes(guest), PluginLimits::default()).unwrap();
    compiled.entry(guest.to_owned()).or_insert_with(compile).clone()
}

fn request(act: &str, seed: u64) -> Request {
    let parent = json!({"apiVersion": "zalando.org/v1", "kind": "Database", "metadata": {"name": "one",
        "namespace": "default", "uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"example.org/act": act}}, "spec": {"type": "mongo"}});
    Request {
        parent: parent.to_string().into(),
        config: "{}".into(),
        selector_labels: vec![("keelson.dev/instance".into(), "0000".into())],
        children: Vec::new(),
        related: Vec::new(),
        secrets: Vec::new(),
        now: None,
        seed,
    }
}

/// The Service's annotations, `example.org/` taken off.
fn seen(guest: &str, request: &Request) -> (Result<BTreeMap<String, String>, CallError>, Usage) {
    let (rendered, usage) = component(guest).render(request);
    let seen = rendered.map(|rendered| {
        let Children::Exactly(children) = rendered.into_rendering().children else { panic!("{guest}: no children") };
        assert_eq!(children.iter().map(|child| &child.object["kind"]).collect::<Vec<_>>(), ["Service", "Pod"]);
        let annotations = children[0].object["metadata"].get("annotations").and_then(Value::as_object);
        let text = |(key, value): (&String, &Value)| {
            (key.trim_start_matches("example.org/").to_owned(), value.as_str().unwrap().to_owned())
        };
        annotations.into_iter().flatten().map(text).collect()
    });
    (seen, usage)
}

fn imports(component: &[u8]) -> Vec<String> {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component).unwrap() else { panic!("a package") };
    let mut imports = Vec::new();
    for (key, item) in &resolve.worlds[world].imports {
        let name = resolve.name_world_key(key);
        let WorldItem::Interface { id, .. } = item else { panic!("{name} is no interface") };
        let functions = resolve.interfaces[*id].functions.keys().map(|function| format!("{name}#{function}"));
        imports.extend(functions.filter(|import| import.starts_with("wasi:")));
    }
    imports.sort();
    imports
}

/// With `UPDATE=1` the lists are written; look at the difference.
#[test]
#[ignore = "make test-languages"]
fn what_each_toolchain_imports_is_as_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/languages/imports");
    for guest in WITH_WASI {
        let imports: String = imports(&bytes(guest)).iter().map(|import| format!("{import}\n")).collect();
        let list = folder.join(format!("{guest}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&list, &imports).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&list).unwrap(), imports, "{guest}: other imports than {}", list.display());
    }
    for guest in STUBBED {
        assert!(imports(&bytes(guest)).is_empty(), "{guest}");
    }
}

#[test]
#[ignore = "make test-languages"]
fn each_renders_well_within_the_default_limits() {
    for guest in WITH_WASI.into_iter().chain(STUBBED) {
        let (manifest, _) = component(guest).describe();
        assert_eq!(manifest.unwrap().version, "1.0.0", "{guest}");
        let (rendered, usage) = seen(guest, &request("say nothing", 1));
        rendered.unwrap_or_else(|error| panic!("{guest}: {error}"));
        let limits = PluginLimits::default();
        let (fuel, bytes) = (usage.fuel, usage.memory_bytes);
        assert!(fuel < limits.fuel / 10 && bytes < limits.memory_bytes() / 3, "{guest}: {fuel} fuel, {bytes} bytes");
    }
}

#[test]
#[ignore = "make test-languages"]
fn what_is_printed_reaches_the_log() {
    for guest in WITH_WASI {
        let (_, usage) = seen(guest, &request("", 1));
        let lines: Vec<_> = usage.log.iter().map(|line| (line.level, line.message.as_str())).collect();
        assert_eq!(lines, [(tracing::Level::INFO, "renders one"), (tracing::Level::WARN, "takes care")], "{guest}");
    }
}

#[test]
#[ignore = "make test-languages"]
fn the_world_follows_from_the_request() {
    let nowhere = [("environment", "{}"), ("environment", "[]"), ("environment", "undefined")];
    for guest in WITH_WASI {
        let world = |seed, now| seen(guest, &Request { now, ..request("", seed) }).0.unwrap();
        let first = world(1, None);
        assert_eq!(first, world(1, None), "{guest}");
        let other = world(2, None);
        for (key, value) in &first {
            let random = ["random", "uuid"].contains(&key.as_str());
            assert_eq!(random, other[key] != *value, "{guest}: {key} {value}, {}", other[key]);
        }
        let made = ["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00.000Z", "1767225600"];
        assert!(made.contains(&first["now"].as_str()), "{guest}: {first:?}");
        let later = world(1, Some(2_000_000_000));
        assert!(
            ["2033-05-18T03:33:20+00:00", "2033-05-18T03:33:20.000Z", "2000000000"].contains(&later["now"].as_str())
        );
        assert!(nowhere.contains(&("environment", first["environment"].as_str())), "{guest}: {first:?}");
        let refused = |key: &str, words: &[&str]| first.get(key).is_none_or(|seen| words.contains(&seen.as_str()));
        assert!(refused("file", &["FileNotFoundError", "entity not found"]), "{guest}: {first:?}");
        assert!(refused("network", &["permission denied", "unsupported"]), "{guest}: {first:?}");
    }
}

#[test]
#[ignore = "make test-languages"]
fn a_sleep_takes_no_time() {
    for (guest, act) in [("python", "sleep"), ("python", "wait"), ("rust-wasip1", "sleep"), ("rust-wasip2", "wait")] {
        component(guest);
        let start = Instant::now();
        let (rendered, _) = seen(guest, &request(act, 1));
        assert!(rendered.is_ok(), "{guest} {act}: {:?}", rendered.err());
        assert!(start.elapsed() < Duration::from_secs(20), "{guest} {act}");
    }
}

#[test]
#[ignore = "make test-languages"]
fn each_end_is_explained() {
    let cause = "in pick KeyError: 'colour'";
    for (guest, act, reason, words) in [
        ("python", "raise", "Trap", cause),
        ("python", "refuse", "WrongColour", "no such colour"),
        ("python", "exit", "Exited", "ended itself with code 1"),
        ("python", "loop", "OutOfFuel", "50000000"),
        ("python-stub", "", "Trap", "unreachable"),
        ("javascript", "raise", "Trap", "message: Some(\"no such colour\"), stack: Some(\"    at render (/guest.js:"),
        ("javascript", "refuse", "WrongColour", "no such colour"),
        ("javascript", "loop", "OutOfFuel", ""),
        ("javascript-stub", "", "Trap", "unreachable"),
        ("rust-wasip1", "raise", "Trap", "after it logged: panicked at src/lib.rs:"),
        ("rust-wasip1", "exit", "Exited", "code 1"),
        ("rust-wasip2", "raise", "Trap", "no such colour"),
        ("rust-wasip2", "refuse", "WrongColour", "no such colour"),
        ("rust-wasip2", "exit", "Exited", "code 1"),
    ] {
        let error = seen(guest, &request(act, 1)).0.expect_err(act);
        assert_eq!(error.reason(), reason, "{guest} {act}: {error}");
        assert!(error.to_string().contains(words), "{guest} {act}: {error}");
        assert!(seen(guest, &request("say nothing", 1)).0.is_ok(), "{guest} after {act}");
    }
}

/// `keelson render` of all objects at once, since Python compiles for seconds: how it ends, stdout, stderr.
fn render_sites(objects: &str) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_keelson"));
    command.args(["render", "-f", "-", "--plugins"]).arg(languages().join("staticsite"));
    let pipe = std::process::Stdio::piped;
    let mut child = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(objects.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

/// What the host adds is taken off.
fn as_rendered(mut child: Value) -> Value {
    let metadata = child["metadata"].as_object_mut().unwrap();
    metadata.remove("namespace");
    let labels = metadata["labels"].as_object_mut().unwrap();
    labels.retain(|key, _| !key.starts_with("keelson.dev/") && !key.starts_with("app.kubernetes.io/"));
    if labels.is_empty() {
        metadata.remove("labels");
    }
    child
}

#[test]
#[ignore = "make test-languages"]
fn the_example_in_python_renders_its_fixtures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/staticsite/fixtures");
    let fixtures: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let read = |fixture: &Path, name: &str| std::fs::read_to_string(fixture.join(name)).ok();
    let objects: Vec<String> = fixtures.iter().map(|fixture| read(fixture, "object.yaml").unwrap()).collect();
    let (code, stdout, stderr) = render_sites(&objects.join("---\n"));
    let rendered: Vec<Value> = documents(&stdout).into_iter().map(as_rendered).collect();
    for fixture in &fixtures {
        let name = fixture.file_name().unwrap().to_str().unwrap();
        let of_it: Vec<Value> = rendered.iter().filter(|child| child["metadata"]["name"] == name).cloned().collect();
        let mut expected = Vec::new();
        if let Some(failure) = read(fixture, "failure.yaml") {
            let failure = &documents(&failure)[0];
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let [reason, message, remedy] = ["reason", "message", "remedy"].map(|key| text(&failure[key]));
            let words = format!("/{name}: {reason}: {message}; at {}; {remedy}", text(&failure["fields"][0]));
            assert!(stderr.contains(&words), "{words:?} is not in {stderr}");
        } else {
            let (children, beside): (Vec<_>, Vec<_>) = documents(&read(fixture, "children.yaml").unwrap())
                .into_iter()
                .partition(|document| document["kind"] != "Rendering");
            assert!(stderr.contains(&format!("/{name}: status: {}", beside[0]["status"])), "{name}: {stderr}");
            assert_eq!(children.len(), 3, "{name}");
            expected = children;
        }
        assert_eq!(of_it, expected, "{name}");
    }
    // One of them is refused.
    assert_eq!((code, fixtures.len()), (Some(1), 3), "{stderr}");
}
