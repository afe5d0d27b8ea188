//! How far the host may look: namespaces and rights.

use keelson_tests::prelude::*;

/// The rules that are shipped as ClusterRoles, as a Role of this namespace for a ServiceAccount `host`.
pub(crate) async fn a_role_only(case: &Case) -> Outcome {
    a_role_without(case, "", &[]).await
}

/// The same without these verbs on a resource.
async fn a_role_without(case: &Case, resource: &str, verbs: &[&str]) -> Outcome {
    let mut rules = Vec::new();
    for file in ["deploy/base/clusterrole.yaml", "plugins/mongo/clusterrole.yaml", "plugins/mysql/clusterrole.yaml"] {
        let text = std::fs::read_to_string(repository().join(file))?;
        for document in serde_saphyr::from_multiple::<Value>(&text)? {
            rules.extend(document.get("rules").and_then(Value::as_array).cloned().unwrap_or_default());
        }
    }
    let lacks = |rule: &Value| rule["resources"].as_array().is_some_and(|all| all.iter().any(|one| one == resource));
    let (whole, cut): (Vec<Value>, Vec<Value>) = rules.into_iter().partition(|rule| !lacks(rule));
    let mut rules = whole;
    for rule in cut {
        let without = |key: &str, gone: &[&str]| -> Vec<Value> {
            let all = rule[key].as_array().cloned().unwrap_or_default();
            all.into_iter().filter(|one| one.as_str().is_none_or(|one| !gone.contains(&one))).collect()
        };
        let (groups, others) = (&rule["apiGroups"], without("resources", &[resource]));
        if !others.is_empty() {
            rules.push(json!({"apiGroups": groups, "resources": others, "verbs": rule["verbs"]}));
        }
        rules.push(json!({"apiGroups": groups, "resources": [resource], "verbs": without("verbs", verbs)}));
    }
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "host"}, "rules": rules});
    case.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: host}}").await?;
    case.apply(&role.to_string()).await?;
    let binding = "apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: host}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: host}
subjects: [{kind: ServiceAccount, name: host}]";
    case.apply(binding).await.map(drop)
}

pub(crate) async fn case_33_a_role_is_enough_for_one_namespace(case: Case) -> Outcome {
    a_role_only(&case).await?;
    let mut host = case.host().account(&case.namespace, "host").start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        let database = case.database(name, kind).await?;
        case.delete(POD, name).await?;
        case.wait(POD, name, "back", |pod| !pod.going() && pod.owner() == database.uid()).await?;
        ensure!(case.events(name).await?.iter().any(|event| event.text("/reason") == "Created"));
    }
    let lacking = host.log_lines(&["lacks a right"]);
    ensure!(lacking.is_empty() && host.log_lines(&["forbidden"]).is_empty(), "{lacking:?}\n{}", host.log());
    ensure!(host.stop().await?.success());
    Ok(())
}

pub(crate) async fn case_33_all_namespaces_need_more_and_it_says_what(case: Case) -> Outcome {
    a_role_only(&case).await?;
    let mut host = case.host().account(&case.namespace, "host").watch("").spawn().await?;
    let told = async || {
        let (status, body) = host.probe("/readyz").await.unwrap_or_default();
        let words = ["databases.zalando.org", "all namespaces", "forbidden", "list"];
        Ok(status == 503 && words.iter().all(|word| body.contains(word)))
    };
    case.until("/readyz to name resource, scope and verb", seconds(20), told).await?;
    for resource in ["databases.zalando.org", "pods", "services"] {
        let resource = format!("\"resource\":\"{resource}\"");
        let lines = || host.log_lines(&["ERROR", "forbidden", "list", &resource, "all namespaces"]);
        case.until(&format!("a line about {resource}"), seconds(10), async || Ok(!lines().is_empty())).await?;
        ensure!(lines().len() == 1, "{:?}", lines());
    }
    // What is only needed later is named too, verb by verb.
    let named = async || {
        Ok(["create", "patch", "delete"].iter().all(|verb| {
            !host
                .log_lines(&[
                    "lacks a right",
                    &format!("\"verb\":\"{verb}\""),
                    "\"resource\":\"pods\"",
                    "all namespaces",
                ])
                .is_empty()
        }))
    };
    case.until("the verbs to be named", seconds(20), named).await?;
    case.apply_database("a", "mongo").await?;
    let waits = async || Ok(host.probe("/healthz").await?.0 == 200 && host.probe("/readyz").await?.0 == 503);
    case.throughout("it is alive and not ready", seconds(5), waits).await?;
    ensure!(case.find(POD, "a").await?.is_none());
    ensure!(host.stop().await?.success());
    Ok(())
}

pub(crate) async fn case_33_of_two_namespaces_the_one_that_may_be_read_is_served(case: Case) -> Outcome {
    a_role_only(&case).await?;
    let both = format!("{},default", case.namespace);
    let host = case.host().account(&case.namespace, "host").watch(&both).start().await?;
    case.database("a", "mongo").await?;
    let line = host.log_lines(&["ERROR", "forbidden", "databases.zalando.org", "namespace default"]);
    ensure!(line.len() == 1, "{line:?} in\n{}", host.log());
    Ok(())
}

