//! What a test may ask for. Everything is optional; without `children` they are kept.
//!
//! In texts of children and status `{name}` and `{namespace}` stand for the parent's, `{/JSON/POINTER}` for any value
//! of it, `{fill:N}` for N letters, `{data-version:X}` and `{revision:X}` for what the request says of the child and the
//! Secret X, or NAME-X (empty where it says nothing), `{related:ID}` for `NAME: OBJECT` or `NAME: absent`, `;` between,
//! of each answer to that query; a text that is just `{selector}` becomes the object of the selector labels.

use keelson_sdk::contract;
use keelson_sdk::serde_json::{self, Map, Value};
use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Script {
    children: Option<Vec<Value>>,
    /// Kind to what is to be done where such a child cannot be changed.
    strategies: Map<String, Value>,
    /// Further children as they are, JSON or not.
    raw: Vec<String>,
    /// No children, on purpose.
    none: bool,
    secrets: Vec<Secret>,
    status: Map<String, Value>,
    conditions: Vec<Condition>,
    not_ready: Option<Explanation>,
    look_again_after: Option<u32>,
    /// Instead of a rendering.
    fail: Option<Failure>,
    /// Only until then, in seconds since 1970: for a manifest that `usesTime`.
    fail_until: Option<u64>,
    pub(crate) log: Vec<String>,
    /// Instead of an answer.
    pub(crate) act: Option<Act>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Act {
    Trap,
    Loop,
    Allocate,
}

/// A Secret with one random key, and others made by templates.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Secret {
    name: String,
    key: String,
    #[serde(default)]
    templates: std::collections::BTreeMap<String, String>,
    retain: Option<Retention>,
    /// Only once the request tells the revision of that Secret.
    after: Option<String>,
}

/// Also `retain` beside a child's own fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Retention {
    data_version: String,
    line: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    r#type: String,
    status: bool,
    reason: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explanation {
    reason: String,
    message: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Failure {
    class: Class,
    reason: String,
    message: String,
    fields: Vec<String>,
    allowed: Vec<String>,
    remedy: Option<String>,
    retry_after: Option<u32>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum Class {
    #[default]
    Invalid,
    NotYet,
    Internal,
}

pub(crate) fn unreadable(error: &serde_json::Error) -> contract::Failure {
    let failure = Failure { reason: "BadScript".to_owned(), message: error.to_string(), ..Failure::default() };
    failure.into()
}

impl Script {
    pub(crate) fn play(
        self,
        parent: &Value,
        request: &contract::Request,
    ) -> Result<contract::Rendering, contract::Failure> {
        let over = self.fail_until.is_some_and(|until| request.now.is_some_and(|now| now >= until));
        if let Some(fail) = self.fail.filter(|_| !over) {
            return Err(fail.into());
        }
        let fill = |mut value: Value| {
            fill(&mut value, parent, request);
            value
        };
        let child = |object: String| contract::Child { object, retain: None, strategy: None };
        let of_kind = |object: &Value| {
            let kind = object.get("kind").and_then(Value::as_str)?;
            Some(self.strategies.get(kind)?.as_str()?.to_owned())
        };
        let raw = self.raw.into_iter().map(child);
        let said = |mut object: Value| {
            let retain = object.as_object_mut().and_then(|object| object.remove("retain"));
            let retain =
                retain.map(|retain| serde_json::from_value::<Retention>(retain).expect("dataVersion and line"));
            contract::Child {
                retain: retain.map(Into::into),
                strategy: of_kind(&object),
                ..child(fill(object).to_string())
            }
        };
        let children = match self.children {
            Some(children) => contract::Children::Exactly(children.into_iter().map(said).chain(raw).collect()),
            None if raw.len() > 0 => contract::Children::Exactly(raw.collect()),
            None if self.none => contract::Children::None,
            None => contract::Children::Keep,
        };
        let status = (!self.status.is_empty()).then(|| fill(Value::Object(self.status)).to_string());
        let ready = match self.not_ready {
            Some(Explanation { reason, message }) => {
                contract::Readiness::NotReady(contract::Explanation { reason, message })
            }
            None => contract::Readiness::Auto,
        };
        Ok(contract::Rendering {
            children,
            secrets: self
                .secrets
                .into_iter()
                .filter(|secret| secret.is_wanted(request))
                .map(|secret| secret.generated(parent, request))
                .collect(),
            status,
            conditions: self.conditions.into_iter().map(Into::into).collect(),
            ready,
            look_again_after: self.look_again_after,
        })
    }
}

/// Puts values in the place of `{…}`, in all texts of a value.
fn fill(value: &mut Value, parent: &Value, request: &contract::Request) {
    match value {
        Value::String(text) if text == "{selector}" => {
            let labels = request.selector_labels.iter();
            *value = labels.map(|label| (label.key.clone(), Value::from(label.value.as_str()))).collect();
        }
        Value::String(text) if text.contains('{') => *text = filled(text, parent, request),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, parent, request)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, parent, request)),
        _ => {}
    }
}

