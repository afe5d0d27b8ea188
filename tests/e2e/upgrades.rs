//! From one version to the next, with the data.

use crate::databases::database;
use keelson_tests::prelude::*;

const CLAIM: Kind = Kind::namespaced("v1", "PersistentVolumeClaim", "persistentvolumeclaims");
const VOLUME: Kind = Kind::cluster("v1", "PersistentVolume", "persistentvolumes");

const JOB: Kind = Kind::namespaced("batch/v1", "Job", "jobs");

/// A volume for a Database's claim, which nobody makes in the simulated cluster.
async fn volume(case: &Case, name: &str, class: &str) -> Outcome {
    let claim = json!({"namespace": case.namespace, "name": format!("{name}-data")});
    let volume = json!({"metadata": {"name": format!("{}-{name}", case.namespace)}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "storageClassName": class, "claimRef": claim, "hostPath": {"path": "/none"}}});
    case.cluster.create(VOLUME, "", &volume).await.map(drop)
}

/// A Ready Database with storage.
async fn with_storage(case: &Case, name: &str, kind: &str, on_delete: &str) -> anyhow::Result<Object> {
    volume(case, name, "by-hand").await?;
    let storage = json!({"size": "1Gi", "storageClassName": "by-hand", "onDelete": on_delete});
    case.apply(&database(name, &json!({"type": kind, "storage": storage}))).await?;
    case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await
}

async fn ask_for(case: &Case, name: &str, version: &str) -> Outcome {
    case.patch(DATABASE, name, &json!({"spec": {"version": version}})).await.map(drop)
}

/// Waits until the data is of this version, and all is at rest.
async fn arrives_at(case: &Case, name: &str, version: &str) -> anyhow::Result<Object> {
    let there = |database: &Object| {
        database.is("Ready")
            && database.text("/status/dataVersion") == version
            && database.text("/status/version") == version
    };
    case.wait(DATABASE, name, &format!("at {version}"), there).await
}

/// The version asked for is refused, with the field and these as what would be accepted.
async fn is_refused(case: &Case, name: &str, version: &str, accepted: &str) -> Outcome {
    ask_for(case, name, version).await?;
    let refused = |database: &Object| {
        database.is_not("Ready", "VersionNotAllowed")
            && database.at("/status/observedGeneration") == database.at("/metadata/generation")
    };
    let database = case.wait(DATABASE, name, "refused", refused).await?;
    let message = database.message("Ready");
    ensure!(message.contains("/spec/version") && message.contains(accepted), "{message}");
    Ok(())
}

fn upgrading(database: &Object, from_to: &str) -> bool {
    database.is("Upgrading")
        && database.text("/status/dataVersion") == from_to
        && database.condition("Ready").is_some_and(|ready| ready.status == "False")
}

pub(crate) async fn mongo_moves_step_by_step(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    with_storage(&case, "a", "mongo", "Delete").await?;
    let pod = case.get(POD, "a").await?;
    ensure!(pod.text("/spec/volumes/0/persistentVolumeClaim/claimName") == "a-data", "{pod}");
    is_refused(&case, "a", "4.4", "4.0, 4.2").await?;
    ensure!(case.get(POD, "a").await?.version() == pod.version(), "the Pod is as it was");

    for (from, to, job) in [("4.0", "4.2", "a-fcv-4-2"), ("4.2", "4.4", "a-fcv-4-4")] {
        let (states, jobs) = (case.record(DATABASE, "a").await?, case.record(JOB, job).await?);
        ask_for(&case, "a", to).await?;
        let database = arrives_at(&case, "a", to).await?;
        ensure!(database.condition("Upgrading").is_none(), "{database}");
        let both = format!("{from}-to-{to}");
        ensure!(states.saw(|state| upgrading(state, &both)), "{from} to {to} was not told: {:?}", states.all());
        ensure!(jobs.saw(|job| job.is("Complete")), "{:?}", jobs.all());
        case.wait_gone(JOB, job).await?;
        let after = case.get(POD, "a").await?;
        ensure!(after.uid() == pod.uid() && after.text("/spec/containers/0/image") == format!("mongo:{to}"), "{after}");
        let own = async || Ok(case.list(POD).await?.iter().all(|pod| pod.name() == "a"));
        case.until("the Job's Pods to go with it", seconds(60), own).await?;
    }
    is_refused(&case, "a", "4.2", "4.4, 5.0").await?;
    ask_for(&case, "a", "4.4").await?;
    arrives_at(&case, "a", "4.4").await?;
    case.quiet(seconds(5)).await?;
    // What the user wants gone goes with the Database.
    case.delete(DATABASE, "a").await?;
    case.wait_gone(CLAIM, "a-data").await
}

