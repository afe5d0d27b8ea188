//! `keelson plugin diff` and `keelson plugin check`: the whole live fleet
//! rendered with other plugins, or by this host, and what that would change.
//! Nothing is written: the fence is never opened.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::cli::{CheckArgs, DiffArgs, Exit, FleetArgs};
use super::said::say;
use crate::check::GrantedParent;
use crate::cluster::{Api, Fence};
use crate::limits::{RESYNC, SHADOW_PATIENCE, SHADOWED_AT_ONCE, SWAP_PATIENCE};
use crate::metrics::Metrics;
use crate::names;
use crate::object::{self, Change, Effect, Field, Host, Settings, Shadowed, Verdict};
use crate::plugin::access::access;
use crate::plugin::document::{Document, FileSource, OciSource, PluginSpec, Source, Trust, Yes};
use crate::plugin::fetch::Record;
use crate::plugin::source::cluster::{self, Objects};
use crate::plugin::source::hash::sha256;
use crate::plugin::source::oci::{self, Reference};
use crate::plugin::{Registry, Roster, source};
use crate::sandbox::Engine;

/// Characters of a value in a line.
const SHOWN: usize = 100;

/// A Plugin document, and what its image was last resolved to.
struct Given {
    name: String,
    text: String,
    record: Record,
}

/// `keelson plugin diff NAME --to …`
pub(crate) async fn diff(args: DiffArgs) -> anyhow::Result<Exit> {
    let DiffArgs { name, to, fleet } = args;
    let api = connect(&fleet).await?;
    let given = documents(&api, fleet.plugins.as_deref()).await?;
    let Some(Given { text, .. }) = given.iter().find(|given| given.name == name) else {
        let names: Vec<&str> = given.iter().map(|given| given.name.as_str()).collect();
        bail!("there is no Plugin {name}; there are {}", names.join(", "));
    };
    let now = Document::parse(text).with_context(|| format!("Plugin {name}"))?;
    let claims = now.spec.grant.serves.clone();
    let (folder, next) = wanted(&api, now, &to).await?;
    let mut roster = Roster::new(Engine::new(SHADOWED_AT_ONCE)?, folder.as_deref());
    roster.reached(&api);
    roster.put(&next.name, next.text, next.record).await;
    compare(api, Arc::new(roster.registry(None)), &claims, fleet).await
}

/// `keelson plugin check`
pub(crate) async fn check(args: CheckArgs) -> anyhow::Result<Exit> {
    let CheckArgs { fleet } = args;
    let api = connect(&fleet).await?;
    let mut roster = Roster::new(Engine::new(SHADOWED_AT_ONCE)?, fleet.plugins.as_deref());
    roster.reached(&api);
    match &fleet.plugins {
        Some(_) => roster.read_folder(true).await?,
        None => {
            for Given { name, text, record } in documents(&api, None).await? {
                roster.put(&name, text, record).await;
            }
        }
    }
    compare(api, Arc::new(roster.registry(None)), &[], fleet).await
}

async fn connect(fleet: &FleetArgs) -> anyhow::Result<Api> {
    Ok(Api::connect(fleet.context.as_deref(), Fence::shut(), &Metrics::new()).await?)
}

/// Those of a folder, or else of the cluster.
async fn documents(api: &Api, folder: Option<&Path>) -> anyhow::Result<Vec<Given>> {
    if let Some(folder) = folder {
        let given = source::read(folder)?.into_iter().map(|file| {
            let text = file.text.map_err(|error| anyhow::anyhow!("{}: {error}", file.file))?;
            let name = Document::parse(&text).with_context(|| file.file.clone())?.name;
            Ok(Given { name, text, record: Record::default() })
        });
        return given.collect();
    }
    let objects = Arc::new(Objects::default());
    let mut changes = objects.changes();
    let follows = tokio::spawn(cluster::follow(api.clone(), Arc::clone(&objects)));
    let known = async { while !objects.are_known() && changes.changed().await.is_ok() {} };
    let known = timeout(SWAP_PATIENCE, known).await;
    follows.abort();
    if known.is_err() || !objects.are_filled() {
        bail!("the Plugin objects cannot be listed: {}", objects.problem().unwrap_or_else(|| "no answer".to_owned()));
    }
    let given = |object: &Arc<cluster::Object>| Given {
        name: object.name.clone(),
        text: object.text.clone(),
        record: Record { from: object.status.resolved_from.clone(), at: object.status.image.clone() },
    };
    Ok(objects.all().iter().map(given).collect())
}

