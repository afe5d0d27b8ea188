//! The objects that a plugin asks to look at. Each is found, absent, or
//! unreadable, which stops the walk: missing input is not empty input.

use std::sync::Arc;

use super::host::Host;
use super::kinds::{Kind, Scope, State, Unusable};
use super::parents::Parent;
use super::refusal::Refusal;
use super::related::{Question, Seen, Shown};
use super::retry::Retry;
use super::secrets;
use crate::check;
use crate::cluster::{ApiError, ApiErrorKind, ObjectView, Resource};
use crate::limits::{RELATED_BYTES, RELATED_OBJECTS, RELATED_TRIES};
use crate::sandbox::model::{RelatedObject, RelatedQuery, Selection};

/// Why what a plugin asks for cannot be shown to it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    /// Said by readiness, not by objects: it passes by itself.
    #[error("the watch of {kind}, which the plugin looks at, is not filled yet")]
    Unfilled { kind: String },
    #[error("{kind}, which the plugin looks at: {problem}")]
    Unusable { kind: String, problem: Unusable },
    #[error("the plugin looks at {what}, and this host does not watch that namespace (WATCH_NAMESPACE)")]
    NotWatched { what: String },
    #[error("the plugin looks at {what}: with all that it looks at for this object, more than {RELATED_OBJECTS}")]
    TooMany { what: String },
    #[error("the plugin looks at {what}: with all that it looks at for this object, more than {RELATED_BYTES} bytes")]
    TooLarge { what: String },
    #[error(
        "Secret {name}, which the plugin looks at, is of type {kind}, which the cluster itself trusts; it is not shown"
    )]
    Trusted { name: String, kind: String },
    #[error("{0}")]
    Refused(Refusal),
}

impl LookError {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Unfilled { .. } => "CachesNotFilled",
            Self::Unusable { problem: Unusable::Forbidden(_), .. } => "Forbidden",
            Self::Unusable { problem: Unusable::Missing(_), .. } => "KindMissing",
            Self::NotWatched { .. } => "NamespaceNotWatched",
            Self::TooMany { .. } | Self::TooLarge { .. } => "TooLarge",
            Self::Trusted { .. } => "InvalidSpec",
            Self::Refused(refusal) => refusal.reason(),
        }
    }

    pub(crate) fn retry(&self) -> Retry {
        match self {
            // A watch that becomes filled wakes every parent.
            Self::Unfilled { .. } | Self::NotWatched { .. } => Retry::Permanent,
            Self::Unusable { .. } | Self::TooMany { .. } | Self::TooLarge { .. } | Self::Trusted { .. } => {
                Retry::Blocked
            }
            Self::Refused(refusal) => refusal.retry(),
        }
    }

    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// A question, and where its kind stands in the API.
type Placed = (Arc<Question>, Arc<Resource>);

/// What each query finds. Secrets, which are not watched, are read anew where `afresh` says so.
pub(crate) async fn look(
    host: &Host,
    parent: &Parent,
    queries: &[RelatedQuery],
    afresh: bool,
) -> Result<Vec<RelatedObject>, LookError> {
    let questions = questions(host, parent, queries)?;
    host.related.ask(&parent.id.uid, questions.iter().map(|(question, _)| Arc::clone(question)).collect());
    let mut objects = Vec::new();
    let mut bytes = 0_usize;
    for (query, (question, resource)) in queries.iter().zip(&questions) {
        let shown = shown(host, parent, question, resource, afresh).await?;
        bytes = shown.iter().fold(bytes, |sum, (_, shown)| sum.saturating_add(shown.len()));
        if objects.len().saturating_add(shown.len()) > RELATED_OBJECTS {
            return Err(LookError::TooMany { what: told(question) });
        }
        if bytes > RELATED_BYTES {
            return Err(LookError::TooLarge { what: told(question) });
        }
        objects.extend(answers(query, shown));
    }
    Ok(objects)
}

/// Each query as a question to the cluster, where its kind is watched.
fn questions(host: &Host, parent: &Parent, queries: &[RelatedQuery]) -> Result<Vec<Placed>, LookError> {
    let kinds = host.kinds();
    let question = |query: &RelatedQuery| {
        let RelatedQuery { id: _, kind: of, namespace, by, observe } = query;
        let unfilled = || LookError::Unfilled { kind: of.plural.clone() };
        let (kind, watched) = kinds.related(of).ok_or_else(unfilled)?;
        let resource = usable(watched)?;
        let namespace = resource.namespaced.then(|| namespace.clone().unwrap_or_else(|| parent.id.namespace.clone()));
        let (by, observe) = (by.clone(), observe.clone());
        let question = Question { kind, of: of.clone(), namespace, by, observe };
        match watched.watched(question.namespace.as_deref()) {
            Some(State::Filled) => Ok((Arc::new(question), resource)),
            Some(State::Starting(_)) => Err(unfilled()),
            Some(State::Unusable(problem)) => Err(LookError::Unusable { kind: watched.name(), problem }),
            None => Err(LookError::NotWatched { what: told(&question) }),
        }
    };
    queries.iter().map(question).collect()
}

