//! `keelson plugin conformance`: what every plugin must keep to, in whatever language, each check by its name.
//!
//! What a plugin renders is held against no grant here: that is `keelson plugin test`, by the folder's own document.

mod parents;

use std::fs;
use std::io::Write;

use anyhow::Context;

use super::super::cli::Exit;
use super::super::cli::author::ConformanceArgs;
use crate::check::{Grant, GrantedDiscriminator, GrantedKind, GrantedParent, GrantedRelated};
use crate::limits::{LOG_LINE_BYTES, PluginLimits};
use crate::plugin::golden::{self, Answer, Fixtures, differences};
use crate::plugin::{PluginError, declare};
use crate::sandbox::{Component, Engine, KindRef, LoadError, Manifest, Request, Usage};

/// In the order in which they are held; where one that others need fails, those are not.
const CHECKS: [(&str, &str); 8] = [
    ("imports", "it imports nothing but what a plugin gets"),
    ("exports", "it exports the contract, with its types"),
    ("manifest", "describe says the same each time, and what can be"),
    ("sections", "what stands beside the code can be read, and agrees with describe"),
    ("fixtures", "each golden fixture gives its answer, twice"),
    ("pure", "the same request gives the same answer, in another engine too"),
    ("garbage", "whatever stands in a spec is an answer or a failure, and never a trap"),
    ("limits", "no call comes near what a call may use"),
];

/// A call may take half of what is allowed: another machine and another object want more.
const SHARE: u64 = 2;

type Held = Result<String, String>;

pub(super) fn conformance(args: &ConformanceArgs) -> anyhow::Result<Exit> {
    let ConformanceArgs { file } = args;
    let bytes = fs::read(file).with_context(|| format!("read {}", file.display()))?;
    let results = hold(&bytes)?;
    let mut out = std::io::stdout().lock();
    let mut failed = 0;
    for (name, what) in CHECKS {
        match results.iter().find(|(held, _)| *held == name) {
            Some((_, Ok(more))) => writeln!(out, "ok    {name}: {what}{more}")?,
            Some((_, Err(problem))) => {
                failed += 1;
                writeln!(out, "FAIL  {name}: {problem}")?;
            }
            None => writeln!(out, "-     {name}: not held, see above")?,
        }
    }
    let passed = results.len() - failed;
    writeln!(out, "{}: {passed} passed, {failed} failed", file.display())?;
    Ok(if failed > 0 { Exit::Failed } else { Exit::Ok })
}

fn hold(bytes: &[u8]) -> anyhow::Result<Vec<(&'static str, Held)>> {
    let limits = PluginLimits::default();
    let mut results = Vec::new();
    let component = match Engine::new(1)?.compile(bytes, limits) {
        Err(error @ LoadError::ImportDenied { .. }) => return Ok(vec![("imports", Err(error.to_string()))]),
        Err(error) => return Ok(vec![("exports", Err(error.to_string()))]),
        Ok(component) => component,
    };
    results.push(("imports", Ok(String::new())));
    results.push(("exports", Ok(format!(", version {}", component.contract_version()))));
    let manifest = match manifest(&component) {
        Ok(manifest) => manifest,
        Err(problem) => {
            results.push(("manifest", Err(problem)));
            return Ok(results);
        }
    };
    results.push(("manifest", Ok(format!(": {} {}", manifest.name, manifest.version))));
    let fixtures = match golden::read(bytes, &manifest) {
        Ok(fixtures) => {
            results.push(("sections", Ok(String::new())));
            results.push(("fixtures", golden(&component, &fixtures)));
            fixtures
        }
        Err(error) => {
            results.push(("sections", Err(error.to_string())));
            Fixtures::new(Vec::new())
        }
    };
    let mut most = Usage::default();
    let requests = parents::of(&manifest, &fixtures);
    let other = Engine::new(1)?.compile(bytes, limits)?;
    results.push(("pure", pure(&component, &other, &requests)));
    results.push(("garbage", garbage(&component, &requests, &mut most)));
    results.push(("limits", within(&most, &limits)));
    Ok(results)
}

/// By a grant of all that it asks for: what it asks for in vain is told.
fn manifest(component: &Component) -> Result<Manifest, String> {
    let told = |error: PluginError| format!("{}: {error}", error.reason());
    let asked = component.describe().0.map_err(|error| told(declare::DeclareError::from(error).into()))?;
    let kind = |KindRef { group, kind, .. }: &KindRef| GrantedKind { group: group.clone(), kind: kind.clone() };
    let everywhere = |KindRef { group, kind, .. }: &KindRef| GrantedRelated {
        group: group.clone(),
        kind: kind.clone(),
        namespaces: vec!["*".to_owned()],
    };
    let serves = asked.serves.iter().map(|one| GrantedParent {
        group: one.group.clone(),
        kind: one.kind.clone(),
        discriminator: one
            .discriminator
            .as_ref()
            .map(|only| GrantedDiscriminator { path: only.path.clone(), value: only.value.clone() }),
    });
    let grant = Grant {
        serves: serves.collect(),
        children: asked.children.iter().map(|child| kind(&child.kind)).collect(),
        related: asked.related.iter().map(everywhere).collect(),
        namespaces: vec!["*".to_owned()],
        ..Grant::default()
    };
    declare::declare(component, &grant).map_err(|error| told(error.into()))
}

fn golden(component: &Component, fixtures: &Fixtures) -> Held {
    golden::run(component, fixtures).map_err(|error| error.to_string())?;
    Ok(match fixtures.fixtures.len() {
        0 => ": it has none".to_owned(),
        count => format!(": {count}"),
    })
}

fn pure(component: &Component, other: &Component, requests: &[(String, Request)]) -> Held {
    for (name, request) in requests {
        let ask = |component: &Component| Answer::told(component, request).0;
        let first = ask(component);
        for again in [ask(component), ask(other)] {
            match (&first, &again) {
                (Ok(first), Ok(again)) => {
                    if let Some(difference) = differences(first, again).into_iter().next() {
                        return Err(format!("{name}: two answers to one request: {difference}"));
                    }
                }
                (Err(first), Err(again)) if first.reason() == again.reason() => {}
                _ => return Err(format!("{name}: an answer, and none, to one request")),
            }
        }
    }
    Ok(format!(": {} requests", requests.len()))
}

fn garbage(component: &Component, requests: &[(String, Request)], most: &mut Usage) -> Held {
    for (name, request) in requests {
        let (answer, usage) = Answer::told(component, request);
        most.fuel = most.fuel.max(usage.fuel);
        most.wall = most.wall.max(usage.wall);
        most.memory_bytes = most.memory_bytes.max(usage.memory_bytes);
        let logged = |usage: &Usage| usage.log.iter().map(|line| line.message.len() + LOG_LINE_BYTES).sum::<usize>();
        if logged(&usage) > logged(most) {
            most.log = usage.log;
        }
        match answer {
            // A spec that is not looked at stands for any.
            Ok(_) => {}
            Err(error) => return Err(format!("{name}: {}: the plugin {error}", error.reason())),
        }
    }
    Ok(format!(": {} requests", requests.len()))
}

fn within(most: &Usage, limits: &PluginLimits) -> Held {
    let told = format!(
        ": at most {} of {} fuel, {} of {} KiB of memory",
        most.fuel,
        limits.fuel,
        most.memory_bytes / 1024,
        limits.memory_bytes() / 1024
    );
    if most.fuel > limits.fuel / SHARE {
        return Err(format!("more than half of the fuel{told}"));
    }
    Ok(told)
}
