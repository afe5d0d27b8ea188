//! Everything fails, again and again, while people create and delete. Afterwards nothing is missing, double or orphaned.
//!
//! What happens follows from one number, printed as `chaos: seed …`; KEELSON_CHAOS_SEED=… gives the same again, as far
//! as processes that run side by side can. KEELSON_CHAOS_STEPS=… makes it longer.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http::Method;
use keelson_tests::prelude::*;
use oorandom::Rand32;

/// Creates and deletes of Databases.
const STEPS: u32 = 1_000;
/// Of the first ones most create, so that lists have several pages.
const GROWTH: u32 = 700;
const KILLS: u32 = 50;
const RESTARTS: u32 = 10;
/// Faults on the wire.
const FAULTS: u32 = 60;
/// The same with two hosts, and a third of the work: they take over from each other, each with a clock of its own.
const PAIR: Measure = Measure { steps: STEPS / 4, growth: GROWTH / 4, kills: 15, restarts: 2, faults: 20 };
const ONE: Measure = Measure { steps: STEPS, growth: GROWTH, kills: KILLS, restarts: RESTARTS, faults: FAULTS };
/// How long the host may take to put everything right once nothing fails any more.
const HEALING: Duration = seconds(120);
const KINDS: [Kind; 3] = [POD, SERVICE, SECRET];

/// How much of everything.
#[derive(Clone, Copy)]
struct Measure {
    steps: u32,
    growth: u32,
    kills: u32,
    restarts: u32,
    faults: u32,
}

pub(crate) async fn nothing_is_lost_whatever_fails(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    chaos(&case, ONE, &proxy, &[case.host().through(&proxy)]).await
}

/// One is ten minutes ahead, the other ten behind. One that cannot renew its lease ends, and is started again.
pub(crate) async fn two_hosts_whose_clocks_are_off_lose_nothing(case: Case) -> Outcome {
    let proxy = case.proxy().await?;
    let (a, b) = (case.rival("a").await?, case.rival("b").await?);
    let hosts = [a.host().clock(600, 1).through(&proxy), b.host().clock(-600, 1).through(&proxy)];
    chaos(&case, PAIR, &proxy, &hosts).await
}

async fn chaos(case: &Case, measure: Measure, proxy: &FaultProxy, builders: &[HostBuilder]) -> Outcome {
    let Measure { steps, growth, kills: most_kills, restarts: most_restarts, faults } = measure;
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let seed = number("KEELSON_CHAOS_SEED").unwrap_or_else(|| u64::from(clock.subsec_nanos()));
    let steps = number("KEELSON_CHAOS_STEPS").map_or(steps, |steps| u32::try_from(steps).unwrap_or(u32::MAX));
    println!("chaos: seed {seed}, {steps} steps, {} hosts", builders.len());
    let chance = &mut Rand32::new(seed);
    let mut hosts = Vec::new();
    for builder in builders {
        hosts.push(builder.clone().start().await?);
    }
    let mut wanted: BTreeMap<String, &str> = BTreeMap::new();
    let began = Instant::now();
    let (mut kills, mut restarts) = (0, 0);

    for step in 0..steps {
        let grow = if step < growth { 88 } else { 25 };
        if chance.rand_range(0..100) < grow || wanted.is_empty() {
            let kind = if chance.rand_range(0..3) == 0 { "mysql" } else { "mongo" };
            // An apply to one that is still on its way out makes none; and with children that the garbage collector has
            // missed it may be so until that is started again: then another name.
            let name = loop {
                let name = fresh(chance, &wanted);
                let going = Cell::new(false);
                let made = async || case.apply_database(&name, kind).await.map(|made| going.set(made.going())).is_ok();
                persist(case, "create", made).await?;
                if !going.get() {
                    break name;
                }
            };
            wanted.insert(name, kind);
        } else {
            let name = any(chance, &wanted);
            let how = ["Background", "Foreground"][chance.rand_range(0..2) as usize];
            persist(&case, "delete", async || case.cluster.delete(DATABASE, &case.namespace, &name, how).await.is_ok())
                .await?;
            wanted.remove(&name);
        }
        // Somebody takes a child away, or writes over it.
        if chance.rand_range(0..10) == 0 && !wanted.is_empty() {
            let name = any(chance, &wanted);
            let kind = KINDS[chance.rand_range(0..2) as usize];
            let foreign = json!({"metadata": {"labels": {"app": "x", "keelson.dev/instance": "x"}}});
            // There may be none yet.
            if chance.rand_range(0..2) == 0 {
                let _ = case.delete(kind, &name).await;
            } else {
                let _ = case.patch(kind, &name, &foreign).await;
            }
        }
        if chance.rand_range(0..steps) < most_kills {
            kills += 1;
            let at = chance.rand_range(0..hosts.len() as u32) as usize;
            hosts.get_mut(at).context("a host")?.kill()?;
        }
        revive(&mut hosts, builders).await?;
        if chance.rand_range(0..steps) < most_restarts {
            restarts += 1;
            case.cluster.restart("apiserver").await?;
        }
        if chance.rand_range(0..steps) < faults {
            fault(case, chance, proxy);
        }
    }
    let (took, hits) = (began.elapsed(), proxy.hits());
    println!("chaos: {took:?}; host killed {kills} times, server {restarts} times, {hits} requests met a fault");
    println!("chaos: {} Databases are left", wanted.len());
    proxy.clear();
    proxy.speak();
    // Deletions that the garbage collector missed while the server was away it does not notice later (seen on 1.37).
    case.cluster.restart("controller-manager").await?;
    healed(case, &mut hosts, builders, &wanted).await?;
    case.quiet(seconds(5)).await?;
    consistent(case, &wanted).await?.map_or(Ok(()), |problem| bail!("at rest: {problem}"))
}

