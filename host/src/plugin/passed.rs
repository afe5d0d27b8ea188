//! Labels and annotations of a parent that its children get, Pod templates
//! included: those that the Plugin document names, and no others.
//!
//! For what other programs read from Pods and Services: scrape annotations,
//! opt-in of a mesh, cost labels. Nothing passes by default, selectors stay as
//! they are, and what the plugin renders itself wins.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::check::{self, syntax};
use crate::cluster::ObjectView;
use crate::cluster::meta::Fields;
use crate::limits::PASSED_RULES;
use crate::names;
use crate::sandbox::ChildKind;

/// What of the parent's metadata is passed on to its children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Passed {
    /// Labels: whole keys, or a DNS prefix with all below it, such as cost.example.com/*. Another value, or another
    /// label, changes the Pod template and so replaces the Pods of a Deployment.
    #[schemars(length(max = 64))]
    pub labels: Vec<String>,
    /// Annotations, by the same rules.
    #[schemars(length(max = 64))]
    pub annotations: Vec<String>,
}

/// What one parent passes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// Prefixes by which other tools find what is theirs: a child that carried them would be taken for the object itself,
/// and changed or deleted with what those tools manage.
const TRACKING: &[&str] = &[
    names::GROUP,
    "kubectl.kubernetes.io",
    "argocd.argoproj.io",
    "helm.sh",
    "meta.helm.sh",
    "toolkit.fluxcd.io",
    "config.k8s.io",
    "config.kubernetes.io",
    "applyset.kubernetes.io",
];
/// Set by the host on every child.
const COMMON: &[&str] =
    &[names::APP_NAME_LABEL, names::APP_INSTANCE_LABEL, names::APP_MANAGED_BY_LABEL, names::APP_PART_OF_LABEL];
/// By which a Pod asks for a security profile; only the plugin may, within the baseline.
const SECURITY: &[&str] = &[
    "container.apparmor.security.beta.kubernetes.io",
    "container.seccomp.security.alpha.kubernetes.io",
    "seccomp.security.alpha.kubernetes.io",
];

// === impl Passed ===

impl Passed {
    /// The first rule that cannot stand, as (field, why).
    pub(super) fn fault(&self) -> Option<(String, String)> {
        let Self { labels, annotations } = self;
        for (field, rules) in [("labels", labels), ("annotations", annotations)] {
            if rules.len() > PASSED_RULES {
                return Some((field.to_owned(), format!("has {} entries, of at most {PASSED_RULES}", rules.len())));
            }
            for (index, rule) in rules.iter().enumerate() {
                if let Err(why) = sound(rule) {
                    return Some((format!("{field}[{index}]"), why));
                }
            }
        }
        None
    }

    /// What of this parent passes.
    pub fn of(&self, parent: &ObjectView<'_>) -> Given {
        let Self { labels, annotations } = self;
        Given { labels: chosen(labels, &parent.labels), annotations: chosen(annotations, &parent.annotations) }
    }
}

/// A key or `PREFIX/*`, with a prefix that is nobody's to copy by accident.
fn sound(rule: &str) -> Result<(), String> {
    let (prefix, all) = match rule.strip_suffix('*') {
        Some(begin) => match begin.split_once('/') {
            Some((prefix, _)) if syntax::dns_1123_subdomain(prefix) => (Some(prefix), true),
            _ => return Err("a * stands at the end, after a DNS prefix and a slash: example.com/*".to_owned()),
        },
        None if syntax::qualified_name(rule) => (rule.split_once('/').map(|(prefix, _)| prefix), false),
        None => return Err("is no key of a label or an annotation, and no DNS-PREFIX/*".to_owned()),
    };
    let Some(prefix) = prefix else { return Ok(()) };
    let is = |of: &&&str| prefix == **of || prefix.strip_suffix(**of).is_some_and(|below| below.ends_with('.'));
    if let Some(tool) = TRACKING.iter().find(is) {
        return Err(format!("{tool} marks what belongs to whom; it is never passed on"));
    }
    if SECURITY.iter().any(|of| of == &prefix) {
        return Err("asks for a security profile; that is the plugin's to render".to_owned());
    }
    if COMMON.contains(&rule) {
        return Err("is set by the host on every child".to_owned());
    }
    if all && ["kubernetes.io", "k8s.io"].iter().any(|of| is(&of)) {
        return Err("Kubernetes' own prefixes have meanings of many kinds; name the whole keys".to_owned());
    }
    Ok(())
}

