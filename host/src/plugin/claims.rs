//! Who serves which object: pure, and told in one pass over the claims.
//!
//! Two plugins may share a kind only where one value tells which of them serves
//! an object: the same discriminator path, and different values. All else
//! overlaps (a serving without a discriminator claims every object; two paths
//! could both match), and so do different plurals, or versions that have none
//! in common, since a kind is watched once. Claims are added in the order of
//! plugin names: the first keeps its claim. A plugin serves all that it claims
//! or nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::check::GrantedParent;
use crate::sandbox::Serving;

/// A kind to watch, merged over the plugins that serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentKind {
    pub group: String,
    /// What every plugin of this kind can read, best first.
    pub versions: Vec<String>,
    pub kind: String,
    pub plural: String,
}

/// What stands at a JSON pointer of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    Nothing,
    Text(Cow<'a, str>),
    /// Something else: its type, in a word.
    Other(&'static str),
}

impl Found<'_> {
    pub fn of(value: Option<Value>) -> Self {
        match value {
            None | Some(Value::Null) => Found::Nothing,
            Some(Value::String(text)) => Found::Text(Cow::Owned(text)),
            Some(Value::Bool(_)) => Found::Other("a boolean"),
            Some(Value::Number(_)) => Found::Other("a number"),
            Some(Value::Array(_)) => Found::Other("a list"),
            Some(Value::Object(_)) => Found::Other("an object"),
        }
    }
}

/// The answer for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice<S, W> {
    Served(S),
    /// Claimed by a plugin that does not serve.
    Waiting(W),
    Nobody(Refusal),
}

/// Why no plugin is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `InvalidSpec`: the discriminator is missing or no string. `NoPlugin`: nobody serves its value.
    pub reason: &'static str,
    /// JSON pointer; empty where no plugin serves the kind.
    pub path: String,
    pub message: String,
    /// The values that would be served.
    pub allowed: Vec<String>,
}

/// All claims of one registry. `S` stands for a plugin that serves, `W` for one that does not.
#[derive(Debug)]
pub struct Claims<S, W> {
    served: Vec<(Serving, String, S)>,
    waiting: Vec<(GrantedParent, W)>,
    kinds: Vec<ParentKind>,
}

// === impl Claims ===

impl<S, W> Default for Claims<S, W> {
    fn default() -> Self {
        Self { served: Vec::new(), waiting: Vec::new(), kinds: Vec::new() }
    }
}

impl<S: Clone, W: Clone> Claims<S, W> {
    pub fn kinds(&self) -> &[ParentKind] {
        &self.kinds
    }

    /// Kinds that only plugins claim that do not serve; a grant knows no version.
    pub fn unserved_kinds(&self) -> BTreeSet<(String, String)> {
        let all = self.waiting.iter().map(|(claim, _)| (claim.group.clone(), claim.kind.clone()));
        all.filter(|(group, kind)| !self.kinds.iter().any(|one| one.group == *group && one.kind == *kind)).collect()
    }

    /// Takes all claims of a plugin, or none: then the message names the winner.
    pub fn serve(&mut self, plugin: &str, servings: &[Serving], serves: S) -> Result<(), String> {
        for serving in servings {
            for (held, winner, _) in &self.served {
                if let Some(overlap) = overlap(held, serving) {
                    let Serving { group, kind, .. } = serving;
                    return Err(format!("{kind}.{group} is served by plugin {winner}: {overlap}"));
                }
            }
        }
        let mut kinds = self.kinds.clone();
        for serving in servings {
            merge(&mut kinds, serving)?;
        }
        self.kinds = kinds;
        self.served.extend(servings.iter().map(|one| (one.clone(), plugin.to_owned(), serves.clone())));
        Ok(())
    }

    pub fn wait(&mut self, claims: &[GrantedParent], waits: W) {
        self.waiting.extend(claims.iter().map(|one| (one.clone(), waits.clone())));
    }

    /// `find` looks into the object. Whoever serves goes before whoever does not.
    pub fn choose<'a>(&self, group: &str, kind: &str, find: impl Fn(&str) -> Found<'a>) -> Choice<S, W> {
        let is = |path: &str, value: &str| matches!(find(path), Found::Text(text) if text == value);
        let served = self.served.iter().filter(|(one, ..)| one.group == group && one.kind == kind);
        let waiting = self.waiting.iter().filter(|(one, _)| one.group == group && one.kind == kind);
        let (mut path, mut allowed) = (None, BTreeSet::new());
        for (serving, _, plugin) in served {
            match &serving.discriminator {
                Some(one) if !is(&one.path, &one.value) => {
                    path.get_or_insert(one.path.as_str());
                    allowed.insert(one.value.clone());
                }
                _ => return Choice::Served(plugin.clone()),
            }
        }
        for (claim, plugin) in waiting {
            match &claim.discriminator {
                Some(one) if !is(&one.path, &one.value) => {
                    path.get_or_insert(one.path.as_str());
                    allowed.insert(one.value.clone());
                }
                _ => return Choice::Waiting(plugin.clone()),
            }
        }
        let Some(path) = path else {
            let message = format!("no plugin serves {kind} of group {group:?}");
            return Choice::Nobody(Refusal { reason: "NoPlugin", path: String::new(), message, allowed: Vec::new() });
        };
        let (reason, message) = match find(path) {
            Found::Nothing => ("InvalidSpec", format!("{path} is missing")),
            Found::Other(kind) => ("InvalidSpec", format!("{path} must be a string, not {kind}")),
            Found::Text(text) => ("NoPlugin", format!("no plugin serves {path} = {:?}", cut(&text))),
        };
        Choice::Nobody(Refusal { reason, path: path.to_owned(), message, allowed: allowed.into_iter().collect() })
    }
}

/// Why two plugins cannot both serve, if so.
fn overlap(held: &Serving, new: &Serving) -> Option<String> {
    if held.group != new.group || held.kind != new.kind {
        return None;
    }
    match (&held.discriminator, &new.discriminator) {
        (Some(held), Some(new)) if held.path != new.path => {
            Some(format!("it goes by {}, this one by {}; an object could match both", held.path, new.path))
        }
        (Some(held), Some(new)) if held.value != new.value => None,
        (Some(held), Some(_)) => Some(format!("it claims {} = {:?} too", held.path, held.value)),
        (None, _) => Some("it claims every object".to_owned()),
        (Some(_), None) => Some("this one has no discriminator, so claims its objects too".to_owned()),
    }
}

/// Adds a serving to the kinds to watch.
fn merge(kinds: &mut Vec<ParentKind>, serving: &Serving) -> Result<(), String> {
    let Serving { group, versions, kind, plural, discriminator: _ } = serving;
    let Some(known) = kinds.iter_mut().find(|one| one.group == *group && one.kind == *kind) else {
        kinds.push(ParentKind {
            group: group.clone(),
            versions: versions.clone(),
            kind: kind.clone(),
            plural: plural.clone(),
        });
        return Ok(());
    };
    if known.plural != *plural {
        return Err(format!("{kind}.{group} is served as {}, this one calls it {plural}", known.plural));
    }
    let before = known.versions.join(", ");
    known.versions.retain(|version| versions.contains(version));
    if known.versions.is_empty() {
        return Err(format!("{kind}.{group} is served in {before}, this one reads {} only", versions.join(", ")));
    }
    Ok(())
}

/// A user's text, short enough for a message.
fn cut(text: &str) -> String {
    const CHARS: usize = 64;
    let mut short: String = text.chars().take(CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
