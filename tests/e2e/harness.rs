//! The harness itself: what the other tests rely on. None of these needs a host.

use futures::TryStreamExt;
use http::Method;
use keelson_tests::prelude::*;
use kube::core::WatchEvent;

const POD_A: &str =
    "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: mongo:4.0}]}}";

pub(crate) async fn a_namespace_has_its_limits_and_its_policy(case: Case) -> Outcome {
    let pod = case.apply(POD_A).await?;
    ensure!(pod.annotation("keelson.test/policy") == Some("was here"), "the policy did not mutate {pod}");
    ensure!(pod.text("/spec/containers/0/resources/limits/cpu") == "500m", "the LimitRange did not default {pod}");
    Ok(())
}

pub(crate) async fn a_pod_runs_unless_it_is_left_to_the_test(case: Case) -> Outcome {
    case.apply(POD_A).await?;
    case.wait(POD, "a", "running", |pod| pod.is("Ready") && !pod.text("/status/podIP").is_empty()).await?;
    case.pods_by_hand().await?;
    let pod = case.apply(&POD_A.replace("name: a", "name: b")).await?;
    case.wait(POD, "b", "scheduled", |pod| !pod.text("/spec/nodeName").is_empty()).await?;
    let still = async || Ok(case.get(POD, "b").await?.text("/status/phase") == "Pending");
    case.throughout("the Pod stays as it is", seconds(2), still).await?;
    case.patch(POD, "b/status", &json!({"status": {"phase": "Failed"}})).await?;
    ensure!(case.get(POD, "b").await?.uid() == pod.uid());
    case.delete(POD, "b").await?;
    case.wait_gone(POD, "b").await
}

pub(crate) async fn a_wait_that_ends_says_what_it_saw(case: Case) -> Outcome {
    case.apply(POD_A).await?;
    let error = case.wait_for(seconds(1), POD, "a", "blue", |_| false).await.err().context("it waited in vain")?;
    let text = error.to_string();
    ensure!(text.contains("Pod a is not \"blue\" after 1s") && text.contains("mongo:4.0"), "{text}");
    ensure!(!text.contains("managedFields"), "{text}");
    let error = case.wait_for(seconds(1), POD, "none", "there", |_| true).await.err().context("it is not there")?;
    ensure!(error.to_string().contains("it is not there"), "{error}");
    let refusal = case.refused("{apiVersion: v1, kind: Pod, metadata: {name: a_b}, spec: {containers: []}}").await?;
    ensure!(refusal.contains("a_b"), "{refusal}");
    Ok(())
}

pub(crate) async fn calls_are_counted_by_user(case: Case) -> Outcome {
    case.apply(POD_A).await?;
    let applies = || -> anyhow::Result<Calls> {
        let admin = case.cluster.calls()?.user("admin").filter(|call| call.namespace == case.namespace);
        Ok(admin.resource("pods").writes().filter(|call| call.uri.contains("fieldManager=test")))
    };
    case.until("the apply to be in the log", seconds(5), async || Ok(!applies()?.is_empty())).await?;
    ensure!(applies()?.len() == 1, "one apply was made, the log has {:?}", applies()?);
    ensure!(case.calls()?.is_empty(), "no host runs, yet {:?}", case.calls()?);
    Ok(())
}

pub(crate) async fn a_recording_holds_every_state(case: Case) -> Outcome {
    let states = case.record(POD, "a").await?;
    case.apply(POD_A).await?;
    case.wait(POD, "a", "running", |pod| pod.is("Ready")).await?;
    case.until("the recording to follow", seconds(10), async || Ok(states.saw(|pod| pod.is("Ready")))).await?;
    ensure!(states.saw(|pod| pod.text("/status/phase") == "Pending"), "{:?}", states.all());
    Ok(())
}