/// The document with another component, or another document: with the folder that its file is in.
async fn wanted(api: &Api, now: Document, to: &str) -> anyhow::Result<(Option<PathBuf>, Given)> {
    let Document { name, mut spec } = now;
    let file = Path::new(to);
    let folder =
        || file.parent().map(|parent| if parent == Path::new("") { Path::new(".") } else { parent }.to_owned());
    if !file.is_file() {
        if file.extension().is_some_and(|ending| ["wasm", "yaml", "yml", "json"].iter().any(|known| ending == *known)) {
            bail!("there is no file {to}");
        }
        let record = resolve(api, &mut spec, to).await?;
        return Ok((None, Given { text: written(&name, &spec)?, name, record }));
    }
    let bytes = fs::read(file).with_context(|| format!("read {to}"))?;
    if bytes.starts_with(b"\0asm") {
        let path = file.file_name().and_then(|name| name.to_str()).with_context(|| format!("{to} has no name"))?;
        spec.source = Source::File(FileSource { path: path.to_owned() });
        spec.trust = Trust::Sha256(sha256(&bytes));
        return Ok((folder(), Given { text: written(&name, &spec)?, name, record: Record::default() }));
    }
    let text = String::from_utf8(bytes).with_context(|| format!("{to} is neither a component nor a document"))?;
    let next = Document::parse(&text).map_err(|error| anyhow::anyhow!("{to} {error}"))?;
    if next.name != name {
        bail!("{to} is the document of Plugin {}, not of {name}", next.name);
    }
    Ok((folder(), Given { name, text, record: Record::default() }))
}

/// What the tag is now. Credentials are those that the document names.
async fn resolve(api: &Api, spec: &mut PluginSpec, image: &str) -> anyhow::Result<Record> {
    let reference = Reference::parse(image).map_err(|rule| anyhow::anyhow!("{image}: {rule}"))?;
    let source = match &spec.source {
        Source::Oci(source) => OciSource { image: image.to_owned(), ..source.clone() },
        Source::File(_) => {
            OciSource { image: image.to_owned(), pull_secret: None, ca_config_map: None, plain_http: false }
        }
    };
    if let Trust::Sha256(_) = spec.trust {
        say("the document trusts one component by its sha256; for this comparison the image is taken as it is");
        spec.trust = Trust::Unsigned(Yes);
    }
    let digest = match &reference.digest {
        Some(digest) => digest.clone(),
        None => oci::resolve(&reference, &access(Some(api), &source, &reference).await?).await?,
    };
    let record = Record { from: image.to_owned(), at: reference.at(&digest) };
    say(&format!("{image} is {}", record.at));
    spec.source = Source::Oci(source);
    Ok(record)
}

fn written(name: &str, spec: &PluginSpec) -> anyhow::Result<String> {
    let api_version = format!("{}/{}", names::GROUP, names::VERSION);
    let spec = serde_json::to_value(spec).context("write the document")?;
    Ok(json!({"apiVersion": api_version, "kind": "Plugin", "metadata": {"name": name}, "spec": spec}).to_string())
}

