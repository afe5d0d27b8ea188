//! Who is measured: the host as built, and the Go peers of tests/bench/peers.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use keelson_tests::{Cluster, binary, http_get, plugins, repository, state};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::PATIENCE;
use crate::process::Process;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    Host,
    Peer(Peer),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The floor of the host's own calls.
    Full,
    Runtime,
    /// The floor of three POSTs.
    Post,
    Apply,
    /// The floor of a repair.
    Repair,
}

/// What all contenders have in common: server, identity (the shipped ServiceAccount), workers.
pub(crate) struct Setup<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) peer: PathBuf,
    pub(crate) kubeconfig: String,
    pub(crate) workers: usize,
}

// === impl Contender ===

impl Contender {
    /// Those that serve Databases.
    pub(crate) fn all() -> Vec<Self> {
        let peers = [Peer::Full, Peer::Runtime, Peer::Post, Peer::Apply];
        std::iter::once(Self::Host).chain(peers.map(Self::Peer)).collect()
    }

    /// In flags, namespaces and to the peers' program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Peer(Peer::Full) => "full",
            Self::Peer(Peer::Runtime) => "runtime",
            Self::Peer(Peer::Post) => "post",
            Self::Peer(Peer::Apply) => "apply",
            Self::Peer(Peer::Repair) => "repair",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Host => "keelson",
            Self::Peer(Peer::Full) => "full floor: the host's calls, blindly",
            Self::Peer(Peer::Runtime) => "controller-runtime",
            Self::Peer(Peer::Post) => "floor: three POSTs",
            Self::Peer(Peer::Apply) => "floor: create-only applies",
            Self::Peer(Peer::Repair) => "floor: watch Pods and POST",
        }
    }

    /// Whether it makes an Event for each Database, and a Secret for every mysql.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::Host | Self::Peer(Peer::Full))
    }
}

// === impl Setup ===

impl Setup<'_> {
    /// Starts it, and waits until it watches.
    pub(crate) async fn start(&self, contender: Contender, namespace: &str) -> anyhow::Result<Process> {
        let dir = state("bench-logs")?;
        let config = dir.join(format!("{namespace}.kubeconfig"));
        std::fs::write(&config, &self.kubeconfig)?;
        ensure!(binary().exists(), "no host at {}: make build", binary().display());
        let mut command = match contender {
            Contender::Host => Command::new(binary()),
            Contender::Peer(_) => Command::new(&self.peer),
        };
        let workers = self.workers.to_string();
        match contender {
            Contender::Host => command
                .args([
                    "run",
                    "--probe-address",
                    "127.0.0.1:0",
                    "--debug-address",
                    "127.0.0.1:0",
                    "--log-format",
                    "json",
                    "--workers",
                    &workers,
                ])
                .arg("--plugins")
                .arg(plugins())
                // As the Deployment has it: a second start finds its code.
                .arg("--compile-cache")
                .arg(&dir),
            Contender::Peer(_) => command.args(["-workers", &workers, contender.name()]),
        };
        command.env("KUBECONFIG", &config).env_remove("WATCH_NAMESPACE");
        let mut process = Process::start(command, dir.join(format!("{namespace}.log")), self.cluster)?;
        let deadline = Instant::now() + PATIENCE;
        while !is_ready(contender, &process).await? {
            process.alive()?;
            ensure!(Instant::now() < deadline, "{} is not ready: {}", contender.title(), process.last_words());
            sleep(Duration::from_millis(50)).await;
        }
        Ok(process)
    }
}

async fn is_ready(contender: Contender, process: &Process) -> anyhow::Result<bool> {
    let log = process.log();
    if let Contender::Peer(_) = contender {
        return Ok(log.lines().any(|line| line == "ready"));
    }
    let Some(line) = log.lines().find(|line| line.contains("probes listen")) else { return Ok(false) };
    let line: Value = serde_json::from_str(line).context("a log line that is not JSON")?;
    let address = line.pointer("/fields/address").or_else(|| line.get("address")).and_then(Value::as_str);
    let (code, _) = http_get(address.context("no address in the line \"probes listen\"")?, "/readyz").await?;
    Ok(code == 200)
}

/// Builds the peers where they are not cached; the path of their program.
pub(crate) async fn build_peers() -> anyhow::Result<PathBuf> {
    let script = repository().join("tests/bench/peers/build.sh");
    let done = tokio::task::spawn_blocking(move || {
        Command::new(&script)
            .stderr(std::process::Stdio::inherit())
            .output()
            .with_context(|| format!("running {}", script.display()))
    });
    let done = done.await??;
    if !done.status.success() {
        bail!("the peers were not built");
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&done.stdout).trim()))
}
