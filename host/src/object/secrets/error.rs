//! Why a Secret cannot be used.

use crate::cluster::ApiError;
use crate::names;
use crate::object::kept::KeptError;
use crate::object::refusal::Refusal;
use crate::object::retry::Retry;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error(
        "Secret {name} exists already and is not of this object; it is left as it is{}",
        if *.adoptable { format!("; to have it used annotate this object with {}=Secret/{name}", names::ADOPT_ANNOTATION) } else { String::new() }
    )]
    NameConflict { name: String, adoptable: bool },
    #[error("{0}")]
    Kept(KeptError),
    /// What is missing: the Secret, or keys of it.
    #[error(
        "{what} is gone, and {child} holds data that it opens, so that none is made anew: restore it with what it held (where it then lacks its labels, annotate this object with {}=Secret/{name}); or, once the credentials inside the data have been reset, annotate it with {}={name} to have new ones generated",
        names::ADOPT_ANNOTATION,
        names::NEW_CREDENTIALS_ANNOTATION
    )]
    Lost { name: String, what: String, child: String },
    #[error("Secret {name} is being deleted")]
    Going { name: String },
    #[error("the object was deleted meanwhile")]
    ParentGone,
    #[error("{path}: there is no Secret {name} in this namespace")]
    Missing { path: String, name: String },
    #[error("{path}: Secret {name} is of type {kind}, which the cluster itself trusts; it is not handed to a Pod")]
    Trusted { path: String, name: String, kind: String },
    #[error("{0}")]
    Refused(Refusal),
    #[error("no random bytes from the system: {0}")]
    NoRandom(getrandom::Error),
}

impl SecretError {
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NameConflict { .. } => "NameConflict",
            Self::Kept(error) => error.reason(),
            Self::Lost { .. } => "CredentialsLost",
            Self::Going { .. } => "WaitingForDeletion",
            Self::ParentGone => "ObjectDeleted",
            Self::Missing { .. } => "SecretMissing",
            Self::Trusted { .. } => "InvalidSpec",
            Self::Refused(refusal) => refusal.reason(),
            Self::NoRandom(_) => "HostError",
        }
    }

    /// Secrets are not watched: what heals them is found out by asking again.
    pub(crate) fn retry(&self) -> Retry {
        match self {
            Self::NameConflict { .. }
            | Self::Kept(_)
            | Self::Lost { .. }
            | Self::Going { .. }
            | Self::Missing { .. }
            | Self::Trusted { .. } => Retry::Blocked,
            Self::ParentGone => Retry::Permanent,
            Self::Refused(refusal) => refusal.retry(),
            Self::NoRandom(_) => Retry::Passing,
        }
    }
}

pub(crate) fn refused(name: &str, error: ApiError) -> SecretError {
    SecretError::Refused(Refusal::new(format!("Secret {name}"), error))
}
