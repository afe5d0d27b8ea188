//! Objects beside the children, for plugins that want to look at some.

use crate::{Failure, Kind, Plugin, Request, contract, entry};
use std::mem::ManuallyDrop;

#[doc(hidden)]
pub mod bindings {
    //! One more export beside those of `crate::bindings`, whose types it shares.
    #![allow(unsafe_code, unreachable_pub, unused_qualifications, reason = "generated: how values cross the border")]
    #![allow(clippy::all, clippy::indexing_slicing, clippy::needless_pass_by_value, reason = "generated")]

    wit_bindgen::generate!({
        inline: "package keelson:sdk; world relations { export keelson:operator/relations@0.1.0; }",
        path: "../../wit/operator-0.1.0",
        world: "keelson:sdk/relations",
        pub_export_macro: true,
        export_macro_name: "export_relations",
        additional_derives: [PartialEq],
        default_bindings_module: "keelson_sdk::related::bindings",
        with: {
            "keelson:operator/types@0.1.0": crate::bindings::keelson::operator::types,
        },
    });
}

use bindings::exports::keelson::operator::relations as hook;

/// A plugin that looks at objects which are not its children: a ConfigMap that the user names, a StorageClass, a Secret's
/// revision.
///
/// Export it by [`export_with_relations!`](crate::export_with_relations). Each kind stands in the manifest and in
/// `grant.related` of the Plugin document. The host watches it: when what a query shows changes, the plugin is rendered
/// again. An object that the host may not read stops the render, and its user is told.
///
/// ```
/// # use keelson_sdk::prelude::*;
/// # struct Shop;
/// use keelson_sdk::related::{Query, Relations};
///
/// impl Plugin for Shop {
/// #   type Spec = Unread;
/// #   type Config = NoConfig;
///     fn manifest() -> Manifest {
///         Manifest::new("shop", "1.0.0").child(DEPLOYMENT).related(CONFIG_MAP)
///     }
///
///     fn render(shop: &Request<Self>) -> Result<Rendering, Failure> {
///         let Some(prices) = shop.related("prices").next().filter(|prices| prices.is_found()) else {
///             return Err(Failure::not_yet("NoPrices", "there is no ConfigMap prices in this namespace"));
///         };
///         let currency: Option<String> = prices.get("/data/currency");
///         # let _ = currency;
///         Ok(Rendering::none())
///     }
/// }
///
/// impl Relations for Shop {
///     fn related(_: &Request<Self>) -> Result<Vec<Query>, Failure> {
///         Ok(vec![Query::named("prices", CONFIG_MAP.observing(&["/data/currency"]), "prices")])
///     }
/// }
///
/// keelson_sdk::export_with_relations!(Shop);
/// # fn main() {}
/// ```
pub trait Relations: Plugin {
    /// What to look at. Pure, and asked before each `render` with the same request, which has no answers yet.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be told; it counts as one of `render`.
    fn related(request: &Request<Self>) -> Result<Vec<Query>, Failure>;
}

/// One question. What is seen of each object are the paths that its [`Kind`] observes; of a Secret its revision only, and
/// only by name.
#[must_use]
#[derive(Debug, Clone)]
pub struct Query(hook::RelatedQuery);

impl Query {
    /// One object; its answer is there also where the object is absent. `id` is for
    /// [`Request::related`].
    pub fn named(id: &str, kind: Kind, name: impl Into<String>) -> Self {
        Self::new(id, kind, hook::Selection::Name(name.into()))
    }

    /// Every object with all of these labels, in the order of their names: an answer each, perhaps none.
    pub fn labelled<'a>(id: &str, kind: Kind, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let label = |(key, value): (&str, &str)| contract::Label { key: key.to_owned(), value: value.to_owned() };
        Self::new(id, kind, hook::Selection::Labels(labels.into_iter().map(label).collect()))
    }

    /// In another namespace than the parent's, which the grant must name.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.0.namespace = Some(namespace.into());
        self
    }

    fn new(id: &str, kind: Kind, by: hook::Selection) -> Self {
        let observe = kind.observe.iter().map(|&pointer| pointer.to_owned()).collect();
        Self(hook::RelatedQuery { id: id.to_owned(), kind: kind.reference(), namespace: None, by, observe })
    }
}

impl From<Query> for hook::RelatedQuery {
    fn from(query: Query) -> Self {
        query.0
    }
}

/// Between the exported function and the author's trait.
///
/// # Errors
/// What the author's code says, and requests that do not fit its types.
#[doc(hidden)]
#[allow(clippy::result_large_err, reason = "it is what the contract wants, once for each call")]
pub fn related<P: Relations>(request: contract::Request) -> Result<Vec<hook::RelatedQuery>, contract::Failure> {
    entry::log_panics();
    // Never dropped: the memory goes with the instance.
    let request = ManuallyDrop::new(Request::<P>::read(request)?);
    Ok(P::related(&request)?.into_iter().map(Into::into).collect())
}

/// As [`export!`](crate::export), for a plugin with [`Relations`]: a component of the world `plugin-with-relations`.
/// One that finalizes too: `export_with_finalizer!(P); export_relations!(P);`.
#[macro_export]
macro_rules! export_with_relations {
    ($plugin:ty) => {
        $crate::export!($plugin);
        $crate::export_relations!($plugin);
    };
}

/// The hook alone, beside [`export!`](crate::export) or [`export_with_finalizer!`](crate::export_with_finalizer).
#[macro_export]
macro_rules! export_relations {
    ($plugin:ty) => {
        const _: fn(&$crate::Request<$plugin>) -> Result<Vec<$crate::related::Query>, $crate::Failure> =
            <$plugin as $crate::related::Relations>::related;

        #[cfg(target_family = "wasm")]
        const _: () = {
            use $crate::contract;
            use $crate::related::bindings::exports::keelson::operator::relations;

            struct Component;

            impl relations::Guest for Component {
                fn related(request: contract::Request) -> Result<Vec<relations::RelatedQuery>, contract::Failure> {
                    $crate::related::related::<$plugin>(request)
                }
            }

    $crate::related::bindings::export_relations!(Component with_types_in $crate::related::bindings);
        };
    };
}
