//! Time: an hour of failures in a minute, and hosts whose clock is wrong.

use crate::finalize;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use keelson_tests::{prelude::*, probe};
use std::collections::BTreeMap;
use std::time::Instant;

/// An hour in a minute.
const RATE: u32 = 60;
const HOUR: Duration = seconds(3600 / RATE as u64);
/// Every six minutes, from the beginning of the hour to its end.
const EVENTS: usize = 11;

/// One failure of each retry rule, and one object that goes to and fro between two.
pub(crate) async fn case_27_failures_of_an_hour_are_told_seldom_and_tried_less_and_less(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let folder =
        case.probes(&[Probe::new("probe", "mongo").script(&json!({"children": [probe::service(), probe::pod()]}))])?;
    let _host = case.host().plugins(&folder).through(&proxy).clock(0, RATE).start().await?;
    let fails = |reason: &str| json!({"fail": {"class": "invalid", "reason": reason, "message": reason}});
    case.apply("{apiVersion: v1, kind: Service, metadata: {name: blocked}, spec: {ports: [{port: 1}]}}").await?;
    proxy.add(Match::method(Method::PATCH).path("/services/passing?"), Fault::Answer(500, "etcd is away"));
    let began = Instant::now();
    case.scripted("permanent", "mongo", &fails("Never")).await?;
    case.apply_database("blocked", "mongo").await?;
    case.apply_database("passing", "mongo").await?;
    let mut flips = 0;
    let mut half = None;
    while began.elapsed() < HOUR {
        let reason = if flips % 2 == 0 { "Alpha" } else { "Beta" };
        case.scripted("flapping", "mongo", &fails(reason)).await?;
        case.wait(DATABASE, "flapping", reason, |database| database.is_not("Ready", reason)).await?;
        flips += 1;
        if began.elapsed() > HOUR / 2 {
            half.get_or_insert((began.elapsed(), proxy.hits()));
        }
    }
    ensure!(flips > 2 * EVENTS, "only {flips} flips: nothing to be told too often");
    for (name, reason) in [("permanent", "Never"), ("blocked", "NameConflict"), ("passing", "ApiUnavailable")] {
        let database = case.get(DATABASE, name).await?;
        ensure!(database.is_not("Ready", reason), "{name}: {database}");
    }

    // Told once; what goes to and fro again after six minutes, which the API server knows for the same.
    let told = case.calls()?.verb("create").resource("events");
    let of = |name: &str| told.filter(|call| call.uri.contains(name) || call.name.starts_with(name)).len();
    ensure!(told.len() <= 3 + 2 * EVENTS, "{} Events in an hour: {told:?}", told.len());
    ensure!(told.len() > 2 * EVENTS / 2, "only {} in an hour: its clock is slow", told.len());
    ensure!(of("permanent") <= 1, "{told:?}");
    let mut events = BTreeMap::<_, usize>::new();
    for name in ["permanent", "blocked", "passing", "flapping"] {
        for event in case.events(name).await? {
            *events.entry((name, event.text("/reason").to_owned())).or_default() += 1;
        }
    }
    ensure!(events.len() == 5 && events.values().all(|count| *count == 1), "{events:?}");
    for (name, most) in [("permanent", 1), ("blocked", 2), ("passing", 2)] {
        let statuses = case.writes()?.resource("databases").filter(|call| call.name == name);
        ensure!((1..=most).contains(&statuses.len()), "{name}: {statuses:?}");
    }

    // Tried at once, then slower, to the cap: half a minute, where it is blocked.
    let tries = case.writes()?.resource("services").filter(|call| call.name == "blocked");
    let times: Vec<Timestamp> = tries.0.iter().map(Call::time).collect::<anyhow::Result<_>>()?;
    let pauses: Vec<SignedDuration> = times.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    let least = SignedDuration::from_millis(1000 * 30 * 3 / 4 / i64::from(RATE) - 15);
    // One comes out of turn: the resync's.
    let short = pauses.iter().skip(10).filter(|pause| **pause <= least).count();
    ensure!(pauses.len() > 15 && short <= 1, "{pauses:?}");
    ensure!(pauses.iter().take(4).any(|pause| *pause < least / 2), "{pauses:?}");
    // A minute, where it passes.
    let (since, hits) = half.context("the hour had no half")?;
    let cap = seconds(60) * 3 / 4 / RATE;
    let most = (began.elapsed() - since).as_secs_f64() / cap.as_secs_f64() + 1.0;
    let late = proxy.hits() - hits;
    ensure!(hits > 8 && late > 2 && late as f64 <= most, "{late} tries after {hits}, at most {most}");

    case.delete(SERVICE, "blocked").await?;
    proxy.clear();
    for name in ["blocked", "passing"] {
        case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
    }
    Ok(())
}

