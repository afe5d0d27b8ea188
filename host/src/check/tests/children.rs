use super::*;

fn config() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db"}, "data": {"a": "b"}})
}

fn service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": {
        "type": "NodePort", "selector": {"keelson.dev/instance": UID}, "ports": [{"port": 1, "targetPort": 1}]}})
}

#[test]
fn what_every_child_must_be() {
    let long = "x".repeat(13);
    let rows: &[(&str, Value)] = &[
        ("/metadata/name", json!("db")),
        ("/metadata/name", json!("db-abcdefghijkl")),
        ("/metadata/namespace", json!("shop")),
        ("/metadata/labels", json!({"app": "db", "a.b/c": ""})),
        ("/metadata/labels/keelson.dev~1instance", json!(UID)),
        ("/metadata/labels/keelson.dev~1plugin", json!("one")),
        ("/metadata/labels/xkeelson.dev~1instance", json!("free")),
        ("/metadata/annotations", json!({"a/b": "any text\nat all"})),
    ];
    for (path, value) in rows {
        world().child(with(&config(), path, value)).unwrap_or_else(|violation| panic!("{path} {value}: {violation}"));
    }

    let rows: &[(&str, Value, Rule, &str)] = &[
        ("/apiVersion", json!(1), Rule::Shape, "/apiVersion"),
        ("/apiVersion", json!("a/b/v1"), Rule::Shape, "/apiVersion"),
        ("/apiVersion", json!("v2"), Rule::Kind, "/apiVersion"),
        ("/kind", json!("configmap"), Rule::NeverGranted, "/kind"),
        ("/kind", json!("LimitRange"), Rule::Kind, "/kind"),
        ("/kind", json!("Namespace"), Rule::ClusterScoped, "/kind"),
        ("/kind", json!("List"), Rule::NeverGranted, "/kind"),
        ("/kind", json!("Endpoints"), Rule::NeverGranted, "/kind"),
        ("/kind", json!("Secret"), Rule::RenderedSecret, "/kind"),
        ("/metadata", json!([]), Rule::Shape, "/metadata"),
        ("/metadata", json!({}), Rule::Shape, "/metadata/name"),
        ("/metadata", json!({"generateName": "db-"}), Rule::ServerField, "/metadata/generateName"),
        ("/metadata/namespace", json!("other"), Rule::Namespace, "/metadata/namespace"),
        ("/metadata/namespace", json!(""), Rule::Namespace, "/metadata/namespace"),
        ("/metadata/namespace", json!(null), Rule::Namespace, "/metadata/namespace"),
        ("/metadata/name", json!(""), Rule::ChildName, "/metadata/name"),
        ("/metadata/name", json!("other"), Rule::ChildName, "/metadata/name"),
        ("/metadata/name", json!("dbx"), Rule::ChildName, "/metadata/name"),
        ("/metadata/name", json!("db-"), Rule::ChildName, "/metadata/name"),
        ("/metadata/name", json!("db-a.b"), Rule::ChildName, "/metadata/name"),
        ("/metadata/name", json!("db-A"), Rule::ChildName, "/metadata/name"),
        ("/metadata/name", json!("db-a/../b"), Rule::ChildName, "/metadata/name"),
        ("/metadata/name", json!(format!("db-{long}")), Rule::ChildName, "/metadata/name"),
        ("/metadata/ownerReferences", json!([]), Rule::ServerField, "/metadata/ownerReferences"),
        ("/metadata/finalizers", json!(["a/b"]), Rule::ServerField, "/metadata/finalizers"),
        ("/metadata/resourceVersion", json!("1"), Rule::ServerField, "/metadata/resourceVersion"),
        ("/metadata/managedFields", json!([]), Rule::ServerField, "/metadata/managedFields"),
        ("/metadata/creationTimestamp", json!(null), Rule::Null, "/metadata/creationTimestamp"),
        ("/metadata/labels", json!([]), Rule::Shape, "/metadata/labels"),
        ("/metadata/labels/a", json!(1), Rule::Labels, "/metadata/labels/a"),
        ("/metadata/labels/a", json!("not a value"), Rule::Labels, "/metadata/labels/a"),
        ("/metadata/labels/a b", json!("x"), Rule::Labels, "/metadata/labels/a b"),
        (
            "/metadata/labels/keelson.dev~1instance",
            json!("other"),
            Rule::ReservedName,
            "/metadata/labels/keelson.dev~1instance",
        ),
        ("/metadata/labels/x.keelson.dev~1y", json!("z"), Rule::ReservedName, "/metadata/labels/x.keelson.dev~1y"),
        (
            "/metadata/labels/app.kubernetes.io~1managed-by",
            json!("me"),
            Rule::ReservedName,
            "/metadata/labels/app.kubernetes.io~1managed-by",
        ),
        (
            "/metadata/annotations/keelson.dev~1hash",
            json!("x"),
            Rule::ReservedName,
            "/metadata/annotations/keelson.dev~1hash",
        ),
        ("/metadata/annotations/a", json!("x".repeat(256 * 1024)), Rule::Size, "/metadata/annotations"),
        ("/status", json!({}), Rule::Status, "/status"),
        ("/spec", json!({}), Rule::Field, "/spec"),
        ("/data/a", json!(null), Rule::Null, "/data/a"),
        ("/data/a", json!([{}, [null]]), Rule::Null, "/data/a/1/0"),
        ("/data/a", json!("x".repeat(1024 * 1024)), Rule::Size, ""),
    ];
    for (path, value, rule, at) in rows {
        let row = format!("{path} {}", value.to_string().chars().take(60).collect::<String>());
        let violation = refused(world().child(with(&config(), path, value)), *rule, at, &row);
        let reason = if *rule == Rule::Size { "TooLarge" } else { "InvalidChild" };
        assert_eq!(violation.reason(), reason, "{row}");
    }
}

