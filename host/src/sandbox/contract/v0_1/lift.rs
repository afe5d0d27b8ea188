//! What a guest returned, in our types and within its limits: text, number of
//! children, JSON, and what the contract says of reasons and empty lists.

use serde_json::{Map, Value};

use super::super::super::json::Json;
use super::super::super::model::{
    CallError, Child, ChildKind, Children, Condition, Discriminator, Explanation, Failure, FailureClass, Finalization,
    GeneratedSecret, KindRef, Manifest, RelatedQuery, Rendering, Retention, SecretKey, SecretValue, Selection, Serving,
};
use super::bindings::exports::keelson::operator::{finalizer, relations};
use super::bindings::keelson::operator::{log, types};
use crate::limits::{self, PluginLimits};

type Lifted<T> = Result<T, CallError>;

/// One call's worth: all of it counts together.
pub(super) struct Lift {
    limits: PluginLimits,
    text_left: usize,
    json: Json,
}

impl Lift {
    pub(super) fn new(limits: PluginLimits) -> Self {
        Self { limits, text_left: limits.output_bytes(), json: Json::new() }
    }

    pub(super) fn manifest(&mut self, manifest: types::Manifest) -> Lifted<Manifest> {
        let types::Manifest { name, version, serves, children, related, schema, uses_time } = manifest;
        Ok(Manifest {
            name: self.text(name)?,
            version: self.text(version)?,
            serves: serves.into_iter().map(|serving| self.serving(serving)).collect::<Lifted<_>>()?,
            children: children
                .into_iter()
                .map(|types::ChildKind { kind, observe }| {
                    Ok(ChildKind { kind: self.kind(kind)?, observe: self.texts(observe)? })
                })
                .collect::<Lifted<_>>()?,
            related: related.into_iter().map(|kind| self.kind(kind)).collect::<Lifted<_>>()?,
            schema: schema
                .map(|schema| self.object(&schema, || "manifest.schema".into()))
                .transpose()?
                .map(Value::Object),
            uses_time,
        })
    }

    pub(super) fn rendering(&mut self, rendering: types::Rendering) -> Lifted<Rendering> {
        let types::Rendering { children, secrets, status, conditions, ready, look_again_after } = rendering;
        self.count(&children, &secrets, &conditions)?;
        Ok(Rendering {
            children: self.children(children)?,
            secrets: secrets.into_iter().map(|secret| self.secret(secret)).collect::<Lifted<_>>()?,
            status: match status {
                Some(status) => self.object(&status, || "status".into())?,
                None => Map::new(),
            },
            conditions: conditions.into_iter().map(|condition| self.condition(condition)).collect::<Lifted<_>>()?,
            not_ready: match ready {
                types::Readiness::Auto => None,
                types::Readiness::NotReady(why) => Some(self.explanation(why, "ready")?),
            },
            look_again_after,
        })
    }

    pub(super) fn finalization(&mut self, finalization: finalizer::Finalization) -> Lifted<Finalization> {
        let finalizer::Finalization { children, secrets, progress, look_again_after } = finalization;
        self.count(&children, &secrets, &[])?;
        Ok(Finalization {
            children: self.children(children)?,
            secrets: secrets.into_iter().map(|secret| self.secret(secret)).collect::<Lifted<_>>()?,
            waiting: match progress {
                finalizer::Progress::Done => None,
                finalizer::Progress::Waiting(why) => Some(self.explanation(why, "progress")?),
            },
            look_again_after,
        })
    }

    pub(super) fn queries(&mut self, queries: Vec<relations::RelatedQuery>) -> Lifted<Vec<RelatedQuery>> {
        if queries.len() > limits::RELATED_QUERIES {
            let error = format!("{} related queries, where {} are allowed", queries.len(), limits::RELATED_QUERIES);
            return Err(CallError::OutputInvalid(error));
        }
        queries.into_iter().map(|query| self.query(query)).collect()
    }

