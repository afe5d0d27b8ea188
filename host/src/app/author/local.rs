//! A control plane of its own on this machine, and a host in it, for `keelson dev
//! --host`: etcd, the API server and, where it is found, the controller-manager.
//!
//! All of it is in the plugin's folder under `.keelson/dev`, listens on loopback,
//! and ends with this program, however that ends.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use crate::limits::DEV_POLL;

/// Where tools that test against a control plane look for its programs.
const ASSETS: &str = "KUBEBUILDER_ASSETS";
/// Where `make demo` keeps what it has built.
const CACHE: &str = "KEELSON_CACHE";
/// Of a machine that is busy with a build.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ports that were free a moment ago may be taken meanwhile.
const TRIES: usize = 3;

pub(super) struct Local {
    dir: PathBuf,
    programs: PathBuf,
    running: Vec<(&'static str, Child)>,
}

impl Local {
    /// Until the API server is ready.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        let mut local = Self { dir: folder.join(".keelson").join("dev"), programs: programs()?, running: Vec::new() };
        for _ in 1..TRIES {
            if local.serve()? {
                return Ok(local);
            }
        }
        ensure!(local.serve()?, "no free ports for a control plane");
        Ok(local)
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    pub(super) fn kubectl_path(&self) -> PathBuf {
        self.programs.join("kubectl")
    }

    /// Where the host looks for plugins.
    pub(super) fn plugins(&self) -> PathBuf {
        self.dir.join("plugins")
    }

    /// Serves what is in the folder of plugins.
    pub(super) fn run_host(&mut self) -> anyhow::Result<()> {
        let mut host = Command::new(std::env::current_exe().context("which program is this?")?);
        host.args(["run", "--probe-address", "127.0.0.1:0", "--debug-address", "127.0.0.1:0", "--log-level"]);
        host.args(["warn,keelson::guest=info,keelson::app::plugins=info", "--plugins"]).arg(self.plugins());
        host.env("KUBECONFIG", self.kubeconfig()).env("WATCH_NAMESPACE", "default");
        self.spawn("host", host, Stdio::inherit())
    }

    /// Its output.
    pub(super) fn kubectl(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(self.kubectl_path());
        command.arg("--kubeconfig").arg(self.kubeconfig()).arg("--cache-dir").arg(self.dir.join("cache")).args(args);
        let Output { status, stdout, stderr } =
            command.env("KUBERC", "off").stdin(Stdio::null()).output().context("run kubectl")?;
        ensure!(status.success(), "kubectl {}: {}", args.join(" "), String::from_utf8_lossy(&stderr).trim_end());
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    /// The first that has ended, with its last words; none should.
    pub(super) fn ended(&mut self) -> Option<String> {
        let dir = self.dir.clone();
        self.running.iter_mut().find_map(|(name, child)| {
            let status = child.try_wait().ok().flatten()?;
            let log = fs::read_to_string(dir.join(format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(5).collect();
            Some(format!("{name} has ended ({status}) {}", lines.into_iter().rev().collect::<Vec<_>>().join("; ")))
        })
    }

    /// `false` where a port was taken meanwhile.
    fn serve(&mut self) -> anyhow::Result<bool> {
        self.stop();
        let Self { dir, programs, .. } = self;
        let (dir, programs) = (dir.clone(), programs.clone());
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("empty {}", dir.display()))?;
        }
        let pki = dir.join("pki");
        for folder in [&pki, &self.plugins()] {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        let [client, peer, port] = free_ports()?;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let token = format!("{:032x}", u128::from(getrandom::u64()?) << 64 | u128::from(getrandom::u64()?));
        fs::write(dir.join("tokens.csv"), format!("{token},admin,admin,system:masters\n"))?;
        let mut etcd = Command::new(programs.join("etcd"));
        etcd.arg("--data-dir").arg(dir.join("etcd")).args(["--unsafe-no-fsync", "--log-level", "warn"]);
        etcd.args(["--listen-client-urls", &url(client), "--advertise-client-urls", &url(client)]);
        etcd.args(["--listen-peer-urls", &url(peer), "--initial-advertise-peer-urls", &url(peer)]);
        etcd.args(["--initial-cluster", &format!("default={}", url(peer))]);
        self.spawn("etcd", etcd, log(&dir, "etcd")?)?;
        // It makes its own certificate at the first start; the key of that signs ServiceAccount tokens too.
        let key = pki.join("apiserver.key");
        let mut server = Command::new(programs.join("kube-apiserver"));
        server.args([
            "--etcd-servers",
            &url(client),
            "--bind-address",
            "127.0.0.1",
            "--advertise-address",
            "127.0.0.1",
        ]);
        server.args(["--secure-port", &port.to_string(), "--endpoint-reconciler-type", "none", "--cert-dir"]).arg(&pki);
        server.arg("--service-account-key-file").arg(&key).arg("--service-account-signing-key-file").arg(&key);
        server.args(["--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range"]);
        server.args(["10.96.0.0/16", "--authorization-mode", "RBAC", "--token-auth-file"]).arg(dir.join("tokens.csv"));
        // No controllers may be there to make a default one.
        server.args(["--disable-admission-plugins", "ServiceAccount"]);
        self.spawn("apiserver", server, log(&dir, "apiserver")?)?;
        if !self.until_ready(&pki.join("apiserver.crt"), port, &token)? {
            return Ok(false);
        }
        let manager = programs.join("kube-controller-manager");
        if manager.is_file() {
            let mut manager = Command::new(manager);
            manager.arg("--kubeconfig").arg(self.kubeconfig()).args(["--leader-elect=false", "--secure-port", "0"]);
            self.spawn("controller-manager", manager, log(&dir, "controller-manager")?)?;
        }
        Ok(true)
    }

    fn until_ready(&mut self, certificate: &Path, port: u16, token: &str) -> anyhow::Result<bool> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(words) = self.ended() {
                ensure!(words.contains("address already in use"), "{words}");
                return Ok(false);
            }
            let made = fs::read(certificate).ok().filter(|made| !made.is_empty());
            if let Some(made) = made {
                let cluster = json!({"server": format!("https://127.0.0.1:{port}"),
                    "certificate-authority-data": BASE64.encode(made)});
                let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "local",
                    "clusters": [{"name": "local", "cluster": cluster}], "users": [{"name": "admin", "user": {"token": token}}],
                    "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}]});
                fs::write(self.kubeconfig(), config.to_string())?;
                if self.kubectl(&["get", "--raw", "/readyz"]).is_ok() {
                    return Ok(true);
                }
            }
            ensure!(Instant::now() < deadline, "the API server is not ready after {} s", PATIENCE.as_secs());
            std::thread::sleep(DEV_POLL);
        }
    }

