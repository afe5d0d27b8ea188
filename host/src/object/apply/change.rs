//! Brings a child that stands to what is rendered: by an apply, by its kind's
//! subresource, or by the strategy where neither is possible.
//!
//! What the server has refused for good is sent once for each rendering and each
//! state of our fields, and then remembered. What others take from us is put
//! back, unless they do it for ever.

use std::sync::Arc;

use super::create::look_again;
use super::error::{ApplyError, fought, refusal, title};
use super::repair::{put_back, replaced_list};
use super::replace::{allowed, replace};
use super::resize::resize;
use super::send::{Done, send_over};
use super::stands::{holder, send_as_it_stands, what_is_fixed};
use crate::check::Strategy;
use crate::clock;
use crate::cluster::ApiError;
use crate::object::children::Child;
use crate::object::gather::owned_fields_hash;
use crate::object::host::Host;
use crate::object::own::Owned;
use crate::object::parents::{Parent, ParentKey};
use crate::object::retry::Retry;
use crate::object::tries::{Attempted, Lesson, REPLACED_BY_EDIT, Tries, Why};
use crate::object::{fields, in_place};

/// One child that stands, and what is known of it.
pub(crate) struct Standing<'a> {
    pub host: &'a Host,
    pub key: &'a ParentKey,
    pub parent: &'a Parent,
    pub child: &'a Owned,
    pub known: &'a Child,
}

pub(crate) fn attempted(child: &Owned, known: Option<&Child>) -> Attempted {
    Attempted {
        uid: known.map(|known| known.uid.clone()),
        hash: Arc::clone(child.hash()),
        fields: known.map_or(0, owned_fields_hash),
    }
}

