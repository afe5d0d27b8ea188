//! What no author would write: renderings of random memory, and components with
//! bytes changed, cut and moved. None may panic, hang, or pass the checks with
//! something that is outside the grant.
//!
//! Each case follows from one number, printed when it fails. Those that once did
//! stand in corpus.txt and run first. KEELSON_FUZZ=10 makes it ten times as long
//! (`make fuzz`), KEELSON_FUZZ_SEED=… begins where another run did.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod chance;
#[allow(dead_code, reason = "written for other tests")]
#[path = "../hostile/guest.rs"]
mod guest;
mod image;
mod mutate;
mod oracle;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chance::Chance;
use keelson::check;
use keelson::limits::PluginLimits;
use keelson::sandbox::{Component, Engine, Rendered};
use mutate::Artifact;
use world::World;

const OUTPUTS: u64 = 100_000;
const COMPONENTS: u64 = 10_000;
/// Of one run of the usual length, both tests together.
const CAP: Duration = Duration::from_secs(600);

/// How often each end was met: all of them, or the cases are too tame or too wild.
#[derive(Default)]
struct Ends {
    refused: AtomicUsize,
    violated: AtomicUsize,
    passed: AtomicUsize,
}

impl Ends {
    /// After the sandbox: the checks, and what must hold of whatever they let pass.
    fn hold(&self, world: &World, rendered: Rendered) {
        match check::rendering(rendered, &world.context()) {
            Ok(checked) => {
                oracle::holds(world, checked.into_parts());
                count(&self.passed);
            }
            Err(violation) => {
                assert!(violation.to_string().contains(violation.rule.name()), "{violation}");
                count(&self.violated);
            }
        }
    }

    fn said(&self) -> [usize; 3] {
        [&self.refused, &self.violated, &self.passed].map(|end| end.load(Ordering::Relaxed))
    }
}

fn count(end: &AtomicUsize) {
    end.fetch_add(1, Ordering::Relaxed);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// The corpus's cases of this name, then so many others, on all cores.
fn run(name: &str, count: u64, case: impl Fn(u64) + Sync) {
    let times = number("KEELSON_FUZZ").unwrap_or(1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("KEELSON_FUZZ_SEED").unwrap_or(now.as_secs() << 20);
    let kept: Vec<u64> = include_str!("corpus.txt")
        .lines()
        .filter_map(|line| line.split_once(' ').filter(|(of, _)| *of == name)?.1.parse().ok())
        .collect();
    println!("fuzz: {name}: seed {seed}, {} cases, {} kept ones", count * times, kept.len());
    let began = Instant::now();
    let cap = CAP * u32::try_from(times).unwrap();
    let next = AtomicU64::new(0);
    let all = kept.len() as u64 + count * times;
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= all {
                    return;
                }
                let index = usize::try_from(at).unwrap();
                let seed = kept.get(index).copied().unwrap_or_else(|| seed.wrapping_add(at));
                assert!(began.elapsed() < cap, "{at} of {all} cases in {cap:?}");
                catch_unwind(AssertUnwindSafe(|| case(seed))).unwrap_or_else(|_| {
                    panic!("to have it again: KEELSON_FUZZ_SEED={seed}, or corpus.txt: {name} {seed}")
                });
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    println!("fuzz: {name}: {all} cases in {:?}", began.elapsed());
}

fn engine() -> Engine {
    Engine::new(std::thread::available_parallelism().map_or(1, usize::from)).unwrap()
}

#[test]
fn no_output_passes_that_is_outside_the_grant() {
    let engine = engine();
    let limits = PluginLimits { wall_milliseconds: 60_000, ..PluginLimits::default() };
    let component = engine.compile(&image::guest(), limits).unwrap();
    let (world, ends) = (World::default(), Ends::default());
    run("outputs", OUTPUTS, |seed| {
        let image = image::rendering(&mut Chance::new(seed));
        match component.render(&world::request(&image::encoded(&image))).0 {
            Ok(rendered) => ends.hold(&world, rendered),
            Err(error) => {
                assert!(["OutputInvalid", "OutputTooLarge"].contains(&error.reason()), "{error}");
                count(&ends.refused);
            }
        }
    });
    let said = ends.said();
    println!("fuzz: outputs: refused by the sandbox, by a rule, taken: {said:?}");
    assert!(said.iter().all(|end| *end > said.iter().sum::<usize>() / 50), "too tame or too wild: {said:?}");
}

#[test]
fn no_changed_component_harms_the_host() {
    let engine = engine();
    let healthy = engine.compile(&guest::Guest::default().component(), PluginLimits::default()).unwrap();
    let artifacts = mutate::artifacts();
    let (world, ends, loaded) = (World::default(), Ends::default(), AtomicUsize::new(0));
    // Little of everything: what loops costs a millisecond.
    let limits = PluginLimits { fuel: 2_000_000, wall_milliseconds: 2_000, ..PluginLimits::default() };
    let call = |component: &Component| {
        let _ = component.describe();
        match component.render(&world::request(world::PARENT)).0 {
            Ok(rendered) => ends.hold(&world, rendered),
            Err(_) => count(&ends.refused),
        }
    };
    run("components", COMPONENTS, |seed| {
        let mut chance = Chance::new(seed);
        let Artifact { bytes } = &artifacts[mutate::which(&mut chance, artifacts.len())];
        let bytes = mutate::mutated(&mut chance, bytes);
        match engine.compile(&bytes, limits) {
            Ok(component) => {
                count(&loaded);
                call(&component);
            }
            Err(error) => assert!(!error.reason().is_empty() && !error.to_string().is_empty()),
        }
        if seed % 64 == 0 {
            assert!(healthy.render(&world::request(world::PARENT)).0.is_ok(), "another plugin does not serve any more");
        }
    });
    println!(
        "fuzz: components: {} loaded; refused, by a rule, taken: {:?}",
        loaded.load(Ordering::Relaxed),
        ends.said()
    );
    assert!(loaded.load(Ordering::Relaxed) > 0, "none loads, so none was called");
    assert!(healthy.render(&world::request(world::PARENT)).0.is_ok());
}