    pub(super) fn failure(&mut self, failure: types::Failure) -> Lifted<Failure> {
        let types::Failure { class, reason, message, fields, allowed, remedy, retry_after } = failure;
        Ok(Failure {
            class: match class {
                types::FailureClass::Invalid => FailureClass::Invalid,
                types::FailureClass::NotYet => FailureClass::NotYet,
                types::FailureClass::Internal => FailureClass::Internal,
            },
            reason: self.reason(reason, "failure")?,
            message: self.text(message)?,
            fields: self.texts(fields)?,
            allowed: self.texts(allowed)?,
            remedy: self.maybe(remedy)?,
            retry_after,
        })
    }

    // ------------------------------------------------------------------ parts

    fn count(
        &self,
        children: &types::Children,
        secrets: &[types::GeneratedSecret],
        conditions: &[types::Condition],
    ) -> Lifted<()> {
        let children = match children {
            types::Children::Exactly(children) if children.is_empty() => {
                let fix = "`exactly` with an empty list; where no child is intended, return `none`";
                return Err(CallError::OutputInvalid(fix.into()));
            }
            types::Children::Exactly(children) => children.len(),
            types::Children::Keep | types::Children::None => 0,
        };
        let total = children + secrets.len();
        if total > self.limits.children as usize {
            let error = format!("{total} children and Secrets, where {} are allowed", self.limits.children);
            return Err(CallError::OutputInvalid(error));
        }
        if conditions.len() > limits::CONDITIONS {
            let error = format!("{} conditions, where {} are allowed", conditions.len(), limits::CONDITIONS);
            return Err(CallError::OutputInvalid(error));
        }
        Ok(())
    }

    fn children(&mut self, children: types::Children) -> Lifted<Children> {
        let children = match children {
            types::Children::Keep => return Ok(Children::Keep),
            types::Children::None => return Ok(Children::None),
            types::Children::Exactly(children) => children,
        };
        let children = children.into_iter().enumerate().map(|(index, child)| {
            let types::Child { object, retain, strategy } = child;
            Ok(Child {
                object: self.object(&object, || format!("children[{index}]"))?,
                retain: self.retention(retain)?,
                strategy: self.maybe(strategy)?,
            })
        });
        Ok(Children::Exactly(children.collect::<Lifted<_>>()?))
    }

    fn secret(&mut self, secret: types::GeneratedSecret) -> Lifted<GeneratedSecret> {
        let types::GeneratedSecret { name, keys, secret_type, retain } = secret;
        let keys = keys.into_iter().map(|types::SecretKey { name, value }| {
            let name = self.text(name)?;
            let value = match value {
                types::SecretValue::Random(types::RandomText { length, alphabet }) => {
                    SecretValue::Random { length, alphabet: self.maybe(alphabet)? }
                }
                types::SecretValue::Literal(text) => SecretValue::Literal(self.text(text)?),
                types::SecretValue::Template(text) => SecretValue::Template(self.text(text)?),
            };
            Ok(SecretKey { name, value })
        });
        Ok(GeneratedSecret {
            keys: keys.collect::<Lifted<_>>()?,
            name: self.text(name)?,
            secret_type: self.maybe(secret_type)?,
            retain: self.retention(retain)?,
        })
    }

    fn retention(&mut self, retention: Option<types::Retention>) -> Lifted<Option<Retention>> {
        let Some(types::Retention { data_version, line }) = retention else { return Ok(None) };
        Ok(Some(Retention { data_version: self.text(data_version)?, line: self.text(line)? }))
    }

    fn explanation(&mut self, explanation: types::Explanation, of: &str) -> Lifted<Explanation> {
        let types::Explanation { reason, message } = explanation;
        Ok(Explanation { reason: self.reason(reason, of)?, message: self.text(message)? })
    }

