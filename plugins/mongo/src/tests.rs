use crate::Mongo;
use keelson_sdk::contract::{FailureClass, Readiness};
use keelson_sdk::prelude::*;
use keelson_sdk::testing::{Crd, Fixture, Rendered, assert_granted, assert_permitted};

const CRD: &str = include_str!("../../databases.zalando.org.yaml");

fn database() -> Fixture<Mongo> {
    Fixture::of::<Mongo>("a")
}

fn stored(version: &str) -> Fixture<Mongo> {
    database().with("/spec/storage/size", "1Gi").with("/spec/version", version)
}

fn claim() -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a-data"}})
}

/// A claim with data of this version, and the Pod that runs.
fn seen(version: &str, data: &str, running: &str) -> Fixture<Mongo> {
    stored(version).retained(claim(), data).child(pod(running, "True"))
}

fn pod(version: &str, ready: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [
                {"name": "istio-proxy", "image": "istio/proxyv2:1.2", "state": {"running": {}}},
                {"name": "mongo", "image": format!("docker.io/library/mongo:{version}"), "state": {"running": {}}},
            ],
        },
    })
}

fn job(name: &str, condition: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "status": {"conditions": [{"type": condition, "status": "True"}]},
    })
}

fn image(rendered: &Rendered) -> &str {
    rendered.child(POD, "a")["spec"]["containers"][0]["image"].as_str().unwrap()
}

fn recorded(rendered: &Rendered) -> &str {
    let claim = rendered.child(PERSISTENT_VOLUME_CLAIM, "a-data");
    let data = claim["metadata"]["annotations"]["zalando.org/data-version"].as_str().unwrap();
    let retention = rendered.retention(PERSISTENT_VOLUME_CLAIM, "a-data").unwrap();
    assert_eq!((retention.data_version.as_str(), retention.line.as_str()), (data, "mongo"));
    assert_eq!(rendered.status["dataVersion"], data);
    Crd::read(CRD).assert_keeps(rendered);
    data
}

fn condition(rendered: &Rendered) -> (&str, &str) {
    let [condition] = rendered.contract.conditions.as_slice() else { panic!("{:?}", rendered.contract.conditions) };
    assert_eq!(condition.type_, "Upgrading");
    (condition.reason.as_str(), condition.message.as_str())
}

fn not_ready(rendered: &Rendered) -> &str {
    match &rendered.contract.ready {
        Readiness::NotReady(why) => &why.reason,
        Readiness::Auto => "",
    }
}

#[track_caller]
fn refused(fixture: &Fixture<Mongo>, allowed: &[&str], words: &str) {
    let failure = fixture.render().unwrap_err();
    assert_eq!((failure.class, failure.reason.as_str()), (FailureClass::Invalid, "VersionNotAllowed"));
    assert_eq!(failure.fields, ["/spec/version"]);
    assert_eq!(failure.allowed, allowed);
    assert!(failure.message.contains(words), "{}", failure.message);
}

#[test]
fn a_database_is_a_pod_and_a_node_port_service() {
    let rendered = Fixture::of::<Mongo>("mongo-db").render().unwrap();
    assert_eq!(
        rendered.child(POD, "mongo-db"),
        &json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "mongo-db", "labels": {"app": "db"}},
            "spec": {
                "containers": [{
                    "name": "mongo",
                    "image": "mongo:4.0",
                    "readinessProbe": {"tcpSocket": {"port": 27017}, "periodSeconds": 5},
                    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                }],
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 999, "runAsGroup": 999, "seccompProfile": {"type": "RuntimeDefault"},
                },
            },
        })
    );
    assert_eq!(
        rendered.child(SERVICE, "mongo-db")["spec"],
        json!({
            "type": "NodePort",
            "selector": {"app": "db", "keelson.dev/instance": "11111111-2222-4333-8444-555555555555"},
            "ports": [{"port": 27017, "targetPort": 27017}],
        })
    );
    assert_eq!(rendered.child(SERVICE, "mongo-db")["metadata"]["labels"], json!({"app": "db"}));
    assert_eq!(rendered.children.len(), 2);
    assert!(rendered.secrets.is_empty());
}

