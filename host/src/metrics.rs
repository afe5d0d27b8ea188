//! Every metric, under controller-runtime's names where it has one, so that
//! existing dashboards fit. Handles are resolved once: the hot path only adds.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::clock;

/// What `encode` writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// controller-runtime's buckets, thinned to what a host can tell apart.
const RECONCILE_SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];
/// workqueue's own: decades.
const QUEUE_SECONDS: [f64; 8] = [0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];
/// From a tenth of a small render to the wall-time limit.
const RENDER_SECONDS: [f64; 10] = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.001, 0.01, 0.1, 1.0, 2.0];

/// Of `keelson_plugin_bytes`: the memory that one call took at most.
const CALL: &str = "call";

type Float = Gauge<f64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    reconciles: Family<ControllerResult, Counter>,
    reconcile_errors: Family<Controller, Counter>,
    reconcile_seconds: Histograms<Controller>,
    active_workers: Family<Controller, Gauge>,
    max_workers: Family<Controller, Gauge>,
    queue_depth: Family<Queue, Gauge>,
    queue_adds: Family<Queue, Counter>,
    queue_retries: Family<Queue, Counter>,
    queue_seconds: Histograms<Queue>,
    queue_work_seconds: Histograms<Queue>,
    requests: Family<Request, Counter>,
    renders: Family<Render, Counter>,
    render_seconds: Histograms<Plugin>,
    plugin_state: Family<PluginPhase, Gauge>,
    watch_state: Family<WatchState, Gauge>,
    writes: Family<Write, Counter>,
    leads: Family<LeaseName, Gauge>,
    replacements: Family<Replacement, Counter>,
    compiles: Family<Compile, Counter>,
    plugin_bytes: Family<PluginBytes, Gauge>,
    plugin_failing: Family<Plugin, Gauge>,
    resident: Gauge,
}

/// How a reconcile ended, in controller-runtime's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconciled {
    Success,
    Error,
    Requeue,
    RequeueAfter,
}

/// The handles of one controller and its queue.
#[derive(Clone)]
pub struct ControllerMetrics {
    success: Counter,
    error: Counter,
    requeue: Counter,
    requeue_after: Counter,
    errors: Counter,
    seconds: Histogram,
    active: Gauge,
    max: Gauge,
    pub queue: QueueMetrics,
}

#[derive(Clone)]
pub struct QueueMetrics {
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
}

/// The handles of one plugin.
#[derive(Clone)]
pub struct PluginMetrics {
    metrics: Metrics,
    plugin: Arc<str>,
    ok: Counter,
    seconds: Histogram,
    call_bytes: Gauge,
    failing: Gauge,
}

/// The handle of one API server.
#[derive(Clone)]
pub struct RestMetrics {
    metrics: Metrics,
    host: Arc<str>,
}

