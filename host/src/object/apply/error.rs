//! Why a child does not stand, and what several such errors come to together.

use crate::clock::Instant;
use crate::cluster::ApiError;
use crate::object::fight::{Said, WHOLE, writer};
use crate::object::kept::KeptError;
use crate::object::own::Owned;
use crate::object::parents::Named;
use crate::object::readiness::{Unready, Why as Unwell};
use crate::object::refusal::{Refusal, Rendered};
use crate::object::retry::Retry;
use crate::object::tries::{REPLACED_BY_EDIT, Why};

/// At least one.
#[derive(Debug)]
pub(crate) struct ApplyErrors {
    pub errors: Vec<(Named, ApplyError)>,
    pub standing: Vec<Named>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("{child} is being deleted{}", state(why.as_ref()))]
    Going { child: String, why: Unready },
    /// A child of an earlier parent of the same name, which the garbage collector will take.
    #[error("{child} belongs to an earlier {owner} of the same name")]
    Stale { child: String, owner: String },
    #[error("{child} exists already and belongs to {owner}; it is left as it is")]
    NameConflict { child: String, owner: String },
    #[error("{0}")]
    Kept(KeptError),
    #[error("{child} has {there} and never shrinks; {wanted} was asked for: ask for {there} or more")]
    StorageShrink { child: String, there: String, wanted: String },
    /// It cannot be changed where it stands, and is not replaced.
    #[error("{child} cannot be changed where it stands: {what}; it is left as it is{}", data(*guarded))]
    Fixed { child: String, what: String, guarded: bool },
    #[error(
        "{child} cannot be changed where it stands: {what}; it is made anew once somebody deletes it (strategy OnDelete)"
    )]
    OnDelete { child: String, what: String },
    /// `at`: its turn comes then; without it, it is going.
    #[error("{child}: {}; {}", why.message, replacement(*at))]
    Replacing { child: String, why: Why, at: Option<Instant> },
    #[error("{child}: {} takes {} again and again; it is put back ever more rarely", writer(said.manager.as_deref()), said.path)]
    Fight { child: String, said: Said },
    #[error("{child}: somebody deletes it again and again; it is made anew ever more rarely")]
    Deleted { child: String, said: Said },
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
    pub(crate) fn reason(&self, patient: bool) -> &str {
        match self.worst() {
            Some(ApplyError::Stale { .. }) if !patient => "NameConflict",
            Some(error) => error.reason(),
            None => "ApiUnavailable",
        }
    }

    /// The server's last word.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.errors.iter().rev().find_map(|(_, error)| match error {
            ApplyError::Refused(refusal) => Some(refusal),
            _ => None,
        })
    }

    /// Nothing is wrong with it that its turn does not mend.
    pub(crate) fn is_waiting(&self, patient: bool) -> bool {
        match self.worst() {
            Some(ApplyError::Stale { .. }) => patient,
            Some(error) => error.is_waiting(),
            None => false,
        }
    }

    fn worst(&self) -> Option<&ApplyError> {
        self.errors.iter().map(|(_, error)| error).max_by_key(|error| error.rank())
    }

    /// When the first of those comes up that know their time.
    pub(crate) fn again(&self) -> Option<Instant> {
        self.errors.iter().filter_map(|(_, error)| error.again()).min()
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
            Self::Stale { .. } | Self::Replacing { .. } | Self::OnDelete { .. } => 2,
            Self::Refused(refusal) if refusal.retry() == Retry::Passing => 3,
            Self::Fight { .. } | Self::Deleted { .. } => 4,
            Self::Refused(_) | Self::Fixed { .. } | Self::StorageShrink { .. } => 5,
            Self::NameConflict { .. } | Self::Kept(_) => 6,
        }
    }

    fn is_waiting(&self) -> bool {
        matches!(self, Self::Going { .. } | Self::Stale { .. } | Self::Replacing { .. } | Self::OnDelete { .. })
    }

    fn again(&self) -> Option<Instant> {
        match self {
            Self::Replacing { at, .. } => *at,
            Self::Fight { said, .. } | Self::Deleted { said, .. } => Some(said.until),
            _ => None,
        }
    }

    pub(crate) fn is_in_the_way(&self) -> bool {
        matches!(
            self,
            Self::Going { .. }
                | Self::Stale { .. }
                | Self::NameConflict { .. }
                | Self::Kept(_)
                | Self::Replacing { at: None, .. }
        )
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Fixed { .. } => "ImmutableField",
            Self::OnDelete { .. } => "OnDelete",
            // Of one that has ended, its own word all the while.
            Self::Replacing { why, .. } if why.cause != REPLACED_BY_EDIT => &why.reason,
            Self::Replacing { at: Some(_), .. } => "Replacing",
            Self::Replacing { at: None, .. } => "WaitingForDeletion",
            Self::Fight { .. } => "FieldConflict",
            Self::Deleted { .. } => "DeletedRepeatedly",
            Self::ParentGone => "ObjectDeleted",
            Self::Going { .. } | Self::Stale { .. } => "WaitingForDeletion",
            Self::NameConflict { .. } => "NameConflict",
            Self::Kept(error) => error.reason(),
            Self::StorageShrink { .. } => "StorageShrink",
            Self::Refused(refusal) => refusal.reason(),
        }
    }

    pub(crate) fn retry(&self) -> Retry {
        match self {
            Self::ParentGone | Self::Fixed { .. } | Self::OnDelete { .. } | Self::StorageShrink { .. } => {
                Retry::Permanent
            }
            Self::Kept(error) => error.retry(),
            // At a time of its own.
            Self::Replacing { at: Some(_), .. } | Self::Fight { .. } | Self::Deleted { .. } => Retry::Permanent,
            Self::Replacing { at: None, .. } => Retry::Blocked,
            Self::Going { .. } | Self::Stale { .. } | Self::NameConflict { .. } => Retry::Blocked,
            Self::Refused(refusal) => refusal.retry(),
        }
    }
}

pub(crate) fn refused(child: &Owned, error: ApiError) -> ApplyError {
    ApplyError::Refused(refusal(title(child), child, error))
}

/// `what`: the child, or what was done with it.
pub(crate) fn refusal(what: String, child: &Owned, error: ApiError) -> Refusal {
    Refusal::of_child(what, Rendered { plugin: child.plugin(), index: child.index(), object: child.object() }, error)
}

pub(crate) fn title(child: &Owned) -> String {
    format!("{} {}", child.resource().kind, child.id().name)
}

fn state(why: Option<&Unwell>) -> String {
    why.map_or_else(String::new, |why| format!(" ({}: {})", why.reason, why.message))
}

fn data(guarded: bool) -> &'static str {
    if guarded { ", since it holds data" } else { "" }
}

fn replacement(at: Option<Instant>) -> &'static str {
    if at.is_some() { "it is replaced when its turn comes" } else { "it is being deleted, to be made anew" }
}

/// About a field of it, or about all of it.
pub(crate) fn fought(child: &Owned, said: Said) -> ApplyError {
    let child = title(child);
    if said.path == WHOLE { ApplyError::Deleted { child, said } } else { ApplyError::Fight { child, said } }
}