impl Standing<'_> {
    pub(crate) async fn change(&self, tries: &mut Tries) -> Result<(Done, Arc<Child>), ApplyError> {
        let Self { host, child, known, .. } = *self;
        if let Some(lesson) = tries.lesson(child.id(), &attempted(child, Some(known))).cloned() {
            return Err(self.follow(lesson, tries).await);
        }
        let taken = self.taken();
        if let Some(path) = &taken {
            self.may_put_back(path, tries).await?;
        }
        let change = known.hash.as_deref().and_then(|stands| in_place::change(stands, child.hash()));
        if change.is_some_and(|change| change.fixed) {
            let lesson = Lesson::Fixed(what_is_fixed(host, child).await);
            return Err(self.learn(lesson, tries).await);
        }
        let resource = child.resource();
        let of_resize = |path: &String| in_place::subresource(&resource.group, &resource.kind, path).is_some();
        let mut version = known.resource_version.to_string();
        if change.is_some_and(|change| change.resized) || taken.as_ref().is_some_and(of_resize) {
            match resize(host, child, known).await {
                Ok(now) => version = now,
                // Its status has moved on: what an apply cannot change is tried again, and soon.
                Err(error) if error.is_conflict() => return Err(self.refused(error, tries).await),
                Err(error) if has_moved(&error) => return self.anew().await,
                Err(error) => return Err(self.refused(error, tries).await),
            }
        }
        match send_over(host, child, &known.uid, &version).await {
            Ok(record) => Ok((Done::Changed, record)),
            Err(error) if has_moved(&error) => self.anew().await,
            Err(error) if error.is_invalid() => {
                let same = change.is_some_and(|change| !change.fixed);
                self.otherwise(error, same, tries).await
            }
            Err(error) => Err(self.refused(error, tries).await),
        }
    }

    /// The field that another writer has taken from what we applied.
    fn taken(&self) -> Option<String> {
        let Self { child, known, .. } = *self;
        if known.hash.as_deref() != Some(&**child.hash()) {
            return None;
        }
        let owned =
            known.owned_fields.as_deref().and_then(|owned| serde_json::from_str(owned).ok()).unwrap_or_default();
        fields::lost(child.object(), &owned)
    }

    async fn may_put_back(&self, path: &str, tries: &mut Tries) -> Result<(), ApplyError> {
        let Self { host, child, .. } = *self;
        let id = child.id();
        if tries.fights.wants_manager(id, path)
            && let Some(manager) = holder(host, child, path).await
        {
            tries.fights.is_with(id, path, manager);
        }
        let fight = tries.fights.taken(id, path, clock::instant());
        fight.map_or(Ok(()), |said| Err(fought(child, said)))
    }

    /// A refused apply that there may be another way for. `same`: what an apply cannot change is rendered as before.
    async fn otherwise(
        &self,
        error: ApiError,
        same: bool,
        tries: &mut Tries,
    ) -> Result<(Done, Arc<Child>), ApplyError> {
        let Self { host, child, known, .. } = *self;
        if let Some(patch) = replaced_list(known, child) {
            return match put_back(host, child, known, patch).await {
                Ok(done) => Ok(done),
                Err(error) => Err(self.refused(error, tries).await),
            };
        }
        if !same {
            return Err(self.refused(error, tries).await);
        }
        match send_as_it_stands(host, child, known).await {
            Ok(Some(record)) => Ok((Done::Changed, record)),
            Ok(None) => Err(self.refused(error, tries).await),
            Err(error) => Err(self.refused(error, tries).await),
        }
    }

    /// What a refusal comes to. One that no rule for a new object gives is about
    /// the change, in whatever words.
    async fn refused(&self, error: ApiError, tries: &mut Tries) -> ApplyError {
        let Self { host, child, .. } = *self;
        let refusal = refusal(title(child), child, error);
        let about_the_change = refusal.is_immutable()
            || (refusal.is_rejected() && refusal.error.is_invalid() && allowed(host, child).await.is_ok());
        if about_the_change {
            return self.learn(Lesson::Fixed(refusal.in_short()), tries).await;
        }
        match refusal.retry() {
            Retry::Permanent => self.learn(Lesson::Refused(refusal), tries).await,
            Retry::Blocked | Retry::Passing => ApplyError::Refused(refusal),
        }
    }

    async fn learn(&self, lesson: Lesson, tries: &mut Tries) -> ApplyError {
        tries.learn(self.child.id(), attempted(self.child, Some(self.known)), lesson.clone());
        self.follow(lesson, tries).await
    }

    /// It stands as rendered, and does not become so.
    pub(crate) async fn cannot(&self, what: String, tries: &mut Tries) -> ApplyError {
        self.follow(Lesson::Fixed(what), tries).await
    }

    /// What is to be done by the strategy.
    async fn follow(&self, lesson: Lesson, tries: &mut Tries) -> ApplyError {
        let Self { host, child, known, parent, .. } = *self;
        let what = match lesson {
            Lesson::Refused(refusal) => return ApplyError::Refused(refusal),
            Lesson::Fixed(what) => what,
        };
        let policy = child.policy();
        match policy.strategy {
            Strategy::Recreate if !policy.guarded && known.is_owned_by(&parent.id.uid) => {
                let message = format!("it cannot be changed where it stands: {what}");
                let why = Why { reason: "ImmutableField".to_owned(), message, cause: REPLACED_BY_EDIT };
                let error = replace(host, child, known, why, tries).await;
                if let ApplyError::Refused(refusal) = &error
                    && refusal.retry() == Retry::Permanent
                {
                    let attempted = attempted(child, Some(known));
                    tries.learn(child.id(), attempted, Lesson::Refused(refusal.clone()));
                }
                error
            }
            Strategy::OnDelete => ApplyError::OnDelete { child: title(child), what },
            Strategy::InPlace | Strategy::Recreate => {
                ApplyError::Fixed { child: title(child), what, guarded: policy.guarded }
            }
        }
    }

    /// It changed or went meanwhile, perhaps with its parent, and then there is nothing to make.
    async fn anew(&self) -> Result<(Done, Arc<Child>), ApplyError> {
        let Self { host, key, parent, child, known } = *self;
        if !host.stands(key, parent) {
            return Err(ApplyError::ParentGone);
        }
        look_again(host, key, parent, child, known).await
    }
}

/// Changed or gone (409, 404), or another has its name (422 on the UID).
fn has_moved(error: &ApiError) -> bool {
    let there =
        error.refusal().is_some_and(|refusal| refusal.message.contains("could not find the requested resource"));
    error.is_conflict() || (error.is_not_found() && !there) || error.is_uid_mismatch()
}
