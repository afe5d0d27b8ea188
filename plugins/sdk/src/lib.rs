//! Write Keelson plugins in Rust.
//!
//! A plugin computes: a custom resource goes in, the objects that should exist
//! come out. It is asked again whenever something that it may see has changed,
//! in a fresh instance each time, and the same request must give the same
//! answer.
//!
//! ```
//! use keelson_sdk::prelude::*;
//!
//! struct Cache;
//!
//! impl Plugin for Cache {
//!     type Spec = Unread; // or a struct that derives serde's Deserialize
//!     type Config = NoConfig;
//!
//!     fn manifest() -> Manifest {
//!         Manifest::new("cache", "1.0.0")
//!             .serves(Serving::new("example.org", "v1", "Cache", "caches"))
//!             .child(CONFIG_MAP)
//!     }
//!
//!     fn render(cache: &Request<Self>) -> Result<Rendering, Failure> {
//!         Ok(Rendering::of([json!({
//!             "apiVersion": "v1",
//!             "kind": "ConfigMap",
//!             "metadata": {"name": cache.name()},
//!             "data": {"size": "64"},
//!         })]))
//!     }
//! }
//!
//! keelson_sdk::export!(Cache);
//! # fn main() {}
//! ```

mod alloc;
#[doc(hidden)]
pub mod bindings;
#[doc(hidden)]
pub mod entry;
mod failure;
pub mod finalize;
mod kinds;
#[doc(hidden)]
pub mod log;
mod manifest;
mod read;
pub mod related;
mod rendering;
mod request;
#[cfg(feature = "testing")]
pub mod testing;

pub use bindings::keelson::operator::types as contract;
pub use failure::Failure;
pub use log::Level;
pub use manifest::{Kind, Manifest, Serving};
pub use read::{NoConfig, Unread};
pub use rendering::{Child, Rendering, Retention, Secret};
pub use request::{Observed, Related, Request};
pub use serde_json;

/// Everything that a plugin's file needs.
pub mod prelude {
    pub use crate::kinds::*;
    pub use crate::{
        Child, Failure, Kind, Manifest, NoConfig, Observed, Plugin, Rendering, Request, Retention, Secret, Serving,
        Unread,
    };
    pub use serde_json::{Value, json};
}

/// What an author writes. Hand it to [`export!`] and it is a component.
pub trait Plugin: Sized {
    /// The part of the parent's `spec` that the plugin reads. What does not fit
    /// is the user's `InvalidSpec`, with the field's path and what was expected.
    type Spec: serde::de::DeserializeOwned;
    /// `config` of the Plugin document.
    type Config: serde::de::DeserializeOwned;

    /// What the plugin is. The same at every call.
    fn manifest() -> Manifest;

    /// From a custom resource to all objects that should exist. Pure.
    ///
    /// # Errors
    /// A [`Failure`] where there is nothing to render; the children stay as
    /// they are.
    fn render(request: &Request<Self>) -> Result<Rendering, Failure>;
}

/// Makes a crate (`crate-type = ["cdylib"]`) a component of the world `plugin`.
/// On other targets it exports nothing, so that unit tests run natively.
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        const _: fn() -> $crate::contract::Manifest = $crate::entry::describe::<$plugin>;

        #[cfg(target_family = "wasm")]
        const _: () = {
            use $crate::bindings::exports::keelson::operator::operator::Guest;
            use $crate::contract;

            struct Component;

            impl Guest for Component {
                fn describe() -> contract::Manifest {
                    $crate::entry::describe::<$plugin>()
                }
                fn render(request: contract::Request) -> Result<contract::Rendering, contract::Failure> {
                    $crate::entry::render::<$plugin>(request)
                }
            }

    $crate::bindings::export!(Component with_types_in $crate::bindings);
        };
    };
}
