#![expect(clippy::needless_pass_by_value, reason = "always a json!() of its own")]

use super::*;

/// Serves Things where `/spec/type` is its name.
fn plugin(name: &str, patch: Value) -> Manifest {
    let mut manifest = json!({"name": name, "version": "0.0.1", "usesTime": false,
        "serves": [{"group": "example.org", "versions": ["v1"], "kind": "Thing", "plural": "things",
            "discriminator": {"path": "/spec/type", "value": name}}],
        "schema": {"type": "object", "properties": {"type": {"type": "string"}, name: {"type": "integer"}}}});
    for (key, value) in patch.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    serde_json::from_value(manifest).unwrap()
}

fn serves(patch: Value) -> Value {
    let mut serving = json!({"group": "example.org", "versions": ["v1"], "kind": "Thing", "plural": "things"});
    for (key, value) in patch.as_object().unwrap() {
        serving[key] = value.clone();
    }
    json!([serving])
}

fn refused(plugins: &[Manifest]) -> String {
    definitions(plugins).unwrap_err().to_string()
}

#[test]
fn parts_become_one_definition() {
    let made = definitions(&[plugin("round", json!({})), plugin("square", json!({}))]).unwrap();
    let [crd] = made.as_slice() else { panic!("{made:?}") };
    assert_eq!(crd["metadata"]["name"], "things.example.org");
    assert_eq!(
        crd["spec"]["names"],
        json!({"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"})
    );
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["subresources"], json!({"status": {}}));
    assert_eq!(
        version["additionalPrinterColumns"][0],
        json!({"name": "Type", "type": "string", "jsonPath": ".spec.type"})
    );
    let root = &version["schema"]["openAPIV3Schema"];
    assert_eq!(root["required"], json!(["spec"]));
    let spec = &root["properties"]["spec"];
    assert_eq!(spec["required"], json!(["type"]));
    assert_eq!(spec["properties"]["round"], json!({"type": "integer"}));
    assert_eq!(spec["properties"]["square"], json!({"type": "integer"}));
    let field = &spec["properties"]["type"];
    assert_eq!(field["enum"], json!(["round", "square"]));
    assert_eq!(field["x-kubernetes-validations"][0]["rule"], "self == oldSelf");
    assert_eq!(root["properties"]["status"]["x-kubernetes-preserve-unknown-fields"], true);
}

#[test]
fn versions_are_those_that_all_read() {
    let versions = |versions: Value| {
        let value = versions[0].clone();
        json!({"serves": serves(json!({"versions": versions, "discriminator": {"path": "/spec/type", "value": value}}))})
    };
    let (one, other) = (plugin("a", versions(json!(["v2", "v1"]))), plugin("b", versions(json!(["v1", "v2"]))));
    let made = definitions(&[one.clone(), other]).unwrap();
    let shown: Vec<_> =
        made[0]["spec"]["versions"].as_array().unwrap().iter().map(|v| (&v["name"], &v["storage"])).collect();
    assert_eq!(shown, [(&json!("v2"), &json!(true)), (&json!("v1"), &json!(false))]);
    let error = refused(&[one, plugin("c", versions(json!(["v3"])))]);
    assert!(error.contains("plugin c") && error.contains("v2, v1") && error.contains("v3"), "{error}");
}

#[test]
fn a_deep_discriminator_is_required_all_the_way() {
    let deep = json!({"serves": serves(json!({"discriminator": {"path": "/spec/engine/a~1b", "value": "x"}})),
        "schema": {"type": "object", "properties": {"size": {"type": "integer"}}}});
    let made = definitions(&[plugin("a", deep)]).unwrap();
    let version = &made[0]["spec"]["versions"][0];
    let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["required"], json!(["engine"]));
    assert_eq!(spec["properties"]["engine"]["required"], json!(["a/b"]));
    assert_eq!(spec["properties"]["engine"]["properties"]["a/b"]["enum"], json!(["x"]));
    assert_eq!(version["additionalPrinterColumns"][0]["name"], "Ready");
}

#[test]
fn conflicts_name_plugins_and_paths() {
    let schema = |kind: &str| json!({"schema": {"type": "object", "properties": {"size": {"type": kind}}}});
    let error = refused(&[plugin("a", schema("string")), plugin("b", schema("integer"))]);
    assert_eq!(error, "spec.size: plugin a reads it as string, plugin b as integer");
    let of_a = json!({"serves": serves(json!({"discriminator": {"path": "/spec/type", "value": "a"}}))});
    let error = refused(&[plugin("a", json!({})), plugin("b", of_a)]);
    assert!(error.contains("plugin b: Thing.example.org is served by plugin a"), "{error}");
    let error = refused(&[plugin("a", json!({"schema": null}))]);
    assert!(error.contains("plugin a has no schema"), "{error}");
    let number = json!({"schema": {"type": "object", "properties": {"type": {"type": "integer"}}}});
    assert!(refused(&[plugin("a", number)]).contains("/spec/type"));
    let map = json!({"schema": {"type": "object", "additionalProperties": {"type": "string"}}});
    assert!(refused(&[plugin("a", map)]).contains("/spec/type"));
    let core = json!({"serves": serves(json!({"group": "apps"}))});
    assert!(refused(&[plugin("a", core)]).contains("built in"));
}

#[test]
fn kinds_of_their_own_get_one_each() {
    let gadget = json!({"serves": serves(json!({"kind": "Gadget", "plural": "gadgets"}))});
    let made = definitions(&[plugin("a", json!({})), plugin("b", gadget)]).unwrap();
    assert_eq!(made.len(), 2);
    let spec = &made[1]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec.get("required"), None, "nothing tells plugins apart: {spec}");
}
