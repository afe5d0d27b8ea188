//! `keelson render`: objects in, children out, no cluster.
//!
//! What the object walk would ask for a new object (no children, no Secrets),
//! with the same checks. Printed is what would be applied, as far as it can be
//! known here: namespace and labels are there; owner reference and hash are
//! not, since they are the host's bookkeeping. A Secret to generate is a
//! comment: as an object without data it would, once applied by hand, stand in
//! the way of the one that the host generates.

pub(crate) mod input;
mod related;
mod output;
mod bundle;

use std::io::Write;

use anyhow::Context;
use serde_json::Value;

use super::cli::{Exit, RenderArgs};
use super::said::{say, say_log};
use crate::check::{self, CheckedFinalization, CheckedParts};
use crate::clock;
use crate::cluster::ObjectView;
use crate::limits::PARENT_BYTES;
use crate::plugin::request::{Gathered, guest_parent, request};
use crate::plugin::{Dispatch, Plugin, Registry};
use crate::sandbox::{CallError, Engine, Usage};

use input::Object;

/// Why one object has no rendering.
struct Refusal {
    exit: Exit,
    reason: String,
    message: String,
}

pub async fn render(args: RenderArgs) -> anyhow::Result<Exit> {
    let RenderArgs { filename, plugins, related, finalize, bundle, plugin } = args;
    if let Some(file) = bundle {
        return bundle::again(&file, plugins.as_deref(), plugin.as_deref()).await;
    }
    // clap has seen to it.
    let (Some(filename), Some(plugins)) = (filename, plugins) else { return Ok(Exit::Usage) };
    let read = || anyhow::Ok((input::read(&filename)?, related.as_deref().map(input::read).transpose()?));
    let (objects, others) = match read() {
        Ok((objects, others)) => (objects, others.unwrap_or_default()),
        Err(error) => {
            say(&format!("{error:#}"));
            return Ok(Exit::Usage);
        }
    };
    let engine = Engine::new(1).context("start the sandbox")?;
    let registry = match Registry::load(&plugins, &engine).await {
        Ok(registry) => registry,
        Err(error) => {
            say(&error.to_string());
            return Ok(Exit::NoPlugin);
        }
    };
    for problem in registry.problems() {
        say(&format!("plugin {} does not serve: {}: {}", problem.name(), problem.reason, problem.message));
    }
    let mut exit = Exit::Ok;
    let mut stdout = std::io::stdout().lock();
    for object in &objects {
        match render_one(&registry, object, &others, finalize) {
            Ok(text) => stdout.write_all(text.as_bytes()).context("write to stdout")?,
            Err(refusal) => {
                say(&format!("{object}: {}: {}", refusal.reason, refusal.message));
                exit = exit.max(refusal.exit);
            }
        }
    }
    stdout.flush().context("write to stdout")?;
    Ok(exit)
}

