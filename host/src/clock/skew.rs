//! The clock of tests: off by an offset, and so many times faster. Not part of
//! the shipped program.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

pub(super) struct Skew {
    /// Where both clocks are at the same time.
    start: Instant,
    /// Milliseconds of the wall clock.
    offset: i64,
    /// Seconds of ours in one of the machine's.
    rate: f64,
}

impl Skew {
    pub(super) fn now(&self, real: Timestamp, at: Instant) -> Timestamp {
        let ahead = at.saturating_duration_since(self.start).mul_f64(self.rate - 1.0);
        real + ahead + jiff::SignedDuration::from_millis(self.offset)
    }

    pub(super) fn instant(&self, real: Instant) -> Instant {
        self.start + real.saturating_duration_since(self.start).mul_f64(self.rate)
    }

    /// How long the machine waits for so much of ours.
    pub(super) fn real(&self, ours: Duration) -> Duration {
        ours.div_f64(self.rate)
    }
}

/// From `KEELSON_TEST_CLOCK_OFFSET` (milliseconds) and `KEELSON_TEST_CLOCK_RATE` (1 or more), read once.
#[cfg(feature = "test-clock")]
pub(super) fn skew() -> &'static Skew {
    static SKEW: std::sync::LazyLock<Skew> = std::sync::LazyLock::new(|| {
        let variable = |name: &str| std::env::var(name).ok();
        let offset = variable("KEELSON_TEST_CLOCK_OFFSET").map_or(Ok(0), |text| text.parse());
        let rate = variable("KEELSON_TEST_CLOCK_RATE").map_or(Ok(1.0), |text| text.parse());
        Skew {
            start: Instant::now(),
            offset: offset.expect("KEELSON_TEST_CLOCK_OFFSET is a number of milliseconds"),
            rate: rate.ok().filter(|rate| *rate >= 1.0).expect("KEELSON_TEST_CLOCK_RATE is 1 or more"),
        }
    });
    &SKEW
}

/// `KEELSON_TEST_CLOCK_LINGER`, milliseconds of the machine.
#[cfg(feature = "test-clock")]
pub(super) fn lingering() -> Duration {
    let text = std::env::var("KEELSON_TEST_CLOCK_LINGER").unwrap_or_else(|_| "0".to_owned());
    Duration::from_millis(text.parse().expect("KEELSON_TEST_CLOCK_LINGER is a number of milliseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_and_runs_faster() {
        let start = Instant::now();
        let minute = Duration::from_secs(60);
        let skew = Skew { start, offset: -600_000, rate: 60.0 };
        let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        assert_eq!(skew.now(noon, start).to_string(), "2026-01-01T11:50:00Z");
        assert_eq!(skew.now(noon + minute, start + minute).to_string(), "2026-01-01T12:50:00Z");
        assert_eq!(skew.instant(start + minute), start + 60 * minute);
        assert_eq!(skew.real(minute), Duration::from_secs(1));
    }
}
