//! `keelson plugin rbac`: the rights that the host needs for the plugins of a
//! folder, and no others, as manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;

use anyhow::{Context, bail};

use super::access::{Need, needs_of};
use super::cli::{Exit, RbacArgs};
use crate::names;
use crate::plugin::{Plugin, Registry};
use crate::sandbox::Engine;

/// In which order verbs are written.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

pub(crate) async fn print(args: RbacArgs) -> anyhow::Result<Exit> {
    let RbacArgs { plugins, namespace } = args;
    let registry = Registry::load(&plugins, &Engine::new(1).context("start the sandbox")?).await?;
    if let Some(problem) = registry.problems().first() {
        bail!("{}: {}: its rights are not known", problem.reason, problem.message);
    }
    let roles: Vec<String> = registry.plugins().iter().map(|plugin| role(plugin, namespace.as_deref())).collect();
    std::io::stdout().write_all(roles.join("---\n").as_bytes()).context("write to stdout")?;
    Ok(Exit::Ok)
}

/// A ClusterRole that aggregates into the host's, or a Role of one namespace. The same bytes at every call.
fn role(plugin: &Plugin, namespace: Option<&str>) -> String {
    let mut text = String::from("apiVersion: rbac.authorization.k8s.io/v1\n");
    // Writing to a String cannot fail.
    let _ = match namespace {
        None => write!(
            text,
            "kind: ClusterRole\nmetadata:\n  name: keelson-plugin-{}\n  labels:\n    {}: \"true\"\nrules:\n",
            plugin.name,
            names::AGGREGATE_LABEL
        ),
        Some(namespace) => write!(
            text,
            "kind: Role\nmetadata:\n  name: keelson-plugin-{}\n  namespace: {namespace}\nrules:\n",
            plugin.name
        ),
    };
    let scopes: Vec<String> = namespace.map(str::to_owned).into_iter().collect();
    for ((group, verbs), resources) in rules(&needs_of(plugin, &scopes)) {
        let group = if group.is_empty() { "\"\"" } else { group };
        let _ = writeln!(
            text,
            "- {{apiGroups: [{group}], resources: [{}], verbs: [{}]}}",
            resources.join(", "),
            verbs.join(", ")
        );
    }
    text
}

/// By group and verbs: the resources, each once.
fn rules(needs: &BTreeSet<Need>) -> BTreeMap<(&str, Vec<&'static str>), Vec<String>> {
    let mut verbs: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    // Events are the host's own right.
    for need in needs.iter().filter(|need| need.kind.group != "events.k8s.io") {
        let path = need.subresource.map_or_else(String::new, |sub| format!("/{sub}"));
        let resource = format!("{}{path}", need.kind.plural);
        verbs.entry((&need.kind.group, resource)).or_default().insert(need.verb);
    }
    let mut rules: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        let verbs = VERBS.into_iter().filter(|verb| verbs.contains(verb)).collect();
        rules.entry((group, verbs)).or_default().push(resource);
    }
    rules
}
