//! What the cluster does not let happen: told, the rest applied, and healed when it passes.

use keelson_tests::{prelude::*, probe};

async fn warnings(case: &Case, name: &str) -> anyhow::Result<usize> {
    Ok(case.events(name).await?.iter().filter(|event| event.text("/type") == "Warning").count())
}

pub(crate) async fn case_16_a_node_port_that_is_taken(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    // Whatever port the API server gives to another.
    let taken = case
        .apply("{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {type: NodePort, ports: [{port: 1}]}}")
        .await?;
    let port = taken.at("/spec/ports/0/nodePort").clone();
    let mut service = probe::service();
    service["spec"]["type"] = json!("NodePort");
    service["spec"]["ports"] = json!([{"port": 80, "nodePort": port}]);
    case.scripted("a", "mongo", &json!({"children": [service, probe::pod()]})).await?;
    let told = |database: &Object| database.is_not("Ready", "PortConflict");
    let database = case.wait(DATABASE, "a", "told", told).await?;
    let words = database.message("Ready");
    ensure!(words.contains("Service a") && words.contains("provided port is already allocated"), "{words}");
    ensure!(words.contains(&port.to_string()), "{words}");
    // The Pod comes after the Service, and stands nevertheless.
    case.wait(POD, "a", "there", |pod| pod.owner() == database.uid()).await?;
    // Ever more rarely: in the first seconds a few times.
    let tries = || -> anyhow::Result<usize> { Ok(case.writes()?.resource("services").len()) };
    case.throughout("it is told, and tried with growing delay", seconds(12), async || {
        Ok(told(&case.get(DATABASE, "a").await?) && tries()? <= 7)
    })
    .await?;
    ensure!(warnings(&case, "a").await? == 1, "{:?}", case.events("a").await?);
    case.delete(SERVICE, "other").await?;
    let healed = case.wait_for(seconds(35), DATABASE, "a", "healed", |database| database.is("Ready")).await?;
    ensure!(case.get(SERVICE, "a").await?.at("/spec/ports/0/nodePort") == &port, "{healed}");
    // One that stands, too: another port that is taken.
    let other = case
        .apply("{apiVersion: v1, kind: Service, metadata: {name: more}, spec: {type: NodePort, ports: [{port: 1}]}}")
        .await?;
    let mut service = probe::service();
    service["spec"]["type"] = json!("NodePort");
    service["spec"]["ports"] = json!([{"port": 80, "nodePort": other.at("/spec/ports/0/nodePort")}]);
    case.scripted("a", "mongo", &json!({"children": [service, probe::pod()]})).await?;
    case.wait(DATABASE, "a", "told", told).await?;
    case.delete(SERVICE, "more").await?;
    case.wait_for(seconds(35), DATABASE, "a", "healed", |database| database.is("Ready")).await?;
    Ok(())
}

pub(crate) async fn case_25_a_quota_of_no_pods(case: Case) -> Outcome {
    let quota = |pods: &str| {
        format!("{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: q}}, spec: {{hard: {{pods: '{pods}'}}}}}}")
    };
    const QUOTA: Kind = Kind::namespaced("v1", "ResourceQuota", "resourcequotas");
    case.apply(&quota("0")).await?;
    case.wait(QUOTA, "q", "counted", |quota| quota.at("/status/hard/pods") == "0").await?;
    let _host = case.host().start().await?;
    case.apply_database("a", "mongo").await?;
    let told = |database: &Object| database.is_not("Ready", "QuotaExceeded");
    let database = case.wait(DATABASE, "a", "told", told).await?;
    ensure!(
        database.message("Ready").contains("Pod a") && database.message("Ready").contains("exceeded quota: q"),
        "{database}"
    );
    case.wait(SERVICE, "a", "there", |service| service.owner() == database.uid()).await?;
    let tries = || -> anyhow::Result<usize> { Ok(case.writes()?.resource("pods").len()) };
    case.throughout("it is told, and tried with growing delay", seconds(12), async || {
        Ok(told(&case.get(DATABASE, "a").await?) && tries()? <= 7)
    })
    .await?;
    ensure!(warnings(&case, "a").await? == 1, "{:?}", case.events("a").await?);
    case.apply(&quota("5")).await?;
    case.wait_for(seconds(35), DATABASE, "a", "healed", |database| database.is("Ready")).await?;
    ensure!(warnings(&case, "a").await? == 1, "{:?}", case.events("a").await?);
    Ok(())
}

pub(crate) async fn case_26_a_namespace_that_enforces_restricted(case: Case) -> Outcome {
    let enforce = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    case.cluster.patch(NAMESPACE, "", &case.namespace, &enforce("restricted")).await?;
    let folder =
        case.probes(&[Probe::new("probe", "mongo").script(&json!({"children": [probe::pod(), probe::service()]}))])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.apply_database("a", "mongo").await?;
    let told = |database: &Object| database.is_not("Ready", "Forbidden");
    let database = case.wait(DATABASE, "a", "told", told).await?;
    let words = database.message("Ready");
    ensure!(words.contains("violates PodSecurity") && words.contains("allowPrivilegeEscalation"), "{words}");
    case.wait(SERVICE, "a", "there", |service| service.owner() == database.uid()).await?;
    case.throughout("it is told", seconds(6), async || Ok(told(&case.get(DATABASE, "a").await?))).await?;
    ensure!(warnings(&case, "a").await? == 1, "{:?}", case.events("a").await?);
    case.cluster.patch(NAMESPACE, "", &case.namespace, &enforce("baseline")).await?;
    case.wait_for(seconds(35), DATABASE, "a", "healed", |database| database.is("Ready")).await?;
    Ok(())
}

/// By a policy of the cluster's, whose code is that of an invalid object.
pub(crate) async fn a_policy_that_denies_is_waited_for(case: Case) -> Outcome {
    let policy = |namespace: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: keelson-test-denies}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [services]}}]
  validations: [{{expression: 'false', message: no Services here}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: keelson-test-denies}}
spec:
  policyName: keelson-test-denies
  validationActions: [Deny]
  matchResources: {{namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}}}"
        )
    };
    case.apply(&policy(&case.namespace)).await?;
    let service = "{apiVersion: v1, kind: Service, metadata: {name: tries}, spec: {ports: [{port: 1}]}}";
    let in_force = async || match case.apply(service).await {
        Ok(_) => case.delete(SERVICE, "tries").await.map(|()| false),
        Err(_) => Ok(true),
    };
    case.until("the policy to be in force", seconds(20), in_force).await?;
    let _host = case.host().start().await?;
    case.apply_database("a", "mongo").await?;
    let told = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "Forbidden")).await?;
    ensure!(told.message("Ready").contains("no Services here"), "{told}");
    case.wait(POD, "a", "there", |pod| pod.owner() == told.uid()).await?;
    case.cluster.kubectl(&["delete", "validatingadmissionpolicybinding", "keelson-test-denies"]).await?;
    case.wait_for(seconds(40), DATABASE, "a", "healed", |database| database.is("Ready")).await?;
    Ok(())
}
