//! Work before a deleted object may vanish, for plugins that want it.

use crate::{Failure, Plugin, Rendering, Request, contract, entry};
use std::mem::ManuallyDrop;

#[doc(hidden)]
pub mod bindings {
    //! One more export beside those of `crate::bindings`, whose types it shares. A world with both would export
    //! `operator` a second time.
    #![allow(unsafe_code, unreachable_pub, unused_qualifications, reason = "generated: how values cross the border")]
    #![allow(clippy::all, clippy::indexing_slicing, clippy::needless_pass_by_value, reason = "generated")]

    wit_bindgen::generate!({
        inline: "package keelson:sdk; world finalizer { export keelson:operator/finalizer@0.1.0; }",
        path: "../../wit/operator-0.1.0",
        world: "keelson:sdk/finalizer",
        pub_export_macro: true,
        export_macro_name: "export_finalizer",
        additional_derives: [PartialEq],
        default_bindings_module: "keelson_sdk::finalize::bindings",
        with: {
            "keelson:operator/types@0.1.0": crate::bindings::keelson::operator::types,
        },
    });
}

use bindings::exports::keelson::operator::finalizer as hook;

/// A plugin whose objects wait, when they are deleted, until it says so.
///
/// Export it by [`export_with_finalizer!`](crate::export_with_finalizer). The
/// host puts a finalizer on each object before its first child, and takes it off
/// when `finalize` is [`done`](Finalization::done).
///
/// ```
/// # use keelson_sdk::prelude::*;
/// # struct Shop;
/// # impl Plugin for Shop {
/// #     type Spec = Unread;
/// #     type Config = NoConfig;
/// #     fn manifest() -> Manifest { Manifest::new("shop", "1.0.0").child(JOB) }
/// #     fn render(_: &Request<Self>) -> Result<Rendering, Failure> { Ok(Rendering::none()) }
/// # }
/// use keelson_sdk::finalize::{Finalization, Finalizer};
///
/// impl Finalizer for Shop {
///     fn finalize(shop: &Request<Self>) -> Result<Finalization, Failure> {
///         let name = shop.name_with("dump");
///         if shop.child(JOB, &name).is_some_and(|job| job.is("Complete")) {
///             return Ok(Finalization::done());
///         }
///         let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}});
///         let children = Self::render(shop)?.child(job); // all else stays as it is
///         Ok(Finalization::waiting("Dumping", "its data is being dumped").with(children))
///     }
/// }
///
/// keelson_sdk::export_with_finalizer!(Shop);
/// # fn main() {}
/// ```
pub trait Finalizer: Plugin {
    /// Pure, as `render` is, and asked until it says that it is done. The
    /// object has a deletionTimestamp; its children are there as before, but
    /// for a delete in the foreground, which takes them first.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be told; the object waits, and it is asked
    /// again by the rule of the failure's class.
    fn finalize(request: &Request<Self>) -> Result<Finalization, Failure>;
}

/// What should be there while an object waits, and for what it waits.
#[must_use]
#[derive(Debug, Clone)]
pub struct Finalization {
    children: contract::Children,
    secrets: Vec<contract::GeneratedSecret>,
    progress: hook::Progress,
    look_again_after: Option<u32>,
}

impl Finalization {
    /// The object may go, and its children with it.
    pub fn done() -> Self {
        Self::new(hook::Progress::Done)
    }

    /// Not yet, and why: a reason in CamelCase, and a sentence for the person
    /// who waits. The children stay as they are.
    pub fn waiting(reason: &str, message: impl Into<String>) -> Self {
        let why = contract::Explanation { reason: reason.to_owned(), message: message.into() };
        Self::new(hook::Progress::Waiting(why))
    }

    fn new(progress: hook::Progress) -> Self {
        Self { children: contract::Children::Keep, secrets: Vec::new(), progress, look_again_after: None }
    }

    /// The children and Secrets of a rendering meanwhile; what it says of the
    /// status counts for nothing.
    pub fn with(mut self, rendering: Rendering) -> Self {
        let contract::Rendering { children, secrets, .. } = rendering.into();
        (self.children, self.secrets) = (children, secrets);
        self
    }

    /// Asks again after so many seconds though nothing may have changed.
    pub fn look_again_after(mut self, seconds: u32) -> Self {
        self.look_again_after = Some(seconds);
        self
    }
}

impl From<Finalization> for hook::Finalization {
    fn from(Finalization { children, secrets, progress, look_again_after }: Finalization) -> Self {
        Self { children, secrets, progress, look_again_after }
    }
}

/// Between the exported function and the author's trait.
///
/// # Errors
/// What the author's code says, and requests that do not fit its types.
#[doc(hidden)]
#[allow(clippy::result_large_err, reason = "it is what the contract wants, once for each call")]
pub fn finalize<P: Finalizer>(request: contract::Request) -> Result<hook::Finalization, contract::Failure> {
    entry::log_panics();
    // Never dropped: the memory goes with the instance.
    let request = ManuallyDrop::new(Request::<P>::read(request)?);
    Ok(P::finalize(&request)?.into())
}

/// As [`export!`](crate::export), for a plugin that is a [`Finalizer`]: a
/// component of the world `plugin-with-finalizer`.
#[macro_export]
macro_rules! export_with_finalizer {
    ($plugin:ty) => {
        $crate::export!($plugin);

        const _: fn(&$crate::Request<$plugin>) -> Result<$crate::finalize::Finalization, $crate::Failure> =
            <$plugin as $crate::finalize::Finalizer>::finalize;

        #[cfg(target_family = "wasm")]
        const _: () = {
            use $crate::contract;
            use $crate::finalize::bindings::exports::keelson::operator::finalizer;

            struct Component;

            impl finalizer::Guest for Component {
                fn finalize(request: contract::Request) -> Result<finalizer::Finalization, contract::Failure> {
                    $crate::finalize::finalize::<$plugin>(request)
                }
            }

    $crate::finalize::bindings::export_finalizer!(Component with_types_in $crate::finalize::bindings);
        };
    };
}
