//! The author's way: from an empty folder to children, in each language, and the tutorial followed word by word.
//!
//! Those of Python and JavaScript are left out of a plain `cargo test`: with componentize-py and componentize-qjs in the
//! PATH they run by `--ignored`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod tutorial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty folder that goes with the value.
struct Empty(PathBuf);

impl Empty {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("author-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// With `keelson` in the PATH, and one target folder for all: dependencies are compiled once.
fn prepared(program: &str, folder: &Path) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_keelson")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([binary.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new(program);
    command.current_dir(folder).env("PATH", path);
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("author-target"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn keelson(folder: &Path, args: &[&str]) -> Output {
    prepared("keelson", folder).args(args).output().unwrap()
}

/// What it prints.
fn works(folder: &Path, args: &[&str]) -> String {
    let output = keelson(folder, args);
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// new → build → test → inspect → render, and another default `port` that the fixtures notice.
fn from_nothing(lang: &str, source: &str, port: &str) {
    let empty = Empty::new(lang);
    let told = works(&empty.0, &["plugin", "new", "web-shop", "--lang", lang]);
    for step in ["cd ./web-shop", "keelson plugin build", "keelson plugin test", "keelson render -f"] {
        assert!(told.contains(step), "{told}");
    }
    let again = keelson(&empty.0, &["plugin", "new", "web-shop", "--lang", lang]);
    assert_eq!(again.status.code(), Some(1), "a folder that is there is somebody's work");

    let folder = empty.0.join("web-shop");
    assert!(works(&folder, &["plugin", "build"]).contains("web-shop.wasm"));
    let tested = works(&folder, &["plugin", "test"]);
    assert!(tested.contains("small: passes") && tested.contains("2 fixtures: 2 passed, 0 failed"), "{tested}");
    let inspected = works(&folder, &["plugin", "inspect", ".", "--output", "json"]);
    let inspected: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected[0]["contract"], "0.1.0");
    assert_eq!(inspected[0]["manifest"]["serves"][0]["kind"], "WebShop");
    assert_eq!(inspected[0]["manifestFrom"], "section");
    assert_eq!(inspected[0]["fixtures"][1]["name"], "small");
    let children = works(&folder, &["render", "-f", "fixtures/small/object.yaml", "--plugins", "out"]);
    let children: Vec<serde_json::Value> = serde_saphyr::from_multiple(&children).unwrap();
    let kinds: Vec<_> = children.iter().map(|child| child["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Deployment", "Service"]);
    assert!(works(&folder, &["plugin", "conformance", "out/web-shop.wasm"]).contains("8 passed, 0 failed"));

    // What is rendered otherwise is shown, is not built, and is taken over by a word.
    let file = folder.join(source);
    let code = fs::read_to_string(&file).unwrap();
    fs::write(&file, code.replace(port, &port.replace("80", "8080"))).unwrap();
    let differs = keelson(&folder, &["plugin", "test"]);
    let shown = text(&differs.stdout);
    assert_eq!(differs.status.code(), Some(1), "{shown}{}", text(&differs.stderr));
    for words in [
        "small: differs (- fixtures/small/children.yaml, + rendered)",
        "  Service small: /spec/ports/0/port\n  - 80\n  + 8080\n",
        "2 fixtures: 1 passed, 1 failed; --update",
    ] {
        assert!(shown.contains(words), "{words:?}: {shown}");
    }
    let before = fs::read(folder.join("out/web-shop.wasm")).unwrap();
    let build = keelson(&folder, &["plugin", "build"]);
    assert_eq!(build.status.code(), Some(1));
    assert!(text(&build.stderr).contains("not built: 1 of 2 fixtures fail"), "{}", text(&build.stderr));
    assert_eq!(fs::read(folder.join("out/web-shop.wasm")).unwrap(), before);
    assert!(
        works(&folder, &["plugin", "test", "--update"]).contains("small: written into fixtures/small/children.yaml")
    );
    works(&folder, &["plugin", "build"]);
    assert_ne!(fs::read(folder.join("out/web-shop.wasm")).unwrap(), before);
}

#[test]
fn rust_from_nothing_to_children() {
    from_nothing("rust", "src/lib.rs", "unwrap_or(80)");
}

#[test]
#[ignore = "needs componentize-py"]
fn python_from_nothing_to_children() {
    from_nothing("python", "app.py", "\"port\", 80");
}

#[test]
#[ignore = "needs componentize-qjs"]
fn javascript_from_nothing_to_children() {
    from_nothing("js", "app.js", "port = 80");
}

#[test]
fn a_missing_tool_is_told_with_the_command_that_installs_it() {
    let empty = Empty::new("tools");
    for (lang, tool, install) in [
        ("js", "componentize-qjs", "npm install --save-dev componentize-qjs@"),
        ("python", "componentize-py", "pip install componentize-py=="),
    ] {
        works(&empty.0, &["plugin", "new", lang, "--lang", lang]);
        let binary = Path::new(env!("CARGO_BIN_EXE_keelson"));
        let mut command = Command::new(binary);
        command.args(["plugin", "build", lang]).current_dir(&empty.0).env("PATH", "/nowhere");
        let output = command.output().unwrap();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(told.contains(&format!("{tool} is not installed")) && told.contains(install), "{told}");
    }
}

#[test]
fn a_folder_that_is_no_plugin_is_told() {
    let empty = Empty::new("none");
    let told = |args: &[&str]| text(&keelson(&empty.0, args).stderr);
    assert!(told(&["plugin", "build", "missing"]).contains("no folder missing"));
    assert!(told(&["plugin", "build"]).contains("has no plugin.yaml"));
    works(&empty.0, &["plugin", "new", "shop", "--lang", "js"]);
    let folder = empty.0.join("shop");
    fs::write(folder.join("app.py"), "").unwrap();
    assert!(told(&["plugin", "build", "shop"]).contains("has both app.py and app.js"));
    fs::remove_file(folder.join("app.py")).unwrap();
    fs::remove_file(folder.join("app.js")).unwrap();
    assert!(told(&["plugin", "test", "shop"]).contains("has none of Cargo.toml, app.py, app.js"));
    let template = fs::read_to_string(folder.join("plugin.yaml")).unwrap();
    fs::write(folder.join("plugin.yaml"), template.replace("    sha256: \"\"\n", "    sha256: x\n")).unwrap();
    assert!(told(&["plugin", "build", "shop"]).contains("has no sha256: \"\" to fill in"));
}
