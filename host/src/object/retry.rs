//! When what failed is tried again. Three rules, and every error of a step has
//! exactly one of them.

use std::time::Duration;

use crate::limits::{BLOCKED_BACKOFF, PASSING_BACKOFF};

/// A delay is shortened by up to one part in so many.
const SPREAD: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Waits for a change of the object or its plugin.
    Permanent,
    /// Blocked by the environment (quota, a foreign object): no watch tells
    /// when it ends.
    Blocked,
    /// A fault that passes: a 500, no connection.
    Passing,
}

impl Retry {
    /// The delay before attempt `attempt + 1`; `None` where only a change helps.
    pub(crate) fn delay(self, attempt: u32) -> Option<Duration> {
        self.whole(attempt).map(|whole| spread(whole, SPREAD))
    }

    /// What `delay` gives at the least.
    pub(crate) fn least(self, attempt: u32) -> Option<Duration> {
        self.whole(attempt).map(|whole| whole - whole / SPREAD)
    }

    fn whole(self, attempt: u32) -> Option<Duration> {
        let (first, cap) = match self {
            Self::Permanent => return None,
            Self::Blocked => BLOCKED_BACKOFF,
            Self::Passing => PASSING_BACKOFF,
        };
        Some(first.saturating_mul(1 << attempt.min(16)).min(cap))
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Blocked => "blocked",
            Self::Passing => "passing",
        }
    }
}

/// Shortens by up to one part in `parts`, at random, so that not all come at once.
pub(crate) fn spread(delay: Duration, parts: u32) -> Duration {
    let random = getrandom::u32().unwrap_or(0);
    let cut = (delay / parts).mul_f64(f64::from(random) / f64::from(u32::MAX));
    delay.saturating_sub(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_cap_and_stays_there() {
        let first = Retry::Blocked.delay(0).unwrap();
        assert!(first <= BLOCKED_BACKOFF.0 && first >= BLOCKED_BACKOFF.0 * 3 / 4);
        for attempt in [5, 6, 40, u32::MAX] {
            let late = Retry::Blocked.delay(attempt).unwrap();
            assert!(late <= BLOCKED_BACKOFF.1 && late >= BLOCKED_BACKOFF.1 * 3 / 4, "{attempt}: {late:?}");
            assert!(Retry::Blocked.least(attempt).is_some_and(|least| least <= late));
        }
        assert_eq!(Retry::Permanent.delay(3), None);
    }
}
