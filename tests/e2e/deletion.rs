//! Deletes: of Databases, of children, of namespaces, and what races with them.

use http::Method;
use keelson_tests::prelude::*;

/// Keeps an object in deletion until a test lets it go.
fn hold(yes: bool) -> Value {
    json!({"metadata": {"finalizers": if yes { json!(["keelson.test/hold"]) } else { Value::Null }}})
}

pub(crate) async fn case_06_a_new_database_waits_for_the_old_child(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let old = case.database("a", "mongo").await?;
    let old_pod = case.patch(POD, "a", &hold(true)).await?;
    let (states, pods) = (case.record(DATABASE, "a").await?, case.record(POD, "a").await?);
    case.delete(DATABASE, "a").await?;
    case.wait_gone(DATABASE, "a").await?;
    let new = case.apply_database("a", "mongo").await?;
    ensure!(new.uid() != old.uid());
    case.wait(POD, "a", "going", Object::going).await?;
    let waits = |database: &Object| database.is_not("Ready", "WaitingForDeletion") && database.is("Progressing");
    case.wait(DATABASE, "a", "waiting for the old Pod", waits).await?;
    case.wait(SERVICE, "a", "the new one's", |service| service.owner() == new.uid()).await?;
    case.quiet(seconds(5)).await?;
    case.patch(POD, "a", &hold(false)).await?;
    case.wait_for(seconds(10), POD, "a", "made anew", |pod| pod.owner() == new.uid() && pod.uid() != old_pod.uid())
        .await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    ensure!(!pods.saw(|pod| pod.uid() == old_pod.uid() && pod.owner() != old.uid()), "the dying Pod was adopted");
    ensure!(!states.saw(|d| d.is_not("Ready", "NameConflict")), "called a conflict: {:?}", states.all());
    ensure!(case.events("a").await?.iter().all(|event| event.text("/type") != "Warning"), "waiting is no fault");

    // As fast as it goes, several times; a generated password goes and comes with its Database.
    for (name, kind, children) in [("a", "mongo", 2), ("b", "mysql", 3), ("b", "mysql", 3), ("a", "mongo", 2)] {
        if case.find(DATABASE, name).await?.is_some() {
            case.delete(DATABASE, name).await?;
            case.wait_gone(DATABASE, name).await?;
        }
        let new = case.database(name, kind).await?;
        let owned = async || {
            let mut owned = 0;
            for kind in [POD, SERVICE, SECRET] {
                owned +=
                    case.list(kind).await?.iter().filter(|child| child.owner() == new.uid() && !child.going()).count();
            }
            Ok(owned == children)
        };
        case.until(&format!("{name} to have children of its own"), seconds(20), owned).await?;
    }
    ensure!(!states.saw(|d| d.is_not("Ready", "NameConflict")), "called a conflict: {:?}", states.all());
    Ok(())
}

pub(crate) async fn case_07_nothing_is_made_for_what_is_going(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        case.database(name, kind).await?;
    }
    case.patch(SERVICE, "a", &hold(true)).await?;
    case.quiet(seconds(1)).await?;
    let before = case.writes()?.len();
    for name in ["a", "b"] {
        case.delete_with(DATABASE, name, "Foreground").await?;
    }
    case.wait_gone(POD, "a").await?;
    case.wait_gone(DATABASE, "b").await?;
    ensure!(case.get(DATABASE, "a").await?.going(), "the Service holds it");
    case.throughout("the Pod stays away", seconds(5), async || Ok(case.find(POD, "a").await?.is_none())).await?;
    case.patch(SERVICE, "a", &hold(false)).await?;
    case.wait_gone(DATABASE, "a").await?;
    for kind in [POD, SERVICE, SECRET] {
        ensure!(case.list(kind).await?.is_empty(), "{kind}s are left: {:?}", case.list(kind).await?);
    }
    let late = Calls(case.writes()?.0.split_off(before));
    ensure!(late.is_empty(), "written for Databases in deletion: {late:?}");
    Ok(())
}

