//! `keelson:operator@0.1.0`: linking and calling. `lower` turns our request into
//! the guest's, `lift` what came back into our types.

use wasmtime::Store;
use wasmtime::component::Linker;

use super::super::component::LoadError;
use super::super::imports;
use super::super::model::{CallError, Manifest, Rendered, Request};
use super::super::store::{State, Stop};
use lift::Lift;
use lower::Lowered;

mod lower;
mod lift;

#[allow(unreachable_pub, unused_qualifications, reason = "written by bindgen")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit/operator-0.1.0",
        world: "plugin",
        // A request is copied into the guest from where it lies.
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

pub(super) const VERSION: &str = "0.1.0";
const LOG: &str = "keelson:operator/log@0.1.0";
const TYPES: &str = "keelson:operator/types@0.1.0";

pub(in crate::sandbox) struct Guest {
    pre: bindings::PluginPre<State>,
}

impl Guest {
    pub(super) fn link(component: &wasmtime::component::Component) -> Result<Self, LoadError> {
        imports::check(component, &[(TYPES, &[]), (LOG, &["log"])])?;
        let mut linker = Linker::new(component.engine());
        let linked = linker.instance(TYPES).map(drop).and_then(|()| {
            imports::log::<bindings::keelson::operator::log::Level, bindings::keelson::operator::log::Field>(
                &mut linker,
                LOG,
            )?;
            bindings::PluginPre::new(linker.instantiate_pre(component)?)
        });
        // Names fit, so it is a type that does not.
        linked
            .map(|pre| Self { pre })
            .map_err(|error| LoadError::ArtifactInvalid(format!("it does not fit the contract {VERSION}: {error:#}")))
    }

    pub(super) fn describe(&self, store: &mut Store<State>) -> Result<Manifest, Stop> {
        let plugin = self.pre.instantiate(&mut *store).map_err(Stop::Instantiation)?;
        let manifest = plugin.keelson_operator_operator().call_describe(&mut *store).map_err(Stop::Call)?;
        Lift::new(store.data().limits()).manifest(manifest).map_err(Stop::Output)
    }

    pub(super) fn render(&self, store: &mut Store<State>, request: &Request) -> Result<Rendered, Stop> {
        let plugin = self.pre.instantiate(&mut *store).map_err(Stop::Instantiation)?;
        let lowered = Lowered::new(request);
        let rendering =
            plugin.keelson_operator_operator().call_render(&mut *store, lowered.request()).map_err(Stop::Call)?;
        let mut lift = Lift::new(store.data().limits());
        match rendering {
            Ok(rendering) => lift.rendering(rendering).map(|rendering| Rendered { rendering }),
            Err(failure) => Err(lift.failure(failure).map_or_else(|error| error, CallError::Failure)),
        }
        .map_err(Stop::Output)
    }
}
