//! The API server that is not there, does not trust us, or that we must not trust; and how the host ends.

use keelson_tests::prelude::*;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// It lives and is not ready, and its probe and its log say why; told to end, it ends.
async fn waits_and_says(case: &Case, mut host: Host, words: &[&str]) -> Outcome {
    let says = async || {
        let (status, body) = host.probe("/readyz").await.unwrap_or_default();
        Ok(status == 503 && words.iter().all(|word| body.contains(word)))
    };
    if let Err(error) = case.until(&format!("/readyz to say {words:?}"), seconds(20), says).await {
        return Err(error.context(format!("it says {:?}", host.probe("/readyz").await)));
    }
    let alive = async || Ok(host.probe("/healthz").await?.0 == 200 && host.probe("/readyz").await?.0 == 503);
    case.throughout("it is alive and not ready", seconds(3), alive).await?;
    let lines = host.log_lines(&[&["WARN", "databases.zalando.org"], words].concat());
    ensure!((1..=3).contains(&lines.len()), "{} lines say {words:?}, in\n{}", lines.len(), host.log());
    let began = Instant::now();
    ensure!(host.stop().await?.success() && began.elapsed() < seconds(2), "it took {:?}", began.elapsed());
    Ok(())
}

pub(crate) async fn a_missing_server_is_named(case: Case) -> Outcome {
    let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let host = case.host().server(&format!("https://{free}")).spawn().await?;
    waits_and_says(&case, host, &[&free.to_string(), "refused"]).await
}

pub(crate) async fn a_wrong_ca_is_named(case: Case) -> Outcome {
    let other = case.proxy().await?;
    let host = case.host().ca(&other.ca_pem()).spawn().await?;
    waits_and_says(&case, host, &[&case.cluster.server, "certificate"]).await
}

pub(crate) async fn a_token_that_is_not_valid_any_more_is_named(case: Case) -> Outcome {
    let host = case.host().token("not.a.token").spawn().await?;
    waits_and_says(&case, host, &["Unauthorized", "401"]).await?;
    // A good one, whose account is deleted under it.
    case.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: gone}}").await?;
    let token = case.cluster.token(&case.namespace, "gone", 600).await?;
    case.delete(Kind::namespaced("v1", "ServiceAccount", "serviceaccounts"), "gone").await?;
    let host = case.host().token(&token).spawn().await?;
    waits_and_says(&case, host, &["Unauthorized", "401"]).await
}

/// Flags and environment, then exit code and words.
type Row<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], i32, &'a [&'a str]);

pub(crate) async fn what_it_cannot_start_with_is_named_at_its_end(case: Case) -> Outcome {
    let dir = &case.dir;
    std::fs::write(dir.join("garbage"), "\u{1}: [")?;
    std::fs::write(dir.join("empty"), "{apiVersion: v1, kind: Config}")?;
    std::fs::write(
        dir.join("no-such-cluster"),
        "{current-context: x, contexts: [{name: x, context: {cluster: lost, user: u}}], users: [{name: u}]}",
    )?;
    std::fs::create_dir_all(dir.join("no-plugins"))?;
    let config = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let held = TcpListener::bind("127.0.0.1:0")?;
    let taken = held.local_addr()?.to_string();
    let nowhere = config("nowhere");
    let [missing, garbage, empty, lost, folder] =
        [nowhere.as_str(), "garbage", "empty", "no-such-cluster", "no-plugins"].map(config);
    #[rustfmt::skip]
    let rows: [Row<'_>; 11] = [
        (&[], &[("KUBECONFIG", &missing)], 1, &["kubeconfig", &missing]),
        (&[], &[("KUBECONFIG", &garbage)], 1, &["kubeconfig", &garbage]),
        (&[], &[("KUBECONFIG", &empty)], 1, &["kubeconfig", &empty]),
        (&[], &[("KUBECONFIG", &lost)], 1, &["kubeconfig", "lost"]),
        (&["--context", "other"], &[("KUBECONFIG", &lost)], 1, &["context", "other"]),
        (&[], &[], 1, &["no cluster to talk to"]),
        (&["--probe-address", &taken], &[], 1, &[&taken, "in use"]),
        (&["--plugins", &nowhere], &[], 1, &[&nowhere]),
        (&["--plugins", &folder], &[], 1, &[&folder]),
        (&["--no-such-flag"], &[], 2, &["--no-such-flag"]),
        (&[], &[("WATCH_NAMESPACE", "a,B_")], 2, &["B_"]),
    ];
    for (flags, environment, code, words) in rows {
        let Output { status, stderr, .. } = ends(flags, environment, dir)?;
        let said = String::from_utf8_lossy(&stderr);
        ensure!(status.code() == Some(code), "{flags:?} {environment:?} ends with {status}: {said}");
        ensure!(words.iter().all(|word| said.contains(word)), "{flags:?} {environment:?}: no {words:?} in {said}");
        ensure!(!said.contains("panicked"), "{said}");
    }
    drop(held);
    Ok(())
}

/// `keelson run` in an environment of these variables only, until it ends.
fn ends(flags: &[&str], environment: &[(&str, &str)], home: &Path) -> anyhow::Result<Output> {
    let mut command = Command::new(binary());
    command.arg("run");
    for (flag, value) in
        [("--plugins", plugins().to_string_lossy().into_owned()), ("--probe-address", "127.0.0.1:0".to_owned())]
    {
        if !flags.contains(&flag) {
            command.args([flag, &value]);
        }
    }
    command.args(flags).env_clear().env("HOME", home).envs(environment.iter().copied());
    Ok(command.stdin(Stdio::null()).output()?)
}

pub(crate) async fn a_signal_ends_it_at_once(case: Case) -> Outcome {
    const AT_ONCE: Duration = seconds(2);
    let ends = async |host: &mut Host, signal: &str, when: &str| {
        let began = Instant::now();
        host.signal(signal)?;
        let status = host.ended(seconds(10)).await?;
        ensure!(status.success(), "{when}: it ends with {status}\n{}", host.log());
        ensure!(began.elapsed() < AT_ONCE, "{when}: it took {:?}", began.elapsed());
        Ok(())
    };
    let proxy = case.proxy().await?;
    let mut idle = case.host().through(&proxy).start().await?;
    ends(&mut idle, "TERM", "idle").await?;
    let mut again = case.host().through(&proxy).start().await?;
    ends(&mut again, "INT", "idle").await?;

    let mut busy = case.host().through(&proxy).start().await?;
    for i in 0..20 {
        case.apply_database(&format!("d{i}"), if i % 2 == 0 { "mongo" } else { "mysql" }).await?;
    }
    ends(&mut busy, "TERM", "at work").await?;

    let mut waiting = case.host().through(&proxy).start().await?;
    proxy.silence();
    case.delete(POD, "d0").await.ok(); // work that ends in a call without an answer, where there is one already
    ends(&mut waiting, "TERM", "in a call without an answer").await?;
    let mut starting = case.host().through(&proxy).spawn().await?;
    case.until("its probes", seconds(10), async || Ok(starting.probe("/healthz").await.is_ok())).await?;
    ends(&mut starting, "TERM", "at its start").await?;

    // Whatever was cut short, the next host completes.
    proxy.speak();
    let _host = case.host().through(&proxy).start().await?;
    let wait = ["-n", &case.namespace, "wait", "--for=condition=Ready", "databases", "--all", "--timeout=60s"];
    case.cluster.kubectl(&wait).await.map(drop)
}
