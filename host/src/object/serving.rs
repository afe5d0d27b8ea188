//! What is served at this moment: the plugins, the kinds that they need, and
//! what is counted of both. One snapshot; when the plugins change another takes
//! its place, and walks that are under way end on the one they began with.

use std::collections::HashMap;
use std::sync::Arc;

use super::kinds::Kinds;
use super::namespaces::Namespaces;
use crate::metrics::{ControllerMetrics, Metrics, PluginMetrics};
use crate::plugin::Registry;

pub(crate) struct Serving {
    pub registry: Arc<Registry>,
    pub kinds: Arc<Kinds>,
    /// By plugin: the table of kinds from which on all that it observes is kept. Lists that are older lack it.
    pub since: HashMap<String, u64>,
    /// By parent kind.
    pub controllers: Vec<Arc<ControllerMetrics>>,
    pub plugin_metrics: HashMap<String, Arc<PluginMetrics>>,
    /// Where generated Secrets are watched.
    pub secret_namespaces: Vec<String>,
}

impl Serving {
    /// `namespaces` empty: all.
    pub(crate) fn new(
        registry: Arc<Registry>,
        namespaces: &[String],
        served: &Arc<Namespaces>,
        metrics: &Metrics,
    ) -> Self {
        let kinds = Arc::new(Kinds::default().staged(&registry, &registry, namespaces, served));
        Self::of(registry, kinds, HashMap::new(), namespaces, metrics)
    }

    /// As it is, with the kinds that `next` needs beside its own.
    pub(crate) fn staged(&self, next: &Registry, namespaces: &[String], served: &Arc<Namespaces>) -> Self {
        Self {
            registry: Arc::clone(&self.registry),
            kinds: Arc::new(self.kinds.staged(&self.registry, next, namespaces, served)),
            since: self.since.clone(),
            controllers: self.controllers.clone(),
            plugin_metrics: self.plugin_metrics.clone(),
            secret_namespaces: self.secret_namespaces.clone(),
        }
    }

    /// Of what was staged: `next` serves.
    pub(crate) fn settled(
        &self,
        next: Arc<Registry>,
        since: HashMap<String, u64>,
        namespaces: &[String],
        metrics: &Metrics,
    ) -> Self {
        Self::of(next, Arc::clone(&self.kinds), since, namespaces, metrics)
    }

    fn of(
        registry: Arc<Registry>,
        kinds: Arc<Kinds>,
        since: HashMap<String, u64>,
        namespaces: &[String],
        metrics: &Metrics,
    ) -> Self {
        kinds.settle(&registry);
        let plugins = registry.plugins();
        let granted = plugins.iter().flat_map(|plugin| plugin.grant.watch_secrets.clone());
        let mut secret_namespaces: Vec<String> =
            granted.filter(|name| namespaces.is_empty() || namespaces.contains(name)).collect();
        secret_namespaces.sort();
        secret_namespaces.dedup();
        Self {
            controllers: kinds.parents.iter().map(|kind| Arc::new(metrics.controller(&kind.name()))).collect(),
            plugin_metrics: plugins
                .iter()
                .map(|plugin| (plugin.name.clone(), Arc::new(metrics.plugin(&plugin.name))))
                .collect(),
            registry,
            kinds,
            since,
            secret_namespaces,
        }
    }
}