/// What has ended is started again, as a kubelet would.
async fn revive(hosts: &mut [Host], builders: &[HostBuilder]) -> Outcome {
    for (host, builder) in hosts.iter_mut().zip(builders) {
        if host.has_ended()? {
            *host = builder.clone().spawn().await?;
        }
    }
    Ok(())
}

/// A name that nobody has now; some had it before.
fn fresh(chance: &mut Rand32, wanted: &BTreeMap<String, &str>) -> String {
    loop {
        let name = format!("d{}", chance.rand_range(0..GROWTH * 2));
        if !wanted.contains_key(&name) {
            return name;
        }
    }
}

fn any(chance: &mut Rand32, wanted: &BTreeMap<String, &str>) -> String {
    let at = chance.rand_range(0..wanted.len().max(1) as u32) as usize;
    wanted.keys().nth(at).cloned().unwrap_or_default()
}

/// One fault more; earlier ones may still hold.
fn fault(case: &Case, chance: &mut Rand32, proxy: &FaultProxy) {
    let few = 1 + chance.rand_range(0..5) as usize;
    let patches = || Match::method(Method::PATCH).times(few);
    match chance.rand_range(0..10) {
        0 => proxy.cut(),
        1 => proxy.silence(),
        2 => proxy.speak(),
        3 => proxy.expire_watches(),
        4 => proxy.add(Match::any().watches().times(few), Fault::Answer(410, "too old resource version")),
        5 => proxy.add(Match::any().path("continue=").times(few), Fault::Answer(410, "the continue token is too old")),
        6 => proxy.add(patches(), Fault::Answer(500, "etcdserver: leader changed")),
        7 => proxy.add(patches(), Fault::LoseAnswer),
        8 => proxy.add(patches(), Fault::Delay(seconds(2))),
        _ => proxy.add(Match::any().path(&format!("/namespaces/{}/", case.namespace)).times(few), Fault::Cut),
    }
}

/// The server may be on its way down: what a user sends again until it is answered.
async fn persist(case: &Case, what: &str, act: impl AsyncFn() -> bool) -> Outcome {
    case.until(&format!("the server to take a {what}"), seconds(60), async || Ok(act().await)).await
}

async fn healed(case: &Case, hosts: &mut [Host], builders: &[HostBuilder], wanted: &BTreeMap<String, &str>) -> Outcome {
    let deadline = Instant::now() + HEALING;
    loop {
        // What does not live through it is started again, as a kubelet would: the scheduler ends some time after a server
        // that lost what it had been told (seen on 1.37).
        for program in case.cluster.ended() {
            println!("chaos: {program} has ended, and is started again");
            case.cluster.restart(program).await?;
        }
        revive(hosts, builders).await?;
        let Some(problem) = consistent(case, wanted).await? else { return Ok(()) };
        if Instant::now() >= deadline {
            let mut said = Vec::new();
            for host in hosts.iter() {
                said.push(host.probe("/readyz").await);
            }
            bail!("{HEALING:?} after the last fault: {problem}; {said:?}");
        }
        tokio::time::sleep(seconds(1)).await;
    }
}

/// What is not as it should be, one thing of it.
async fn consistent(case: &Case, wanted: &BTreeMap<String, &str>) -> anyhow::Result<Option<String>> {
    let databases = case.list(DATABASE).await?;
    let there: BTreeSet<&str> = databases.iter().map(Object::name).collect();
    if let Some(missing) = wanted.keys().find(|name| !there.contains(name.as_str())) {
        return Ok(Some(format!("Database {missing} is lost")));
    }
    if let Some(late) = there.iter().find(|name| !wanted.contains_key(**name)) {
        return Ok(Some(format!("Database {late} is still there")));
    }
    if let Some(unready) = databases.iter().find(|database| !database.is("Ready")) {
        return Ok(Some(format!("not ready: {unready}")));
    }
    let mut children = BTreeMap::new();
    for kind in KINDS {
        for child in case.list(kind).await? {
            if child.going() {
                return Ok(Some(format!("{kind} {} is going", child.name())));
            }
            children.insert((kind.kind, child.name().to_owned()), child);
        }
    }
    for database in &databases {
        let name = database.name();
        let mut own = vec![(POD.kind, name.to_owned()), (SERVICE.kind, name.to_owned())];
        own.extend((database.text("/spec/type") == "mysql").then(|| (SECRET.kind, format!("{name}-credentials"))));
        for key in own {
            match children.remove(&key) {
                None => return Ok(Some(format!("{} {} is missing", key.0, key.1))),
                Some(child) if child.owner() != database.uid() => {
                    return Ok(Some(format!("not of Database {name} with UID {}: {child}", database.uid())));
                }
                Some(child) if child.label("keelson.dev/instance") != Some(database.uid()) => {
                    return Ok(Some(format!("without its label: {child}")));
                }
                Some(_) => {}
            }
        }
    }
    if let Some((_, orphan)) = children.first_key_value() {
        return Ok(Some(format!("nobody's: {orphan}")));
    }
    // Said once for each object, whoever said it.
    let mut said = BTreeSet::new();
    for event in case.list(EVENT).await?.iter().filter(|event| event.text("/reason") == "Created") {
        if event.text("/reportingController").starts_with("keelson.dev/")
            && !said.insert(event.text("/regarding/uid").to_owned())
        {
            return Ok(Some(format!("said twice: {event}")));
        }
    }
    Ok(None)
}
