use super::*;

type Change = fn(&mut World);

fn manifest_of(change: Change) -> Result<(), Violation> {
    let mut world = world();
    change(&mut world);
    manifest(&world.manifest, &world.grant)
}

#[test]
fn a_manifest_within_its_grant_passes() {
    let rows: &[(&str, Change)] = &[
        ("equal", |_| {}),
        ("the whole kind is granted", |world| world.grant.serves[0].discriminator = None),
        ("fewer children than granted", |world| world.manifest.children.truncate(1)),
        ("a field is allowed", |world| {
            world.grant.allowed_fields.push(AllowedFields {
                group: String::new(),
                kind: "Pod".into(),
                paths: vec!["/spec/volumes/*/csi".into()],
            });
        }),
        ("a related kind is granted", |world| {
            let namespaces = Vec::new();
            world.grant.related.push(GrantedRelated { group: String::new(), kind: "Service".into(), namespaces });
            world.manifest.related.push(world.manifest.children[6].kind.clone());
        }),
    ];
    for (row, change) in rows {
        manifest_of(*change).unwrap_or_else(|violation| panic!("{row}: {violation}"));
    }
}

#[test]
fn a_manifest_beyond_its_grant_is_refused_by_its_line() {
    let rows: &[(Change, Rule, &str, &str)] = &[
        (|world| world.grant = Grant::default(), Rule::NotGranted, "/serves/0", "grant.serves has no"),
        (|world| world.grant.serves[0].kind = "Gadget".into(), Rule::NotGranted, "/serves/0", "kind: Widget"),
        (
            |world| world.manifest.serves[0].discriminator = None,
            Rule::NotGranted,
            "/serves/0/discriminator",
            "gives only /spec/type = \"one\"",
        ),
        (
            |world| world.manifest.serves[0].discriminator.as_mut().unwrap().value = "two".into(),
            Rule::NotGranted,
            "/serves/0/discriminator",
            "those with /spec/type = \"two\"",
        ),
        (|world| drop(world.grant.children.remove(2)), Rule::NotGranted, "/children/2", "kind: Pod"),
        (
            |world| world.manifest.related.push(world.manifest.children[0].kind.clone()),
            Rule::NotGranted,
            "/related/0",
            "grant.related",
        ),
        (
            |world| world.grant.children.push(GrantedKind { group: String::new(), kind: "Node".into() }),
            Rule::ClusterScoped,
            "/spec/grant/children/20",
            "no namespace",
        ),
        (
            |world| {
                let group = "rbac.authorization.k8s.io".to_owned();
                world.grant.children.push(GrantedKind { group, kind: "RoleBinding".into() });
            },
            Rule::NeverGranted,
            "/spec/grant/children/20",
            "gives rights",
        ),
        (
            |world| {
                let kind = &mut world.manifest.children[0].kind;
                (kind.group, kind.kind, kind.plural) = ("keelson.dev".into(), "Plugin".into(), "plugins".into());
            },
            Rule::NeverGranted,
            "/children/0",
            "no grant can give Plugin.keelson.dev",
        ),
        (
            |world| {
                let serving = &mut world.manifest.serves[0];
                (serving.group, serving.kind, serving.plural) = (String::new(), "Secret".into(), "secrets".into());
            },
            Rule::NeverGranted,
            "/serves/0",
            "cannot be served",
        ),
    ];
    for (change, rule, path, words) in rows {
        let violation = refused(manifest_of(*change), *rule, path, words);
        assert!(violation.message.contains(words), "{violation}");
        assert_eq!(violation.reason(), "NotGranted", "{violation}");
    }
}

