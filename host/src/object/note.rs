//! Calls that came to nothing, kept for whoever asks why. What a plugin itself
//! says no to is the object's matter, and kept for nobody.

use std::sync::Arc;

use super::gather::Gathered;
use super::host::Host;
use super::parents::Parent;
use super::render;
use crate::check::Violation;
use crate::plugin::Plugin;
use crate::plugin::bundle::{Bundle, Called, Outcome};
use crate::plugin::golden::Answer;
use crate::sandbox::model::{CallError, FailureClass, Usage};

/// Keeps a call that gave nothing, with what it used.
pub(crate) fn stopped(
    host: &Host,
    plugin: &Plugin,
    parent: &Parent,
    gathered: &Gathered,
    error: &CallError,
    usage: Usage,
) {
    if matches!(error, CallError::Failure(failure) if failure.class != FailureClass::Internal) {
        return;
    }
    let outcome = Outcome::stopped(error);
    host.failures.keep(bundle(plugin, parent, gathered, Called { outcome, usage }));
}

/// Keeps a call whose answer was refused; it is made once more for that, since the check took the answer.
pub(crate) async fn refused(
    host: &Host,
    plugin: &Arc<Plugin>,
    parent: &Parent,
    gathered: &Gathered,
    violation: &Violation,
) {
    let (component, request) = (plugin.component.clone(), gathered.request.clone());
    // A plugin without room now fails often enough to be seen another time.
    if let Ok((answer, usage)) = render::again(host, plugin, move || Answer::told(&component, &request)).await {
        let outcome = Outcome::of(answer, Some(violation));
        host.failures.keep(bundle(plugin, parent, gathered, Called { outcome, usage }));
    }
}

fn bundle(plugin: &Plugin, parent: &Parent, gathered: &Gathered, called: Called) -> Bundle {
    Bundle::new(plugin, &parent.id, gathered.rules(plugin), gathered.request.clone(), called)
}
