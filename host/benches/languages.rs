//! One render of a small plugin, everything fresh, in each language that plugins are written in; beside it the mongo plugin
//! as wazero runs it (tests/bench/wazero). Medians, against what is promised.
//! Wants what `make build` and `make languages` have built.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use keelson::limits::{PluginLimits, WORKERS};
use keelson::sandbox::{Engine, Request};

const UID: &str = "11111111-2222-4333-8444-555555555555";

/// Who, its component, the object, and the promise in microseconds.
const LANGUAGES: &[(&str, &str, &str, u64)] = &[
    ("Rust", "plugins/mongo.wasm", r#""type":"mongo""#, 60),
    ("Rust, wasip2", "test-languages/rust-wasip2.wasm", r#""type":"mongo""#, 60),
    ("JavaScript", "test-languages/javascript.wasm", r#""type":"mysql""#, 400),
    ("Python", "test-languages/staticsite/staticsite.wasm", r#""pages":{"index.html":"<h1>Hello</h1>"}"#, 2_000),
];

fn parent(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"zalando.org/v1","kind":"Database","metadata":{{"name":"one","namespace":"default","uid":"{UID}","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"}},"spec":{{{spec}}}}}"#
    )
}

fn render(criterion: &mut Criterion) {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let engine = Engine::new(WORKERS).unwrap();
    let mut group = criterion.benchmark_group("render, everything fresh");
    group.measurement_time(Duration::from_secs(4)).sample_size(40);
    for (language, file, spec, promise) in LANGUAGES {
        let wasm = std::fs::read(target.join(file)).unwrap_or_else(|error| panic!("{file}: {error}; make languages"));
        let component = engine.compile(&wasm, PluginLimits::default()).unwrap();
        let request = Request {
            parent: parent(spec).into(),
            config: "{}".into(),
            selector_labels: vec![("keelson.dev/instance".into(), UID.into())],
            children: Vec::new(),
            related: Vec::new(),
            secrets: Vec::new(),
            now: None,
            seed: 1,
        };
        let (rendered, usage) = component.render(&request);
        rendered.unwrap();
        println!(
            "{language}: {} units of fuel, {} KiB, at most {promise} µs are promised",
            usage.fuel,
            usage.memory_bytes >> 10
        );
        group.bench_function(*language, |bencher| bencher.iter(|| component.render(&request).0.unwrap()));
    }
    let mut flight = Flight::start(&target);
    group.bench_function("Rust, by wazero", |bencher| bencher.iter_custom(|times| flight.render(times)));
    group.finish();
}

/// The mongo plugin as a core module of WASI preview 1, and the program that runs it.
struct Flight {
    process: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Flight {
    fn start(target: &Path) -> Self {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let guests = target.join("guests/flight");
        let built = Command::new(env!("CARGO"))
            .current_dir(repository.join("plugins"))
            .args(["build", "--release", "--quiet", "--locked", "--package", "mongo", "--example", "flight"])
            .args(["--target", "wasm32-wasip1", "--target-dir"])
            .arg(&guests)
            .status();
        assert!(built.unwrap().success());
        let program = Command::new(repository.join("tests/bench/wazero/build.sh")).output().unwrap();
        assert!(program.status.success(), "{}", String::from_utf8_lossy(&program.stderr));
        let program = PathBuf::from(String::from_utf8(program.stdout).unwrap().trim());
        let mut process = Command::new(program)
            .arg(guests.join("wasm32-wasip1/release/examples/flight.wasm"))
            .arg(parent(r#""type":"mongo""#))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (ask, answer) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, ask, answer }
    }

    fn render(&mut self, times: u64) -> Duration {
        writeln!(self.ask, "{times}").unwrap();
        let mut line = String::new();
        self.answer.read_line(&mut line).unwrap();
        Duration::from_nanos(line.trim().parse().unwrap_or_else(|_| panic!("wazero says {line:?}")))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

criterion_group!(benches, render);
criterion_main!(benches);
