//! `keelson run`: not wired yet.

use super::cli::RunArgs;

pub async fn run(_args: RunArgs) -> anyhow::Result<()> {
    anyhow::bail!("`run` is not there yet")
}
