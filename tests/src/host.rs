//! One host process of a test: the shipped ServiceAccount, limited to the test's namespace, its log in a file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::case::Case;
use crate::cluster::kubeconfig;
use crate::metrics::{self, Metrics};
use crate::proxy::FaultProxy;
use crate::{Outcome, paths};

/// The user that the shipped ServiceAccount is to the API server.
pub const HOST_USER: &str = "system:serviceaccount:keelson-system:keelson";
/// Its namespace and name.
pub const HOST_ACCOUNT: (&str, &str) = ("keelson-system", "keelson");
const STARTED: Duration = Duration::from_secs(30);

/// How a host is started. The default is what `deploy/` ships, but for one namespace.
#[derive(Clone)]
pub struct HostBuilder {
    case: Case,
    plugins: PathBuf,
    watched: String,
    account: (String, String),
    token: Option<String>,
    server: String,
    ca_pem: Vec<u8>,
    args: Vec<String>,
    clock: Option<Clock>,
}

/// Of a host that is built for it.
#[derive(Clone, Copy)]
struct Clock {
    /// How many seconds its wall clock is ahead.
    offset: i64,
    /// How much faster it waits.
    rate: u32,
    /// How many milliseconds it goes on after its lease is over.
    linger: u32,
}

/// A running host; dropped, it is killed.
pub struct Host {
    child: Child,
    builder: HostBuilder,
    log: PathBuf,
    pid_file: PathBuf,
}

// === impl HostBuilder ===

impl HostBuilder {
    pub(crate) fn new(case: &Case) -> Self {
        Self {
            case: case.clone(),
            plugins: paths::plugins(),
            watched: case.namespace.clone(),
            account: (HOST_ACCOUNT.0.to_owned(), HOST_ACCOUNT.1.to_owned()),
            token: None,
            server: case.cluster.server.clone(),
            ca_pem: std::fs::read(case.cluster.ca()).unwrap_or_default(),
            args: Vec::new(),
            clock: None,
        }
    }

    pub fn plugins(mut self, folder: &Path) -> Self {
        self.plugins = folder.to_owned();
        self
    }

    /// WATCH_NAMESPACE: empty for all, or names with commas.
    pub fn watch(mut self, namespaces: &str) -> Self {
        self.watched = namespaces.to_owned();
        self
    }

    /// Another ServiceAccount than the shipped one.
    pub fn account(mut self, namespace: &str, name: &str) -> Self {
        self.account = (namespace.to_owned(), name.to_owned());
        self
    }

    /// A token as it is, such as one that the API server will refuse.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Another address for the API server, such as one where nobody listens.
    pub fn server(mut self, url: &str) -> Self {
        self.server = url.to_owned();
        self
    }

    /// All traffic through the proxy.
    pub fn through(mut self, proxy: &FaultProxy) -> Self {
        self.server = proxy.url();
        self.ca_pem = proxy.ca_pem().into_bytes();
        self
    }

