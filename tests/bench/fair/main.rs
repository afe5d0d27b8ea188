//! `make bench`: what plugins cost each other. One that traps, loops or fills memory must not be noticed by who edits
//! another's objects; a swap fails no render; a hundred plugins in one host cost little each. On one control plane without scheduler and nodes.
//!
//! Flags: --rounds N (3; 0: none), --edits N (300 a round), --swap true|false, --plugins N (100; 0: none).
//! It is no test: it ends with 0 and a table, unless something did not work.

mod many;
#[allow(dead_code, reason = "as far as this bench wants it")]
#[path = "../process.rs"]
mod process;
mod share;
mod swap;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use keelson_tests::{Cluster, HOST_ACCOUNT, Install, Metrics, Options, binary, http_get, scraped, state, sweep};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::process::Process;

/// Longer than anything here takes where it works.
const PATIENCE: Duration = Duration::from_secs(600);
const TOKEN_SECONDS: u32 = 4 * 3600;
const NAMESPACE: &str = "fair";

struct Plan {
    rounds: usize,
    edits: usize,
    swap: bool,
    plugins: usize,
}

fn main() -> ExitCode {
    let done = plan().and_then(|plan| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(bench(&plan))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn plan() -> anyhow::Result<Plan> {
    let mut plan = Plan { rounds: 3, edits: 300, swap: true, plugins: 100 };
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench"); // cargo's own
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--rounds" => plan.rounds = value.parse()?,
            "--edits" => plan.edits = value.parse()?,
            "--swap" => plan.swap = value.parse()?,
            "--plugins" => plan.plugins = value.parse()?,
            _ => bail!("no such flag: {word} (there are --rounds, --edits, --swap, --plugins)"),
        }
    }
    Ok(plan)
}

async fn bench(plan: &Plan) -> anyhow::Result<()> {
    sweep()?;
    let options = Options { kwok: false, scheduler: false, api_flags: &[], install: Install::All };
    let cluster = Cluster::up("bench-fair", options).await?;
    cluster.namespace(NAMESPACE, &json!({})).await?;
    let token = cluster.token(HOST_ACCOUNT.0, HOST_ACCOUNT.1, TOKEN_SECONDS).await?;
    let setup = Setup { kubeconfig: cluster.kubeconfig(&token)?, cluster };
    eprintln!("bench: load average {}", process::load_average());
    let mut rows = Vec::new();
    if plan.rounds > 0 {
        rows.extend(share::run(&setup, plan.rounds, plan.edits).await?);
    }
    if plan.swap {
        rows.extend(swap::run(&setup).await?);
    }
    if plan.plugins > 1 {
        rows.extend(many::run(&setup, plan.plugins).await?);
    }
    println!("\n{:50}{:>11}{:>11}", "plugins beside each other", "measured", "bound");
    for Row { what, measured, bound } in rows {
        let verdict = if bound.is_some_and(|bound| measured > bound) { "  MISSED" } else { "" };
        let bound = bound.map_or_else(String::new, |bound| format!("<= {bound:.2}"));
        println!("{what:50}{measured:>11.2}{bound:>11}{verdict}");
    }
    Ok(())
}

/// One line of the table.
struct Row {
    what: String,
    measured: f64,
    bound: Option<f64>,
}

struct Setup {
    cluster: Cluster,
    kubeconfig: String,
}

impl Setup {
    /// Starts a host over a folder of plugins; also how long it took to be ready.
    async fn start(&self, folder: &Path, name: &str) -> anyhow::Result<(Process, Duration)> {
        ensure!(binary().exists(), "no host at {}: make build", binary().display());
        let dir = state("bench-fair-logs")?;
        let config = dir.join("kubeconfig");
        std::fs::write(&config, &self.kubeconfig)?;
        let mut command = Command::new(binary());
        command
            .args(["run", "--probe-address", "127.0.0.1:0", "--log-format", "json", "--plugins"])
            .arg(folder)
            // As the Deployment has it: a second start finds its code.
            .arg("--compile-cache")
            .arg(&dir)
            .env("KUBECONFIG", &config)
            .env_remove("WATCH_NAMESPACE");
        let begin = Instant::now();
        let mut process = Process::start(command, dir.join(format!("{name}.log")), &self.cluster)?;
        while !is_ready(&process).await? {
            process.alive()?;
            ensure!(begin.elapsed() < PATIENCE, "it is not ready: {}", process.last_words());
            sleep(Duration::from_millis(10)).await;
        }
        Ok((process, begin.elapsed()))
    }
}

async fn is_ready(process: &Process) -> anyhow::Result<bool> {
    let Some(address) = address(process)? else { return Ok(false) };
    Ok(http_get(&address, "/readyz").await?.0 == 200)
}

async fn metrics(process: &Process) -> anyhow::Result<Metrics> {
    let address = address(process)?.context("no line \"probes listen\"")?;
    Ok(scraped(http_get(&address, "/metrics").await?.1))
}

fn address(process: &Process) -> anyhow::Result<Option<String>> {
    let log = process.log();
    let Some(line) = log.lines().find(|line| line.contains("probes listen")) else { return Ok(None) };
    let line: Value = serde_json::from_str(line).context("a log line that is not JSON")?;
    let address = line.pointer("/fields/address").or_else(|| line.get("address")).and_then(Value::as_str);
    Ok(Some(address.context("no address in the line \"probes listen\"")?.to_owned()))
}
