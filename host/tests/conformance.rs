//! The built plugins against the world of the contract, by the tools of the
//! component model and not by our own host.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use wit_parser::Resolve;

fn plugins() -> Vec<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins");
    let folder = std::env::var_os("KEELSON_PLUGINS").map_or(default, PathBuf::from);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}: make build", folder.display()));
    let files = files.map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "wasm")).collect()
}

fn conforms(component: &[u8]) -> anyhow::Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/operator-0.1.0"))?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    wit_component::targets(&resolve, world, component)
}

#[test]
fn built_plugins_conform_to_the_world() {
    let plugins = plugins();
    assert!(plugins.len() >= 2, "{plugins:?}");
    for plugin in plugins {
        let bytes = std::fs::read(&plugin).unwrap();
        conforms(&bytes).unwrap_or_else(|error| panic!("{}: {error:#}", plugin.display()));
    }
}

#[test]
fn what_exports_nothing_does_not_conform() {
    assert!(conforms(&wat::parse_str("(component)").unwrap()).is_err());
}