#[test]
fn the_status_tells_the_node_port_once_the_service_has_one() {
    let database = Fixture::of::<Mongo>("mongo-db");
    let mut status = json!({
        "message": "Pod and Service created by Database mongo-db",
        "endpoint": "mongo-db.default.svc:27017",
        "version": "4.0",
    });
    assert_eq!(database.render().unwrap().status, status);

    let seen = database.child(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mongo-db"},
        "spec": {"ports": [{"port": 27017, "nodePort": 31480}]},
    }));
    status["nodePort"] = json!(31480);
    let rendered = seen.render().unwrap();
    assert_eq!(rendered.status, status);
    Crd::read(CRD).assert_keeps(&rendered);
}

#[test]
fn levers_reach_pod_and_service() {
    let resources = json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}});
    let rendered = database()
        .with("/spec/service", json!({"type": "LoadBalancer", "nodePort": 30017}))
        .with("/spec/resources", resources.clone())
        .with("/spec/nodeSelector", json!({"disk": "ssd"}))
        .with("/spec/tolerations", json!([{"key": "db", "operator": "Exists"}]))
        .with("/spec/affinity", json!({"nodeAffinity": {}}))
        .child(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
            "status": {"loadBalancer": {"ingress": [{"ip": "2001:db8::1"}]}},
        }))
        .render()
        .unwrap();
    let spec = &rendered.child(POD, "a")["spec"];
    assert_eq!(spec["containers"][0]["resources"], resources);
    assert_eq!(spec["nodeSelector"], json!({"disk": "ssd"}));
    assert_eq!(spec["tolerations"], json!([{"key": "db", "operator": "Exists"}]));
    assert_eq!(spec["affinity"], json!({"nodeAffinity": {}}));
    let service = &rendered.child(SERVICE, "a")["spec"];
    assert_eq!((&service["type"], &service["ports"][0]["nodePort"]), (&json!("LoadBalancer"), &json!(30017)));
    assert_eq!(rendered.status["externalEndpoint"], "[2001:db8::1]:27017");
    Crd::read(CRD).assert_keeps(&rendered);

    let internal = database().with("/spec/service/type", "ClusterIP").child(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"nodePort": 30017}]},
    }));
    let internal = internal.render().unwrap();
    assert_eq!(internal.child(SERVICE, "a")["spec"]["type"], "ClusterIP");
    assert!(internal.status["nodePort"].is_null(), "of the Service as it was");

    let failure = database().with("/spec/service/type", "ExternalName").render().unwrap_err();
    assert_eq!(failure.fields, ["/spec/service/type"]);
    assert_eq!(failure.allowed, ["NodePort", "ClusterIP", "LoadBalancer"]);
}

#[test]
fn storage_is_a_claim_that_is_kept() {
    let rendered =
        database().with("/spec/storage", json!({"size": "1Gi", "storageClassName": "fast"})).render().unwrap();
    assert_eq!(recorded(&rendered), "4.0");
    assert_eq!(
        rendered.child(PERSISTENT_VOLUME_CLAIM, "a-data")["spec"],
        json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
        })
    );
    let spec = &rendered.child(POD, "a")["spec"];
    assert_eq!(spec["securityContext"]["fsGroup"], 999);
    assert_eq!(spec["volumes"], json!([{"name": "data", "persistentVolumeClaim": {"claimName": "a-data"}}]));
    let mounts = json!([{"name": "data", "mountPath": "/data/db", "subPath": "data"}]);
    assert_eq!(spec["containers"][0]["volumeMounts"], mounts);
    assert_eq!(rendered.children[0]["kind"], "PersistentVolumeClaim", "before what uses it");
}

#[test]
fn data_that_goes_with_its_database_tells_its_version_as_well() {
    let mut claim = claim();
    claim["metadata"]["annotations"] = json!({"zalando.org/data-version": "4.2"});
    let goes = |version| stored(version).with("/spec/storage/onDelete", "Delete").child(claim.clone());
    let rendered = goes("4.2").render().unwrap();
    assert!(rendered.retention(PERSISTENT_VOLUME_CLAIM, "a-data").is_none());
    assert_eq!(image(&rendered), "mongo:4.2");
    refused(&goes("4.0"), &["4.2", "4.4"], "of mongo 4.2");
}

