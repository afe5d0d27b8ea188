//! Several hosts that would lead in one namespace, each a ServiceAccount of its own, so that the audit log tells their
//! calls apart. The Lease is in the namespace too, and its times are short.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use crate::audit::Calls;
use crate::case::Case;
use crate::host::{HOST_ACCOUNT, Host, HostBuilder};
use crate::object::LEASE;
use crate::{Outcome, paths};

/// An account that may all that the shipped one may, in this namespace.
#[derive(Clone)]
pub struct Rival {
    case: Case,
    name: String,
}

impl Rival {
    /// How long others wait for a leader that is gone without a word.
    pub const LEASE: Duration = Duration::from_secs(6);
    /// How long a leader writes on without a renewal.
    pub const RENEW: Duration = Duration::from_secs(4);
    const FLAGS: [&str; 6] = [
        "--leader-elect-lease-duration=6s",
        "--leader-elect-renew-deadline=4s",
        "--leader-elect-retry-period=500ms",
        "--leader-elect",
        "--leader-elect-name",
        HOST_ACCOUNT.1,
    ];

    /// Not started yet.
    pub fn host(&self) -> HostBuilder {
        let namespace = &self.case.namespace;
        let host = self.case.host().account(namespace, &self.name).args(&Self::FLAGS);
        host.args(&["--leader-elect-namespace", namespace])
    }

    /// A rival of the same name on another wire.
    pub async fn start(&self) -> anyhow::Result<Host> {
        self.host().start().await
    }

    /// Every call of this account but the questions about its rights.
    pub fn calls(&self) -> anyhow::Result<Calls> {
        let user = format!("system:serviceaccount:{}:{}", self.case.namespace, self.name);
        Ok(self.case.cluster.calls()?.user(&user).filter(|call| call.resource != "selfsubjectaccessreviews"))
    }

    /// What it has written, its Lease left out.
    pub fn writes(&self) -> anyhow::Result<Calls> {
        Ok(self.calls()?.writes().filter(|call| call.resource != LEASE.plural))
    }
}

impl Case {
    /// An account with the shipped rights, those on the Lease of `deploy/base` included.
    pub async fn rival(&self, name: &str) -> anyhow::Result<Rival> {
        self.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}).to_string())
            .await?;
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": self.namespace});
        self.bind(&format!("{name}-host"), "ClusterRole", HOST_ACCOUNT.1, &subject).await?;
        let file = paths::repository().join("deploy/base/lease.yaml");
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        let role = documents.into_iter().find(|document| document.get("kind") == Some(&json!("Role")));
        let mut role = role.context("no Role for the Lease is shipped")?;
        if let Some(metadata) = role.get_mut("metadata") {
            *metadata = json!({"name": "lease"});
        }
        self.apply(&role.to_string()).await?;
        self.bind(&format!("{name}-lease"), "Role", "lease", &subject).await?;
        Ok(Rival { case: self.clone(), name: name.to_owned() })
    }

    async fn bind(&self, name: &str, kind: &str, role: &str, subject: &Value) -> Outcome {
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": name}, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}});
        self.apply(&binding.to_string()).await.map(drop)
    }

    /// Who holds the Lease of this namespace; empty: nobody.
    pub async fn holder(&self) -> anyhow::Result<String> {
        let lease = self.find(LEASE, HOST_ACCOUNT.1).await?;
        Ok(lease.map(|lease| lease.text("/spec/holderIdentity").to_owned()).unwrap_or_default())
    }
}

impl Host {
    /// As /readyz says it: `ready: leads`.
    pub async fn leads(&self) -> anyhow::Result<bool> {
        Ok(self.probe("/readyz").await? == (200, "ready: leads\n".to_owned()))
    }

    /// As /readyz says it: `standby: NAME leads`.
    pub async fn stands_by(&self) -> anyhow::Result<bool> {
        let (status, body) = self.probe("/readyz").await?;
        Ok(status == 200 && body.starts_with("standby: ") && body.ends_with(" leads\n"))
    }
}
