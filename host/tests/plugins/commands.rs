//! `keelson render`, `crd` and `plugin copy`, as a user runs them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::folder::{Folder, component, guest};

const THING: &str = "apiVersion: example.io/v1\nkind: Thing\nmetadata: {name: one, namespace: team}\nspec: {type: a}\n";

pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn keelson(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_keelson"))
        .args(args)
        .env_remove("WATCH_NAMESPACE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read is no fault.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn render(folder: &Path, input: &str) -> Output {
    keelson(&["render", "-f", "-", "--plugins", folder.to_str().unwrap()], input)
}

#[test]
fn children_are_printed_as_they_would_be_applied() {
    let folder = Folder::new();
    folder.plugin("a", "a");
    let Output { code, stdout, stderr } = render(folder.path(), THING);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let pods: Vec<serde_json::Value> = serde_saphyr::from_multiple(&stdout).unwrap();
    assert_eq!(pods.len(), 1, "{stdout}");
    assert_eq!(pods[0]["metadata"]["namespace"], "team");
    let labels = &pods[0]["metadata"]["labels"];
    assert_eq!(labels["app"], "db", "the plugin's own");
    assert_eq!(labels["keelson.dev/plugin"], "a");
    assert_eq!(labels["keelson.dev/instance"], "00000000-0000-0000-0000-000000000000");
    assert_eq!(labels["app.kubernetes.io/managed-by"], "keelson");

    let known = THING.replace("team}", "team, uid: 11111111-2222-3333-4444-555555555555}");
    let Output { stdout, .. } = render(folder.path(), &known);
    assert!(stdout.contains("keelson.dev/instance: 11111111-2222-3333-4444-555555555555"), "{stdout}");
}

#[test]
fn what_the_guest_logs_goes_to_stderr() {
    let folder = Folder::new();
    let mut talking = guest("a");
    talking.render = talking.log("hello from inside");
    folder.plugin_with("a", "a", &talking.component(), |text| text);
    let Output { code, stdout, stderr } = render(folder.path(), THING);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("plugin a: error: hello from inside") && !stdout.contains("hello"), "{stderr}");
}

#[test]
fn what_is_made_for_a_deleted_object_is_printed_too() {
    let folder = Folder::new();
    folder.plugin("a", "a");
    let finalize = |input: &str| {
        keelson(&["render", "--finalize", "-f", "-", "--plugins", folder.path().to_str().unwrap()], input)
    };
    let Output { code, stderr, .. } = finalize(THING);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("NoFinalizer") && stderr.contains("plugin a does not finalize"), "{stderr}");

    let mut ends = guest("ends");
    ends.finalizes(&format!("(i32.const {})", crate::guest::ZEROS));
    folder.plugin_with("ends", "ends", &crate::guest::encode(&ends.module(), "plugin-with-finalizer"), |text| text);
    let Output { code, stdout, stderr } = finalize(&THING.replace("type: a", "type: ends"));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("finalized: it may go") && stdout.contains("# The children stay as they are."), "{stdout}");
}

#[test]
fn labels_and_annotations_are_passed_as_the_document_says() {
    let folder = Folder::new();
    let passed = "  passed: {labels: [team], annotations: [prometheus.io/*]}\n";
    folder.plugin_with("a", "a", &component("a"), |text| text + passed);
    let thing = "metadata: {labels: {team: x, other: z, app: theirs}, annotations: {prometheus.io/scrape: 'true'},";
    let Output { code, stdout, stderr } = render(folder.path(), &THING.replace("metadata: {", &format!("{thing} ")));
    assert_eq!(code, Some(0), "{stderr}");
    let pods: Vec<serde_json::Value> = serde_saphyr::from_multiple(&stdout).unwrap();
    let metadata = &pods[0]["metadata"];
    assert_eq!((&metadata["labels"]["team"], &metadata["labels"]["app"]), (&"x".into(), &"db".into()), "{stdout}");
    assert!(metadata["labels"]["other"].is_null(), "{stdout}");
    assert_eq!(metadata["annotations"]["prometheus.io/scrape"], "true");
}