pub(crate) async fn case_10_a_namespace_goes_without_the_host(case: Case) -> Outcome {
    let mut host = case.host().start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        let database = case.database(name, kind).await?;
        ensure!(database.at("/metadata/finalizers").is_null(), "a finalizer on {database}");
    }
    host.kill()?;
    namespace_goes(&case).await
}

pub(crate) async fn case_10_a_namespace_goes_under_a_host(case: Case) -> Outcome {
    let host = case.host().start().await?;
    for (name, kind) in [("a", "mongo"), ("b", "mysql")] {
        case.database(name, kind).await?;
    }
    namespace_goes(&case).await?;
    ensure!(host.probe("/healthz").await?.0 == 200);
    let late = case.writes()?.filter(|call| call.code >= 500);
    ensure!(late.is_empty(), "{late:?}");
    Ok(())
}

async fn namespace_goes(case: &Case) -> Outcome {
    case.cluster.delete(NAMESPACE, "", &case.namespace, "Background").await?;
    let gone = async || Ok(case.cluster.get(NAMESPACE, "", &case.namespace).await?.is_none());
    case.until("the namespace to go", seconds(60), gone).await
}

pub(crate) async fn case_19_a_database_that_goes_during_a_walk_leaves_nothing(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let _host = case.host().through(&proxy).start().await?;
    // Between render and apply, in the background and in the foreground.
    for (name, how) in [("a", "Background"), ("b", "Foreground")] {
        proxy.clear();
        proxy.add(Match::method(Method::PATCH).path(&format!("/pods/{name}?")).times(1), Fault::Delay(seconds(3)));
        case.apply_database(name, "mongo").await?;
        case.until("the Pod's apply to be on its way", seconds(10), async || Ok(proxy.hits() == 1)).await?;
        case.delete_with(DATABASE, name, how).await?;
        case.wait_gone(DATABASE, name).await?;
    }
    // A repair is on its way when everything goes.
    case.database("c", "mongo").await?;
    proxy.clear();
    proxy.add(Match::method(Method::PATCH).path("/services/c?").times(1), Fault::Delay(seconds(4)));
    case.patch(SERVICE, "c", &json!({"metadata": {"labels": {"app": null}}})).await?;
    case.until("the repair to be on its way", seconds(10), async || Ok(proxy.hits() == 1)).await?;
    let repairs = case.writes()?.resource("services").len();
    case.delete(DATABASE, "c").await?;
    case.wait_gone(SERVICE, "c").await?;
    case.until("the repair to arrive", seconds(20), async || Ok(case.writes()?.resource("services").len() > repairs))
        .await?;

    let nothing = async || Ok(case.versions().await?.is_empty() && case.list(DATABASE).await?.is_empty());
    case.until("all to be gone", seconds(30), nothing).await?;
    case.throughout("nothing comes back", seconds(5), nothing).await?;
    let services =
        case.writes()?.resource("services").filter(|call| call.code < 300 && matches!(call.name.as_str(), "a" | "b"));
    ensure!(services.is_empty(), "made for a Database that was gone: {services:?}");
    Ok(())
}

pub(crate) async fn case_19_a_child_that_goes_during_a_repair_is_made_anew(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let _host = case.host().through(&proxy).start().await?;
    let database = case.database("a", "mongo").await?;
    let states = case.record(DATABASE, "a").await?;
    for kind in [SERVICE, POD] {
        let old = case.get(kind, "a").await?;
        proxy.clear();
        proxy
            .add(Match::method(Method::PATCH).path(&format!("/{}/a?", kind.plural)).times(1), Fault::Delay(seconds(3)));
        case.patch(kind, "a", &json!({"metadata": {"labels": {"app": "mine"}}})).await?;
        case.until("the repair to be on its way", seconds(10), async || Ok(proxy.hits() == 1)).await?;
        case.delete(kind, "a").await?;
        let anew =
            |new: &Object| new.uid() != old.uid() && new.owner() == database.uid() && new.label("app") == Some("db");
        case.wait_for(seconds(20), kind, "a", "made anew, whole", anew).await?;
    }
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(3)).await?;
    ensure!(!states.saw(|d| d.is_not("Ready", "NameConflict")), "{:?}", states.all());
    Ok(())
}
