//! Compiling in a child process of this same program, so that what a compiler
//! needs (a hundred times the component, now and then) is given back to the
//! machine and not kept by a host that runs for months.
//!
//! The child reads the component from stdin and answers on stdout: one byte,
//! then the compiled form or the error. It has no environment, and ends itself
//! when it takes too long.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::engine::{self, Compiler, Engine};
use super::model::LoadError;
use crate::limits;

/// The hidden command that a child is started with.
pub const CHILD_COMMAND: &str = "compile-component";
const COMPILED: u8 = b'C';
const INVALID: u8 = b'I';
const FAILED: u8 = b'F';

/// Blocks until it is done.
pub(super) fn compile(engine: &Engine, bytes: &[u8]) -> Result<wasmtime::component::Component, LoadError> {
    match engine.compiler() {
        Compiler::Here => {
            wasmtime::component::Component::from_binary(engine.wasmtime(), bytes).map_err(|error| refusal(&error))
        }
        Compiler::Child(program) => load(engine, &in_child(program, engine.kind(), bytes)?),
    }
}

#[allow(unsafe_code)]
fn load(engine: &Engine, compiled: &[u8]) -> Result<wasmtime::component::Component, LoadError> {
    // SAFETY: these bytes come through a pipe from this very program, which has just made them by
    // `precompile_component`; nobody else can write there, and they were never in a file.
    let component = unsafe { wasmtime::component::Component::deserialize(engine.wasmtime(), compiled) };
    component.map_err(|error| LoadError::CompileFailed(format!("{error:#}")))
}

fn in_child(program: &Path, kind: engine::Kind, bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| LoadError::CompileFailed(format!("{what}: {error}"));
    let mut child = Command::new(program)
        .args([OsStr::new(CHILD_COMMAND), OsStr::new(kind.name())])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| failed("the compiler did not start", &error))?;
    let mut answer = Vec::new();
    // A child that has ended early is told of by its status.
    let sent = child.stdin.take().map(|mut stdin| stdin.write_all(bytes));
    let read = child.stdout.take().map(|mut stdout| stdout.read_to_end(&mut answer));
    let status = child.wait().map_err(|error| failed("the compiler was lost", &error))?;
    if !status.success() {
        return Err(failed("the compiler ended early", &status));
    }
    if let Some(Err(error)) = sent.or(read.map(|read| read.map(drop))) {
        return Err(failed("the compiler was cut off", &error));
    }
    let Some((&first, rest)) = answer.split_first() else {
        return Err(LoadError::CompileFailed("the compiler said nothing".to_owned()));
    };
    let text = || String::from_utf8_lossy(rest).into_owned();
    match first {
        COMPILED => {
            answer.drain(..1);
            Ok(answer)
        }
        INVALID => Err(LoadError::ArtifactInvalid(text())),
        _ => Err(LoadError::CompileFailed(text())),
    }
}

/// The child: from stdin to stdout.
pub fn child(kind: &str) -> std::io::Result<()> {
    std::thread::spawn(|| {
        std::thread::sleep(limits::COMPILE);
        std::process::exit(3);
    });
    let mut bytes = Vec::new();
    std::io::stdin().take(limits::COMPONENT_BYTES + 1).read_to_end(&mut bytes)?;
    let compiled = engine::compiling(engine::Kind::named(kind)).and_then(|engine| engine.precompile_component(&bytes));
    let mut stdout = std::io::stdout().lock();
    match compiled {
        Ok(compiled) => {
            stdout.write_all(&[COMPILED])?;
            stdout.write_all(&compiled)?;
        }
        Err(error) => {
            let (first, text) = match refusal(&error) {
                LoadError::ArtifactInvalid(text) => (INVALID, text),
                LoadError::ImportDenied { .. } | LoadError::CompileFailed(_) => (FAILED, format!("{error:#}")),
            };
            stdout.write_all(&[first])?;
            stdout.write_all(text.as_bytes())?;
        }
    }
    stdout.flush()
}

fn refusal(error: &wasmtime::Error) -> LoadError {
    let mut text = format!("{error:#}");
    if text.contains("component model async") {
        text.push_str("; this host calls plugins without it, build JavaScript with --sync");
    }
    // What the validator says ends in a place in the file.
    if text.contains("(at offset ") { LoadError::ArtifactInvalid(text) } else { LoadError::CompileFailed(text) }
}