#[test]
fn a_step_is_recorded_then_run_then_completed() {
    // Asked for: recorded before anything else.
    let rendered = seen("4.2", "4.0", "4.0").render().unwrap();
    assert_eq!((recorded(&rendered), image(&rendered)), ("4.0-to-4.2", "mongo:4.0"));
    assert_eq!((condition(&rendered).0, not_ready(&rendered)), ("Upgrading", "Upgrading"));
    assert!(rendered.find(JOB, "a-fcv-4-2").is_none());

    // Seen to be recorded: the new server, whose Pod speaks for itself until it is ready.
    let rendered = stored("4.2").retained(claim(), "4.0-to-4.2").child(pod("4.2", "False")).render().unwrap();
    assert_eq!((recorded(&rendered), image(&rendered)), ("4.0-to-4.2", "mongo:4.2"));
    assert_eq!((condition(&rendered).0, not_ready(&rendered)), ("Upgrading", ""));
    assert!(rendered.find(JOB, "a-fcv-4-2").is_none());
    assert_eq!(rendered.status["version"], "4.2");

    // Ready: the Job, which stays as long as it takes.
    for ready in ["True", "False"] {
        let running = stored("4.2").retained(claim(), "4.0-to-4.2").child(pod("4.2", ready));
        let running = if ready == "True" { running } else { running.child(job("a-fcv-4-2", "Suspended")) };
        let rendered = running.render().unwrap();
        assert_eq!((recorded(&rendered), image(&rendered)), ("4.0-to-4.2", "mongo:4.2"));
        assert_eq!(rendered.status["message"], "upgrading from 4.0 to 4.2");
        assert!(condition(&rendered).1.contains("a-fcv-4-2"), "{:?}", condition(&rendered));
        assert!(rendered.find(JOB, "a-fcv-4-2").is_some());
    }

    // Its success is taken into the record, and it goes.
    let done = seen("4.2", "4.0-to-4.2", "4.2").child(job("a-fcv-4-2", "Complete"));
    let rendered = done.render().unwrap();
    assert_eq!((recorded(&rendered), image(&rendered)), ("4.2", "mongo:4.2"));
    assert!(rendered.find(JOB, "a-fcv-4-2").is_none());
    assert!(rendered.contract.conditions.is_empty());
    assert_eq!(not_ready(&rendered), "");
    // From then on the record alone tells it.
    assert_eq!(recorded(&seen("4.2", "4.2", "4.2").render().unwrap()), "4.2");
}

#[test]
fn each_step_of_the_way_is_taken_and_no_other() {
    let versions = ["4.0", "4.2", "4.4", "5.0", "6.0", "7.0", "8.0"];
    for (at, from) in versions.iter().enumerate() {
        for (to, wanted) in versions.iter().enumerate() {
            let database = seen(wanted, from, from);
            if to == at || to == at + 1 {
                let rendered = database.render().unwrap();
                assert_eq!(image(&rendered), format!("mongo:{from}"));
                let expected = if to == at { (*from).to_owned() } else { format!("{from}-to-{wanted}") };
                assert_eq!(recorded(&rendered), expected);
            } else {
                let allowed = versions.get(at..=at + 1).unwrap_or(&versions[at..]);
                refused(&database, allowed, &format!("of mongo {from}"));
            }
        }
    }
}

#[test]
fn there_is_no_way_out_of_a_step_but_forward() {
    for (wanted, condition) in [("4.0", "Running"), ("4.4", "Running"), ("4.4", "Failed")] {
        let under_way = seen(wanted, "4.0-to-4.2", "4.2").child(job("a-fcv-4-2", condition));
        refused(&under_way, &["4.2"], "on its way from mongo 4.0 to 4.2");
    }
    // Once the Job has succeeded the next step is open at once, and the way back is not.
    let done = |wanted| seen(wanted, "4.0-to-4.2", "4.2").child(job("a-fcv-4-2", "Complete"));
    let rendered = done("4.4").render().unwrap();
    assert_eq!((recorded(&rendered), image(&rendered)), ("4.2-to-4.4", "mongo:4.2"));
    refused(&done("4.0"), &["4.2", "4.4"], "of mongo 4.2");
    // The success of an earlier step's Job means nothing for this one.
    let stale = seen("4.4", "4.2-to-4.4", "4.4").child(job("a-fcv-4-2", "Complete"));
    assert_eq!(recorded(&stale.render().unwrap()), "4.2-to-4.4");
}

