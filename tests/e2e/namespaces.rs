//! Namespaces that are served by their labels.

use keelson_tests::prelude::*;

const LABEL: &str = "keelson.test/served";

async fn label(case: &Case, namespace: &str, value: Option<&str>) -> Outcome {
    let patch = json!({"metadata": {"labels": {LABEL: value}}});
    case.cluster.patch(NAMESPACE, "", namespace, &patch).await.map(drop)
}

pub(crate) async fn case_73_a_namespace_that_gets_the_label_is_served(case: Case) -> Outcome {
    let value = case.namespace.clone();
    let selector = format!("{LABEL}={value}");
    let first = case.beside("first", &json!({LABEL: value})).await?;
    let later = case.beside("later", &json!({})).await?;
    let never = case.beside("never", &json!({LABEL: "another"})).await?;
    for case in [&first, &later, &never] {
        case.apply_database("before", "mongo").await?;
    }
    let host = case.host().watch("").arg("--watch-namespace-selector").arg(&selector).start().await?;
    first.wait(DATABASE, "before", "Ready", |database| database.is("Ready")).await?;
    for case in [&later, &never] {
        let untouched = case.get(DATABASE, "before").await?;
        ensure!(untouched.at("/status").is_null() && case.versions().await?.is_empty(), "{untouched}");
    }
    // It joins: what is there already, and what comes.
    label(&case, &later.namespace, Some(&value)).await?;
    later.wait_for(seconds(10), DATABASE, "before", "Ready", |database| database.is("Ready")).await?;
    let after = later.database("after", "mysql").await?;
    later.delete(SERVICE, "after").await?;
    later.wait(SERVICE, "after", "back", |service| service.owner() == after.uid() && !service.going()).await?;
    later.wait(DATABASE, "after", "Ready", |database| database.is("Ready")).await?;
    // One that was served all the time has not noticed.
    first.quiet(seconds(2)).await?;
    let steady = first.get(DATABASE, "before").await?;

    // It leaves: nothing is written any more, nothing is taken away.
    later.quiet(seconds(2)).await?;
    let (writes, versions) = (later.writes()?.len(), later.versions().await?);
    label(&case, &later.namespace, None).await?;
    let left = || host.log_lines(&["is left as it is", &later.namespace]);
    case.until("the host to say so", seconds(10), async || Ok(!left().is_empty())).await?;
    ensure!(later.versions().await? == versions, "{versions:?} became {:?}", later.versions().await?);
    later.delete(POD, "before").await?;
    later.apply_database("unseen", "mongo").await?;
    first.database("seen", "mongo").await?;
    let still = async || {
        Ok(later.find(POD, "before").await?.is_none()
            && later.writes()?.len() == writes
            && later.get(DATABASE, "unseen").await?.at("/status").is_null())
    };
    later.wait_gone(POD, "before").await?;
    later.throughout("nothing is written there", seconds(5), still).await?;
    let before = later.get(DATABASE, "before").await?;
    ensure!(before.is("Ready"), "its status is as it was left: {before}");

    // And joins again: the missing Pod is made, the rest is found as it stands.
    let kept = later.get(POD, "after").await?;
    label(&case, &later.namespace, Some(&value)).await?;
    later.wait(POD, "before", "back", |pod| pod.owner() == before.uid()).await?;
    later.wait(DATABASE, "unseen", "Ready", |database| database.is("Ready")).await?;
    ensure!(later.get(POD, "after").await?.version() == kept.version(), "written to, though it stood as rendered");
    ensure!(first.get(DATABASE, "before").await?.version() == steady.version(), "others do not notice");
    ensure!(never.writes()?.is_empty() && never.versions().await?.is_empty());
    // Nor does a host that starts anew.
    let _host = host.restart().await?;
    first.quiet(seconds(2)).await?;
    ensure!(never.writes()?.is_empty() && first.get(DATABASE, "before").await?.version() == steady.version());
    Ok(())
}

pub(crate) async fn a_selector_needs_a_right_and_stands_alone(case: Case) -> Outcome {
    // A host with Roles only.
    case.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: weak}}").await?;
    let weak = case.host().watch("").account(&case.namespace, "weak");
    let host = weak.arg("--watch-namespace-selector").arg("a=b").spawn().await?;
    let told = async || {
        let (status, body) = host.probe("/readyz").await.unwrap_or_default();
        Ok(status == 503 && body.contains("namespaces with a=b") && body.contains("forbidden"))
    };
    case.until("/readyz to name it", seconds(20), told).await?;
    let lines = || host.log_lines(&["ERROR", "namespaces", "list and watch", "WATCH_NAMESPACE"]);
    case.until("a line that says what to do", seconds(10), async || Ok(!lines().is_empty())).await?;
    drop(host);
    // What cannot be a selector is named by the API server, once.
    let host = case.host().watch("").arg("--watch-namespace-selector").arg("a==b==c").spawn().await?;
    let named = async || {
        let (status, body) = host.probe("/readyz").await.unwrap_or_default();
        Ok(status == 503 && body.contains("a==b==c") && body.contains("400 BadRequest"))
    };
    case.until("/readyz to name it", seconds(20), named).await?;
    drop(host);
    // Beside names.
    let mut host = case.host().arg("--watch-namespace-selector").arg("a=b").spawn().await?;
    ensure!(!host.ended(seconds(10)).await?.success());
    ensure!(host.log().contains("--watch-namespace-selector and WATCH_NAMESPACE"), "{}", host.log());
    Ok(())
}
