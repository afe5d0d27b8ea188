//! One test's view: its namespace, its objects, its waits.
//!
//! Every wait has a deadline, and says on failure what it waited for, how long, and what it saw last.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::audit::Calls;
use crate::cluster::{CASE_LABEL, Cluster};
use crate::host::{HOST_ACCOUNT, HOST_USER, HostBuilder};
use crate::object::{CLAIM, DATABASE, EVENT, Kind, Object, POD, SECRET, SERVICE};
use crate::probe::{Probe, SCRIPT};
use crate::proxy::FaultProxy;
use crate::{Outcome, paths};

#[derive(Clone)]
pub struct Case {
    pub cluster: Arc<Cluster>,
    pub namespace: String,
    /// For the test's files; kept until the next run.
    pub dir: PathBuf,
    logs: Arc<Mutex<Vec<PathBuf>>>,
}

/// Every state of one object since the recording began, as a watch showed them.
pub struct Recording {
    seen: Arc<Mutex<Vec<Object>>>,
    task: tokio::task::JoinHandle<()>,
}

/// How long a wait goes on where the test names no time.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);
/// How much of a host's log is shown with a failed test.
const SHOWN_LINES: usize = 60;

// === impl Case: life ===

impl Case {
    pub(crate) async fn new(cluster: Arc<Cluster>, name: &str) -> anyhow::Result<Self> {
        let short: String = name.replace('_', "-").chars().take(50).collect();
        let namespace = short.trim_end_matches('-').to_owned();
        let dir = paths::state(&format!("logs/{namespace}"))?;
        cluster.namespace(&namespace, &json!({CASE_LABEL: "yes"})).await?;
        let case = Self { cluster, namespace, dir, logs: Arc::default() };
        case.apply(include_str!("limitrange.yaml")).await?;
        Ok(case)
    }

    /// Another namespace of the same test, with these labels.
    pub async fn beside(&self, suffix: &str, labels: &Value) -> anyhow::Result<Self> {
        let namespace = format!("{}-{suffix}", self.namespace);
        self.cluster.namespace(&namespace, labels).await?;
        Ok(Self { namespace, ..self.clone() })
    }

    /// A host for this namespace, not started yet.
    pub fn host(&self) -> HostBuilder {
        HostBuilder::new(self)
    }

    /// A proxy to the API server that can be told to fail.
    pub async fn proxy(&self) -> anyhow::Result<FaultProxy> {
        FaultProxy::start(&self.cluster.server, &self.cluster.ca()).await
    }

    /// A copy of the built plugins, for a test that changes or adds some.
    pub fn plugin_folder(&self) -> anyhow::Result<PathBuf> {
        let (from, to) = (paths::plugins(), self.dir.join("plugins"));
        std::fs::create_dir_all(&to)?;
        for file in std::fs::read_dir(&from).with_context(|| format!("no plugins in {}: make build", from.display()))? {
            let file = file?.path();
            std::fs::copy(&file, to.join(file.file_name().unwrap_or_default()))?;
        }
        Ok(to)
    }

    /// More rights for the shipped ServiceAccount in this namespace: rules of a Role, as a YAML list.
    pub async fn also_may(&self, rules: &str) -> Outcome {
        let (namespace, name) = HOST_ACCOUNT;
        let rights = format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: more}}
rules: {rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: more}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: more}}
subjects: [{{kind: ServiceAccount, namespace: {namespace}, name: {name}}}]"
        );
        self.apply(&rights).await.map(drop)
    }

    /// A folder of these probes alone.
    pub fn probes(&self, probes: &[Probe]) -> anyhow::Result<PathBuf> {
        let to = self.dir.join("probes");
        probes.iter().try_for_each(|probe| probe.write(&to))?;
        Ok(to)
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.dir.join(format!("host-{}.log", logs.len() + 1));
        logs.push(file.clone());
        file
    }

    /// What a reader of a failed test needs: the hosts' last words, the namespace's objects, the events.
    pub(crate) async fn report(&self) -> String {
        let mut report = String::new();
        for log in self.logs.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            report += &format!("\n--- {}\n{}", log.display(), tail(log));
        }
        let what = "databases,pods,services,secrets,events";
        let fallback = "pods,services,secrets,events";
        for kinds in [what, fallback] {
            let shown = self.cluster.kubectl(&["-n", &self.namespace, "get", kinds, "-o", "wide"]).await;
            if let Ok(table) = shown {
                report += &format!("\n--- kubectl -n {} get {kinds}\n{table}", self.namespace);
                break;
            }
        }
        for database in self.cluster.list(DATABASE, &self.namespace).await.unwrap_or_default().iter().take(3) {
            report += &format!("\n--- {database}\n");
        }
        report
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n") + "\n"
}

