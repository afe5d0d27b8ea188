//! A control plane for tests: started by tests/control-plane/cluster.sh, talked to as its administrator.
//!
//! `up` gives a cluster that is ready, with what `Options` says installed. It ends when it is dropped, and (by the
//! script's `--while`) when this process has gone in any other way.

mod programs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::Stream;
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::programs::output;
pub(crate) use self::programs::script;
pub(crate) use self::programs::{bash, blocking};
use crate::audit::Calls;
use crate::object::{Kind, NAMESPACE, Object, POD};
use crate::paths;

pub struct Cluster {
    pub client: kube::Client,
    /// The API server, `https://127.0.0.1:PORT`.
    pub server: String,
    dir: PathBuf,
    kubectl: PathBuf,
    /// How each program was started.
    commands: BTreeMap<String, Vec<String>>,
}

/// How a control plane is started, and what is installed in it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Simulated nodes, on which Pods run at once.
    pub kwok: bool,
    pub scheduler: bool,
    /// More flags for kube-apiserver.
    pub api_flags: &'static [&'static str],
    pub install: Install,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Install {
    /// The host's rights and the plugins' CRD and rights, as shipped.
    All,
    /// All but the plugins' CRD.
    NoCrd,
    Nothing,
}

/// What a watch tells, as it comes.
pub type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<Value>, kube::Error>> + Send>>;

/// Marks the namespaces of tests: the mutating policy is bound to them.
pub(crate) const CASE_LABEL: &str = "keelson.test/case";
const PROGRAMS: [&str; 5] = ["etcd", "apiserver", "controller-manager", "scheduler", "kwok"];
const READY: Duration = Duration::from_secs(30);

impl Default for Options {
    fn default() -> Self {
        Self { kwok: true, scheduler: true, api_flags: &[], install: Install::All }
    }
}

impl Install {
    fn bundles(self) -> &'static [&'static str] {
        match self {
            Self::All | Self::NoCrd => &["deploy/base", "plugins"],
            Self::Nothing => &[],
        }
    }
}

// === impl Cluster: its life ===

impl Cluster {
    pub async fn up(name: &str, options: Options) -> anyhow::Result<Self> {
        let dir = paths::state(name)?;
        let me = std::process::id().to_string();
        let mut args = vec!["--while".to_owned(), me];
        args.extend((!options.kwok).then(|| "--no-kwok".to_owned()));
        args.extend((!options.scheduler).then(|| "--no-scheduler".to_owned()));
        // Before the garbage collector starts: it looks for new kinds only every half minute.
        for bundle in options.install.bundles() {
            args.extend(["--install".to_owned(), (*bundle).to_owned()]);
        }
        args.extend(options.api_flags.iter().flat_map(|flag| ["--api-flag".to_owned(), (*flag).to_owned()]));
        let (at, started) = (dir.clone(), dir.clone());
        let config = blocking(move || {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            script("up", &at, &args)
        })
        .await?;
        let kubectl = blocking(|| bash(". tests/control-plane/lib.sh; program kubectl")).await?;
        let config = Kubeconfig::read_from(config.trim())?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = kube::Client::try_from(config)?;
        let kubectl = PathBuf::from(kubectl.trim());
        let mut cluster = Self { client, server, dir: started, kubectl, commands: BTreeMap::new() };
        for program in PROGRAMS {
            let Ok(pid) = cluster.pid(program) else { continue };
            let command = std::fs::read(format!("/proc/{pid}/cmdline"))?;
            let args = command.split(|byte| *byte == 0).filter(|arg| !arg.is_empty());
            let args = args.map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
            cluster.commands.insert(program.to_owned(), args);
        }
        cluster.install(options.install).await?;
        Ok(cluster)
    }

    async fn install(&self, what: Install) -> anyhow::Result<()> {
        self.policy().await?;
        if what != Install::Nothing {
            self.kubectl(&["apply", "-f", "deploy/overlays/plugins-cluster/access.yaml"]).await?;
        }
        if what == Install::NoCrd {
            self.kubectl(&["delete", "crd/databases.zalando.org"]).await?;
        }
        Ok(())
    }

