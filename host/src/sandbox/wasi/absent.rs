//! Files, sockets, names, terminals: of these there is none. A guest cannot call the methods of what it can never hold, so
//! that they need no types here; who asks for one is told that access is denied.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceType, Val};

use super::super::imports::{Allowed, same_track};
use super::super::store::{End, Ended, State};
use super::handles::{Absent, Network, pay};

/// The functions that make one.
const MAKERS: &[&str] = &["create-tcp-socket", "create-udp-socket", "resolve-addresses"];
/// Anybody gets it, and can do nothing with it.
const NETWORK: &str = "network";

/// Defines, of these interfaces, what `component` imports.
pub(super) fn define(
    linker: &mut Linker<State>,
    component: &Component,
    interfaces: &[Allowed],
) -> wasmtime::Result<()> {
    let engine = component.engine();
    for (name, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        let Some(allowed) = interfaces.iter().find(|allowed| same_track(allowed.interface, name)) else { continue };
        let mut linked = linker.instance(name)?;
        for resource in allowed.absent {
            let ty =
                if *resource == NETWORK { ResourceType::host::<Network>() } else { ResourceType::host::<Absent>() };
            linked.resource(resource, ty, |_, _| Ok(()))?;
        }
        for (function, item) in instance.exports(engine) {
            if !matches!(item.ty, ComponentItem::ComponentFunc(_)) {
                continue;
            }
            let makes = MAKERS.contains(&function);
            let import = format!("{name}#{function}");
            linked.func_new(function, move |mut store, _, arguments, results| {
                pay(&mut store, 0)?;
                // What was lent must be given back before the call ends: a network.
                for argument in arguments {
                    if let Val::Resource(lent) = argument {
                        lent.resource_drop(&mut store)?;
                    }
                }
                match results {
                    [result] if makes => {
                        *result = Val::Result(Err(Some(Box::new(Val::Enum("access-denied".to_owned())))));
                        Ok(())
                    }
                    _ => Err(Ended(End::Misuse(format!("{import}: there is none"))).into()),
                }
            })?;
        }
    }
    Ok(())
}
