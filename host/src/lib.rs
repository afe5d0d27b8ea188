//! The host of Keelson: watches custom resources, lets sandboxed components
//! render them, and checks, owns, applies, prunes and reports what they render.
//!
//! Modules stand in the order of their layers: each may use those above it,
//! never one below. Inside a layer, files stand in the order of their steps.

pub mod names;
pub mod limits;
pub mod clock;
pub mod metrics;
pub mod cluster;
pub mod sandbox;
pub mod check;
pub mod plugin;
pub mod object;
pub mod app;