pub(crate) async fn a_step_goes_on_under_another_host(case: Case) -> Outcome {
    let host = case.host().start().await?;
    with_storage(&case, "a", "mongo", "Delete").await?;
    case.pods_by_hand().await?; // from here on: those of the Job
    ask_for(&case, "a", "4.2").await?;
    case.wait(JOB, "a-fcv-4-2", "at work", |job| *job.at("/status/active") == json!(1)).await?;
    let claim = case.get(CLAIM, "a-data").await?;
    ensure!(claim.annotation("zalando.org/data-version") == Some("4.0-to-4.2"), "{claim}");
    let host = host.restart().await?;
    case.wait(DATABASE, "a", "upgrading still", |database| upgrading(database, "4.0-to-4.2")).await?;
    // Neither back nor further before it is done.
    is_refused(&case, "a", "4.0", "4.2").await?;
    is_refused(&case, "a", "4.4", "4.2").await?;
    // The server is the only one behind the Service, also while the Job's Pod runs.
    ended(&case, "Running").await?;
    let slices = case.list(ENDPOINT_SLICE).await?;
    let text = slices.iter().map(|slice| slice.at("/endpoints").to_string()).collect::<String>();
    ensure!(!text.contains("a-fcv-4-2"), "{text}");
    ended(&case, "Succeeded").await?;
    // The Job has succeeded, so what was asked for meanwhile goes on.
    case.wait(JOB, "a-fcv-4-4", "at work", |job| *job.at("/status/active") == json!(1)).await?;
    ended(&case, "Succeeded").await?;
    arrives_at(&case, "a", "4.4").await?;
    drop(host);
    Ok(())
}

pub(crate) async fn a_job_that_fails_says_what_to_do(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    with_storage(&case, "a", "mongo", "Delete").await?;
    let pod = case.get(POD, "a").await?;
    case.pods_by_hand().await?;
    ask_for(&case, "a", "4.2").await?;
    let job = case.wait(JOB, "a-fcv-4-2", "at work", |job| *job.at("/status/active") == json!(1)).await?;
    // Sooner than by its own patience.
    case.patch(JOB, "a-fcv-4-2", &json!({"spec": {"activeDeadlineSeconds": 1}})).await?;
    let stopped = |database: &Object| database.is_not("Ready", "UpgradeNeedsAction");
    let database = case.wait(DATABASE, "a", "stopped", stopped).await?;
    ensure!(database.is_not("Upgrading", "UpgradeNeedsAction"), "{database}");
    let message = database.message("Ready");
    for words in ["exec a -- mongo --quiet --eval", "setFeatureCompatibilityVersion: \"4.2\"", "delete job a-fcv-4-2"] {
        ensure!(message.contains(words), "{message}");
    }
    case.quiet(seconds(5)).await?;
    ensure!(case.get(JOB, "a-fcv-4-2").await?.uid() == job.uid(), "it is not tried without end");
    ensure!(case.get(POD, "a").await?.uid() == pod.uid(), "the server stands");
    is_refused(&case, "a", "4.4", "4.2").await?;
    ask_for(&case, "a", "4.2").await?;
    case.wait(DATABASE, "a", "stopped", stopped).await?;

    // As the message says.
    case.delete(JOB, "a-fcv-4-2").await?;
    let again = |new: &Object| new.uid() != job.uid() && *new.at("/status/active") == json!(1);
    case.wait(JOB, "a-fcv-4-2", "made again", again).await?;
    ended(&case, "Succeeded").await?;
    arrives_at(&case, "a", "4.2").await?;
    Ok(())
}

