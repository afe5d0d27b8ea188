//! From the plugins' sources to a flat folder of plugins.
//!
//! Every folder beside this crate's with a `plugin.yaml` is a plugin; its name
//! is the folder's. All are compiled at once; then `keelson plugin build` makes
//! `NAME.wasm`, a component with its manifest and golden fixtures, and
//! `NAME.yaml`, the Plugin document with the component's sha256 filled in.

mod compile;
mod seal;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use compile::Via;
use std::path::{Path, PathBuf};

#[derive(Parser)]
#[command(about, version)]
struct Arguments {
    /// Where NAME.wasm and NAME.yaml go.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What makes the components.
    #[arg(long, value_enum, default_value_t = Via::Cargo)]
    via: Via,
    /// The workspace of the plugins.
    #[arg(long, value_name = "DIR", default_value_os_t = beside_this_crate())]
    source: PathBuf,
    /// The host's program; the one beside this program if not given.
    #[arg(long, value_name = "FILE", default_value_os_t = seal::beside_this_program())]
    keelson: PathBuf,
}

fn main() -> Result<()> {
    let Arguments { out, via, source, keelson } = Arguments::parse();
    let source = source.canonicalize().with_context(|| format!("no folder of plugins at {}", source.display()))?;
    let names = plugins_in(&source)?;
    let built = compile::build(&source, via)?;
    for name in names {
        let compiled = built.join(format!("{}.wasm", name.replace('-', "_")));
        ensure!(compiled.is_file(), "no {}: is the crate named as its folder, and a cdylib?", compiled.display());
        seal::seal(&keelson, &source.join(&name), &compiled, &out)?;
    }
    Ok(())
}

/// `cargo run` says where this crate is.
fn beside_this_crate() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| "plugins".into(), |crate_| Path::new(&crate_).join(".."))
}

fn plugins_in(source: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(source).with_context(|| format!("cannot read {}", source.display()))? {
        let entry = entry?;
        if entry.path().join("plugin.yaml").is_file() {
            names.push(entry.file_name().into_string().ok().context("a plugin's folder must be named in UTF-8")?);
        }
    }
    ensure!(!names.is_empty(), "no plugin in {}: each is a folder with a plugin.yaml", source.display());
    names.sort();
    Ok(names)
}
