//! Runs the tests: those of the shared control plane side by side, private ones one at a time.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::case::Case;
use crate::cluster::{Cluster, Options};
use crate::{Outcome, paths};

/// Side by side: tests mostly wait.
const THREADS: usize = 8;
/// The longest that a test may take where it names no time.
const DEADLINE: Duration = Duration::from_secs(120);

pub struct Test {
    name: String,
    place: Place,
    deadline: Duration,
    when_asked: bool,
    /// Polled on the test's own thread: it need not be Send.
    body: Box<dyn Fn(Case) -> LocalBoxFuture<'static, Outcome> + Send + Sync>,
}

enum Place {
    Shared,
    Private(Options),
}

/// A test on the control plane of the run: `shared!(file::case_01_…)`.
#[macro_export]
macro_rules! shared {
    ($($path:ident)::+) => { $crate::Test::shared(stringify!($($path)::+), $($path)::+) };
}

/// A test with a control plane of its own: `private!(file::case_21_…)`, or with `Options` after the name.
#[macro_export]
macro_rules! private {
    ($($path:ident)::+) => { $crate::private!($($path)::+, $crate::Options::default()) };
    ($($path:ident)::+, $options:expr) => { $crate::Test::private(stringify!($($path)::+), $options, $($path)::+) };
}

// === impl Test ===

impl Test {
    pub fn shared<F: Future<Output = Outcome> + 'static>(
        name: &str,
        body: impl Fn(Case) -> F + Send + Sync + 'static,
    ) -> Self {
        let body = Box::new(move |case| body(case).boxed_local());
        Self { name: name.replace(' ', ""), place: Place::Shared, deadline: DEADLINE, when_asked: false, body }
    }

    pub fn private<F: Future<Output = Outcome> + 'static>(
        name: &str,
        options: Options,
        body: impl Fn(Case) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { place: Place::Private(options), ..Self::shared(name, body) }
    }

    /// Another deadline for the whole test.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs with `--ignored` only: it needs more than `make test` installs.
    pub fn when_asked(mut self) -> Self {
        self.when_asked = true;
        self
    }
}

/// What all trials share.
struct Run {
    runtime: Runtime,
    shared: OnceCell<Result<Arc<Cluster>, String>>,
    one_at_a_time: Mutex<()>,
}

/// Runs what the command line asks for (`--list`, a filter, `--test-threads`), and ends everything it has started.
pub fn run(tests: Vec<Test>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    match prepare() {
        Ok(run) => {
            let run = Arc::new(run);
            let trials = interleaved(tests).into_iter().map(|test| trial(test, run.clone())).collect();
            libtest_mimic::run(&arguments, trials).exit_code()
        }
        Err(error) => {
            eprintln!("tests: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> anyhow::Result<Run> {
    paths::sweep()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    Ok(Run { runtime, shared: OnceCell::new(), one_at_a_time: Mutex::new(()) })
}

/// Private tests spread among the others: they wait for each other, and must not hold all threads while they do.
fn interleaved(tests: Vec<Test>) -> Vec<Test> {
    let (private, shared): (Vec<_>, Vec<_>) = tests.into_iter().partition(|t| matches!(t.place, Place::Private(_)));
    let share = shared.len() / (private.len() + 1);
    let mut shared = shared.into_iter();
    let mut mixed = Vec::new();
    for test in private {
        mixed.push(test);
        mixed.extend(shared.by_ref().take(share));
    }
    mixed.extend(shared);
    mixed
}

fn trial(test: Test, run: Arc<Run>) -> Trial {
    let when_asked = test.when_asked;
    let trial = Trial::test(test.name.clone(), move || match &test.place {
        Place::Shared => run.runtime.block_on(on_shared(&test, &run)),
        Place::Private(options) => {
            let _turn = run.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
            run.runtime.block_on(on_private(&test, options.clone()))
        }
    });
    trial.with_ignored_flag(when_asked)
}

async fn on_shared(test: &Test, run: &Run) -> Result<(), Failed> {
    let cluster = run
        .shared
        .get_or_init(|| async {
            Cluster::up("shared", Options::default()).await.map(Arc::new).map_err(|error| format!("{error:#}"))
        })
        .await;
    attempt(test, cluster.clone().map_err(Failed::from)?).await
}

async fn on_private(test: &Test, options: Options) -> Result<(), Failed> {
    let cluster = Cluster::up(short(&test.name), options).await.map_err(|error| Failed::from(format!("{error:#}")))?;
    attempt(test, Arc::new(cluster)).await
}

async fn attempt(test: &Test, cluster: Arc<Cluster>) -> Result<(), Failed> {
    let case = Case::new(cluster, short(&test.name)).await.map_err(|error| Failed::from(format!("{error:#}")))?;
    let body = AssertUnwindSafe((test.body)(case.clone())).catch_unwind();
    let outcome = match tokio::time::timeout(test.deadline, body).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(anyhow::anyhow!("the test panicked; the message is above")),
        Err(_) => Err(anyhow::anyhow!("the test is not done after {:?}", test.deadline)),
    };
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => Err(Failed::from(format!("{error:?}\n{}", case.report().await))),
    }
}

/// The name without its file's.
fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}
