//! The contract, as `wit-bindgen` gives it.
#![allow(unsafe_code, unreachable_pub, unused_qualifications, reason = "generated: how values cross the border")]
#![allow(clippy::all, clippy::indexing_slicing, clippy::needless_pass_by_value, reason = "generated")]

wit_bindgen::generate!({
    path: "../../wit/operator-0.1.0",
    world: "plugin",
    pub_export_macro: true,
    default_bindings_module: "keelson_sdk::bindings",
    additional_derives: [PartialEq],
});
