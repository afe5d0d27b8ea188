//! `keelson:operator@0.1.0`: linking and calling. `lower` turns our request into
//! the guest's, `lift` what came back into our types.

use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre, Linker, TypedFunc};

use super::super::imports::{self, Allowed};
use super::super::model::{Asked, CallError, Finalized, LoadError, Manifest, Rendered, Request};
use super::super::store::{State, Stop};
use super::super::wasi;
use bindings::exports::keelson::operator::{finalizer, relations};
use bindings::keelson::operator::{log, types};
use lift::Lift;
use lower::Lowered;

mod bindings;
mod lower;
mod lift;

pub(super) const VERSION: &str = "0.1.0";
const OPERATOR: &str = "keelson:operator/operator@0.1.0";
const FINALIZER: &str = "keelson:operator/finalizer@0.1.0";
const RELATIONS: &str = "keelson:operator/relations@0.1.0";
const LOG: &str = "keelson:operator/log@0.1.0";
const TYPES: &str = "keelson:operator/types@0.1.0";
/// Interfaces that a guest may import, with their functions.
pub(super) const IMPORTS: &[Allowed] = &[
    Allowed { interface: TYPES, functions: &[], absent: &[] },
    Allowed { interface: LOG, functions: &["log"], absent: &[] },
];

type Describe = TypedFunc<(), (types::Manifest,)>;
type Render<'a> = TypedFunc<(types::Request<'a>,), (Result<types::Rendering, types::Failure>,)>;
type Finalize<'a> = TypedFunc<(types::Request<'a>,), (Result<finalizer::Finalization, types::Failure>,)>;
type Relate<'a> = TypedFunc<(types::Request<'a>,), (Result<Vec<relations::RelatedQuery>, types::Failure>,)>;

pub(in crate::sandbox) struct Guest {
    pre: InstancePre<State>,
    describe: ComponentExportIndex,
    render: ComponentExportIndex,
    /// Where it has the hook.
    finalize: Option<ComponentExportIndex>,
    /// Where it has the hook.
    relate: Option<ComponentExportIndex>,
}

impl Guest {
    pub(super) fn link(component: &Component) -> Result<Self, LoadError> {
        let linked = || {
            let mut linker = Linker::new(component.engine());
            linker.instance(TYPES)?;
            imports::log::<log::Level, log::Field>(&mut linker, LOG)?;
            wasi::define(&mut linker, component)?;
            linker.instantiate_pre(component)
        };
        let export = |interface: &str, name: &str| {
            let instance = component.get_export_index(None, interface);
            let export = instance.and_then(|instance| component.get_export_index(Some(&instance), name));
            export.ok_or_else(|| LoadError::ArtifactInvalid(format!("it exports no `{name}` in {interface}")))
        };
        let hook = |interface: &str, name: &str| {
            let has = component.get_export_index(None, interface).is_some();
            has.then(|| export(interface, name)).transpose()
        };
        // The names of imports fit, so it is a type that does not.
        let pre = linked().map_err(|error| LoadError::ArtifactInvalid(misfit(&error)))?;
        Ok(Self {
            pre,
            describe: export(OPERATOR, "describe")?,
            render: export(OPERATOR, "render")?,
            finalize: hook(FINALIZER, "finalize")?,
            relate: hook(RELATIONS, "related")?,
        })
    }

    /// Whether the exports have the types of the contract, which only an
    /// instance can tell. The error says what does not fit.
    pub(super) fn fits(&self, store: &mut Store<State>) -> Result<Result<(), String>, Stop> {
        let instance = self.instance(store)?;
        let typed = self.typed_describe(store, &instance).and_then(|_| self.typed_render(store, &instance)).map(drop);
        let typed = typed.and_then(|()| match self.finalize {
            Some(finalize) => typed_finalize(store, &instance, finalize).map(drop),
            None => Ok(()),
        });
        let typed = typed.and_then(|()| match self.relate {
            Some(relate) => typed_relate(store, &instance, relate).map(drop),
            None => Ok(()),
        });
        Ok(typed.map_err(|error| misfit(&error)))
    }

