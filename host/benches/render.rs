//! A whole render of the mongo plugin, each in a sandbox of its own, and the same
//! code run natively by a program of the plugins' workspace.
//! Wants the built plugins, in KEELSON_PLUGINS or beside the bench.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use keelson::limits::{PluginLimits, WORKERS};
use keelson::sandbox::{Engine, Request};

const PARENT: &str = r#"{"apiVersion":"zalando.org/v1","kind":"Database","metadata":{"name":"mongo-db","namespace":"default","uid":"11111111-2222-4333-8444-555555555555","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"type":"mongo"}}"#;

fn request() -> Request {
    Request {
        parent: PARENT.into(),
        config: "{}".into(),
        selector_labels: vec![("keelson.dev/instance".into(), "11111111-2222-4333-8444-555555555555".into())],
        children: Vec::new(),
        related: Vec::new(),
        secrets: Vec::new(),
        now: None,
        seed: 1,
    }
}

fn render(criterion: &mut Criterion) {
    let target = target();
    let plugins = std::env::var_os("KEELSON_PLUGINS").map_or_else(|| target.join("plugins"), PathBuf::from);
    let path = plugins.join("mongo.wasm");
    let wasm = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; make build", path.display()));
    let engine = Engine::new(WORKERS).unwrap();
    let component = engine.compile(&wasm, PluginLimits::default()).unwrap();
    let request = request();
    let mut native = Native::start(&target);

    let mut group = criterion.benchmark_group("render mongo");
    group.measurement_time(Duration::from_secs(3)).sample_size(50);
    group.bench_function("in a fresh sandbox", |bencher| {
        bencher.iter(|| component.render(&request).0.unwrap());
    });
    group.bench_function("natively", |bencher| bencher.iter_custom(|times| native.render(times)));
    group.finish();
    let mut group = criterion.benchmark_group("compile mongo");
    group.sample_size(10);
    group.bench_function("in this process", |bencher| {
        bencher.iter(|| engine.compile(&wasm, PluginLimits::default()).unwrap());
    });
}

/// The bench is TARGET/release/deps/render-*.
fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}

struct Native {
    process: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Native {
    fn start(target: &Path) -> Self {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
        let version = Command::new("rustc").arg("-vV").output().unwrap().stdout;
        let version = String::from_utf8(version).unwrap();
        let triple = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let guests = target.join("guests");
        let built = Command::new(env!("CARGO"))
            .current_dir(workspace)
            .args(["build", "--release", "--quiet", "--package", "mongo", "--example", "native", "--target", triple])
            .arg("--target-dir")
            .arg(&guests)
            .status();
        assert!(built.unwrap().success());
        let mut process = Command::new(guests.join(triple).join("release/examples/native"))
            .arg(PARENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (ask, answer) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, ask, answer: BufReader::new(answer) }
    }

    fn render(&mut self, times: u64) -> Duration {
        writeln!(self.ask, "{times}").unwrap();
        let mut line = String::new();
        self.answer.read_line(&mut line).unwrap();
        Duration::from_nanos(line.trim().parse().unwrap())
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

criterion_group!(benches, render);
criterion_main!(benches);
