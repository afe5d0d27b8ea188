//! Flags of the author's commands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum AuthorCommand {
    /// Make a folder for a new plugin, which builds, tests and renders at once.
    New(NewArgs),
    /// Build the plugin of a folder: its component and Plugin document.
    ///
    /// What stands in the folder says how: Cargo.toml (cargo, or cargo-component), app.py (componentize-py),
    /// app.js (componentize-qjs). The component gets two sections: its manifest and its golden fixtures, which a
    /// host runs before the plugin serves. So fixtures that fail stop the build.
    Build(BuildArgs),
    /// Render the fixtures of a plugin, by the sandbox and the checks of a host, and show what differs.
    Test(TestArgs),
    /// Say what a component, or each of a folder, is: contract, imports, exports, manifest, fixtures.
    Inspect(InspectArgs),
    /// Hold a component against all that a plugin in any language must keep to.
    Conformance(ConformanceArgs),
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
pub struct NewArgs {
    /// Name of the plugin and of its folder: a DNS label, such as shop.
    pub name: String,
    #[arg(long, value_enum)]
    pub lang: Lang,
    /// API group of the kind that it serves.
    #[arg(long, value_name = "GROUP", default_value = "example.org")]
    pub group: String,
    /// Where the folder is made.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub into: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lang {
    Rust,
    Python,
    Js,
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

#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// A component, or a folder of some.
    pub path: PathBuf,
    #[arg(long, value_enum, default_value = "text")]
    pub output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Text,
    Json,
}

#[derive(Clone, Debug, Args)]
pub struct ConformanceArgs {
    /// The component.
    pub file: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// The plugin's folder.
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Objects to render beside those of the fixtures: YAML or JSON.
    #[arg(short, long, value_name = "FILE")]
    pub filename: Option<PathBuf>,
    /// Put each build into this folder, for a `keelson run --plugins` that watches it.
    #[arg(long, value_name = "DIR")]
    pub plugins: Option<PathBuf>,
    /// Run a host too, on a control plane of its own on this machine, which ends with this command: crd.yaml of the folder, the
    /// objects of --filename and each build are put there. Its programs are looked for in $KUBEBUILDER_ASSETS, else among
    /// those that `make demo` has built.
    #[arg(long, conflicts_with_all = ["plugins", "once"])]
    pub host: bool,
    /// Build and render once, and end.
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub options: BuildOptions,
}
