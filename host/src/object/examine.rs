//! What a plugin makes of an object at this moment, as a bundle: the request
//! that a walk would send, sent once more, and nothing written.

use std::sync::Arc;

use tokio::time::timeout;

use super::desk::Examined;
use super::host::Host;
use super::kinds::Kind;
use super::memory::Memory;
use super::parents::{Parent, ParentKey};
use super::queue::Lane;
use super::{ask, dispatch, render};
use crate::limits::DEBUG_PATIENCE;
use crate::plugin::bundle::{self, Bundle};

impl Host {
    /// Of the object of that name, of whichever kind, or of this one. The error is a sentence.
    pub async fn examine(&self, kind: Option<&str>, namespace: &str, name: &str) -> Examined {
        let mut found = self.named(kind, namespace, name);
        let (key, parent) = match (found.pop(), found.len()) {
            (None, _) => return Err(format!("no plugin serves an object {namespace}/{name}, or it is not there")),
            (Some(one), 0) => one,
            (Some(_), _) => return Err(format!("{namespace}/{name} is the name of several; say of which kind")),
        };
        // A host that stands by has no workers, and remembers nothing.
        if !self.api.may_write() {
            return examined(self, &key, &parent, &mut Memory::default()).await;
        }
        let asked = self.desk.ask(&key);
        self.queue.add(key, Lane::Walk);
        match timeout(DEBUG_PATIENCE, asked).await {
            Ok(Ok(examined)) => examined,
            Ok(Err(_)) => Err(format!("{namespace}/{name} has gone meanwhile")),
            Err(_) => Err(format!("{namespace}/{name} was not looked at within {} s", DEBUG_PATIENCE.as_secs())),
        }
    }

    /// Bundles of the last calls of a plugin that came to nothing, the last first, as JSON.
    pub fn failures_of(&self, plugin: &str) -> Vec<Box<serde_json::value::RawValue>> {
        self.failures.of(plugin)
    }

    fn named(&self, kind: Option<&str>, namespace: &str, name: &str) -> Vec<(ParentKey, Arc<Parent>)> {
        let kinds = self.kinds();
        let is = |given: &str, kind: &Kind| {
            given.eq_ignore_ascii_case(&kind.kind)
                || given.eq_ignore_ascii_case(&kind.plural)
                || given.eq_ignore_ascii_case(&kind.name())
        };
        let of_kind = |(index, served): (usize, &Arc<Kind>)| {
            let key = ParentKey { kind: index, namespace: namespace.into(), name: name.into() };
            let parent = self.parents.get(&key).filter(|_| kind.is_none_or(|kind| is(kind, served)))?;
            Some((key, parent))
        };
        kinds.parents.iter().enumerate().filter_map(of_kind).collect()
    }
}

/// Answers whoever asked about this object.
pub(crate) async fn answer(host: &Host, key: &ParentKey, parent: &Parent, memory: &mut Memory) {
    let waiting = host.desk.take(key);
    if waiting.is_empty() {
        return;
    }
    let examined = examined(host, key, parent, memory).await;
    for answer in waiting {
        // Who has gone needs none.
        let _ = answer.send(examined.clone());
    }
}

async fn examined(host: &Host, key: &ParentKey, parent: &Parent, memory: &mut Memory) -> Examined {
    let plugin =
        dispatch::dispatch(&host.registry(), &host.group_of(key), parent).map_err(|error| error.to_string())?;
    let gathered = match ask::gathered(host, &plugin, parent, memory).await {
        Ok(gathered) => gathered,
        Err(error) => return Err(format!("{}: {error}", error.reason(memory))),
    };
    let rules = gathered.rules(&plugin);
    let (of, asked) = (Arc::clone(&plugin), (parent.id.clone(), rules.clone(), gathered.request.clone()));
    let call = move || {
        let (parent, rules, request) = asked;
        bundle::call(&of.component, &of.manifest, &of.name, &parent, &rules, &request)
    };
    let called = render::again(host, &plugin, call).await;
    let called = called.map_err(|_| format!("plugin {} has no room for a call now", plugin.name))?;
    Ok(Bundle::new(&plugin, &parent.id, rules, gathered.request, called))
}
