//! Why there is no rendering, said to the person who wrote the object.

use crate::contract;

/// The children stay as they are, and the parent's Ready is False with this
/// reason and message.
///
/// ```
/// # use keelson_sdk::Failure;
/// Failure::invalid("a replica set has an odd number of members")
///     .field("/spec/members")
///     .allowed(["1", "3", "5"]);
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Failure(Box<contract::Failure>);

impl Failure {
    /// The object is wrong: not asked again until it changes. `InvalidSpec`.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(contract::FailureClass::Invalid, "InvalidSpec", message)
    }

    /// Something is still missing; asked again when an observed object changes,
    /// or after [`retry_after`](Self::retry_after).
    pub fn not_yet(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(contract::FailureClass::NotYet, reason, message)
    }

    /// The plugin is at fault; asked again with growing delay.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(contract::FailureClass::Internal, "PluginError", message)
    }

    fn new(class: contract::FailureClass, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Box::new(contract::Failure {
            class,
            reason: reason.into(),
            message: message.into(),
            fields: Vec::new(),
            allowed: Vec::new(),
            remedy: None,
            retry_after: None,
        }))
    }

    /// Another reason than the usual one: CamelCase, at most 64 characters.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = reason.into();
        self
    }

    /// JSON pointer of an offending field, for instance `/spec/port`.
    pub fn field(mut self, pointer: impl Into<String>) -> Self {
        self.0.fields.push(pointer.into());
        self
    }

    /// The values that would be accepted.
    pub fn allowed<T: ToString>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        self.0.allowed.extend(values.into_iter().map(|value| value.to_string()));
        self
    }

    /// What to do about it, perhaps a command.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// Seconds until the next try of a [`not_yet`](Self::not_yet).
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }
}

impl From<Failure> for contract::Failure {
    fn from(failure: Failure) -> Self {
        *failure.0
    }
}

impl From<contract::Failure> for Failure {
    fn from(failure: contract::Failure) -> Self {
        Self(Box::new(failure))
    }
}

impl std::ops::Deref for Failure {
    type Target = contract::Failure;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// JSON that the plugin itself makes or reads.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::internal(error.to_string())
    }
}
