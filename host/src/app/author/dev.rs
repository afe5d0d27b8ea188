//! `keelson dev`: at every change of the source builds, renders, and shows what is rendered otherwise than before.
//!
//! Files are looked at by their times, ten times a second: an author's folder has few, and this way works on every
//! file system, also where a container or a virtual machine sees the files of another.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use anyhow::Context;

use super::super::cli::Exit;
use super::super::cli::author::DevArgs;
use super::super::render::input;
use super::super::said::say_log;
use super::fixture::{self, Fixture};
use super::folder::Folder;
use super::trial::{Judged, Trial, Verdict};
use super::{build, component, shown};
use crate::limits::DEV_POLL;
use crate::plugin::golden::{self, Answer, differences};

/// What builds write, and what is nobody's source.
const NOT_SOURCE: [&str; 4] = ["target", build::OUT, "node_modules", "__pycache__"];

/// Time and size of every source file.
type Seen = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;
/// What each object was rendered to, the last time that it was.
type Rendered = BTreeMap<String, Answer>;

pub fn dev(args: &DevArgs) -> anyhow::Result<Exit> {
    let DevArgs { dir, plugins, once, .. } = args;
    let mut rendered = Rendered::new();
    loop {
        let seen = look(dir, plugins.as_deref())?;
        let started = Instant::now();
        let exit = match round(args, &mut rendered) {
            Ok(failed) if failed > 0 => Exit::Failed,
            Ok(_) => Exit::Ok,
            Err(error) => {
                say(&format!("{error:#}"))?;
                Exit::Failed
            }
        };
        say(&format!("{:.1} s", started.elapsed().as_secs_f64()))?;
        if *once {
            return Ok(exit);
        }
        say(&format!("waits for a change in {}", dir.display()))?;
        await_change(dir, &seen, plugins.as_deref())?;
    }
}

/// Builds and renders once. How many objects have no rendering, or another than their fixture.
fn round(args: &DevArgs, rendered: &mut Rendered) -> anyhow::Result<usize> {
    let DevArgs { dir, filename, plugins, once: _, options } = args;
    let folder = Folder::open(dir)?;
    let component = component::of(&folder, options)?;
    let trial = Trial::start(&component, &folder.document)?;
    let mut objects = fixture::all(&folder.path, &trial.manifest)?;
    for object in
        filename.iter().map(|file| input::read(file)).collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten()
    {
        objects.push(Fixture::without_answer(object, &trial.manifest)?);
    }
    let (mut failed, mut golden) = (0, Vec::new());
    for object in objects {
        let is_fixture = object.answer.is_some();
        let judged = trial.judge(&object);
        judged.log.iter().for_each(|line| say_log(folder.name(), line));
        let passes = tell(&object, &judged, rendered.get(&object.name))?;
        failed += usize::from(!passes);
        if let Some(answer) = judged.given {
            rendered.insert(object.name.clone(), answer.clone());
            if passes && is_fixture {
                golden.push(golden::Fixture { name: object.name, request: object.request, answer });
            }
        }
    }
    if let Some(out) = plugins {
        // With the fixtures that hold: the author sees the others here.
        let sealed = build::sealed(&component, &trial.manifest, golden)?;
        let file = build::write(&folder, &sealed, out)?;
        say(&format!("{} is there", out.join(file).display()))?;
    }
    Ok(failed)
}

/// Against what was rendered before, and what the fixture wants. Whether all is well.
fn tell(object: &Fixture, judged: &Judged, before: Option<&Answer>) -> anyhow::Result<bool> {
    let name = &object.name;
    if let (Some(before), Some(now)) = (before, &judged.given) {
        let found = differences(before, now);
        if !found.is_empty() {
            say(&format!("{name}: is rendered otherwise (- before, + now)"))?;
            write!(std::io::stdout(), "{}", shown::differences(&found))?;
        }
    }
    match &judged.verdict {
        Verdict::Passes => say(&format!("{name}: as its fixture has it"))?,
        Verdict::Unwritten => say(&format!("{name}: rendered"))?,
        Verdict::Differs(found) => {
            say(&format!("{name}: differs from its fixture in {} places", found.len()))?;
            if before.is_none() {
                write!(std::io::stdout(), "{}", shown::differences(found))?;
            }
        }
        Verdict::Unsteady(difference) => {
            say(&format!("{name}: the same request gave two answers: {difference}"))?;
        }
        Verdict::Refused(reason, message) | Verdict::Stopped(reason, message) => {
            say(&format!("{name}: {reason}: {message}"))?;
        }
    }
    Ok(matches!(judged.verdict, Verdict::Passes | Verdict::Unwritten))
}

/// Until the source is another than was `seen`, and stays as it is for one look: editors write in several steps.
fn await_change(dir: &Path, seen: &Seen, plugins: Option<&Path>) -> anyhow::Result<()> {
    let mut last = None;
    loop {
        std::thread::sleep(DEV_POLL);
        let now = look(dir, plugins)?;
        if now != *seen && last.as_ref() == Some(&now) {
            return Ok(());
        }
        last = Some(now);
    }
}

/// What is written for a host is no source, wherever that folder stands.
fn look(dir: &Path, plugins: Option<&Path>) -> anyhow::Result<Seen> {
    let mut seen = Seen::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || NOT_SOURCE.contains(&name.as_str()) || plugins == Some(&entry.path()) {
                continue;
            }
            // One that has just gone is a change as well.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                seen.insert(entry.path(), (metadata.modified().ok(), metadata.len()));
            }
        }
    }
    Ok(seen)
}

fn say(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("write to stdout")
}