    /// The policy over all Pods of test namespaces, and the proof that it is in force.
    async fn policy(&self) -> anyhow::Result<()> {
        self.apply("", include_str!("policy.yaml")).await?;
        let name = "policy-probe";
        self.namespace(name, &json!({CASE_LABEL: name})).await?;
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
            "spec": {"containers": [{"name": "c", "image": "c"}]}});
        let path = format!("{}?dryRun=All", POD.path(name, ""));
        let deadline = Instant::now() + READY;
        loop {
            let made = self.send(Method::POST, &path, "application/json", &pod).await?.map(Object);
            if made.is_some_and(|pod| pod.annotation("keelson.test/policy").is_some()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the mutating admission policy is not in force after {READY:?}");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// A namespace that is ready for Pods: its default ServiceAccount is there.
    pub async fn namespace(&self, name: &str, labels: &Value) -> anyhow::Result<()> {
        self.create(NAMESPACE, "", &json!({"metadata": {"name": name, "labels": labels}})).await?;
        const ACCOUNT: Kind = Kind::namespaced("v1", "ServiceAccount", "serviceaccounts");
        let deadline = Instant::now() + READY;
        while self.get(ACCOUNT, name, "default").await?.is_none() {
            if Instant::now() > deadline {
                bail!("namespace {name} has no default ServiceAccount after {READY:?}");
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// The shipped kubectl as administrator, in the repository's folder: its standard output.
    /// The folder of the control plane's programs.
    pub fn programs(&self) -> &Path {
        self.kubectl.parent().unwrap_or(Path::new("."))
    }

    pub async fn kubectl(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(self.run_dir().join("kubeconfig"));
        command.arg("--cache-dir").arg(self.run_dir().join("cache")).args(args).env("KUBERC", "off");
        blocking(move || output(&mut command)).await
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.dir.join("run")
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.run_dir().join("ca.crt")
    }

    /// Every request that this control plane has answered so far.
    pub fn calls(&self) -> anyhow::Result<Calls> {
        Ok(Calls::parse(&std::fs::read_to_string(self.run_dir().join("audit.log"))?))
    }

    /// A KUBECONFIG for a bearer token.
    pub fn kubeconfig(&self, token: &str) -> anyhow::Result<String> {
        Ok(kubeconfig(&self.server, &std::fs::read(self.ca())?, token).to_string())
    }

    /// A token of a ServiceAccount, for an hour or as long as asked.
    pub async fn token(&self, namespace: &str, account: &str, seconds: u32) -> anyhow::Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let wish = json!({"spec": {"expirationSeconds": seconds}});
        let made = self.send(Method::POST, &path, "application/json", &wish).await?.map(Object);
        made.map(|token| token.text("/status/token").to_owned())
            .with_context(|| format!("no ServiceAccount {account} in {namespace}"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = script("down", &self.dir, &[]) {
            eprintln!("ending the control plane in {}: {error:#}", self.dir.display());
        }
    }
}

// === impl Cluster: objects, as the administrator ===

impl Cluster {
    pub async fn get(&self, kind: Kind, namespace: &str, name: &str) -> anyhow::Result<Option<Object>> {
        let answer = self.send(Method::GET, &kind.path(namespace, name), "application/json", &Value::Null).await?;
        Ok(answer.map(Object))
    }

    pub async fn list(&self, kind: Kind, namespace: &str) -> anyhow::Result<Vec<Object>> {
        let answer = self.send(Method::GET, &kind.path(namespace, ""), "application/json", &Value::Null).await?;
        let items = answer.and_then(|mut list| list.get_mut("items").map(Value::take));
        Ok(serde_json::from_value::<Vec<Value>>(items.unwrap_or(json!([])))?.into_iter().map(Object).collect())
    }

    pub async fn create(&self, kind: Kind, namespace: &str, object: &Value) -> anyhow::Result<Object> {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.entry("apiVersion").or_insert(json!(kind.api_version));
            map.entry("kind").or_insert(json!(kind.kind));
        }
        let made = self.send(Method::POST, &kind.path(namespace, ""), "application/json", &object).await?;
        made.map(Object).with_context(|| format!("the API does not serve {kind} in {namespace}"))
    }

    /// A server-side apply of each document, as the manager `test`; the last object is returned.
    pub async fn apply(&self, namespace: &str, yaml: &str) -> anyhow::Result<Object> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).context("reading the YAML of a test")?;
        let mut last = None;
        for document in documents.into_iter().filter(|d| !d.is_null()) {
            let path = format!("{}?fieldManager=test&force=true", path_of(&document, namespace));
            let made = self.send(Method::PATCH, &path, "application/apply-patch+yaml", &document).await?;
            last = Some(Object(made.with_context(|| format!("the API does not serve {path}"))?));
        }
        last.context("no document to apply")
    }

    /// A merge patch (null removes); `name` may end in a subresource, such as `a/status`.
    pub async fn patch(&self, kind: Kind, namespace: &str, name: &str, patch: &Value) -> anyhow::Result<Object> {
        self.patch_as("application/merge-patch+json", kind, namespace, name, patch).await
    }

    /// A strategic merge patch, as `kubectl edit` sends it.
    pub async fn edit(&self, kind: Kind, namespace: &str, name: &str, patch: &Value) -> anyhow::Result<Object> {
        self.patch_as("application/strategic-merge-patch+json", kind, namespace, name, patch).await
    }

    async fn patch_as(
        &self,
        content: &str,
        kind: Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> anyhow::Result<Object> {
        let path = format!("{}?fieldManager=test", kind.path(namespace, name));
        let made = self.send(Method::PATCH, &path, content, patch).await?;
        made.map(Object).with_context(|| format!("no {kind} {name} to patch"))
    }

    /// Deletes with a propagation policy: Background, Foreground, Orphan. Whether it was there.
    pub async fn delete(&self, kind: Kind, namespace: &str, name: &str, propagation: &str) -> anyhow::Result<bool> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation});
        let answer = self.send(Method::DELETE, &kind.path(namespace, name), "application/json", &options).await?;
        Ok(answer.is_some())
    }

    /// The events of a watch, from a path with its query.
    pub async fn watch(&self, path: &str) -> anyhow::Result<Events> {
        watch(&self.client, path).await
    }

    /// One request; `None` for a 404.
    pub async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> anyhow::Result<Option<Value>> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        let request = Request::builder().method(&method).uri(path).header("content-type", content).body(body)?;
        match self.client.request::<Value>(request).await {
            Ok(value) => Ok(Some(value)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).with_context(|| format!("{method} {path}")),
        }
    }
}

