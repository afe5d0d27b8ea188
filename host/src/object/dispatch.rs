//! Which plugin serves an object.

use std::sync::Arc;

use super::parents::Parent;
use super::retry::Retry;
use crate::cluster::ObjectView;
use crate::cluster::meta::ViewError;
use crate::plugin::{Dispatch, Found, Plugin, Registry};

#[derive(Debug, thiserror::Error)]
pub(crate) enum DispatchError {
    #[error("{path}: {message}{}", accepted(allowed))]
    Invalid { reason: &'static str, path: String, message: String, allowed: Vec<String> },
    #[error("plugin {plugin} is not serving: {reason}: {message}")]
    Unavailable { plugin: String, reason: String, message: String },
    #[error("the object could not be read: {0}")]
    Unreadable(#[from] ViewError),
}

impl DispatchError {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Invalid { reason, .. } => reason,
            Self::Unreadable(_) => "InvalidSpec",
            Self::Unavailable { .. } => "PluginUnavailable",
        }
    }

    /// No plugin claims it, not even one that fails to load or whose document cannot be read.
    pub(crate) fn is_nobodys(&self, registry: &Registry) -> bool {
        matches!(self, Self::Invalid { reason: "NoPlugin", .. }) && !registry.hides_claims()
    }

    /// All wait for a change of the object or of the plugins.
    pub(crate) fn retry(&self) -> Retry {
        Retry::Permanent
    }
}

fn accepted(allowed: &[String]) -> String {
    if allowed.is_empty() { String::new() } else { format!("; accepted: {}", allowed.join(", ")) }
}

pub(crate) fn dispatch(registry: &Registry, group: &str, parent: &Parent) -> Result<Arc<Plugin>, DispatchError> {
    let object = ObjectView::parse(&parent.guest)?;
    let find = |pointer: &str| Found::of(object.pointer(pointer).and_then(|raw| serde_json::from_str(raw.get()).ok()));
    match registry.dispatch_with(group, &parent.id.kind, find) {
        Dispatch::Plugin(plugin) => Ok(plugin),
        Dispatch::Unavailable { plugin, reason, message } => {
            Err(DispatchError::Unavailable { plugin, reason, message })
        }
        Dispatch::Invalid { reason, path, message, allowed } => {
            Err(DispatchError::Invalid { reason, path, message, allowed })
        }
    }
}
