//! What an author and a user of the author's plugin see.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]
#![allow(clippy::needless_pass_by_value, reason = "a json!() reads better without a &")]

use keelson_sdk::contract::{Children, FailureClass, Readiness};
use keelson_sdk::prelude::*;
use keelson_sdk::testing::{Crd, Fixture, Rendered};
use serde::Deserialize;

/// A plugin with everything.
struct Shop;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    port: u16,
    #[serde(default)]
    tier: Tier,
    #[serde(default)]
    mounts: Vec<Mount>,
    #[serde(default)]
    #[expect(dead_code, reason = "only read for its errors")]
    strict: Strict,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Tier {
    #[default]
    Small,
    Large,
}

#[derive(Deserialize)]
struct Mount {
    path: String,
    #[serde(default)]
    read_only: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Strict {
    #[serde(default, rename = "a/b")]
    #[expect(dead_code, reason = "only read for its errors")]
    slashed: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    image: Option<String>,
}

impl Plugin for Shop {
    type Spec = Spec;
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest::new("shop", "1.2.3")
            .serves(Serving::new("example.org", "v1", "Shop", "shops").or_version("v1beta1"))
            .child(DEPLOYMENT)
            .child(SERVICE.observing(&["/spec/clusterIP", "/metadata/labels/app.kubernetes.io~1name"]))
            .child(SECRET)
    }

    fn render(shop: &Request<Self>) -> Result<Rendering, Failure> {
        let Spec { port, tier, mounts, strict: _ } = &shop.spec;
        if *port < 1024 {
            return Err(Failure::invalid("the port must be above 1023").field("/spec/port").remedy("take 8080"));
        }
        if mounts.iter().any(|mount| mount.read_only && mount.path == "/") {
            return Err(Failure::internal("nobody needs that"));
        }
        let image = shop.config.image.as_deref().unwrap_or("shop:1");
        let replicas = match tier {
            Tier::Small => 1,
            Tier::Large => 3,
        };
        let token = Secret::generated(shop.name_with("token")).random("token", 32).template("url", "http://{token}@x");
        keelson_sdk::info!(replicas = replicas, tier = "any", "renders {}", shop.name());
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": shop.name(), "annotations": {"rolled": shop.secret_revision("small-token")}},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "shop", "image": image}]}}},
        });
        let rendering = Rendering::of([Child::from(deployment).strategy("Recreate")]).secret(token);
        Ok(match shop.child(SERVICE, shop.name()) {
            Some(service) if service.is("Settled") => rendering
                .status("ip", service.get::<String>("/spec/clusterIP"))
                .status("label", service.get::<String>("/metadata/labels/app.kubernetes.io~1name"))
                .status("hidden", service.get::<String>("/spec/sessionAffinity")),
            Some(_) => rendering.not_ready("Settling", "the Service settles").look_again_after(30),
            None => rendering.condition("Exposed", Some(false), "NoService", "there is no Service"),
        })
    }
}

fn shop() -> Fixture<Shop> {
    Fixture::of::<Shop>("small").with("/spec/port", 8080)
}

#[track_caller]
fn refused(fixture: &Fixture<Shop>, field: &str, message: &str) {
    let failure = fixture.render().unwrap_err();
    assert_eq!(failure.class, FailureClass::Invalid);
    assert_eq!(failure.reason, "InvalidSpec");
    assert_eq!(failure.message, message);
    assert_eq!(failure.fields, [field]);
}

