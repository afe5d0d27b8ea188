//! Pods that end: replaced where nothing else will help, waited for where something may, and always told.

use crate::strategies::{deletes, milliseconds, refused};
use keelson_tests::{prelude::*, probe};

fn ended(phase: &str, reason: &str, words: &str) -> Value {
    let ready = json!({"type": "Ready", "status": "False", "reason": "PodFailed"});
    json!({"status": {"phase": phase, "reason": reason, "message": words, "conditions": [ready]}})
}

fn running() -> Value {
    json!({"status": {"phase": "Running", "reason": null, "message": null, "conditions": [{"type": "Ready", "status": "True"}]}})
}

async fn pod_that_runs(case: &Case, not: &str) -> anyhow::Result<Object> {
    let placed = |pod: &Object| pod.uid() != not && !pod.text("/spec/nodeName").is_empty() && !pod.going();
    let pod = case.wait_for(seconds(60), POD, "a", "there", placed).await?;
    case.patch(POD, "a/status", &running()).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    Ok(pod)
}

pub(crate) async fn pods_that_ended_are_replaced_with_back_off(case: Case) -> Outcome {
    case.pods_by_hand().await?;
    let host = case.host().start().await?;
    case.apply_database("a", "mongo").await?;
    let mut pod = pod_that_runs(&case, "").await?;
    for (phase, reason, words, told) in [
        ("Failed", "Evicted", "low on ephemeral-storage", "Evicted"),
        ("Failed", "", "", "Failed"),
        ("Succeeded", "", "", "Succeeded"),
    ] {
        case.patch(POD, "a/status", &ended(phase, reason, words)).await?;
        let database = case.wait(DATABASE, "a", told, |database| database.is_not("Ready", told)).await?;
        ensure!(database.message("Ready").contains("Pod a") && database.message("Ready").contains(words), "{database}");
        ensure!(database.is("Progressing") && database.is_not("Degraded", "AsExpected"), "{database}");
        let next = pod_that_runs(&case, pod.uid()).await?;
        ensure!(next.owner() == database.uid());
        pod = next;
        let events = case.events("a").await?;
        let said = |event: &Object| event.text("/reason") == "Replaced" && event.text("/note").contains(told);
        ensure!(events.iter().any(said), "{events:?}");
    }
    let at: Vec<i64> = deletes(&case, POD)?.0.iter().map(|call| milliseconds(&call.at)).collect::<Result<_, _>>()?;
    let gaps: Vec<i64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    ensure!(gaps.len() == 2 && gaps[0] >= 4_900 && gaps[1] >= 9_900, "replaced after {gaps:?} ms");
    let metrics = host.metrics().await?;
    let counted = |cause: &str| metrics.sum("keelson_replacements_total", &[("kind", "pods"), ("cause", cause)]);
    ensure!((counted("Disrupted"), counted("Stopped")) == (1.0, 2.0), "{}", metrics.text());
    ensure!(refused(&case)?.is_empty(), "{:?}", refused(&case)?);
    // It is not only the Pod that is told: nothing was made again that nobody took away.
    ensure!(!case.events("a").await?.iter().any(|event| event.text("/reason") == "Recreated"));
    Ok(())
}

pub(crate) async fn pods_that_may_come_right_are_waited_for(case: Case) -> Outcome {
    case.pods_by_hand().await?;
    let _host = case.host().start().await?;
    case.apply_database("a", "mongo").await?;
    let pod = pod_that_runs(&case, "").await?;
    let waiting = |reason: &str| {
        let container = json!({"name": "mongo", "image": "mongo:4.0", "imageID": "", "restartCount": 9, "ready": false,
            "state": {"waiting": {"reason": reason, "message": "as the kubelet says"}}});
        let ready = json!({"type": "Ready", "status": "False", "reason": "ContainersNotReady"});
        json!({"status": {"phase": "Running", "reason": null, "conditions": [ready], "containerStatuses": [container]}})
    };
    let lost = json!({"status": {"phase": "Unknown", "reason": "NodeLost", "message": "Node n is unresponsive",
        "containerStatuses": null, "conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}});
    for (status, reason) in [
        (waiting("ImagePullBackOff"), "ImagePullBackOff"),
        (waiting("CrashLoopBackOff"), "CrashLoopBackOff"),
        (lost, "NodeLost"),
    ] {
        case.patch(POD, "a/status", &status).await?;
        case.wait(DATABASE, "a", reason, |database| database.is_not("Ready", reason)).await?;
        let same = async || Ok(case.get(POD, "a").await?.uid() == pod.uid());
        case.throughout("the Pod stays", seconds(4), same).await?;
    }
    // A node that does not answer keeps what it was told to end: nothing is made beside it.
    case.patch(POD, "a", &json!({"metadata": {"finalizers": ["keelson.test/kubelet"]}})).await?;
    case.delete(POD, "a").await?;
    let told = |database: &Object| {
        database.is_not("Ready", "WaitingForDeletion") && database.message("Ready").contains("NodeLost")
    };
    case.wait(DATABASE, "a", "told", told).await?;
    case.throughout("it is waited for", seconds(4), async || Ok(case.get(POD, "a").await?.uid() == pod.uid())).await?;
    case.patch(POD, "a", &json!({"metadata": {"finalizers": null}})).await?;
    pod_that_runs(&case, pod.uid()).await?;
    ensure!(deletes(&case, POD)?.is_empty(), "{:?}", deletes(&case, POD)?);
    Ok(())
}

/// A Pod that was to end is done when it has; one that failed by itself stays for who wants to look at it.
pub(crate) async fn pods_that_were_to_end_are_kept(case: Case) -> Outcome {
    case.pods_by_hand().await?;
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let script = |policy: &str, strategy: Option<&str>| {
        let mut pod = probe::pod();
        pod["spec"]["restartPolicy"] = json!(policy);
        let mut script = json!({"children": [pod, probe::service()]});
        if let Some(strategy) = strategy {
            script["strategies"] = json!({"Pod": strategy});
        }
        script
    };
    case.scripted("a", "mongo", &script("Never", None)).await?;
    let pod = pod_that_runs(&case, "").await?;
    case.patch(POD, "a/status", &ended("Succeeded", "", "")).await?;
    case.wait(DATABASE, "a", "done", |database| database.is("Ready")).await?;
    case.patch(POD, "a/status", &ended("Failed", "", "exit code 3")).await?;
    let told = case.wait(DATABASE, "a", "told", |database| database.is_not("Ready", "Failed")).await?;
    ensure!(told.message("Ready").contains("exit code 3"), "{told}");
    case.quiet(seconds(6)).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid() && deletes(&case, POD)?.is_empty());
    // The node's fault is another thing: it has not had its run.
    case.patch(POD, "a/status", &ended("Failed", "Evicted", "low on memory")).await?;
    let pod = pod_that_runs(&case, pod.uid()).await?;
    // And where Recreate was asked for, failing is too.
    case.scripted("a", "mongo", &script("Never", Some("Recreate"))).await?;
    case.patch(POD, "a/status", &ended("Failed", "", "exit code 3")).await?;
    pod_that_runs(&case, pod.uid()).await?;
    ensure!(deletes(&case, POD)?.len() == 2, "{:?}", deletes(&case, POD)?);
    Ok(())
}
