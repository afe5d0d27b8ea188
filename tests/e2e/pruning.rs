//! What is no longer rendered, or cannot be changed: that it goes, and what may keep it.

use crate::strategies::{deletes, refused};
use keelson_tests::{prelude::*, probe};

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

/// One kind may be made and not deleted: it is said, and holds nothing up.
pub(crate) async fn what_may_not_be_deleted_is_told_and_the_rest_goes(case: Case) -> Outcome {
    case.also_may("[{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch, create, patch]}]").await?;
    let folder = case.probes(&[Probe::new("probe", "mongo").children(&[CONFIG_MAP, POD, SERVICE])])?;
    let _host = case.host().plugins(&folder).start().await?;
    let all = [map("{name}-1"), map("{name}-2"), probe::service(), probe::pod()];
    case.scripted("a", "mongo", &json!({"children": all})).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let map = case.get(CONFIG_MAP, "a-1").await?;
    case.scripted("a", "mongo", &json!({"children": [probe::pod()], "status": {"message": "less"}})).await?;
    case.wait_gone(SERVICE, "a").await?;
    let less = |database: &Object| database.is("Ready") && database.text("/status/message") == "less";
    let database = case.wait(DATABASE, "a", "Ready without them", less).await?;
    ensure!(database.at("/status/children").to_string().contains("a-1"), "what is left is listed: {database}");
    let told = |name: &'static str| {
        move |event: &Object| event.text("/reason") == "PruneForbidden" && event.text("/note").contains(name)
    };
    for name in ["ConfigMap a-1", "ConfigMap a-2"] {
        let told = async || Ok(case.events("a").await?.iter().any(told(name)));
        case.until(&format!("an Event of {name}"), seconds(15), told).await?;
    }
    case.quiet(seconds(3)).await?;
    ensure!(case.get(CONFIG_MAP, "a-1").await?.version() == map.version());
    let tries = refused(&case)?.resource("configmaps").verb("delete");
    ensure!(tries.len() <= 6, "asked again and again: {tries:?}");
    // The right is given: the next look takes them away.
    case.also_may("[{apiGroups: [''], resources: [configmaps], verbs: [delete]}]").await?;
    let ask = format!("--as={HOST_USER}");
    let may = ["auth", "can-i", "delete", "configmaps", "-n", &case.namespace, &ask];
    case.until("the right", seconds(20), async || Ok(case.cluster.kubectl(&may).await.is_ok())).await?;
    let look = json!({"metadata": {"annotations": {"keelson.dev/render-requested-at": "now"}}});
    case.patch(DATABASE, "a", &look).await?;
    case.wait_gone(CONFIG_MAP, "a-1").await?;
    case.wait_gone(CONFIG_MAP, "a-2").await
}

/// The delete is for what was seen. What has changed since is looked at again, and then it goes.
pub(crate) async fn a_child_that_changes_under_its_delete_is_pruned_all_the_same(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).through(&proxy).start().await?;
    case.scripted("a", "mongo", &json!({"children": [probe::service(), probe::pod()]})).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(1)).await?;
    let delete = Match::method(http::Method::DELETE).path("/services/a").times(1);
    proxy.add(delete, Fault::Delay(seconds(3)));
    case.scripted("a", "mongo", &json!({"children": [probe::pod()]})).await?;
    case.until("the delete to be on its way", seconds(20), async || Ok(proxy.hits() == 1)).await?;
    case.patch(SERVICE, "a", &json!({"metadata": {"annotations": {"theirs": "1"}}})).await?;
    case.wait_gone(SERVICE, "a").await?;
    let conflicts = async || Ok(case.writes()?.resource("services").verb("delete").0.iter().any(|it| it.code == 409));
    case.until("the first delete to be in the log", seconds(5), conflicts).await?;
    let unlisted =
        |database: &Object| database.is("Ready") && !database.at("/status/children").to_string().contains("Service");
    case.wait(DATABASE, "a", "Ready without it", unlisted).await?;
    case.quiet(seconds(2)).await
}

/// A field of a claim that cannot be changed is said, whatever strategy is asked for: it holds data.
pub(crate) async fn a_claim_is_never_replaced(case: Case) -> Outcome {
    let script = |mode: &str| {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "{name}-data"},
            "spec": {"accessModes": [mode], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}});
        json!({"children": [claim, probe::pod()], "strategies": {"PersistentVolumeClaim": "Recreate"}})
    };
    let rule = json!({"strategies": [{"group": "", "kind": "PersistentVolumeClaim", "strategy": "Recreate"}]});
    let folder = case.probes(&[Probe::new("probe", "mongo").children(&[CLAIM, POD]).spec(&rule)])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.scripted("a", "mongo", &script("ReadWriteOnce")).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let (claim, pod) = (case.get(CLAIM, "a-data").await?, case.get(POD, "a").await?);
    case.scripted("a", "mongo", &script("ReadWriteMany")).await?;
    let told = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "ImmutableField")).await?;
    let words = told.message("Ready");
    ensure!(words.contains("PersistentVolumeClaim a-data") && words.contains("holds data"), "{words}");
    case.quiet(seconds(3)).await?;
    ensure!(deletes(&case, CLAIM)?.is_empty() && refused(&case)?.len() == 1, "{:?}", case.writes()?);
    ensure!(case.get(CLAIM, "a-data").await?.uid() == claim.uid() && case.get(POD, "a").await?.uid() == pod.uid());
    case.scripted("a", "mongo", &script("ReadWriteOnce")).await?;
    case.wait(DATABASE, "a", "Ready again", |database| database.is("Ready")).await.map(drop)
}
