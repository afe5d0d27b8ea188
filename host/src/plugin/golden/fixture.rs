//! A request and the answer that it must get, as they stand in the section.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{FIXTURES, FIXTURES_BYTES};
use crate::sandbox::{CallError, Component, Failure, Finalization, Rendering, Request, Usage};

/// What a section is written in; another number is another shape.
const FORMAT: u32 = 1;

/// All of a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fixtures {
    format: u32,
    pub fixtures: Vec<Fixture>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fixture {
    pub name: String,
    /// Whole: nothing of it is added by the host that runs it.
    pub request: Request,
    pub answer: Answer,
}

/// What a plugin gives, before it is held against a grant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Rendering(Rendering),
    Finalization(Finalization),
    Failure(Failure),
}

impl Fixtures {
    pub fn new(fixtures: Vec<Fixture>) -> Self {
        Self { format: FORMAT, fixtures }
    }

    /// The error is a sentence about the section.
    pub fn parse(section: &[u8]) -> Result<Self, String> {
        if section.len() > FIXTURES_BYTES {
            return Err(format!("has {} bytes, at most {FIXTURES_BYTES} are read", section.len()));
        }
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = serde_json::from_slice(section).map_err(|error| format!("is not valid: {error}"))?;
        if format != FORMAT {
            return Err(format!("has format {format}, this host reads {FORMAT}"));
        }
        let fixtures: Self = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(section))
            .map_err(|error| format!("is not valid: {error}"))?;
        if fixtures.fixtures.len() > FIXTURES {
            return Err(format!("has {} fixtures, at most {FIXTURES} are run", fixtures.fixtures.len()));
        }
        Ok(fixtures)
    }

    /// The same bytes for the same fixtures.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl Answer {
    /// What the component says to the request, its own "no" included. A deleted parent is finalized, as by a host.
    pub fn told(component: &Component, request: &Request) -> (Result<Self, CallError>, Usage) {
        let (result, usage) = if Self::is_finalized(component, request) {
            let (result, usage) = component.finalize(request);
            (result.map(|finalized| Self::Finalization(finalized.into_finalization())), usage)
        } else {
            let (result, usage) = component.render(request);
            (result.map(|rendered| Self::Rendering(rendered.into_rendering())), usage)
        };
        match result {
            Err(CallError::Failure(failure)) => (Ok(Self::Failure(failure)), usage),
            other => (other, usage),
        }
    }

    /// Whether the request is one to finalize.
    pub fn is_finalized(component: &Component, request: &Request) -> bool {
        component.hooks().finalizer && is_deleted(&request.parent)
    }
}

fn is_deleted(parent: &str) -> bool {
    let parent: Result<Value, _> = serde_json::from_str(parent);
    parent.is_ok_and(|parent| parent.pointer("/metadata/deletionTimestamp").is_some())
}
