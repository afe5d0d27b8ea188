//! How many objects each plugin serves.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// By plugin name.
#[derive(Default)]
pub(crate) struct Census {
    counts: Mutex<HashMap<Arc<str>, u64>>,
}

impl Census {
    /// An object is served by `now`, and was by `known`, which is made the same.
    pub(crate) fn count(&self, known: &mut Option<Arc<str>>, now: Option<&str>) {
        if known.as_deref() == now {
            return;
        }
        let mut counts = self.counts.lock();
        if let Some(count) = known.take().and_then(|plugin| counts.get_mut(&plugin)) {
            *count = count.saturating_sub(1);
        }
        if let Some(now) = now {
            let name = counts.get_key_value(now).map_or_else(|| now.into(), |(name, _)| Arc::clone(name));
            *counts.entry(Arc::clone(&name)).or_default() += 1;
            *known = Some(name);
        }
    }

    pub(crate) fn of(&self, plugin: &str) -> u64 {
        self.counts.lock().get(plugin).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_counts_once_for_whoever_serves_it_now() {
        let census = Census::default();
        let (mut one, mut other) = (None, None);
        census.count(&mut one, Some("a"));
        census.count(&mut one, Some("a"));
        census.count(&mut other, Some("a"));
        assert_eq!(census.of("a"), 2);
        census.count(&mut one, Some("b"));
        census.count(&mut other, None);
        assert_eq!((census.of("a"), census.of("b"), other), (0, 1, None));
    }
}
