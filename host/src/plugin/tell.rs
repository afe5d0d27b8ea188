//! What the status of a Plugin object shall say: a pure function of what became of it.

use jiff::Timestamp;

use super::fit;
use super::registry::{Origin, Plugin, Problem, Registry};
use super::status::{PluginCondition, PluginStatus, Step};
use crate::clock;
use crate::sandbox::{Hooks, Serving};

const SERVING: &str = "Serving";
/// An earlier version serves.
const HELD: &str = "Held";
/// It serves, and fails with one object after the other.
const FAILING: &str = "Failing";
/// Nothing is known of it yet.
const PENDING: &str = "Pending";

/// What became of one object.
pub struct Told<'a> {
    /// The last plugin that was made of it.
    pub plugin: Option<&'a Plugin>,
    /// What is wrong with its newest version.
    pub problem: Option<&'a Problem>,
    /// How many objects it serves.
    pub objects: u64,
    /// What it reads and the API server does not keep; empty where there is none.
    pub mismatch: &'a str,
    /// Where it fails with one object after the other: for what.
    pub failing: Option<&'a str>,
}

/// `before` is what stands there.
pub fn status(
    (name, generation): (&str, i64),
    told: &Told<'_>,
    registry: &Registry,
    before: &PluginStatus,
    now: Timestamp,
) -> PluginStatus {
    let Told { plugin, problem, objects, mismatch, failing } = told;
    let serving = registry.plugin(name).filter(|plugin| plugin.origin == Origin::Cluster);
    // Settled between plugins: somebody else serves.
    let passed_over = registry.problems().iter().find(|one| one.origin == Origin::Cluster && one.file == name);
    let problem = passed_over.or(*problem);
    let shown = serving.map(AsRef::as_ref).or(*plugin);
    let digest = problem.and_then(|problem| problem.digest.as_deref()).or(shown.map(|plugin| plugin.digest.as_str()));
    let image = serving.and_then(|plugin| plugin.image.as_ref());
    let failing = failing.filter(|_| serving.is_some()).map(|reason| fails(reason, problem));
    let conditions = Step::ALL.map(|step| {
        let (status, reason, message) = match &failing {
            Some(message) if step == Step::Serving => ("True", "PluginFailing", message.as_str()),
            _ => condition(step, serving.is_some(), shown.is_some(), problem, mismatch),
        };
        let same = before.conditions.iter().find(|one| one.kind == step.name() && one.status == status);
        PluginCondition {
            kind: step.name().to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: same
                .map_or_else(|| clock::rfc3339(now), |condition| condition.last_transition_time.clone()),
            observed_generation: generation,
        }
    });
    PluginStatus {
        observed_generation: generation,
        phase: match (serving, problem) {
            (Some(_), None) if failing.is_some() => FAILING.to_owned(),
            (Some(_), None) => SERVING.to_owned(),
            (Some(_), Some(_)) => HELD.to_owned(),
            (None, Some(problem)) => problem.reason.clone(),
            (None, None) => PENDING.to_owned(),
        },
        serves: shown.map(serves).unwrap_or_default(),
        version: shown.map(|plugin| plugin.manifest.version.clone()).unwrap_or_default(),
        contract: shown.map(|plugin| plugin.component.contract_version().to_owned()).unwrap_or_default(),
        exports: shown.map(exports).unwrap_or_default(),
        digest: digest.map(prefixed).unwrap_or_default(),
        serving_digest: serving.map(|plugin| prefixed(&plugin.digest)).unwrap_or_default(),
        // What was recorded stays while nothing serves: it is what a later start goes back to.
        image: image.map_or_else(|| before.image.clone(), |image| image.at.clone()),
        resolved_from: image.map_or_else(|| before.resolved_from.clone(), |image| image.from.clone()),
        objects: if serving.is_some() { *objects } else { 0 },
        conditions: conditions.into(),
    }
}

fn condition<'a>(
    step: Step,
    serves: bool,
    loaded: bool,
    problem: Option<&'a Problem>,
    mismatch: &'a str,
) -> (&'static str, &'a str, &'a str) {
    match problem {
        Some(problem) if step == Step::Serving && serves => ("True", "LastKnownGood", &problem.message),
        Some(problem) if step == problem.step => ("False", &problem.reason, &problem.message),
        Some(problem) if step < problem.step => ("True", "Succeeded", ""),
        None if step == Step::Serving && serves && !mismatch.is_empty() => ("True", fit::SCHEMA_MISMATCH, mismatch),
        None if serves || loaded => ("True", "Succeeded", ""),
        _ => ("Unknown", "NotReached", ""),
    }
}

/// Beside what is wrong with its newest version.
fn fails(reason: &str, problem: Option<&Problem>) -> String {
    let newest = problem.map(|problem| format!("; an earlier version serves: {}", problem.message));
    let newest = newest.unwrap_or_default();
    format!("it fails with one object after the other ({reason}), and is asked more rarely until it works{newest}")
}

fn serves(plugin: &Plugin) -> String {
    let one = |serving: &Serving| {
        let name = format!("{}.{}", serving.plural, serving.group);
        match &serving.discriminator {
            Some(one) => format!("{name} ({}={})", one.path, one.value),
            None => name,
        }
    };
    plugin.manifest.serves.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn exports(plugin: &Plugin) -> Vec<String> {
    let Hooks { finalizer, relations } = plugin.component.hooks();
    let hooks = [(true, "render"), (finalizer, "finalize"), (relations, "related")];
    hooks.into_iter().filter(|(there, _)| *there).map(|(_, name)| name.to_owned()).collect()
}

fn prefixed(digest: &str) -> String {
    format!("sha256:{digest}")
}
