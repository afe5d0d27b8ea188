//! A real registry (distribution), started for one test, and what people push and sign with: oras, cosign, wkg.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::cluster::{bash, blocking};
use crate::{Case, Outcome, paths};

/// User `keelson` with the password `a`, then with `abc`: bcrypt.
const PASSWORD_A: &str = "keelson:$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe\n";
const PASSWORD_ABC: &str = "keelson:$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i\n";

/// How a registry is started.
#[derive(Clone, Copy, Default)]
pub struct RegistryOptions {
    pub password: bool,
    pub tls: bool,
}

/// A running registry; dropped, it is killed.
pub struct Registry {
    child: Child,
    options: RegistryOptions,
    dir: PathBuf,
    programs: PathBuf,
    pid_file: PathBuf,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// PEM, with TLS.
    pub ca_pem: String,
}

impl Registry {
    pub async fn start(case: &Case, options: RegistryOptions) -> anyhow::Result<Self> {
        let programs = blocking(|| bash("tests/registry/build.sh")).await?;
        let dir = case.dir.join("registry");
        std::fs::create_dir_all(&dir)?;
        let port = blocking(|| bash("me=tests; . tests/control-plane/lib.sh; free_port")).await?;
        let address = format!("127.0.0.1:{}", port.trim());
        let mut ca_pem = String::new();
        if options.tls {
            let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
            ca_pem = pem("CERTIFICATE", made.cert.der());
            std::fs::write(dir.join("tls.crt"), &ca_pem)?;
            std::fs::write(dir.join("tls.key"), pem("PRIVATE KEY", &made.signing_key.serialize_der()))?;
            std::fs::write(dir.join("ca.crt"), &ca_pem)?;
        }
        let programs = PathBuf::from(programs.trim());
        let child = Self::spawn(&programs, &dir, &address, options)?;
        let pid_file = case.cluster.adopt(child.id())?;
        let registry = Self { child, options, dir, programs, pid_file, address, ca_pem };
        registry.ready().await?;
        Ok(registry)
    }

    fn spawn(programs: &Path, dir: &Path, address: &str, options: RegistryOptions) -> anyhow::Result<Child> {
        let at = dir.display();
        let mut config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {at}/data}}, delete: {{enabled: true}}}}\n\
             http:\n  addr: {address}\n  secret: test\n"
        );
        if options.tls {
            config += &format!("  tls: {{certificate: {at}/tls.crt, key: {at}/tls.key}}\n");
        }
        if options.password {
            let file = dir.join("htpasswd");
            if !file.exists() {
                std::fs::write(&file, PASSWORD_A)?;
            }
            config += &format!("auth: {{htpasswd: {{realm: test, path: {at}/htpasswd}}}}\n");
        }
        std::fs::write(dir.join("config.yml"), config)?;
        let log = std::fs::File::create(dir.join("registry.log"))?;
        Command::new(programs.join("registry"))
            .arg("serve")
            .arg(dir.join("config.yml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("start the registry: tests/registry/build.sh")
    }

    async fn ready(&self) -> Outcome {
        let deadline = Instant::now() + Duration::from_secs(20);
        let address: std::net::SocketAddr = self.address.parse()?;
        while tokio::net::TcpStream::connect(address).await.is_err() {
            ensure!(
                Instant::now() < deadline,
                "no registry: {}",
                std::fs::read_to_string(self.dir.join("registry.log"))?
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// From now on the password is `abc`.
    pub async fn rotate(&mut self) -> Outcome {
        self.stop();
        std::fs::write(self.dir.join("htpasswd"), PASSWORD_ABC)?;
        self.resume().await
    }

    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again at the same place, with what it has.
    pub async fn resume(&mut self) -> Outcome {
        self.child = Self::spawn(&self.programs, &self.dir, &self.address, self.options)?;
        self.ready().await
    }

    /// The name of an image here.
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// Runs oras, cosign or another program of the folder, in a folder of this registry; what it says is returned.
    pub async fn run(&self, program: &str, args: &[&str]) -> anyhow::Result<String> {
        let program = self.programs.join(program);
        self.run_program(&program, args).await
    }

    pub async fn run_program(&self, program: &Path, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.dir)
            .env("HOME", &self.dir)
            .env("DOCKER_CONFIG", &self.dir)
            .env("COSIGN_PASSWORD", "")
            .env("SSL_CERT_FILE", self.dir.join("ca.crt"))
            .stdin(Stdio::null());
        let shown = format!("{command:?}");
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ensure!(output.status.success(), "{shown}: {}{}", text(&output.stdout), text(&output.stderr));
        Ok(text(&output.stdout) + &text(&output.stderr))
    }

    /// A folder that all these programs work in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What `docker login` would have left: for programs, and for pull secrets.
    pub fn docker_config(&self, password: &str) -> anyhow::Result<String> {
        let auth = STANDARD.encode(format!("keelson:{password}"));
        let config = serde_json::json!({"auths": {self.address.clone(): {"auth": auth}}}).to_string();
        std::fs::write(self.dir.join("config.json"), &config)?;
        Ok(config)
    }

    /// Pushes with our own command; the image by its digest is returned.
    pub async fn push(&self, component: &Path, name: &str) -> anyhow::Result<String> {
        let (image, component) = (self.image(name), component.to_string_lossy().into_owned());
        let mut args = vec!["plugin", "push", &image, &component];
        let ca = self.dir.join("ca.crt").to_string_lossy().into_owned();
        if self.options.tls {
            args.extend(["--ca", &ca]);
        } else {
            args.push("--plain-http");
        }
        let said = self.run_program(&paths::binary(), &args).await?;
        Ok(said.lines().next().unwrap_or_default().to_owned())
    }

    /// A pair of keys, NAME.key and NAME.pub; the public one is returned.
    pub async fn key(&self, name: &str) -> anyhow::Result<String> {
        self.run("cosign", &["generate-key-pair", "--output-key-prefix", name]).await?;
        Ok(std::fs::read_to_string(self.dir.join(format!("{name}.pub")))?)
    }

    /// The same of an Ed25519 key, which cosign takes over and does not make itself.
    pub async fn ed25519_key(&self, name: &str) -> anyhow::Result<String> {
        // PKCS#8: what stands before the 32 bytes of the key is the same for each.
        let mut key =
            vec![0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
        let mut seed = [0_u8; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut seed)?;
        key.extend_from_slice(&seed);
        let file = format!("{name}.pem");
        std::fs::write(self.dir.join(&file), pem("PRIVATE KEY", &key))?;
        self.run("cosign", &["import-key-pair", "--key", &file, "--output-key-prefix", name]).await?;
        Ok(std::fs::read_to_string(self.dir.join(format!("{name}.pub")))?)
    }

    /// Signs with cosign: a bundle, or the older form under the tag `sha256-HEX.sig`.
    pub async fn sign(&self, image: &str, key: &str, bundle: bool) -> Outcome {
        let key = format!("{key}.key");
        let format = format!("--new-bundle-format={bundle}");
        let mut args = vec!["sign", "--key", &key, "--tlog-upload=false", "--use-signing-config=false", &format, "-y"];
        if !self.options.tls {
            args.push("--allow-http-registry");
        }
        args.push(image);
        self.run("cosign", &args).await.map(drop)
    }
}

fn pem(kind: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_file(&self.pid_file);
    }
}
