//! `keelson crd`.

use std::io::Write;

use anyhow::Context;

use super::cli::Exit;
use crate::plugin;

pub fn print() -> anyhow::Result<Exit> {
    let text = plugin::crd::crd().context("write the CustomResourceDefinition as YAML")?;
    std::io::stdout().write_all(text.as_bytes()).context("write to stdout")?;
    Ok(Exit::Ok)
}