// === impl Case: objects ===

impl Case {
    /// Applies documents in this namespace, as a user would; the last object is returned.
    pub async fn apply(&self, yaml: &str) -> anyhow::Result<Object> {
        self.cluster.apply(&self.namespace, yaml).await
    }

    /// Applies what the API server must refuse, and returns its words.
    pub async fn refused(&self, yaml: &str) -> anyhow::Result<String> {
        match self.apply(yaml).await {
            Ok(object) => bail!("the API server accepts {object}"),
            Err(error) => Ok(format!("{error:#}")),
        }
    }

    /// A Database, applied and not waited for.
    pub async fn apply_database(&self, name: &str, kind: &str) -> anyhow::Result<Object> {
        let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind,
            "metadata": {"name": name}, "spec": {"type": kind}});
        self.apply(&database.to_string()).await
    }

    /// A Database with a script of its own for the probe that serves it; again: with another. Not waited for.
    pub async fn scripted(&self, name: &str, kind: &str, script: &Value) -> anyhow::Result<Object> {
        let database = json!({"apiVersion": DATABASE.api_version, "kind": DATABASE.kind,
            "metadata": {"name": name, "annotations": {SCRIPT: script.to_string()}}, "spec": {"type": kind}});
        self.apply(&database.to_string()).await
    }

    /// A Database that has become Ready.
    pub async fn database(&self, name: &str, kind: &str) -> anyhow::Result<Object> {
        self.apply_database(name, kind).await?;
        self.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await
    }

    /// The object; an error where there is none.
    pub async fn get(&self, kind: Kind, name: &str) -> anyhow::Result<Object> {
        self.find(kind, name).await?.with_context(|| format!("no {kind} {name} in {}", self.namespace))
    }

    pub async fn find(&self, kind: Kind, name: &str) -> anyhow::Result<Option<Object>> {
        self.cluster.get(kind, &self.namespace, name).await
    }

    pub async fn list(&self, kind: Kind) -> anyhow::Result<Vec<Object>> {
        self.cluster.list(kind, &self.namespace).await
    }

    /// A merge patch as the manager `test`; `name` may end in a subresource.
    pub async fn patch(&self, kind: Kind, name: &str, patch: &Value) -> anyhow::Result<Object> {
        self.cluster.patch(kind, &self.namespace, name, patch).await
    }

    /// A strategic merge patch, as `kubectl edit` sends it.
    pub async fn edit(&self, kind: Kind, name: &str, patch: &Value) -> anyhow::Result<Object> {
        self.cluster.edit(kind, &self.namespace, name, patch).await
    }

    /// Deletes in the background, as kubectl does.
    pub async fn delete(&self, kind: Kind, name: &str) -> Outcome {
        self.delete_with(kind, name, "Background").await
    }

    /// Deletes with a propagation policy: Background, Foreground, Orphan.
    pub async fn delete_with(&self, kind: Kind, name: &str, propagation: &str) -> Outcome {
        let there = self.cluster.delete(kind, &self.namespace, name, propagation).await?;
        anyhow::ensure!(there, "no {kind} {name} to delete");
        Ok(())
    }

    /// The host's events about an object of this name, oldest first.
    pub async fn events(&self, name: &str) -> anyhow::Result<Vec<Object>> {
        let mut events = self.list(EVENT).await?;
        let told = |event: &Object| event.text("/reportingController").starts_with("keelson.dev/");
        events.retain(|event| event.text("/regarding/name") == name && told(event));
        events.sort_by(|a, b| a.text("/metadata/creationTimestamp").cmp(b.text("/metadata/creationTimestamp")));
        Ok(events)
    }

    /// The calls of the shipped ServiceAccount in this namespace, from the API server's audit log.
    pub fn calls(&self) -> anyhow::Result<Calls> {
        Ok(self.cluster.calls()?.user(HOST_USER).filter(|call| call.namespace == self.namespace))
    }

    /// Records an object's states until the recording is dropped.
    pub async fn record(&self, kind: Kind, name: &str) -> anyhow::Result<Recording> {
        let path = kind.path(&self.namespace, "");
        let uri = format!("{path}?watch=true&fieldSelector=metadata.name%3D{name}");
        let events = self.cluster.watch(&uri).await?;
        let seen: Arc<Mutex<Vec<Object>>> = Arc::default();
        let into = seen.clone();
        let task = tokio::spawn(events.for_each(move |event| {
            if let Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) = event {
                into.lock().unwrap_or_else(PoisonError::into_inner).push(Object(object));
            }
            std::future::ready(())
        }));
        Ok(Recording { seen, task })
    }

    /// The UID and resourceVersion of every child in the namespace: equal twice means that nothing was written.
    pub async fn versions(&self) -> anyhow::Result<Vec<String>> {
        let mut versions = Vec::new();
        for kind in [POD, SERVICE, SECRET, CLAIM] {
            let objects = self.list(kind).await?;
            versions.extend(objects.iter().map(|o| format!("{kind} {} {} {}", o.name(), o.uid(), o.version())));
        }
        Ok(versions)
    }
}

