#![expect(clippy::needless_pass_by_value, reason = "always a json!() of its own")]

use super::*;

fn of(one: Value, other: Value) -> Result<Value, String> {
    union("spec", &[("one", &one), ("other", &other)]).map_err(|error| error.to_string())
}

fn fields(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

fn field(one: Value, other: Value) -> Value {
    of(fields(json!({"a": one})), fields(json!({"a": other}))).unwrap()["properties"]["a"].clone()
}

#[test]
fn fields_of_all_are_there() {
    let one = fields(json!({"a": {"type": "string"}, "deep": fields(json!({"b": {"type": "integer"}}))}));
    let other = fields(json!({"deep": fields(json!({"c": {"type": "boolean"}}))}));
    let both = fields(json!({"a": {"type": "string"},
        "deep": fields(json!({"b": {"type": "integer"}, "c": {"type": "boolean"}}))}));
    assert_eq!(of(one, other), Ok(both));
}

#[test]
fn another_type_names_plugins_and_path() {
    let nested = |kind: &str| fields(json!({"disk": fields(json!({"size": {"type": kind}}))}));
    let words = of(nested("string"), nested("integer")).unwrap_err();
    assert_eq!(words, "spec.disk.size: plugin one reads it as string, plugin other as integer");
    let list = |kind: &str| fields(json!({"a": {"type": "array", "items": {"type": kind}}}));
    assert!(of(list("string"), list("number")).unwrap_err().starts_with("spec.a[]: "));
    let map = |kind: &str| fields(json!({"a": {"type": "object", "additionalProperties": {"type": kind}}}));
    assert!(of(map("string"), map("number")).unwrap_err().starts_with("spec.a.*: "));
    let either = fields(json!({"a": {INT_OR_STRING: true}}));
    let string = fields(json!({"a": {"type": "string"}}));
    assert!(of(either, string).unwrap_err().contains("as an integer or a string, plugin other as string"));
}

#[test]
fn what_no_definition_may_have_is_refused() {
    for (schema, words) in [
        (json!(true), "no JSON object"),
        (json!({"type": "strange"}), "no type"),
        (json!({"type": ["string", "null"]}), "no type"),
        (json!({"description": "a"}), "no type"),
        (json!({"type": "string", "const": "a"}), "has const"),
        (json!({"type": "object", "$ref": "#/a"}), "has \"$ref\""),
        (fields(json!({"a": {}})), "spec.a: the schema of plugin one has no type"),
    ] {
        let error = of(schema, fields(json!({}))).unwrap_err();
        assert!(error.contains(words) && error.contains("plugin one"), "{error}");
    }
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let error = of(fields(json!({"a": {"type": "string"}})), map).unwrap_err();
    assert!(error.contains("plugin other") && error.contains("cannot have both"), "{error}");
}

#[test]
fn bounds_are_as_wide_as_the_widest() {
    let both = field(
        json!({"type": "integer", "minimum": 1, "maximum": 9, "format": "int32"}),
        json!({"type": "integer", "minimum": 0, "format": "int64"}),
    );
    assert_eq!(both, json!({"type": "integer", "minimum": 0}));
    let both = field(json!({"type": "string", "enum": ["a", "b"]}), json!({"type": "string", "enum": ["b", "c"]}));
    assert_eq!(both, json!({"type": "string", "enum": ["a", "b", "c"]}));
    let both = field(json!({"type": "string", "enum": ["a"], "pattern": "a"}), json!({"type": "string"}));
    assert_eq!(both, json!({"type": "string"}));
    let both = field(json!({"type": "string", "nullable": true, "description": "a"}), json!({"type": "string"}));
    assert_eq!(both, json!({"type": "string", "nullable": true, "description": "a"}));
}

#[test]
fn only_what_all_require_is_required() {
    let one = json!({"type": "object", "required": ["a", "b"], "properties": {"b": {"type": "string"}}});
    let other = json!({"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}});
    assert_eq!(of(one.clone(), other).unwrap()["required"], json!(["b"]));
    assert_eq!(of(one.clone(), fields(json!({"b": {"type": "string"}}))).unwrap().get("required"), None);
    assert_eq!(union("spec", &[("one", &one)]), Ok(one));
}

#[test]
fn what_names_nothing_keeps_everything() {
    let kept = json!({"type": "object", PRESERVE: true});
    assert_eq!(field(json!({"type": "object"}), json!({"type": "object"})), kept);
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    assert_eq!(field(map.clone(), json!({"type": "object"})), kept);
    assert_eq!(field(map.clone(), map.clone()), map);
    let list = field(json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}}));
    assert_eq!(list, json!({"type": "array", "items": {PRESERVE: true}}));
    let anything = json!({PRESERVE: true});
    assert_eq!(field(anything.clone(), anything.clone()), anything);
}

#[test]
fn keys_of_a_list_go_with_its_type() {
    let list = |keys: Value| {
        json!({"type": "array", "items": fields(json!({"a": {"type": "string"}})),
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
    };
    assert_eq!(field(list(json!(["a"])), list(json!(["a"]))), list(json!(["a"])));
    let both = field(list(json!(["a"])), list(json!(["b"])));
    assert_eq!(both.get("x-kubernetes-list-type").or(both.get("x-kubernetes-list-map-keys")), None);
}