    /// Trusts only this certificate authority (PEM).
    pub fn ca(mut self, pem: &str) -> Self {
        self.ca_pem = pem.as_bytes().to_vec();
        self
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Another build of the host: its wall clock is ahead by so many seconds, and all that it waits for by itself (its
    /// back-offs, its resync) passes so many times faster, the wall clock too. Time-outs of calls stay as they are.
    pub fn clock(mut self, offset: i64, rate: u32) -> Self {
        self.clock = Some(Clock { offset, rate, linger: 0 });
        self
    }

    /// The same build with a right clock: it goes on for so long after it has lost its lease, as if its end took that time.
    pub fn lingers(mut self, linger: Duration) -> Self {
        let linger = u32::try_from(linger.as_millis()).unwrap_or(u32::MAX);
        self.clock = Some(Clock { offset: 0, rate: 1, linger });
        self
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Starts it and waits until /readyz says yes.
    pub async fn start(self) -> anyhow::Result<Host> {
        let mut host = self.spawn().await?;
        host.ready().await?;
        Ok(host)
    }

    /// Starts it.
    pub async fn spawn(self) -> anyhow::Result<Host> {
        let program = if self.clock.is_some() { paths::test_clock_binary() } else { paths::binary() };
        anyhow::ensure!(program.exists(), "no host at {}: make build test-clock", program.display());
        // Also for the shipped program, which must not hear of it.
        let Clock { offset, rate, linger } =
            self.clock.unwrap_or(Clock { offset: 86_400, rate: 1000, linger: 600_000 });
        let log = self.case.log_file();
        let config = log.with_extension("kubeconfig");
        std::fs::write(&config, self.kubeconfig().await?.to_string())?;
        let output = File::create(&log)?;
        let child = Command::new(&program)
            .arg("run")
            .arg("--plugins")
            .arg(&self.plugins)
            .args(["--probe-address", "127.0.0.1:0", "--debug-address", "127.0.0.1:0", "--log-format", "json"])
            .args(&self.args)
            .env("KUBECONFIG", &config)
            .env("WATCH_NAMESPACE", &self.watched)
            .env("KEELSON_TEST_CLOCK_OFFSET", (offset * 1000).to_string())
            .env("KEELSON_TEST_CLOCK_RATE", rate.to_string())
            .env("KEELSON_TEST_CLOCK_LINGER", linger.to_string())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let pid_file = self.case.cluster.adopt(child.id())?;
        Ok(Host { child, builder: self, log, pid_file })
    }

    async fn kubeconfig(&self) -> anyhow::Result<Value> {
        let token = match &self.token {
            Some(token) => token.clone(),
            None => self.case.cluster.token(&self.account.0, &self.account.1, 3600).await?,
        };
        Ok(kubeconfig(&self.server, &self.ca_pem, &token))
    }
}

// === impl Host ===

impl Host {
    /// Waits until /readyz answers 200.
    pub async fn ready(&mut self) -> Outcome {
        let deadline = Instant::now() + STARTED;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the host has ended ({status}); its log:\n{}", self.log());
            }
            let answer = self.probe("/readyz").await;
            match answer {
                Ok((200, _)) => return Ok(()),
                _ if Instant::now() < deadline => sleep(Duration::from_millis(50)).await,
                Ok((status, body)) => bail!("the host is not ready after {STARTED:?}: {status} {body}"),
                Err(error) => return Err(error.context(format!("the host does not answer after {STARTED:?}"))),
            }
        }
    }

    /// A probe's status and body: /healthz, /readyz.
    pub async fn probe(&self, path: &str) -> anyhow::Result<(u16, String)> {
        metrics::get(&self.address()?, path).await
    }

    pub async fn metrics(&self) -> anyhow::Result<Metrics> {
        let (status, body) = self.probe("/metrics").await?;
        anyhow::ensure!(status == 200, "/metrics answers {status}: {body}");
        Ok(metrics::parse(body))
    }

    /// Everything that it has written so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The log's lines that hold all these words.
    pub fn log_lines(&self, words: &[&str]) -> Vec<String> {
        self.log().lines().filter(|line| words.iter().all(|w| line.contains(w))).map(str::to_owned).collect()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in KiB.
    pub fn resident(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// STOP, CONT, TERM, …
    pub fn signal(&self, signal: &str) -> Outcome {
        let status = Command::new("kill").args([format!("-{signal}"), self.pid().to_string()]).status()?;
        anyhow::ensure!(status.success(), "the host has ended already");
        Ok(())
    }

    /// SIGTERM, and how it ended.
    pub async fn stop(&mut self) -> anyhow::Result<ExitStatus> {
        self.signal("TERM")?;
        self.ended(Duration::from_secs(10)).await
    }

    /// By itself, or killed.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits for its end.
    pub async fn ended(&mut self, patience: Duration) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            anyhow::ensure!(Instant::now() < deadline, "the host has not ended after {patience:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// SIGKILL: it gets no chance to clean up.
    pub fn kill(&mut self) -> Outcome {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Kills it, and starts another like it.
    pub async fn restart(mut self) -> anyhow::Result<Self> {
        self.kill()?;
        self.builder.clone().start().await
    }

    /// Where its probes listen, from its log.
    fn address(&self) -> anyhow::Result<String> {
        self.logged_address("probes listen")
    }

    /// Where `keelson debug` is answered.
    pub fn debug_address(&self) -> anyhow::Result<String> {
        self.logged_address("keelson debug is answered")
    }

    fn logged_address(&self, words: &str) -> anyhow::Result<String> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains(words)).with_context(|| format!("no line {words:?} yet"))?;
        let line: Value = serde_json::from_str(line).context("a log line that is not JSON")?;
        let address = line.pointer("/fields/address").or_else(|| line.get("address"));
        address.and_then(Value::as_str).map(str::to_owned).with_context(|| format!("the line {words:?} has no address"))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.kill(); // it may have ended already
        let _ = std::fs::remove_file(&self.pid_file);
    }
}
