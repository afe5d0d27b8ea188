//! The control plane's programs as processes: which run, and how they are ended and started again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use http::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{Cluster, READY};
use crate::{Outcome, paths};

impl Cluster {
    /// Those of its programs that have ended by themselves: an API server that restarts takes some with it.
    pub fn ended(&self) -> Vec<&str> {
        let alive = |program: &str| {
            let file = self.run_dir().join(format!("{program}.pid"));
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let (pid, at) = text.trim().split_once(' ').unwrap_or_default();
            pid.parse().is_ok_and(|pid| born(pid).is_ok_and(|born| born == at))
        };
        self.commands.keys().map(String::as_str).filter(|program| !alive(program)).collect()
    }

    /// The process of one of the control plane's programs.
    pub fn pid(&self, program: &str) -> anyhow::Result<u32> {
        let file = self.run_dir().join(format!("{program}.pid"));
        let text = std::fs::read_to_string(&file).with_context(|| format!("no {program} in this control plane"))?;
        let pid = text.split_whitespace().next().context("an empty pid file")?;
        Ok(pid.parse()?)
    }

    /// What ends the control plane ends this process too, should the tests be killed. Returns the file that says so.
    pub fn adopt(&self, pid: u32) -> anyhow::Result<PathBuf> {
        let file = self.run_dir().join(format!("host-{pid}.pid"));
        std::fs::write(&file, format!("{pid} {}\n", born(pid)?))?;
        Ok(file)
    }

    /// Sends a signal to one of the control plane's programs (`apiserver`, `kwok`, …): STOP, CONT, KILL.
    pub fn signal(&self, program: &str, signal: &str) -> anyhow::Result<()> {
        let pid = self.pid(program)?.to_string();
        let status = Command::new("kill").args([&format!("-{signal}"), &pid]).status()?;
        anyhow::ensure!(status.success(), "{program} has ended");
        Ok(())
    }

    /// Starts a program of the control plane as it was, after killing it where it runs; of the API server it waits for the
    /// first answer.
    pub async fn restart(&self, program: &str) -> Outcome {
        let _ = self.signal(program, "KILL"); // it may have ended by itself
        self.start(program).await?;
        let deadline = Instant::now() + READY;
        let log = || std::fs::read_to_string(self.run_dir().join("apiserver.log")).unwrap_or_default();
        let last = || log().lines().rev().take(20).collect::<Vec<_>>().join("\n");
        let answers = async || {
            self.send(Method::GET, "/api/v1/namespaces/default", "application/json", &Value::Null).await.is_ok()
        };
        while program == "apiserver" && !answers().await {
            anyhow::ensure!(
                Instant::now() < deadline,
                "no answer {READY:?} after its restart; its log, last first:\n{}",
                last()
            );
            // The old one's port may be free only a moment after its end.
            if self.ended().contains(&program) {
                self.start(program).await?;
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Once the old one has ended.
    async fn start(&self, program: &str) -> Outcome {
        let command =
            self.commands.get(program).with_context(|| format!("no {program} in this control plane"))?.clone();
        let (run, name) = (self.run_dir().to_string_lossy().into_owned(), program.to_owned());
        let line = "me=tests run=$1 name=$2; shift 2; . tests/control-plane/lib.sh
            while alive \"$name\"; do sleep 0.02; done
            start \"$name\" \"$@\"";
        blocking(move || {
            let words = ["-c", line, "restart", &run, &name];
            output(Command::new("bash").args(words).args(command).stdin(Stdio::null()))
        })
        .await
        .map(drop)
    }
}

/// The start time of a process as /proc has it: with the pid it names one process for good.
fn born(pid: u32) -> anyhow::Result<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    after.split(' ').nth(19).map(str::to_owned).context("an odd /proc/PID/stat")
}

/// Runs tests/control-plane/cluster.sh.
pub(crate) fn script(verb: &str, dir: &Path, args: &[&str]) -> anyhow::Result<String> {
    let script = paths::repository().join("tests/control-plane/cluster.sh");
    output(Command::new(script).arg(verb).arg(dir).args(args))
}

pub(crate) fn bash(line: &str) -> anyhow::Result<String> {
    output(Command::new("bash").args(["-c", line]))
}

pub(super) fn output(command: &mut Command) -> anyhow::Result<String> {
    let done = command.current_dir(paths::repository()).output().with_context(|| format!("running {command:?}"))?;
    if !done.status.success() {
        bail!("{command:?}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

pub(crate) async fn blocking<T: Send + 'static>(
    f: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(f).await?
}
