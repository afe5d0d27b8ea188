//! Calls that came to nothing, kept for whoever asks why. What a plugin itself
//! says no to is the object's matter, and kept for nobody.

use std::sync::Arc;

use super::gather::Gathered;
use super::host::Host;
use super::parents::Parent;
use crate::plugin::Plugin;
use crate::plugin::bundle::{self, Bundle, Called, Outcome};
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
    let request = gathered.request.clone();
    let bundle = Bundle::new(plugin, &parent.id, gathered.rules(plugin), request, Called { outcome, usage });
    host.failures.keep(bundle);
}

/// Keeps a call whose answer was refused; it is made once more for that, since only the check had it.
pub(crate) async fn refused(host: &Host, plugin: &Arc<Plugin>, parent: &Parent, gathered: &Gathered) {
    let rules = gathered.rules(plugin);
    let (of, asked) = (Arc::clone(plugin), (parent.id.clone(), rules.clone(), gathered.request.clone()));
    let called = tokio::task::spawn_blocking(move || {
        let (parent, rules, request) = asked;
        bundle::call(&of.component, &of.manifest, &of.name, &parent, &rules, &request)
    });
    if let Ok(called) = called.await {
        host.failures.keep(Bundle::new(plugin, &parent.id, rules, gathered.request.clone(), called));
    }
}
