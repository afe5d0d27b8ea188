//! What an API call can end in: said in full words, with the call that was made.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// A call that did not succeed. `call` reads `apply pods ns/name`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{call}: {kind}")]
pub struct ApiError {
    pub call: String,
    pub kind: Box<ApiErrorKind>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiErrorKind {
    /// The server answered, with a refusal.
    #[error("{0}")]
    Status(Refusal),
    /// A write that was not sent, since another host may lead.
    #[error("not sent: this host does not hold the lease")]
    NotLeading,
    /// No answer in time. A write may have happened.
    #[error("no answer from the API server in {0:?}")]
    Timeout(Duration),
    /// Not connected, or the connection broke: the source chain in words.
    #[error("{0}")]
    Connect(String),
    /// The credentials could not be had (token file, exec plugin).
    #[error("credentials: {0}")]
    Auth(String),
    /// The server answered with something that is not what was asked for.
    #[error("unexpected answer: {0}")]
    Decode(String),
}

/// metav1.Status, reduced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Refusal {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub causes: Vec<Cause>,
    pub retry_after: Option<Duration>,
    /// Whether the body was a metav1.Status or the API server's own plain text: only then did Kubernetes speak.
    pub by_kubernetes: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Cause {
    pub reason: String,
    pub field: String,
    pub message: String,
}

// === impl ApiError ===

impl ApiError {
    pub(crate) fn new(call: impl Into<String>, kind: ApiErrorKind) -> Self {
        Self { call: call.into(), kind: Box::new(kind) }
    }

    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.kind {
            ApiErrorKind::Status(refusal) => Some(refusal),
            ApiErrorKind::NotLeading
            | ApiErrorKind::Timeout(_)
            | ApiErrorKind::Connect(_)
            | ApiErrorKind::Auth(_)
            | ApiErrorKind::Decode(_) => None,
        }
    }

    /// The HTTP status, where the server answered.
    pub fn code(&self) -> Option<u16> {
        self.refusal().map(|refusal| refusal.code)
    }

    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// 409 of any kind: a wrong uid or resourceVersion, or the object is there already.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    pub fn is_already_exists(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.code == 409 && refusal.reason == "AlreadyExists")
    }

    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// 422: the object breaks a rule of its schema or an immutable field.
    pub fn is_invalid(&self) -> bool {
        self.code() == Some(422)
    }

    /// What was written to by its UID has gone, and another has its name.
    pub fn is_uid_mismatch(&self) -> bool {
        self.is_invalid()
            && self.refusal().is_some_and(|it| it.causes.iter().any(|cause| cause.field == "metadata.uid"))
    }

    /// Nothing of the object, but of the way to the API server or of a proxy before it: the next call would meet it too.
    pub fn is_unreachable(&self) -> bool {
        match &*self.kind {
            ApiErrorKind::NotLeading | ApiErrorKind::Timeout(_) | ApiErrorKind::Connect(_) | ApiErrorKind::Auth(_) => {
                true
            }
            ApiErrorKind::Status(refusal) => !refusal.by_kubernetes && refusal.code >= 500,
            ApiErrorKind::Decode(_) => false,
        }
    }

    /// A right that RBAC does not give; other admission rules are a 403 too.
    pub fn is_without_right(&self) -> bool {
        self.refusal().is_some_and(|it| it.code == 403 && it.message.contains(" cannot "))
    }

    /// 410: the resourceVersion or the continue token is too old.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    pub fn is_timeout(&self) -> bool {
        matches!(*self.kind, ApiErrorKind::Timeout(_))
    }

    pub fn retry_after(&self) -> Option<Duration> {
        self.refusal().and_then(|refusal| refusal.retry_after)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = if self.message.is_empty() { "no message" } else { self.message.as_str() };
        match self.reason.as_str() {
            "" => write!(f, "{message} ({})", self.code),
            reason => write!(f, "{message} ({} {reason})", self.code),
        }
    }
}

// === impl Refusal ===

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    kind: String,
    code: u16,
    reason: String,
    message: String,
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Option<Vec<Cause>>,
    retry_after_seconds: u64,
}

impl Refusal {
    /// Reads the body of an answer that is not a success.
    pub(crate) fn read(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        if let Some(mut refusal) = Self::from_status(body) {
            refusal.code = code;
            refusal.retry_after = retry_after.or(refusal.retry_after);
            return refusal;
        }
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        Self {
            code,
            message: text.chars().take(256).collect(),
            retry_after,
            // What kube-apiserver says of a group that it does not serve.
            by_kubernetes: code == 404 && text == "404 page not found",
            ..Self::default()
        }
    }

    /// Reads a metav1.Status, as an answer's body or the object of an ERROR event.
    pub(crate) fn from_status(body: &[u8]) -> Option<Self> {
        let status: Status = serde_json::from_slice(body).ok().filter(|status: &Status| status.kind == "Status")?;
        let Status { kind: _, code, reason, message, details } = status;
        let Details { causes, retry_after_seconds } = details.unwrap_or_default();
        Some(Self {
            code,
            reason,
            message,
            causes: causes.unwrap_or_default(),
            retry_after: (retry_after_seconds > 0).then(|| Duration::from_secs(retry_after_seconds)),
            by_kubernetes: true,
        })
    }
}

/// An error and its sources in one line; what a source only repeats is left out.
pub(crate) fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // The client's own wrappers ("client error (Connect)") say nothing that the next does not.
        let wrapper = text.starts_with("client error (") && error.source().is_some();
        if !wrapper && !words.contains(&text) {
            if !words.is_empty() {
                words.push_str(": ");
            }
            words.push_str(&text);
        }
        next = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_what_a_condition_shows() {
        let body = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Pod \"a\" is invalid",
            "reason":"Invalid","code":422,"details":{"name":"a","kind":"Pod",
            "causes":[{"reason":"FieldValueInvalid","message":"must be positive","field":"spec.x"}]}}"#;
        let refusal = Refusal::read(422, None, body);
        assert_eq!(refusal.to_string(), "Pod \"a\" is invalid (422 Invalid)");
        assert_eq!(refusal.causes[0].field, "spec.x");
        let error = ApiError::new("apply pods ns/a", ApiErrorKind::Status(refusal));
        assert!(error.is_invalid() && !error.is_conflict());
        assert_eq!(error.to_string(), "apply pods ns/a: Pod \"a\" is invalid (422 Invalid)");
    }

    #[test]
    fn the_header_wins_over_the_body_for_retry_after() {
        let body = br#"{"kind":"Status","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":7}}"#;
        assert_eq!(Refusal::read(429, None, body).retry_after, Some(Duration::from_secs(7)));
        let header = Some(Duration::from_secs(2));
        assert_eq!(Refusal::read(429, header, body).retry_after, header);
    }

    #[test]
    fn only_kubernetes_can_say_that_a_kind_is_missing() {
        assert!(Refusal::read(404, None, b"404 page not found\n").by_kubernetes);
        assert!(!Refusal::read(404, None, b"<html>nginx</html>").by_kubernetes);
        assert!(!Refusal::read(503, None, b"upstream is down").by_kubernetes);
    }
}
