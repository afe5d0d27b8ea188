//! Until when this host may write: the one gate that every write goes through.
//!
//! Kubernetes does not look at Leases when it takes a write, so a leader has to
//! stop by itself. The end is a time of the machine's own clock, which goes on
//! while the process is stopped or the machine sleeps. It is looked at when a
//! write is asked for and once more when its bytes are about to leave: between
//! the two lie a token to be read and a connection to be made.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

use crate::clock;

/// Cheap to clone; all clones are one fence.
#[derive(Clone)]
pub struct Fence(Arc<RwLock<Until>>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// No leader election.
    Always,
    /// Another leads, or nobody.
    Never,
    /// This much after the machine's start.
    SinceBoot(Duration),
}

impl Fence {
    /// For a host that is alone: nothing is held back.
    pub fn open() -> Self {
        Self(Arc::new(RwLock::new(Until::Always)))
    }

    /// Nothing may be written before there is a lease.
    pub fn shut() -> Self {
        Self(Arc::new(RwLock::new(Until::Never)))
    }

    /// `end` is a time since the machine's start.
    pub(super) fn open_until(&self, end: Duration) {
        *self.0.write() = Until::SinceBoot(end);
    }

    pub(super) fn close(&self) {
        *self.0.write() = Until::Never;
    }

    /// How long writes may still go on; none where they may not.
    pub(super) fn left(&self) -> Option<Duration> {
        let until = *self.0.read();
        match until {
            Until::Always => Some(Duration::MAX),
            Until::Never => None,
            Until::SinceBoot(end) => end.checked_sub(clock::since_boot()).filter(|left| !left.is_zero()),
        }
    }

    /// Waits for the end. It moves with each renewal.
    pub(super) async fn ended(&self) {
        while let Some(left) = self.left() {
            if left == Duration::MAX {
                return pending().await;
            }
            tokio::time::sleep(left).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fence_ends_at_its_time_and_not_before_a_later_one() {
        assert_eq!(Fence::shut().left(), None);
        assert_eq!(Fence::open().left(), Some(Duration::MAX));
        let fence = Fence::shut();
        let now = clock::since_boot();
        fence.open_until(now + Duration::from_millis(30));
        assert!(fence.left().is_some());
        fence.open_until(now + Duration::from_millis(60));
        fence.ended().await;
        assert!(clock::since_boot() >= now + Duration::from_millis(60));
        assert_eq!(fence.left(), None);
        fence.open_until(now + Duration::from_secs(600));
        fence.close();
        assert_eq!(fence.left(), None);
    }
}