/// Where the kind stands in the API; not known before its first watch has found it.
fn usable(kind: &Kind) -> Result<Arc<Resource>, LookError> {
    if let Some(resource) = kind.resource() {
        return Ok(resource);
    }
    match kind.scopes().iter().map(Scope::state).find(|state| matches!(state, State::Unusable(_))) {
        Some(State::Unusable(problem)) => Err(LookError::Unusable { kind: kind.name(), problem }),
        _ => Err(LookError::Unfilled { kind: kind.name() }),
    }
}

async fn shown(
    host: &Host,
    parent: &Parent,
    question: &Question,
    resource: &Resource,
    afresh: bool,
) -> Result<Shown, LookError> {
    let secret = question.of.group.is_empty() && question.of.kind == "Secret";
    if let Some(shown) = host.related.answer(question).filter(|_| !(secret && afresh)) {
        return Ok(shown);
    }
    for _ in 0..RELATED_TRIES {
        let moment = host.related.moment(question.kind);
        let found = read(host, question, resource).await?;
        if secret {
            let others = host.related.reread(question, found);
            host.wake(others.into_iter().filter(|uid| **uid != *parent.id.uid));
        } else if !host.related.read(question, moment, found) {
            continue;
        }
        // Nobody watches its kind any more, as soon as this: nothing is known, which is not nothing.
        if let Some(shown) = host.related.answer(question) {
            return Ok(shown);
        }
    }
    Err(LookError::Unfilled { kind: question.of.plural.clone() })
}

async fn read(host: &Host, question: &Question, resource: &Resource) -> Result<Vec<Seen>, LookError> {
    let refused = |error: ApiError| LookError::Refused(Refusal::new(told(question), error));
    let unreadable = |problem: String| refused(ApiError::new(told(question), ApiErrorKind::Decode(problem)));
    let namespace = question.namespace.as_deref();
    match &question.by {
        Selection::Name(name) => match host.api.get(resource, namespace, name).await {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(refused(error)),
            Ok(bytes) => {
                let view = ObjectView::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
                Ok(seen(question, &view)?.into_iter().collect())
            }
        },
        Selection::Labels(labels) => {
            let selector: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let page = host.api.list_few(resource, namespace, &selector.join(","), RELATED_OBJECTS).await;
            let items = page.map_err(refused)?;
            let too_many = || LookError::TooMany { what: told(question) };
            let items = items.ok_or_else(too_many)?;
            let view = |item: &serde_json::value::RawValue| {
                let view = ObjectView::parse(item.get()).map_err(|error| unreadable(error.to_string()))?;
                seen(question, &view)
            };
            items.iter().filter_map(|item| view(item).transpose()).collect()
        }
    }
}

fn seen(question: &Question, view: &ObjectView<'_>) -> Result<Option<Seen>, LookError> {
    let (name, version) = (view.name.clone().into_owned(), view.resource_version.parse().unwrap_or(0));
    if question.of.group.is_empty() && question.of.kind == "Secret" {
        let kind = view.text_at("/type").unwrap_or_default();
        if !check::is_plain_secret(&kind) {
            return Err(LookError::Trusted { name, kind: kind.into_owned() });
        }
        let shown = serde_json::json!({"revision": secrets::revision_of(view)}).to_string().into();
        return Ok(Some(Seen { name, version, shown }));
    }
    Ok(question.shows(view).map(|shown| Seen { name, version, shown }))
}

/// By name one answer always; by labels one for each object.
fn answers(query: &RelatedQuery, shown: Shown) -> Vec<RelatedObject> {
    let RelatedQuery { id, kind, namespace: _, by, observe: _ } = query;
    let object = |name: String, found| RelatedObject {
        id: id.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        name,
        found,
    };
    match by {
        Selection::Name(name) if shown.is_empty() => vec![object(name.clone(), None)],
        _ => shown.into_iter().map(|(name, shown)| object(name, Some(shown))).collect(),
    }
}

/// `ConfigMap shop/a`, `ConfigMaps of namespace shop with a=b`.
fn told(question: &Question) -> String {
    let Question { kind: _, of, namespace, by, observe: _ } = question;
    match (by, namespace) {
        (Selection::Name(name), Some(namespace)) => format!("{} {namespace}/{name}", of.kind),
        (Selection::Name(name), None) => format!("{} {name}", of.kind),
        (Selection::Labels(labels), place) => {
            let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let place = place.as_ref().map_or_else(String::new, |namespace| format!(" of namespace {namespace}"));
            let with = if labels.is_empty() { String::new() } else { format!(" with {}", labels.join(",")) };
            format!("every {}{place}{with}", of.kind)
        }
    }
}
