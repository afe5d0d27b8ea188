//! Plugin folders as people fill them, good and bad, and the commands on them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "../hostile/guest.rs"]
#[allow(dead_code, reason = "shared with the hostile components")]
mod guest;
mod folder;
mod commands;
mod golden;
mod author;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use folder::{Folder, component, guest};
use keelson::limits::{COMPONENT_BYTES, DOCUMENT_BYTES};
use keelson::plugin::{Dispatch, Registry, SourceError};
use keelson::sandbox::Engine;
use serde_json::json;

async fn load(folder: &Folder) -> Registry {
    Registry::load(folder.path(), &Engine::new(2).unwrap()).await.unwrap()
}

/// Reason and message of the problem with this file.
fn problem(registry: &Registry, file: &str) -> (String, String) {
    let of_file: Vec<_> = registry.problems().iter().filter(|problem| problem.file == file).collect();
    assert_eq!(of_file.len(), 1, "{file}: {:?}", registry.problems());
    (of_file[0].reason.clone(), of_file[0].message.clone())
}

#[tokio::test]
async fn a_folder_that_is_none_is_named() {
    let folder = Folder::new();
    let engine = Engine::new(1).unwrap();
    let load = async |path: std::path::PathBuf| Registry::load(&path, &engine).await.err().unwrap();
    let missing = folder.path().join("missing");
    assert_eq!(load(missing.clone()).await, SourceError::Missing { folder: missing });
    folder.put("file", "");
    let file = folder.path().join("file");
    assert_eq!(load(file.clone()).await, SourceError::NotAFolder { folder: file });
    folder.put("alone.wasm", component("a"));
    let empty = load(folder.path().to_owned()).await;
    assert_eq!(empty, SourceError::Empty { folder: folder.path().to_owned() });
    assert!(empty.to_string().contains("NAME.yaml beside NAME.wasm"));
}

