//! The bytes of a component, from whatever makes it.

use std::fs;

use anyhow::Context;
use wit_component::ComponentEncoder;

use super::super::cli::author::BuildOptions;
use super::folder::{Folder, Language};
use super::{rust, scripts};
use crate::limits::COMPONENT_BYTES;

/// Without sections of ours.
pub(super) fn of(folder: &Folder, options: &BuildOptions) -> anyhow::Result<Vec<u8>> {
    let bytes = match &options.component {
        Some(file) => fs::read(file).with_context(|| format!("read {}", file.display()))?,
        None => match folder.language()? {
            Language::Rust => rust::build(&folder.path, options)?,
            Language::Python => scripts::python(&folder.path, options)?,
            Language::JavaScript => scripts::javascript(&folder.path, options)?,
        },
    };
    let component = encode(bytes)?;
    let size = component.len();
    anyhow::ensure!(
        size as u64 <= COMPONENT_BYTES,
        "the component has {size} bytes; at most {COMPONENT_BYTES} are read"
    );
    Ok(component)
}

/// A core module with the contract's types in a custom section becomes a component; one that is one already stays.
fn encode(bytes: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    // The preamble's layer: 0 for a core module, 1 for a component.
    if bytes.get(6..8) != Some(&[0, 0]) {
        return Ok(bytes);
    }
    ComponentEncoder::default()
        .module(&bytes)
        .and_then(|encoder| encoder.validate(true).encode())
        .context("it is a core module without the contract's types: does it call keelson_sdk::export!?")
}