/// Brings the Job's Pods that have not ended to this phase.
async fn ended(case: &Case, phase: &str) -> Outcome {
    let under_way = async || -> anyhow::Result<Vec<Object>> {
        let mut pods = case.list(POD).await?;
        pods.retain(|pod| {
            pod.label("keelson.test/phase").is_some()
                && ["Pending", "Running"].contains(&pod.text("/status/phase"))
                && !pod.going()
        });
        Ok(pods)
    };
    case.until("a Pod of the Job", seconds(60), async || Ok(!under_way().await?.is_empty())).await?;
    for pod in under_way().await? {
        let ready = if phase == "Running" { "True" } else { "False" };
        let status = json!({"phase": phase, "podIP": "10.9.9.9", "podIPs": [{"ip": "10.9.9.9"}],
            "conditions": [{"type": "Ready", "status": ready}]});
        case.patch(POD, &format!("{}/status", pod.name()), &json!({"status": status})).await?;
    }
    Ok(())
}

pub(crate) async fn mysql_moves_when_the_new_server_is_ready(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    with_storage(&case, "a", "mysql", "Retain").await?;
    let (pod, secret) = (case.get(POD, "a").await?, case.get(SECRET, "a-credentials").await?);
    is_refused(&case, "a", "9.7", "8.0, 8.4").await?;
    for (from, to) in [("8.0", "8.4"), ("8.4", "9.7")] {
        let states = case.record(CLAIM, "a-data").await?;
        ask_for(&case, "a", to).await?;
        arrives_at(&case, "a", to).await?;
        let both = format!("{from}-to-{to}");
        let recorded = |claim: &Object| claim.annotation("zalando.org/data-version") == Some(&both);
        ensure!(states.saw(recorded), "not recorded on the way: {:?}", states.all());
        let after = case.get(POD, "a").await?;
        ensure!(after.uid() == pod.uid() && after.text("/spec/containers/0/image") == format!("mysql:{to}"), "{after}");
    }
    is_refused(&case, "a", "8.4", "9.7").await?;
    ensure!(case.get(SECRET, "a-credentials").await?.at("/data") == secret.at("/data"), "the password stays");
    Ok(())
}

pub(crate) async fn storage_is_added_and_grows(case: Case) -> Outcome {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "grows"},
        "provisioner": "keelson.test/none", "allowVolumeExpansion": true});
    const CLASS: Kind = Kind::cluster("storage.k8s.io/v1", "StorageClass", "storageclasses");
    case.cluster.create(CLASS, "", &class).await?;
    let _host = case.host().start().await?;
    volume(&case, "a", "grows").await?;
    case.database("a", "mysql").await?;
    let before = case.get(POD, "a").await?;
    let storage = json!({"size": "1Gi", "storageClassName": "grows", "onDelete": "Delete"});
    case.patch(DATABASE, "a", &json!({"spec": {"storage": storage}})).await?;
    case.wait(CLAIM, "a-data", "bound", |claim| claim.text("/status/phase") == "Bound").await?;
    let mounted = |pod: &Object| pod.uid() != before.uid() && pod.text("/spec/volumes/0/name") == "data";
    case.wait_for(seconds(60), POD, "a", "made again with its volume", mounted).await?;
    arrives_at(&case, "a", "8.0").await?;

    let pod = case.get(POD, "a").await?;
    case.patch(DATABASE, "a", &json!({"spec": {"storage": {"size": "1536Mi"}}})).await?;
    let grown = |claim: &Object| claim.text("/spec/resources/requests/storage") == "1536Mi";
    case.wait(CLAIM, "a-data", "to grow", grown).await?;
    ensure!(case.get(POD, "a").await?.version() == pod.version(), "the Pod was written to");

    // What a Pod does not take in place brings another, on the same data.
    let claim = case.get(CLAIM, "a-data").await?;
    let resources = json!({"requests": {"cpu": "20m"}, "limits": {"cpu": "200m"}});
    case.patch(DATABASE, "a", &json!({"spec": {"resources": resources}})).await?;
    let resized = |pod: &Object| pod.text("/spec/containers/0/resources/limits/cpu") == "200m";
    let after = case.wait_for(seconds(60), POD, "a", "with its resources", resized).await?;
    case.patch(DATABASE, "a", &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "node-2"}}})).await?;
    let moved = |pod: &Object| pod.uid() != after.uid() && pod.is("Ready") && pod.text("/spec/nodeName") == "node-2";
    case.wait_for(seconds(60), POD, "a", "moved", moved).await?;
    ensure!(case.get(CLAIM, "a-data").await?.uid() == claim.uid(), "with its data");
    Ok(())
}