#[test]
fn a_wrong_spec_names_the_field_and_what_was_expected() {
    refused(
        &shop().with("/spec/port", "http"),
        "/spec/port",
        "/spec/port: invalid type: string \"http\", expected a whole number from 0 to 65535",
    );
    refused(
        &shop().with("/spec/port", 70000),
        "/spec/port",
        "/spec/port: invalid value: integer `70000`, expected a whole number from 0 to 65535",
    );
    refused(&shop().without("/spec/port"), "/spec/port", "/spec/port: missing field `port`");
    refused(&shop().without("/spec"), "/spec/port", "/spec/port: missing field `port`");
    refused(&shop().with("/spec", Value::Null), "/spec/port", "/spec/port: missing field `port`");
    refused(
        &shop().with("/spec/mounts", json!([{"path": "/a"}, {"path": 5}])),
        "/spec/mounts/1/path",
        "/spec/mounts/1/path: invalid type: integer `5`, expected a string",
    );
    refused(
        &shop().with("/spec/mounts", json!([{"path": "/a", "read_only": "yes"}])),
        "/spec/mounts/0/read_only",
        "/spec/mounts/0/read_only: invalid type: string \"yes\", expected true or false",
    );
    refused(
        &shop().with("/spec/mounts", json!({})),
        "/spec/mounts",
        "/spec/mounts: invalid type: map, expected a list",
    );
    refused(
        &shop().with("/spec/strict", json!({"a/b": -1})),
        "/spec/strict/a~1b",
        "/spec/strict/a~1b: invalid value: integer `-1`, expected a whole number from 0 to 255",
    );
}

#[test]
fn a_wrong_choice_lists_the_allowed_ones() {
    let wrong = shop().with("/spec/tier", "huge");
    refused(&wrong, "/spec/tier", "/spec/tier: unknown variant `huge`, expected `small` or `large`");
    assert_eq!(wrong.render().unwrap_err().allowed, ["small", "large"]);

    let wrong = shop().with("/spec/strict/c", 1);
    refused(&wrong, "/spec/strict/c", "/spec/strict/c: unknown field `c`, expected `a/b`");
    assert_eq!(wrong.render().unwrap_err().allowed, ["a/b"]);
}

#[test]
fn a_long_value_does_not_flood_the_message() {
    let failure = shop().with("/spec/port", "x".repeat(300_000)).render().unwrap_err();
    assert!(failure.message.starts_with("/spec/port: invalid type: string \"xxx"), "{}", failure.message);
    assert_eq!(failure.message.chars().count(), 400);
}

#[test]
fn a_wrong_configuration_is_not_the_users_fault() {
    let failure = shop().config(json!({"image": 5})).render().unwrap_err();
    assert_eq!(failure.class, FailureClass::Internal);
    assert_eq!(failure.reason, "InvalidConfig");
    assert_eq!(
        failure.message,
        "configuration of the plugin: /config/image: invalid type: integer `5`, expected a string"
    );
    assert!(failure.fields.is_empty(), "fields are the parent's");
}

#[test]
fn a_failure_carries_all_that_was_said() {
    let failure = shop().with("/spec/port", 80).render().unwrap_err();
    assert_eq!(failure.message, "the port must be above 1023");
    assert_eq!(failure.remedy.as_deref(), Some("take 8080"));
    let waiting = Failure::not_yet("NoVolume", "the volume is not there").retry_after(5);
    assert_eq!((waiting.class, waiting.retry_after), (FailureClass::NotYet, Some(5)));
}

#[test]
fn only_observed_paths_are_seen() {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "small", "labels": {"app.kubernetes.io/name": "shop"}},
        "spec": {"clusterIP": "10.0.0.1", "sessionAffinity": "None"},
        "status": {"conditions": [{"type": "Settled", "status": "True"}]},
    });
    let rendered = shop().child(service).render().unwrap();
    assert_eq!(rendered.status, json!({"ip": "10.0.0.1", "label": "shop"}));
}

#[test]
fn readiness_conditions_strategy_and_revisions_cross_the_border() {
    let rendered = shop().config(json!({"image": "shop:2"})).secret("small-token", "abc").render().unwrap();
    let [condition] = rendered.contract.conditions.as_slice() else { panic!("{rendered:?}") };
    assert_eq!((condition.type_.as_str(), condition.reason.as_str()), ("Exposed", "NoService"));
    assert_eq!(rendered.contract.ready, Readiness::Auto);
    let deployment = rendered.child(DEPLOYMENT, "small");
    assert_eq!(deployment["metadata"]["annotations"]["rolled"], "abc");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "shop:2");
    let Children::Exactly(children) = &rendered.contract.children else { panic!("{rendered:?}") };
    assert_eq!(children[0].strategy.as_deref(), Some("Recreate"));

    let waiting = shop().child(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "small"}}));
    let waiting = waiting.render().unwrap().contract;
    assert!(matches!(waiting.ready, Readiness::NotReady(why) if why.reason == "Settling"));
    assert_eq!(waiting.look_again_after, Some(30));
}

