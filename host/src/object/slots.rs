//! Calls of guests at one time. There are so many in all, and half of them for
//! one plugin, so that one that hangs leaves room for the others. Its objects
//! may not hold all workers either while they wait: those that find no seat go
//! away and come again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::retry::spread;
use crate::limits::{BUSY_BACKOFF, BUSY_PATIENCE, BUSY_STEP};

pub(crate) struct Slots {
    /// In all.
    room: usize,
    workers: usize,
    calls: Arc<Semaphore>,
    plugins: RwLock<HashMap<String, Arc<Share>>>,
}

struct Share {
    /// For objects that wait for a call or are in one.
    seats: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    /// Objects that were sent away since the plugin last answered.
    sent_away: AtomicU32,
}

/// The right to make one call, until it is dropped.
pub(crate) struct Slot {
    _permits: [Option<OwnedSemaphorePermit>; 3],
}

impl Slots {
    /// `calls` in all, made by so many `workers`.
    pub(crate) fn new(calls: usize, workers: usize) -> Self {
        Self { room: calls, workers, calls: Arc::new(Semaphore::new(calls)), plugins: RwLock::default() }
    }

    /// For these plugins from now on; one that is alone may have all. Calls under way keep what they have.
    pub(crate) fn serve<'a>(&self, plugins: impl Iterator<Item = &'a str>) {
        let names: Vec<&str> = plugins.collect();
        let mut shares = self.plugins.write();
        if names.len() == shares.len() && names.iter().all(|name| shares.contains_key(*name)) {
            return;
        }
        let share = |of: usize| Arc::new(Semaphore::new(if names.len() < 2 { of } else { (of / 2).max(1) }));
        let were_alone = shares.len() < 2;
        let known = std::mem::take(&mut *shares);
        let same_size = were_alone == (names.len() < 2);
        *shares = names
            .iter()
            .map(|name| {
                let new =
                    || Share { seats: share(self.workers), calls: share(self.room), sent_away: AtomicU32::new(0) };
                let known = known.get(*name).filter(|_| same_size).map(Arc::clone);
                ((*name).to_owned(), known.unwrap_or_else(|| Arc::new(new())))
            })
            .collect();
    }

    fn share(&self, plugin: &str) -> Option<Arc<Share>> {
        self.plugins.read().get(plugin).cloned()
    }

    /// Waits for a call's turn; or, where the plugin's objects wait for too long
    /// already, says when to come again.
    pub(crate) async fn take(&self, plugin: &str) -> Result<Slot, Duration> {
        let Some(share) = self.share(plugin) else {
            return Ok(Slot { _permits: [one(&self.calls).await, None, None] });
        };
        let seat = match Arc::clone(&share.seats).try_acquire_owned() {
            Ok(seat) => Some(seat),
            // It hangs, which was seen: no worker waits to see it again.
            Err(_) if share.sent_away.load(Ordering::Relaxed) > 0 => None,
            Err(_) => timeout(BUSY_PATIENCE, one(&share.seats)).await.ok().flatten(),
        };
        let Some(seat) = seat else {
            let before = share.sent_away.fetch_add(1, Ordering::Relaxed);
            let (first, cap) = BUSY_BACKOFF;
            return Err(spread((first + BUSY_STEP.saturating_mul(before)).min(cap), 4));
        };
        Ok(Slot { _permits: [Some(seat), one(&share.calls).await, one(&self.calls).await] })
    }

    /// A call has come back by itself.
    pub(crate) fn answered(&self, plugin: &str) {
        if let Some(share) = self.share(plugin) {
            share.sent_away.store(0, Ordering::Relaxed);
        }
    }
}

/// `None` only where the host is ending.
async fn one(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).acquire_owned().await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_plugin_that_hangs_leaves_room_for_the_others() {
        let slots = Arc::new(Slots::new(2, 4));
        slots.serve(["hangs", "works"].into_iter());
        let hung = slots.take("hangs").await.ok().unwrap();
        // Of two seats the second waits for a call, and the third object goes away.
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.take("hangs").await.is_ok() }
        });
        tokio::task::yield_now().await;
        let first = slots.take("hangs").await.err().unwrap();
        assert!(first <= BUSY_BACKOFF.0, "{first:?}");
        for _ in 0..2000 {
            let later = slots.take("hangs").await.err().unwrap();
            assert!(later <= BUSY_BACKOFF.1, "{later:?}");
        }
        assert!(slots.take("works").await.is_ok());
        drop(hung);
        slots.answered("hangs");
        assert!(waiting.await.unwrap());
        assert!(slots.take("hangs").await.is_ok());
    }

    #[tokio::test]
    async fn one_that_is_alone_has_all() {
        let slots = Slots::new(2, 2);
        slots.serve(["alone"].into_iter());
        let both = (slots.take("alone").await, slots.take("alone").await);
        assert!(both.0.is_ok() && both.1.is_ok());
    }
}
