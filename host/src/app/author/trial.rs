//! A component that was just built, as a host would run it: the same sandbox, the same checks, the grant of the
//! folder's own Plugin document.

use super::fixture::Fixture;
use crate::check::{self, Grant, RelatedName, Violation};
use crate::limits::PluginLimits;
use crate::plugin::document::Document;
use crate::plugin::golden::{Answer, Difference, differences};
use crate::plugin::{PluginError, declare};
use crate::sandbox::{CallError, Component, Engine, LogLine, Manifest, Request};

pub(super) struct Trial {
    name: String,
    grant: Grant,
    limits: PluginLimits,
    pub(super) component: Component,
    pub(super) manifest: Manifest,
}

/// How a fixture did.
pub(super) enum Verdict {
    Passes,
    /// It has no answer yet.
    Unwritten,
    Differs(Vec<Difference>),
    /// Two answers to the same request.
    Unsteady(Box<Difference>),
    /// A host would refuse what is rendered: reason and message.
    Refused(String, String),
    /// The plugin was stopped: reason and message.
    Stopped(String, String),
}

pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// What the plugin gives, where a host would take it.
    pub(super) given: Option<Answer>,
    pub(super) log: Vec<LogLine>,
}

impl Trial {
    /// Blocks while it compiles. The error has the reason that a host would say.
    pub(super) fn start(bytes: &[u8], document: &Document) -> anyhow::Result<Self> {
        let Document { name, spec } = document;
        let engine = Engine::new(1)?;
        let told = |error: PluginError| anyhow::anyhow!("{}: {error}", error.reason());
        let component = engine.compile(bytes, spec.limits).map_err(|error| told(error.into()))?;
        let manifest = declare::declare(&component, &spec.grant).map_err(|error| told(error.into()))?;
        Ok(Self { name: name.clone(), grant: spec.grant.clone(), limits: spec.limits, component, manifest })
    }

    pub(super) fn judge(&self, fixture: &Fixture) -> Judged {
        let (answers, log) = self.ask(fixture);
        let judged = |verdict, given| Judged { verdict, given, log };
        let (first, second) = match answers {
            Ok(answers) => answers,
            Err(error) => {
                let verdict = Verdict::Stopped(error.reason().to_owned(), format!("the plugin {error}"));
                return judged(verdict, None);
            }
        };
        if let Some(difference) = differences(&first, &second).into_iter().next() {
            return judged(Verdict::Unsteady(Box::new(difference)), None);
        }
        if let Err(violation) = self.check(fixture) {
            return judged(Verdict::Refused(violation.reason().to_owned(), violation.to_string()), None);
        }
        let verdict = match &fixture.answer {
            None => Verdict::Unwritten,
            Some(wanted) => match differences(wanted, &first) {
                found if found.is_empty() => Verdict::Passes,
                found => Verdict::Differs(found),
            },
        };
        judged(verdict, Some(first))
    }

    /// Twice, and what was logged the first time.
    fn ask(&self, fixture: &Fixture) -> (Result<(Answer, Answer), CallError>, Vec<LogLine>) {
        let (first, usage) = Answer::told(&self.component, &fixture.request);
        let both = first.and_then(|first| Ok((first, Answer::told(&self.component, &fixture.request).0?)));
        (both, usage.log)
    }

    /// Every rule of a host, by the folder's own grant. A plugin's own "no" breaks none.
    fn check(&self, fixture: &Fixture) -> Result<(), Violation> {
        let Self { name, grant, limits, component, manifest } = self;
        let Fixture { parent, object, request, .. } = fixture;
        check::parent(parent, name, grant, manifest)?;
        let named = grant.user_secrets.iter().filter_map(|granted| object.pointer(&granted.path)?.as_str());
        let user_secrets: Vec<String> = named.map(str::to_owned).collect();
        let selector_labels = &request.selector_labels;
        let related = self.related(parent, request)?;
        let context = check::Context {
            parent,
            plugin: name,
            grant,
            manifest,
            selector_labels,
            limits,
            user_secrets: &user_secrets,
            related: &related,
        };
        if Answer::is_finalized(component, request) {
            return match component.finalize(request).0 {
                Ok(finalized) => check::finalization(finalized, &context).map(drop),
                Err(_) => Ok(()),
            };
        }
        match component.render(request).0 {
            Ok(rendered) => check::rendering(rendered, &context).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// What the hook asks for is held against the grant; what it says no to, a render would say too.
    fn related(&self, parent: &check::Parent, request: &Request) -> Result<Vec<RelatedName>, Violation> {
        let Self { name, grant, component, manifest, .. } = self;
        if !component.hooks().relations {
            return Ok(Vec::new());
        }
        let Ok(asked) = component.related(&request.unrelated()).0 else { return Ok(Vec::new()) };
        let queries = check::related(asked, parent, name, grant, manifest)?;
        Ok(check::related_names(&queries, &request.related, parent))
    }
}
