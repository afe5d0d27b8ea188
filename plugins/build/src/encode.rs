//! WebAssembly to a component whose imports the host grants.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use wit_component::{ComponentEncoder, DecodedWasm};

/// The contract's own interfaces, in whichever version.
const GRANTED: &str = "keelson:operator/";

/// From a core module with the types in a custom section, or from what is a
/// component already.
pub(crate) fn component(file: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(file)
        .with_context(|| format!("cannot read {}: is the crate named as its folder, and a cdylib?", file.display()))?;
    let component = if wasm_is_component(&bytes) {
        bytes
    } else {
        ComponentEncoder::default()
            .module(&bytes)
            .and_then(|encoder| encoder.validate(true).encode())
            .with_context(|| format!("{} is no plugin: does it call keelson_sdk::export!?", file.display()))?
    };
    ensure_granted(&component).with_context(|| format!("{} would not be served", file.display()))?;
    Ok(component)
}

/// The preamble's layer: 0 for a core module, 1 for a component.
fn wasm_is_component(bytes: &[u8]) -> bool {
    bytes.get(6..8) == Some(&[1, 0])
}

fn ensure_granted(component: &[u8]) -> Result<()> {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component)? else {
        anyhow::bail!("it is a WIT package, not a component");
    };
    let world = resolve.worlds.get(world).context("it has no world")?;
    for (key, _) in &world.imports {
        let import = resolve.name_world_key(key);
        ensure!(
            import.starts_with(GRANTED),
            "it imports {import}, which no plugin gets: build for wasm32-unknown-unknown, and see `cargo tree` for \
             the dependency that asks for it"
        );
    }
    Ok(())
}
