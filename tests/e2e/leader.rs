//! Two hosts, one of which leads: who writes, who takes over and how soon, and that nobody writes whose time is over.

use keelson_tests::prelude::*;
use std::time::Instant;

/// Two accounts and their hosts; the first leads.
async fn pair(case: &Case) -> anyhow::Result<[(Rival, Host); 2]> {
    pair_with_clocks(case, [None, None]).await
}

/// Each ahead by so many seconds; none: the shipped program.
async fn pair_with_clocks(case: &Case, [ahead, behind]: [Option<i64>; 2]) -> anyhow::Result<[(Rival, Host); 2]> {
    let (a, b) = (case.rival("a").await?, case.rival("b").await?);
    let host = |rival: &Rival, offset: Option<i64>| match offset {
        Some(offset) => rival.host().clock(offset, 1),
        None => rival.host(),
    };
    let first = host(&a, ahead).start().await?;
    ensure!(first.leads().await?, "{:?}", first.probe("/readyz").await?);
    let second = host(&b, behind).start().await?;
    ensure!(second.stands_by().await?, "{:?}", second.probe("/readyz").await?);
    Ok([(a, first), (b, second)])
}

/// Waits until this host leads, and returns how long that took.
async fn takes_over(case: &Case, host: &Host, patience: Duration) -> anyhow::Result<Duration> {
    let began = Instant::now();
    case.until("the standby to lead", patience, async || host.leads().await).await?;
    Ok(began.elapsed())
}

pub(crate) async fn case_50_a_standby_says_so_and_writes_nothing(case: Case) -> Outcome {
    let [(a, leader), (b, standby)] = pair(&case).await?;
    let (status, body) = standby.probe("/readyz").await?;
    let holder = case.holder().await?;
    ensure!((status, body.as_str()) == (200, format!("standby: {holder} leads\n").as_str()), "{status} {body}");
    ensure!(standby.log_lines(&["standby: another host leads", &holder]).len() == 1, "{}", standby.log());
    ensure!(leader.log_lines(&["leads", &holder]).len() == 1, "{}", leader.log());
    let status = async |host: &Host| {
        Ok::<_, anyhow::Error>(host.metrics().await?.sum("leader_election_master_status", &[("name", "keelson")]))
    };
    ensure!((status(&leader).await?, status(&standby).await?) == (1.0, 0.0));

    for (name, kind) in [("m", "mongo"), ("y", "mysql")] {
        case.database(name, kind).await?;
    }
    case.delete(SERVICE, "m").await?;
    case.wait(SERVICE, "m", "back", |service| !service.going()).await?;
    case.wait(DATABASE, "m", "Ready", |database| database.is("Ready")).await?;
    ensure!(standby.stands_by().await?);
    ensure!(!a.writes()?.is_empty(), "the audit log tells them apart");
    let written = b.calls()?.writes();
    ensure!(written.is_empty(), "a standby has written:\n{written:?}");
    let metrics = standby.metrics().await?;
    for (name, wanted) in [("keelson_renders_total", 0.0), ("workqueue_depth", 0.0), ("workqueue_adds_total", 0.0)] {
        let found = metrics.sum(name, &[]);
        ensure!((found - wanted).abs() < f64::EPSILON, "{name} of a standby is {found}");
    }
    let filled = metrics.sum("keelson_watch_state", &[("state", "filled")]);
    ensure!(filled >= 3.0, "{filled} watches of the standby are filled");
    Ok(())
}

