//! A harness for end-to-end tests of the host on a real control plane.
//!
//! A test is an `async fn(Case) -> Outcome`, listed in `tests/e2e/main.rs`. It gets a namespace of its own (with a
//! LimitRange in it and a mutating admission policy over it), starts a host that is limited to this namespace and is
//! the shipped ServiceAccount under the shipped RBAC, applies objects, and waits for what a user would see:
//!
//! ```ignore
//! pub(crate) async fn case_01_deleted_children_come_back(case: Case) -> Outcome {
//!     let _host = case.host().start().await?;
//!     let db = case.database("a", "mongo").await?;
//!     case.delete(POD, "a").await?;
//!     case.wait(POD, "a", "back and owned", |pod| !pod.going() && pod.owner() == db.uid()).await?;
//!     Ok(())
//! }
//! ```
//!
//! Tests run side by side on one control plane; a test that touches cluster-scoped objects or the server itself is
//! `private`: it gets a control plane of its own, one such test at a time. Whatever a test started ends with it. Where
//! one fails, the host's log and the namespace's objects are shown.
//!
//! For guests that misbehave, or render what a test wants, see [`probe`].
//!
//! Environment: `KEELSON_BIN`, `KEELSON_TEST_CLOCK_BIN`, `KEELSON_PLUGINS`, `KEELSON_GUESTS`, `KEELSON_LANGUAGES` (default:
//! what is beside the test program in the target folder),
//! `KEELSON_CACHE` and `KUBEBUILDER_ASSETS` (the control plane's programs), `KEELSON_TESTS_DIR` (logs and state).

mod paths;
mod object;
mod audit;
mod cluster;
mod case;
mod quiet;
mod host;
mod election;
mod metrics;
pub mod probe;
mod registry;
mod proxy;
mod runner;

pub use audit::{Call, Calls};
pub use case::{Case, Recording};
pub use cluster::{Cluster, Events, Install, Options, watch};
pub use election::Rival;
pub use host::{HOST_ACCOUNT, HOST_USER, Host, HostBuilder};
pub use metrics::{Metrics, get as http_get, parse as scraped};
pub use object::{
    CLAIM, CONFIG_MAP, Condition, DATABASE, DEPLOYMENT, ENDPOINT_SLICE, EVENT, JOB, Kind, LEASE, NAMESPACE, Object,
    PLUGIN, POD, SECRET, SERVICE, STORAGE_CLASS, VOLUME,
};
pub use paths::{binary, guests, languages, plugins, repository, state, sweep};
pub use probe::Probe;
pub use proxy::{Fault, FaultProxy, Late, Match};
pub use registry::{Registry, RegistryOptions};
pub use runner::{Test, run};

/// What a test returns; the error is shown with its causes.
pub type Outcome = anyhow::Result<()>;

/// Everything that a file of tests needs.
pub mod prelude {
    pub use crate::*;
    pub use anyhow::{Context, bail, ensure};
    pub use serde_json::{Value, json};
    pub use std::time::Duration;

    pub const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }
}