#[test]
fn a_violation_is_one_sentence_that_names_all() {
    let violation = world().child(with(&service(), "/spec/externalIPs", &json!(["10.0.0.1"]))).unwrap_err();
    assert_eq!(
        violation.to_string(),
        "plugin one: Service db: children[0].spec.externalIPs: takes traffic of any address; \
         grant.allowedFields of Service may allow it by /spec/externalIPs (rule Field)"
    );
}

#[test]
fn text_of_a_guest_is_quoted_and_cut() {
    let hostile = format!("\u{1b}[2J{}", "x".repeat(100_000));
    let violation = world().child(with(&config(), "/metadata/name", &json!(hostile))).unwrap_err();
    let sentence = violation.to_string();
    assert!(sentence.len() < 600 && !sentence.contains('\u{1b}'), "{sentence}");
    let violation = world().child(with(&config(), &format!("/{hostile}"), &json!(1))).unwrap_err();
    let sentence = violation.to_string();
    assert!(sentence.len() < 2000 && !sentence.contains('\u{1b}'), "{sentence}");
}

#[test]
fn cluster_scoped_and_foreign_children_are_refused_as_invalid_children() {
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "db"}});
    let violation = refused(world().child(role), Rule::NeverGranted, "/kind", "a ClusterRoleBinding");
    assert_eq!((violation.reason(), violation.child.as_deref()), ("InvalidChild", Some("ClusterRoleBinding db")));
    let foreign = with(&config(), "/metadata/namespace", &json!("kube-system"));
    let violation = refused(world().child(foreign), Rule::Namespace, "/metadata/namespace", "another namespace");
    assert_eq!((violation.reason(), violation.child.as_deref()), ("InvalidChild", Some("ConfigMap db")));
}

#[test]
fn names_are_told_apart() {
    world().children(&[config(), service()]).unwrap();
    refused(world().children(&[config(), config()]), Rule::Duplicate, "/metadata/name", "twice");
    let itself = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    world().children(&[itself("db-x")]).unwrap();
    refused(world().children(&[itself("db")]), Rule::Duplicate, "/metadata/name", "the parent as its child");

    let mut world = world();
    world.parent.name = format!("d{}", "b".repeat(49));
    let name = format!("{}-x", world.parent.name);
    let set = with(&workload("apps/v1", "StatefulSet"), "/metadata/name", &json!(name));
    world.children(&[set]).unwrap();
    let name = format!("{}-xx", world.parent.name);
    let set = with(&workload("apps/v1", "StatefulSet"), "/metadata/name", &json!(name));
    refused(world.children(&[set]), Rule::ChildName, "/metadata/name", "53 characters of a StatefulSet");
}

