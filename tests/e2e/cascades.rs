//! How a Database goes: in the background, in the foreground, leaving its children, with a host and without.

use crate::finalize;
use http::Method;
use keelson_tests::{prelude::*, probe};

pub(crate) async fn an_orphaning_delete_leaves_the_children_to_nobody(case: Case) -> Outcome {
    let host = case.host().start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        case.database(name, kind).await?;
    }
    case.quiet(seconds(1)).await?;
    let uids = async || {
        let mut uids = Vec::new();
        for kind in [POD, SERVICE, SECRET] {
            uids.extend(case.list(kind).await?.iter().map(|child| child.uid().to_owned()));
        }
        anyhow::Ok(uids)
    };
    let (before, writes) = (uids().await?, case.writes()?.len());
    for name in ["a", "b"] {
        case.delete_with(DATABASE, name, "Orphan").await?;
        case.wait_gone(DATABASE, name).await?;
    }
    let nobodys = async || {
        let mut owners = Vec::new();
        for kind in [POD, SERVICE, SECRET] {
            owners.extend(case.list(kind).await?.iter().map(|child| child.owner().to_owned()));
        }
        Ok(owners.iter().all(String::is_empty))
    };
    case.until("the children to be nobody's", seconds(20), nobodys).await?;
    case.throughout("they stay so", seconds(5), async || Ok(nobodys().await? && uids().await? == before)).await?;
    ensure!(case.writes()?.len() == writes, "written: {:?}", Calls(case.writes()?.0.split_off(writes)));
    // Nor does a new host, or a new Database of that name, take them.
    let _host = host.restart().await?;
    let loose = case.get(POD, "a").await?;
    case.apply_database("a", "mongo").await?;
    case.wait(DATABASE, "a", "in conflict", |database| database.is_not("Ready", "NameConflict")).await?;
    let left = async || Ok(case.get(POD, "a").await?.version() == loose.version() && nobodys().await?);
    case.throughout("they are left as they are", seconds(5), left).await
}

pub(crate) async fn an_orphaning_delete_that_the_host_hears_of_late_is_kept_to(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let _host = case.host().through(&proxy).start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    // The children's watches go on, that of Databases is deaf.
    proxy.add(Match::any().path("/databases?").watches(), Fault::Silence);
    proxy.cut();
    case.until("the host to watch in vain", seconds(30), async || Ok(proxy.hits() > 0)).await?;
    let seen = case.record(SERVICE, "a").await?;
    case.delete_with(DATABASE, "a", "Orphan").await?;
    case.wait_gone(DATABASE, "a").await?;
    for kind in [POD, SERVICE] {
        case.wait(kind, "a", "cut loose", |child| child.owner().is_empty()).await?;
    }
    let loose =
        async || Ok(case.get(POD, "a").await?.owner().is_empty() && case.get(SERVICE, "a").await?.owner().is_empty());
    case.throughout("they stay nobody's", seconds(6), loose).await?;
    let states = seen.all();
    let cut = states.iter().position(|service| service.owner().is_empty()).unwrap_or(states.len());
    ensure!(states.iter().skip(cut).all(|service| service.owner().is_empty()), "owned again: {states:?}");
    Ok(())
}

pub(crate) async fn every_cascade_ends_without_a_host(case: Case) -> Outcome {
    let mut host = case.host().start().await?;
    for name in ["back", "fore", "orphan", "again"] {
        case.database(name, "mysql").await?;
    }
    host.kill()?;
    for (name, how) in [("back", "Background"), ("fore", "Foreground"), ("orphan", "Orphan"), ("again", "Background")] {
        case.delete_with(DATABASE, name, how).await?;
        case.wait_gone(DATABASE, name).await?;
    }
    for name in ["back", "fore"] {
        for kind in [POD, SERVICE] {
            case.wait_gone(kind, name).await?;
        }
        case.wait_gone(SECRET, &format!("{name}-credentials")).await?;
    }
    ensure!(case.get(POD, "orphan").await?.owner().is_empty());
    // Made again before a host comes: it makes its own.
    let new = case.apply_database("again", "mysql").await?;
    let _host = case.host().start().await?;
    case.wait(DATABASE, "again", "Ready", |database| database.is("Ready")).await?;
    for (kind, name) in [(POD, "again"), (SERVICE, "again"), (SECRET, "again-credentials")] {
        ensure!(case.get(kind, name).await?.owner() == new.uid(), "{kind} {name}");
    }
    let orphan = case.get(POD, "orphan").await?;
    case.quiet(seconds(3)).await?;
    ensure!(case.get(POD, "orphan").await?.version() == orphan.version());
    Ok(())
}

pub(crate) async fn a_namespace_goes_with_an_object_in_finalization(case: Case) -> Outcome {
    // As a plugin ships it: a Role would go with the namespace, before the host had used it.
    case.cluster
        .apply(
            "",
            "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: finalizes, labels: {keelson.dev/aggregate-to-host: 'true'}}
rules:
- {apiGroups: [zalando.org], resources: [databases], verbs: [patch]}",
        )
        .await?;
    finalize::may_patch(&case).await?;
    let plugin = Probe::new("probe", "mongo").finalizing();
    let script = json!({"children": [probe::service()]});
    let folder = case.probes(&[plugin.script(&script)])?;
    let proxy = case.proxy().await?;
    let _host = case.host().plugins(&folder).through(&proxy).start().await?;
    case.database("a", "mongo").await?;
    // Its finalization makes what a namespace that goes refuses; then it is done.
    let makes = json!({"script": {"children": [probe::pod()]}, "waiting": {"reason": "Dumping", "message": "m"}});
    let finalize = |finalize: &Value| json!({"metadata": {"annotations": {probe::FINALIZE: finalize.to_string()}}});
    case.patch(DATABASE, "a", &finalize(&makes)).await?;
    proxy.add(Match::method(Method::PATCH).path("/databases/a?").times(1), Fault::Answer(500, "out of luck"));
    case.cluster.delete(NAMESPACE, "", &case.namespace, "Background").await?;
    let told = |database: &Object| database.is_not("Ready", "NamespaceTerminating");
    case.wait(DATABASE, "a", "told", told).await?;
    case.patch(DATABASE, "a", &finalize(&json!({}))).await?;
    let gone = async || Ok(case.cluster.get(NAMESPACE, "", &case.namespace).await?.is_none());
    case.until("the namespace to go", seconds(60), gone).await
}
