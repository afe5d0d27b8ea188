//! Flags, environment and exit codes.

pub mod author;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;

use crate::check::syntax;
use crate::cluster::Terms;
use crate::limits;
use crate::names;

/// How a command ends. Also in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Ok = 0,
    /// What was asked of a plugin does not hold. Else: the command failed.
    Failed = 1,
    /// Flags that are not known, or input that cannot be read. (clap ends with 2 as well.)
    Usage = 2,
    /// The plugin folder has no plugin that serves the object, or it did not load.
    NoPlugin = 3,
}

/// Of `run` and `debug`.
const DEBUG_ADDRESS: &str = "127.0.0.1:8081";

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  render, plugin test: the plugin or the checks refused an object, or it is rendered otherwise than its fixture
     has it; plugin conformance: a check failed; else: the command failed
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
    Run(Box<RunArgs>),
    /// Print what would be made for objects, without a cluster.
    ///
    /// The same render and the same checks as in a cluster. Children go to
    /// stdout as YAML, what the plugin logs and what is refused to stderr.
    /// A Secret that the host would generate is told in a comment.
    #[command(after_help = EXIT_CODES)]
    Render(RenderArgs),
    /// Ask a running host what a plugin makes of an object: the exact request, what the plugin logged and used, what it gave and
    /// the rule that refused it, as a bundle for `keelson render --bundle`. No data of a Secret is in it.
    ///
    /// On the host's own machine; in a cluster `kubectl exec -n keelson-system deploy/keelson -- /keelson debug shop/db`.
    Debug(DebugArgs),
    /// While a plugin is written: build at every change, and show what is rendered otherwise.
    #[command(after_help = EXIT_CODES)]
    Dev(author::DevArgs),
    /// Print the CustomResourceDefinition of the host's own kind, Plugin.
    Crd,
    /// What the host compiles components with; not for people.
    #[command(name = crate::sandbox::compiler::CHILD_COMMAND, hide = true)]
    CompileComponent { kind: String },
    /// Write plugins, and work on folders of them.
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
    /// Print the rights that the host needs for the plugins of a folder, and no others: ClusterRoles that aggregate into
    /// the host's, or Roles of one namespace.
    #[command(after_help = EXIT_CODES)]
    Rbac(RbacArgs),
    /// Render every object that a plugin serves with another version of it, by the same checks, and show what would change.
    ///
    /// Reads with your own rights, or those of the context; writes nothing. Ends with 0 where nothing would change, with 1
    /// where an object would change, be refused or be served no more, with 3 where the new version would not serve.
    #[command(after_help = EXIT_CODES)]
    Diff(DiffArgs),
    /// Render every object with the plugins as they are by this program: before a new version of the host is rolled out.
    ///
    /// Reads, and ends, as `keelson plugin diff`.
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Print one CustomResourceDefinition of what several plugins read of one kind, by the schemas of their manifests.
    ///
    /// Fields of all are there, and the field that tells the plugins apart has their values and cannot be changed. A
    /// field that two plugins read as another type is refused. It is a start: descriptions, bounds and rules that
    /// only one of them has are yours to add.
    #[command(after_help = EXIT_CODES)]
    Crd(MergeArgs),
    /// Push a component to a registry, as an OCI image of one layer; prints its digest.
    ///
    /// Credentials are those of the Docker configuration ($DOCKER_CONFIG or ~/.docker); its helpers are not run.
    #[command(after_help = EXIT_CODES)]
    Push(PushArgs),
    /// Pull a component from a registry into a file; prints its digests.
    #[command(after_help = EXIT_CODES)]
    Pull(PullArgs),
    #[command(flatten)]
    Author(author::AuthorCommand),
}

#[derive(Clone, Debug, Args)]
pub struct RbacArgs {
    /// Folder of Plugin documents (NAME.yaml) and their components (NAME.wasm).
    #[arg(long, value_name = "DIR")]
    pub plugins: PathBuf,
    /// Roles for this namespace alone.
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// Of the Plugin.
    pub name: String,
    /// An image, a component (FILE.wasm), or a whole document (FILE.yaml).
    #[arg(long, value_name = "IMAGE|FILE")]
    pub to: String,
    #[command(flatten)]
    pub fleet: FleetArgs,
}

#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub fleet: FleetArgs,
}