/// Its conditions have its time; nothing else is by the clock.
pub(crate) async fn a_host_whose_clock_is_off_works_as_any_other(case: Case) -> Outcome {
    let since = |database: &Object| {
        let conditions = database.at("/status/conditions").as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
        ready["lastTransitionTime"].as_str().unwrap_or_default().parse::<Timestamp>()
    };
    for (offset, m, y) in [(600, "m-ahead", "y-ahead"), (-600, "m-behind", "y-behind")] {
        let mut host = case.host().clock(offset, 1).start().await?;
        case.database(m, "mongo").await?;
        let database = case.database(y, "mysql").await?;
        let off = since(&database)?.duration_since(Timestamp::now()) - SignedDuration::from_secs(offset);
        ensure!(off.abs() < SignedDuration::from_secs(60), "{off:?} beside what it is off: {database}");
        case.delete(SERVICE, m).await?;
        case.wait(SERVICE, m, "back", |service| !service.going()).await?;
        case.quiet(seconds(2)).await?;
        host.kill()?;
    }
    let before = (case.versions().await?, case.list(DATABASE).await?.iter().map(since).collect::<Result<Vec<_>, _>>()?);
    let written = case.writes()?.len();
    let _host = case.host().start().await?;
    case.quiet(seconds(2)).await?;
    let after = (case.versions().await?, case.list(DATABASE).await?.iter().map(since).collect::<Result<Vec<_>, _>>()?);
    ensure!(after == before && case.writes()?.len() == written, "{before:?} became {after:?}");
    // The shipped program does not hear of a clock of tests.
    let off = since(&case.database("right", "mongo").await?)?.duration_since(Timestamp::now());
    ensure!(off.abs() < SignedDuration::from_secs(60), "the shipped program is off by {off:?}");
    Ok(())
}

/// `finalize.timeoutSeconds` counts from the delete, however wrong the host's clock is: what is let go too soon is lost.
pub(crate) async fn a_finalization_takes_its_time_by_a_clock_that_is_off(case: Case) -> Outcome {
    finalize::rights(&case).await?;
    const RATE: u32 = 10;
    const TIMEOUT: u32 = 150;
    let script = json!({"children": [probe::pod()]});
    let rule = json!({"finalize": {"timeoutSeconds": TIMEOUT, "onTimeout": "Release"}});
    let folder = case.probes(&[Probe::new("probe", "mongo").finalizing().script(&script).spec(&rule)])?;
    let forever = json!({"script": {}, "waiting": {"reason": "Dumping", "message": "for ever"}});
    for (name, offset) in [("ahead", 600), ("behind", -600)] {
        let mut host = case.host().plugins(&folder).clock(offset, RATE).start().await?;
        let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": {"type": "mongo"},
            "metadata": {"name": name, "annotations": {probe::FINALIZE: forever.to_string()}}});
        case.apply(&database.to_string()).await?;
        case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
        case.delete(DATABASE, name).await?;
        let held = async || Ok(case.find(DATABASE, name).await?.is_some());
        case.throughout("it is held for its time", seconds(u64::from(TIMEOUT / RATE) - 5), held).await?;
        let gone = async || Ok(case.find(DATABASE, name).await?.is_none());
        case.until("it to be let go after its time", seconds(20), gone).await?;
        host.kill()?;
    }
    Ok(())
}