#[test]
fn each_exit_code_has_its_cause() {
    let folder = Folder::new();
    folder.plugin("a", "a");
    folder.plugin("broken", "broken");
    folder.put("broken.wasm", component("other"));
    let mut failing = guest("failing");
    failing.returns_failure("NoRoom", "there is no room");
    folder.plugin_with("failing", "failing", &failing.component(), |text| text);
    let mut trapping = guest("trapping");
    trapping.render = "unreachable".to_owned();
    folder.plugin_with("trapping", "trapping", &trapping.component(), |text| text);
    let of_type = |value: &str| THING.replace("type: a", &format!("type: {value}"));
    let cases: &[(&str, i32, &[&str])] = &[
        (&of_type("failing"), 1, &["Thing team/one: NoRoom: there is no room"]),
        (
            &of_type("trapping"),
            1,
            &["Thing team/one: Trap: trapped: unreachable in render", "error: stopped in render"],
        ),
        (&of_type("5"), 1, &["InvalidSpec: /spec/type must be a string, not a number", "served: a, "]),
        (&THING.replace("name: one", "name: 1one"), 1, &["InvalidName"]),
        // The plugin always names its Pod `one`.
        (&THING.replace("name: one", "name: two"), 1, &["InvalidChild", "Pod one"]),
        (&THING.replace("type: a", &format!("type: a, large: {}", "x".repeat(300_000))), 1, &["TooLarge"]),
        ("a: [", 2, &["stdin", "not YAML"]),
        ("", 2, &["no object"]),
        ("kind: Thing\n", 2, &["apiVersion is missing"]),
        (&of_type("other"), 3, &["NoPlugin: no plugin serves /spec/type = \"other\"", "served: a, broken"]),
        (&of_type("broken"), 3, &["PluginUnavailable: plugin broken: DigestMismatch"]),
        (&THING.replace("kind: Thing", "kind: Pod"), 3, &["no plugin serves Pod", "served: Thing.example.io"]),
        (&THING.replace("io/v1", "io/v7"), 3, &["does not read version v7"]),
    ];
    let mut wrong = Vec::new();
    for (input, wanted, words) in cases {
        let Output { code, stdout, stderr } = render(folder.path(), input);
        if code != Some(*wanted) || !stdout.is_empty() || !words.iter().all(|word| stderr.contains(word)) {
            wrong.push(format!("wanted {wanted} with {words:?}, got {code:?}: {stdout}{stderr}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let both = format!("{}---\n{THING}", of_type("other"));
    let Output { code, stdout, stderr: _ } = render(folder.path(), &both);
    assert_eq!(code, Some(3));
    assert!(stdout.contains("kind: Pod"), "one bad object leaves the others");
    assert_eq!(render(&folder.path().join("missing"), THING).code, Some(3));
    assert_eq!(keelson(&["render", "-f", "/nowhere.yaml", "--plugins", "."], "").code, Some(2));
    assert_eq!(keelson(&["render", "--fast"], "").code, Some(2));
}

#[test]
fn crd_is_printed() {
    let Output { code, stdout, stderr } = keelson(&["crd"], "");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("name: plugins.keelson.dev"));
}

fn copy(src: &Path, dir: &Path) -> Output {
    keelson(&["plugin", "copy", src.to_str().unwrap(), dir.to_str().unwrap()], "")
}

#[test]
fn a_plugin_folder_is_copied_whole_and_again() {
    let (src, volume) = (Folder::new(), Folder::new());
    src.plugin("a", "a");
    src.plugin("gone", "gone");
    fs::remove_file(src.path().join("gone.wasm")).unwrap();
    src.put("README", "not a plugin's");
    fs::set_permissions(src.path().join("a.wasm"), fs::Permissions::from_mode(0o600)).unwrap();
    let dir = volume.path().join("new/folder");
    let Output { code, stderr, .. } = copy(src.path(), &dir);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("gone.yaml") && stderr.contains("does not exist"), "{stderr}");
    let mut names: Vec<String> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["a.wasm", "a.yaml", "gone.yaml"]);
    let there = fs::metadata(dir.join("a.wasm")).unwrap();
    assert_eq!(there.permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read(dir.join("a.wasm")).unwrap(), component("a"));

    assert_eq!(copy(src.path(), &dir).code, Some(0));
    assert_eq!(fs::metadata(dir.join("a.wasm")).unwrap().ino(), there.ino(), "what is equal stays");
    src.plugin("a", "b");
    assert_eq!(copy(src.path(), &dir).code, Some(0));
    assert_eq!(fs::read(dir.join("a.wasm")).unwrap(), component("b"));
    assert_eq!(render(&dir, &THING.replace("type: a", "type: b")).code, Some(0));
}

#[test]
fn what_is_no_plugin_folder_is_not_copied() {
    let (src, dir) = (Folder::new(), Folder::new());
    assert_eq!(copy(src.path(), dir.path()).code, Some(3), "empty");
    src.put("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n");
    assert_eq!(copy(src.path(), dir.path()).code, Some(3), "other documents");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(copy(&src.path().join("missing"), dir.path()).code, Some(2));
    src.plugin("a", "a");
    let same = copy(src.path(), src.path());
    assert_eq!(same.code, Some(1));
    assert!(same.stderr.contains("the same folder"));
    src.put("file", "");
    assert_eq!(copy(src.path(), &src.path().join("file")).code, Some(1), "into a file");
}

/// The plugins of this repository, where they have been built (`make build`).
#[test]
fn the_tutorials_databases_are_rendered() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let plugins = std::env::var_os("KEELSON_PLUGINS").map_or_else(|| root.join("target/plugins"), Into::into);
    assert!(plugins.join("mysql.yaml").exists(), "{} holds no plugins: make build", plugins.display());
    for (name, image) in [("mongo-db", "mongo:4.0"), ("mysql-db", "mysql:8.0")] {
        let file = root.join(format!("deploy/examples/{name}.yaml"));
        let args = ["render", "-f", file.to_str().unwrap(), "--plugins", plugins.to_str().unwrap()];
        let Output { code, stdout, stderr } = keelson(&args, "");
        assert_eq!(code, Some(0), "{stderr}");
        let children: Vec<serde_json::Value> = serde_saphyr::from_multiple(&stdout).unwrap();
        let kinds: Vec<&str> = children.iter().map(|child| child["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["Pod", "Service"], "{stdout}");
        assert_eq!(children[0]["spec"]["containers"][0]["image"], image);
        assert_eq!(
            children[1]["spec"]["selector"],
            serde_json::json!({
                "app": "db",
                "keelson.dev/instance": children[0]["metadata"]["labels"]["keelson.dev/instance"],
            })
        );
        assert!(stderr.contains(&format!("Pod and Service created by Database {name}")), "{stderr}");
    }
    for name in ["mongo-data", "mysql-data"] {
        let text = fs::read_to_string(root.join(format!("deploy/examples/with-storage/{name}.yaml"))).unwrap();
        let Output { code, stdout, stderr } = render(&plugins, text.rsplit("---\n").next().unwrap());
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("kind: PersistentVolumeClaim") && stdout.contains("fsGroup: 999"), "{stdout}");
    }
}
