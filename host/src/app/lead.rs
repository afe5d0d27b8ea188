//! From standby to leader: watches first, workers with the lease. Where there is
//! no election the host leads from the start.

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use super::probes::{Answer, Readiness};
use crate::clock;
use crate::cluster::{Candidate, Standing};
use crate::object::{self, Host};

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> anyhow::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Says which has come.
    pub(crate) async fn end(&mut self) {
        let signal = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "ending");
    }
}

/// Returns at a signal; else with what went wrong.
pub(crate) async fn serve(
    host: &Arc<Host>,
    workers: usize,
    candidate: Option<Candidate>,
    readiness: &Readiness,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let Some(candidate) = candidate else {
        readiness.ask({
            let host = Arc::clone(host);
            move || ready(&host, "ready")
        });
        let mut tasks = object::start(host, workers);
        return tokio::select! {
            () = signals.end() => Ok(()),
            fault = ended(&mut tasks) => Err(fault),
        };
    };
    readiness.ask({
        let (host, standing) = (Arc::clone(host), candidate.standing());
        move || match &*standing.borrow() {
            Standing::Unknown(None) => Answer::Unmet(vec!["the lease was not looked at yet".to_owned()]),
            Standing::Unknown(Some(problem)) => Answer::Unmet(vec![problem.clone()]),
            Standing::Standby { leader } => ready(&host, &format!("standby: {leader} leads")),
            Standing::Leads => ready(&host, "ready: leads"),
        }
    });
    // Where nobody leads, everything is listed once and not twice.
    let first = tokio::select! {
        () = signals.end() => return Ok(()),
        first = candidate.at_once() => first,
    };
    let mut leader = match first {
        Ok(leader) => leader,
        Err(candidate) => {
            let mut standby = object::stand_by(host);
            tokio::select! {
                () = signals.end() => return Ok(()),
                fault = ended(&mut standby) => return Err(fault),
                leader = candidate.elected() => leader,
            }
        }
    };
    let mut tasks = object::start(host, workers);
    let end = tokio::select! {
        // First: what a stopped process finds when it goes on is that it does not lead.
        biased;
        lost = async { let lost = leader.hold().await; clock::linger().await; lost } => return Err(lost.into()),
        () = signals.end() => Ok(()),
        fault = ended(&mut tasks) => Err(fault),
    };
    drop(tasks);
    leader.release().await;
    end
}

fn ready(host: &Host, words: &str) -> Answer {
    let unmet = host.unmet();
    if !unmet.is_empty() {
        return Answer::Unmet(unmet);
    }
    Answer::Ready(std::iter::once(words.to_owned()).chain(host.troubles()).collect::<Vec<_>>().join("\n"))
}

/// Workers and watches never end; one that does has met a fault of ours.
async fn ended(tasks: &mut JoinSet<()>) -> anyhow::Error {
    match tasks.join_next().await {
        Some(Err(error)) => anyhow::Error::new(error).context("a worker or a watch failed"),
        Some(Ok(())) => anyhow::anyhow!("a worker or a watch ended"),
        // No kind to watch and no worker: nothing can go wrong.
        None => std::future::pending().await,
    }
}
