//! What a guest may import: the contract's own types and log, and the virtual
//! world. Compared by semver track, refused with what to do. `log` never affects
//! a rendering but by the fuel that it costs.

use tracing::Level;
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;
use wasmtime::component::types::ComponentItem;

use super::model::LoadError;
use super::store::{self, State};
use crate::limits;

/// An interface that a guest may import, and what is in it.
pub(super) struct Allowed {
    pub(super) interface: &'static str,
    pub(super) functions: &'static [&'static str],
    /// Resources of which there never is one: whatever methods they have may be imported, and none can be called.
    pub(super) absent: &'static [&'static str],
}

/// Refuses whatever none of these provides.
pub(super) fn check(
    component: &wasmtime::component::Component,
    contract: &[Allowed],
    world: &[&[Allowed]],
) -> Result<(), LoadError> {
    let engine = component.engine();
    for (name, item) in component.component_type().imports(engine) {
        let mut allowed = contract.iter().chain(world.iter().copied().flatten());
        let Some(allowed) = allowed.find(|allowed| same_track(allowed.interface, name)) else {
            return Err(denied(name, contract));
        };
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            return Err(denied(name, contract));
        };
        for (export, item) in instance.exports(engine) {
            let ty = matches!(item.ty, ComponentItem::Type(_) | ComponentItem::Resource(_));
            if !ty && !allowed.functions.contains(&export) && !allowed.is_of_absent(export) {
                return Err(denied(&format!("{name}#{export}"), contract));
            }
        }
    }
    Ok(())
}

fn denied(import: &str, contract: &[Allowed]) -> LoadError {
    let names = || contract.iter().map(|allowed| allowed.interface).collect::<Vec<_>>().join(" and ");
    let fix = if import.starts_with("wasi:") || import.starts_with("wasi_") {
        "a plugin has WASI 0.2 without files, network and processes, and nothing beyond it; leave out what asks for this, or \
         build Rust for wasm32-unknown-unknown, JavaScript with --sync, Python and JavaScript with --stub-wasi"
            .to_owned()
    } else if import.starts_with("keelson:operator/") {
        format!("this host provides {}; build the plugin against its version of the contract", names())
    } else {
        format!("a plugin only computes and may import nothing but {} and WASI 0.2", names())
    };
    LoadError::ImportDenied { import: import.to_owned(), fix }
}

impl Allowed {
    pub(super) fn is_of_absent(&self, function: &str) -> bool {
        let method = function.strip_prefix("[method]").and_then(|method| method.split_once('.'));
        method.is_some_and(|(resource, _)| self.absent.contains(&resource))
    }
}

/// Whether two interface names are equal up to compatible versions: `0.1.0` and
/// `0.1.7`, `1.2.0` and `1.9.3`, but not `0.1.0` and `0.2.0`.
pub(super) fn same_track(one: &str, other: &str) -> bool {
    let (Some((name, version)), Some((other_name, other_version))) = (one.split_once('@'), other.split_once('@'))
    else {
        return one == other;
    };
    name == other_name
        && (version == other_version || track(version).is_some_and(|it| Some(it) == track(other_version)))
}

fn track(version: &str) -> Option<[u64; 2]> {
    // A pre-release is compatible with nothing but itself.
    if version.contains(['-', '+']) {
        return None;
    }
    let mut numbers = version.split('.').map(str::parse::<u64>);
    match (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?) {
        (0, 0, _) => None,
        (0, minor, _) => Some([0, minor]),
        (major, _, _) => Some([major, 0]),
    }
}

/// Defines `log` for one version of the contract, whose types turn into ours.
pub(super) fn log<L, F>(linker: &mut Linker<State>, interface: &str) -> wasmtime::Result<()>
where
    L: wasmtime::component::Lift + Into<Level> + 'static,
    F: wasmtime::component::Lift + Into<(String, String)> + 'static,
    (L, String, Vec<F>): wasmtime::component::ComponentNamedList + wasmtime::component::Lift,
{
    linker.instance(interface)?.func_wrap(
        "log",
        |mut store: StoreContextMut<'_, State>, (level, message, fields): (L, String, Vec<F>)| {
            let fields: Vec<(String, String)> = fields.into_iter().map(Into::into).collect();
            let bytes = message.len() + fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
            let cost = u64::try_from(bytes.saturating_add(limits::LOG_LINE_BYTES)).unwrap_or(u64::MAX);
            store::pay(&mut store, cost)?;
            store.data_mut().log.push(level.into(), &message, &fields);
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks() {
        for (one, other) in [("a:b/c@0.1.0", "a:b/c@0.1.9"), ("a:b/c@1.0.0", "a:b/c@1.4.0"), ("a:b/c", "a:b/c")] {
            assert!(same_track(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("a:b/c@0.1.0", "a:b/c@0.2.0"),
            ("a:b/c@0.0.1", "a:b/c@0.0.2"),
            ("a:b/c@1.0.0", "a:b/c@2.0.0"),
            ("a:b/c@0.1.0", "a:b/d@0.1.0"),
            ("a:b/c@0.1.0", "a:b/c"),
            ("a:b/c@0.1.0", "a:b/c@0.1.0-rc1"),
        ] {
            assert!(!same_track(one, other), "{one} {other}");
        }
    }
}
