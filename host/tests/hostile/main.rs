//! Components that want the host's time, memory or trust: each is stopped for
//! the reason in its row, while a healthy one is served by the same engine.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod cases;
mod guest;
mod world;

use std::time::{Duration, Instant};

use cases::{Case, Limits, Stopped};
use guest::{Guest, Result, ZEROS};
use keelson::limits::{self, PluginLimits};
use keelson::sandbox::{Cache, CallError, Children, Compiler, Component, Engine, Hooks, Request};

fn request() -> Request {
    Request {
        parent: r#"{"apiVersion":"zalando.org/v1","kind":"Database","metadata":{"name":"one"}}"#.into(),
        config: "{}".into(),
        selector_labels: vec![("keelson.dev/instance".into(), "0000".into())],
        children: Vec::new(),
        related: Vec::new(),
        secrets: Vec::new(),
        now: None,
        seed: 1,
    }
}

fn load(engine: &Engine, guest: &Guest) -> Component {
    engine.compile(&guest.component(), PluginLimits::default()).unwrap()
}

fn child(program: &str, cache: Option<Cache>) -> Compiler {
    Compiler::Child { program: program.into(), cache }
}

fn serves(component: &Component) -> std::result::Result<(), String> {
    let rendered = component.render(&request()).0.map_err(|error| error.to_string())?;
    match rendered.into_rendering().children {
        Children::Exactly(children) if children[0].object["kind"] == "Pod" => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// All, those of the virtual world too.
fn table() -> Vec<Case> {
    cases::all().into_iter().chain(world::cases()).collect()
}

fn limits_of(case: &Case) -> PluginLimits {
    let Limits { memory_mib, fuel, wall_milliseconds } = case.limits;
    PluginLimits { memory_mib, fuel, wall_milliseconds, ..PluginLimits::default() }
}

/// Where it was stopped, with which reason and message.
fn stop(engine: &Engine, case: &Case) -> std::result::Result<(&'static str, String, String), String> {
    let component = match engine.compile(&case.bytes, limits_of(case)) {
        Ok(component) => component,
        Err(error) => return Ok(("load", error.reason().into(), error.to_string())),
    };
    let start = Instant::now();
    let (described, _) = component.describe();
    if let Err(error) = described {
        return late(start).map(|()| ("describe", error.reason().into(), error.to_string()));
    }
    let (rendered, usage) = component.render(&request());
    late(start)?;
    if usage.memory_bytes > limits_of(case).memory_bytes() || usage.log.len() > 1000 {
        return Err(format!("used {} bytes, logged {} lines", usage.memory_bytes, usage.log.len()));
    }
    match rendered {
        Err(error) => Ok(("render", error.reason().into(), error.to_string())),
        Ok(_) => Err("was not stopped".into()),
    }
}

/// Whatever it was, it was over soon.
fn late(start: Instant) -> std::result::Result<(), String> {
    let took = start.elapsed();
    if took < Duration::from_secs(20) { Ok(()) } else { Err(format!("took {took:?}")) }
}

#[test]
fn each_is_stopped_while_another_serves() {
    let engine = Engine::new(2).unwrap();
    let healthy = load(&engine, &Guest::default());
    serves(&healthy).unwrap();
    let mut wrong = Vec::new();
    let cases = table();
    for case in &cases {
        let (step, reason, words) = match case.stopped {
            Stopped::Load(reason, words) => ("load", reason, words),
            Stopped::Describe(reason, words) => ("describe", reason, words),
            Stopped::Render(reason, words) => ("render", reason, words),
        };
        let (stopped, served) = std::thread::scope(|scope| {
            let hostile = scope.spawn(|| stop(&engine, case));
            // At least once, and until it is over.
            let mut served = serves(&healthy);
            while served.is_ok() && !hostile.is_finished() {
                served = serves(&healthy);
            }
            (hostile.join().unwrap(), served)
        });
        match stopped {
            Ok(stop) if (stop.0, &*stop.1) == (step, reason) && stop.2.contains(words) => {}
            other => wrong.push(format!("{}: wanted {:?}, got {other:?}", case.name, case.stopped)),
        }
        if let Err(error) = served.and_then(|()| serves(&healthy)) {
            wrong.push(format!("{}: beside it the healthy one failed: {error}", case.name));
        }
    }
    let names: std::collections::BTreeSet<String> = cases.iter().map(Case::slug).collect();
    assert!(names.len() >= 30 && names.len() == cases.len(), "{names:?}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// As `keelson run` compiles.
#[test]
fn a_child_process_compiles_and_refuses_the_same() {
    let engine = Engine::with_compiler(2, child(env!("CARGO_BIN_EXE_keelson"), None)).unwrap();
    let healthy = load(&engine, &Guest::default());
    for case in table() {
        let Stopped::Load(reason, words) = case.stopped else { continue };
        let error = engine.compile(&case.bytes, limits_of(&case)).unwrap_err();
        assert_eq!(error.reason(), reason, "{}: {error}", case.name);
        assert!(error.to_string().contains(words), "{}: {error}", case.name);
    }
    serves(&healthy).unwrap();
    let gone = Engine::with_compiler(1, child("/nowhere/keelson", None)).unwrap();
    let error = gone.compile(&Guest::default().component(), PluginLimits::default()).unwrap_err();
    assert!(error.to_string().contains("the compiler did not start"), "{error}");
}

#[test]
fn a_healthy_one_stays_within_its_limits() {
    let component = load(&Engine::new(1).unwrap(), &Guest::default());
    let (manifest, _) = component.describe();
    assert_eq!(manifest.unwrap().name, "wat");
    let (_, usage) = component.render(&request());
    assert!(usage.memory_bytes >= guest::MEMORY as usize);
    assert!((1..10_000).contains(&usage.fuel), "{}", usage.fuel);
    assert!(usage.log.is_empty());
    assert_eq!((component.contract_version(), component.hooks().finalizer), ("0.1.0", false));
}

#[test]
fn a_quick_call_holds_nobody_up() {
    let engine = Engine::new(1).unwrap();
    let quick =
        || load(&engine, &Guest::default()).render_quickly(&request()).is_some_and(|(result, _)| result.is_ok());
    assert!((0..3).any(|_| quick()), "on a busy machine a tick may strike in between");

    let times = |n: u32, body: &str| {
        format!(
            "(i32.store (i32.const {ZEROS}) (i32.const {n})) (loop $l {body}
               (i32.store (i32.const {ZEROS}) (i32.sub (i32.load (i32.const {ZEROS})) (i32.const 1)))
               (br_if $l (i32.load (i32.const {ZEROS}))))"
        )
    };
    let fill = format!("(memory.fill (i32.const {}) (i32.const 1) (i32.const 2000000))", ZEROS + 8);
    for long in [times(1_000_000, ""), times(1_000, &fill)] {
        let mut guest = Guest::default();
        guest.render = long;
        let limits = PluginLimits { fuel: u64::MAX, wall_milliseconds: 60_000, ..PluginLimits::default() };
        let long = engine.compile(&guest.component(), limits).unwrap();
        let start = Instant::now();
        assert!(long.render_quickly(&request()).is_none());
        late(start).unwrap();
        let (rendered, _) = long.render(&request());
        assert!(rendered.is_ok(), "it has all its limits elsewhere: {:?}", rendered.err());
        assert!(long.render_quickly(&request()).is_none(), "it is not tried again soon");
    }
}

#[test]
fn hooks_are_found_by_their_exports() {
    let component = finalizing("unreachable");
    assert_eq!(component.hooks(), Hooks { finalizer: true, relations: false });
    serves(&component).unwrap();
}

/// The healthy guest with a hook of these instructions.
fn finalizing(body: &str) -> Component {
    let mut guest = Guest::default();
    guest.finalizes(body);
    let bytes = guest::encode(&guest.module(), "plugin-with-finalizer");
    Engine::new(1).unwrap().compile(&bytes, PluginLimits::default()).unwrap()
}

#[test]
fn finalize_has_the_limits_of_render() {
    // All zeros: the children are kept, and it is done.
    let done = finalizing(&format!("(i32.const {ZEROS})")).finalize(&request()).0.unwrap().into_finalization();
    assert_eq!((done.children, done.waiting, done.look_again_after), (Children::Keep, None, None));
    for (body, reason) in [
        ("unreachable", "Trap"),
        ("(loop $l (br $l)) unreachable", "OutOfFuel"),
        ("(drop (memory.grow (i32.const 2000))) unreachable", "OutOfMemory"),
        ("(i32.const -8)", "OutputInvalid"),
    ] {
        let (finalized, usage) = finalizing(body).finalize(&request());
        assert_eq!(finalized.unwrap_err().reason(), reason, "{body}");
        assert!(usage.fuel > 0);
    }
    // Without the hook nothing is called.
    let error = load(&Engine::new(1).unwrap(), &Guest::default()).finalize(&request()).0.unwrap_err();
    assert_eq!(error.reason(), "HostError");
}

#[test]
fn a_failure_is_handed_on() {
    let mut guest = Guest::default();
    guest.returns_failure("VersionUnknown", "spec.version 9 is not known");
    match load(&Engine::new(1).unwrap(), &guest).render(&request()).0 {
        Err(CallError::Failure(failure)) => {
            assert_eq!((&*failure.reason, &*failure.message), ("VersionUnknown", "spec.version 9 is not known"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn keep_and_none_are_no_empty_lists() {
    let engine = Engine::new(1).unwrap();
    for (children, expected) in [(guest::Children::Keep, Children::Keep), (guest::Children::None, Children::None)] {
        let mut guest = Guest::default();
        guest.returns(&Result { children, ..Result::default() });
        let rendered = load(&engine, &guest).render(&request()).0.unwrap();
        assert_eq!(rendered.into_rendering().children, expected);
    }
}

#[test]
fn a_log_is_cut_and_escaped_and_changes_nothing() {
    let mut guest = Guest::default();
    let line = guest.log("\x1b[2J first\nsecond");
    let flood = guest.log([b'x'; 100]);
    guest.render = format!(
        "{line} (loop $l {flood} (local.set $i (i32.add (local.get $i) (i32.const 1)))
           (br_if $l (i32.lt_u (local.get $i) (i32.const 10000))))"
    );
    let component = load(&Engine::new(1).unwrap(), &guest);
    serves(&component).unwrap();
    let log = component.render(&request()).1.log;
    assert_eq!(log[0].message, r"\u{1b}[2J first\nsecond");
    assert!(log.last().unwrap().message.contains("the rest is cut"));
    let bytes: usize = log.iter().map(|line| line.message.len()).sum();
    assert!(bytes < PluginLimits::default().log_bytes() + 200, "{bytes}");
}

#[test]
fn output_up_to_the_limit_is_taken() {
    let mut guest = Guest::default();
    let object = guest.text(format!("{{\"a\":\"{}\"}}", "x".repeat(4096 - 8)));
    guest.returns_children(&vec![object; 256]);
    let rendered = load(&Engine::new(1).unwrap(), &guest).render(&request()).0.unwrap();
    assert!(matches!(rendered.into_rendering().children, Children::Exactly(children) if children.len() == 256));
}

#[test]
fn a_call_begins_with_fresh_memory() {
    // The first call would spoil the result of the second.
    let mut guest = Guest::default();
    guest.post_render = format!("(memory.fill (i32.const 0) (i32.const 255) (i32.const {}))", guest::MEMORY);
    let component = load(&Engine::new(1).unwrap(), &guest);
    for _ in 0..10 {
        serves(&component).unwrap();
    }
}

#[test]
fn the_world_is_linked_whole_and_empty() {
    let component = Engine::new(1).unwrap().compile(&world::explorer(), PluginLimits::default()).unwrap();
    // Made at the beginning of 2026, and then it sleeps for an hour.
    let parent = r#"{"metadata":{"name":"one","creationTimestamp":"2026-01-01T00:00:00Z"}}"#;
    let (rendered, usage) = component.render(&Request { parent: parent.into(), ..request() });
    assert!(rendered.is_ok(), "{:?}", rendered.err());
    assert!(usage.wall < Duration::from_secs(20), "it slept for {:?}", usage.wall);
}

#[test]
fn a_broken_file_never_harms_the_host() {
    let engine = Engine::new(1).unwrap();
    let healthy = load(&engine, &Guest::default());
    let whole = Guest::default().component();
    let limits = PluginLimits { fuel: 1_000_000, wall_milliseconds: 200, ..PluginLimits::default() };
    let mut seed = 0x2545_f491_u32;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed as usize % below
    };
    let mut served = 0;
    for _ in 0..500 {
        let mut bytes = whole.clone();
        for _ in 0..=random(3) {
            let at = 8 + random(bytes.len() - 8);
            bytes[at] = random(256) as u8;
        }
        if let Ok(component) = engine.compile(&bytes, limits) {
            let _ = component.describe();
            served += usize::from(component.render(&request()).0.is_ok());
        }
    }
    assert!(served < 500);
    serves(&healthy).unwrap();
}

#[test]
fn more_calls_than_there_is_room_for_are_the_hosts_fault_and_pass() {
    let engine = Engine::new(1).unwrap();
    let component = load(&engine, &Guest::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    match component.render(&request()).0 {
                        Ok(_) => {}
                        Err(error) => assert_eq!(error.reason(), "HostError", "{error}"),
                    }
                }
            });
        }
    });
    serves(&component).unwrap();
}

/// Runs `obeyed_without_a_pool` in a process that may not reserve much address space.
#[test]
#[cfg(target_os = "linux")]
fn without_address_space_for_a_pool_it_still_serves() {
    let this = std::env::current_exe().unwrap();
    let status = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 3000000 && exec \"$0\" --exact obeyed_without_a_pool --ignored"])
        .arg(this)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "run by without_address_space_for_a_pool_it_still_serves"]
fn obeyed_without_a_pool() {
    let engine = Engine::new(limits::WORKERS).unwrap();
    serves(&load(&engine, &Guest::default())).unwrap();
    let mut greedy = Guest::default();
    greedy.render = "(loop $l (drop (memory.grow (i32.const 1))) (br $l))".into();
    let error = load(&engine, &greedy).render(&request()).0.unwrap_err();
    assert_eq!(error.reason(), "OutOfMemory");
}
