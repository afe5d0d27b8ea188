//! One call of the guest, off the async workers.

use std::sync::Arc;
use std::time::Duration;

use super::gate::{Held, Turn, Verdict};
use super::host::{Host, version};
use super::parents::Parent;
use super::retry::Retry;
use super::slots::Slot;
use crate::clock;
use crate::plugin::Plugin;
use crate::sandbox::model::{Asked, CallError, FailureClass, Finalized, Rendered, Request, Usage};

/// Why there is no rendering.
pub(crate) enum RenderError {
    /// With what it used.
    Call(CallError, Usage),
    /// The plugin hangs with others in hand: to be tried again after this.
    Busy(Duration),
    /// It fails with one object after the other, for this reason; this one's turn comes after this.
    Failing { reason: String, again: Duration },
}

/// What the sandbox stopped or the plugin refused: the reason is the error's own.
pub(crate) fn retry(error: &CallError) -> Retry {
    match error {
        CallError::Failure(failure) => match failure.class {
            FailureClass::Invalid => Retry::Permanent,
            FailureClass::NotYet => Retry::Blocked,
            FailureClass::Internal => Retry::Passing,
        },
        // Fuel and memory are the same at every try: only another object or plugin helps.
        CallError::OutOfFuel { .. }
        | CallError::OutOfMemory { .. }
        | CallError::OutOfHandles
        | CallError::Trap(_)
        | CallError::Exited(_)
        | CallError::OutputInvalid(_)
        | CallError::OutputTooLarge { .. } => Retry::Permanent,
        // Wall time and the host's own trouble depend on the machine.
        CallError::Timeout { .. } | CallError::Host(_) => Retry::Passing,
    }
}

/// One sentence for the user: what, where, what would be accepted, what to do.
pub(crate) fn message(error: &CallError, plugin: &str) -> String {
    let CallError::Failure(failure) = error else { return format!("plugin {plugin} {error}") };
    let mut message = failure.message.clone();
    if !failure.fields.is_empty() {
        message = format!("{}: {message}", failure.fields.join(", "));
    }
    if !failure.allowed.is_empty() {
        message = format!("{message}; accepted: {}", failure.allowed.join(", "));
    }
    if let Some(remedy) = &failure.remedy {
        message = format!("{message}; {remedy}");
    }
    message
}

pub(crate) async fn render(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    request: Request,
) -> Result<Rendered, RenderError> {
    pass(host, plugin, parent)?;
    let slot = host.slots.take(&plugin.name).await.map_err(RenderError::Busy)?;
    let component = plugin.component.clone();
    let answer = match component.render_quickly(&request) {
        Some(answer) => answer,
        None => elsewhere(slot, move || component.render(&request)).await?,
    };
    judge(host, plugin, parent, verdict(&answer.0));
    answered(host, plugin, parent, answer)
}

/// The hook of that name: rare, so never in a hurry; and somebody waits for it, so that no gate holds it.
pub(crate) async fn finalize(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    request: Request,
) -> Result<Finalized, RenderError> {
    let slot = host.slots.take(&plugin.name).await.map_err(RenderError::Busy)?;
    let component = plugin.component.clone();
    let answer = elsewhere(slot, move || component.finalize(&request)).await?;
    answered(host, plugin, parent, answer)
}

/// The hook of that name.
pub(crate) async fn related(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    request: Request,
) -> Result<Asked, RenderError> {
    pass(host, plugin, parent)?;
    let slot = host.slots.take(&plugin.name).await.map_err(RenderError::Busy)?;
    let component = plugin.component.clone();
    let answer = elsewhere(slot, move || component.related(&request)).await?;
    // That it asks well tells nothing of its renders.
    if let fails @ Verdict::Fails(_) = verdict(&answer.0) {
        judge(host, plugin, parent, fails);
    }
    answered(host, plugin, parent, answer)
}

/// The same call once more, for whoever wants to know more of it than a walk keeps. It has room as any other, and counts
/// for nothing.
pub(crate) async fn again<T: Send + 'static>(
    host: &Host,
    plugin: &Plugin,
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RenderError> {
    let slot = host.slots.take(&plugin.name).await.map_err(RenderError::Busy)?;
    elsewhere(slot, call).await
}

