//! `keelson plugin push` and `keelson plugin pull`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::cli::{Exit, PullArgs, PushArgs, RegistryArgs};
use crate::plugin::source::oci::push::{self, Interfaces};
use crate::plugin::source::oci::{self, Access, Client, Reference, credentials};
use crate::sandbox;

pub(crate) async fn push(args: PushArgs) -> anyhow::Result<Exit> {
    let PushArgs { image, component, registry } = args;
    let reference = reference(&image)?;
    let Some(tag) = &reference.tag else { bail!("{image}: a push wants a tag") };
    let bytes = fs::read(&component).with_context(|| format!("read {}", component.display()))?;
    let (imports, exports) = sandbox::interfaces(&bytes).with_context(|| component.display().to_string())?;
    let mut client = Client::new(&reference, &access(&registry, &reference)?)?;
    let digest = push::push(&mut client, tag, &bytes, &Interfaces { exports, imports }).await?;
    say(&format!("{}\n", reference.at(&digest)))
}

pub(crate) async fn pull(args: PullArgs) -> anyhow::Result<Exit> {
    let PullArgs { image, output, registry } = args;
    let reference = reference(&image)?;
    let access = access(&registry, &reference)?;
    let digest = oci::resolve(&reference, &access).await?;
    let fetched = oci::fetch(&reference, &digest, false, &access).await?;
    fs::write(&output, &fetched.bytes).with_context(|| format!("write {}", output.display()))?;
    let component = oci::Digest::of(&fetched.bytes);
    say(&format!("{}\ncomponent {component}, {} bytes\n", reference.at(&digest), fetched.bytes.len()))
}

fn reference(image: &str) -> anyhow::Result<Reference> {
    Reference::parse(image).map_err(|rule| anyhow::anyhow!("{image}: {rule}"))
}

/// Of the Docker configuration of whoever calls, without its helpers.
fn access(args: &RegistryArgs, reference: &Reference) -> anyhow::Result<Access> {
    let RegistryArgs { plain_http, ca } = args;
    let ca =
        ca.as_deref().map(|path| fs::read(path).with_context(|| format!("read {}", path.display()))).transpose()?;
    let credentials = match docker_config().filter(|path| path.exists()) {
        None => None,
        Some(path) => {
            let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            let found = credentials::find(&bytes, &reference.registry, &reference.repository);
            found.map_err(|rule| anyhow::anyhow!("{} {rule}", path.display()))?
        }
    };
    Ok(Access { credentials, ca, plain_http: *plain_http })
}

fn docker_config() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".docker")))?;
    Some(folder.join("config.json"))
}

fn say(text: &str) -> anyhow::Result<Exit> {
    std::io::stdout().write_all(text.as_bytes()).context("write to stdout")?;
    Ok(Exit::Ok)
}
