//! What a user may ask of a Database beside its type: how it is reached, where it runs, with what; and a namespace that
//! asks for more than others.

use keelson_tests::prelude::*;

pub(crate) fn database(name: &str, spec: &Value) -> String {
    json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "metadata": {"name": name}, "spec": spec})
        .to_string()
}

pub(crate) async fn levers_reach_pod_and_service(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1", "node-2"]}]}]}}});
    let toleration = json!({"key": "databases", "operator": "Equal", "value": "only", "effect": "NoSchedule"});
    let resources = json!({"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}});
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        let spec = json!({"type": kind, "service": {"type": "ClusterIP"}, "resources": resources,
            "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [toleration], "affinity": affinity});
        case.apply(&database(name, &spec)).await?;
        let seen = case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
        ensure!(seen.at("/status/nodePort").is_null(), "{seen}");
        let service = case.get(SERVICE, name).await?;
        ensure!(
            service.text("/spec/type") == "ClusterIP" && service.at("/spec/ports/0/nodePort").is_null(),
            "{service}"
        );
        let pod = case.get(POD, name).await?;
        ensure!(*pod.at("/spec/containers/0/resources") == resources, "{pod}");
        ensure!(*pod.at("/spec/nodeSelector") == json!({"kubernetes.io/os": "linux"}), "{pod}");
        ensure!(*pod.at("/spec/tolerations/0") == toleration && *pod.at("/spec/affinity") == affinity, "{pod}");
        ensure!(["node-1", "node-2"].contains(&pod.text("/spec/nodeName")), "{pod}");
    }
    case.quiet(seconds(6)).await
}

pub(crate) async fn a_service_becomes_internal_and_is_opened_again(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let before = case.database("a", "mongo").await?;
    ensure!(before.at("/status/nodePort").is_number(), "{before}");
    let pod = case.get(POD, "a").await?;
    case.patch(DATABASE, "a", &json!({"spec": {"service": {"type": "ClusterIP"}}})).await?;
    let internal = |database: &Object| database.is("Ready") && database.at("/status/nodePort").is_null();
    case.wait(DATABASE, "a", "without a node port", internal).await?;
    let service = case.get(SERVICE, "a").await?;
    ensure!(service.text("/spec/type") == "ClusterIP" && service.at("/spec/ports/0/nodePort").is_null(), "{service}");

    case.patch(DATABASE, "a", &json!({"spec": {"service": {"type": "LoadBalancer"}}})).await?;
    case.wait(SERVICE, "a", "for a load balancer", |service| service.text("/spec/type") == "LoadBalancer").await?;
    // What a cloud's controller would write.
    let ingress = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}});
    case.patch(SERVICE, "a/status", &ingress).await?;
    let told = |database: &Object| database.text("/status/externalEndpoint") == "192.0.2.7:27017";
    case.wait(DATABASE, "a", "reached from outside", told).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid(), "the Pod was made again");
    Ok(())
}

pub(crate) async fn a_node_port_of_ones_choice_may_be_taken(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let first = case.database("a", "mongo").await?;
    let port = first.at("/status/nodePort").clone();
    case.apply(&database("b", &json!({"type": "mysql", "service": {"nodePort": port}}))).await?;
    let told = case.wait(DATABASE, "b", "told", |database| database.is_not("Ready", "PortConflict")).await?;
    let message = told.message("Ready");
    ensure!(message.contains("Service b") && message.contains("provided port is already allocated"), "{message}");
    case.wait(POD, "b", "running all the same", |pod| pod.is("Ready")).await?;
    ensure!(case.events("b").await?.iter().filter(|event| event.text("/reason") == "PortConflict").count() <= 1);

    // It comes back by itself once the port is free.
    case.patch(DATABASE, "a", &json!({"spec": {"service": {"type": "ClusterIP"}}})).await?;
    case.wait_for(seconds(60), DATABASE, "b", "Ready", |database| database.is("Ready")).await?;
    ensure!(*case.get(DATABASE, "b").await?.at("/status/nodePort") == port);
    Ok(())
}