/// dispatch → check the parent → render → check the rendering, as in the object walk.
fn render_one(registry: &Registry, object: &Object, others: &[Object], finalize: bool) -> Result<String, Refusal> {
    let Object { group, version, parent, value, placed: _ } = object;
    let plugin = dispatch(registry, group, version, &parent.kind, value)?;
    let Plugin { name, manifest, grant, limits, component, passed, .. } = &*plugin;
    check::parent(parent, name, grant, manifest).map_err(|violation| refused(violation.reason(), &violation))?;
    let mut value = value.clone();
    if finalize {
        if !component.hooks().finalizer {
            let message = format!("plugin {name} does not finalize: a deleted object goes at once");
            return Err(Refusal { exit: Exit::Failed, reason: "NoFinalizer".to_owned(), message });
        }
        deleted(&mut value);
    }
    let value = &value;
    let text = value.to_string();
    let json = guest_parent(&text).map_err(|error| refused("InvalidSpec", &error))?;
    let given = ObjectView::parse(&text).map_err(|error| refused("InvalidSpec", &error))?;
    let given = passed.of(&given);
    if json.len() > PARENT_BYTES {
        let message = format!("the object has {} bytes, at most {PARENT_BYTES} are handed to a plugin", json.len());
        return Err(refused("TooLarge", &message));
    }
    let gathered = Gathered {
        parent: json.into(),
        generation: value.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(1),
        children: Vec::new(),
        secrets: Vec::new(),
        now: u64::try_from(clock::now().as_second()).unwrap_or_default(),
    };
    let mut request = request(&plugin, parent, gathered);
    let mut names = Vec::new();
    if component.hooks().relations {
        let asked = answer(name, component.related(&request))?;
        let queries = check::related(asked, parent, name, grant, manifest);
        let queries = queries.map_err(|violation| refused(violation.reason(), &violation))?;
        request.related = related::answers(&queries, parent, others);
        names = check::related_names(&queries, &request.related, parent);
    }
    let named = grant.user_secrets.iter().filter_map(|granted| value.pointer(&granted.path)?.as_str());
    let user_secrets: Vec<String> = named.map(str::to_owned).collect();
    let context = check::Context {
        parent,
        plugin: name,
        grant,
        manifest,
        selector_labels: &request.selector_labels,
        limits,
        user_secrets: &user_secrets,
        related: &names,
    };
    let output = output::Output { object, plugin: name, selector_labels: &request.selector_labels, given: &given };
    let unreadable = |error| refused("OutputInvalid", &error);
    if finalize {
        let finalized = answer(name, component.finalize(&request))?;
        let checked =
            check::finalization(finalized, &context).map_err(|violation| refused(violation.reason(), &violation))?;
        let CheckedFinalization { children, secrets, waiting, look_again_after: _ } = checked;
        match waiting {
            None => say(&format!("{object}: finalized: it may go")),
            Some(why) => say(&format!("{object}: waits: {}: {}", why.reason, why.message)),
        }
        return output.yaml(children, &secrets).map_err(unreadable);
    }
    let rendered = answer(name, component.render(&request))?;
    let checked = check::rendering(rendered, &context).map_err(|violation| refused(violation.reason(), &violation))?;
    let CheckedParts { children, secrets, status, conditions: _, not_ready, look_again_after: _ } =
        checked.into_parts();
    if !status.is_empty() {
        say(&format!("{object}: status: {}", Value::Object(status)));
    }
    if let Some(why) = not_ready {
        say(&format!("{object}: not ready: {}: {}", why.reason, why.message));
    }
    output.yaml(children, &secrets).map_err(unreadable)
}

/// What a call gave, after what the plugin logged.
fn answer<T>(plugin: &str, (result, usage): (Result<T, CallError>, Usage)) -> Result<T, Refusal> {
    for line in usage.log {
        say_log(plugin, &line);
    }
    result.map_err(|error| refused(error.reason(), &told(&error)))
}

/// As the API server leaves an object that waits for its finalizers.
fn deleted(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry("deletionTimestamp").or_insert_with(|| clock::rfc3339(clock::now()).into());
    }
}

fn dispatch(
    registry: &Registry,
    group: &str,
    version: &str,
    kind: &str,
    value: &Value,
) -> Result<std::sync::Arc<Plugin>, Refusal> {
    let none = |reason: &str, message: String| Refusal { exit: Exit::NoPlugin, reason: reason.to_owned(), message };
    match registry.dispatch(group, kind, value) {
        Dispatch::Plugin(plugin) => {
            let mut serves = plugin.manifest.serves.iter().filter(|one| one.group == group && one.kind == kind);
            if serves.any(|one| one.versions.iter().any(|known| known == version)) {
                return Ok(plugin);
            }
            Err(none("NoPlugin", format!("plugin {} does not read version {version} of {kind}", plugin.name)))
        }
        Dispatch::Unavailable { plugin, reason, message } => {
            Err(none("PluginUnavailable", format!("plugin {plugin}: {reason}: {message}")))
        }
        Dispatch::Invalid { reason, path: _, message, allowed } => {
            let mut served: Vec<String> = allowed;
            if served.is_empty() {
                served = registry.parent_kinds().into_iter().map(|one| format!("{}.{}", one.kind, one.group)).collect();
            }
            let message = format!("{message}; served: {}", served.join(", "));
            let exit = if reason == "NoPlugin" { Exit::NoPlugin } else { Exit::Failed };
            Err(Refusal { exit, reason: reason.to_owned(), message })
        }
    }
}

fn refused(reason: &str, message: &dyn std::fmt::Display) -> Refusal {
    Refusal { exit: Exit::Failed, reason: reason.to_owned(), message: message.to_string() }
}

/// All that a plugin's own "no" says; of the rest, the error as it is.
fn told(error: &CallError) -> String {
    let CallError::Failure(failure) = error else {
        return error.to_string();
    };
    let mut text = failure.message.clone();
    for (word, list) in [("at", &failure.fields), ("allowed:", &failure.allowed)] {
        if !list.is_empty() {
            text.push_str(&format!("; {word} {}", list.join(", ")));
        }
    }
    if let Some(remedy) = &failure.remedy {
        text.push_str(&format!("; {remedy}"));
    }
    text
}
