//! `keelson plugin inspect`: what a component is, as far as it can be told before it is trusted.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;
use wit_component::DecodedWasm;

use super::super::cli::Exit;
use super::super::cli::author::{InspectArgs, OutputFormat};
use super::super::said::say;
use super::{document, scripts};
use crate::limits::PluginLimits;
use crate::plugin::golden::{Answer, Fixtures};
use crate::plugin::sections;
use crate::sandbox::{ChildKind, Children, Engine, KindRef, Manifest, Serving};

const CONTRACT: &str = "keelson:operator/";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspected {
    file: PathBuf,
    /// SHA-256, in hex.
    sha256: String,
    bytes: usize,
    /// The version of the contract that it exports.
    contract: Option<String>,
    world: String,
    hooks: Vec<&'static str>,
    imports: Vec<String>,
    exports: Vec<String>,
    manifest: Option<Manifest>,
    /// `section`, or `describe` where it has no section and was asked itself.
    manifest_from: &'static str,
    fixtures: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    name: String,
    /// What it must give, in a word or two.
    answer: String,
}

pub(super) fn inspect(args: InspectArgs) -> anyhow::Result<Exit> {
    let InspectArgs { path, output } = args;
    let (mut found, mut exit) = (Vec::new(), Exit::Ok);
    for file in components(&path)? {
        match one(&file) {
            Ok(inspected) => found.push(inspected),
            Err(error) => {
                say(&format!("{}: {error:#}", file.display()));
                exit = Exit::Failed;
            }
        }
    }
    let mut out = std::io::stdout().lock();
    match output {
        OutputFormat::Text => found.iter().try_for_each(|one| write!(out, "{}", text(one)))?,
        OutputFormat::Json if path.is_dir() => writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?,
        OutputFormat::Json => {
            found
                .iter()
                .try_for_each(|one| writeln!(out, "{}", serde_json::to_string_pretty(one)?).context("write"))?;
        }
    }
    Ok(exit)
}

/// The file, or those of a folder; of an author's folder, what was built in it.
fn components(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let built = path.join(super::build::OUT);
    let folder = if built.is_dir() { &built } else { path };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "wasm") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("{} holds no component: keelson plugin build makes one", folder.display());
    }
    Ok(files)
}

fn one(file: &Path) -> anyhow::Result<Inspected> {
    let bytes = fs::read(file).context("it cannot be read")?;
    let decoded = wit_component::decode(&bytes).context("it is no component")?;
    let DecodedWasm::Component(resolve, world) = decoded else { bail!("it is a WIT package, no component") };
    let world = resolve.worlds.get(world).context("it has no world")?;
    let names = |keys: &mut dyn Iterator<Item = String>| {
        let mut names: Vec<String> = keys.collect();
        names.sort();
        names
    };
    let imports = names(&mut world.imports.keys().map(|key| resolve.name_world_key(key)));
    let exports = names(&mut world.exports.keys().map(|key| resolve.name_world_key(key)));
    let exported = |interface: &str| {
        let prefix = format!("{CONTRACT}{interface}@");
        exports.iter().find_map(|export| export.strip_prefix(prefix.as_str()).map(str::to_owned))
    };
    let hooks: Vec<&str> = ["finalizer", "relations"].into_iter().filter(|hook| exported(hook).is_some()).collect();
    let world = scripts::world_with(exported("relations").is_some(), exported("finalizer").is_some());
    let contract = exported("operator");

    let sections = sections::read(&bytes)?;
    let (manifest, manifest_from) = match sections.manifest {
        Some(written) => {
            let manifest =
                serde_json::from_slice(written).with_context(|| format!("section {}", sections::MANIFEST))?;
            (Some(manifest), "section")
        }
        None => {
            let component = Engine::new(1)?.compile(&bytes, PluginLimits::default());
            let manifest = component.ok().and_then(|component| component.describe().0.ok());
            (manifest, "describe")
        }
    };
    let fixtures = match sections.fixtures {
        Some(section) => Fixtures::parse(section)
            .map_err(|problem| anyhow::anyhow!("the section {} {problem}", sections::FIXTURES))?
            .fixtures
            .into_iter()
            .map(|fixture| Named { name: fixture.name, answer: word(&fixture.answer) })
            .collect(),
        None => Vec::new(),
    };
    let (sha256, size) = (document::digest(&bytes), bytes.len());
    let world = world.to_owned();
    let file = file.to_owned();
    Ok(Inspected {
        file,
        sha256,
        bytes: size,
        contract,
        world,
        hooks,
        imports,
        exports,
        manifest,
        manifest_from,
        fixtures,
    })
}

fn word(answer: &Answer) -> String {
    let children = |children: &Children| match children {
        Children::Keep => "keeps its children".to_owned(),
        Children::None => "no children".to_owned(),
        Children::Exactly(children) if children.len() == 1 => "1 child".to_owned(),
        Children::Exactly(children) => format!("{} children", children.len()),
    };
    match answer {
        Answer::Failure(failure) => format!("failure {}", failure.reason),
        Answer::Rendering(rendering) => children(&rendering.children),
        Answer::Finalization(finalization) => format!("finalizes, {}", children(&finalization.children)),
    }
}

fn text(inspected: &Inspected) -> String {
    let Inspected { file, sha256, bytes, contract, world, hooks, imports, exports, manifest, manifest_from, fixtures } =
        inspected;
    let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join("\n            ") };
    let mut rows = vec![
        ("sha256", sha256.clone()),
        ("size", format!("{bytes} bytes")),
        ("contract", contract.as_ref().map_or("none".to_owned(), |version| format!("{version}, world {world}"))),
        ("hooks", if hooks.is_empty() { "none".to_owned() } else { hooks.join(", ") }),
        ("imports", list(imports)),
        ("exports", list(exports)),
    ];
    match manifest {
        None => rows.push(("manifest", "none: it says nothing of itself".to_owned())),
        Some(Manifest { name, version, serves, children, related, schema, uses_time }) => {
            rows.push(("manifest", format!("{name} {version} (by its {manifest_from})")));
            rows.push(("serves", list(&serves.iter().map(serving).collect::<Vec<_>>())));
            rows.push(("children", list(&children.iter().map(child).collect::<Vec<_>>())));
            rows.push(("related", list(&related.iter().map(kind).collect::<Vec<_>>())));
            rows.push(("schema", if schema.is_some() { "yes" } else { "no" }.to_owned()));
            rows.push(("uses time", if *uses_time { "yes" } else { "no" }.to_owned()));
        }
    }
    let named: Vec<String> = fixtures.iter().map(|Named { name, answer }| format!("{name}: {answer}")).collect();
    rows.push(("fixtures", list(&named)));
    let rows: String = rows.iter().map(|(name, value)| format!("  {name:<10}{value}\n")).collect();
    format!("{}\n{rows}", file.display())
}

fn serving(serving: &Serving) -> String {
    let Serving { group, versions, kind, plural: _, discriminator } = serving;
    let only = discriminator.as_ref().map_or(String::new(), |only| format!(" where {} is {:?}", only.path, only.value));
    format!("{kind}.{group} ({}){only}", versions.join(", "))
}

fn child(child: &ChildKind) -> String {
    let seen = if child.observe.is_empty() { String::new() } else { format!(", sees {}", child.observe.join(", ")) };
    format!("{}{seen}", kind(&child.kind))
}

fn kind(KindRef { group, version, kind, plural: _ }: &KindRef) -> String {
    if group.is_empty() { format!("{kind} ({version})") } else { format!("{kind}.{group} ({version})") }
}
