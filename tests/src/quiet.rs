//! Whether a host leaves a namespace alone.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::case::Case;
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
}