fn filled(text: &str, parent: &Value, request: &contract::Request) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, (word, after))) = rest.split_once('{').and_then(|(b, a)| Some((b, a.split_once('}')?))) {
        filled += before;
        rest = after;
        let pointer = match word {
            "name" | "namespace" => format!("/metadata/{word}"),
            _ => word.to_owned(),
        };
        let own = parent.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let is = |name: &str, wanted: &str| name == wanted || name == format!("{own}-{wanted}");
        if let Some(name) = word.strip_prefix("data-version:") {
            let child = request.children.iter().find(|child| is(&child.name, name));
            filled += child.and_then(|child| child.data_version.as_deref()).unwrap_or_default();
            continue;
        }
        if let Some(id) = word.strip_prefix("related:") {
            let answers = request.related.iter().filter(|answer| answer.id == id).map(|answer| match &answer.outcome {
                contract::RelatedOutcome::Found(object) => format!("{}: {object}", answer.name),
                contract::RelatedOutcome::Absent => format!("{}: absent", answer.name),
            });
            filled += &answers.collect::<Vec<_>>().join("; ");
            continue;
        }
        if let Some(name) = word.strip_prefix("revision:") {
            let secret = request.secrets.iter().find(|secret| is(&secret.name, name));
            filled += secret.map_or("", |secret| &secret.revision);
            continue;
        }
        match (word.strip_prefix("fill:").and_then(|n| n.parse().ok()), parent.pointer(&pointer)) {
            (Some(letters), _) => filled += &"x".repeat(letters),
            (None, Some(Value::String(value))) => filled += value,
            (None, Some(value)) => filled += &value.to_string(),
            (None, None) => filled += &format!("{{{word}}}"),
        }
    }
    filled + rest
}

impl Secret {
    fn is_wanted(&self, request: &contract::Request) -> bool {
        self.after.as_ref().is_none_or(|after| request.secrets.iter().any(|secret| secret.name == *after))
    }

    fn generated(self, parent: &Value, request: &contract::Request) -> contract::GeneratedSecret {
        let mut name = Value::String(self.name);
        fill(&mut name, parent, request);
        let value = contract::SecretValue::Random(contract::RandomText { length: 24, alphabet: None });
        contract::GeneratedSecret {
            name: name.as_str().unwrap_or_default().to_owned(),
            keys: std::iter::once(contract::SecretKey { name: self.key, value })
                .chain(
                    self.templates
                        .into_iter()
                        .map(|(name, text)| contract::SecretKey { name, value: contract::SecretValue::Template(text) }),
                )
                .collect(),
            secret_type: None,
            retain: self.retain.map(Into::into),
        }
    }
}

impl From<Retention> for contract::Retention {
    fn from(Retention { data_version, line }: Retention) -> Self {
        Self { data_version, line }
    }
}

impl From<Condition> for contract::Condition {
    fn from(Condition { r#type, status, reason, message }: Condition) -> Self {
        let status = if status { contract::ConditionStatus::True } else { contract::ConditionStatus::False };
        Self { type_: r#type, status, reason, message }
    }
}

impl From<Failure> for contract::Failure {
    fn from(failure: Failure) -> Self {
        let Failure { class, reason, message, fields, allowed, remedy, retry_after } = failure;
        let class = match class {
            Class::Invalid => contract::FailureClass::Invalid,
            Class::NotYet => contract::FailureClass::NotYet,
            Class::Internal => contract::FailureClass::Internal,
        };
        Self { class, reason, message, fields, allowed, remedy, retry_after }
    }
}
