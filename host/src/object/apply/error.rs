//! Why a child does not stand, and what several such errors come to together.

use crate::cluster::ApiError;
use crate::object::own::Owned;
use crate::object::parents::Named;
use crate::object::refusal::Refusal;
use crate::object::retry::Retry;

/// At least one.
#[derive(Debug)]
pub(crate) struct ApplyErrors {
    pub errors: Vec<(Named, ApplyError)>,
    pub standing: Vec<Named>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("{child} is being deleted")]
    Going { child: String },
    /// A child of an earlier parent of the same name, which the garbage collector will take.
    #[error("{child} belongs to an earlier {owner} of the same name")]
    Stale { child: String, owner: String },
    #[error("{child} exists already and belongs to {owner}; it is left as it is")]
    NameConflict { child: String, owner: String },
    #[error("the object was deleted meanwhile")]
    ParentGone,
    #[error("{0}")]
    Refused(Refusal),
}

impl ApplyErrors {
    /// Nothing is wrong but that the parent is on its way out.
    pub(crate) fn is_parents_end(&self) -> bool {
        self.errors.iter().all(|(_, error)| matches!(error, ApplyError::ParentGone))
    }

    /// All of them in one message, what stands included.
    pub(crate) fn message(&self) -> String {
        let mut message = self.errors.iter().map(|(_, error)| error.to_string()).collect::<Vec<_>>().join("; ");
        if !self.standing.is_empty() {
            let standing: Vec<String> =
                self.standing.iter().map(|child| format!("{} {}", child.kind, child.name)).collect();
            message.push_str(&format!("; there are: {}", standing.join(", ")));
        }
        message
    }

    /// The worst decides: a conflict of a name is patient for a while with what
    /// an earlier object of the same name left.
    pub(crate) fn reason(&self, patient: bool) -> &'static str {
        let worst = self.errors.iter().map(|(_, error)| error).max_by_key(|error| error.rank());
        match worst {
            Some(ApplyError::Stale { .. }) if !patient => "NameConflict",
            Some(error) => error.reason(),
            None => "ApiUnavailable",
        }
    }

    /// What may pass is tried even where something else is permanent.
    pub(crate) fn retry(&self) -> Retry {
        let rules = self.errors.iter().map(|(_, error)| error.retry());
        rules
            .min_by_key(|retry| match retry {
                Retry::Passing => 0,
                Retry::Blocked => 1,
                Retry::Permanent => 2,
            })
            .unwrap_or(Retry::Passing)
    }
}

impl ApplyError {
    fn rank(&self) -> u8 {
        match self {
            Self::ParentGone => 0,
            Self::Going { .. } => 1,
            Self::Stale { .. } => 2,
            Self::Refused(refusal) if refusal.retry() == Retry::Passing => 3,
            Self::Refused(_) => 4,
            Self::NameConflict { .. } => 5,
        }
    }

    pub(crate) fn is_in_the_way(&self) -> bool {
        matches!(self, Self::Going { .. } | Self::Stale { .. } | Self::NameConflict { .. })
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::ParentGone => "ObjectDeleted",
            Self::Going { .. } | Self::Stale { .. } => "WaitingForDeletion",
            Self::NameConflict { .. } => "NameConflict",
            Self::Refused(refusal) => refusal.reason(),
        }
    }

    pub(crate) fn retry(&self) -> Retry {
        match self {
            Self::ParentGone => Retry::Permanent,
            Self::Going { .. } | Self::Stale { .. } | Self::NameConflict { .. } => Retry::Blocked,
            Self::Refused(refusal) => refusal.retry(),
        }
    }
}

pub(crate) fn refused(child: &Owned, error: ApiError) -> ApplyError {
    ApplyError::Refused(Refusal::new(title(child), error))
}

pub(crate) fn title(child: &Owned) -> String {
    format!("{} {}", child.resource().kind, child.id().name)
}