pub(crate) async fn without_storage_any_version_may_run(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    case.database("a", "mongo").await?;
    let pod = case.get(POD, "a").await?;
    for version in ["8.0", "4.4"] {
        ask_for(&case, "a", version).await?;
        let there = |database: &Object| database.is("Ready") && database.text("/status/version") == version;
        case.wait(DATABASE, "a", version, there).await?;
        ensure!(case.get(POD, "a").await?.uid() == pod.uid(), "an image is changed in place");
    }
    ensure!(case.list(JOB).await?.is_empty() && case.list(CLAIM).await?.is_empty());
    Ok(())
}

pub(crate) async fn kept_data_tells_its_version_to_a_later_database(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    with_storage(&case, "a", "mongo", "Retain").await?;
    ask_for(&case, "a", "4.2").await?;
    arrives_at(&case, "a", "4.2").await?;
    let claim = case.get(CLAIM, "a-data").await?;
    ensure!(claim.annotation("keelson.dev/retained-data-version") == Some("4.2"), "{claim}");
    case.delete(DATABASE, "a").await?;
    case.wait_gone(POD, "a").await?;

    // Without storage it would start empty, of another type on data that it cannot read, of another version never.
    let storage = json!({"size": "1Gi", "storageClassName": "by-hand"});
    for (spec, reason, words) in [
        (json!({"type": "mongo"}), "StorageMissing", "a-data"),
        (json!({"type": "mysql", "storage": storage}), "DataMismatch", "mongo"),
        (json!({"type": "mongo", "storage": storage, "version": "4.0"}), "VersionNotAllowed", "4.2, 4.4"),
        (json!({"type": "mongo", "storage": storage, "version": "5.0"}), "VersionNotAllowed", "4.2, 4.4"),
    ] {
        case.apply(&database("a", &spec)).await?;
        let told = case.wait(DATABASE, "a", reason, |database| database.is_not("Ready", reason)).await?;
        let message = told.message("Ready");
        ensure!(message.contains(words), "{spec}: {message}");
        ensure!(case.find(POD, "a").await?.is_none() && case.find(SERVICE, "a").await?.is_none(), "half made: {spec}");
        case.delete(DATABASE, "a").await?;
        case.wait_gone(DATABASE, "a").await?;
    }
    // Whoever names no version gets that of the data, and goes on from there.
    case.apply(&database("a", &json!({"type": "mongo", "storage": storage}))).await?;
    arrives_at(&case, "a", "4.2").await?;
    ensure!(case.get(CLAIM, "a-data").await?.uid() == claim.uid(), "another claim");
    ask_for(&case, "a", "4.4").await?;
    arrives_at(&case, "a", "4.4").await?;
    Ok(())
}

pub(crate) async fn a_secret_of_the_users_own_opens_server_and_job(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"},
        "stringData": {"username": "root", "password": "of-my-own"}});
    case.apply(&secret.to_string()).await?;
    let own = json!({"secretRef": {"name": "mine"}});
    volume(&case, "a", "by-hand").await?;
    let storage = json!({"size": "1Gi", "storageClassName": "by-hand"});
    case.apply(&database("a", &json!({"type": "mongo", "storage": storage, "credentials": own}))).await?;
    case.apply(&database("b", &json!({"type": "mysql", "credentials": own}))).await?;
    for (name, env) in [("a", "MONGO_INITDB_ROOT_USERNAME"), ("b", "MYSQL_ROOT_PASSWORD")] {
        case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
        let pod = case.get(POD, name).await?;
        let first = pod.at("/spec/containers/0/env/0");
        ensure!(first["name"] == env && first["valueFrom"]["secretKeyRef"]["name"] == "mine", "{pod}");
    }
    ensure!(case.find(SECRET, "b-credentials").await?.is_none(), "none is generated");
    ask_for(&case, "a", "4.2").await?;
    arrives_at(&case, "a", "4.2").await?;
    // An edit rolls nothing: it is no rotation.
    let pods = [case.get(POD, "a").await?.uid().to_owned(), case.get(POD, "b").await?.uid().to_owned()];
    case.apply(&secret.to_string().replace("of-my-own", "another")).await?;
    for name in ["a", "b"] {
        case.patch(DATABASE, name, &json!({"metadata": {"annotations": {"looked-at": "now"}}})).await?;
        case.wait(DATABASE, name, "told", |database| database.is("CredentialsChanged")).await?;
    }
    case.quiet(seconds(3)).await?;
    ensure!(pods == [case.get(POD, "a").await?.uid(), case.get(POD, "b").await?.uid()], "a Pod was made again");
    Ok(())
}