#[derive(Clone, Debug, Args)]
pub struct FleetArgs {
    /// Folder of the Plugin documents that serve now; the cluster's Plugin objects if not given.
    #[arg(long, value_name = "DIR")]
    pub plugins: Option<PathBuf>,
    /// Context of the kubeconfig; its current one if not given.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespaces that the host serves, with commas between; empty is all.
    #[arg(long, value_name = "NAMES", env = "WATCH_NAMESPACE", default_value = "", value_parser = namespaces)]
    pub watch_namespace: Namespaces,
    /// As the host has it.
    #[arg(long, value_name = "SELECTOR", value_parser = selector)]
    pub watch_namespace_selector: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct MergeArgs {
    /// Component files (FILE.wasm), or names of plugins of the folder.
    #[arg(required = true, value_name = "PLUGIN")]
    pub parts: Vec<String>,
    /// Folder of Plugin documents (NAME.yaml) and their components (NAME.wasm).
    #[arg(long, value_name = "DIR")]
    pub plugins: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct PushArgs {
    /// REGISTRY/REPOSITORY:TAG
    pub image: String,
    /// The component.
    #[arg(value_name = "FILE.wasm")]
    pub component: PathBuf,
    #[command(flatten)]
    pub registry: RegistryArgs,
}

#[derive(Clone, Debug, Args)]
pub struct PullArgs {
    /// REGISTRY/REPOSITORY:TAG, or @sha256:…
    pub image: String,
    /// Where the component goes.
    #[arg(short, long, value_name = "FILE.wasm")]
    pub output: PathBuf,
    #[command(flatten)]
    pub registry: RegistryArgs,
}

#[derive(Clone, Debug, Args)]
pub struct RegistryArgs {
    /// Speak to the registry without TLS.
    #[arg(long)]
    pub plain_http: bool,
    /// PEM of certificates that are trusted beside the system's.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Folder of Plugin documents (NAME.yaml) and their components (NAME.wasm). Looked at again whenever it changes.
    #[arg(long, value_name = "DIR", required_if_eq_any = [("plugin_source", "volume"), ("plugin_source", "both")])]
    pub plugins: Option<PathBuf>,
    /// Where Plugin documents are found: in the folder, as objects of the cluster, or both; then the folder's goes
    /// before an object of the same name. Objects need get, list and watch on plugins.keelson.dev in the whole cluster.
    #[arg(long, value_name = "WHERE", default_value = "volume")]
    pub plugin_source: PluginSource,
    /// Folder for compiled plugins, so that the next start costs no compile. It must be this user's, or allow this user
    /// to make a folder in it. Without it, or where it cannot be used, each start compiles.
    #[arg(long, value_name = "DIR")]
    pub compile_cache: Option<PathBuf>,
    /// Context of the kubeconfig; its current one if not given.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Where /healthz, /readyz and /metrics are served. Port 0 takes a free one, which is logged.
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:8080")]
    pub probe_address: SocketAddr,
    /// Where `keelson debug` is answered, on a loopback address. Port 0 takes a free one, which is logged.
    #[arg(long, value_name = "ADDR:PORT", default_value = DEBUG_ADDRESS, value_parser = loopback)]
    pub debug_address: SocketAddr,
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
    #[arg(long, value_name = "TIME", default_value_t = Span(limits::RESYNC), value_parser = resync)]
    pub resync: Span,
    #[command(flatten)]
    pub election: ElectionArgs,
}

/// For more than one replica.
#[derive(Clone, Debug, Args)]
pub struct ElectionArgs {
    /// Write only while this host holds a Lease, so that of several hosts one works and the others stand by.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        default_value_t = false, action = ArgAction::Set)]
    pub leader_elect: bool,
    /// Namespace of the Lease; the host's own if not given.
    #[arg(long, value_name = "NAME")]
    pub leader_elect_namespace: Option<String>,
    /// Name of the Lease. Hosts that serve the same objects need the same, hosts of other objects another.
    #[arg(long, value_name = "NAME", default_value = names::LEASE)]
    pub leader_elect_name: String,
    /// How long a standby waits for a leader that says nothing more.
    #[arg(long, value_name = "TIME", default_value_t = Span(limits::LEASE_DURATION))]
    pub leader_elect_lease_duration: Span,
    /// A leader that could not renew its Lease for this long ends; less than the Lease's duration.
    #[arg(long, value_name = "TIME", default_value_t = Span(limits::LEASE_RENEW_DEADLINE))]
    pub leader_elect_renew_deadline: Span,
    /// Time between two renewals, and between two looks of a standby.
    #[arg(long, value_name = "TIME", default_value_t = Span(limits::LEASE_RETRY))]
    pub leader_elect_retry_period: Span,
}

#[derive(Clone, Debug, Args)]
pub struct RenderArgs {
    /// YAML or JSON of the objects; `-` is stdin. Several documents, or a List, are each rendered.
    #[arg(short, long, value_name = "FILE", required_unless_present = "bundle", requires = "plugins")]
    pub filename: Option<PathBuf>,
    /// Folder of Plugin documents (NAME.yaml) and their components (NAME.wasm). For a bundle, its component is looked for here.
    #[arg(long, value_name = "DIR")]
    pub plugins: Option<PathBuf>,
    /// What `keelson debug` gave: the same call is made again. What comes of it goes to stdout; where it is not what the bundle
    /// has, the difference to stderr.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["filename", "related", "finalize"])]
    pub bundle: Option<PathBuf>,
    /// Another component for the bundle's call: does it do better?
    #[arg(long, value_name = "FILE.wasm", requires = "bundle")]
    pub plugin: Option<PathBuf>,
    /// YAML or JSON of objects that stand beside them, for plugins that look at others; what is not in it is absent.
    #[arg(long, value_name = "FILE")]
    pub related: Option<PathBuf>,
    /// Print what would be made while the objects wait to be deleted, by plugins that finalize.
    #[arg(long)]
    pub finalize: bool,
}

#[derive(Clone, Debug, Args)]
pub struct DebugArgs {
    /// NAMESPACE/NAME of an object that a plugin serves.
    #[arg(value_name = "NAMESPACE/NAME", required_unless_present = "failures")]
    pub object: Option<String>,
    /// Of which kind, where there are several of that name.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// The last calls of this plugin that came to nothing instead, the last first, a bundle on each line.
    #[arg(long, value_name = "PLUGIN", conflicts_with = "object")]
    pub failures: Option<String>,
    /// Where the host answers.
    #[arg(long, value_name = "ADDR:PORT", default_value = DEBUG_ADDRESS)]
    pub debug_address: SocketAddr,
}

#[derive(Clone, Debug, Args)]
pub struct CopyArgs {
    /// A plugin folder.
    pub src: PathBuf,
    /// Where its files go; made if it is not there.
    pub dir: PathBuf,
}

/// Where Plugin documents are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PluginSource {
    Volume,
    Cluster,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// A time with its unit: `15s`, `1m30s`, `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

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

impl ElectionArgs {
    /// None where there is no election.
    pub fn terms(&self) -> Result<Option<Terms>, String> {
        let Span(lease) = self.leader_elect_lease_duration;
        let Span(renew) = self.leader_elect_renew_deadline;
        let Span(retry) = self.leader_elect_retry_period;
        self.leader_elect.then(|| Terms::new(lease, renew, retry)).transpose()
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let span: SignedDuration = text.parse().map_err(|error| format!("{error}; wanted is a time such as 15s"))?;
        Duration::try_from(span).map(Self).map_err(|_| "a time cannot be negative".to_owned())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
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

fn resync(text: &str) -> Result<Span, String> {
    let (least, most) = limits::RESYNC_RANGE;
    let span: Span = text.parse()?;
    if span.0 < least || span.0 > most {
        return Err(format!("must be {} s to {} h", least.as_secs(), most.as_secs() / 3600));
    }
    Ok(span)
}

/// Bundles hold what objects hold: they are for this machine, or this Pod, alone.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "wanted is ADDR:PORT".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("must be a loopback address, such as 127.0.0.1".to_owned())
    }
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
    fn an_election_has_times_that_fit() {
        let terms = |flags: &[&str]| {
            let cli = Cli::try_parse_from([&["keelson", "run", "--plugins", "p"], flags].concat()).unwrap();
            let Command::Run(args) = cli.command else { panic!("not run") };
            args.election.terms()
        };
        assert_eq!(terms(&[]), Ok(None));
        assert_eq!(terms(&["--leader-elect=false"]), Ok(None));
        let [lease, renew, retry] = [15, 10, 2].map(Duration::from_secs);
        assert_eq!(terms(&["--leader-elect"]), Ok(Some(Terms::new(lease, renew, retry).unwrap())));
        let words = terms(&["--leader-elect", "--leader-elect-renew-deadline", "20s"]).unwrap_err();
        assert!(words.contains("15s") && words.contains("20s"), "{words}");
        assert!(terms(&["--leader-elect", "--leader-elect-lease-duration", "11500ms"]).is_err());
        assert!(terms(&["--leader-elect", "--leader-elect-retry-period", "6s"]).is_err());
        assert!("-1s".parse::<Span>().is_err() && "15".parse::<Span>().is_err());
        assert_eq!("1m30s".parse::<Span>(), Ok(Span(Duration::from_secs(90))));
    }

    #[test]
    fn a_resync_has_bounds() {
        assert_eq!(resync("90s"), Ok(Span(Duration::from_secs(90))));
        assert_eq!(resync("1h 30m"), Ok(Span(Duration::from_secs(5400))));
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
