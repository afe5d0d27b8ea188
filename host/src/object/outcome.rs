//! What a walk came to. Status is made from this and nothing else; Ready can be
//! True only with `Applied`, which only `apply` makes.

use super::apply::Applied;
use super::memory::Stop;

pub(crate) enum Outcome {
    /// Every child is there as rendered.
    Applied(Applied),
    /// Nothing is wrong, but something must happen first.
    Waiting(Stop),
    Stopped(Stop),
    /// By the user's annotation.
    Paused,
}
