//! Leader election by a Lease (coordination.k8s.io/v1), so that of several hosts
//! one writes.
//!
//! Guarantees: a leader's fence closes at the latest `Terms::renew` after it
//! last began to renew with success, by its machine's own clock. Another host
//! takes over when it has seen the same words in the Lease for as long as the
//! Lease lasts, by *its* machine's own clock. No two wall clocks are ever
//! compared, so none has to be right. A host that ends in order gives the Lease
//! back, and the next leads at its next look.
//!
//! Assumes that an identity is never used twice.

mod record;
mod sight;
mod seat;

use std::time::Duration;

use tokio::sync::watch as cell;
use tokio::time::{sleep, timeout};

use self::record::Record;
use self::seat::Seat;
use self::sight::Sight;
use super::backoff::spread;
use super::client::Api;
use super::error::{ApiError, ApiErrorKind};
use crate::clock;
use crate::limits;

/// The times of an election; made by [`Terms::new`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    lease: Duration,
    renew: Duration,
    retry: Duration,
}

/// A host that would lead.
pub struct Candidate {
    seat: Seat,
    identity: String,
    terms: Terms,
    sight: Sight,
    standing: cell::Sender<Standing>,
    /// What was wrong at the last try, said once.
    said: Option<String>,
}

/// What readiness tells of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The Lease was not seen yet; or why it cannot be.
    Unknown(Option<String>),
    /// Another leads; nobody where it is empty.
    Standby {
        leader: String,
    },
    Leads,
}

/// A host that leads: its fence is open.
pub struct Leader {
    candidate: Candidate,
    held: Held,
}

struct Held {
    record: Record,
    /// Since the machine's start.
    until: Duration,
}

/// Why a host does not lead any more.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("the lease {lease} was taken by {holder:?}")]
    Taken { lease: String, holder: String },
    #[error("the lease {lease} was not renewed within {limit:?}{}", why(.last.as_ref()))]
    Expired { lease: String, limit: Duration, last: Option<ApiError> },
}

// === impl Terms ===

impl Terms {
    /// `lease`: how long others wait for a leader that says nothing more, in whole seconds. `renew`: how long a leader
    /// goes on without a renewal. `retry`: the time between two looks. The error says what does not fit.
    pub fn new(lease: Duration, renew: Duration, retry: Duration) -> Result<Self, String> {
        if lease.subsec_nanos() != 0 || lease.is_zero() || lease.as_secs() > i32::MAX as u64 {
            return Err(format!("the lease must last whole seconds, not {lease:?}"));
        }
        if renew >= lease {
            return Err(format!("a lease of {lease:?} must be longer than {renew:?}, in which it has to be renewed"));
        }
        if retry.is_zero() || retry * 2 > renew {
            return Err(format!("{renew:?} must be twice as long as the {retry:?} between two renewals"));
        }
        Ok(Self { lease, renew, retry })
    }

    /// One try: a connection that has died in silence leaves time for another.
    fn attempt(&self) -> Duration {
        self.renew / 2
    }
}

// === impl Candidate ===

impl Candidate {
    /// `identity` must be this process's alone.
    pub fn new(api: Api, namespace: &str, name: &str, identity: String, terms: Terms) -> Self {
        let seat = Seat::new(api, namespace, name);
        seat.leads(false);
        let standing = cell::Sender::new(Standing::Unknown(None));
        Self { seat, identity, terms, sight: Sight::default(), standing, said: None }
    }

    pub fn standing(&self) -> cell::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// One try; the candidate where it does not lead.
    pub async fn at_once(mut self) -> Result<Leader, Box<Self>> {
        match self.stand().await {
            Some(held) => Ok(Leader::new(self, held)),
            None => Err(Box::new(self)),
        }
    }

    /// Tries until it leads.
    pub async fn elected(mut self) -> Leader {
        loop {
            sleep(spread(self.terms.retry, 0.2)).await;
            if let Some(held) = self.stand().await {
                return Leader::new(self, held);
            }
        }
    }

    async fn stand(&mut self) -> Option<Held> {
        let limit = self.terms.attempt();
        let stood = timeout(limit, self.take()).await;
        match stood.unwrap_or_else(|_| Err(self.seat.error(ApiErrorKind::Timeout(limit)))) {
            Ok(held) => {
                self.said = None;
                held.filter(|held| held.until > clock::since_boot())
            }
            Err(error) => {
                self.fault(&error);
                None
            }
        }
    }