/// Breaks a rule of the host's in a way that the test's name says.
struct Sloppy;

impl Plugin for Sloppy {
    type Spec = std::collections::BTreeMap<String, Value>;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        Manifest::new("sloppy", "0.1.0")
            .serves(Serving::new("example.org", "v1", "Sloppy", "sloppies"))
            .child(SERVICE)
            .spec_schema(json!({"type": "object", "properties": {"size": {"type": "integer"}}}))
    }

    fn render(request: &Request<Self>) -> Result<Rendering, Failure> {
        let children = request.spec.get("children").and_then(Value::as_array).cloned().unwrap_or_default();
        let status = request.spec.get("status").cloned();
        Ok(Rendering::of(children).status("size", status))
    }
}

#[track_caller]
fn sloppy(children: Value) {
    let _ = Fixture::of::<Sloppy>("a").with("/spec/children", children).render();
}

fn service(extra: Value) -> Value {
    let mut service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
    for (key, value) in extra.as_object().unwrap() {
        service[key] = value.clone();
    }
    json!([service])
}

#[test]
#[should_panic = "empty list of children"]
fn no_children_by_mistake() {
    sloppy(json!([]));
}

#[test]
#[should_panic = "Pod b: the manifest has no child of kind Pod"]
fn a_kind_that_the_manifest_does_not_name() {
    sloppy(json!([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}]));
}

#[test]
#[should_panic = "Service a: a Service selects by"]
fn a_wide_selector() {
    sloppy(service(json!({"spec": {"selector": {"app": "db"}}})));
}

#[test]
#[should_panic = "/metadata/ownerReferences is not a plugin's to set"]
fn owner_references() {
    sloppy(service(json!({"metadata": {"name": "a", "ownerReferences": []}})));
}

#[test]
#[should_panic = "children live in the parent's namespace"]
fn another_namespace() {
    sloppy(service(json!({"metadata": {"name": "a", "namespace": "kube-system"}})));
}

#[test]
#[should_panic = "at most 13 characters"]
fn a_name_that_is_too_long_for_some_parent() {
    sloppy(service(json!({"metadata": {"name": "a-root-password"}})));
}

const CRD: &str = "
spec:
  group: example.org
  names: {kind: Sloppy, plural: sloppies}
  versions:
  - name: v1
    served: true
    schema:
      openAPIV3Schema:
        properties:
          spec: {type: object, properties: {size: {type: SIZE}}}
          status: {type: object, properties: {size: {type: integer}}}
";

#[test]
#[should_panic = "/spec/size has another type in the CRD"]
fn a_crd_of_another_type() {
    Crd::read(&CRD.replace("SIZE", "string")).assert_serves::<Sloppy>();
}

fn sloppy_status(value: Value) -> Rendered {
    let children = service(json!({}));
    Fixture::of::<Sloppy>("a").with("/spec/children", children).with("/spec/status", value).render().unwrap()
}

#[test]
fn a_crd_that_fits() {
    let crd = Crd::read(&CRD.replace("SIZE", "integer"));
    crd.assert_serves::<Sloppy>();
    crd.assert_keeps(&sloppy_status(json!(5)));
}

#[test]
#[should_panic = "/status/size is 5.5, but integer in the CRD"]
fn a_status_of_another_type() {
    Crd::read(CRD).assert_keeps(&sloppy_status(json!(5.5)));
}

#[test]
#[should_panic = "/status/size is not in the CRD and would be pruned"]
fn a_status_that_the_crd_would_prune() {
    Crd::read(&CRD.replace("{size: {type: integer}}", "{}")).assert_keeps(&sloppy_status(json!(5)));
}