/// Everything that can be wrong with one plugin, in one folder with a good one.
#[tokio::test]
async fn each_bad_plugin_is_told_and_leaves_the_good_one() {
    let folder = Folder::new();
    folder.plugin("good", "good");
    let mut wanted: Vec<(String, &str, Vec<&str>)> = Vec::new();
    let mut want = |name: &str, reason, words: &[&'static str]| {
        wanted.push((format!("{name}.yaml"), reason, words.to_vec()));
    };

    folder.put("garbage.yaml", "a: [b\n}");
    want("garbage", "DocumentInvalid", &["garbage.yaml", "is not YAML", "line 1"]);
    folder.put("binary.yaml", [0xff, 0xfe, 0x00]);
    want("binary", "DocumentInvalid", &["binary.yaml", "not UTF-8"]);
    folder.put("nothing.yaml", "");
    want("nothing", "DocumentInvalid", &["nothing.yaml", "holds 0 YAML documents"]);
    folder.put("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n");
    want("pod", "DocumentInvalid", &["pod.yaml", "not a Plugin document", "kind Pod"]);
    folder.put("large.yaml", " ".repeat(usize::try_from(DOCUMENT_BYTES).unwrap() + 1));
    want("large", "DocumentInvalid", &["large.yaml", "larger than 256 KiB"]);
    fs::create_dir(folder.path().join("folder.yaml")).unwrap();
    want("folder", "DocumentInvalid", &["folder.yaml", "is a folder, not a file"]);
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe.yaml")).status().unwrap().success());
    want("pipe", "DocumentInvalid", &["pipe.yaml", "is a pipe"]);
    symlink("nowhere", folder.path().join("dangling.yaml")).unwrap();
    want("dangling", "DocumentInvalid", &["dangling.yaml", "does not exist"]);
    symlink("/etc/passwd", folder.path().join("outside.yaml")).unwrap();
    want("outside", "DocumentInvalid", &["outside.yaml", "leads out of the plugin folder"]);
    folder.plugin_with("field", "f", &component("f"), |text| text.replace("grant:", "grants:"));
    want("field", "DocumentInvalid", &["field.yaml", "unknown field `grants`"]);
    folder.plugin_with("distrust", "d", &component("d"), |text| text.replace("  trust:", "  #"));
    want("distrust", "DocumentInvalid", &["distrust.yaml", "missing field `trust`"]);

    for (name, path, words) in [
        ("absent", "nothing.wasm", ["nothing.wasm", "does not exist"]),
        ("above", "../good.wasm", ["../good.wasm", "without `..`"]),
        ("absolute", "/etc/passwd", ["/etc/passwd", "must be relative"]),
        ("linked", "link.wasm", ["link.wasm", "leads out of the plugin folder"]),
        ("directory", "folder.wasm", ["folder.wasm", "is a folder"]),
        ("huge", "huge.wasm", ["huge.wasm", "larger than 65536 KiB"]),
    ] {
        folder.plugin_with(name, name, &component(name), |text| {
            text.replace(&format!("path: {name}.wasm"), &format!("path: {path}"))
        });
        want(name, "ArtifactInvalid", &[".yaml: spec.source.file.path: ", words[0], words[1]]);
    }
    symlink("/etc/passwd", folder.path().join("link.wasm")).unwrap();
    fs::create_dir(folder.path().join("folder.wasm")).unwrap();
    fs::File::create(folder.path().join("huge.wasm")).unwrap().set_len(COMPONENT_BYTES + 1).unwrap();

    folder.plugin_with("changed", "c", &component("c"), |text| text);
    folder.put("changed.wasm", component("other"));
    want("changed", "DigestMismatch", &["changed.yaml", "spec.trust.sha256"]);
    folder.plugin_with("core", "core", &wat::parse_str("(module)").unwrap(), |text| text);
    want("core", "ArtifactInvalid", &["core.yaml", "core module"]);
    folder.plugin_with("text", "text", b"(component)", |text| text);
    want("text", "ArtifactInvalid", &["text.yaml", "text"]);
    folder.plugin_with("noise", "noise", &[0xfe; 100], |text| text);
    want("noise", "ArtifactInvalid", &["noise.yaml"]);
    let wasi = r#"(component (import "wasi:http/outgoing-handler@0.2.3" (instance
        (export "handle" (func (result string))))))"#;
    folder.plugin_with("wasi", "wasi", &wat::parse_str(wasi).unwrap(), |text| text);
    want("wasi", "ImportDenied", &["wasi:http/outgoing-handler", "wasm32-unknown-unknown"]);
    let mut looping = guest("looping");
    looping.describe = "(loop $l (br $l))".to_owned();
    folder.plugin_with("looping", "looping", &looping.component(), |text| text);
    want("looping", "OutOfFuel", &["looping.yaml", "describe"]);
    folder.plugin_with("greedy", "greedy", &component("greedy"), |text| text.replace("kind: Pod", "kind: Service"));
    want("greedy", "NotGranted", &["greedy.yaml", "Pod", "grant.children"]);
    folder.plugin_with("wider", "wider", &component("other"), |text| text);
    want("wider", "NotGranted", &["wider.yaml", "/spec/type", "other"]);
    folder.plugin_with("same", "good", &component("good"), |text| text);
    want("same", "Conflict", &["same.yaml", "plugin good", "Thing.example.io"]);
    folder.plugin_with("zdouble", "zz", &component("zz"), |text| text.replace("name: zdouble", "name: good"));
    want("zdouble", "Conflict", &["zdouble.yaml", "good.yaml"]);

    let registry = load(&folder).await;
    let mut wrong = Vec::new();
    for (file, reason, words) in &wanted {
        let (found, message) = problem(&registry, file);
        if found != *reason || !words.iter().all(|word| message.contains(word)) {
            wrong.push(format!("{file}: wanted {reason} with {words:?}, got {found}: {message}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(registry.problems().len(), wanted.len(), "{:?}", registry.problems());
    let serving: Vec<&str> = registry.plugins().iter().map(|plugin| plugin.name.as_str()).collect();
    assert_eq!(serving, ["good"]);
    assert!(registry.plugins()[0].component.describe().0.is_ok());
}

#[tokio::test]
async fn an_unreadable_file_is_told() {
    let folder = Folder::new();
    folder.plugin("good", "good");
    folder.plugin("locked", "locked");
    // A link to itself: what not even root can open.
    let file = folder.path().join("locked.wasm");
    fs::remove_file(&file).unwrap();
    symlink("locked.wasm", &file).unwrap();
    let (reason, message) = problem(&load(&folder).await, "locked.yaml");
    assert_eq!(reason, "ArtifactInvalid");
    assert!(message.contains("locked.wasm cannot be read: Too many levels of symbolic links"), "{message}");
}

#[tokio::test]
async fn a_volume_of_links_is_read() {
    let (folder, other) = (Folder::new(), Folder::new());
    other.plugin("a", "a");
    let data = folder.path().join("..2026_01_01");
    fs::create_dir(&data).unwrap();
    symlink("..2026_01_01", folder.path().join("..data")).unwrap();
    for name in ["a.yaml", "a.wasm"] {
        fs::copy(other.path().join(name), data.join(name)).unwrap();
        symlink(format!("..data/{name}"), folder.path().join(name)).unwrap();
    }
    let registry = load(&folder).await;
    assert_eq!((registry.plugins().len(), registry.problems()), (1, [].as_slice()));
}

#[tokio::test]
async fn objects_find_their_plugin_or_are_told_why_not() {
    let folder = Folder::new();
    folder.plugin("a", "a");
    folder.plugin("b", "b");
    folder.plugin("broken", "c");
    folder.put("broken.wasm", "");
    folder
        .plugin_with("misspelt", "d", &component("d"), |text| text.replace("kind: Plugin", "kind: Plugin\nspecs: {}"));
    let registry = load(&folder).await;
    let kinds = registry.parent_kinds();
    assert_eq!(kinds.len(), 1);
    assert_eq!((kinds[0].plural.as_str(), kinds[0].versions.as_slice()), ("things", ["v1".to_owned()].as_slice()));

    let ask = |spec: serde_json::Value| registry.dispatch("example.io", "Thing", &json!({"spec": spec}));
    let served = |value: &str| match ask(json!({"type": value})) {
        Dispatch::Plugin(plugin) => plugin.name.clone(),
        _ => panic!("{value} is served"),
    };
    assert_eq!((served("a"), served("b")), ("a".to_owned(), "b".to_owned()));
    for (value, plugin, reason) in [("c", "broken", "DigestMismatch"), ("d", "misspelt", "DocumentInvalid")] {
        match ask(json!({"type": value})) {
            Dispatch::Unavailable { plugin: name, reason: why, message: _ } => {
                assert_eq!((name.as_str(), why.as_str()), (plugin, reason));
            }
            _ => panic!("{value} waits for its plugin"),
        }
    }
    for (spec, reason, words) in [
        (json!(null), "InvalidSpec", "/spec/type is missing"),
        (json!({}), "InvalidSpec", "/spec/type is missing"),
        (json!({"type": null}), "InvalidSpec", "/spec/type is missing"),
        (json!({"type": 5}), "InvalidSpec", "must be a string, not a number"),
        (json!({"type": ["a"]}), "InvalidSpec", "must be a string, not a list"),
        (json!({"type": "x"}), "NoPlugin", "no plugin serves /spec/type = \"x\""),
    ] {
        match ask(spec) {
            Dispatch::Invalid { reason: why, path, message, allowed } => {
                assert_eq!((why, path.as_str()), (reason, "/spec/type"));
                assert!(message.contains(words), "{message}");
                assert_eq!(allowed, ["a", "b", "c", "d"]);
            }
            _ => panic!("{words}"),
        }
    }
}
