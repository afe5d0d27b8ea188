//! The host's only source of time: the wall clock, and how it is written into
//! objects, the steady clock by which the object walk waits, and the machine's
//! own, by which a lease ends. What measures the other side (a call's time-out,
//! a watch's silence) runs by tokio's own.

use std::time::Duration;

use jiff::Timestamp;
pub use tokio::time::Instant;

#[cfg(any(test, feature = "test-clock"))]
mod skew;

/// For people and objects; durations are never measured with it.
pub fn now() -> Timestamp {
    #[cfg(feature = "test-clock")]
    {
        skew::skew().now(Timestamp::now(), Instant::now())
    }
    #[cfg(not(feature = "test-clock"))]
    {
        Timestamp::now()
    }
}

/// Of the steady clock.
pub fn instant() -> Instant {
    #[cfg(feature = "test-clock")]
    {
        skew::skew().instant(Instant::now())
    }
    #[cfg(not(feature = "test-clock"))]
    {
        Instant::now()
    }
}

pub fn since(earlier: Instant) -> Duration {
    instant().saturating_duration_since(earlier)
}

pub async fn sleep(duration: Duration) {
    #[cfg(feature = "test-clock")]
    let duration = skew::skew().real(duration);
    tokio::time::sleep(duration).await;
}

pub async fn sleep_until(at: Instant) {
    sleep(at.saturating_duration_since(instant())).await;
}

/// How long a host goes on when its lease is over and it should end; a test can ask for more than nothing, to see that
/// even then it writes no more.
#[cfg_attr(not(feature = "test-clock"), allow(clippy::unused_async, reason = "nothing is waited for"))]
pub async fn linger() {
    #[cfg(feature = "test-clock")]
    tokio::time::sleep(skew::lingering()).await;
}

/// Of the machine since its start, asleep or not, and of a process that is stopped all the same. What another host waits
/// for is measured with it: a lease does not last longer because its holder did not look.
#[allow(unsafe_code)]
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, and `time` is one.
    if unsafe { libc::clock_gettime(CLOCK, &mut time) } != 0 {
        // A kernel without this clock: every lease is over.
        return Duration::MAX;
    }
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// metav1.Time: whole seconds, as in conditions and `creationTimestamp`.
pub fn rfc3339(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// What `rfc3339` wrote, in seconds since 1970.
pub fn seconds(rfc3339: &str) -> Option<i64> {
    rfc3339.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

/// metav1.MicroTime: six digits always, as in `eventTime`.
pub fn rfc3339_micro(at: Timestamp) -> String {
    format!("{at:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_cut_not_rounded() {
        let at: Timestamp = "2026-03-04T05:06:07.999999999Z".parse().unwrap();
        assert_eq!(rfc3339(at), "2026-03-04T05:06:07Z");
        assert_eq!(seconds(&rfc3339(at)), Some(at.as_second()));
        assert_eq!(seconds("yesterday"), None);
    }

    #[test]
    fn micro_time_has_six_digits() {
        let whole: Timestamp = "2026-03-04T05:06:07Z".parse().unwrap();
        assert_eq!(rfc3339_micro(whole), "2026-03-04T05:06:07.000000Z");
        let nanos: Timestamp = "2026-03-04T05:06:07.123456789Z".parse().unwrap();
        assert_eq!(rfc3339_micro(nanos), "2026-03-04T05:06:07.123456Z");
    }
}