#[test]
fn no_version_asked_for_is_that_of_the_data() {
    let database =
        |data| database().with("/spec/storage/size", "1Gi").retained(claim(), data).child(pod("4.2", "True"));
    assert_eq!(image(&database("4.2").render().unwrap()), "mongo:4.2");
    assert_eq!(recorded(&database("4.0-to-4.2").render().unwrap()), "4.0-to-4.2");
}

#[test]
fn a_failed_job_stays_and_says_what_to_do() {
    let failed = seen("7.0", "6.0-to-7.0", "7.0").child(job("a-fcv-7-0", "Failed"));
    let rendered = failed.render().unwrap();
    assert!(rendered.find(JOB, "a-fcv-7-0").is_some(), "else it would be tried without end");
    assert_eq!((recorded(&rendered), image(&rendered)), ("6.0-to-7.0", "mongo:7.0"));
    assert_eq!(not_ready(&rendered), "UpgradeNeedsAction");
    let (reason, message) = condition(&rendered);
    assert_eq!(reason, "UpgradeNeedsAction");
    for words in [
        r#"exec a -- mongosh --quiet --eval 'db.adminCommand({setFeatureCompatibilityVersion: "7.0", confirm: true})'"#,
        "kubectl -n default delete job a-fcv-7-0",
        "logs job/a-fcv-7-0",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert!(message.len() < 900, "cut by the host: {message}");

    let with_secret = seen("4.2", "4.0-to-4.2", "4.2").with("/spec/credentials/secretRef/name", "mine");
    let rendered = with_secret.child(job("a-fcv-4-2", "Failed")).render().unwrap();
    let message = condition(&rendered).1;
    let words = r#"sh -c 'mongo -u "$MONGO_INITDB_ROOT_USERNAME" -p "$MONGO_INITDB_ROOT_PASSWORD" --quiet --eval "db.adminCommand({setFeatureCompatibilityVersion: \"4.2\"})"'"#;
    assert!(message.contains(words), "{message}");
}

#[test]
fn the_job_asks_the_server_and_sets_once_more() {
    let upgrade = |from: &str, to| {
        let rendered = seen(to, &format!("{from}-to-{to}"), to).with("/spec/nodeSelector", json!({"disk": "ssd"}));
        let rendered = rendered.render().unwrap();
        rendered.child(JOB, &format!("a-fcv-{}", to.replace('.', "-"))).clone()
    };
    let job = upgrade("4.0", "4.2");
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!((&pod["restartPolicy"], &pod["securityContext"]["runAsNonRoot"]), (&json!("Never"), &json!(true)));
    assert_eq!(pod["nodeSelector"], json!({"disk": "ssd"}));
    assert!(job["spec"]["template"]["metadata"].is_null(), "no label by which the Service would find it");
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "mongo:4.2");
    let command: Vec<&str> = container["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(command[..5], ["mongo", "--host", "a.default.svc", "--port", "27017"]);
    assert!(command[7].contains("db.adminCommand({setFeatureCompatibilityVersion: \"4.2\"})"), "{}", command[7]);
    assert!(command[7].contains("indexOf('4.2.') === 0"), "{}", command[7]);

    for (from, to, shell) in [("4.4", "5.0", "mongo"), ("5.0", "6.0", "mongosh"), ("7.0", "8.0", "mongosh")] {
        assert_eq!(upgrade(from, to)["spec"]["template"]["spec"]["containers"][0]["command"][0], shell);
    }
}

#[test]
fn a_secret_of_the_users_own_is_used_by_pod_and_job() {
    let rendered = seen("4.2", "4.0-to-4.2", "4.2").with("/spec/credentials/secretRef/name", "mine").render().unwrap();
    let env = json!([
        {"name": "MONGO_INITDB_ROOT_USERNAME", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "username"}}},
        {"name": "MONGO_INITDB_ROOT_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "password"}}},
    ]);
    assert_eq!(rendered.child(POD, "a")["spec"]["containers"][0]["env"], env);
    let container = &rendered.child(JOB, "a-fcv-4-2")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["env"], env);
    let command = container["command"].to_string();
    assert!(command.contains(r#""--username","$(MONGO_INITDB_ROOT_USERNAME)""#), "{command}");
    assert!(rendered.secrets.is_empty());
}

#[test]
fn without_storage_any_version_may_run() {
    for version in ["4.0", "8.0"] {
        let rendered = database().with("/spec/version", version).child(pod("5.0", "True")).render().unwrap();
        assert_eq!(image(&rendered), format!("mongo:{version}"));
        assert_eq!(rendered.status["version"], "5.0", "what runs still");
        assert!(rendered.contract.conditions.is_empty());
    }
    refused(
        &database().with("/spec/version", "3.6"),
        &["4.0", "4.2", "4.4", "5.0", "6.0", "7.0", "8.0"],
        "no version 3.6 of mongo",
    );
}

#[test]
fn no_server_is_started_beside_data_or_on_data_of_an_unknown_version() {
    let failure = database().retained(claim(), "4.0").render().unwrap_err();
    assert_eq!(failure.reason, "StorageMissing");
    assert_eq!(failure.fields, ["/spec/storage"]);
    for (database, words) in [
        (stored("4.0").child(claim()), "does not tell"),
        (stored("4.0").retained(claim(), "9.9"), "9.9, which is not known"),
    ] {
        let failure = database.render().unwrap_err();
        assert_eq!(failure.reason, "DataVersionUnknown");
        assert!(failure.message.contains(words), "{}", failure.message);
        assert!(failure.remedy.as_deref().unwrap().contains("kubectl annotate pvc a-data zalando.org/data-version="));
    }
}

#[test]
fn a_configuration_is_refused_where_there_is_none() {
    let failure = Fixture::of::<Mongo>("mongo-db").config(json!({"image": "mongo:5"})).render().unwrap_err();
    assert_eq!(failure.reason, "InvalidConfig");
    assert!(failure.message.contains("image"), "{}", failure.message);
}

#[test]
fn the_reasons_are_documented() {
    let table = include_str!("../../../docs/reasons.md");
    let plan = include_str!("../../database/src/plan.rs");
    let upgrade = include_str!("../../database/src/upgrade.rs");
    for reason in ["VersionNotAllowed", "DataVersionUnknown", "StorageMissing", "Upgrading", "UpgradeNeedsAction"] {
        assert!(table.contains(&format!("* `{reason}`")), "{reason} is not in docs/reasons.md");
        assert!(
            [plan, upgrade].iter().any(|code| code.contains(&format!("\"{reason}\""))),
            "{reason} is given nowhere"
        );
    }
}

#[test]
fn the_crd_takes_the_versions_that_there_are() {
    let versions: Vec<String> = crate::MONGO.steps.iter().map(|(version, _)| format!("'{version}'")).collect();
    assert!(CRD.contains(&format!("self.version in [{}]", versions.join(", "))), "{versions:?}");
}

#[test]
fn the_files_beside_it_fit_the_manifest() {
    Crd::read(CRD).assert_serves::<Mongo>();
    assert_granted::<Mongo>(include_str!("../plugin.yaml"));
    assert_permitted::<Mongo>(include_str!("../clusterrole.yaml"));
}

/// The Pod of before the step, whose spec now asks for one image and whose container is in this state.
fn stuck(asked: &str, ran: &str, restarts: u64, state: &Value, ready: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "uid": "pod-1"},
        "spec": {"containers": [{"name": "mongo", "image": format!("mirror.example/mongo:{asked}")}]},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"name": "mongo", "image": format!("mongo:{ran}"), "restartCount": restarts, "state": state}],
        },
    })
}

