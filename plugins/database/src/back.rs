//! The way back out of a step whose new server never started, mostly since its
//! image cannot be pulled.
//!
//! Nobody records which servers have opened the data. But the kubelet counts the
//! starts of a container for as long as its Pod lives: where it is the Pod of
//! before the step, and the count is that of before, no new server was started.
//! For any other Pod that cannot be known: there may have been one in between.

use crate::{CONTAINERS, IMAGE, SERVER_BEFORE_POINTER, Server, version};
use keelson_sdk::prelude::*;
use serde::Deserialize;

/// How far the way back is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Back {
    /// It may be gone: the old server is to run.
    Open,
    /// The old server runs, and was the only one that was started since.
    Done,
    /// The new server has been started, or may have been.
    Closed,
}

/// Why a kubelet cannot have an image, by its own words.
const NO_IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    restart_count: u64,
    #[serde(default)]
    state: Value,
}

/// To be written on the claim when a step is recorded; none where no server is seen.
pub(crate) fn before<P: Plugin>(db: &Request<P>, server: &Server) -> Option<String> {
    let pod = db.child(POD, db.name()).filter(|pod| !pod.going)?;
    let own = container(&pod, server)?;
    Some(format!("{}/{}", pod.uid, own.restart_count))
}

/// Whether data that is on its way between these versions may be opened by the first again.
pub(crate) fn back<P: Plugin>(db: &Request<P>, server: &Server, claim: &Observed<'_>, from: &str, to: &str) -> Back {
    evidence(db, server, claim, from, to).unwrap_or(Back::Closed)
}

fn evidence<P: Plugin>(db: &Request<P>, server: &Server, claim: &Observed<'_>, from: &str, to: &str) -> Option<Back> {
    let before: String = claim.get(SERVER_BEFORE_POINTER)?;
    let (uid, count) = before.split_once('/')?;
    let count: u64 = count.parse().ok()?;
    let pod = db.child(POD, db.name()).filter(|pod| !pod.going && pod.uid == uid)?;
    let own = container(&pod, server)?;
    let asked = version::of_image(server.steps, &pod.get::<String>(IMAGE)?)?;
    let waits = own.state.pointer("/waiting/reason").and_then(Value::as_str);
    let runs = own.state.get("running").is_some();
    let back =
        match own.restart_count.checked_sub(count)? {
            // None was started since. What may start in the next moment is not stopped yet.
            0 if asked == to && waits.is_some_and(|reason| NO_IMAGE.contains(&reason)) => Back::Open,
            0 if asked == from && !runs => Back::Open,
            // One was, and it was the old one.
            1 if asked == from && version::of_image(server.steps, &own.image) == Some(from) => {
                if runs && pod.is("Ready") { Back::Done } else { Back::Open }
            }
            _ => Back::Closed,
        };
    Some(back)
}

fn container(pod: &Observed<'_>, server: &Server) -> Option<Container> {
    let statuses: Vec<Container> = pod.get(CONTAINERS)?;
    statuses.into_iter().find(|it| it.name == server.name)
}
