//! Objects as they should not be: names and specs that our CRD refuses, under a CRD that let them through.

use crate::crd;
use keelson_tests::{prelude::*, probe};

/// Anything may be a spec.
const LOOSE: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.zalando.org}
spec:
  group: zalando.org
  scope: Namespaced
  names: {kind: Database, plural: databases, singular: database}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {nullable: true, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}";

pub(crate) async fn install_loose(case: &Case) -> Outcome {
    crd::install(case, LOOSE).await
}

/// A Database with any spec, made by POST: an apply would drop a null.
pub(crate) async fn create(case: &Case, name: &str, spec: Value) -> anyhow::Result<Object> {
    case.cluster.create(DATABASE, &case.namespace, &json!({"metadata": {"name": name}, "spec": spec})).await
}

pub(crate) async fn an_invalid_type_is_refused_at_admission(case: Case) -> Outcome {
    let with =
        |spec: &str| format!("{{apiVersion: zalando.org/v1, kind: Database, metadata: {{name: a}}, spec: {spec}}}");
    for (spec, words) in [
        ("{}", ["spec.type", "Required"]),
        ("{type: 5}", ["spec.type", "string"]),
        ("{type: [mongo]}", ["spec.type", "string"]),
        ("{type: ''}", ["spec.type", "\"mongo\", \"mysql\""]),
        ("{type: oracle}", ["spec.type", "\"mongo\", \"mysql\""]),
        ("{type: Mongo}", ["spec.type", "\"mongo\", \"mysql\""]),
        ("mongo", ["spec", "object"]),
    ] {
        let refusal = case.refused(&with(spec)).await?;
        ensure!(words.iter().all(|word| refusal.contains(word)), "{spec}: {refusal}");
    }
    let refusal = case.refused("{apiVersion: zalando.org/v1, kind: Database, metadata: {name: a}}").await?;
    ensure!(refusal.contains("spec") && refusal.contains("Required"), "{refusal}");
    // A type cannot be changed, nor unset and set anew.
    case.apply_database("a", "mongo").await?;
    for (patch, words) in [
        (json!({"spec": {"type": "mysql"}}), "cannot be changed"),
        (json!({"spec": {"type": null}}), "Required"),
        (json!({"spec": null}), "Required"),
    ] {
        let refusal =
            case.patch(DATABASE, "a", &patch).await.err().map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(refusal.contains(words), "{patch}: {refusal:?}");
    }
    Ok(())
}

pub(crate) async fn case_30_names_that_fit_no_child(case: Case) -> Outcome {
    let long = |n: usize| "n".repeat(n);
    // The name, and what the condition says of it.
    let rows = [
        ("1db".to_owned(), "DNS-1035"),
        ("a.b".to_owned(), "DNS-1035"),
        (long(51), "51 characters"),
        (long(64), "64 characters"),
        (long(253), "253 characters"),
    ];
    crd::install_tutorial(&case).await?;
    for (name, _) in &rows {
        case.apply_database(name, "mongo").await?;
    }
    crd::install_shipped(&case).await?;
    let in_force = async || match case.apply_database("2db", "mongo").await {
        Ok(_) => case.delete(DATABASE, "2db").await.map(|()| false),
        Err(_) => Ok(true),
    };
    case.until("the new rules to be in force", seconds(20), in_force).await?;
    for (name, _) in &rows {
        let another = name.replacen('n', "m", 1).replace("db", "x").replace("a.", "x.");
        let refusal = case.apply_database(&another, "mongo").await.err().map(|error| format!("{error:#}"));
        ensure!(refusal.as_deref().is_some_and(|words| words.contains("metadata.name")), "{another}: {refusal:?}");
    }

    let host = case.host().start().await?;
    case.database(&long(50), "mysql").await?;
    for (name, words) in &rows {
        let database = case.wait(DATABASE, name, "refused", |d| d.is_not("Ready", "InvalidName")).await?;
        let message = database.message("Ready");
        ensure!(message.contains("Service") && message.contains(words), "{name}: {message}");
        ensure!(
            case.find(POD, name).await?.is_none() && case.find(SERVICE, name).await?.is_none(),
            "half made: {name}"
        );
        case.until("one Event", seconds(10), async || Ok(case.events(name).await?.len() == 1)).await?;
    }
    ensure!(host.log_lines(&["no Event"]).is_empty(), "{:?}", host.log_lines(&["no Event"]));
    case.quiet(seconds(5)).await?;
    for (name, _) in &rows {
        case.patch(DATABASE, name, &json!({"metadata": {"labels": {"seen": "yes"}}})).await?;
        case.delete_with(DATABASE, name, "Foreground").await?;
    }
    // The garbage collector looks for new kinds every half minute.
    for (name, _) in &rows {
        case.until("it to go", seconds(60), async || Ok(case.find(DATABASE, name).await?.is_none())).await?;
    }
    Ok(())
}

