use super::*;

fn held(secret: GeneratedSecret) -> Result<CheckedParts, Violation> {
    world().hold(Rendering { children: Children::Keep, secrets: vec![secret], ..rendering_of(&[]) })
}

fn key(name: &str, value: SecretValue) -> SecretKey {
    SecretKey { name: name.into(), value }
}

fn literal(text: &str) -> SecretValue {
    SecretValue::Literal(text.into())
}

fn template_of(text: &str) -> SecretValue {
    SecretValue::Template(text.into())
}

fn chosen(alphabet: &str) -> SecretKey {
    key("password", SecretValue::Random { length: 16, alphabet: Some(alphabet.into()) })
}

#[test]
fn secrets_that_can_be_generated_pass() {
    for keys in [
        vec![random(8)],
        vec![random(256)],
        vec![chosen("0123456789")],
        vec![key("a", literal("x")), key("b", template_of("{a|url}@{{}}{c}")), key("c", literal("y"))],
    ] {
        held(secret("db-x", keys.clone())).unwrap_or_else(|violation| panic!("{keys:?}: {violation}"));
    }
    for kind in ["Opaque", "kubernetes.io/tls", "example.com/x"] {
        held(GeneratedSecret { secret_type: Some(kind.into()), ..secret("db", vec![random(8)]) }).unwrap();
    }
}

#[test]
fn secrets_that_cannot_are_refused() {
    let large = "x".repeat(1000);
    let bomb = "{a}".repeat(2000);
    let rows: &[(&str, Vec<SecretKey>, Rule, &str)] = &[
        ("no keys", vec![], Rule::GeneratedSecret, "/keys"),
        ("a key that is none", vec![key("a/b", literal("x"))], Rule::GeneratedSecret, "/keys/0"),
        ("twice", vec![random(8), random(8)], Rule::GeneratedSecret, "/keys/password"),
        ("7 characters", vec![random(7)], Rule::GeneratedSecret, "/keys/password"),
        ("257 characters", vec![random(257)], Rule::GeneratedSecret, "/keys/password"),
        ("a small alphabet", vec![chosen("012345678")], Rule::GeneratedSecret, "/keys/password"),
        ("a character twice", vec![chosen("01234567899")], Rule::GeneratedSecret, "/keys/password"),
        ("a control character", vec![chosen("0123456789\n")], Rule::GeneratedSecret, "/keys/password"),
        ("beyond ASCII", vec![chosen("0123456789é")], Rule::GeneratedSecret, "/keys/password"),
        ("a missing key", vec![key("a", template_of("{b}"))], Rule::GeneratedSecret, "/keys/a"),
        ("itself", vec![key("a", template_of("{a}"))], Rule::GeneratedSecret, "/keys/a"),
        (
            "a template over a template",
            vec![key("a", template_of("{b}")), key("b", template_of("x"))],
            Rule::GeneratedSecret,
            "/keys/a",
        ),
        ("a lone brace", vec![key("a", template_of("{"))], Rule::GeneratedSecret, "/keys/a"),
        (
            "an unknown filter",
            vec![random(8), key("a", template_of("{password|hex}"))],
            Rule::GeneratedSecret,
            "/keys/a",
        ),
        ("a bomb", vec![key("a", literal(&large)), key("b", template_of(&bomb))], Rule::Size, "/keys"),
    ];
    for (row, keys, rule, path) in rows {
        let violation = refused(held(secret("db-x", keys.clone())), *rule, path, row);
        assert_eq!(violation.child.as_deref(), Some("Secret db-x"), "{row}");
    }
}

#[test]
fn a_token_of_a_service_account_is_no_generated_secret() {
    for kind in ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "", "a b"] {
        let secret = GeneratedSecret { secret_type: Some(kind.into()), ..secret("db", vec![random(8)]) };
        refused(held(secret), Rule::GeneratedSecret, "/type", kind);
    }
}

#[test]
fn secrets_are_named_as_children_are_and_declared() {
    refused(held(secret("other", vec![random(8)])), Rule::ChildName, "/name", "a foreign name");
    let retain = Some(Retention { data_version: "1".into(), line: "a".into() });
    held(GeneratedSecret { retain, ..secret("db", vec![random(8)]) }).unwrap();
    let retain = Some(Retention { data_version: "1\n".into(), line: "a".into() });
    refused(held(GeneratedSecret { retain, ..secret("db", vec![random(8)]) }), Rule::Retain, "", "retain");
    let twice = vec![secret("db", vec![random(8)]), secret("db", vec![random(8)])];
    let result = world().hold(Rendering { secrets: twice, ..rendering_of(&[]) });
    refused(result, Rule::Duplicate, "/name", "twice");

    let undeclared: [fn(&mut World); 2] = [
        |world| world.manifest.children.retain(|child| child.kind.kind != "Secret"),
        |world| world.grant.children.retain(|child| child.kind != "Secret"),
    ];
    for change in undeclared {
        let mut world = world();
        change(&mut world);
        let rendering = Rendering { secrets: vec![secret("db", vec![random(8)])], ..rendering_of(&[]) };
        refused(world.hold(rendering), Rule::Kind, "", "Secret is not declared");
    }
}