    #[allow(unsafe_code)]
    fn spawn(&mut self, name: &'static str, mut command: Command, output: Stdio) -> anyhow::Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        // SAFETY: one system call between fork and exec, which takes numbers only. The kernel ends the child when the
        // thread that made it ends, which is this program's first.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let shown = command.get_program().display().to_string();
        self.running.push((name, command.spawn().with_context(|| format!("start {shown}"))?));
        Ok(())
    }

    fn stop(&mut self) {
        for (_, child) in self.running.iter_mut().rev() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.running.clear();
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stop();
    }
}

fn log(dir: &Path, name: &str) -> anyhow::Result<Stdio> {
    let file = dir.join(format!("{name}.log"));
    Ok(fs::File::create(&file).with_context(|| format!("make {}", file.display()))?.into())
}

fn free_ports() -> anyhow::Result<[u16; 3]> {
    // All are held until all are chosen, so that they differ.
    let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").and_then(|it| Ok((it.local_addr()?.port(), it))));
    let mut ports = [0; 3];
    for (port, held) in ports.iter_mut().zip(&held) {
        *port = held.as_ref().map_err(|error| anyhow::anyhow!("no free port: {error}"))?.0;
    }
    Ok(ports)
}

/// The folder that holds them all.
fn programs() -> anyhow::Result<PathBuf> {
    let whole =
        |folder: &PathBuf| ["etcd", "kube-apiserver", "kubectl"].iter().all(|program| folder.join(program).is_file());
    if let Some(folder) = std::env::var_os(ASSETS).map(PathBuf::from) {
        ensure!(whole(&folder), "{ASSETS}: {} lacks one of etcd, kube-apiserver, kubectl", folder.display());
        return Ok(folder);
    }
    let cache = std::env::var_os(CACHE).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache").join("keelson"));
    let built = cache.or_else(home).map(|cache| cache.join("control-plane"));
    let folders = built.and_then(|built| fs::read_dir(built).ok()).into_iter().flatten().flatten();
    // The one that was built last.
    let newest = folders
        .map(|entry| entry.path())
        .filter(whole)
        .max_by_key(|folder| fs::metadata(folder).and_then(|metadata| metadata.modified()).ok());
    match newest {
        Some(folder) => Ok(folder),
        None => bail!(
            "there are no etcd, kube-apiserver and kubectl: name their folder by {ASSETS} (`setup-envtest use -p path` gives \
             one), or run `make demo` of Keelson once, which builds them"
        ),
    }
}