    /// Looks, and takes the Lease where nobody holds it. That another was quicker is no error.
    async fn take(&mut self) -> Result<Option<Held>, ApiError> {
        let found = self.seat.read().await?;
        let now = clock::since_boot();
        if let Some(record) = &found {
            self.sight.see(record, now, self.terms.lease);
        }
        // Also where somebody has deleted it: who held it may not know yet.
        if let Some(leader) = self.sight.holder(now).filter(|holder| *holder != self.identity) {
            let standby = Standing::Standby { leader: leader.to_owned() };
            if *self.standing.borrow() != standby {
                tracing::info!(lease = self.seat.name(), leader, "standby: another host leads");
                self.standing.send_replace(standby);
            }
            return Ok(None);
        }
        let was_there = found.is_some();
        let mut record = found.unwrap_or_else(|| self.seat.vacant());
        record.hold(&self.identity, self.terms.lease, clock::now());
        let asked = clock::since_boot();
        match self.seat.write(&record).await {
            Ok(record) => Ok(Some(Held { record, until: asked.saturating_add(self.terms.renew) })),
            Err(error) if error.is_conflict() || (was_there && error.is_not_found()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// An API server that is away for a moment takes nothing from what was seen before.
    fn fault(&mut self, error: &ApiError) {
        let words = error.to_string();
        if self.said.as_ref() != Some(&words) {
            tracing::warn!(lease = self.seat.name(), "cannot stand for election: {words}");
        }
        self.said = Some(words.clone());
        let unseen = matches!(*self.standing.borrow(), Standing::Unknown(_));
        if unseen || error.is_forbidden() {
            self.standing.send_replace(Standing::Unknown(Some(words)));
        }
    }
}

// === impl Leader ===

impl Leader {
    fn new(candidate: Candidate, held: Held) -> Self {
        candidate.seat.fence().open_until(held.until);
        candidate.seat.leads(true);
        tracing::info!(lease = candidate.seat.name(), identity = candidate.identity, "leads");
        candidate.standing.send_replace(Standing::Leads);
        Self { candidate, held }
    }

    /// Renews for as long as that works.
    pub async fn hold(&mut self) -> Lost {
        let terms = self.candidate.terms;
        let mut last = None;
        loop {
            sleep(self.left().min(terms.retry)).await;
            let asked = clock::since_boot();
            let left = self.left();
            if left.is_zero() {
                return self.lost(Lost::Expired { lease: self.candidate.seat.name(), limit: terms.renew, last });
            }
            let limit = left.min(terms.attempt());
            let renewed = timeout(limit, self.renew()).await;
            match renewed.unwrap_or_else(|_| Err(self.candidate.seat.error(ApiErrorKind::Timeout(limit)))) {
                Ok(record) if record.holder() == self.candidate.identity => {
                    self.held = Held { record, until: asked.saturating_add(terms.renew) };
                    self.candidate.seat.fence().open_until(self.held.until);
                    last = None;
                }
                Ok(record) => {
                    let holder = record.holder().to_owned();
                    return self.lost(Lost::Taken { lease: self.candidate.seat.name(), holder });
                }
                Err(error) => {
                    if last.is_none() {
                        tracing::warn!(lease = self.candidate.seat.name(), "not renewed: {error}");
                    }
                    last = Some(error);
                }
            }
        }
    }

    /// Gives the Lease back, so that the next host need not wait. What is written from now on is not sent.
    pub async fn release(mut self) {
        self.candidate.seat.fence().close();
        self.candidate.seat.leads(false);
        let lease = self.candidate.seat.name();
        let given = timeout(limits::LEASE_RELEASE, self.write(|record, _| record.release(clock::now()))).await;
        match given {
            Ok(Ok(_)) => tracing::info!(lease, "given back"),
            Ok(Err(error)) => tracing::warn!(lease, "not given back: {error}"),
            Err(_) => tracing::warn!(lease, "not given back in {:?}", limits::LEASE_RELEASE),
        }
    }

    async fn renew(&mut self) -> Result<Record, ApiError> {
        let lasts = self.candidate.terms.lease;
        self.write(|record, identity| record.hold(identity, lasts, clock::now())).await
    }

    /// Returns the Lease as it now stands: of another where it was taken.
    async fn write(&mut self, change: impl Fn(&mut Record, &str)) -> Result<Record, ApiError> {
        let Candidate { seat, identity, .. } = &self.candidate;
        let mut record = self.held.record.clone();
        change(&mut record, identity);
        match seat.write(&record).await {
            // Ours, and its answer was lost; or touched, deleted or taken by somebody.
            Err(error) if error.is_conflict() || error.is_not_found() => {
                let mut there = match seat.read().await? {
                    Some(there) if there.holder() != identity => return Ok(there),
                    Some(there) => there,
                    None => seat.vacant(),
                };
                change(&mut there, identity);
                seat.write(&there).await
            }
            answer => answer,
        }
    }

    fn left(&self) -> Duration {
        self.held.until.saturating_sub(clock::since_boot())
    }

    fn lost(&self, lost: Lost) -> Lost {
        self.candidate.seat.fence().close();
        self.candidate.seat.leads(false);
        lost
    }
}

fn why(last: Option<&ApiError>) -> String {
    last.map_or_else(|| ": this process or its machine stood still".to_owned(), |error| format!(": {error}"))
}

#[cfg(test)]
mod tests;
