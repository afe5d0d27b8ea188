//! What a user reads of a step between two versions.

use crate::pod;
use keelson_sdk::prelude::*;

/// How far a step is.
pub enum State {
    /// For what it waits.
    Waits(String),
    /// What somebody has to do.
    NeedsAction(String),
}

/// A step that is taken back, since its server has never been started.
pub fn taken_back<P: Plugin>(rendering: Rendering, db: &Request<P>, from: &str, to: &str) -> Rendering {
    let what = format!("taken back, since no server of {to} was started; until the server of {from} is ready");
    upgrading(rendering, db, from, to, State::Waits(what)).status("message", format!("going back from {to} to {from}"))
}

/// Says it in a condition, and in Ready where the Pod itself has nothing to say.
pub fn upgrading<P: Plugin>(rendering: Rendering, db: &Request<P>, from: &str, to: &str, state: State) -> Rendering {
    let rendering = rendering.status("message", format!("upgrading from {from} to {to}"));
    match state {
        State::Waits(what) => {
            let message = format!("from {from} to {to}: {what}");
            let rendering = rendering.condition("Upgrading", Some(true), "Upgrading", message.clone());
            match pod::server(db) {
                Some(_) => rendering.not_ready("Upgrading", message),
                None => rendering,
            }
        }
        State::NeedsAction(what) => {
            let message = format!("from {from} to {to}: {what}");
            rendering
                .condition("Upgrading", Some(false), "UpgradeNeedsAction", message.clone())
                .not_ready("UpgradeNeedsAction", message)
        }
    }
}
