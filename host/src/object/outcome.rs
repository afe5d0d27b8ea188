//! What a walk came to. Status is made from this and nothing else; Ready can be
//! True only with `Applied`, which only `apply` makes.

use std::time::Duration;

use super::apply::Applied;
use super::memory::Stop;
use super::parents::Named;
use crate::clock::Instant;

pub(crate) enum Outcome {
    /// Every child is there as rendered.
    Applied(Applied),
    /// Nothing is wrong, but something must happen first.
    Waiting(Stop),
    Stopped(Stop),
    /// By the user's annotation; what that holds back, in words.
    Paused(String),
    /// It was deleted, and its plugin is not done yet.
    Finalizing(Finalizing),
}

pub(crate) struct Finalizing {
    /// The plugin's own, or the host's.
    pub reason: String,
    pub message: String,
    /// Beyond its time-out, and held all the same.
    pub overdue: bool,
    /// What stands of it.
    pub children: Vec<Named>,
}

/// What is to be done after a walk.
pub(crate) enum Next {
    /// Everything stands; at the latest at this time it is looked at again.
    Settled(Instant),
    /// Something was written: the plugin may have more to say of it.
    Again,
    Stopped(Stop),
    /// Nothing, until something changes: it is paused, or going.
    Rest,
    /// Nothing was found out: the plugin is busy.
    Later(Duration),
}