// === impl Case: waits ===

impl Case {
    /// Waits until the object is as wanted, and returns it.
    pub async fn wait(
        &self,
        kind: Kind,
        name: &str,
        wanted: &str,
        is: impl Fn(&Object) -> bool,
    ) -> anyhow::Result<Object> {
        self.wait_for(PATIENCE, kind, name, wanted, is).await
    }

    pub async fn wait_for(
        &self,
        patience: Duration,
        kind: Kind,
        name: &str,
        wanted: &str,
        is: impl Fn(&Object) -> bool,
    ) -> anyhow::Result<Object> {
        let deadline = Instant::now() + patience;
        loop {
            let last = self.find(kind, name).await?;
            if let Some(object) = last.as_ref().filter(|o| is(o)) {
                return Ok(object.clone());
            }
            if Instant::now() > deadline {
                let seen = last.map_or_else(|| "it is not there".to_owned(), |o| format!("last seen:\n{o}"));
                bail!("{kind} {name} is not {wanted:?} after {patience:?}; {seen}");
            }
            sleep(POLL).await;
        }
    }

    pub async fn wait_gone(&self, kind: Kind, name: &str) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        while let Some(object) = self.find(kind, name).await? {
            if Instant::now() > deadline {
                bail!("{kind} {name} is still there after {PATIENCE:?}; last seen:\n{object}");
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits until an answer is yes.
    pub async fn until(
        &self,
        wanted: &str,
        patience: Duration,
        ask: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> Outcome {
        let deadline = Instant::now() + patience;
        while !ask().await? {
            if Instant::now() > deadline {
                bail!("still waiting for {wanted} after {patience:?}");
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Holds an invariant for a while: the answer must stay yes.
    pub async fn throughout(
        &self,
        invariant: &str,
        period: Duration,
        holds: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> Outcome {
        let end = Instant::now() + period;
        while Instant::now() < end {
            anyhow::ensure!(holds().await?, "it did not hold that {invariant}");
            sleep(POLL).await;
        }
        Ok(())
    }
}

// === impl Recording ===

impl Recording {
    pub fn all(&self) -> Vec<Object> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn saw(&self, what: impl Fn(&Object) -> bool) -> bool {
        self.all().iter().any(what)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.task.abort();
    }
}
