//! What to do with a child that cannot be changed where it stands. The Plugin
//! document has the last word, then the rendering, then the kind's default.

use super::data::is_data;
use crate::check::{CheckedChild, Strategy};
use crate::plugin::document::StrategyRule;
use crate::sandbox::model::KindRef;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub strategy: Strategy,
    /// Somebody chose it; else it is the kind's default.
    pub asked: bool,
    /// The kind holds data: it is never replaced, whatever was asked.
    pub guarded: bool,
}

pub(crate) fn policy(rules: &[StrategyRule], child: &CheckedChild) -> Policy {
    let policy = of(rules, child.strategy(), &child.kind().kind);
    match child.retain() {
        // Kept because it holds data, of whatever kind it is.
        Some(_) => Policy { strategy: Strategy::InPlace, asked: false, guarded: true },
        None => policy,
    }
}

fn of(rules: &[StrategyRule], wish: Option<Strategy>, kind: &KindRef) -> Policy {
    let KindRef { group, kind, .. } = kind;
    if is_data(group, kind) {
        return Policy { strategy: Strategy::InPlace, asked: false, guarded: true };
    }
    let rule = rules.iter().find(|rule| rule.group == *group && rule.kind == *kind).map(|rule| rule.strategy);
    let asked = rule.or(wish);
    Policy { strategy: asked.unwrap_or_else(|| default(group, kind)), asked: asked.is_some(), guarded: false }
}

/// A Pod is made to be replaced, and nearly all of it is immutable. An immutable
/// ConfigMap is nothing but its rendering. Of all else the loss can be felt: the
/// address of a Service, the Pods of a Deployment, the effect of a Job's second
/// run. A plugin, or who installs it, has to ask for that.
fn default(group: &str, kind: &str) -> Strategy {
    match (group, kind) {
        ("", "Pod" | "ConfigMap") => Strategy::Recreate,
        _ => Strategy::InPlace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_then_the_rendering_then_the_kind() {
        let kind = |group: &str, kind: &str| KindRef {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: String::new(),
        };
        let rule =
            |group: &str, kind: &str, strategy| StrategyRule { group: group.into(), kind: kind.into(), strategy };
        let rules = [rule("", "Pod", Strategy::OnDelete), rule("apps", "StatefulSet", Strategy::Recreate)];
        let (wish, pod) = (Some(Strategy::InPlace), kind("", "Pod"));
        assert_eq!(of(&rules, wish, &pod).strategy, Strategy::OnDelete);
        assert_eq!(of(&[], wish, &pod).strategy, Strategy::InPlace);
        let default = of(&[], None, &pod);
        assert_eq!((default.strategy, default.asked), (Strategy::Recreate, false));
        assert_eq!(of(&[], None, &kind("", "Service")).strategy, Strategy::InPlace);
        assert_eq!(of(&[], None, &kind("example.org", "Pod")).strategy, Strategy::InPlace);
        for (group, name) in super::super::data::DATA_KINDS {
            let rules = [rule(group, name, Strategy::Recreate)];
            let guarded = of(&rules, Some(Strategy::OnDelete), &kind(group, name));
            assert_eq!((guarded.strategy, guarded.guarded), (Strategy::InPlace, true), "{name}");
        }
    }
}