pub(crate) async fn case_50_a_leader_that_ends_is_followed_at_once_without_a_write(case: Case) -> Outcome {
    let [(_, mut leader), (b, standby)] = pair(&case).await?;
    for i in 0..6 {
        case.database(&format!("d{i}"), if i % 2 == 0 { "mongo" } else { "mysql" }).await?;
    }
    case.quiet(seconds(1)).await?;
    let before = case.versions().await?;
    let statuses = versions(&case).await?;
    ensure!(leader.stop().await?.success(), "SIGTERM: {}", leader.log());
    let took = takes_over(&case, &standby, seconds(10)).await?;
    ensure!(took < seconds(2), "it took {took:?}");
    // It has looked at all of them: what it would write, it has written.
    let walked = async || {
        let metrics = standby.metrics().await?;
        Ok(metrics.sum("controller_runtime_reconcile_total", &[("result", "success")]) >= 6.0
            && metrics.sum("workqueue_depth", &[]) < 1.0)
    };
    case.until("every Database to be walked", seconds(20), walked).await?;
    case.throughout("nothing is written", seconds(4), async || Ok(b.writes()?.is_empty())).await?;
    ensure!(case.versions().await? == before && versions(&case).await? == statuses);
    // And it works.
    let database = case.get(DATABASE, "d0").await?;
    case.delete(SERVICE, "d0").await?;
    case.wait(SERVICE, "d0", "back and owned", |s| !s.going() && s.owner() == database.uid()).await?;
    case.database("new", "mongo").await.map(drop)
}

async fn versions(case: &Case) -> anyhow::Result<Vec<String>> {
    Ok(case.list(DATABASE).await?.iter().map(|database| database.version().to_owned()).collect())
}

pub(crate) async fn a_leader_that_is_killed_is_followed(case: Case) -> Outcome {
    let [(_, mut leader), (_, standby)] = pair(&case).await?;
    case.database("before", "mysql").await?;
    leader.kill()?;
    case.apply_database("after", "mongo").await?;
    let took = takes_over(&case, &standby, seconds(30)).await?;
    ensure!(took < Rival::LEASE + seconds(3), "it took {took:?}");
    case.wait(DATABASE, "after", "Ready", |database| database.is("Ready")).await?;
    ensure!(case.list(SECRET).await?.len() == 1, "the password was made once");
    Ok(())
}

pub(crate) async fn case_39_a_frozen_leader_sends_nothing_after_its_deadline(case: Case) -> Outcome {
    frozen(&case, [None, None]).await
}

/// The one that freezes is ten minutes ahead, the one that waits ten minutes behind: by its own clock the Lease was renewed
/// in the future.
pub(crate) async fn case_39_clocks_that_are_off_change_nothing(case: Case) -> Outcome {
    frozen(&case, [Some(600), Some(-600)]).await
}

/// In the middle of work, for longer than its lease. When it goes on it has seen none of what the other did.
async fn frozen(case: &Case, offsets: [Option<i64>; 2]) -> Outcome {
    let [(a, mut leader), (_, standby)] = pair_with_clocks(case, offsets).await?;
    for i in 0..20 {
        case.apply_database(&format!("d{i}"), if i % 4 == 0 { "mysql" } else { "mongo" }).await?;
    }
    leader.signal("STOP")?;
    // What the server had got by then, and the renewal from which the deadline counts.
    let last = case.get(LEASE, HOST_ACCOUNT.1).await?;
    let took = takes_over(case, &standby, Rival::LEASE + seconds(10)).await?;
    ensure!(took < Rival::LEASE + seconds(3), "it took {took:?}");
    ensure!(last.text("/spec/holderIdentity") != case.holder().await?);
    for i in 20..40 {
        case.apply_database(&format!("d{i}"), "mongo").await?;
    }
    leader.signal("CONT")?;
    let status = leader.ended(seconds(5)).await?;
    ensure!(status.code() == Some(1), "it ends with {status}");
    let said = leader.log_lines(&["ERROR", "ending: the lease", "was not renewed within 4s"]);
    ensure!(said.len() == 1, "{}", leader.log());

    all_whole(case, 40).await?;
    let renewed = a.calls()?.resource(LEASE.plural).filter(|call| call.verb == "update" && call.code == 200);
    let renewed = renewed.0.last().context("it never renewed")?.time()?;
    let deadline = renewed + Rival::RENEW;
    let late = a.calls()?.writes().filter(|call| call.time().is_ok_and(|at| at > deadline));
    ensure!(late.is_empty(), "written after {deadline}, renewed at {renewed}:\n{late:?}");
    Ok(())
}

