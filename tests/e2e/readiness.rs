//! Ready, and why not: a Database says what its Pod says.

use keelson_tests::prelude::*;

/// What a kubelet would write of the one container in this state.
fn container(ready: bool, state: &Value) -> Value {
    let condition = if ready {
        json!({"type": "Ready", "status": "True"})
    } else {
        json!({"type": "Ready", "status": "False", "reason": "ContainersNotReady"})
    };
    let container = json!({"name": "mongo", "image": "mongo:4.0", "imageID": "", "restartCount": 0, "ready": ready,
        "state": state});
    let phase = if ready { "Running" } else { "Pending" };
    json!({"status": {"phase": phase, "conditions": [condition], "containerStatuses": [container]}})
}

fn waiting(reason: &str, message: &str) -> Value {
    container(false, &json!({"waiting": {"reason": reason, "message": message}}))
}

pub(crate) async fn case_24_an_unschedulable_pod_is_told(case: Case) -> Outcome {
    let limits = |cpu: &str| {
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults"}, "spec": {"limits": [
            {"type": "Container", "default": {"cpu": cpu}, "defaultRequest": {"cpu": cpu}}]}})
    };
    case.apply(&limits("5k").to_string()).await?;
    let _host = case.host().start().await?;
    case.apply_database("a", "mongo").await?;
    let database = case.wait(DATABASE, "a", "unschedulable", |d| d.is_not("Ready", "Unschedulable")).await?;
    let message = database.message("Ready");
    ensure!(message.contains("Pod a") && message.contains("Insufficient cpu"), "{message}");
    ensure!(database.is("Progressing") && database.is_not("Degraded", "AsExpected"), "{database}");

    // The cluster is mended, the Pod is made anew: nothing else is needed.
    case.apply(&limits("10m").to_string()).await?;
    case.delete(POD, "a").await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    Ok(())
}

pub(crate) async fn case_24_a_database_is_ready_when_its_pod_is(case: Case) -> Outcome {
    case.pods_by_hand().await?;
    let _host = case.host().start().await?;
    let states = case.record(DATABASE, "a").await?;
    case.apply_database("a", "mongo").await?;
    case.wait(POD, "a", "there", |pod| !pod.text("/spec/nodeName").is_empty()).await?;
    let is = async |pod: Value, reason: &str, words: &str| {
        case.patch(POD, "a/status", &pod).await?;
        let database = case.wait(DATABASE, "a", reason, |database| database.is_not("Ready", reason)).await?;
        let message = database.message("Ready");
        ensure!(message.contains("Pod a") && message.contains(words), "{reason}: {message}");
        Ok(())
    };
    is(waiting("ContainerCreating", ""), "ContainersNotReady", "").await?;
    is(waiting("ImagePullBackOff", "back-off pulling mongo:4.0"), "ImagePullBackOff", "back-off pulling").await?;
    let table = case.cluster.kubectl(&["-n", &case.namespace, "get", "databases"]).await?;
    ensure!(table.contains("ImagePullBackOff") && table.contains("False"), "{table}");
    ensure!(!states.saw(|database| database.is("Ready")), "Ready before the Pod was: {:?}", states.all());

    case.patch(POD, "a/status", &container(true, &json!({"running": {"startedAt": null}}))).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    is(waiting("CrashLoopBackOff", "back-off restarting"), "CrashLoopBackOff", "restarting").await?;
    // The words of a Pod that is not ready are a child's, not a failure of the host's.
    let database = case.get(DATABASE, "a").await?;
    ensure!(database.is_not("Degraded", "AsExpected"), "{database}");
    ensure!(case.events("a").await?.len() == 1, "{:?}", case.events("a").await?);
    Ok(())
}
