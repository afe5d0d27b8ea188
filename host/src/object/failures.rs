//! The last calls of each plugin that came to nothing, as bundles: for whoever
//! asks later why. Capped by number and by bytes; an object has one for each
//! reason, its last.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::limits::{FAILURES, FAILURES_BYTES};
use crate::plugin::bundle::Bundle;

#[derive(Default)]
pub(crate) struct Failures {
    plugins: Mutex<HashMap<String, VecDeque<Kept>>>,
}

struct Kept {
    uid: String,
    reason: String,
    text: Box<RawValue>,
}

impl Failures {
    /// One that is too large alone is kept without what the plugin gave.
    pub(crate) fn keep(&self, mut bundle: Bundle) {
        let told = bundle.outcome.stopped.as_ref().or(bundle.outcome.refused.as_ref());
        let reason = told.map_or_else(String::new, |told| told.reason.clone());
        let (plugin, uid) = (bundle.plugin.name.clone(), bundle.parent.uid.clone());
        let text = |bundle: &Bundle| serde_json::value::to_raw_value(bundle).ok();
        let mut written = text(&bundle);
        if written.as_ref().is_some_and(|text| text.get().len() > FAILURES_BYTES) {
            bundle.outcome.answer = None;
            written = text(&bundle);
        }
        let Some(text) = written.filter(|text| text.get().len() <= FAILURES_BYTES) else { return };
        let mut plugins = self.plugins.lock();
        let ring = plugins.entry(plugin).or_default();
        ring.retain(|kept| kept.uid != uid || kept.reason != reason);
        ring.push_back(Kept { uid, reason, text });
        while ring.len() > FAILURES || ring.iter().map(|kept| kept.text.get().len()).sum::<usize>() > FAILURES_BYTES {
            ring.pop_front();
        }
    }

    /// The last first.
    pub(crate) fn of(&self, plugin: &str) -> Vec<Box<RawValue>> {
        let plugins = self.plugins.lock();
        plugins.get(plugin).into_iter().flatten().rev().map(|kept| kept.text.clone()).collect()
    }

    /// Those of plugins that serve no more go.
    pub(crate) fn retain<'a>(&self, plugins: impl Iterator<Item = &'a str>) {
        let serve: Vec<&str> = plugins.collect();
        self.plugins.lock().retain(|plugin, _| serve.contains(&plugin.as_str()));
    }
}