    pub(super) fn describe(&self, store: &mut Store<State>) -> Result<Manifest, Stop> {
        let instance = self.instance(store)?;
        let describe = self.typed_describe(store, &instance).map_err(Stop::Call)?;
        let (manifest,) = describe.call(&mut *store, ()).map_err(Stop::Call)?;
        Lift::new(store.data().limits()).manifest(manifest).map_err(Stop::Output)
    }

    pub(super) fn render(&self, store: &mut Store<State>, request: &Request) -> Result<Rendered, Stop> {
        let instance = self.instance(store)?;
        let lowered = Lowered::new(request);
        let render = self.typed_render(store, &instance).map_err(Stop::Call)?;
        let (rendering,) = render.call(&mut *store, (lowered.request(),)).map_err(Stop::Call)?;
        let mut lift = Lift::new(store.data().limits());
        match rendering {
            Ok(rendering) => lift.rendering(rendering).map(|rendering| Rendered { rendering }),
            Err(failure) => Err(lift.failure(failure).map_or_else(|error| error, CallError::Failure)),
        }
        .map_err(Stop::Output)
    }

    /// A fault of the host's where the guest does not have the hook.
    pub(super) fn finalize(&self, store: &mut Store<State>, request: &Request) -> Result<Finalized, Stop> {
        let missing = || Stop::Output(CallError::Host(format!("the plugin exports no {FINALIZER}")));
        let finalize = self.finalize.ok_or_else(missing)?;
        let instance = self.instance(store)?;
        let lowered = Lowered::new(request);
        let finalize = typed_finalize(store, &instance, finalize).map_err(Stop::Call)?;
        let (finalization,) = finalize.call(&mut *store, (lowered.request(),)).map_err(Stop::Call)?;
        let mut lift = Lift::new(store.data().limits());
        match finalization {
            Ok(finalization) => lift.finalization(finalization).map(|finalization| Finalized { finalization }),
            Err(failure) => Err(lift.failure(failure).map_or_else(|error| error, CallError::Failure)),
        }
        .map_err(Stop::Output)
    }

    /// A fault of the host's where the guest does not have the hook.
    pub(super) fn related(&self, store: &mut Store<State>, request: &Request) -> Result<Asked, Stop> {
        let missing = || Stop::Output(CallError::Host(format!("the plugin exports no {RELATIONS}")));
        let relate = self.relate.ok_or_else(missing)?;
        let instance = self.instance(store)?;
        let lowered = Lowered::new(request);
        let relate = typed_relate(store, &instance, relate).map_err(Stop::Call)?;
        let (queries,) = relate.call(&mut *store, (lowered.request(),)).map_err(Stop::Call)?;
        let mut lift = Lift::new(store.data().limits());
        match queries {
            Ok(queries) => lift.queries(queries).map(|queries| Asked { queries }),
            Err(failure) => Err(lift.failure(failure).map_or_else(|error| error, CallError::Failure)),
        }
        .map_err(Stop::Output)
    }

    fn instance(&self, store: &mut Store<State>) -> Result<Instance, Stop> {
        self.pre.instantiate(store).map_err(Stop::Instantiation)
    }

    fn typed_describe(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Describe> {
        instance.get_typed_func(store, self.describe)
    }

    fn typed_render<'a>(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Render<'a>> {
        instance.get_typed_func(store, self.render)
    }
}

fn typed_finalize<'a>(
    store: &mut Store<State>,
    instance: &Instance,
    export: ComponentExportIndex,
) -> wasmtime::Result<Finalize<'a>> {
    instance.get_typed_func(store, export)
}

fn typed_relate<'a>(
    store: &mut Store<State>,
    instance: &Instance,
    export: ComponentExportIndex,
) -> wasmtime::Result<Relate<'a>> {
    instance.get_typed_func(store, export)
}

fn misfit(error: &wasmtime::Error) -> String {
    format!("it does not fit the contract {VERSION}: {error:#}")
}