#[test]
fn retention_is_named_and_unknown_strategies_are_refused() {
    let of = |change: fn(&mut Child)| {
        let mut rendering = rendering_of(&[config()]);
        let Children::Exactly(children) = &mut rendering.children else { unreachable!() };
        change(&mut children[0]);
        world().hold(rendering)
    };
    let parts = of(|child| child.strategy = Some("Recreate".into())).unwrap();
    let CheckedChildren::Exactly(children) = parts.children else { unreachable!() };
    assert_eq!((children[0].strategy(), children[0].retain()), (Some(Strategy::Recreate), None));
    refused(of(|child| child.strategy = Some("recreate".into())), Rule::Strategy, "", "a strategy in lower case");
    let kept = of(|child| child.retain = Some(Retention { data_version: "1".into(), line: "a".into() })).unwrap();
    let CheckedChildren::Exactly(children) = kept.children else { unreachable!() };
    assert_eq!(children[0].retain().map(|retention| retention.line.as_str()), Some("a"));
    let odd = |child: &mut Child| child.retain = Some(Retention { data_version: "1".into(), line: "a b".into() });
    refused(of(odd), Rule::Retain, "", "a line with a space");
    let empty = |child: &mut Child| child.retain = Some(Retention { data_version: "".into(), line: "a".into() });
    refused(of(empty), Rule::Retain, "", "no version");
}

#[test]
fn a_rendering_has_no_more_children_than_the_limit() {
    let mut world = world();
    world.limits.children = 2;
    world.children(&[config(), service()]).unwrap();
    let mut rendering = rendering_of(&[config(), service()]);
    rendering.secrets.push(secret("db", vec![random(16)]));
    assert_eq!(refused(world.hold(rendering), Rule::Count, "", "two and a Secret").reason(), "TooLarge");
}

#[test]
fn keep_and_none_are_not_the_same() {
    let of = |children| world().hold(Rendering { children, ..rendering_of(&[]) }).unwrap().children;
    assert_eq!(of(Children::Keep), CheckedChildren::Keep);
    assert_eq!(of(Children::None), CheckedChildren::Exactly(Vec::new()));
}

fn workload(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "db"},
        "spec": {"selector": {"matchLabels": {"keelson.dev/instance": UID, "role": "x"}}}})
}

#[test]
fn what_selects_pods_selects_this_parents_only() {
    let narrow = json!({"matchLabels": {"keelson.dev/instance": UID},
        "matchExpressions": [{"key": "role", "operator": "Exists"}]});
    for (api_version, kind, path) in [
        ("apps/v1", "DaemonSet", "/spec/selector"),
        ("apps/v1", "Deployment", "/spec/selector"),
        ("apps/v1", "ReplicaSet", "/spec/selector"),
        ("apps/v1", "StatefulSet", "/spec/selector"),
        ("policy/v1", "PodDisruptionBudget", "/spec/selector"),
        ("networking.k8s.io/v1", "NetworkPolicy", "/spec/podSelector"),
    ] {
        let bare = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "db"}, "spec": {}});
        world().child(with(&bare, path, &narrow)).unwrap_or_else(|violation| panic!("{violation}"));
        refused(world().child(bare.clone()), Rule::Selector, path, kind);
        for wide in
            [json!({}), json!({"matchLabels": {"app": "db"}}), json!({"matchLabels": {"keelson.dev/instance": "x"}})]
        {
            refused(world().child(with(&bare, path, &wide)), Rule::Selector, path, kind);
        }
    }
    let by_map = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "db"}, "spec": {}});
    refused(world().child(by_map.clone()), Rule::Selector, "/spec/selector", "no selector");
    world().child(with(&by_map, "/spec/selector", &json!({"keelson.dev/instance": UID}))).unwrap();
}

