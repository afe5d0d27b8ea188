//! From bytes to machine code: out of the cache, or in a child process of this
//! same program, so that what a compiler needs (a hundred times the component,
//! now and then) is given back to the machine and not kept by a host that runs
//! for months.
//!
//! ```text
//! cache → room (is there memory?) → child → cache
//! ```
//! One at a time in a process.

mod room;
mod child;

use super::cache::Counts;
use super::engine::{Compiler, Engine};
use super::model::LoadError;

pub use child::{CHILD_COMMAND, child};

/// A component that is compiled, and how large its code is.
pub(super) struct Compiled {
    pub component: wasmtime::component::Component,
    /// Bytes of the compiled form; 0 where it was made in this process.
    pub code_bytes: usize,
}

/// Blocks until it is done.
pub(super) fn compile(engine: &Engine, bytes: &[u8]) -> Result<Compiled, LoadError> {
    let Compiler::Child { program, cache } = engine.compiler() else {
        let component = wasmtime::component::Component::from_binary(engine.wasmtime(), bytes);
        return Ok(Compiled { component: component.map_err(|error| child::refusal(&error))?, code_bytes: 0 });
    };
    let counts = engine.counts();
    let _one_at_a_time = engine.compiling().lock();
    let key = cache.as_ref().map(|cache| (cache, cache.key(&engine.settings(), bytes)));
    if let Some((cache, key)) = &key {
        match cache.read(key) {
            Ok(Some(code)) => match load(engine, &code) {
                Ok(component) => {
                    counts.count_cached();
                    return Ok(Compiled { component, code_bytes: code.len() });
                }
                Err(error) => rebuild(counts, &error.to_string()),
            },
            Ok(None) => {}
            Err(error) => rebuild(counts, &error.to_string()),
        }
    }
    room::check(bytes.len())?;
    let code = child::compile(program, engine.kind(), bytes)?;
    counts.count_compiled();
    let component = load(engine, &code)?;
    if let Some((cache, key)) = &key
        && let Err(error) = cache.write(key, &code)
    {
        tracing::warn!("compiled code is not kept for the next start: {error}");
    }
    Ok(Compiled { component, code_bytes: code.len() })
}

fn rebuild(counts: &Counts, problem: &str) {
    counts.count_rebuilt();
    tracing::warn!("an entry of the compile cache is not used, and made anew: {problem}");
}

#[allow(unsafe_code)]
fn load(engine: &Engine, compiled: &[u8]) -> Result<wasmtime::component::Component, LoadError> {
    // SAFETY: these bytes were made by `precompile_component` of this very program. They come through a pipe from its
    // child, where nobody else can write; or out of the cache, which takes only whole files that this user wrote into a
    // folder where no other may (see `cache`).
    let component = unsafe { wasmtime::component::Component::deserialize(engine.wasmtime(), compiled) };
    component.map_err(|error| LoadError::CompileFailed(format!("{error:#}")))
}
