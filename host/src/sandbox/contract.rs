//! One module for each version of the contract that this host serves, each
//! turned into the same types of [`super::model`].

use wasmtime::Store;
use wasmtime::component::types::ComponentItem;

use super::imports::{self, Allowed, same_track};
use super::model::{Asked, Finalized, Hooks, LoadError, Manifest, Rendered, Request};
use super::store::{State, Stop};
use super::wasi;

mod v0_1;

/// The interface whose version is that of the contract.
const OPERATOR: &str = "keelson:operator/operator";
/// Newest first.
const SERVED: &[&str] = &[v0_1::VERSION];
/// Of all versions.
const IMPORTS: &[Allowed] = v0_1::IMPORTS;

/// A linked component of a version that we serve.
pub(super) enum Guest {
    V0_1(v0_1::Guest),
}

/// Checks imports, finds the version by the exports, then checks the types of both.
pub(super) fn link(component: &wasmtime::component::Component) -> Result<(Guest, Hooks), LoadError> {
    imports::check(component, IMPORTS, &wasi::INTERFACES)?;
    let engine = component.engine();
    let ty = component.component_type();
    let exports = |interface: &str| ty.exports(engine).any(|(name, _)| same_track(name, interface));
    let versioned = |interface: &str, version: &str| format!("{interface}@{version}");

    let Some(version) = SERVED.iter().find(|version| exports(&versioned(OPERATOR, version))) else {
        let other = ty
            .exports(engine)
            .find(|(name, item)| name.starts_with(OPERATOR) && matches!(item.ty, ComponentItem::ComponentInstance(_)));
        let served = versioned(OPERATOR, &SERVED.join(&format!(" and {OPERATOR}@")));
        return Err(LoadError::ArtifactInvalid(match other {
            Some((name, _)) => format!("it exports {name}; this host serves {served}"),
            None => format!("it exports no {OPERATOR}; a plugin must export {served}"),
        }));
    };
    let hooks = Hooks {
        finalizer: exports(&versioned("keelson:operator/finalizer", version)),
        relations: exports(&versioned("keelson:operator/relations", version)),
    };
    Ok((Guest::V0_1(v0_1::Guest::link(component)?), hooks))
}

impl Guest {
    pub(super) fn version(&self) -> &'static str {
        match self {
            Self::V0_1(_) => v0_1::VERSION,
        }
    }

    pub(super) fn fits(&self, store: &mut Store<State>) -> Result<Result<(), String>, Stop> {
        match self {
            Self::V0_1(guest) => guest.fits(store),
        }
    }

    pub(super) fn describe(&self, store: &mut Store<State>) -> Result<Manifest, Stop> {
        match self {
            Self::V0_1(guest) => guest.describe(store),
        }
    }

    pub(super) fn render(&self, store: &mut Store<State>, request: &Request) -> Result<Rendered, Stop> {
        match self {
            Self::V0_1(guest) => guest.render(store, request),
        }
    }

    pub(super) fn finalize(&self, store: &mut Store<State>, request: &Request) -> Result<Finalized, Stop> {
        match self {
            Self::V0_1(guest) => guest.finalize(store, request),
        }
    }

    pub(super) fn related(&self, store: &mut Store<State>, request: &Request) -> Result<Asked, Stop> {
        match self {
            Self::V0_1(guest) => guest.related(store, request),
        }
    }
}