async fn compare(
    api: Api,
    registry: Arc<Registry>,
    claims: &[GrantedParent],
    fleet: FleetArgs,
) -> anyhow::Result<Exit> {
    let FleetArgs { plugins: _, context: _, watch_namespace, watch_namespace_selector: namespace_selector } = fleet;
    for problem in registry.problems() {
        say(&format!("plugin {} would not serve: {}: {}", problem.name(), problem.reason, problem.message));
    }
    if registry.plugins().is_empty() || !registry.problems().is_empty() {
        return Ok(Exit::NoPlugin);
    }
    let settings = Settings {
        namespaces: watch_namespace.names(),
        namespace_selector,
        resync: RESYNC,
        renders: SHADOWED_AT_ONCE,
        workers: SHADOWED_AT_ONCE,
        identity: "keelson-diff".to_owned(),
        plugins_may_come: false,
    };
    let host = Arc::new(Host::new(api, registry, settings, Metrics::new()));
    let _watches = object::stand_by(&host);
    if let Err(unmet) = host.filled(SHADOW_PATIENCE).await {
        bail!("not all could be listed: {}", unmet.join("; "));
    }
    let shadowed = host.shadow(claims).await;
    let mut text = String::new();
    shadowed.iter().for_each(|one| tell(&mut text, one));
    let count = Count::of(&shadowed);
    text.push_str(&count.sentence());
    std::io::stdout().write_all(text.as_bytes()).context("write to stdout")?;
    Ok(if count.is_quiet() { Exit::Ok } else { Exit::Failed })
}

/// Objects.
#[derive(Default)]
struct Count {
    all: usize,
    changed: usize,
    /// Of which so many have a child that is deleted and made anew.
    recreated: usize,
    refused: usize,
    /// Of which so many are refused already.
    already: usize,
    unserved: usize,
    unknown: usize,
}

impl Count {
    fn of(shadowed: &[Shadowed]) -> Self {
        let mut count = Self { all: shadowed.len(), ..Self::default() };
        for one in shadowed {
            match &one.verdict {
                Verdict::Same => {}
                Verdict::Changes(changes) => {
                    count.changed += 1;
                    count.recreated += usize::from(changes.iter().any(|change| change.effect == Effect::Recreated));
                }
                Verdict::Refused { already, .. } => {
                    count.refused += 1;
                    count.already += usize::from(*already);
                }
                Verdict::Unknown(_) => count.unknown += 1,
                Verdict::Unserved => count.unserved += 1,
            }
        }
        count
    }

    fn sentence(&self) -> String {
        let Self { all, changed, recreated, refused, already, unserved, unknown } = self;
        let same = all - changed - refused - unserved - unknown;
        format!(
            "{all} objects: {same} as they are, {changed} would change ({recreated} with children made anew), {refused} \
             would be refused ({already} are already), {unserved} would be served no more, {unknown} cannot be told\n"
        )
    }

    fn is_quiet(&self) -> bool {
        self.changed + self.unserved + self.unknown == 0 && self.refused == self.already
    }
}

fn tell(text: &mut String, shadowed: &Shadowed) {
    let Shadowed { object, verdict } = shadowed;
    // Writing to a String cannot fail.
    let _ = match verdict {
        Verdict::Same => return,
        Verdict::Unknown(problem) => writeln!(text, "{object}: cannot be told: {problem}"),
        Verdict::Unserved => writeln!(text, "{object}: would be served no more"),
        Verdict::Refused { reason, message, already } => {
            let words = if *already { "is refused already" } else { "would be refused" };
            writeln!(text, "{object}: {words}: {reason}: {message}")
        }
        Verdict::Changes(changes) => {
            let _ = writeln!(text, "{object}");
            changes.iter().for_each(|change| tell_change(text, change));
            return;
        }
    };
}

fn tell_change(text: &mut String, change: &Change) {
    let Change { child, effect, fields } = change;
    let _ = writeln!(text, "  {child} {}", effect.words());
    for Field { path, stands, rendered } in fields {
        let _ = writeln!(text, "    {path}: {} → {}", shown(stands.as_ref()), shown(rendered.as_ref()));
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
