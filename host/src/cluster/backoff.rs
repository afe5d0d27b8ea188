//! Growing delays with jitter. One per stream or object, never shared.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Delays that double from `first` to `cap`. Jitter only adds, up to a quarter:
/// a cap of 30 s is at most one try in 30 s.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    tries: u32,
}

impl Backoff {
    pub fn new((first, cap): (Duration, Duration)) -> Self {
        Self { first, cap, tries: 0 }
    }

    /// The delay before the next try.
    pub fn next_delay(&mut self) -> Duration {
        let grown = self.first.saturating_mul(1u32.checked_shl(self.tries).unwrap_or(u32::MAX));
        self.tries = self.tries.saturating_add(1).min(31);
        spread(grown.min(self.cap), 0.25)
    }

    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

/// `duration` and at most `fraction` of it more.
pub fn spread(duration: Duration, fraction: f64) -> Duration {
    // The std hasher's random keys are good enough to keep processes apart, and need no dependency.
    let random = RandomState::new().build_hasher().finish();
    let unit = (random >> 11) as f64 / (1u64 << 53) as f64;
    duration + duration.mul_f64(unit * fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_cap_and_never_below_it() {
        let mut backoff = Backoff::new((Duration::from_millis(500), Duration::from_secs(30)));
        let mut last = Duration::ZERO;
        for want in [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000] {
            last = backoff.next_delay();
            let want = Duration::from_millis(want);
            assert!(last >= want && last <= want.mul_f64(1.25), "{last:?} for {want:?}");
        }
        for _ in 0..100 {
            last = backoff.next_delay();
        }
        assert!(last >= Duration::from_secs(30));
        backoff.reset();
        assert!(backoff.next_delay() < Duration::from_millis(626));
    }

    #[test]
    fn spreads() {
        let second = Duration::from_secs(1);
        let all: Vec<_> = (0..32).map(|_| spread(second, 0.1)).collect();
        assert!(all.iter().all(|delay| (second..=second.mul_f64(1.1)).contains(delay)));
        assert!(all.iter().any(|delay| delay != &all[0]));
    }
}
