//! Who owns what, and what becomes of it.

use keelson_tests::prelude::*;

pub(crate) async fn case_01_deleted_children_come_back(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let database = case.database("a", "mongo").await?;
    let states = case.record(DATABASE, "a").await?;
    for kind in [SERVICE, POD] {
        let old = case.get(kind, "a").await?;
        case.delete(kind, "a").await?;
        let back = |new: &Object| new.uid() != old.uid() && new.owner() == database.uid() && !new.going();
        case.wait_for(seconds(10), kind, "a", "back and owned by the Database", back).await?;
    }
    case.until("Ready to go False", seconds(10), async || {
        Ok(states.saw(|d| d.condition("Ready").is_some_and(|c| c.status == "False")))
    })
    .await?;
    case.wait(DATABASE, "a", "Ready again", |d| d.is("Ready")).await?;
    Ok(())
}

pub(crate) async fn case_03_a_service_selects_its_own_pod_only(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    case.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: foreign, labels: {app: db, app.kubernetes.io/instance: a}},
          spec: {containers: [{name: c, image: c}]}}",
    )
    .await?;
    case.wait(POD, "foreign", "running", |pod| pod.is("Ready")).await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        case.database(name, kind).await?;
    }
    for name in ["a", "b"] {
        let own = async || Ok(endpoints(&case, name).await? == [name]);
        case.until(&format!("the endpoints of {name} to be its Pod alone"), seconds(20), own).await?;
        case.throughout("they stay so", seconds(2), own).await?;
    }
    Ok(())
}

/// The names of the Pods behind a Service.
async fn endpoints(case: &Case, service: &str) -> anyhow::Result<Vec<String>> {
    let slices = case.list(ENDPOINT_SLICE).await?;
    let slices = slices.iter().filter(|slice| slice.label("kubernetes.io/service-name") == Some(service));
    let endpoints = slices.flat_map(|slice| slice.at("/endpoints").as_array().cloned().unwrap_or_default());
    Ok(endpoints.map(|endpoint| Object(endpoint).text("/targetRef/name").to_owned()).collect())
}

pub(crate) async fn case_08_labels_of_the_database_are_not_copied(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let theirs = |instance: &str| {
        json!({"apiVersion": "zalando.org/v1", "kind": "Database", "spec": {"type": "mysql"}, "metadata": {"name": "a",
            "labels": {"app.kubernetes.io/instance": instance, "argocd.argoproj.io/instance": instance, "team": "x"},
            "annotations": {"argocd.argoproj.io/tracking-id": "argo-app:zalando.org/Database:ns/a", "argocd.argoproj.io/sync-wave": "1"}}})
    };
    case.apply(&theirs("argo-app").to_string()).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(1)).await?;
    let before = case.versions().await?;
    for child in [case.get(POD, "a").await?, case.get(SERVICE, "a").await?, case.get(SECRET, "a-credentials").await?] {
        let text = child.at("/metadata/labels").to_string() + &child.at("/metadata/annotations").to_string();
        ensure!(!text.contains("argo") && !text.contains("team"), "copied to {child}");
    }
    // Nor does a change there write to a child.
    case.apply(&theirs("argo-app-2").to_string()).await?;
    case.quiet(seconds(5)).await?;
    ensure!(case.versions().await? == before, "{before:?} became {:?}", case.versions().await?);
    Ok(())
}

pub(crate) async fn case_09_owner_references_need_a_right_and_the_shipped_role_has_it(case: Case) -> Outcome {
    let host = case.host().start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        let database = case.database(name, kind).await?;
        for kind in [POD, SERVICE] {
            let owner = case.get(kind, name).await?.at("/metadata/ownerReferences/0").clone();
            let wanted = json!({"apiVersion": "zalando.org/v1", "kind": "Database", "name": name, "uid": database.uid(),
                "controller": true, "blockOwnerDeletion": true});
            ensure!(owner == wanted, "{owner}");
        }
    }
    let forbidden = case.calls()?.filter(|call| call.code == 403);
    ensure!(forbidden.is_empty(), "{forbidden:?}");
    drop(host);

    // The same host without that one right: told, and healed once it is given.
    let role = |resources: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: weak}}
rules:
- {{apiGroups: [zalando.org], resources: [databases], verbs: [get, list, watch]}}
- {{apiGroups: [zalando.org], resources: [{resources}], verbs: [get, patch, update]}}
- {{apiGroups: [''], resources: [pods, services, persistentvolumeclaims], verbs: [get, list, watch, create, patch, delete]}}
- {{apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, create, patch, delete]}}
- {{apiGroups: [''], resources: [secrets], verbs: [get, create, patch]}}
- {{apiGroups: [events.k8s.io, ''], resources: [events], verbs: [create, patch]}}"
        )
    };
    case.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: weak}}").await?;
    case.apply(&role("databases/status")).await?;
    case.apply(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: weak},
          roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: weak}, subjects: [{kind: ServiceAccount, name: weak}]}",
    )
    .await?;
    let _host = case.host().account(&case.namespace, "weak").start().await?;
    case.apply_database("c", "mongo").await?;
    let refused = case.wait(DATABASE, "c", "forbidden", |database| database.is_not("Ready", "Forbidden")).await?;
    let message = refused.message("Ready");
    ensure!(message.contains("blockOwnerDeletion") || message.contains("finalizers"), "{message}");
    ensure!(case.find(POD, "c").await?.is_none());
    case.apply(&role("databases/status, databases/finalizers")).await?;
    case.wait_for(seconds(35), DATABASE, "c", "healed", |database| database.is("Ready")).await?;
    Ok(())
}

pub(crate) async fn case_82_a_child_without_our_label_comes_back(case: Case) -> Outcome {
    const LABEL: &str = "keelson.dev/instance";
    let host = case.host().start().await?;
    let database = case.database("a", "mongo").await?;
    let states = case.record(DATABASE, "a").await?;
    let without = json!({"metadata": {"labels": {LABEL: null}}});
    let other = json!({"metadata": {"labels": {LABEL: "another"}}});
    let bare = json!({"metadata": {"labels": null, "annotations": null}});
    for (kind, edit) in [(POD, &without), (SERVICE, &without), (POD, &other), (SERVICE, &bare), (POD, &bare)] {
        let before = case.get(kind, "a").await?;
        case.patch(kind, "a", edit).await?;
        back(&case, kind, &before, &database).await?;
    }
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(4)).await?;

    // While no host looked.
    let (pod, service) = (case.get(POD, "a").await?, case.get(SERVICE, "a").await?);
    let mut host = host;
    host.kill()?;
    case.patch(POD, "a", &without).await?;
    case.patch(SERVICE, "a", &other).await?;
    let _host = host.restart().await?;
    back(&case, POD, &pod, &database).await?;
    back(&case, SERVICE, &service, &database).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(4)).await?;
    ensure!(!states.saw(|d| d.is_not("Ready", "NameConflict")), "{:?}", states.all());
    ensure!(case.events("a").await?.iter().all(|event| event.text("/type") != "Warning"));
    Ok(())
}

async fn back(case: &Case, kind: Kind, before: &Object, database: &Object) -> Outcome {
    let labelled = |o: &Object| {
        o.label("keelson.dev/instance") == Some(database.uid()) && o.annotation("keelson.dev/hash").is_some()
    };
    let after = case.wait_for(seconds(10), kind, "a", "labelled again", labelled).await?;
    ensure!(after.uid() == before.uid(), "{kind} a was made again");
    ensure!(after.owner() == database.uid());
    Ok(())
}
