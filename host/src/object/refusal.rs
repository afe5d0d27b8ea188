//! What an API server's "no" to a child means: the reason that users see and
//! when it is tried again.

use super::retry::Retry;
use crate::cluster::{ApiError, ApiErrorKind};

#[derive(Debug, thiserror::Error)]
#[error("{child}: {error}")]
pub(crate) struct Refusal {
    pub child: String,
    pub error: ApiError,
    meaning: Meaning,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    QuotaExceeded,
    NamespaceTerminating,
    NamespaceMissing,
    Forbidden,
    PortConflict,
    PortsExhausted,
    ImmutableField,
    TooLarge,
    Rejected,
    Unauthorized,
    Unavailable,
}

impl Refusal {
    pub(crate) fn new(child: String, error: ApiError) -> Self {
        let meaning = meaning(&error);
        Self { child, error, meaning }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self.meaning {
            Meaning::QuotaExceeded => "QuotaExceeded",
            Meaning::NamespaceTerminating => "NamespaceTerminating",
            Meaning::NamespaceMissing => "NamespaceMissing",
            Meaning::Forbidden => "Forbidden",
            Meaning::PortConflict => "PortConflict",
            Meaning::PortsExhausted => "PortsExhausted",
            Meaning::ImmutableField => "ImmutableField",
            Meaning::TooLarge => "TooLarge",
            Meaning::Rejected => "Rejected",
            Meaning::Unauthorized => "Unauthorized",
            Meaning::Unavailable => "ApiUnavailable",
        }
    }

    pub(crate) fn retry(&self) -> Retry {
        match self.meaning {
            Meaning::QuotaExceeded
            | Meaning::NamespaceTerminating
            | Meaning::NamespaceMissing
            | Meaning::Forbidden
            | Meaning::PortConflict
            | Meaning::PortsExhausted => Retry::Blocked,
            Meaning::ImmutableField | Meaning::TooLarge | Meaning::Rejected => Retry::Permanent,
            Meaning::Unauthorized | Meaning::Unavailable => Retry::Passing,
        }
    }
}

/// By code, and where one code says several things by the server's words.
fn meaning(error: &ApiError) -> Meaning {
    let refusal = match &*error.kind {
        ApiErrorKind::Status(refusal) => refusal,
        ApiErrorKind::NotLeading | ApiErrorKind::Timeout(_) | ApiErrorKind::Connect(_) | ApiErrorKind::Decode(_) => {
            return Meaning::Unavailable;
        }
        ApiErrorKind::Auth(_) => return Meaning::Unauthorized,
    };
    let says = |words: &str| {
        refusal.message.contains(words) || refusal.causes.iter().any(|cause| cause.message.contains(words))
    };
    match refusal.code {
        401 => Meaning::Unauthorized,
        403 if says("exceeded quota") => Meaning::QuotaExceeded,
        403 if refusal.causes.iter().any(|cause| cause.reason == "NamespaceTerminating") => {
            Meaning::NamespaceTerminating
        }
        403 => Meaning::Forbidden,
        404 if says("namespaces \"") => Meaning::NamespaceMissing,
        404 => Meaning::Unavailable,
        413 => Meaning::TooLarge,
        422 if says("port is already allocated") => Meaning::PortConflict,
        422 if says("immutable") || says("may not change") || says("updates to statefulset spec") => {
            Meaning::ImmutableField
        }
        400 | 422 if says("too large") || says("Too long: may not be more than") => Meaning::TooLarge,
        500 if says("range is full") => Meaning::PortsExhausted,
        500 if says("etcdserver: request is too large") => Meaning::TooLarge,
        code if (400..500).contains(&code) && !matches!(code, 408 | 409 | 410 | 429) => Meaning::Rejected,
        _ => Meaning::Unavailable,
    }
}