/// As a kubelet writes it: how often the server was started again, of which image, and how it is.
async fn server_is(case: &Case, restarts: u32, image: &str, state: Value) -> Outcome {
    let ready = state.get("running").is_some();
    let condition =
        json!({"type": "Ready", "status": if ready { "True" } else { "False" }, "reason": "ContainersNotReady"});
    let container = json!({"name": "mongo", "image": image, "imageID": "", "restartCount": restarts, "ready": ready, "state": state});
    let status = json!({"status": {"phase": "Running", "conditions": [condition], "containerStatuses": [container]}});
    case.patch(POD, "a/status", &status).await.map(drop)
}

/// A tag that is misspelt in the registry, say: no server of the new version has ever been started.
pub(crate) async fn a_step_whose_image_cannot_be_pulled_is_taken_back(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    case.pods_by_hand().await?;
    volume(&case, "a", "by-hand").await?;
    let storage = json!({"size": "1Gi", "storageClassName": "by-hand"});
    case.apply(&database("a", &json!({"type": "mongo", "storage": storage}))).await?;
    let pod = case.wait(POD, "a", "there", |_| true).await?;
    let running = || json!({"running": {"startedAt": null}});
    server_is(&case, 0, "mongo:4.0", running()).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let pulls = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}});
    let image =
        |version: &'static str| move |pod: &Object| pod.text("/spec/containers/0/image") == format!("mongo:{version}");
    ask_for(&case, "a", "4.2").await?;
    case.wait(POD, "a", "asked for 4.2", image("4.2")).await?;
    server_is(&case, 0, "mongo:4.0", pulls.clone()).await?;
    case.wait(DATABASE, "a", "stuck", |database| database.is_not("Ready", "ImagePullBackOff")).await?;
    // Back: the old server first, and the record when it is ready.
    ask_for(&case, "a", "4.0").await?;
    case.wait(POD, "a", "asked for 4.0", image("4.0")).await?;
    let back = |database: &Object| database.message("Upgrading").contains("taken back");
    let database = case.wait(DATABASE, "a", "going back", back).await?;
    ensure!(database.text("/status/dataVersion") == "4.0-to-4.2", "{database}");
    server_is(&case, 1, "mongo:4.0", running()).await?;
    arrives_at(&case, "a", "4.0").await?;
    case.wait_gone(JOB, "a-fcv-4-2").await?;
    case.quiet(seconds(2)).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid());

    // A server of 4.2 has been started: whether it has touched the data only a person can say.
    ask_for(&case, "a", "4.2").await?;
    case.wait(POD, "a", "asked for 4.2", image("4.2")).await?;
    server_is(&case, 2, "mongo:4.2", json!({"waiting": {"reason": "CrashLoopBackOff"}})).await?;
    case.wait(DATABASE, "a", "crashing", |database| database.is_not("Ready", "CrashLoopBackOff")).await?;
    let command = format!("kubectl -n {} annotate pvc a-data --overwrite ", case.namespace);
    is_refused(&case, "a", "4.0", &command).await?;
    let message = case.get(DATABASE, "a").await?.message("Ready").to_owned();
    let word = message.split(&command).nth(1).and_then(|rest| rest.split_whitespace().next()).context("no command")?;
    let annotate = ["-n", &case.namespace, "annotate", "pvc", "a-data", "--overwrite", word];
    case.cluster.kubectl(&annotate).await?;
    case.wait(POD, "a", "asked for 4.0", image("4.0")).await?;
    server_is(&case, 3, "mongo:4.0", running()).await?;
    arrives_at(&case, "a", "4.0").await?;
    ensure!(case.get(CLAIM, "a-data").await?.annotation("zalando.org/data-version") == Some("4.0"));
    Ok(())
}
