use super::*;

const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn whole() -> String {
    format!(
        r#"
apiVersion: keelson.dev/v1alpha1
kind: Plugin
metadata: {{name: mongo, labels: {{a: b}}}}
spec:
  source: {{file: {{path: mongo.wasm}}}}
  trust: {{sha256: {DIGEST}}}
  grant:
    serves:
    - {{group: zalando.org, kind: Database, discriminator: {{path: /spec/type, value: mongo}}}}
    children: [{{group: "", kind: Pod}}]
    namespaces: ["*"]
    allowedFields: [{{group: "", kind: Pod, paths: [/spec/serviceAccountName]}}]
  limits: {{memoryMiB: 32}}
  config: {{any: [1, {{thing: true}}]}}
  strategies: [{{group: "", kind: Pod, strategy: Recreate}}]
"#
    )
}

#[test]
fn everything_is_read_and_what_is_left_out_is_nothing() {
    let Document { name, spec } = Document::parse(&whole()).unwrap();
    assert_eq!(name, "mongo");
    assert_eq!(spec.trust, Trust::Sha256(DIGEST.to_owned()));
    assert_eq!(spec.limits, PluginLimits { memory_mib: 32, ..PluginLimits::default() });
    assert_eq!(Value::Object(spec.config).to_string(), r#"{"any":[1,{"thing":true}]}"#);
    assert_eq!(spec.strategies[0].strategy, Strategy::Recreate);
    assert!(spec.grant.related.is_empty());

    let least = "apiVersion: keelson.dev/v1alpha1\nkind: Plugin\nmetadata: {name: a}\n\
        spec: {source: {file: {path: a.wasm}}, trust: {unsigned: true}}\n";
    let Document { name: _, spec } = Document::parse(least).unwrap();
    assert_eq!(spec.trust, Trust::Unsigned(Yes));
    assert_eq!(spec.grant, Grant::default());
    assert!(spec.config.is_empty());
}

/// What is put in place of what, and the words that the error must have.
#[test]
fn each_fault_is_told_with_its_field_and_rule() {
    let digest = format!("sha256: {DIGEST}");
    let cases: &[(&str, &str, &[&str])] = &[
        ("kind: Plugin", "kind: Pod", &["not a Plugin document", "kind Pod"]),
        ("keelson.dev/v1alpha1", "keelson.dev/v1", &["apiVersion keelson.dev/v1 ", "keelson.dev/v1alpha1"]),
        ("spec:\n", "spec:\n  granted: {}\n", &["spec", "unknown field `granted`", "line 6"]),
        ("  grant:", "  grants:", &["unknown field `grants`"]),
        ("    children:", "    childs:", &["spec.grant", "unknown field `childs`", "one of serves, children"]),
        ("memoryMiB: 32", "memoryMib: 32", &["spec.limits", "unknown field `memoryMib`"]),
        ("memoryMiB: 32", "memoryMiB: 0", &["spec.limits.memoryMiB: is 0, must be 1 to 4096"]),
        ("memoryMiB: 32", "memoryMiB: many", &["spec.limits.memoryMiB: invalid u32", "line 14"]),
        ("memoryMiB: 32", "memoryMiB: -1", &["spec.limits.memoryMiB"]),
        ("name: mongo", "name: Mongo", &["metadata.name: must be a DNS-1123 label"]),
        ("name: mongo", "named: mongo", &["metadata", "unknown field `named`"]),
        ("name: mongo, ", "", &["metadata", "missing field `name`"]),
        (&format!("trust: {{{digest}}}"), "config: {}", &["duplicate", "config"]),
        (&format!("  trust: {{{digest}}}\n"), "", &["spec", "missing field `trust`"]),
        (&digest, "sha256: \"\"", &["spec.trust.sha256: must be 64 lower-case hex digits"]),
        (&digest, "unsigned: false", &["spec.trust", "must be true"]),
        (&digest, "sha265: x", &["spec.trust", "unknown variant `sha265`", "sha256"]),
        (&digest, &format!("{digest}, unsigned: true"), &["spec.trust"]),
        ("file: {path: mongo.wasm}", "oci: {image: x/y}", &["spec.source.oci.image: must name a registry"]),
        ("file: {path: mongo.wasm}", "oci: {image: \"r.io/y:1\", pullSecret: A_b}", &["spec.source.oci.pullSecret"]),
        (&digest, "keys: []", &["spec.trust.keys: must name a key"]),
        ("file: {path: mongo.wasm}", "url: x", &["spec.source", "unknown variant `url`"]),
        ("path: mongo.wasm", "path: \"\"", &["spec.source.file.path: must not be empty"]),
        ("group: zalando.org", "group: zalando.org/v1", &["spec.grant.serves[0].group: must be an API group"]),
        ("kind: Pod}]\n    name", "kind: pods}]\n    name", &["spec.grant.children[0].kind: must be a kind"]),
        ("namespaces: [\"*\"]", "namespaces: [a, \"team-*\"]", &["spec.grant.namespaces[1]: must be"]),
        ("namespaces: [\"*\"]", "namespaces: \"*\"", &["spec.grant.namespaces", "line 12"]),
        (
            "strategy: Recreate",
            "strategy: Replace",
            &["spec.strategies[0].strategy", "`Replace`", "one of InPlace, Recreate, OnDelete"],
        ),
        ("config: {any: [1, {thing: true}]}", "config: 5", &["spec.config"]),
    ];
    let mut wrong = Vec::new();
    for (old, new, words) in cases {
        let text = whole().replacen(old, new, 1);
        assert_ne!(text, whole(), "{old} stands in the document");
        let error = Document::parse(&text).unwrap_err().to_string();
        if error.contains('\n') || !words.iter().all(|word| error.contains(word)) {
            wrong.push(format!("{new}: {error:?} lacks one of {words:?}, or is not one line"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_holds_one_document() {
    let two = format!("{}\n---\n{}", whole(), whole());
    assert_eq!(Document::parse(&two).unwrap_err(), DocumentError::Count(2));
    for nothing in ["", "# only words\n", "---\n"] {
        assert_eq!(Document::parse(nothing).unwrap_err(), DocumentError::Count(0));
    }
    for (text, word) in [("\u{0}garbage", "YAML"), ("a: [b", "YAML"), ("just text", "found apiVersion none")] {
        let error = Document::parse(text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_refused_document_still_tells_what_it_would_have_served() {
    let (name, claims) = salvage(&whole().replacen("  limits:", "  limit:", 1));
    assert_eq!(name.as_deref(), Some("mongo"));
    assert_eq!(claims[0].kind, "Database");
    assert_eq!(salvage("a: ["), (None, Vec::new()));
    assert_eq!(salvage("kind: Pod\nmetadata: {name: x}"), (None, Vec::new()));
}
