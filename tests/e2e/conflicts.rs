//! Names that others have taken: nothing of theirs changes, it is said once, and it heals when they go.

use keelson_tests::prelude::*;

pub(crate) async fn case_04_what_is_not_ours_is_left_alone(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let other = case.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}").await?;
    let foreign = |kind: &str, name: &str, owners: Value| {
        let spec = match kind {
            "Pod" => json!({"containers": [{"name": "c", "image": "c"}]}),
            _ => json!({"ports": [{"port": 1}]}),
        };
        let metadata = json!({"name": name, "ownerReferences": owners, "labels": {"app": "db"}});
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}).to_string()
    };
    let controlled =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other.uid(), "controller": true}]);
    let rows = [
        ("pod", POD, json!([])),
        ("service", SERVICE, json!([])),
        ("pod-of", POD, controlled.clone()),
        ("service-of", SERVICE, controlled),
    ];
    let mut before = Vec::new();
    for (name, kind, owners) in &rows {
        case.apply(&foreign(kind.kind, name, owners.clone())).await?;
        before.push(case.wait(*kind, name, "there", |o| kind.kind != "Pod" || o.is("Ready")).await?);
    }
    for (name, ..) in &rows {
        case.apply_database(name, "mongo").await?;
    }
    for (name, kind, owners) in &rows {
        let conflict = |d: &Object| d.is_not("Ready", "NameConflict");
        let database = case.wait(DATABASE, name, "in conflict", conflict).await?;
        let message = database.message("Ready");
        let owner = if owners.as_array().is_some_and(Vec::is_empty) { "" } else { "ConfigMap other" };
        ensure!(message.contains(&format!("{kind} {name}")) && message.contains(owner), "{message}");
        // The other child stands, and is listed.
        let beside = if kind.kind == "Pod" { SERVICE } else { POD };
        case.wait(beside, name, "there and owned", |o| o.owner() == database.uid()).await?;
        let listed = database.at("/status/children").as_array().cloned().unwrap_or_default();
        ensure!(listed.len() == 1 && listed.iter().all(|child| child["kind"] == beside.kind), "{listed:?}");
    }
    // Several attempts later.
    case.throughout("all stays as it was", seconds(6), async || {
        for ((name, kind, _), before) in rows.iter().zip(&before) {
            ensure!(case.get(*kind, name).await?.version() == before.version(), "{kind} {name} was written to");
        }
        Ok(true)
    })
    .await?;
    for (name, kind, _) in &rows {
        let warnings = case.events(name).await?.into_iter().filter(|e| e.text("/type") == "Warning").count();
        ensure!(warnings == 1, "{warnings} Warning events of {name}");
        case.delete(*kind, name).await?;
    }
    for (name, ..) in &rows {
        case.wait_for(seconds(35), DATABASE, name, "healed", |database| database.is("Ready")).await?;
    }
    Ok(())
}

/// A Secret is not watched, and holds what nobody may lose.
pub(crate) async fn case_04_a_secret_that_is_not_ours_is_left_alone(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let foreign = "{apiVersion: v1, kind: Secret, metadata: {name: a-credentials}, stringData: {password: theirs}}";
    let before = case.apply(foreign).await?;
    case.apply_database("a", "mysql").await?;
    let conflict = |database: &Object| database.is_not("Ready", "NameConflict");
    let database = case.wait(DATABASE, "a", "in conflict", conflict).await?;
    let message = database.message("Ready");
    ensure!(message.contains("Secret a-credentials"), "{message}");
    let same = async || Ok(case.get(SECRET, "a-credentials").await?.version() == before.version());
    case.throughout("the Secret stays as it was", seconds(4), same).await?;
    ensure!(case.find(POD, "a").await?.is_none(), "a Pod that would open its data with a foreign password");
    case.delete(SECRET, "a-credentials").await?;
    case.wait_for(seconds(35), DATABASE, "a", "healed", |database| database.is("Ready")).await?;
    ensure!(case.get(SECRET, "a-credentials").await?.owner() == database.uid());
    Ok(())
}

/// Without the garbage collector a child of an earlier Database stays for good.
pub(crate) async fn case_04_a_child_of_an_earlier_database_is_left_alone(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let old = case.database("a", "mongo").await?;
    case.cluster.signal("controller-manager", "STOP")?;
    case.delete(DATABASE, "a").await?;
    case.wait_gone(DATABASE, "a").await?;
    let before = case.versions().await?;
    case.apply_database("a", "mongo").await?;
    case.wait(DATABASE, "a", "waiting", |database| database.is_not("Ready", "WaitingForDeletion")).await?;
    case.wait(DATABASE, "a", "in conflict", |database| database.is_not("Ready", "NameConflict")).await?;
    case.throughout("all stays as it was", seconds(5), async || Ok(case.versions().await? == before)).await?;
    ensure!(case.get(POD, "a").await?.owner() == old.uid());
    let warnings = case.events("a").await?.into_iter().filter(|e| e.text("/type") == "Warning").count();
    ensure!(warnings == 1, "{warnings} Warning events");
    case.cluster.signal("controller-manager", "CONT")?;
    case.wait_for(seconds(35), DATABASE, "a", "healed", |database| database.is("Ready")).await?;
    ensure!(case.get(POD, "a").await?.owner() != old.uid());
    Ok(())
}
