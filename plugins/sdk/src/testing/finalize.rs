//! The hook `finalize` in a plugin's own tests.

use super::{Fixture, Rendered, rules};
use crate::Failure;
use crate::contract;
use crate::finalize::bindings::exports::keelson::operator::finalizer::{Finalization, Progress};
use crate::finalize::{Finalizer, finalize};
use serde_json::{Value, json};

/// What a [`Fixture`] was finalized to.
#[derive(Debug)]
pub struct Finalized {
    /// Children and Secrets that should be there meanwhile.
    pub rendered: Rendered,
    /// `None`: done, the object may go.
    pub waiting: Option<contract::Explanation>,
}

impl<P: Finalizer> Fixture<P> {
    /// Deletes the parent and finalizes it twice, which must give the same, and
    /// holds the result against the host's rules.
    ///
    /// # Errors
    /// The plugin's own [`Failure`].
    pub fn finalize(self) -> Result<Finalized, Failure> {
        let deleted = self.with("/metadata/deletionTimestamp", "2026-01-02T00:00:00Z");
        let first = finalize::<P>(deleted.request())?;
        assert_eq!(Ok(&first), finalize::<P>(deleted.request()).as_ref(), "the same request gave two finalizations");
        let Finalization { children, secrets, progress, look_again_after } = first;
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("the plugin gave no JSON");
        let objects = match &children {
            contract::Children::Exactly(children) => children.iter().map(|child| read(&child.object)).collect(),
            contract::Children::Keep | contract::Children::None => Vec::new(),
        };
        let contract = contract::Rendering {
            children,
            secrets: secrets.clone(),
            status: None,
            conditions: Vec::new(),
            ready: contract::Readiness::Auto,
            look_again_after,
        };
        let rendered = Rendered { children: objects, secrets, status: json!({}), contract };
        rules::hold(&P::manifest().into(), &deleted.parent, &rendered);
        let waiting = match progress {
            Progress::Done => None,
            Progress::Waiting(why) => Some(why),
        };
        Ok(Finalized { rendered, waiting })
    }
}
