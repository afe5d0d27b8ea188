//! Golden fixtures: requests that a component brings along, each with the answer
//! that it must give. Run before a plugin serves, each twice.
//!
//! Only the answers are compared, as values: what the grant of a cluster would
//! refuse of them is no fault of the fixture's. Absent is fine, malformed is not.

mod fixture;
mod difference;

use std::time::Instant;

pub use difference::{Difference, differences};
pub use fixture::{Answer, Fixture, Fixtures};

use super::sections::{self, SectionError, Sections};
use crate::limits::FIXTURES_TIME;
use crate::sandbox::{CallError, Component, Manifest};

#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    #[error(transparent)]
    Sections(#[from] SectionError),
    #[error("the section {section} {problem}")]
    Malformed { section: &'static str, problem: String },
    #[error("fixture {fixture}: {more}{difference}", more = if *more > 0 { format!("of {} differences the first: ", more + 1) } else { String::new() })]
    Differs { fixture: String, difference: Box<Difference>, more: usize },
    #[error("fixture {fixture}: the same request gave two answers: {difference}")]
    Unsteady { fixture: String, difference: Box<Difference> },
    #[error("fixture {fixture}: the plugin {error}")]
    Stopped { fixture: String, error: CallError },
    #[error("fixture {fixture}: all of them together took more than {} s", FIXTURES_TIME.as_secs())]
    TooLong { fixture: String },
}

impl GoldenError {
    pub fn reason(&self) -> &str {
        match self {
            Self::Sections(_) | Self::Malformed { .. } => "ArtifactInvalid",
            // Wall time and the host's own trouble are not the plugin's.
            Self::Stopped { error: error @ (CallError::Timeout { .. } | CallError::Host(_)), .. } => error.reason(),
            Self::Differs { .. } | Self::Unsteady { .. } | Self::Stopped { .. } | Self::TooLong { .. } => {
                "FixturesFailed"
            }
        }
    }
}

/// The fixtures in the component's bytes, whose other section says what `describe` says.
pub fn read(bytes: &[u8], manifest: &Manifest) -> Result<Fixtures, GoldenError> {
    let Sections { manifest: written, fixtures } = sections::read(bytes)?;
    if let Some(written) = written {
        let malformed = |problem| GoldenError::Malformed { section: sections::MANIFEST, problem };
        let written: Manifest =
            serde_json::from_slice(written).map_err(|error| malformed(format!("is not valid: {error}")))?;
        if written != *manifest {
            return Err(malformed("says something else than the plugin's own describe".to_owned()));
        }
    }
    let Some(fixtures) = fixtures else { return Ok(Fixtures::new(Vec::new())) };
    Fixtures::parse(fixtures).map_err(|problem| GoldenError::Malformed { section: sections::FIXTURES, problem })
}

/// Every fixture twice; the first that fails is the error. Blocks.
pub fn run(component: &Component, fixtures: &Fixtures) -> Result<(), GoldenError> {
    let started = Instant::now();
    for Fixture { name, request, answer } in &fixtures.fixtures {
        let first = given(component, name, request)?;
        let mut found = differences(answer, &first).into_iter();
        if let Some(difference) = found.next() {
            let (fixture, difference) = (name.clone(), Box::new(difference));
            return Err(GoldenError::Differs { fixture, difference, more: found.count() });
        }
        if let Some(difference) = differences(&first, &given(component, name, request)?).into_iter().next() {
            return Err(GoldenError::Unsteady { fixture: name.clone(), difference: Box::new(difference) });
        }
        if started.elapsed() > FIXTURES_TIME {
            return Err(GoldenError::TooLong { fixture: name.clone() });
        }
    }
    Ok(())
}

fn given(component: &Component, name: &str, request: &crate::sandbox::Request) -> Result<Answer, GoldenError> {
    Answer::told(component, request).0.map_err(|error| GoldenError::Stopped { fixture: name.to_owned(), error })
}
