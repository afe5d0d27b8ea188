//! Runs a plugin: engine, limits, one fresh store for each call, and the
//! contract in the host's own types. The only layer that knows wasmtime.

pub mod model;
