//! `keelson run`: wires both walks and stays until it is told to end.
//!
//! The plugins are loaded first, the API server may come later: the host is
//! alive from the start and ready when it has seen all that it needs.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use super::cli::{PluginSource, RunArgs, Span};
use super::lead::{self, Signals};
use super::plugins::{Plugins, Scope};
use super::probes::{self, Readiness};
use super::{access, debug};
use crate::cluster::{Api, Candidate, Fence};
use crate::metrics::Metrics;
use crate::object::{Host, Settings};
use crate::sandbox::{Cache, Compiler, Engine};

/// Returns at SIGTERM or SIGINT, at once: whatever was under way is completed
/// by the next host. An error where the lease is lost.
pub async fn run(args: RunArgs) -> anyhow::Result<()> {
    let RunArgs {
        plugins: folder,
        plugin_source,
        compile_cache,
        context,
        probe_address,
        debug_address,
        workers,
        watch_namespace,
        watch_namespace_selector: namespace_selector,
        resync: Span(resync),
        election,
        log_format: _,
        log_level: _,
    } = args;
    let namespaces = watch_namespace.names();
    if namespace_selector.is_some() && !namespaces.is_empty() {
        anyhow::bail!(
            "--watch-namespace-selector and WATCH_NAMESPACE are both given: name the namespaces, or select them"
        );
    }
    let terms = election.terms().map_err(anyhow::Error::msg).context("leader election")?;
    let mut signals = Signals::catch()?;
    let metrics = Metrics::new();
    let readiness = Readiness::unmet("the plugins are being loaded");
    let encode = {
        let metrics = metrics.clone();
        move || metrics.encode()
    };
    probes::serve(probe_address, encode, readiness.clone()).await?;
    let start = async {
        let renders = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
        let compiler = Compiler::child_of_this_program(compile_cache.as_deref().and_then(cache));
        let engine = Engine::with_compiler(renders, compiler).context("the sandbox cannot be set up")?;
        // Before it may lead: a plugin that does not load is no reason for a pause.
        let objects = plugin_source != PluginSource::Volume;
        let mut plugins = Plugins::new(engine, folder.as_deref(), plugin_source, &metrics);
        plugins.read_folder().await?;
        let fence = if terms.is_some() { Fence::shut() } else { Fence::open() };
        let api = Api::connect(context.as_deref(), fence, &metrics).await?;
        tracing::info!(
            server = api.server(),
            namespaces = scope(&namespaces, namespace_selector.as_deref()),
            "serving"
        );
        plugins.reached(&api);
        if objects {
            plugins.read_objects(&api).await;
        }
        let registry = plugins.registry(None);
        let rights = Scope { namespaces: namespaces.clone(), selects_namespaces: namespace_selector.is_some() };
        let candidate = terms.map(|terms| {
            let namespace = election.leader_elect_namespace.as_deref().unwrap_or(api.default_namespace());
            Candidate::new(api.clone(), namespace, &election.leader_elect_name, process(), terms)
        });
        let identity = identity();
        let settings =
            Settings { namespaces, namespace_selector, resync, renders, workers, identity, plugins_may_come: objects };
        let host = Arc::new(Host::new(api.clone(), Arc::clone(&registry), settings, metrics));
        tokio::spawn({
            let host = Arc::clone(&host);
            async move {
                if let Err(error) = debug::serve(debug_address, host).await {
                    tracing::warn!("keelson debug is not answered: {error:#}");
                }
            }
        });
        let keeps = tokio::spawn({
            let host = Arc::clone(&host);
            async move {
                access::say_what_is_missing(&api, &registry, &rights.namespaces, rights.selects_namespaces).await;
                plugins.follow(host, api, rights).await;
            }
        });
        anyhow::Ok((host, candidate, keeps))
    };
    let (host, candidate, keeps) = tokio::select! {
        started = start => started?,
        () = signals.end() => return Ok(()),
    };
    let end = tokio::select! {
        end = lead::serve(&host, workers, candidate, &readiness, &mut signals) => end,
        fault = keeps => Err(anyhow::anyhow!("the plugins are not followed any more: {fault:?}")),
    };
    if let Err(error) = &end {
        tracing::error!("ending: {error:#}");
    }
    end
}

/// One that cannot be used costs a compile at each start, and nothing else.
fn cache(folder: &Path) -> Option<Cache> {
    match Cache::open(folder) {
        Ok(cache) => Some(cache),
        Err(error) => {
            tracing::warn!("compiled plugins are not kept: {error}");
            None
        }
    }
}

fn scope(namespaces: &[String], selector: Option<&str>) -> String {
    match selector {
        Some(selector) => format!("those with {selector}"),
        None if namespaces.is_empty() => "all".to_owned(),
        None => namespaces.join(", "),
    }
}

/// The Pod's name where there is one.
fn identity() -> String {
    std::env::var("POD_NAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "keelson".to_owned())
}

/// Of this process alone, also where a Pod's container starts again.
fn process() -> String {
    let id = getrandom::u64().unwrap_or_else(|_| std::process::id().into());
    format!("{}_{id:016x}", identity())
}
