//! Whether a host leaves a namespace alone, and who else writes there.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::case::Case;
use crate::object::{NAMESPACE, Object, POD};
use crate::{Calls, Outcome};

/// What the host writes late, such as a status that was held back, comes well before this.
const STILL: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(40);

impl Case {
    /// Waits until nothing moves any more, then holds it to that for so long: no write by the host in this namespace,
    /// and every child's resourceVersion stays.
    pub async fn quiet(&self, period: Duration) -> Outcome {
        let mut before = self.still().await?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            sleep(STILL).await;
            let now = self.still().await?;
            if now == before {
                break;
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "it does not come to rest in {PATIENCE:?}: {:?}",
                self.writes()?
            );
            before = now;
        }
        sleep(period).await;
        let (versions, writes) = self.still().await?;
        let made = self.writes()?;
        let late = Calls(made.0.get(before.1..).unwrap_or_default().to_vec());
        anyhow::ensure!(writes == before.1, "not quiet for {period:?}, the host wrote:\n{late:?}");
        anyhow::ensure!(versions == before.0, "not quiet for {period:?}: {:?} became {versions:?}", before.0);
        Ok(())
    }

    async fn still(&self) -> anyhow::Result<(Vec<String>, usize)> {
        Ok((self.versions().await?, self.writes()?.len()))
    }

    /// The host's writes in this namespace so far.
    pub fn writes(&self) -> anyhow::Result<Calls> {
        Ok(self.calls()?.writes())
    }

    /// From now on the simulated nodes leave this namespace's new Pods alone: the test writes their status.
    pub async fn pods_by_hand(&self) -> Outcome {
        self.under_policy("pods", "by-hand").await
    }

    /// From now on a policy changes this namespace's Pods: `sidecar` puts a container into new ones, `image` writes
    /// the registry of a mirror before every image.
    pub async fn mutates(&self, what: &str) -> Outcome {
        self.under_policy("mutates", what).await
    }

    /// Labels the namespace as the policies of policy.yaml want it, and waits until they see that.
    async fn under_policy(&self, label: &str, value: &str) -> Outcome {
        let labels = json!({"metadata": {"labels": {format!("keelson.test/{label}"): value}}});
        self.cluster.patch(NAMESPACE, "", &self.namespace, &labels).await?;
        let pod = json!({"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "c"}]}});
        let path = format!("{}?dryRun=All", POD.path(&self.namespace, ""));
        self.until("the namespace's label to reach the admission policy", PATIENCE, async || {
            let made = self.cluster.send(http::Method::POST, &path, "application/json", &pod).await?.map(Object);
            Ok(made.is_some_and(|pod| {
                pod.label("keelson.test/phase").or(pod.label("keelson.test/mutated")) == Some(value)
            }))
        })
        .await
    }
}