/// Whether the plugin may be asked for this object now. One that is going is not held back.
fn pass(host: &Host, plugin: &Plugin, parent: &Parent) -> Result<(), RenderError> {
    if parent.deleting {
        return Ok(());
    }
    let bare = || parent.recorded().is_empty();
    let held = host.gates.pass(version(plugin), &parent.id.uid, bare, clock::instant());
    held.map_err(|Held { reason, again }| RenderError::Failing { reason, again })
}

/// Tells, once, that the plugin fails with one object after the other, and that it works again.
fn judge(host: &Host, plugin: &Plugin, parent: &Parent, verdict: Verdict<'_>) {
    let turn = host.gates.answered(version(plugin), &parent.id.uid, verdict, clock::instant());
    let failing = match turn {
        Turn::Same => return,
        Turn::Closed => {
            let reason = host.failing(&plugin.name).unwrap_or_default();
            let plugin = &plugin.name;
            tracing::warn!(plugin, reason, "fails with one object after the other; asked more rarely until it works");
            true
        }
        Turn::Opened(waited) => {
            tracing::info!(plugin = plugin.name, objects = waited.len(), "works again");
            host.wake(waited);
            false
        }
    };
    if let Some(metrics) = host.plugin_metrics(&plugin.name) {
        metrics.failing(failing);
    }
}

/// What a plugin refuses in its own words was no fault of its own.
fn verdict<T>(result: &Result<T, CallError>) -> Verdict<'_> {
    match result {
        Ok(_) => Verdict::Works,
        Err(CallError::Failure(failure)) => match failure.class {
            FailureClass::Invalid | FailureClass::NotYet => Verdict::Works,
            FailureClass::Internal => Verdict::Unclear,
        },
        Err(CallError::Host(_)) => Verdict::Unclear,
        Err(
            error @ (CallError::OutOfFuel { .. }
            | CallError::Timeout { .. }
            | CallError::OutOfMemory { .. }
            | CallError::OutOfHandles
            | CallError::Trap(_)
            | CallError::Exited(_)
            | CallError::OutputInvalid(_)
            | CallError::OutputTooLarge { .. }),
        ) => Verdict::Fails(error.reason()),
    }
}

/// On a thread of its own.
async fn elsewhere<T: Send + 'static>(slot: Slot, call: impl FnOnce() -> T + Send + 'static) -> Result<T, RenderError> {
    let call = tokio::task::spawn_blocking(move || {
        let answer = call();
        drop(slot);
        answer
    });
    call.await.map_err(|error| RenderError::Call(CallError::Host(error.to_string()), Usage::default()))
}

fn answered<T>(
    host: &Host,
    plugin: &Plugin,
    parent: &Parent,
    (result, usage): (Result<T, CallError>, Usage),
) -> Result<T, RenderError> {
    if !matches!(result, Err(CallError::Timeout { .. })) {
        host.slots.answered(&plugin.name);
    }
    if let Some(metrics) = host.plugin_metrics(&plugin.name) {
        metrics.took(usage.memory_bytes);
        match &result {
            Ok(_) => metrics.rendered(usage.wall),
            Err(error) => metrics.failed(class(error), usage.wall),
        }
    }
    log(&plugin.name, parent, &usage);
    result.map_err(|error| RenderError::Call(error, usage))
}

/// Of bounded variety: a plugin's own reason is no label.
fn class(error: &CallError) -> &str {
    match error {
        CallError::Failure(failure) => match failure.class {
            FailureClass::Invalid => "Invalid",
            FailureClass::NotYet => "NotYet",
            FailureClass::Internal => "Internal",
        },
        error => error.reason(),
    }
}

/// The guest's words, beside the object that it had in hand.
fn log(plugin: &str, parent: &Parent, usage: &Usage) {
    for line in &usage.log {
        let fields: String = line.fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        let (namespace, name) = (&parent.id.namespace, &parent.id.name);
        macro_rules! say {
            ($level:ident) => {
                tracing::$level!(target: "keelson::guest", plugin, %namespace, %name, "{}{fields}", line.message)
            };
        }
        match line.level {
            tracing::Level::ERROR => say!(error),
            tracing::Level::WARN => say!(warn),
            tracing::Level::INFO => say!(info),
            tracing::Level::DEBUG => say!(debug),
            tracing::Level::TRACE => say!(trace),
        }
    }
}
