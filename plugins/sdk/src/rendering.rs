//! What should be there: the whole wish, at every call.

use crate::{Failure, contract};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use contract::Retention;

/// Children, generated Secrets, and what the parent's status says.
#[must_use]
#[derive(Debug, Clone)]
pub struct Rendering {
    children: contract::Children,
    secrets: Vec<contract::GeneratedSecret>,
    status: Map<String, Value>,
    conditions: Vec<contract::Condition>,
    ready: contract::Readiness,
    look_again_after: Option<u32>,
}

impl Rendering {
    /// Exactly these: other children of this parent are pruned.
    pub fn of<C: Into<Child>>(children: impl IntoIterator<Item = C>) -> Self {
        Self::new(contract::Children::Exactly(children.into_iter().map(|child| child.into().0).collect()))
    }

    /// Leaves all children as they are.
    pub fn keep() -> Self {
        Self::new(contract::Children::Keep)
    }

    /// No children, on purpose: all are pruned.
    pub fn none() -> Self {
        Self::new(contract::Children::None)
    }

    fn new(children: contract::Children) -> Self {
        Self {
            children,
            secrets: Vec::new(),
            status: Map::new(),
            conditions: Vec::new(),
            ready: contract::Readiness::Auto,
            look_again_after: None,
        }
    }

    /// One more child, whatever was said of children before.
    pub fn child(mut self, child: impl Into<Child>) -> Self {
        let child = child.into().0;
        match &mut self.children {
            contract::Children::Exactly(children) => children.push(child),
            contract::Children::Keep | contract::Children::None => {
                self.children = contract::Children::Exactly(vec![child]);
            }
        }
        self
    }

    /// A Secret that the host generates once and then keeps.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secrets.push(secret.0);
        self
    }

    /// A field of the parent's status; null (`None`) leaves it out. The host
    /// keeps `conditions` and `observedGeneration`.
    pub fn status(mut self, field: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if !value.is_null() {
            self.status.insert(field.to_owned(), value);
        }
        self
    }

    /// A further condition, of another type than Ready, Progressing, Degraded
    /// and Paused. `None` is Unknown.
    pub fn condition(mut self, kind: &str, status: Option<bool>, reason: &str, message: impl Into<String>) -> Self {
        self.conditions.push(contract::Condition {
            type_: kind.to_owned(),
            status: match status {
                Some(true) => contract::ConditionStatus::True,
                Some(false) => contract::ConditionStatus::False,
                None => contract::ConditionStatus::Unknown,
            },
            reason: reason.to_owned(),
            message: message.into(),
        });
        self
    }

    /// Not ready, though the children may be.
    pub fn not_ready(mut self, reason: &str, message: impl Into<String>) -> Self {
        self.ready =
            contract::Readiness::NotReady(contract::Explanation { reason: reason.to_owned(), message: message.into() });
        self
    }

    /// Asks for another render though nothing may have changed.
    pub fn look_again_after(mut self, seconds: u32) -> Self {
        self.look_again_after = Some(seconds);
        self
    }
}

impl From<Rendering> for contract::Rendering {
    fn from(Rendering { children, secrets, status, conditions, ready, look_again_after }: Rendering) -> Self {
        let status = if status.is_empty() { None } else { Some(json_text(&Value::Object(status))) };
        Self { children, secrets, status, conditions, ready, look_again_after }
    }
}

/// An object with a wish about how to treat it.
#[must_use]
#[derive(Debug, Clone)]
pub struct Child(contract::Child);

impl Child {
    /// From a type of a crate such as `k8s-openapi`; a `json!()` needs no more
    /// than `into()`.
    ///
    /// # Errors
    /// Where the type has no form in JSON.
    pub fn typed(object: &impl Serialize) -> Result<Self, Failure> {
        Ok(Self(contract::Child { object: serde_json::to_string(object)?, retain: None, strategy: None }))
    }

    /// Keeps it when the parent goes, because it holds data.
    pub fn retained(mut self, data_version: &str, line: &str) -> Self {
        self.0.retain = Some(retention(data_version, line));
        self
    }

    /// For changes that cannot be made in place: `InPlace`, `Recreate` or
    /// `OnDelete`. The Plugin document has the last word.
    pub fn strategy(mut self, strategy: &str) -> Self {
        self.0.strategy = Some(strategy.to_owned());
        self
    }
}

/// A field that is null (an `Option` in a `json!()` that is `None`) is left out.
impl From<Value> for Child {
    fn from(mut object: Value) -> Self {
        leave_out_nulls(&mut object);
        Self(contract::Child { object: json_text(&object), retain: None, strategy: None })
    }
}

fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

/// A Secret whose data the host makes; it never enters the plugin.
#[must_use]
#[derive(Debug, Clone)]
pub struct Secret(contract::GeneratedSecret);

impl Secret {
    pub fn generated(name: impl Into<String>) -> Self {
        Self(contract::GeneratedSecret { name: name.into(), keys: Vec::new(), secret_type: None, retain: None })
    }

    /// So many random letters and digits, 8 to 256.
    pub fn random(self, key: &str, length: u32) -> Self {
        self.key(key, contract::SecretValue::Random(contract::RandomText { length, alphabet: None }))
    }

    /// Random text of these characters, at least 10 of ASCII.
    pub fn random_of(self, key: &str, length: u32, alphabet: &str) -> Self {
        let alphabet = Some(alphabet.to_owned());
        self.key(key, contract::SecretValue::Random(contract::RandomText { length, alphabet }))
    }

    pub fn literal(self, key: &str, value: impl Into<String>) -> Self {
        self.key(key, contract::SecretValue::Literal(value.into()))
    }

    /// Text over other keys, `{password}` or percent-encoded `{password|url}`;
    /// `{{` and `}}` are braces.
    pub fn template(self, key: &str, text: impl Into<String>) -> Self {
        self.key(key, contract::SecretValue::Template(text.into()))
    }

    fn key(mut self, name: &str, value: contract::SecretValue) -> Self {
        self.0.keys.push(contract::SecretKey { name: name.to_owned(), value });
        self
    }

    /// Another type than `Opaque`.
    pub fn of_type(mut self, secret_type: &str) -> Self {
        self.0.secret_type = Some(secret_type.to_owned());
        self
    }

    /// Kept as long as the data that it opens.
    pub fn retained(mut self, data_version: &str, line: &str) -> Self {
        self.0.retain = Some(retention(data_version, line));
        self
    }

    /// An entry of a container's `env` that takes its value from this Secret.
    #[must_use]
    pub fn env(&self, variable: &str, key: &str) -> Value {
        json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": self.0.name, "key": key}}})
    }
}

/// Half the time and size of `Value`'s `Display`.
pub(crate) fn json_text(value: &Value) -> String {
    serde_json::to_string(value).expect("a Value has no other keys than strings")
}

fn retention(data_version: &str, line: &str) -> Retention {
    Retention { data_version: data_version.to_owned(), line: line.to_owned() }
}