    fn condition(&mut self, condition: types::Condition) -> Lifted<Condition> {
        let types::Condition { type_, status, reason, message } = condition;
        Ok(Condition {
            reason: self.reason(reason, &format!("condition {type_:?}"))?,
            kind: self.text(type_)?,
            status: match status {
                types::ConditionStatus::True => "True",
                types::ConditionStatus::False => "False",
                types::ConditionStatus::Unknown => "Unknown",
            },
            message: self.text(message)?,
        })
    }

    fn serving(&mut self, serving: types::Serving) -> Lifted<Serving> {
        let types::Serving { group, versions, kind, plural, discriminator } = serving;
        Ok(Serving {
            group: self.text(group)?,
            versions: self.texts(versions)?,
            kind: self.text(kind)?,
            plural: self.text(plural)?,
            discriminator: match discriminator {
                Some(types::Discriminator { path, value }) => {
                    Some(Discriminator { path: self.text(path)?, value: self.text(value)? })
                }
                None => None,
            },
        })
    }

    fn kind(&mut self, kind: types::KindRef) -> Lifted<KindRef> {
        let types::KindRef { group, version, kind, plural } = kind;
        Ok(KindRef {
            group: self.text(group)?,
            version: self.text(version)?,
            kind: self.text(kind)?,
            plural: self.text(plural)?,
        })
    }

    fn query(&mut self, query: relations::RelatedQuery) -> Lifted<RelatedQuery> {
        let relations::RelatedQuery { id, kind, namespace, by, observe } = query;
        Ok(RelatedQuery {
            id: self.text(id)?,
            kind: self.kind(kind)?,
            namespace: self.maybe(namespace)?,
            by: match by {
                relations::Selection::Name(name) => Selection::Name(self.text(name)?),
                relations::Selection::Labels(labels) => Selection::Labels(
                    labels
                        .into_iter()
                        .map(|types::LabelResult { key, value }| Ok((self.text(key)?, self.text(value)?)))
                        .collect::<Lifted<_>>()?,
                ),
            },
            observe: self.texts(observe)?,
        })
    }

    // ------------------------------------------------------------------- text

    fn text(&mut self, text: String) -> Lifted<String> {
        self.charge(&text)?;
        Ok(text)
    }

    fn texts(&mut self, texts: Vec<String>) -> Lifted<Vec<String>> {
        texts.iter().try_for_each(|text| self.charge(text))?;
        Ok(texts)
    }

    fn maybe(&mut self, text: Option<String>) -> Lifted<Option<String>> {
        text.map(|text| self.text(text)).transpose()
    }

    fn object(&mut self, text: &str, what: impl FnOnce() -> String) -> Lifted<Map<String, Value>> {
        self.charge(text)?;
        self.json.object(text, what)
    }

    /// The API server refuses a condition with any other reason.
    fn reason(&mut self, reason: String, of: &str) -> Lifted<String> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let first = reason.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if first && reason.len() <= limits::REASON_CHARS && reason.bytes().all(word) {
            return self.text(reason);
        }
        let shown: String = reason.chars().take(limits::REASON_CHARS).collect();
        Err(CallError::OutputInvalid(format!(
            "the reason {shown:?} of {of} is not CamelCase of at most {} characters",
            limits::REASON_CHARS
        )))
    }

    fn charge(&mut self, text: &str) -> Lifted<()> {
        let left = self.text_left.checked_sub(text.len());
        self.text_left = left.ok_or(CallError::OutputTooLarge { limits: self.limits })?;
        Ok(())
    }
}

// === impl of what `log` takes ===

impl From<log::Level> for tracing::Level {
    fn from(level: log::Level) -> Self {
        match level {
            log::Level::Trace => Self::TRACE,
            log::Level::Debug => Self::DEBUG,
            log::Level::Info => Self::INFO,
            log::Level::Warn => Self::WARN,
            log::Level::Error => Self::ERROR,
        }
    }
}

impl From<log::Field> for (String, String) {
    fn from(log::Field { key, value }: log::Field) -> Self {
        (key, value)
    }
}
