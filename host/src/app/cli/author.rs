//! Flags of the author's commands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum AuthorCommand {
    /// Build the plugin of a folder: its component and Plugin document.
    ///
    /// What stands in the folder says how: Cargo.toml (cargo, or cargo-component), app.py (componentize-py),
    /// app.js (componentize-qjs). The component gets two sections: its manifest and its golden fixtures, which a
    /// host runs before the plugin serves. So fixtures that fail stop the build.
    Build(BuildArgs),
    /// Render the fixtures of a plugin, by the sandbox and the checks of a host, and show what differs.
    Test(TestArgs),
}

/// How a component comes to be.
#[derive(Clone, Debug, Default, Args)]
pub struct BuildOptions {
    /// Take this component (or core module of cargo's) and build nothing.
    #[arg(long, value_name = "FILE")]
    pub component: Option<PathBuf>,
    /// Rust: what builds it. Else `via` of [package.metadata.keelson] in Cargo.toml.
    #[arg(long, value_enum)]
    pub via: Option<Via>,
    /// Rust: the target. Else `target` of [package.metadata.keelson], else wasm32-unknown-unknown.
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// Python, JavaScript: the contract's world, where it does not show in the source.
    #[arg(long, value_name = "NAME")]
    pub world: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Via {
    Cargo,
    CargoComponent,
}

#[derive(Clone, Debug, Args)]
pub struct BuildArgs {
    /// The plugin's folder.
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Where NAME.wasm and NAME.yaml go, a folder for `keelson run --plugins`; DIR/out if not given.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only the component: nothing is run, and it gets no sections.
    #[arg(long)]
    pub bare: bool,
    #[command(flatten)]
    pub options: BuildOptions,
}

#[derive(Clone, Debug, Args)]
pub struct TestArgs {
    /// The plugin's folder.
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Write what is rendered now into the fixtures that differ.
    #[arg(long)]
    pub update: bool,
    #[command(flatten)]
    pub options: BuildOptions,
}