/// The events of a watch, by any client.
pub async fn watch(client: &kube::Client, path: &str) -> anyhow::Result<Events> {
    Ok(Box::pin(client.request_events::<Value>(Request::get(path).body(Vec::new())?).await?))
}

/// As a Pod has it: where the host itself is.
const HOST_NAMESPACE: &str = "keelson-system";

/// A KUBECONFIG of one server, its certificate authority (PEM) and a bearer token.
pub(crate) fn kubeconfig(server: &str, ca_pem: &[u8], token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster":
            {"server": server, "certificate-authority-data": STANDARD.encode(ca_pem)}}],
        "users": [{"name": "host", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "host", "namespace": HOST_NAMESPACE}}],
    })
}

/// The path of a document: plurals and scopes of the kinds that tests use.
fn path_of(document: &Value, namespace: &str) -> String {
    let object = Object(document.clone());
    let (api, kind) = (object.text("/apiVersion"), object.text("/kind"));
    let lower = kind.to_lowercase();
    let plural = match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if lower.ends_with('s') => format!("{lower}es"),
        None => format!("{lower}s"),
    };
    let wide = matches!(
        kind,
        "Namespace" | "Node" | "PersistentVolume" | "StorageClass" | "CustomResourceDefinition" | "PriorityClass"
    ) || kind.starts_with("Cluster")
        || kind.contains("Admission");
    let namespace =
        if object.text("/metadata/namespace").is_empty() { namespace } else { object.text("/metadata/namespace") };
    let root = if api.contains('/') { "/apis" } else { "/api" };
    let scope = if wide { String::new() } else { format!("/namespaces/{namespace}") };
    format!("{root}/{api}{scope}/{plural}/{}", object.name())
}
