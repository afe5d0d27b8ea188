//! Questions about objects, for the worker that has the object's memory in hand.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::parents::ParentKey;
use crate::plugin::bundle::Bundle;

/// A bundle, or why there is none, in words.
pub(crate) type Examined = Result<Bundle, String>;

#[derive(Default)]
pub(crate) struct Desk {
    asked: Mutex<HashMap<ParentKey, Vec<oneshot::Sender<Examined>>>>,
}

impl Desk {
    pub(crate) fn ask(&self, key: &ParentKey) -> oneshot::Receiver<Examined> {
        let (answer, asked) = oneshot::channel();
        self.asked.lock().entry(key.clone()).or_default().push(answer);
        asked
    }

    /// Who waits for this object, and still does.
    pub(crate) fn take(&self, key: &ParentKey) -> Vec<oneshot::Sender<Examined>> {
        let waiting = self.asked.lock().remove(key).unwrap_or_default();
        waiting.into_iter().filter(|answer| !answer.is_closed()).collect()
    }
}