macro_rules! labels {
    ($($name:ident { $($field:ident: $type:ty),* })*) => {$(
        #[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
        struct $name { $($field: $type),* }
    )*};
}
labels! {
    ControllerResult { controller: Arc<str>, result: &'static str }
    Controller { controller: Arc<str> }
    Queue { name: Arc<str> }
    Request { code: Arc<str>, method: &'static str, host: Arc<str> }
    Render { plugin: Arc<str>, result: Arc<str> }
    Plugin { plugin: Arc<str> }
    PluginPhase { plugin: Arc<str>, phase: Arc<str> }
    WatchState { kind: Arc<str>, state: &'static str }
    Write { kind: Arc<str>, verb: &'static str }
    LeaseName { name: Arc<str> }
    Replacement { kind: Arc<str>, cause: &'static str }
    Compile { result: &'static str }
    PluginBytes { plugin: Arc<str>, of: &'static str }
}

// === impl Metrics ===

impl Metrics {
    pub fn new() -> Self {
        // The text format appends `_total` to counters and the unit is part of the name already.
        let mut registry = Registry::default();
        let started = Float::default();
        started.set(clock::now().as_millisecond() as f64 / 1000.0);
        registry.register("process_start_time_seconds", "When the process started, in seconds since 1970", started);
        let inner = Inner {
            reconciles: add(&mut registry, "controller_runtime_reconcile", "Reconciles by result"),
            reconcile_errors: add(&mut registry, "controller_runtime_reconcile_errors", "Reconciles that failed"),
            reconcile_seconds: histogram(
                &mut registry,
                "controller_runtime_reconcile_time_seconds",
                "Time of one reconcile",
                || Histogram::new(RECONCILE_SECONDS),
            ),
            active_workers: add(&mut registry, "controller_runtime_active_workers", "Reconciles now running"),
            max_workers: add(
                &mut registry,
                "controller_runtime_max_concurrent_reconciles",
                "Reconciles that may run at one time",
            ),
            queue_depth: add(&mut registry, "workqueue_depth", "Objects that wait"),
            queue_adds: add(&mut registry, "workqueue_adds", "Objects put into the queue"),
            queue_retries: add(&mut registry, "workqueue_retries", "Objects put into the queue after a failure"),
            queue_seconds: histogram(
                &mut registry,
                "workqueue_queue_duration_seconds",
                "Time between queued and started",
                || Histogram::new(QUEUE_SECONDS),
            ),
            queue_work_seconds: histogram(
                &mut registry,
                "workqueue_work_duration_seconds",
                "Time of work on one object",
                || Histogram::new(QUEUE_SECONDS),
            ),
            requests: add(&mut registry, "rest_client_requests", "Answers of the API server by status code"),
            renders: add(&mut registry, "keelson_renders", "Calls of a plugin's render by result"),
            render_seconds: histogram(&mut registry, "keelson_render_duration_seconds", "Time of one render", || {
                Histogram::new(RENDER_SECONDS)
            }),
            plugin_state: add(&mut registry, "keelson_plugin_state", "1 for the phase that a plugin is in"),
            watch_state: add(&mut registry, "keelson_watch_state", "1 for the state that a kind's watch is in"),
            writes: add(&mut registry, "keelson_writes", "Successful writes by kind and verb"),
            leads: add(
                &mut registry,
                "leader_election_master_status",
                "1 where this host holds the lease of this name, 0 where it stands by",
            ),
            replacements: add(
                &mut registry,
                "keelson_replacements",
                "Children deleted to be made anew, by kind and cause",
            ),
            compiles: add(
                &mut registry,
                "keelson_compiles",
                "Components that were compiled, came out of the cache, or whose entry in it was damaged",
            ),
            plugin_bytes: add(
                &mut registry,
                "keelson_plugin_bytes",
                "Bytes of a plugin's component, of its code in memory, and of what one call took at most",
            ),
            plugin_failing: add(
                &mut registry,
                "keelson_plugin_failing",
                "1 while a plugin fails with one object after the other and is asked more rarely",
            ),
            resident: {
                let resident = Gauge::default();
                registry.register("process_resident_memory_bytes", "Resident memory", resident.clone());
                resident
            },
            registry,
        };
        Self(Arc::new(inner))
    }

    /// All metrics as text.
    pub fn encode(&self) -> String {
        self.0.resident.set(resident_bytes());
        let mut out = String::with_capacity(16 * 1024);
        // Writing into a String does not fail; a label that cannot be written leaves a shorter page.
        if let Err(error) = text::encode(&mut out, &self.0.registry) {
            tracing::error!(%error, "metrics are incomplete");
        }
        out
    }

    pub fn controller(&self, name: &str) -> ControllerMetrics {
        let Inner { reconciles, reconcile_errors, reconcile_seconds, active_workers, max_workers, .. } = &*self.0;
        let controller: Arc<str> = name.into();
        let result =
            |result| reconciles.get_or_create_owned(&ControllerResult { controller: controller.clone(), result });
        let label = Controller { controller: controller.clone() };
        ControllerMetrics {
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: reconcile_errors.get_or_create_owned(&label),
            seconds: reconcile_seconds.get_or_create_owned(&label),
            active: active_workers.get_or_create_owned(&label),
            max: max_workers.get_or_create_owned(&label),
            queue: self.queue(name),
        }
    }

    pub fn queue(&self, name: &str) -> QueueMetrics {
        let Inner { queue_depth, queue_adds, queue_retries, queue_seconds, queue_work_seconds, .. } = &*self.0;
        let label = Queue { name: name.into() };
        QueueMetrics {
            depth: queue_depth.get_or_create_owned(&label),
            adds: queue_adds.get_or_create_owned(&label),
            retries: queue_retries.get_or_create_owned(&label),
            waited: queue_seconds.get_or_create_owned(&label),
            worked: queue_work_seconds.get_or_create_owned(&label),
        }
    }

    pub fn plugin(&self, name: &str) -> PluginMetrics {
        let plugin: Arc<str> = name.into();
        PluginMetrics {
            ok: self.0.renders.get_or_create_owned(&Render { plugin: plugin.clone(), result: "ok".into() }),
            seconds: self.0.render_seconds.get_or_create_owned(&Plugin { plugin: plugin.clone() }),
            call_bytes: self.0.plugin_bytes.get_or_create_owned(&PluginBytes { plugin: plugin.clone(), of: CALL }),
            failing: self.0.plugin_failing.get_or_create_owned(&Plugin { plugin: plugin.clone() }),
            metrics: self.clone(),
            plugin,
        }
    }

    pub fn rest(&self, host: &str) -> RestMetrics {
        RestMetrics { metrics: self.clone(), host: host.into() }
    }

    /// The state that the watch of a kind (`pods`, `widgets.example.org`) has moved to.
    pub fn watch_state(&self, kind: &str, from: Option<&'static str>, to: Option<&'static str>) {
        let kind: Arc<str> = kind.into();
        let gauge = |state| self.0.watch_state.get_or_create_owned(&WatchState { kind: kind.clone(), state });
        // Several namespaces have a watch each: count them.
        if let Some(from) = from {
            gauge(from).dec();
        }
        if let Some(to) = to {
            gauge(to).inc();
        }
    }

    /// Whether this host holds the lease of this name.
    pub fn leads(&self, lease: &str, leads: bool) {
        self.0.leads.get_or_create(&LeaseName { name: lease.into() }).set(leads.into());
    }

    /// A write that the API server has taken.
    pub fn wrote(&self, kind: &str, verb: &'static str) {
        self.0.writes.get_or_create(&Write { kind: kind.into(), verb }).inc();
    }
}

impl Metrics {
    /// So many components more: `compiled`, `cached` or `rebuilt`.
    pub fn compiled(&self, result: &'static str, more: u64) {
        self.0.compiles.get_or_create(&Compile { result }).inc_by(more);
    }

    /// A child that was deleted to be made anew.
    pub fn replaced(&self, kind: &str, cause: &'static str) {
        self.0.replacements.get_or_create(&Replacement { kind: kind.into(), cause }).inc();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn add<M>(registry: &mut Registry, name: &str, help: &str) -> M
where
    M: Default + Clone + prometheus_client::registry::Metric,
{
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn histogram<L>(registry: &mut Registry, name: &str, help: &str, make: fn() -> Histogram) -> Histograms<L>
where
    L: Clone + std::hash::Hash + Eq + EncodeLabelSet + std::fmt::Debug + Send + Sync + 'static,
{
    let metric = Family::new_with_constructor(make);
    registry.register(name, help, metric.clone());
    metric
}

/// VmRSS as the kernel has it; 0 where there is no procfs.
fn resident_bytes() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse::<i64>().unwrap_or(0) * 1024
}

// === impl ControllerMetrics ===

impl ControllerMetrics {
    pub fn max_concurrent(&self, workers: usize) {
        self.max.set(i64::try_from(workers).unwrap_or(i64::MAX));
    }

    pub fn started(&self) {
        self.active.inc();
    }

    /// Ends what `started` began.
    pub fn finished(&self, result: Reconciled, took: Duration) {
        self.active.dec();
        self.seconds.observe(took.as_secs_f64());
        match result {
            Reconciled::Success => &self.success,
            Reconciled::Requeue => &self.requeue,
            Reconciled::RequeueAfter => &self.requeue_after,
            Reconciled::Error => {
                self.errors.inc();
                &self.error
            }
        }
        .inc();
    }
}

// === impl QueueMetrics ===

impl QueueMetrics {
    pub fn added(&self) {
        self.adds.inc();
        self.depth.inc();
    }

    pub fn taken(&self, waited: Duration) {
        self.depth.dec();
        self.waited.observe(waited.as_secs_f64());
    }

    /// Left the queue without work: the object is gone.
    pub fn dropped(&self) {
        self.depth.dec();
    }

    pub fn retried(&self) {
        self.retries.inc();
    }

    pub fn worked(&self, took: Duration) {
        self.worked.observe(took.as_secs_f64());
    }
}

// === impl PluginMetrics ===

impl PluginMetrics {
    pub fn rendered(&self, took: Duration) {
        self.ok.inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// `reason` is one of the sandbox's or a class of failure, never text of the guest's own.
    pub fn failed(&self, reason: &str, took: Duration) {
        let label = Render { plugin: self.plugin.clone(), result: reason.into() };
        self.metrics.0.renders.get_or_create(&label).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// The memory that a call took.
    pub fn took(&self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if self.call_bytes.get() < bytes {
            self.call_bytes.set(bytes);
        }
    }

    /// Whether it fails with one object after the other.
    pub fn failing(&self, failing: bool) {
        self.failing.set(failing.into());
    }

    /// What the host holds of a plugin: its component's size, and that of its code.
    pub fn holds(&self, component: usize, code: usize) {
        for (of, bytes) in [("component", component), ("code", code)] {
            let label = PluginBytes { plugin: self.plugin.clone(), of };
            self.metrics.0.plugin_bytes.get_or_create(&label).set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// It does not serve any more.
    pub fn gone(&self) {
        for of in ["component", "code", CALL] {
            self.metrics.0.plugin_bytes.remove(&PluginBytes { plugin: self.plugin.clone(), of });
        }
        self.metrics.0.plugin_failing.remove(&Plugin { plugin: self.plugin.clone() });
    }

    /// The phase that the plugin has moved to.
    pub fn phase(&self, from: Option<&str>, to: Option<&str>) {
        let label = |phase: &str| PluginPhase { plugin: self.plugin.clone(), phase: phase.into() };
        if let Some(from) = from {
            self.metrics.0.plugin_state.remove(&label(from));
        }
        if let Some(to) = to {
            self.metrics.0.plugin_state.get_or_create(&label(to)).set(1);
        }
    }
}

// === impl RestMetrics ===

impl RestMetrics {
    /// One answer; `code` is `<error>` where there was none, as in client-go.
    pub fn answered(&self, method: &'static str, code: Option<u16>) {
        let code = code.map_or_else(|| "<error>".into(), |code| code.to_string().into());
        self.metrics.0.requests.get_or_create(&Request { code, method, host: self.host.clone() }).inc();
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_controller_runtimes() {
        let metrics = Metrics::new();
        let controller = metrics.controller("databases.zalando.org");
        controller.max_concurrent(16);
        controller.started();
        controller.finished(Reconciled::Error, Duration::from_millis(3));
        controller.queue.added();
        controller.queue.taken(Duration::from_millis(1));
        metrics.rest("127.0.0.1:6443").answered("PATCH", Some(409));
        metrics.rest("127.0.0.1:6443").answered("PATCH", None);
        metrics.plugin("mongo").failed("OutOfFuel", Duration::from_millis(1));
        metrics.wrote("pods", "apply");
        metrics.leads("keelson", true);
        let text = metrics.encode();
        for line in [
            r#"controller_runtime_reconcile_total{controller="databases.zalando.org",result="error"} 1"#,
            r#"controller_runtime_reconcile_errors_total{controller="databases.zalando.org"} 1"#,
            r#"controller_runtime_reconcile_time_seconds_count{controller="databases.zalando.org"} 1"#,
            r#"controller_runtime_active_workers{controller="databases.zalando.org"} 0"#,
            r#"controller_runtime_max_concurrent_reconciles{controller="databases.zalando.org"} 16"#,
            r#"workqueue_depth{name="databases.zalando.org"} 0"#,
            r#"workqueue_adds_total{name="databases.zalando.org"} 1"#,
            r#"workqueue_queue_duration_seconds_bucket{le="0.001",name="databases.zalando.org"} 1"#,
            r#"rest_client_requests_total{code="409",method="PATCH",host="127.0.0.1:6443"} 1"#,
            r#"rest_client_requests_total{code="<error>",method="PATCH",host="127.0.0.1:6443"} 1"#,
            r#"keelson_renders_total{plugin="mongo",result="OutOfFuel"} 1"#,
            r#"keelson_writes_total{kind="pods",verb="apply"} 1"#,
            r#"leader_election_master_status{name="keelson"} 1"#,
        ] {
            assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
        }
        let resident = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
        assert!(resident.unwrap().parse::<i64>().unwrap() > 1_000_000);
        assert!(text.contains("\nprocess_start_time_seconds "));
    }

    #[test]
    fn only_the_current_state_is_set() {
        let metrics = Metrics::new();
        metrics.watch_state("pods", None, Some("starting"));
        metrics.watch_state("pods", Some("starting"), Some("filled"));
        let plugin = metrics.plugin("mongo");
        plugin.phase(None, Some("Pending"));
        plugin.phase(Some("Pending"), Some("Serving"));
        let text = metrics.encode();
        assert!(text.contains(r#"keelson_watch_state{kind="pods",state="filled"} 1"#));
        assert!(text.contains(r#"keelson_watch_state{kind="pods",state="starting"} 0"#));
        assert!(text.contains(r#"keelson_plugin_state{plugin="mongo",phase="Serving"} 1"#));
        assert!(!text.contains("Pending"));
    }
}