pub(crate) async fn the_proxy_passes_and_fails_as_told(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let client = client(&case, &proxy).await?;
    let path = format!("/api/v1/namespaces/{}/pods", case.namespace);

    proxy.add(Match::method(Method::GET).path("/pods").after(1).times(1), Fault::Answer(500, "out of luck"));
    ensure!(ask(&client, &path).await.is_ok(), "the first passes");
    let second = ask(&client, &path).await;
    ensure!(second.as_ref().is_err_and(|e| e.contains("out of luck")), "the second fails, it says {second:?}");
    ensure!(ask(&client, &path).await.is_ok() && proxy.hits() == 1, "the third passes");

    proxy.add(Match::any().path("/pods"), Fault::Silence);
    ensure!(ask(&client, &path).await.is_err(), "silence ends by the client's own time-out");
    proxy.clear();
    proxy.silence();
    ensure!(ask(&client, &path).await.is_err(), "all is silent");
    proxy.speak();
    ensure!(ask(&client, &path).await.is_ok(), "and speaks again");

    proxy.add(Match::any().path("/pods").times(1), Fault::LoseAnswer);
    ensure!(ask(&client, &path).await.is_err(), "the answer is lost");
    Ok(())
}

pub(crate) async fn the_proxy_breaks_open_watches(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let client = client(&case, &proxy).await?;
    let path = format!("/api/v1/namespaces/{}/pods?watch=true", case.namespace);
    case.apply(POD_A).await?;

    let mut open = watch(&client, &path).await?;
    ensure!(matches!(open.try_next().await?, Some(WatchEvent::Added(_))), "events pass");
    proxy.expire_watches();
    let expired = loop {
        match open.try_next().await? {
            Some(WatchEvent::Error(status)) => break status.code,
            Some(_) => {}
            None => bail!("the watch ended without an ERROR event"),
        }
    };
    ensure!(expired == 410, "{expired}");

    proxy.add(Match::any().watches().times(1), Fault::ExpiredEvent);
    let first = watch(&client, &path).await?.try_next().await?;
    ensure!(matches!(&first, Some(WatchEvent::Error(status)) if status.code == 410), "{first:?}");

    proxy.add(Match::any().watches(), Fault::Answer(410, "too old"));
    let refused = watch(&client, &path).await.err().context("a 410 at the start")?;
    ensure!(format!("{refused:#}").contains("too old"), "{refused:#}");
    Ok(())
}

pub(crate) fn narrow_ports() -> Options {
    Options { api_flags: &["--service-node-port-range=30000-30000"], install: Install::Nothing, ..Options::default() }
}

pub(crate) async fn a_private_control_plane_takes_flags(case: Case) -> Outcome {
    const SERVICE_A: &str =
        "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort, ports: [{port: 1}]}}";
    case.apply(SERVICE_A).await?;
    let refusal = case.refused(&SERVICE_A.replace("name: a", "name: b")).await?;
    ensure!(refusal.contains("range is full"), "{refusal}");
    Ok(())
}

/// A client that goes through the proxy as a ServiceAccount that may read Pods.
async fn client(case: &Case, proxy: &FaultProxy) -> anyhow::Result<kube::Client> {
    let rights = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: user}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: user}
rules: [{apiGroups: [''], resources: [pods], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: user}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: user}
subjects: [{kind: ServiceAccount, name: user}]";
    case.apply(rights).await?;
    let token = case.cluster.token(&case.namespace, "user", 3600).await?;
    let config = json!({
        "clusters": [{"name": "c", "cluster": {"server": proxy.url(), "certificate-authority-data": proxy.ca_data()}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    });
    let mut config = kube::Config::from_custom_kubeconfig(serde_json::from_value(config)?, &Default::default()).await?;
    config.read_timeout = Some(seconds(2));
    let client = kube::Client::try_from(config)?;
    let path = format!("/api/v1/namespaces/{}/pods", case.namespace);
    case.until("the Role to be in force", seconds(10), async || Ok(ask(&client, &path).await.is_ok())).await?;
    Ok(client)
}

async fn ask(client: &kube::Client, path: &str) -> Result<Value, String> {
    let request = http::Request::get(path).body(Vec::new()).map_err(|e| e.to_string())?;
    client.request(request).await.map_err(|error| error.to_string())
}