pub(crate) async fn case_34_a_bad_spec_stops_only_itself(case: Case) -> Outcome {
    install_loose(&case).await?;
    let host = case.host().start().await?;
    let rows = [
        ("number", json!({"type": 5}), "InvalidSpec", "/spec/type must be a string, not a number"),
        ("null", Value::Null, "InvalidSpec", "/spec/type is missing"),
        ("empty", json!({}), "InvalidSpec", "/spec/type is missing"),
        ("list", json!(["mongo"]), "InvalidSpec", "/spec/type is missing"),
        ("text", json!("mongo"), "InvalidSpec", "/spec/type is missing"),
        ("object", json!({"type": {"mongo": true}}), "InvalidSpec", "/spec/type must be a string, not an object"),
        ("oracle", json!({"type": "oracle"}), "NoPlugin", "accepted: mongo, mysql"),
        ("large", json!({"type": "mongo", "fill": "x".repeat(300_000)}), "TooLarge", "262144"),
    ];
    for (name, spec, ..) in &rows {
        create(&case, name, spec.clone()).await?;
    }
    let absent = json!({"metadata": {"name": "absent"}});
    case.cluster.create(DATABASE, &case.namespace, &absent).await?;
    case.database("good", "mongo").await?;
    for (name, _, reason, words) in &rows {
        let database = case.wait(DATABASE, name, reason, |database| database.is_not("Ready", reason)).await?;
        ensure!(database.message("Ready").contains(words), "{name}: {database}");
        ensure!(database.at("/metadata/annotations").is_null(), "{name} has got annotations");
        ensure!(
            case.find(POD, name).await?.is_none() && case.find(SERVICE, name).await?.is_none(),
            "half made: {name}"
        );
    }
    case.wait(DATABASE, "absent", "refused", |database| database.is_not("Ready", "InvalidSpec")).await?;
    case.quiet(seconds(10)).await?;
    // What is mended is served; what was good and goes bad keeps its Pod.
    for name in ["number", "null", "absent"] {
        case.patch(DATABASE, name, &json!({"spec": {"type": "mysql"}})).await?;
        case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
    }
    let pod = case.get(POD, "good").await?;
    case.patch(DATABASE, "good", &json!({"spec": {"type": 7}})).await?;
    case.wait(DATABASE, "good", "refused", |database| database.is_not("Ready", "InvalidSpec")).await?;
    ensure!(case.get(POD, "good").await?.uid() == pod.uid());
    ensure!(host.log_lines(&["panicked"]).is_empty(), "{:?}", host.log_lines(&["panicked"]));
    Ok(())
}

pub(crate) async fn case_29_what_is_too_large_is_told(case: Case) -> Outcome {
    let large = probe::pod().to_string().replace("mongo:4.0", "{fill:1300000}");
    let script = json!({"children": [serde_json::from_str::<Value>(&large)?]});
    let probe = Probe::new("probe", "mongo").script(&script).spec(&json!({"limits": {"outputKiB": 4096}}));
    let folder = case.plugin_folder()?;
    for file in ["mongo.yaml", "mongo.wasm"] {
        std::fs::remove_file(folder.join(file))?;
    }
    probe.write(&folder)?;
    let _host = case.host().plugins(&folder).start().await?;
    // An object that the API server takes, and no plugin should have to read.
    let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "metadata": {"name": "spec"},
        "spec": {"type": "mysql", "affinity": {"x": "y".repeat(300_000)}}});
    case.apply(&database.to_string()).await?;
    case.apply_database("child", "mongo").await?;
    for (name, words) in [("spec", "262144"), ("child", "Pod child")] {
        let told = |database: &Object| database.is_not("Ready", "TooLarge");
        let database = case.wait(DATABASE, name, "told", told).await?;
        let message = database.message("Ready");
        ensure!(message.contains(words) && message.len() < 1100, "{message}");
        ensure!(case.find(POD, name).await?.is_none(), "{name} has a Pod");
        case.until("one Event", seconds(10), async || Ok(case.events(name).await?.len() == 1)).await?;
    }
    case.database("fine", "mysql").await?;
    let pod = case.get(POD, "fine").await?;
    ensure!(pod.at("/metadata/annotations").to_string().len() < 1_000, "a spec is copied into {pod}");
    Ok(())
}
