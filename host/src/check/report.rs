//! What a rendering says of the parent: status fields, conditions, readiness.

use serde_json::{Map, Value};

use super::child::{bytes, no_null};
use super::path::Path;
use super::syntax;
use super::violation::{Fault, Rule, shown};
use crate::limits::{CONDITION_MESSAGE_BYTES, STATUS_BYTES};
use crate::sandbox::model::{Condition, Explanation};

/// Status fields that only the host writes.
const HOSTS_FIELDS: &[&str] = &["conditions", "observedGeneration", "children"];
/// Conditions that only the host writes.
const HOSTS_CONDITIONS: &[&str] = &["Ready", "Progressing", "Degraded", "Paused", "CredentialsChanged"];

pub(super) fn status(status: &Map<String, Value>) -> Result<(), Fault> {
    if let Some(field) = HOSTS_FIELDS.iter().find(|field| status.contains_key(**field)) {
        return Err(Fault::new(Rule::ParentStatus, format!("/status/{field}"), "is written by the host"));
    }
    no_null(status, &Path::Root.key("status"))?;
    let bytes = bytes(status);
    if bytes > STATUS_BYTES {
        return Err(Fault::new(Rule::Size, "/status", format!("has {bytes} bytes, of at most {STATUS_BYTES}")));
    }
    Ok(())
}

pub(super) fn conditions(conditions: Vec<Condition>) -> Result<Vec<Condition>, Fault> {
    let refuse = |index: usize, message: String| {
        Err(Fault::new(Rule::Condition, format!("/status/conditions/{index}"), message))
    };
    for (index, Condition { kind, status: _, reason, message: _ }) in conditions.iter().enumerate() {
        if !syntax::qualified_name(kind) {
            return refuse(index, format!("{} is no type of a condition", shown(kind)));
        }
        if HOSTS_CONDITIONS.contains(&kind.as_str()) {
            return refuse(index, format!("the condition {kind} is the host's"));
        }
        if conditions.iter().take(index).any(|other| other.kind == *kind) {
            return refuse(index, format!("the condition {kind} stands twice"));
        }
        if !syntax::reason(reason) {
            return refuse(index, format!("the reason of {kind}, {}, is not CamelCase of at most 64", shown(reason)));
        }
    }
    let cut = |condition: Condition| Condition { message: message(&condition.message), ..condition };
    Ok(conditions.into_iter().map(cut).collect())
}

pub(super) fn not_ready(explanation: Explanation) -> Result<Explanation, Fault> {
    let Explanation { reason, message: text } = explanation;
    if !syntax::reason(&reason) {
        let message = format!("the reason {} is not CamelCase of at most 64", shown(&reason));
        return Err(Fault::new(Rule::Condition, "/ready/reason", message));
    }
    Ok(Explanation { reason, message: message(&text) })
}

/// Cut to what a condition holds, without what would move a terminal's cursor.
fn message(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.len() <= CONDITION_MESSAGE_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(CONDITION_MESSAGE_BYTES - '…'.len_utf8());
    format!("{}…", text.split_at(end).0)
}
