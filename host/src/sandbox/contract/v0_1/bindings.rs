//! Made from the WIT by wasmtime.
#![allow(unreachable_pub, unused_qualifications, reason = "written by bindgen")]

wasmtime::component::bindgen!({
    path: "../wit/operator-0.1.0",
    world: "plugin-with-relations-and-finalizer",
    // A request is copied into the guest from where it lies.
    ownership: Borrowing { duplicate_if_necessary: true },
});
