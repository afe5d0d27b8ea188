//! Whether what plugins read of their objects reaches them: their schemas,
//! held against what the API server publishes, again whenever either is
//! another. Only says: a plugin that does not fit serves on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch as cell;

use crate::clock;
use crate::cluster::{Api, ApiError, ApiErrorKind, Published};
use crate::limits::{SCHEMA_POLL, SCHEMA_RECHECK};
use crate::object::Host;
use crate::plugin::{ParentKind, Plugin, Registry, fit};

/// By plugin, in words; of those alone that do not fit.
pub(crate) type Mismatches = BTreeMap<String, String>;

/// What was held against what, and came to these words; empty where all fits.
struct Held {
    digest: String,
    /// Of each kind and version that it can read, best first.
    marks: Vec<Option<String>>,
    words: String,
}

#[derive(Default)]
struct Schemas {
    held: BTreeMap<String, Held>,
    /// Why nothing can be said, as it was last said.
    trouble: String,
}

/// For ever.
pub(crate) async fn follow(host: Arc<Host>, api: Api, found: cell::Sender<Mismatches>) {
    let (mut changes, mut schemas) = (host.changes(), Schemas::default());
    loop {
        changes.mark_unchanged();
        let trouble = schemas.look(&api, &host.registry()).await.err();
        schemas.say_trouble(trouble.as_ref());
        let now: Mismatches = schemas.mismatches().map(|(name, words)| (name.clone(), words.to_owned())).collect();
        let period = if now.is_empty() { SCHEMA_POLL } else { SCHEMA_RECHECK };
        found.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = clock::sleep(period) => {}
        }
    }
}

impl Schemas {
    /// What cannot be known stays as it was; an error where that is so.
    async fn look(&mut self, api: &Api, registry: &Registry) -> Result<(), ApiError> {
        self.held.retain(|name, _| registry.plugin(name).is_some_and(|plugin| plugin.manifest.schema.is_some()));
        let with_schema =
            || registry.plugins().iter().filter_map(|plugin| Some((plugin, plugin.manifest.schema.as_ref()?)));
        if with_schema().next().is_none() {
            return Ok(());
        }
        let published = api.published().await?;
        let kinds = registry.parent_kinds();
        let mut trouble = Ok(());
        for (plugin, schema) in with_schema() {
            let serves = |kind: &&ParentKind| {
                plugin.manifest.serves.iter().any(|one| one.group == kind.group && one.kind == kind.kind)
            };
            let kinds: Vec<&ParentKind> = kinds.iter().filter(serves).collect();
            let marks = kinds.iter().flat_map(|kind| marks(&published, kind)).collect();
            let known = self.held.get(&plugin.name);
            if known.is_some_and(|held| held.digest == plugin.digest && held.marks == marks) {
                continue;
            }
            let before = known.map(|known| known.words.clone()).unwrap_or_default();
            let words = match of_all(api, &published, &kinds, schema).await {
                Ok(words) => words,
                Err(error) => {
                    let again = !matches!(*error.kind, ApiErrorKind::Decode(_));
                    trouble = Err(error);
                    if again {
                        continue;
                    }
                    // The same answer would be as little use.
                    before.clone()
                }
            };
            say(plugin, &before, &words);
            self.held.insert(plugin.name.clone(), Held { digest: plugin.digest.clone(), marks, words });
        }
        trouble
    }

    fn mismatches(&self) -> impl Iterator<Item = (&String, &str)> {
        let all = self.held.iter().map(|(name, held)| (name, held.words.as_str()));
        all.filter(|(_, words)| !words.is_empty())
    }

    /// Once for each; that the API server does not answer is said by the watches.
    fn say_trouble(&mut self, trouble: Option<&ApiError>) {
        let told = trouble.filter(|error| match &*error.kind {
            // A redirect: of several API servers another knows other schemas; they come to agree.
            ApiErrorKind::Status(refusal) => matches!(refusal.code, 400..500) && refusal.code != 429,
            ApiErrorKind::Decode(_) => true,
            _ => false,
        });
        let words = told.map(ToString::to_string).unwrap_or_default();
        if self.trouble != words && !words.is_empty() {
            tracing::warn!("whether plugins read what the API server prunes is not known: {words}");
        }
        // No answer is no other answer.
        if trouble.is_none() || told.is_some() {
            self.trouble = words;
        }
    }
}

fn marks<'a>(published: &'a Published, kind: &'a ParentKind) -> impl Iterator<Item = Option<String>> + 'a {
    kind.versions.iter().map(|version| published.mark(&kind.group, version).map(str::to_owned))
}

async fn of_all(api: &Api, published: &Published, kinds: &[&ParentKind], schema: &Value) -> Result<String, ApiError> {
    let mut words = Vec::new();
    for kind in kinds {
        words.extend(held_against(api, published, kind, schema).await?);
    }
    Ok(words.join("; "))
}

/// By the version that is watched: the first that is served.
async fn held_against(
    api: &Api,
    published: &Published,
    kind: &ParentKind,
    schema: &Value,
) -> Result<Option<String>, ApiError> {
    let ParentKind { group, versions, kind, plural } = kind;
    for version in versions {
        if let Some(there) = api.published_spec(published, group, version, kind).await? {
            let found = fit::mismatches(schema, &there);
            let name = format!("{plural}.{group} {version}");
            return Ok((!found.is_empty()).then(|| fit::words(&found, &name)));
        }
    }
    Ok(None)
}

fn say(plugin: &Plugin, before: &str, now: &str) {
    let plugin = plugin.name.as_str();
    match (before, now) {
        (before, now) if before == now => {}
        (_, "") => tracing::info!(plugin, "the API server keeps all that it reads"),
        (_, now) => tracing::warn!(plugin, reason = fit::SCHEMA_MISMATCH, "serving, with less than it reads: {now}"),
    }
}