fn chosen(rules: &[String], all: &Fields<'_, Cow<'_, str>>) -> BTreeMap<String, String> {
    let passes =
        |key: &str| rules.iter().any(|rule| rule.strip_suffix('*').map_or(rule == key, |begin| key.starts_with(begin)));
    let chosen = all.iter().filter(|(key, _)| passes(key));
    chosen.map(|(key, value)| (key.to_owned(), value.to_string())).collect()
}

// === impl Given ===

impl Given {
    /// Puts it on a child and its Pod template, but where something stands already.
    pub fn put_on(&self, kind: &ChildKind, child: &mut Map<String, Value>) {
        let Self { labels, annotations } = self;
        if labels.is_empty() && annotations.is_empty() {
            return;
        }
        if let Some(template) = check::pod_template_metadata(kind, child) {
            self.put(template);
        }
        if let Some(metadata) = child.get_mut("metadata").and_then(Value::as_object_mut) {
            self.put(metadata);
        }
    }

    fn put(&self, metadata: &mut Map<String, Value>) {
        for (field, given) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if given.is_empty() {
                continue;
            }
            let there = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
            if let Some(there) = there.as_object_mut() {
                for (key, value) in given {
                    there.entry(key.as_str()).or_insert_with(|| value.as_str().into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sandbox::KindRef;

    fn passed(labels: &[&str], annotations: &[&str]) -> Passed {
        let owned = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        Passed { labels: owned(labels), annotations: owned(annotations) }
    }

    #[test]
    fn rules_are_keys_or_prefixes_and_never_another_tools_marks() {
        for rule in ["team", "cost.example.com/*", "prometheus.io/scrape", "sidecar.istio.io/inject", "a.b/c-*"] {
            assert_eq!(passed(&[rule], &[]).fault(), None, "{rule}");
        }
        for rule in [
            "*",
            "",
            "team*",
            "a b",
            "example.com/",
            "keelson.dev/*",
            "keelson.dev/paused",
            "x.keelson.dev/y",
            "kubectl.kubernetes.io/last-applied-configuration",
            "kubectl.kubernetes.io/*",
            "kubernetes.io/*",
            "argocd.argoproj.io/tracking-id",
            "argocd.argoproj.io/*",
            "kustomize.toolkit.fluxcd.io/name",
            "app.kubernetes.io/instance",
            "app.kubernetes.io/*",
            "node.k8s.io/*",
            "meta.helm.sh/release-name",
            "seccomp.security.alpha.kubernetes.io/pod",
            "*/x",
            "/*",
        ] {
            let (field, why) = passed(&["team"], &["a", rule]).fault().unwrap_or_default();
            assert!(field == "annotations[1]" && !why.is_empty(), "{rule:?}: {field}: {why}");
        }
    }

    #[test]
    fn what_is_named_passes_and_what_is_rendered_wins() {
        let parent = json!({"metadata": {"name": "a", "labels": {"team": "x", "other": "y", "tier": "parent"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io.evil/x": "1", "note": "n"}}})
        .to_string();
        let view = ObjectView::parse(&parent).unwrap();
        let given = passed(&["team", "tier"], &["prometheus.io/*"]).of(&view);
        let kind = KindRef {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            plural: "deployments".into(),
        };
        let kind = ChildKind { kind, observe: Vec::new() };
        let mut child = json!({"metadata": {"name": "a", "labels": {"tier": "own"}},
            "spec": {"selector": {"matchLabels": {"i": "1"}}, "template": {"spec": {}}}});
        given.put_on(&kind, child.as_object_mut().unwrap());
        assert_eq!(
            child,
            json!({"metadata": {"name": "a", "labels": {"tier": "own", "team": "x"}, "annotations": {"prometheus.io/scrape": "true"}},
                "spec": {"selector": {"matchLabels": {"i": "1"}}, "template": {"spec": {}, "metadata": {
                    "labels": {"team": "x", "tier": "parent"}, "annotations": {"prometheus.io/scrape": "true"}}}}})
        );
        let mut untouched = json!({"metadata": {"name": "a"}});
        passed(&[], &[]).of(&view).put_on(&kind, untouched.as_object_mut().unwrap());
        assert_eq!(untouched, json!({"metadata": {"name": "a"}}));
    }
}