/// A leader that cannot renew, and whose end takes its time: it hears of what is to be done, reads, and writes nothing. What
/// holds it back is the fence alone.
pub(crate) async fn case_39_a_leader_whose_lease_is_over_writes_no_more_though_it_lives(case: Case) -> Outcome {
    let (a, b) = (case.rival("a").await?, case.rival("b").await?);
    let proxy = case.proxy().await?;
    let mut leader = a.host().lingers(seconds(12)).through(&proxy).start().await?;
    let standby = b.start().await?;
    ensure!(leader.leads().await? && standby.stands_by().await?);
    case.database("d", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let renewals = || anyhow::Ok(a.calls()?.resource(LEASE.plural).filter(|it| it.verb == "update" && it.code == 200));
    proxy.add(Match::any().path("/leases/"), Fault::Silence);
    case.until("a renewal to go unanswered", seconds(5), async || Ok(proxy.hits() > 0)).await?;
    let renewed = renewals()?.0.last().context("it never renewed")?.time()?;
    let over = renewed + Rival::RENEW;
    case.until("its time to be over", seconds(10), async || Ok(jiff::Timestamp::now() > over)).await?;
    // It has something to do, and looks at the parent first. The other does not lead yet.
    case.delete(SERVICE, "d").await?;
    let after = |call: &Call| call.time().is_ok_and(|at| at > over);
    let looks =
        async || Ok(!a.calls()?.reads().resource(DATABASE.plural).filter(|it| after(it) && it.name == "d").is_empty());
    case.until("it to be about to make the Service anew", seconds(5), looks).await?;
    takes_over(&case, &standby, Rival::LEASE + seconds(10)).await?;
    case.wait(SERVICE, "d", "made by the other", |service| !service.going()).await?;
    ensure!(leader.ended(seconds(20)).await?.code() == Some(1));
    let late = a.calls()?.writes().filter(after);
    ensure!(late.is_empty(), "written after {over}, renewed at {renewed}:\n{late:?}");
    Ok(())
}

/// Every Database Ready, each with its own Pod and Service, none double.
async fn all_whole(case: &Case, count: usize) -> Outcome {
    let ready = async || {
        let databases = case.list(DATABASE).await?;
        Ok(databases.len() == count && databases.iter().all(|database| database.is("Ready")))
    };
    case.until("all Databases to be Ready", seconds(60), ready).await?;
    let databases = case.list(DATABASE).await?;
    for kind in [POD, SERVICE] {
        let children = case.list(kind).await?;
        let owned = |database: &&Object| children.iter().filter(|child| child.owner() == database.uid()).count() == 1;
        ensure!(
            children.len() == count && databases.iter().filter(owned).count() == count,
            "{} {kind}s",
            children.len()
        );
    }
    Ok(())
}

pub(crate) async fn a_leader_that_is_cut_off_ends_in_time_and_is_followed(case: Case) -> Outcome {
    let (a, b) = (case.rival("a").await?, case.rival("b").await?);
    let proxy = case.proxy().await?;
    let mut leader = a.host().through(&proxy).start().await?;
    let standby = b.start().await?;
    ensure!(leader.leads().await? && standby.stands_by().await?);
    case.database("before", "mongo").await?;
    // Nothing is closed: it hears no more of the server.
    proxy.silence();
    let cut = Instant::now();
    let status = leader.ended(Rival::RENEW + seconds(5)).await?;
    ensure!(
        status.code() == Some(1) && cut.elapsed() < Rival::RENEW + seconds(2),
        "{status} after {:?}",
        cut.elapsed()
    );
    let said = leader.log_lines(&["ERROR", "ending: the lease", "no answer"]);
    ensure!(said.len() == 1, "{}", leader.log());
    takes_over(&case, &standby, Rival::LEASE + seconds(5)).await?;
    case.database("after", "mongo").await.map(drop)
}

/// As the Deployment starts them: the shipped account, its flags, its Lease, its times.
pub(crate) async fn of_two_hosts_that_start_at_once_exactly_one_leads(case: Case) -> Outcome {
    let shipped = std::fs::read_to_string(repository().join("deploy/workload/deployment.yaml"))?;
    ensure!(shipped.contains("replicas: 2") && shipped.contains("--leader-elect,"), "{shipped}");
    let host = || case.host().arg("--leader-elect").arg("--leader-elect-namespace").arg(HOST_ACCOUNT.0).spawn();
    let (first, second) = tokio::join!(host(), host());
    let (mut first, mut second) = (first?, second?);
    first.ready().await?;
    second.ready().await?;
    let leads = [first.leads().await?, second.leads().await?];
    let stands_by = [first.stands_by().await?, second.stands_by().await?];
    ensure!(leads.iter().filter(|leads| **leads).count() == 1 && stands_by == leads.map(|leads| !leads), "{leads:?}");
    case.database("a", "mongo").await?;
    let [mut leader, standby] = if leads == [true, false] { [first, second] } else { [second, first] };
    ensure!(leader.stop().await?.success());
    let took = takes_over(&case, &standby, seconds(10)).await?;
    ensure!(took < seconds(4), "it took {took:?}");
    case.database("b", "mongo").await.map(drop)
}

pub(crate) async fn a_host_that_may_not_touch_the_lease_says_so(case: Case) -> Outcome {
    let mut host =
        case.host().arg("--leader-elect").arg("--leader-elect-namespace").arg(&case.namespace).spawn().await?;
    let lease = format!("{}/keelson", case.namespace);
    let says = async || {
        let (status, body) = host.probe("/readyz").await.unwrap_or_default();
        Ok(status == 503 && body.contains("forbidden") && body.contains(&lease))
    };
    case.until("/readyz to name the right that is missing", seconds(20), says).await?;
    ensure!(host.log_lines(&["WARN", "cannot stand for election", "forbidden"]).len() == 1, "{}", host.log());
    ensure!(host.stop().await?.success());
    Ok(())
}

/// A Lease that somebody deletes is made again by the one that leads; one that somebody takes is lost.
pub(crate) async fn a_lease_that_others_touch_is_kept_or_lost_but_never_shared(case: Case) -> Outcome {
    let [(_, mut leader), (_, standby)] = pair(&case).await?;
    let holder = case.holder().await?;
    let note = json!({"metadata": {"annotations": {"example.org/note": "mine"}}});
    case.patch(LEASE, HOST_ACCOUNT.1, &note).await?;
    let renewed = case.get(LEASE, HOST_ACCOUNT.1).await?.text("/spec/renewTime").to_owned();
    let kept = |lease: &Object| lease.text("/spec/renewTime") > renewed.as_str();
    let lease = case.wait(LEASE, HOST_ACCOUNT.1, "renewed", kept).await?;
    ensure!(lease.annotation("example.org/note") == Some("mine"), "what others wrote stays: {lease}");
    case.delete(LEASE, HOST_ACCOUNT.1).await?;
    case.wait(LEASE, HOST_ACCOUNT.1, "made again", |lease| lease.text("/spec/holderIdentity") == holder).await?;
    ensure!(leader.leads().await? && standby.stands_by().await?);

    case.patch(LEASE, HOST_ACCOUNT.1, &json!({"spec": {"holderIdentity": "somebody"}})).await?;
    ensure!(leader.ended(seconds(5)).await?.code() == Some(1));
    let said = leader.log_lines(&["ERROR", "ending: the lease", "was taken by", "somebody"]);
    ensure!(said.len() == 1, "{}", leader.log());
    takes_over(&case, &standby, Rival::LEASE + seconds(5)).await.map(drop)
}
