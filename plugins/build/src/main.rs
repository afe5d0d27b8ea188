//! From the plugins' sources to a flat folder of plugins.
//!
//! Every folder beside this crate's with a `plugin.yaml` is a plugin; its name
//! is the folder's. For each the output has `NAME.wasm`, a component, and
//! `NAME.yaml`, the Plugin document with the component's sha256 filled in.

mod compile;
mod encode;
mod document;

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
}

fn main() -> Result<()> {
    let Arguments { out, via, source } = Arguments::parse();
    let source = source.canonicalize().with_context(|| format!("no folder of plugins at {}", source.display()))?;
    let names = plugins_in(&source)?;
    let built = compile::build(&source, via)?;
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    for name in names {
        let component = encode::component(&built.join(format!("{}.wasm", name.replace('-', "_"))))?;
        let document = document::with_digest(&source.join(&name).join("plugin.yaml"), &component)?;
        // The document last: a host that looks in between finds a digest that
        // does not fit, and keeps what it has.
        replace(&out.join(format!("{name}.wasm")), &component)?;
        replace(&out.join(format!("{name}.yaml")), document.as_bytes())?;
        println!("{:>9} bytes  {}", component.len(), out.join(format!("{name}.wasm")).display());
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

/// Written beside the final name and renamed: nobody sees half a file.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let part = path.with_added_extension("part");
    std::fs::write(&part, content).with_context(|| format!("cannot write {}", part.display()))?;
    std::fs::rename(&part, path).with_context(|| format!("cannot write {}", path.display()))
}
