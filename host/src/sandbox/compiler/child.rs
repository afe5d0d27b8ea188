//! The child that compiles, from both sides of its pipes.
//!
//! It reads the component from stdin and answers on stdout: one byte, then the
//! compiled form or the error. It has no environment and no other descriptor.
//! The parent watches its memory and its time, and ends it; the kernel ends it
//! by its processor time.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::room;
use crate::limits::{self, COMPILE, COMPILE_POLL, COMPILED_BYTES};
use crate::sandbox::engine::{self, Kind};
use crate::sandbox::model::LoadError;

/// The hidden command that a child is started with.
pub const CHILD_COMMAND: &str = "compile-component";
const COMPILED: u8 = b'C';
const INVALID: u8 = b'I';
const FAILED: u8 = b'F';
const MIB: u64 = 1 << 20;

/// Why the parent ended it.
enum Ended {
    Memory { limit: u64 },
    Time,
}

/// The parent: gives it the component and waits for the answer.
pub(super) fn compile(program: &Path, kind: Kind, bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| LoadError::CompileFailed(format!("{what}: {error}"));
    let memory = room::limit();
    let mut child = Command::new(program)
        .args([OsStr::new(CHILD_COMMAND), OsStr::new(kind.name())])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| failed("the compiler did not start", &error))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (sent, read, waited) = std::thread::scope(|scope| {
        // Each on a thread of its own: neither may hold up who watches.
        let sender = scope.spawn(|| stdin.map_or(Ok(()), |mut stdin| stdin.write_all(bytes)));
        let reader = scope.spawn(|| {
            let mut answer = Vec::new();
            let read = stdout.map_or(Ok(0), |stdout| stdout.take(COMPILED_BYTES + 1).read_to_end(&mut answer));
            read.map(|_| answer)
        });
        let waited = watch(&mut child, memory);
        let lost = || std::io::Error::other("a thread was lost");
        (sender.join().unwrap_or_else(|_| Err(lost())), reader.join().unwrap_or_else(|_| Err(lost())), waited)
    });
    let status = waited.map_err(|error| failed("the compiler was lost", &error))?.map_err(|ended| match ended {
        Ended::Memory { limit } => LoadError::CompileFailed(format!(
            "the compiler took more than {} MiB of memory, which is its limit, or all that the container has left",
            limit / MIB
        )),
        Ended::Time => LoadError::CompileFailed(format!("the compiler took longer than {COMPILE:?}")),
    })?;
    if !status.success() {
        return Err(match cpu_limit_reached(status) {
            true => LoadError::CompileFailed(format!("the compiler took more than {COMPILE:?} of processor time")),
            false => failed("the compiler ended early", &status),
        });
    }
    let mut answer = read.map_err(|error| failed("the compiler was cut off", &error))?;
    if answer.len() as u64 > COMPILED_BYTES {
        let limit = COMPILED_BYTES / MIB;
        return Err(LoadError::CompileFailed(format!("its compiled form is larger than {limit} MiB")));
    }
    let Some((&first, rest)) = answer.split_first() else {
        return Err(LoadError::CompileFailed("the compiler said nothing".to_owned()));
    };
    let text = || String::from_utf8_lossy(rest).into_owned();
    match first {
        // What it did not read to its end it cannot have compiled.
        COMPILED => sent.map_err(|error| failed("the compiler was cut off", &error)).map(|()| {
            answer.drain(..1);
            answer
        }),
        INVALID => Err(LoadError::ArtifactInvalid(text())),
        _ => Err(LoadError::CompileFailed(text())),
    }
}

/// Waits for its end, and brings it about where it takes too much. It is reaped in any case.
fn watch(child: &mut Child, memory: u64) -> std::io::Result<Result<ExitStatus, Ended>> {
    let deadline = Instant::now() + COMPILE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ok(status));
        }
        let ended = if resident(child.id()).is_some_and(|bytes| bytes > memory) {
            Some(Ended::Memory { limit: memory })
        } else if Instant::now() >= deadline {
            Some(Ended::Time)
        } else {
            None
        };
        if let Some(ended) = ended {
            child.kill()?;
            child.wait()?;
            return Ok(Err(ended));
        }
        std::thread::sleep(COMPILE_POLL);
    }
}

/// Bytes of memory that it has in hand.
fn resident(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * page_size())
}

#[allow(unsafe_code)]
fn page_size() -> u64 {
    // SAFETY: sysconf takes a number and gives one.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn cpu_limit_reached(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(libc::SIGXCPU)
}

/// The child: from stdin to stdout.
pub fn child(kind: &str) -> std::io::Result<()> {
    confine();
    // The parent ends it at the same time; this is for one whose parent has gone.
    std::thread::spawn(|| {
        std::thread::sleep(COMPILE + Duration::from_secs(1));
        std::process::exit(3);
    });
    let mut bytes = Vec::new();
    std::io::stdin().take(limits::COMPONENT_BYTES + 1).read_to_end(&mut bytes)?;
    let compiled = engine::compiling(Kind::named(kind)).and_then(|engine| engine.precompile_component(&bytes));
    let mut stdout = std::io::stdout().lock();
    match compiled {
        Ok(compiled) => {
            stdout.write_all(&[COMPILED])?;
            stdout.write_all(&compiled)?;
        }
        Err(error) => {
            let (first, text) = match refusal(&error) {
                LoadError::ArtifactInvalid(text) => (INVALID, text),
                _ => (FAILED, format!("{error:#}")),
            };
            stdout.write_all(&[first])?;
            stdout.write_all(text.as_bytes())?;
        }
    }
    stdout.flush()
}

/// Closes what it was left by others, limits its processor time, and stands first where the kernel must end somebody.
#[allow(unsafe_code)]
fn confine() {
    let seconds = COMPILE.as_secs();
    let cpu = libc::rlimit { rlim_cur: seconds, rlim_max: seconds + 1 };
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain system calls at the very start, before a thread or a descriptor of our own is there; the structs
    // outlive the calls. That one fails is no reason to stop: the parent watches as well.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        libc::setrlimit(libc::RLIMIT_CPU, &raw const cpu);
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
    }
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

pub(super) fn refusal(error: &wasmtime::Error) -> LoadError {
    let mut text = format!("{error:#}");
    if text.contains("component model async") {
        text.push_str("; this host calls plugins without it, build JavaScript with --sync");
    }
    // What the validator says ends in a place in the file.
    if text.contains("(at offset ") { LoadError::ArtifactInvalid(text) } else { LoadError::CompileFailed(text) }
}
