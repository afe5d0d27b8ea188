//! A request as the guest's types want it: all text is borrowed, only the lists
//! of borrows are new.

use super::super::super::model::{ObservedChild, RelatedObject, Request, SecretRevision};
use super::bindings::keelson::operator::types;

pub(super) struct Lowered<'a> {
    request: &'a Request,
    selector_labels: Vec<types::LabelParam<'a>>,
    children: Vec<types::ObservedChild<'a>>,
    related: Vec<types::RelatedObject<'a>>,
    secrets: Vec<types::SecretRevision<'a>>,
}

impl<'a> Lowered<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        let label = |(key, value): &'a (String, String)| types::LabelParam { key, value };
        Self {
            request,
            selector_labels: request.selector_labels.iter().map(label).collect(),
            children: request.children.iter().map(child).collect(),
            related: request.related.iter().map(related).collect(),
            secrets: request.secrets.iter().map(secret).collect(),
        }
    }

    pub(super) fn request(&self) -> types::Request<'_> {
        let Request { parent, config, selector_labels: _, children: _, related: _, secrets: _, now, seed } =
            self.request;
        types::Request {
            parent,
            config,
            selector_labels: &self.selector_labels,
            children: &self.children,
            related: &self.related,
            secrets: &self.secrets,
            now: *now,
            seed: *seed,
        }
    }
}

fn child(child: &ObservedChild) -> types::ObservedChild<'_> {
    let ObservedChild { api_version, kind, name, uid, going, object, data_version } = child;
    types::ObservedChild { api_version, kind, name, uid, going: *going, object, data_version: data_version.as_deref() }
}

fn related(object: &RelatedObject) -> types::RelatedObject<'_> {
    let RelatedObject { id, api_version, kind, name, found } = object;
    let outcome = found.as_deref().map_or(types::RelatedOutcome::Absent, types::RelatedOutcome::Found);
    types::RelatedObject { id, api_version, kind, name, outcome }
}

fn secret(secret: &SecretRevision) -> types::SecretRevision<'_> {
    let SecretRevision { name, revision } = secret;
    types::SecretRevision { name, revision }
}
