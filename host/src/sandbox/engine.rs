//! The wasmtime engine and its epoch clock, made together: no store can be made
//! for which nothing ticks, and the clock stops with the last user of the engine.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails};

use super::cache::{Cache, Counts};
use crate::limits;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("this machine cannot run plugins: {0}")]
    Unsupported(String),
    #[error("the clock of the sandbox did not start: {0}")]
    Clock(#[from] std::io::Error),
}

/// Where components are compiled.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// In this process, for commands that end soon.
    Here,
    Child {
        /// It must know the compiler's command.
        program: PathBuf,
        /// Where compiled code is kept.
        cache: Option<Cache>,
    },
}

#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    wasmtime: wasmtime::Engine,
    kind: Kind,
    compiler: Compiler,
    compiling: Mutex<()>,
    counts: Counts,
    clock: Clock,
}

impl Compiler {
    /// A child of the program that is running.
    pub fn child_of_this_program(cache: Option<Cache>) -> Self {
        Self::Child { program: "/proc/self/exe".into(), cache }
    }
}

impl Engine {
    /// For so many calls at one time, compiling in this process.
    pub fn new(workers: usize) -> Result<Self, EngineError> {
        Self::with_compiler(workers, Compiler::Here)
    }

    pub fn with_compiler(workers: usize, compiler: Compiler) -> Result<Self, EngineError> {
        let (wasmtime, kind) = match wasmtime::Engine::new(&pooling(workers)) {
            Ok(engine) => (engine, Kind::Pooling),
            // RLIMIT_AS, for instance: the pool is terabytes of address space, though never of memory.
            Err(error) => {
                tracing::warn!(
                    error = %format!("{error:#}"),
                    "no address space for a pool of instances, plugins run slower without one"
                );
                let engine = wasmtime::Engine::new(&on_demand());
                (engine.map_err(|error| EngineError::Unsupported(format!("{error:#}")))?, Kind::OnDemand)
            }
        };
        let clock = Clock::start(wasmtime.clone())?;
        let (compiling, counts) = (Mutex::new(()), Counts::default());
        Ok(Self { inner: Arc::new(Inner { wasmtime, kind, compiler, compiling, counts, clock }) })
    }

    /// What compiled code depends on beside the component: wasmtime's version and settings, and the layout of memory.
    pub(super) fn settings(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.wasmtime().precompile_compatibility_hash().hash(&mut hasher);
        format!("{}-{:016x}", self.kind().name(), hasher.finish())
    }

    /// What was compiled and what was not.
    pub fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    /// Held while a component is compiled.
    pub(super) fn compiling(&self) -> &Mutex<()> {
        &self.inner.compiling
    }

    pub(super) fn kind(&self) -> Kind {
        self.inner.kind
    }

    pub(super) fn compiler(&self) -> &Compiler {
        &self.inner.compiler
    }

    pub(super) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.wasmtime
    }

    /// The clock ticks at least as long as the returned value lives.
    pub(super) fn tick_while_running(&self) -> Running<'_> {
        self.inner.clock.begin();
        Running { clock: &self.inner.clock }
    }
}

/// How memory is laid out; what is compiled for one runs in no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pooling,
    OnDemand,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pooling => "pooling",
            Self::OnDemand => "on-demand",
        }
    }

    pub(super) fn named(name: &str) -> Self {
        if name == Self::OnDemand.name() { Self::OnDemand } else { Self::Pooling }
    }
}

/// An engine that only compiles, for engines of this kind.
pub(super) fn compiling(kind: Kind) -> wasmtime::Result<wasmtime::Engine> {
    wasmtime::Engine::new(&match kind {
        Kind::Pooling => common(),
        Kind::OnDemand => on_demand(),
    })
}

fn common() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        // The same request gives the same rendering on every machine.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        // Threads of its own would keep memory of theirs; two plugins compile in the time of a list call.
        .parallel_compilation(false)
        // Functions only: walked at a trap, by frame pointers that are there anyway. Lines would cost a map of all code.
        .wasm_backtrace_max_frames(limits::FRAMES)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .generate_address_map(false)
        .native_unwind_info(false)
        .memory_init_cow(true);
    config
}

fn pooling(workers: usize) -> Config {
    let workers = u32::try_from(workers.max(1)).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(workers)
        .total_core_instances(workers.saturating_mul(limits::INSTANCES))
        .total_memories(workers.saturating_mul(limits::MEMORIES))
        .total_tables(workers.saturating_mul(limits::TABLES))
        .max_core_instances_per_component(limits::INSTANCES)
        .max_memories_per_component(limits::MEMORIES)
        .max_tables_per_component(limits::TABLES)
        .max_memories_per_module(limits::MEMORIES)
        .max_tables_per_module(limits::TABLES)
        .table_elements(limits::TABLE_ELEMENTS)
        .max_memory_size(limits::MEMORY_SLOT)
        .max_unused_warm_slots(limits::WARM_SLOTS)
        .linear_memory_keep_resident(limits::WARM_BYTES)
        .table_keep_resident(limits::WARM_BYTES)
        // Without it (before Linux 6.7) all of WARM_BYTES would be written at each reset.
        .pagemap_scan(Enabled::Auto);
    let mut config = common();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Takes address space only as a guest asks for memory.
fn on_demand() -> Config {
    let mut config = common();
    config
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .memory_reservation(0)
        .memory_guard_size(1 << 16)
        // Growing by less would move, and so copy, too often.
        .memory_reservation_for_growth(1 << 24)
        .memory_may_move(true);
    config
}

/// One call in progress.
pub(super) struct Running<'a> {
    clock: &'a Clock,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.clock.end();
    }
}

/// Ticks while calls run, sleeps when none has run for a while: an idle host wakes no CPU.
struct Clock {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    asleep: bool,
    stopped: bool,
}

// === impl Clock ===

impl Clock {
    fn start(engine: wasmtime::Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let thread = std::thread::Builder::new().name("epoch".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.tick(&engine)
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    fn begin(&self) {
        let mut state = self.shared.state.lock();
        state.running += 1;
        if state.asleep {
            state.asleep = false;
            self.shared.changed.notify_one();
        }
    }

    fn end(&self) {
        self.shared.state.lock().running -= 1;
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It cannot panic; were it so, there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn tick(&self, engine: &wasmtime::Engine) {
        let mut idle = 0;
        let mut state = self.state.lock();
        while !state.stopped {
            if state.running == 0 && idle >= limits::EPOCH_IDLE_TICKS {
                state.asleep = true;
                self.changed.wait(&mut state);
                idle = 0;
                continue;
            }
            let next = Instant::now() + limits::EPOCH_TICK;
            if self.changed.wait_until(&mut state, next).timed_out() {
                engine.increment_epoch();
                idle = if state.running == 0 { idle + 1 } else { 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stops_with_the_last_clone() {
        let engine = Engine::new(1).unwrap();
        let shared = Arc::downgrade(&engine.inner.clock.shared);
        let last = engine.clone();
        drop(engine);
        assert!(shared.upgrade().is_some());
        drop(last);
        assert!(shared.upgrade().is_none(), "the thread still holds its state");
    }

    #[test]
    fn the_clock_sleeps_when_idle_and_wakes_for_a_call() {
        let engine = Engine::new(1).unwrap();
        let asleep = || engine.inner.clock.shared.state.lock().asleep;
        let deadline = Instant::now() + std::time::Duration::from_secs(20);
        while !asleep() {
            assert!(Instant::now() < deadline, "never slept");
            std::thread::yield_now();
        }
        let running = engine.tick_while_running();
        assert!(!asleep());
        drop(running);
    }
}
