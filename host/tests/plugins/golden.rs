//! Golden fixtures decide whether a plugin serves.

use keelson::plugin::sections::{self, Sections};
use keelson::sandbox::Engine;
use serde_json::{Value, json};

use crate::folder::{Folder, component, guest};
use crate::{load, problem};

/// What the guest of these tests renders.
fn pod(image: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "labels": {"app": "db"}},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn request() -> Value {
    json!({"parent": {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "one"}}, "config": {},
        "selectorLabels": [["keelson.dev/instance", "u"]], "seed": 7})
}

fn fixture(name: &str, answer: &Value) -> Value {
    json!({"name": name, "request": request(), "answer": answer})
}

fn renders(image: &str) -> Value {
    json!({"rendering": {"children": {"exactly": [{"object": pod(image)}]}}})
}

fn section(fixtures: &[Value]) -> String {
    json!({"format": 1, "fixtures": fixtures}).to_string()
}

fn with_fixtures(wasm: &[u8], section: &str) -> Vec<u8> {
    sections::with(wasm, Sections { manifest: None, fixtures: Some(section.as_bytes()) }).unwrap()
}

/// Loads one plugin of this component: what is wrong with it.
async fn fault(wasm: &[u8]) -> Option<(String, String)> {
    let folder = Folder::new();
    folder.plugin_with("a", "a", wasm, |document| document);
    let registry = load(&folder).await;
    let faulty = !registry.problems().is_empty();
    assert_eq!(registry.plugins().len(), usize::from(!faulty));
    faulty.then(|| problem(&registry, "a.yaml"))
}

#[tokio::test]
async fn a_plugin_whose_fixtures_hold_serves() {
    assert_eq!(fault(&component("a")).await, None, "absent is fine");
    assert_eq!(fault(&with_fixtures(&component("a"), &section(&[]))).await, None);
    let good = section(&[fixture("one", &renders("i")), fixture("two", &renders("i"))]);
    assert_eq!(fault(&with_fixtures(&component("a"), &good)).await, None);
    let mut failing = guest("a");
    failing.returns_failure("NoRoom", "there is no room");
    let failure = json!({"failure": {"class": "invalid", "reason": "NoRoom", "message": "there is no room"}});
    let bytes = with_fixtures(&failing.component(), &section(&[fixture("full", &failure)]));
    assert_eq!(fault(&bytes).await, None, "a failure is an answer as well");
}

#[tokio::test]
async fn a_fixture_that_fails_says_what_and_where() {
    let bad = section(&[fixture("one", &renders("i")), fixture("two", &renders("j"))]);
    let (reason, message) = fault(&with_fixtures(&component("a"), &bad)).await.unwrap();
    assert_eq!(reason, "FixturesFailed");
    assert_eq!(message, r#"a.yaml: fixture two: Pod one: /spec/containers/0/image: wanted "j", given "i""#);

    let mut trapping = guest("a");
    trapping.render = "unreachable".to_owned();
    let (reason, message) =
        fault(&with_fixtures(&trapping.component(), &section(&[fixture("one", &renders("i"))]))).await.unwrap();
    assert_eq!(reason, "FixturesFailed");
    assert!(message.contains("fixture one: the plugin trapped"), "{message}");

    let mut failing = guest("a");
    failing.returns_failure("NoRoom", "there is no room");
    let bytes = with_fixtures(&failing.component(), &section(&[fixture("one", &renders("i"))]));
    let (reason, message) = fault(&bytes).await.unwrap();
    assert_eq!(reason, "FixturesFailed");
    assert!(message.contains("of 2 differences the first") && message.contains("Pod one"), "{message}");
}

#[tokio::test]
async fn a_section_that_cannot_be_read_is_no_section() {
    let many: Vec<Value> = (0..257).map(|number| fixture(&number.to_string(), &renders("i"))).collect();
    let wrong = json!({"name": "one", "request": request(), "answer": renders("i"), "more": 1});
    let no_status = json!({"rendering": {"children": "keep",
        "conditions": [{"type": "A", "status": "Maybe", "reason": "R", "message": "m"}]}});
    let rows = [
        ("nonsense".to_owned(), "keelson:fixtures is not valid"),
        ("{}".to_owned(), "missing field `format`"),
        (json!({"format": 2, "fixtures": []}).to_string(), "has format 2, this host reads 1"),
        (section(&[wrong]), "fixtures[0].more"),
        (section(&[fixture("one", &no_status)]), "Maybe"),
        (section(&many), "has 257 fixtures, at most 256"),
        (format!("{}{}", section(&[]), " ".repeat(4 << 20)), "at most 4194304 are read"),
    ];
    for (section, words) in rows {
        let (reason, message) = fault(&with_fixtures(&component("a"), &section)).await.unwrap();
        assert_eq!(reason, "ArtifactInvalid", "{message}");
        assert!(message.contains(words), "{words}: {message}");
    }
    let twice = with_fixtures(&component("a"), &section(&[]));
    let twice = [twice.as_slice(), &twice[component("a").len()..]].concat();
    let (reason, message) = fault(&twice).await.unwrap();
    assert_eq!((reason.as_str(), message.contains("two sections keelson:fixtures")), ("ArtifactInvalid", true));
}

#[tokio::test]
async fn a_manifest_that_describe_does_not_give_is_no_manifest() {
    let engine = Engine::new(1).unwrap();
    let manifest = engine.compile(&component("a"), Default::default()).unwrap().describe().0.unwrap();
    let with = |manifest: &str| {
        sections::with(&component("a"), Sections { manifest: Some(manifest.as_bytes()), fixtures: None }).unwrap()
    };
    let written = serde_json::to_string(&manifest).unwrap();
    assert_eq!(fault(&with(&written)).await, None);
    for (text, words) in [
        (written.replace("0.0.1", "0.0.2"), "says something else than the plugin's own describe"),
        ("5".into(), "not valid"),
    ] {
        let (reason, message) = fault(&with(&text)).await.unwrap();
        assert_eq!(reason, "ArtifactInvalid");
        assert!(message.contains("keelson:manifest") && message.contains(words), "{message}");
    }
}