/// A claim on its way from 4.0 to 4.2, begun beside this server.
fn between(before: &str) -> Value {
    let mut claim = claim();
    claim["metadata"]["annotations"] = json!({"zalando.org/server-before": before});
    claim
}

fn server_before(rendered: &Rendered) -> &Value {
    &rendered.child(PERSISTENT_VOLUME_CLAIM, "a-data")["metadata"]["annotations"]["zalando.org/server-before"]
}

#[test]
fn a_step_whose_server_never_started_is_taken_back() {
    let running = || json!({"running": {}});
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
    // The step is recorded with the server that runs then, and keeps it.
    let rendered =
        stored("4.2").retained(claim(), "4.0").child(stuck("4.0", "4.0", 3, &running(), "True")).render().unwrap();
    assert_eq!((recorded(&rendered), server_before(&rendered)), ("4.0-to-4.2", &json!("pod-1/3")));
    let on = |version: &str, pod: Value| stored(version).retained(between("pod-1/3"), "4.0-to-4.2").child(pod);
    let rendered = on("4.2", stuck("4.2", "4.0", 3, &waiting("ImagePullBackOff"), "False")).render().unwrap();
    assert_eq!((recorded(&rendered), image(&rendered)), ("4.0-to-4.2", "mongo:4.2"));
    assert_eq!(server_before(&rendered), &json!("pod-1/3"));

    // Back: the old image first, the record when its server is ready.
    for pod in [
        stuck("4.2", "4.0", 3, &waiting("ImagePullBackOff"), "False"),
        stuck("4.2", "4.0", 3, &waiting("ErrImagePull"), "False"),
        stuck("4.0", "4.0", 3, &waiting("ContainerCreating"), "False"),
        stuck("4.0", "4.0", 4, &running(), "False"),
    ] {
        let rendered = on("4.0", pod).render().unwrap();
        assert_eq!((recorded(&rendered), image(&rendered)), ("4.0-to-4.2", "mongo:4.0"));
        assert_eq!(server_before(&rendered), &json!("pod-1/3"));
        assert!(condition(&rendered).1.contains("taken back"), "{:?}", condition(&rendered));
        assert!(rendered.find(JOB, "a-fcv-4-2").is_none());
    }
    let rendered = on("4.0", stuck("4.0", "4.0", 4, &running(), "True")).render().unwrap();
    assert_eq!((recorded(&rendered), image(&rendered)), ("4.0", "mongo:4.0"));
    assert!(server_before(&rendered).is_null() && rendered.contract.conditions.is_empty());
}