#[test]
fn a_service_leads_to_this_parents_pods_only() {
    type Expected = Option<(Rule, &'static str)>;
    let rows: &[(&str, Value, Expected)] = &[
        ("/spec/selector/role", json!("x"), None),
        ("/spec/type", json!("LoadBalancer"), None),
        ("/spec/clusterIP", json!("None"), None),
        ("/spec/externalIPs", json!([]), None),
        ("/spec/selector", json!({"app": "db"}), Some((Rule::Selector, "/spec/selector"))),
        ("/spec/selector", json!({}), Some((Rule::Selector, "/spec/selector"))),
        ("/spec", json!({"ports": []}), Some((Rule::Selector, "/spec/selector"))),
        ("/spec/type", json!("ExternalName"), Some((Rule::Field, "/spec/type"))),
        ("/spec/externalName", json!("example.com"), Some((Rule::Field, "/spec/externalName"))),
        ("/spec/externalIPs", json!(["10.0.0.1"]), Some((Rule::Field, "/spec/externalIPs"))),
        ("/spec/loadBalancerIP", json!("10.0.0.1"), Some((Rule::Field, "/spec/loadBalancerIP"))),
        ("/spec/fieldOfTomorrow", json!(false), Some((Rule::Field, "/spec/fieldOfTomorrow"))),
    ];
    for (path, value, expected) in rows {
        let child = with(&service(), path, value);
        match expected {
            None => drop(world().child(child).unwrap_or_else(|violation| panic!("{path}: {violation}"))),
            Some((rule, at)) => {
                refused(world().child(child.clone()), *rule, at, path);
                world().allowing("Service", &[*at]).child(child).unwrap_or_else(|violation| panic!("{violation}"));
            }
        }
    }
}

#[test]
fn other_kinds_name_only_what_is_their_own() {
    let ingress = |service: &str, secret: &str| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "db"}, "spec": {
            "tls": [{"hosts": ["a"], "secretName": secret}],
            "rules": [{"http": {"paths": [{"path": "/", "backend": {"service": {"name": service, "port": {"number": 1}}}}]}}]}})
    };
    world().child(ingress("db-own", "db-own")).unwrap();
    let path = "/spec/rules/0/http/paths/0/backend/service/name";
    refused(world().child(ingress("db-foreign", "db-own")), Rule::Reference, path, "a foreign Service");
    refused(world().child(ingress("db-own", "x")), Rule::Reference, "/spec/tls/0/secretName", "a foreign Secret");

    let scaler = |group: &str, name: &str| {
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "db"},
            "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": group, "kind": "ConfigMap", "name": name}}})
    };
    world().child(scaler("v1", "db-own")).unwrap();
    refused(world().child(scaler("v1", "web")), Rule::Reference, "/spec/scaleTargetRef", "a foreign target");
    refused(world().child(scaler("apps/v1", "db-own")), Rule::Reference, "/spec/scaleTargetRef", "another group");

    let account = |secret: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "db"}, "imagePullSecrets": [{"name": secret}]});
    world().child(account("db-own")).unwrap();
    refused(world().child(account("registry")), Rule::Reference, "/imagePullSecrets/0/name", "a foreign Secret");

    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "db"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}});
    world().child(claim.clone()).unwrap();
    for field in ["volumeName", "selector", "dataSource", "dataSourceRef"] {
        let path = format!("/spec/{field}");
        refused(world().child(with(&claim, &path, &json!({"name": "x"}))), Rule::Field, &path, field);
    }

    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "db"}, "spec": {"template": {}}});
    world().child(job.clone()).unwrap();
    refused(
        world().child(with(&job, "/spec/manualSelector", &json!(true))),
        Rule::Field,
        "/spec/manualSelector",
        "job",
    );
}

#[test]
fn a_kind_that_is_not_known_is_the_grants_matter() {
    let gadget =
        json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "db"}, "spec": {"any": [1]}});
    let checked = world().child(gadget.clone()).unwrap();
    assert_eq!((checked.name(), checked.kind().kind.plural.as_str()), ("db", "gadgets"));
    refused(world().child(with(&gadget, "/status", &json!({}))), Rule::Status, "/status", "status");
}