pub(crate) async fn case_26_pods_comply_with_a_restricted_namespace(case: Case) -> Outcome {
    restrict(&case).await?;
    let host = case.host().start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        case.database(name, kind).await?;
    }
    let warnings = host.log_lines(&["would violate PodSecurity"]);
    ensure!(warnings.is_empty(), "{warnings:?}");
    Ok(())
}

/// The namespace enforces PodSecurity restricted, and a plain Pod is refused there.
async fn restrict(case: &Case) -> Outcome {
    let label = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    case.cluster.patch(NAMESPACE, "", &case.namespace, &label).await?;
    let plain = json!({"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c", "image": "c"}]}});
    let path = format!("{}?dryRun=All", POD.path(&case.namespace, ""));
    case.until("the policy to be in force", seconds(20), async || {
        let made = case.cluster.send(http::Method::POST, &path, "application/json", &plain).await;
        Ok(made.err().is_some_and(|error| format!("{error:#}").contains("violates PodSecurity")))
    })
    .await
}

pub(crate) async fn a_spec_that_cannot_be_is_refused_at_admission(case: Case) -> Outcome {
    let stored = |storage: Value| json!({"type": "mysql", "storage": storage});
    for (spec, words) in [
        (json!({"type": "mongo", "version": "8.4"}), vec!["spec.version", "of mongo there are 4.0, 4.2"]),
        (json!({"type": "mysql", "version": "4.0"}), vec!["spec.version", "of mysql 8.0, 8.4"]),
        (json!({"type": "mysql", "version": 8}), vec!["spec.version", "string"]),
        (stored(json!({})), vec!["spec.storage.size", "Required"]),
        (stored(json!({"size": "much"})), vec!["spec.storage.size", "a quantity above 0, such as 10Gi"]),
        (stored(json!({"size": "-1Gi"})), vec!["spec.storage.size", "a quantity above 0"]),
        (stored(json!({"size": "1Gi", "onDelete": "Keep"})), vec!["spec.storage.onDelete", "\"Retain\", \"Delete\""]),
        (json!({"type": "mongo", "service": {"type": "ExternalName"}}), vec!["spec.service.type", "\"ClusterIP\""]),
        (
            json!({"type": "mongo", "service": {"type": "ClusterIP", "nodePort": 30000}}),
            vec!["spec.service.nodePort", "take NodePort or LoadBalancer"],
        ),
        (json!({"type": "mongo", "service": {"nodePort": 70000}}), vec!["spec.service.nodePort", "65535"]),
        (json!({"type": "mongo", "credentials": {"secretRef": {"name": "A_b"}}}), vec!["credentials.secretRef.name"]),
        (json!({"type": "mongo", "resources": {"limits": {"cpu": "much"}}}), vec!["spec.resources.limits.cpu"]),
        (json!({"type": "mongo", "tolerations": [{"key": 5}]}), vec!["spec.tolerations[0].key", "string"]),
    ] {
        let refusal = case.refused(&database("a", &spec)).await?;
        ensure!(words.iter().all(|word| refusal.contains(word)), "{spec}: {refusal}");
    }
    Ok(())
}

