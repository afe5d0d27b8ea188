//! From trusted bytes to a component. Slow (about 50 ms for a Rust guest,
//! seconds for Python): never on an async worker, one at a time.

use super::verify::Verified;
use crate::limits::PluginLimits;
use crate::sandbox::{Component, Engine, LoadError};

pub fn compile(engine: &Engine, verified: &Verified, limits: PluginLimits) -> Result<Component, LoadError> {
    engine.compile(verified.bytes(), limits)
}
