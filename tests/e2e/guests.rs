//! What becomes of a plugin that goes beyond what it may.

use keelson_tests::prelude::*;
use keelson_tests::probe;

pub(crate) async fn case_05_children_beyond_the_namespace_are_refused(case: Case) -> Outcome {
    const ELSEWHERE: &str = "default";
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let _host = case.host().plugins(&folder).start().await?;
    let in_another = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "{name}", "namespace": ELSEWHERE},
        "spec": {"selector": "{selector}", "ports": [{"port": 80}]}});
    let cluster_wide = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "{name}"}});
    let undeclared = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{name}"}});
    // Name, what it renders after a good Pod, and what the condition says of it beside the plugin's name.
    let rows = [
        ("elsewhere", in_another, ["Service elsewhere", "children[1].metadata.namespace: ", "Namespace"]),
        ("namespace", cluster_wide("Namespace"), ["Namespace", "children[1].kind: ", "ClusterScoped"]),
        ("volume", cluster_wide("PersistentVolume"), ["PersistentVolume", "children[1].kind: ", "ClusterScoped"]),
        ("undeclared", undeclared, ["ConfigMap", "children[1].kind: ", "Kind"]),
    ];
    for (name, child, _) in &rows {
        case.scripted(name, "mongo", &json!({"children": [probe::pod(), child]})).await?;
    }
    for (name, _, [child, path, rule]) in &rows {
        let refused = |database: &Object| database.is_not("Ready", "InvalidChild");
        let database = case.wait(DATABASE, name, "refused", refused).await?;
        let message = database.message("Ready");
        for word in ["probe", child, path, &format!("rule {rule}")] {
            ensure!(message.contains(word), "{name}: no {word:?} in {message:?}");
        }
        let told = async || Ok(case.events(name).await?.len() == 1);
        case.until("one Event", seconds(10), told).await?;
        ensure!(
            case.events(name)
                .await?
                .iter()
                .all(|e| e.text("/type") == "Warning" && e.text("/reason") == "InvalidChild")
        );
    }
    case.quiet(seconds(5)).await?;
    let sent = case.writes()?.filter(|call| !matches!(call.resource.as_str(), "databases" | "events"));
    ensure!(sent.is_empty(), "refused before any call, yet {sent:?}");
    ensure!(case.cluster.get(SERVICE, ELSEWHERE, "elsewhere").await?.is_none());

    // The object changes its mind: nothing is wedged.
    case.scripted("elsewhere", "mongo", &json!({"children": [probe::pod(), probe::service()]})).await?;
    case.wait(DATABASE, "elsewhere", "Ready", |database| database.is("Ready")).await?;
    Ok(())
}
