//! Flags, environment and exit codes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::check::syntax;
use crate::limits;

/// How a command ends. Also in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Ok = 0,
    /// `render`: the plugin or the checks refused an object. Else: the command failed.
    Failed = 1,
    /// Flags that are not known, or input that cannot be read. (clap ends with 2 as well.)
    Usage = 2,
    /// The plugin folder has no plugin that serves the object, or it did not load.
    NoPlugin = 3,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  render: the plugin or the checks refused an object; else: the command failed
  2  unknown flags, or input that cannot be read
  3  the plugin folder has no plugin that serves the object, or it did not load";

/// Runs Kubernetes operators that are sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "keelson", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the plugins of a folder in a cluster, until SIGTERM.
    ///
    /// The cluster is that of KUBECONFIG, or else the one that this runs in.
    Run(RunArgs),
    /// Print what would be made for objects, without a cluster.
    ///
    /// The same render and the same checks as in a cluster. Children go to
    /// stdout as YAML, what the plugin logs and what is refused to stderr.
    /// A Secret that the host would generate is told in a comment.
    #[command(after_help = EXIT_CODES)]
    Render(RenderArgs),
    /// Print the CustomResourceDefinition of the host's own kind, Plugin.
    Crd,
    /// What the host compiles components with; not for people.
    #[command(name = crate::sandbox::compiler::CHILD_COMMAND, hide = true)]
    CompileComponent { kind: String },
    /// Work on plugin folders.
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
}

#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Copy the plugins of one folder into another, so that a reader of it
    /// never sees half a file. What else is in there stays.
    #[command(after_help = EXIT_CODES)]
    Copy(CopyArgs),
}

#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Folder of Plugin documents (NAME.yaml) and their components (NAME.wasm).
    #[arg(long, value_name = "DIR")]
    pub plugins: PathBuf,
    /// Context of the kubeconfig; its current one if not given.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Where /healthz, /readyz and /metrics are served. Port 0 takes a free one, which is logged.
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:8080")]
    pub probe_address: SocketAddr,
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// A level (error, warn, info, debug, trace), or a filter such as `info,keelson::cluster=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub log_level: String,
    /// Objects in work at one time.
    #[arg(long, value_name = "N", default_value_t = limits::WORKERS, value_parser = workers)]
    pub workers: usize,
    /// Namespaces to serve, with commas between; empty is all.
    #[arg(long, value_name = "NAMES", env = "WATCH_NAMESPACE", default_value = "", value_parser = namespaces)]
    pub watch_namespace: Namespaces,
    /// Serve the namespaces with these labels, such as `team=x,tier in (a,b)`; one that gets them later is served
    /// then, one that loses them is left as it is. Needs list and watch on namespaces; not beside --watch-namespace.
    #[arg(long, value_name = "SELECTOR", value_parser = selector)]
    pub watch_namespace_selector: Option<String>,
    /// Look at every object again after this long, though nothing has changed: 1s to 24h, a tenth less at random.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = resync)]
    pub resync: Duration,
}

#[derive(Clone, Debug, Args)]
pub struct RenderArgs {
    /// YAML or JSON of the objects; `-` is stdin. Several documents, or a List, are each rendered.
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,
    /// Folder of Plugin documents (NAME.yaml) and their components (NAME.wasm).
    #[arg(long, value_name = "DIR")]
    pub plugins: PathBuf,
    /// Print what would be made while the objects wait to be deleted, by plugins that finalize.
    #[arg(long)]
    pub finalize: bool,
}

#[derive(Clone, Debug, Args)]
pub struct CopyArgs {
    /// A plugin folder.
    pub src: PathBuf,
    /// Where its files go; made if it is not there.
    pub dir: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// `WATCH_NAMESPACE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    All,
    /// At least one, in order, each once.
    These(Vec<String>),
}

// === impls ===

impl Namespaces {
    /// Empty: all.
    pub fn names(self) -> Vec<String> {
        match self {
            Self::All => Vec::new(),
            Self::These(names) => names,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}

fn namespaces(text: &str) -> Result<Namespaces, String> {
    let mut names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    if let Some(name) = names.iter().find(|name| !syntax::dns_1123_label(name)) {
        return Err(format!("{name:?} is no name of a namespace"));
    }
    Ok(if names.is_empty() { Namespaces::All } else { Namespaces::These(names) })
}

/// The API server knows the rest of its rules.
fn selector(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("an empty selector would be all namespaces: leave the flag out".to_owned()),
        text => Ok(text.to_owned()),
    }
}

fn resync(text: &str) -> Result<Duration, String> {
    let (least, most) = limits::RESYNC_RANGE;
    let duration = text.parse::<jiff::SignedDuration>().map_err(|_| "must be a duration, such as 90s, 10m or 1h")?;
    let duration = Duration::try_from(duration).unwrap_or_default();
    if duration < least || duration > most {
        return Err(format!("must be {} s to {} h", least.as_secs(), most.as_secs() / 3600));
    }
    Ok(duration)
}

fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=256) => Ok(count),
        _ => Err("must be 1 to 256".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_resync_has_bounds() {
        assert_eq!(resync("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(resync("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(resync("1h"), Ok(limits::RESYNC), "the flag's default and the table say the same");
        for text in ["", "5", "0s", "-1h", "100ms", "25h", "soon"] {
            assert!(resync(text).is_err(), "{text}");
        }
    }

    #[test]
    fn namespaces_are_none_one_or_many() {
        let these = |names: &[&str]| Ok(Namespaces::These(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(namespaces(""), Ok(Namespaces::All));
        assert_eq!(namespaces(" , "), Ok(Namespaces::All));
        assert_eq!(namespaces("b, a,b"), these(&["a", "b"]));
        assert!(namespaces("a,B").unwrap_err().contains("\"B\""));
    }
}
