//! The author's commands on components that no toolchain has to make.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::commands::{Output, keelson};
use crate::folder::{Folder, component, guest};
use crate::guest::Guest;

const OBJECT: &str = "apiVersion: example.io/v1\nkind: Thing\nmetadata: {name: one}\nspec: {type: a}\n";

/// An author's folder with the component in `made.wasm` and one fixture without an answer.
fn author(wasm: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.plugin_with("plugin", "a", wasm, |document| {
        let digest = crate::folder::digest(wasm);
        document.replace("name: plugin", "name: thing").replace(&digest, "").replace("plugin.wasm", "thing.wasm")
    });
    folder.put("made.wasm", wasm);
    fs::remove_file(folder.path().join("plugin.wasm")).unwrap();
    fs::create_dir_all(folder.path().join("fixtures/one")).unwrap();
    folder.put("fixtures/one/object.yaml", OBJECT);
    folder
}

fn run(folder: &Folder, command: &str, more: &[&str]) -> Output {
    let made = folder.path().join("made.wasm");
    let args = ["plugin", command, folder.path().to_str().unwrap(), "--component", made.to_str().unwrap()];
    keelson(&[&args[..], more].concat(), "")
}

/// As [`component`], with another image in its Pod.
fn of_image(image: &str) -> Guest {
    let mut guest = guest("a");
    let object = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"one","labels":{{"app":"db"}}}},
            "spec":{{"containers":[{{"name":"c","image":"{image}"}}]}}}}"#
    );
    let object = guest.text(object);
    guest.returns_children(&[object]);
    guest
}

#[test]
fn a_component_of_any_origin_gets_its_sections_and_its_document() {
    let folder = author(&component("a"));
    let unwritten = run(&folder, "build", &[]);
    assert_eq!(unwritten.code, Some(1));
    assert!(unwritten.stderr.contains("one: has neither children.yaml nor failure.yaml yet"), "{}", unwritten.stderr);
    assert_eq!(run(&folder, "test", &["--update"]).code, Some(0));
    let children = fs::read_to_string(folder.path().join("fixtures/one/children.yaml")).unwrap();
    assert!(children.contains("image: i\n") && children.ends_with('\n'), "{children}");

    let built = run(&folder, "build", &[]);
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    let out = folder.path().join("out");
    let first = fs::read(out.join("thing.wasm")).unwrap();
    let document = fs::read_to_string(out.join("thing.yaml")).unwrap();
    assert!(document.contains(&crate::folder::digest(&first)), "{document}");
    assert_eq!(run(&folder, "build", &[]).code, Some(0));
    assert_eq!(fs::read(out.join("thing.wasm")).unwrap(), first, "the same source, the same bytes");
    // What has sections already gets new ones in their place.
    folder.put("made.wasm", &first);
    assert_eq!(run(&folder, "build", &[]).code, Some(0));
    assert_eq!(fs::read(out.join("thing.wasm")).unwrap(), first);
    let rendered = keelson(&["render", "-f", "-", "--plugins", out.to_str().unwrap()], OBJECT);
    assert_eq!(rendered.code, Some(0), "{}", rendered.stderr);

    let inspected = keelson(&["plugin", "inspect", folder.path().to_str().unwrap()], "");
    for words in ["contract  0.1.0, world plugin", "manifest  wat 0.0.1 (by its section)", "fixtures  one: 1 child"] {
        assert!(inspected.stdout.contains(words), "{words}: {}", inspected.stdout);
    }
    let bare = run(&folder, "build", &["--bare", "--out", folder.path().join("bare").to_str().unwrap()]);
    assert_eq!(bare.code, Some(0), "{}", bare.stderr);
}

#[test]
fn what_a_host_would_refuse_is_told_as_the_host_tells_it() {
    let mut guest = guest("a");
    let object = guest.text(
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one"},
            "spec":{"hostNetwork":true,"containers":[{"name":"c","image":"i"}]}}"#,
    );
    guest.returns_children(&[object]);
    let folder = author(&guest.component());
    let refused = run(&folder, "test", &["--update"]);
    assert_eq!(refused.code, Some(1));
    for words in ["one: InvalidChild: plugin thing: Pod one: children[0].spec.hostNetwork", "(rule PodSecurity)"] {
        assert!(refused.stdout.contains(words), "{words}: {}", refused.stdout);
    }
    assert!(!folder.path().join("fixtures/one/children.yaml").exists(), "and is not written");

    let mut trapping = crate::folder::guest("a");
    trapping.render = "unreachable".to_owned();
    let trapped = run(&author(&trapping.component()), "test", &[]);
    assert_eq!(trapped.code, Some(1));
    assert!(trapped.stdout.contains("one: Trap: the plugin trapped: unreachable in render"), "{}", trapped.stdout);
    assert!(trapped.stderr.contains("plugin thing: error: stopped in render"), "{}", trapped.stderr);
}

