use proptest::prelude::{Just, ProptestConfig, any, prop, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy;

use super::*;

/// Any JSON, with the keys that the rules look for.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!("db")),
        Just(json!(UID)),
        ".{0,12}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "spec",
            "metadata",
            "name",
            "labels",
            "annotations",
            "template",
            "containers",
            "volumes",
            "selector",
            "matchLabels",
            "keelson.dev/instance",
            "securityContext",
            "env",
            "valueFrom",
            "secretKeyRef",
            "jobTemplate",
        ])
        .prop_map(str::to_owned),
        ".{0,8}",
    ];
    leaf.prop_recursive(8, 96, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_a_guest_says_panics(
        kind in prop::sample::select(KINDS),
        metadata in json_value(),
        body in json_value(),
        named in any::<bool>(),
        text in ".{0,40}",
        length in any::<u32>(),
    ) {
        let mut child = json!({"apiVersion": kind.1, "kind": kind.2, "metadata": metadata, "spec": body, "template": body});
        if !kind.0.is_empty() {
            child["apiVersion"] = json!(format!("{}/{}", kind.0, kind.1));
        }
        if named {
            child["metadata"] = json!({"name": "db", "labels": metadata, "annotations": metadata});
        }
        let mut rendering = rendering_of(&[child]);
        if let Value::Object(status) = body {
            rendering.status = status;
        }
        rendering.secrets.push(secret(&text, vec![random(length)]));
        rendering.secrets.push(secret("db", vec![SecretKey { name: text.clone(), value: SecretValue::Template(text.clone()) }]));
        rendering.not_ready = Some(Explanation { reason: text.clone(), message: text });
        if let Err(violation) = world().hold(rendering) {
            let _ = violation.to_string();
        }
    }

    #[test]
    fn a_template_says_back_its_text(text in "[a-z{}|]{0,24}") {
        if let Ok(pieces) = template(&text) {
            let said: String = pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text("{") => "{{".to_owned(),
                    Piece::Text("}") => "}}".to_owned(),
                    Piece::Text(text) => (*text).to_owned(),
                    Piece::Key { name, percent_encoded: true } => format!("{{{name}|url}}"),
                    Piece::Key { name, percent_encoded: false } => format!("{{{name}}}"),
                })
                .collect();
            prop_assert_eq!(said, text);
        }
    }
}
