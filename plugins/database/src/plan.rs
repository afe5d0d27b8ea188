//! Which version runs, and what is recorded of the data.
//!
//! The claim's record decides, not the spec: a step is recorded first, and only
//! when that has been seen does the new server start. So a host that ends in
//! between leaves nothing that a later one would misread.

use crate::back::{self, Back};
use crate::spec::{OnDelete, Spec};
use crate::version::{self, Data};
use crate::{DATA_VERSION, DATA_VERSION_POINTER, SERVER_BEFORE_POINTER, Server};
use keelson_sdk::prelude::*;

/// What is to be done about versions now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The server's.
    pub version: &'static str,
    /// To be recorded; none without storage.
    pub data: Option<Data>,
    /// During a step: the server of before, to be recorded with it.
    pub before: Option<String>,
    /// The step is taken back: the server is that of before.
    pub back: bool,
}

impl Plan {
    /// `completed` tells whether a step to this version is complete.
    ///
    /// # Errors
    /// A version that the data cannot be opened with, and data whose version is
    /// not known.
    pub fn of<P: Plugin<Spec = Spec>>(
        db: &Request<P>,
        server: &Server,
        completed: impl Fn(&'static str) -> bool,
    ) -> Result<Self, Failure> {
        let wanted = db.spec.version.as_deref().map(|wanted| named(server, wanted)).transpose()?;
        let claim = db.child(PERSISTENT_VOLUME_CLAIM, &claim_name(db));
        let fresh = wanted.or(server.steps.first().map(|(version, _)| *version)).unwrap_or_default();
        if db.spec.storage.is_none() {
            return match claim {
                Some(claim) => Err(Failure::invalid(format!(
                    "PersistentVolumeClaim {} holds data of a {} of this name, which would not be used",
                    claim.name, server.name
                ))
                .reason("StorageMissing")
                .field("/spec/storage")
                .remedy("set spec.storage to use the data, or delete the claim")),
                None => Ok(Self::to_run(fresh, None)),
            };
        }
        let Some(claim) = claim else {
            return Ok(Self::to_run(fresh, Some(Data::At(fresh))));
        };
        let data = match recorded(&claim, server)? {
            Data::Between(_, to) if completed(to) => Data::At(to),
            data => data,
        };
        let before = || claim.get(SERVER_BEFORE_POINTER);
        let refused = |allowed: &[&'static str]| not_allowed(server, &claim, data, wanted.unwrap_or_default(), allowed);
        match (data, wanted) {
            (Data::At(at), Some(wanted)) if wanted != at => {
                let next = version::next(server.steps, at);
                if !next.contains(&wanted) {
                    return Err(refused(&[&[at], next].concat()));
                }
                let before = back::before(db, server);
                Ok(Self { before, ..Self::to_run(at, Some(Data::Between(at, wanted))) })
            }
            (Data::At(at), _) => Ok(Self::to_run(at, Some(data))),
            (Data::Between(from, to), Some(wanted)) if wanted == from => {
                match back::back(db, server, &claim, from, to) {
                    Back::Open => Ok(Self { before: before(), back: true, ..Self::to_run(from, Some(data)) }),
                    Back::Done => Ok(Self::to_run(from, Some(Data::At(from)))),
                    Back::Closed => Err(refused(&[to]).remedy(by_hand(db, &claim, from, to))),
                }
            }
            (Data::Between(_, to), Some(wanted)) if wanted != to => Err(refused(&[to])),
            (Data::Between(_, to), _) => Ok(Self { before: before(), ..Self::to_run(to, Some(data)) }),
        }
    }

    fn to_run(version: &'static str, data: Option<Data>) -> Self {
        Self { version, data, before: None, back: false }
    }
}

pub(crate) fn claim_name<P: Plugin>(db: &Request<P>) -> String {
    db.name_with("data")
}

/// What a person can say who knows better.
fn by_hand<P: Plugin<Spec = Spec>>(db: &Request<P>, claim: &Observed<'_>, from: &str, to: &str) -> String {
    let kept = db.spec.storage.as_ref().is_some_and(|storage| storage.on_delete == OnDelete::Retain);
    let record = if kept { HOSTS_RECORD } else { DATA_VERSION };
    format!(
        "it cannot be known whether a server of {to} has opened the data; whoever is sure that none has: kubectl -n {} \
         annotate pvc {} --overwrite {record}={from}",
        db.namespace(),
        claim.name
    )
}

/// Where the host has its record of what is kept.
const HOSTS_RECORD: &str = "keelson.dev/retained-data-version";

fn named(server: &Server, wanted: &str) -> Result<&'static str, Failure> {
    version::known(server.steps, wanted).ok_or_else(|| {
        Failure::invalid(format!("there is no version {wanted} of {} here", server.name))
            .reason("VersionNotAllowed")
            .field("/spec/version")
            .allowed(server.steps.iter().map(|(version, _)| version))
    })
}

/// The host's record, or the plugin's own where the data is not kept.
fn recorded(claim: &Observed<'_>, server: &Server) -> Result<Data, Failure> {
    let text = claim.data_version.clone().or_else(|| claim.get::<String>(DATA_VERSION_POINTER));
    let unknown = |what: String| {
        let name = &claim.name;
        Failure::invalid(format!("PersistentVolumeClaim {name} {what}, so that no server can be started on it"))
            .reason("DataVersionUnknown")
            .allowed(server.steps.iter().map(|(version, _)| version))
            .remedy(format!("kubectl annotate pvc {name} {DATA_VERSION}=VERSION with the version that wrote the data"))
    };
    let text = text.ok_or_else(|| unknown("does not tell the version of its data".to_owned()))?;
    Data::read(&text, server.steps).ok_or_else(|| unknown(format!("holds data of version {text}, which is not known")))
}

fn not_allowed(server: &Server, claim: &Observed<'_>, data: Data, wanted: &str, allowed: &[&'static str]) -> Failure {
    let (name, claim) = (server.name, &claim.name);
    let failure = Failure::invalid(match data {
        Data::At(at) => {
            format!("the data in PersistentVolumeClaim {claim} is of {name} {at}, which {wanted} cannot follow")
        }
        Data::Between(from, to) => format!(
            "the data in PersistentVolumeClaim {claim} is on its way from {name} {from} to {to}; {wanted} is not possible \
             before that step is complete"
        ),
    });
    failure.reason("VersionNotAllowed").field("/spec/version").allowed(allowed)
}
