//! A process under test, what it costs, and whether the machine is otherwise calm. All from /proc.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use keelson_tests::{Cluster, Outcome};
use tokio::time::{Instant, sleep};

use crate::PATIENCE;

/// Dropped, it is killed.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    pid_file: PathBuf,
}

/// Ticks of CPU time so far: a hundredth of a second each on every Linux that Rust knows.
#[derive(Clone, Copy)]
pub(crate) struct Ticks(u64);

/// Of the API server and what it stands on.
const SERVER: [&str; 2] = ["apiserver", "etcd"];
const CONTROL_PLANE: [&str; 3] = ["apiserver", "etcd", "controller-manager"];

// === impl Process ===

impl Process {
    /// Its output goes to a file; it ends with the control plane at the latest.
    pub(crate) fn start(mut command: Command, log: PathBuf, cluster: &Cluster) -> anyhow::Result<Self> {
        let output = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let pid_file = cluster.adopt(child.id())?;
        Ok(Self { child, log, pid_file })
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn alive(&mut self) -> Outcome {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "it has ended; its last words:\n{}", self.last_words());
        Ok(())
    }

    pub(crate) fn cpu(&self) -> anyhow::Result<Ticks> {
        ticks(self.child.id())
    }

    /// Resident memory in MiB: now, and at its highest.
    pub(crate) fn resident(&self) -> anyhow::Result<(f64, f64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let mib = |name: &str| -> anyhow::Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
            Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
        };
        Ok((mib("VmRSS:")?, mib("VmHWM:")?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended already
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.pid_file);
    }
}

// === impl Ticks ===

impl Ticks {
    pub(crate) fn milliseconds_since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 * 10.0
    }
}

fn ticks(pid: u32) -> anyhow::Result<Ticks> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    let mut used = after.split(' ').skip(11).take(2).map(str::parse::<u64>);
    let (user, system) = used.next().zip(used.next()).context("an odd /proc/PID/stat")?;
    Ok(Ticks(user? + system?))
}

/// The API server's and etcd's.
pub(crate) fn server_cpu(cluster: &Cluster) -> anyhow::Result<Ticks> {
    sum(cluster, &SERVER)
}

/// What the bench and all that it started have used: contender, control plane and this process.
pub(crate) fn own_cpu(cluster: &Cluster, process: &Process) -> anyhow::Result<Ticks> {
    Ok(Ticks(sum(cluster, &CONTROL_PLANE)?.0 + process.cpu()?.0 + ticks(std::process::id())?.0))
}

fn sum(cluster: &Cluster, programs: &[&str]) -> anyhow::Result<Ticks> {
    let each = programs.iter().map(|program| Ok(ticks(cluster.pid(program)?)?.0));
    Ok(Ticks(each.sum::<anyhow::Result<u64>>()?))
}

/// The whole machine's, idle time left out, and what all its cores could have given.
pub(crate) fn machine_cpu() -> anyhow::Result<(Ticks, Ticks)> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("an empty /proc/stat")?;
    let numbers = line.split_whitespace().skip(1).map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guest times are in user already.
    let all: u64 = numbers.iter().take(8).sum();
    let idle: u64 = numbers.iter().skip(3).take(2).sum();
    Ok((Ticks(all - idle), Ticks(all)))
}

pub(crate) fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Waits until the control plane has nothing left to do of what went before, and for a while for others to leave the
/// machine alone.
pub(crate) async fn calm(cluster: &Cluster) -> Outcome {
    const WINDOW: Duration = Duration::from_secs(1);
    const BUSY: f64 = 150.0; // milliseconds in a window
    const OTHERS: Duration = Duration::from_secs(30);
    let start = Instant::now();
    loop {
        let (own, (busy, _)) = (sum(cluster, &CONTROL_PLANE)?, machine_cpu()?);
        sleep(WINDOW).await;
        let own = sum(cluster, &CONTROL_PLANE)?.milliseconds_since(own);
        let others = machine_cpu()?.0.milliseconds_since(busy) - own;
        if own < BUSY && (others < BUSY || start.elapsed() > OTHERS) {
            return Ok(());
        }
        ensure!(start.elapsed() < PATIENCE, "the control plane is still busy after {PATIENCE:?}");
    }
}