pub(crate) async fn storage_and_credentials_are_not_taken_back(case: Case) -> Outcome {
    let with = |spec: Value| database("a", &spec);
    let secret = json!({"secretRef": {"name": "mine"}});
    let first =
        json!({"type": "mysql", "storage": {"size": "10Gi", "storageClassName": "fast"}, "credentials": secret});
    case.apply(&with(first)).await?;
    let refused = async |patch: Value, words: &[&str]| {
        let refusal = case.patch(DATABASE, "a", &json!({"spec": patch})).await.err().map(|error| format!("{error:#}"));
        let refusal = refusal.with_context(|| format!("the API server accepts {patch}"))?;
        ensure!(words.iter().all(|word| refusal.contains(word)), "{patch}: {refusal}");
        Ok(())
    };
    refused(json!({"storage": {"size": "9.5Gi"}}), &["spec.storage.size", "can grow and not shrink: at least 10Gi"])
        .await?;
    refused(json!({"storage": {"size": "1"}}), &["at least 10Gi"]).await?;
    refused(json!({"storage": null}), &["spec.storage", "cannot be taken away", "keep size 10Gi"]).await?;
    refused(json!({"storage": {"storageClassName": "slow"}}), &["spec.storage.storageClassName", "keep \"fast\""])
        .await?;
    refused(json!({"storage": {"storageClassName": null}}), &["keep \"fast\""]).await?;
    refused(json!({"credentials": null}), &["spec.credentials", "cannot be taken away"]).await?;
    // What is no loss is let through: growth in any unit, another fate, another Secret, another version.
    for patch in [
        json!({"storage": {"size": "10240Mi"}}),
        json!({"storage": {"size": "0.5Ti", "onDelete": "Delete"}}),
        json!({"credentials": {"secretRef": {"name": "other"}}}),
        json!({"version": "8.4"}),
    ] {
        case.patch(DATABASE, "a", &json!({"spec": patch})).await?;
    }

    case.apply(&database("b", &json!({"type": "mongo", "storage": {"size": "1Gi"}}))).await?;
    let patch = json!({"spec": {"credentials": secret}});
    let refusal = case.patch(DATABASE, "b", &patch).await.err().map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(refusal.contains("spec.credentials") && refusal.contains("cannot be added to a mongo"), "{refusal}");
    let patch = json!({"spec": {"storage": {"storageClassName": "fast"}}});
    let refusal = case.patch(DATABASE, "b", &patch).await.err().map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(refusal.contains("leave it out, as it was"), "{refusal}");
    // Without storage nothing is there to be lost.
    case.apply(&database("c", &json!({"type": "mongo", "version": "8.0"}))).await?;
    case.apply(&database("c", &json!({"type": "mongo", "version": "4.0", "credentials": secret}))).await?;
    case.apply(&database("c", &json!({"type": "mongo", "storage": {"size": "1Gi"}, "version": "4.0"}))).await?;
    Ok(())
}

pub(crate) async fn every_field_is_explained(case: Case) -> Outcome {
    let table = case.cluster.kubectl(&["explain", "databases", "--recursive"]).await?;
    ensure!(table.contains("storageClassName") && table.contains("externalEndpoint"), "{table}");
    let mut unexplained = Vec::new();
    let crd = std::fs::read_to_string(repository().join("plugins/databases.zalando.org.yaml"))?;
    let crd: Value = serde_saphyr::from_str(&crd)?;
    let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema").context("the CRD has a schema")?;
    walk(schema, "databases", &mut unexplained);
    ensure!(unexplained.is_empty(), "without a description: {unexplained:?}");
    for (field, words) in [
        ("spec.storage", "lost with each restart"),
        ("spec.version", "VersionNotAllowed"),
        ("spec.credentials.secretRef", "changes no password"),
        ("spec.affinity", "podAntiAffinity"),
        ("status.dataVersion", "4.0-to-4.2"),
    ] {
        let text = case.cluster.kubectl(&["explain", &format!("databases.{field}")]).await?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(text.contains(words), "{field}: {text}");
    }
    Ok(())
}

/// Every property has a description, those of Kubernetes' own metadata apart.
fn walk(schema: &Value, at: &str, unexplained: &mut Vec<String>) {
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let at = format!("{at}.{name}");
        if at == "databases.metadata" {
            continue;
        }
        let described = field.get("description").and_then(Value::as_str).is_some_and(|text| text.ends_with('.'));
        if !described {
            unexplained.push(at.clone());
        }
        walk(field, &at, unexplained);
        walk(field.get("items").unwrap_or(&Value::Null), &format!("{at}[]"), unexplained);
    }
}
