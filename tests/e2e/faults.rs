//! The host or the wire fails in the middle of a walk.

use http::Method;
use keelson_tests::prelude::*;

/// Each lets a walk end between two writes; the next completes it, and nobody reads of a conflict.
pub(crate) async fn case_02_a_walk_that_is_cut_short_is_completed(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let mut host = case.host().through(&proxy).start().await?;
    let of = |part: &str| Match::method(Method::PATCH).path(part).times(2);

    proxy.add(of("/services/a500?"), Fault::Answer(500, "etcd is having a moment"));
    made_whole(&case, "a500", "mongo").await?;

    proxy.add(of("/services/a503?"), Fault::Answer(503, "apiserver is shutting down"));
    made_whole(&case, "a503", "mongo").await?;

    proxy.add(of("/services/cut?"), Fault::Cut);
    made_whole(&case, "cut", "mongo").await?;

    // Written, and the host does not know it.
    for part in ["/pods/lost?", "/services/lost?", "/secrets/lost-", "/databases/lost/status?"] {
        proxy.add(Match::method(Method::PATCH).path(part).times(1), Fault::LoseAnswer);
    }
    made_whole(&case, "lost", "mysql").await?;
    ensure!(case.list(SECRET).await?.len() == 1, "the password was made once");

    // Killed before the Service's apply was sent.
    proxy.clear();
    proxy.add(Match::method(Method::PATCH).path("/services/killed?"), Fault::Silence);
    let states = case.record(DATABASE, "killed").await?;
    case.apply_database("killed", "mongo").await?;
    case.until("the Service's apply to hang", seconds(20), async || Ok(proxy.hits() == 1)).await?;
    let pod = case.get(POD, "killed").await?;
    host.kill()?;
    proxy.clear();
    let _host = host.restart().await?;
    whole(&case, "killed", &states).await?;
    ensure!(case.get(POD, "killed").await?.uid() == pod.uid(), "the Pod that stood was made again");
    Ok(())
}

async fn made_whole(case: &Case, name: &str, kind: &str) -> Outcome {
    let states = case.record(DATABASE, name).await?;
    case.apply_database(name, kind).await?;
    whole(case, name, &states).await
}

/// Ready with exactly one of each, and no word of a conflict on the way.
async fn whole(case: &Case, name: &str, states: &Recording) -> Outcome {
    let database = case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
    for kind in [POD, SERVICE] {
        let owned: Vec<Object> = case.list(kind).await?.into_iter().filter(|o| o.owner() == database.uid()).collect();
        ensure!(owned.len() == 1, "{} {kind}s of {name}", owned.len());
    }
    for condition in states.all().iter().flat_map(Object::conditions) {
        let text = format!("{} {}", condition.reason, condition.message);
        ensure!(!["409", "onflict", "already exists"].iter().any(|word| text.contains(word)), "{name} said: {text}");
    }
    let warnings = case.events(name).await?.into_iter().filter(|event| event.text("/type") == "Warning");
    ensure!(warnings.count() == 0, "what passes by itself needs no warning");
    Ok(())
}
