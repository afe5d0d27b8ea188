//! A plugin whose code is in the cache: from the component's bytes to one that can be called, and its first call.
//! Wants the built plugins, in KEELSON_PLUGINS or beside the bench.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails by panicking")]

use std::path::PathBuf;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use keelson::limits::{PluginLimits, WORKERS};
use keelson::sandbox::{Cache, Compiler, Engine};

/// Milliseconds.
const PROMISE: f64 = 2.0;

fn load(criterion: &mut Criterion) {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let plugins = std::env::var_os("KEELSON_PLUGINS").map_or_else(|| target.join("plugins"), PathBuf::from);
    let path = plugins.join("mongo.wasm");
    let wasm = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; make build", path.display()));
    let folder = target.join("bench-cache");
    std::fs::create_dir_all(&folder).unwrap();
    let program = std::env::var_os("KEELSON_BIN").map_or_else(|| target.join("release/keelson"), PathBuf::from);
    let compiler = Compiler::Child { program, cache: Some(Cache::open(&folder).unwrap()) };
    let engine = Engine::with_compiler(WORKERS, compiler).unwrap();
    engine.compile(&wasm, PluginLimits::default()).unwrap();
    let compiled = engine.counts().compiled();

    let mut group = criterion.benchmark_group("load mongo");
    group.measurement_time(Duration::from_secs(3)).sample_size(50);
    println!("at most {PROMISE} ms are promised");
    group.bench_function("from the cache", |bencher| {
        bencher.iter(|| engine.compile(&wasm, PluginLimits::default()).unwrap());
    });
    group.bench_function("from the cache, and described", |bencher| {
        bencher.iter(|| engine.compile(&wasm, PluginLimits::default()).unwrap().describe().0.unwrap());
    });
    group.finish();
    assert_eq!(engine.counts().compiled(), compiled, "it was compiled again");
}

criterion_group!(benches, load);
criterion_main!(benches);