#[test]
fn a_step_whose_server_may_have_started_is_not_taken_back() {
    let running = || json!({"running": {}});
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
    let pull = || waiting("ImagePullBackOff");
    let mut other = stuck("4.2", "4.0", 3, &pull(), "False");
    other["metadata"]["uid"] = json!("pod-2");
    for (what, before, pod) in [
        ("it runs", "pod-1/3", stuck("4.2", "4.2", 4, &running(), "True")),
        ("it ran, and its image is gone since", "pod-1/3", stuck("4.2", "4.2", 4, &pull(), "False")),
        ("it crashes", "pod-1/3", stuck("4.2", "4.2", 5, &waiting("CrashLoopBackOff"), "False")),
        ("it may start in the next moment", "pod-1/3", stuck("4.2", "4.0", 3, &waiting("ContainerCreating"), "False")),
        ("the old one has not been stopped yet", "pod-1/3", stuck("4.2", "4.0", 3, &running(), "True")),
        ("it started on the way back", "pod-1/3", stuck("4.0", "4.0", 5, &running(), "True")),
        ("another Pod", "pod-1/3", other),
        ("a count that went back", "pod-1/3", stuck("4.2", "4.0", 0, &pull(), "False")),
        ("no server was seen before", "", stuck("4.2", "4.0", 3, &pull(), "False")),
        ("an image that tells no version", "pod-1/3", stuck("latest", "4.0", 3, &pull(), "False")),
    ] {
        let fixture = stored("4.0").retained(between(before), "4.0-to-4.2").child(pod);
        let failure = fixture.render().err().unwrap_or_else(|| panic!("{what}: rendered"));
        assert_eq!(
            (failure.reason.as_str(), failure.allowed.as_slice()),
            ("VersionNotAllowed", ["4.2".to_owned()].as_slice())
        );
        let remedy = failure.remedy.clone().unwrap_or_default();
        let command = "kubectl -n default annotate pvc a-data --overwrite keelson.dev/retained-data-version=4.0";
        assert!(remedy.contains(command), "{what}: {remedy}");
    }
    refused(&stored("4.4").retained(between("pod-1/3"), "4.0-to-4.2"), &["4.2"], "4.0 to 4.2");
    // Nothing is left of the Pod.
    refused(&stored("4.0").retained(between("pod-1/3"), "4.0-to-4.2"), &["4.2"], "4.0 to 4.2");
}