#[test]
fn fixtures_that_cannot_be_read_are_told_where() {
    let folder = author(&component("a"));
    for (file, text, words) in [
        ("object.yaml", "a: [", "fixtures/one/object.yaml"),
        ("object.yaml", &*format!("{OBJECT}---\n{OBJECT}"), "holds several objects"),
        ("request.yaml", "what: 1\n", "fixtures/one/request.yaml: unknown field `what`"),
        ("request.yaml", "now: yesterday\n", "\"yesterday\" is no time"),
        (
            "request.yaml",
            "children: [{apiVersion: v1, kind: Node, metadata: {name: a}}]\n",
            "children[0]: the manifest has no",
        ),
        ("children.yaml", "- 1\n", "fixtures/one/children.yaml: document 1 is no object"),
        ("failure.yaml", "reason: X\n", "fixtures/one/failure.yaml: missing field"),
    ] {
        folder.put(&format!("fixtures/one/{file}"), text);
        let told = run(&folder, "test", &[]);
        assert_eq!(told.code, Some(1), "{text}");
        assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
        folder.put("fixtures/one/object.yaml", OBJECT);
        for file in ["request.yaml", "children.yaml", "failure.yaml"] {
            let _ = fs::remove_file(folder.path().join("fixtures/one").join(file));
        }
    }
}

fn conformance(wasm: &[u8]) -> Output {
    let folder = Folder::new();
    folder.put("a.wasm", wasm);
    keelson(&["plugin", "conformance", folder.path().join("a.wasm").to_str().unwrap()], "")
}

#[test]
fn conformance_names_the_check_that_fails() {
    let good = conformance(&component("a"));
    assert_eq!(good.code, Some(0), "{}", good.stdout);
    assert!(good.stdout.contains("8 passed, 0 failed") && good.stdout.contains("ok    pure"), "{}", good.stdout);

    let with = |change: &dyn Fn(&mut Guest)| {
        let mut guest = guest("a");
        change(&mut guest);
        guest.component()
    };
    let traps = with(&|guest| guest.render = "unreachable".to_owned());
    let loops = with(&|guest| guest.render = "(loop $l (br $l))".to_owned());
    let silent = with(&|guest| guest.describe = "unreachable".to_owned());
    let wasi = wat::parse_str(r#"(component (import "wasi:http/types@0.2.0" (instance)))"#).unwrap();
    let empty = wat::parse_str("(component)").unwrap();
    for (wasm, check, words) in [
        (&traps, "garbage", "Trap"),
        (&loops, "garbage", "OutOfFuel"),
        (&loops, "limits", "more than half of the fuel"),
        (&silent, "manifest", "Trap"),
        (&wasi, "imports", "wasi:http/types"),
        (&empty, "exports", "exports no keelson:operator/operator"),
        (&b"nonsense".to_vec(), "exports", "not begin as WebAssembly does"),
    ] {
        let Output { code, stdout, stderr } = conformance(wasm);
        assert_eq!(code, Some(1), "{check}: {stdout}{stderr}");
        let line = stdout.lines().find(|line| line.starts_with(&format!("FAIL  {check}: ")));
        assert!(line.is_some_and(|line| line.contains(words)), "{check}: {words}: {stdout}");
    }
}

/// Components that an SDK of a released contract has made serve for ever.
#[test]
fn released_components_conform() {
    let released = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/released");
    let mut count = 0;
    for version in fs::read_dir(released).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for file in fs::read_dir(version).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "wasm") {
                let Output { code, stdout, stderr } = keelson(&["plugin", "conformance", file.to_str().unwrap()], "");
                assert_eq!(code, Some(0), "{}: {stdout}{stderr}", file.display());
                assert!(!stdout.contains("it has none"), "{} has fixtures: {stdout}", file.display());
                count += 1;
            }
        }
    }
    assert!(count > 2, "only {count} released components");
}

/// A program that is ended with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn dev_shows_at_each_change_what_is_rendered_otherwise() {
    let folder = author(&of_image("i:1").component());
    let made = folder.path().join("made.wasm");
    let plugins = folder.path().join("host");
    let mut dev = Command::new(env!("CARGO_BIN_EXE_keelson"));
    dev.arg("dev").arg(folder.path()).arg("--component").arg(&made).arg("--plugins").arg(&plugins);
    let mut dev = Running(dev.stdout(Stdio::piped()).spawn().unwrap());
    let (sender, lines) = mpsc::channel();
    let stdout = BufReader::new(dev.0.stdout.take().unwrap());
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let until = |words: &str| {
        let mut seen = Vec::new();
        loop {
            let line = lines.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no {words:?}: {seen:?}"));
            let found = line.contains(words);
            seen.push(line);
            if found {
                return seen.join("\n");
            }
        }
    };
    until("one: rendered");
    until("thing.wasm is there");
    until("waits for a change");
    let first = fs::read(plugins.join("thing.wasm")).unwrap();

    folder.put("made.wasm", of_image("i:2").component());
    let shown = until("waits for a change");
    for words in ["one: is rendered otherwise", "Pod one: /spec/containers/0/image", "- \"i:1\"", "+ \"i:2\""] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_ne!(fs::read(plugins.join("thing.wasm")).unwrap(), first);

    folder.put("made.wasm", "nonsense");
    assert!(until("waits for a change").contains("ArtifactInvalid"));
    folder.put("made.wasm", of_image("i:1").component());
    assert!(until("waits for a change").contains("+ \"i:1\""));
    assert_eq!(fs::read(plugins.join("thing.wasm")).unwrap(), first);
}
