//! The host's only source of time: the wall clock, and how it is written into
//! objects, and the steady clock by which the object walk waits. What measures
//! the other side (a call's time-out, a watch's silence) runs by tokio's own.

use std::time::Duration;

use jiff::Timestamp;
pub use tokio::time::Instant;

/// For people and objects; durations are never measured with it.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Of the steady clock.
pub fn instant() -> Instant {
    Instant::now()
}

pub fn since(earlier: Instant) -> Duration {
    instant().saturating_duration_since(earlier)
}

pub async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}

pub async fn sleep_until(at: Instant) {
    tokio::time::sleep_until(at).await;
}

/// metav1.Time: whole seconds, as in conditions and `creationTimestamp`.
pub fn rfc3339(at: Timestamp) -> String {
    format!("{at:.0}")
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
    }

    #[test]
    fn micro_time_has_six_digits() {
        let whole: Timestamp = "2026-03-04T05:06:07Z".parse().unwrap();
        assert_eq!(rfc3339_micro(whole), "2026-03-04T05:06:07.000000Z");
        let nanos: Timestamp = "2026-03-04T05:06:07.123456789Z".parse().unwrap();
        assert_eq!(rfc3339_micro(nanos), "2026-03-04T05:06:07.123456Z");
    }
}