/// Group, resource and verb of each rule of all documents.
fn rights(text: &str) -> anyhow::Result<std::collections::BTreeSet<(String, String, String)>> {
    let mut rights = std::collections::BTreeSet::new();
    for document in serde_saphyr::from_multiple::<Value>(text)? {
        for rule in document.get("rules").and_then(Value::as_array).into_iter().flatten() {
            let list = |name: &str| {
                let all = rule.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
                all.into_iter().filter_map(|one| one.as_str().map(str::to_owned)).collect::<Vec<_>>()
            };
            for group in list("apiGroups") {
                for resource in list("resources") {
                    rights.extend(list("verbs").into_iter().map(|verb| (group.clone(), resource.clone(), verb)));
                }
            }
        }
    }
    Ok(rights)
}

pub(crate) async fn the_rights_that_are_printed_are_those_that_are_shipped(case: Case) -> Outcome {
    let folder = case.plugin_folder()?;
    let print = |more: &[&str]| -> anyhow::Result<String> {
        let output = std::process::Command::new(binary())
            .args(["plugin", "rbac", "--plugins"])
            .arg(&folder)
            .args(more)
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    let printed = print(&[])?;
    let mut shipped = std::collections::BTreeSet::new();
    for plugin in ["mongo", "mysql"] {
        let file = repository().join(format!("plugins/{plugin}/clusterrole.yaml"));
        shipped.extend(rights(&std::fs::read_to_string(file)?)?);
    }
    let printed_rights = rights(&printed)?;
    let (more, less): (Vec<_>, Vec<_>) =
        (printed_rights.difference(&shipped).collect(), shipped.difference(&printed_rights).collect());
    ensure!(
        more.is_empty() && less.is_empty(),
        "printed beside what is shipped: {more:?}; shipped beside it: {less:?}"
    );
    ensure!(printed == print(&[])?, "another order each time");
    // As they stand they can be applied, for the cluster and for one namespace, and are enough for the latter.
    case.cluster.apply("", &printed.replace("keelson.dev/aggregate-to-host", "keelson.test/none")).await?;
    let roles = print(&["--namespace", &case.namespace])?;
    case.apply(&roles).await?;
    case.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: least}}").await?;
    case.apply(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: events}, rules: [{apiGroups: [events.k8s.io], \
         resources: [events], verbs: [create, patch]}]}",
    )
    .await?;
    for role in ["keelson-plugin-mongo", "keelson-plugin-mysql", "events"] {
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "least"}]});
        case.apply(&binding.to_string()).await?;
    }
    let host = case.host().account(&case.namespace, "least").start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        case.database(name, kind).await?;
        case.delete(SERVICE, name).await?;
        case.wait(SERVICE, name, "back", |service| !service.going()).await?;
        case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
    }
    let lacking = host.log_lines(&["lacks a right"]);
    ensure!(lacking.is_empty() && host.log_lines(&["forbidden"]).is_empty(), "{lacking:?}\n{}", host.log());
    Ok(())
}

pub(crate) async fn case_64_a_missing_verb_is_the_matter_of_its_kind(case: Case) -> Outcome {
    a_role_only(&case).await?;
    // Resource, verbs that are missing, and the word of the condition that names the child or the kind.
    let rows: [(&str, &[&str], &str); 4] = [
        ("services", &["list"], "services"),
        ("pods", &["watch"], "pods"),
        ("services", &["patch"], "Service"),
        ("pods", &["create"], "Pod"),
    ];
    for (index, (resource, verbs, word)) in rows.into_iter().enumerate() {
        let name = format!("d{index}");
        a_role_without(&case, resource, verbs).await?;
        let ask = format!("--as=system:serviceaccount:{}:host", case.namespace);
        let may = ["auth", "can-i", verbs[0], resource, "-n", &case.namespace, &ask];
        let lost = async || Ok(case.cluster.kubectl(&may).await.is_err());
        case.until("the right to be gone", seconds(20), lost).await?;
        let mut host = case.host().account(&case.namespace, "host").start().await?;
        case.apply_database(&name, "mongo").await?;
        let told = case.wait(DATABASE, &name, "Forbidden", |database| database.is_not("Ready", "Forbidden")).await?;
        ensure!(told.message("Ready").contains(word), "{told}");
        ensure!(!host.has_ended()? && host.probe("/healthz").await?.0 == 200);
        let lines = host.log_lines(&["lacks a right", &format!("\"resource\":\"{resource}\""), verbs[0]]);
        ensure!(!lines.is_empty(), "{}", host.log());
        // What the verb is not needed for stands.
        let (other, kind) = if word == "Service" { ("the Pod", POD) } else { ("the Service", SERVICE) };
        if ["Service", "Pod"].contains(&word) {
            case.wait(kind, &name, other, |child| !child.going()).await?;
        }
        a_role_only(&case).await?;
        let healed = |database: &Object| database.is("Ready");
        case.wait_for(seconds(90), DATABASE, &name, "Ready once the right is there", healed).await?;
        host.stop().await?;
    }
    Ok(())
}
