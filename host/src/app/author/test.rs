//! `keelson plugin test`: every fixture of the folder, rendered as a host does it.

use std::io::Write;
use std::path::Path;

use super::super::cli::Exit;
use super::super::cli::author::TestArgs;
use super::super::said::say_log;
use super::folder::Folder;
use super::trial::{Judged, Trial, Verdict};
use super::{component, fixture, shown};
use crate::plugin::golden;

/// What became of all of them.
pub(super) struct Tested {
    /// Those that have an answer which holds, for the section.
    pub(super) golden: Vec<golden::Fixture>,
    pub(super) failed: usize,
}

pub(super) fn test(args: TestArgs) -> anyhow::Result<Exit> {
    let TestArgs { dir, update, options } = args;
    let folder = Folder::open(&dir)?;
    let component = component::of(&folder, &options)?;
    let trial = Trial::start(&component, &folder.document)?;
    let mut out = std::io::stdout().lock();
    let Tested { golden, failed } = all(&folder, &trial, update, true, &mut out)?;
    let count = golden.len() + failed;
    let advice = if failed > 0 && !update { "; --update writes what is rendered now" } else { "" };
    writeln!(out, "{count} fixtures: {} passed, {failed} failed{advice}", golden.len())?;
    Ok(if failed > 0 { Exit::Failed } else { Exit::Ok })
}

/// Says of each fixture how it did; of those that pass only if `verbose`.
pub(super) fn all(
    folder: &Folder,
    trial: &Trial,
    update: bool,
    verbose: bool,
    out: &mut dyn Write,
) -> anyhow::Result<Tested> {
    let mut tested = Tested { golden: Vec::new(), failed: 0 };
    for fixture in fixture::all(&folder.path, &trial.manifest)? {
        let Judged { verdict, given, log } = trial.judge(&fixture);
        if verbose || !matches!(verdict, Verdict::Passes) {
            log.iter().for_each(|line| say_log(folder.name(), line));
        }
        let name = &fixture.name;
        let passes = match (verdict, &given) {
            (Verdict::Passes, _) => {
                if verbose {
                    writeln!(out, "{name}: passes")?;
                }
                true
            }
            (Verdict::Unwritten | Verdict::Differs(_), Some(answer)) if update => {
                let file = fixture.update(answer)?;
                writeln!(out, "{name}: written into {}", relative(&file, folder))?;
                true
            }
            (Verdict::Unwritten, _) => {
                writeln!(out, "{name}: has neither children.yaml nor failure.yaml yet")?;
                false
            }
            (Verdict::Differs(found), answer) => {
                let file = answer.as_ref().map(|_| fixture.answer.as_ref().map(|wanted| fixture.file(wanted)));
                let file = file.flatten().map(|file| relative(&file, folder)).unwrap_or_default();
                writeln!(out, "{name}: differs (- {file}, + rendered)")?;
                write!(out, "{}", shown::differences(&found))?;
                false
            }
            (Verdict::Unsteady(difference), _) => {
                writeln!(out, "{name}: the same request gave two answers")?;
                write!(out, "{}", shown::differences(&[*difference]))?;
                false
            }
            (Verdict::Refused(reason, message) | Verdict::Stopped(reason, message), _) => {
                writeln!(out, "{name}: {reason}: {message}")?;
                false
            }
        };
        match given.filter(|_| passes) {
            Some(answer) => {
                let (name, request) = (fixture.name, fixture.request);
                tested.golden.push(golden::Fixture { name, request, answer });
            }
            None => tested.failed += 1,
        }
    }
    Ok(tested)
}

fn relative(file: &Path, folder: &Folder) -> String {
    file.strip_prefix(&folder.path).unwrap_or(file).display().to_string()
}