#[test]
fn a_manifest_that_cannot_be_is_refused() {
    let rows: &[(Change, &str)] = &[
        (|world| world.manifest.version = String::new(), "/version"),
        (|world| world.manifest.serves.clear(), "/serves"),
        (|world| world.manifest.serves.push(world.manifest.serves[0].clone()), "/serves/1"),
        (|world| world.manifest.serves[0].versions.clear(), "/serves/0/versions"),
        (|world| world.manifest.serves[0].versions[0] = "v1/..".into(), "/serves/0/version"),
        (
            |world| world.manifest.serves[0].discriminator.as_mut().unwrap().path = "spec".into(),
            "/serves/0/discriminator/path",
        ),
        (|world| world.manifest.children.push(world.manifest.children[0].clone()), "/children/20"),
        (|world| world.manifest.children[0].kind.kind = "configMap".into(), "/children/0/kind"),
        (|world| world.manifest.children[0].kind.plural = "configmaps/x".into(), "/children/0/plural"),
        (|world| world.manifest.children[0].kind.plural = "secrets".into(), "/children/0/plural"),
        (|world| world.manifest.children[0].kind.group = "A".into(), "/children/0/group"),
        (|world| world.manifest.children[0].observe.push("spec".into()), "/children/0/observe/0"),
        (|world| world.manifest.children[5].observe.push("/data".into()), "/children/5/observe"),
    ];
    for (change, path) in rows {
        let violation = refused(manifest_of(*change), Rule::InvalidManifest, path, path);
        assert_eq!(violation.reason(), "OutputInvalid", "{violation}");
    }
}

#[test]
fn a_grant_that_can_have_no_effect_is_refused() {
    let field =
        |kind: &str, path: &str| AllowedFields { group: String::new(), kind: kind.into(), paths: vec![path.into()] };
    for (allowed, path) in [
        (field("Pods", "/spec/nodeName"), "/spec/grant/allowedFields/0"),
        (field("Pod", "spec.nodeName"), "/spec/grant/allowedFields/0/paths/0"),
    ] {
        let mut world = world();
        world.grant.allowed_fields.push(allowed);
        refused(manifest(&world.manifest, &world.grant), Rule::InvalidGrant, path, path);
    }
}

#[test]
fn a_grant_has_no_unknown_fields_and_defaults_to_nothing() {
    assert_eq!(serde_json::from_str::<Grant>("{}").unwrap(), Grant::default());
    for wrong in [
        r#"{"child": []}"#,
        r#"{"children": [{"group": "", "kind": "Pod", "version": "v1"}]}"#,
        r#"{"children": [{"kind": "Pod"}]}"#,
        r#"{"serves": [{"group": "", "kind": "X", "discriminator": {"path": "/a"}}]}"#,
    ] {
        assert!(serde_json::from_str::<Grant>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_parents_name_leaves_room_for_its_children() {
    let of = |name: &str, kinds: &[&str]| {
        let mut world = world();
        world.parent.name = name.into();
        world.manifest.children.retain(|child| kinds.contains(&child.kind.kind.as_str()));
        parent(&world.parent, "one", &world.grant, &world.manifest)
    };
    let fifty = "a".repeat(50);
    for name in ["a", "a-1", fifty.as_str()] {
        of(name, &["Pod", "Service"]).unwrap();
    }
    let long = |length: usize| "a".repeat(length);
    for (name, kinds, words) in [
        ("1db", vec!["Pod", "Service"], "its Service"),
        ("a.b", vec!["Service", "Pod"], "its Service"),
        ("a.b", vec!["Pod"], "its Pod"),
        (&long(51), vec!["Pod", "StatefulSet"], "its StatefulSet"),
        (&long(64), vec!["Pod", "Service"], "has 64 characters, of at most 50"),
        (&long(253), vec!["ConfigMap"], "app.kubernetes.io/instance"),
        ("", vec!["Pod"], "no DNS-1035 label"),
    ] {
        let violation = refused(of(name, &kinds), Rule::ParentName, "/metadata/name", words);
        assert!(violation.message.contains(words), "{violation}");
        assert_eq!(violation.reason(), "InvalidName");
    }
}

#[test]
fn a_parents_namespace_is_granted() {
    for (granted, ok) in [(vec!["*"], true), (vec!["a", "shop"], true), (vec!["sho"], false), (vec![], false)] {
        let mut world = world();
        world.grant.namespaces = granted.iter().map(|name| (*name).to_owned()).collect();
        let result = parent(&world.parent, "one", &world.grant, &world.manifest);
        match ok {
            true => result.unwrap(),
            false => {
                let violation = refused(result, Rule::ParentNamespace, "/metadata/namespace", "namespace");
                assert_eq!(violation.reason(), "NotGranted");
            }
        }
    }
}
