//! The probe: a plugin that is and renders what a test says (guest: tests/guests/probe).
//!
//! ```ignore
//! let folder = case.probes(&[Probe::new("probe", "mongo").script(&json!({"children": [probe::pod(), probe::service()]}))])?;
//! let _host = case.host().plugins(&folder).start().await?;
//! case.scripted("bad", "mongo", &json!({"act": "trap"})).await?; // this object's own script
//! ```
//!
//! A *script* says what a render answers: `children` (a list), `raw` (children as text, JSON or not), `strategies`
//! (`{Pod: OnDelete}`), `none`, `secrets` (`{name, key, templates?, retain?, after?}`, where `after` names
//! the Secret whose revision must be known first), `status`, `conditions`, `notReady`,
//! `lookAgainAfter`, `fail` (`{class: invalid | not-yet | internal,
//! reason, message, fields, allowed, remedy, retryAfter}`), `failUntil` (`fail` only until then, seconds since
//! 1970), `log`, `act` (`trap`, `loop`, `allocate`). In its texts
//! `{name}`, `{namespace}`, `{/JSON/POINTER}` stand for values of the parent, `{fill:N}` for N letters, and the text
//! `{selector}` for the selector labels;
//! `{data-version:X}` and `{revision:X}` for what the request says of the child and the Secret X, or NAME-X. A child's `retain`,
//! and a Secret's, is `{dataVersion, line}`. It is the plugin's configuration, or an object's annotation
//! `keelson.test/script`, which a test can change while the host runs: that is a new rendering of the same object.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::object::{DATABASE, Kind, POD, SERVICE};
use crate::{Outcome, paths};

/// The annotation of an object that scripts it alone.
pub const SCRIPT: &str = "keelson.test/script";

/// The annotation of an object that says how it is finalized: `{script?, waiting?: {reason, message}, until?: {kind,
/// name}}`. Done where nothing is waited for, or the child `until` has the condition Complete.
pub const FINALIZE: &str = "keelson.test/finalize";

/// The annotation of an object that says what is asked for beside it: a list of `{id, group?, version, kind, plural,
/// namespace?, name? | labels?, observe?}`. A script shows the answers by `{related:ID}`.
pub const RELATED: &str = "keelson.test/related";

/// The slot in the component: this mark, then the manifest, padded to so many bytes.
const MARK: &[u8] = b"keelson-manifest";
const SLOT: usize = 4096;

/// A Plugin document with its component, not written yet.
#[derive(Clone)]
pub struct Probe {
    name: String,
    guest: &'static str,
    manifest: Value,
    spec: Value,
}

/// A Pod of the parent's name.
pub fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "{name}", "labels": {"app": "db"}},
        "spec": {"containers": [{"name": "c", "image": "mongo:4.0"}]}})
}

/// A Service of the parent's name, before its Pod.
pub fn service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "{name}"},
        "spec": {"selector": "{selector}", "ports": [{"port": 80}]}})
}

impl Probe {
    /// Serves the Databases of this `spec.type`, and may make Pods and Services.
    pub fn new(name: &str, database_type: &str) -> Self {
        let (group, version) = DATABASE.api_version.split_once('/').unwrap_or_default();
        let discriminator = json!({"path": "/spec/type", "value": database_type});
        let serves = json!({"group": group, "kind": DATABASE.kind, "discriminator": discriminator});
        let served = json!({"group": group, "versions": [version], "kind": DATABASE.kind, "plural": DATABASE.plural,
            "discriminator": discriminator});
        Self {
            name: name.to_owned(),
            guest: "probe.wasm",
            manifest: json!({"name": name, "version": "0.0.0", "serves": [served]}),
            spec: json!({"source": {"file": {"path": format!("{name}.wasm")}}, "trust": {"unsigned": true},
                "grant": {"serves": [serves], "namespaces": ["*"]}}),
        }
        .children(&[POD, SERVICE])
    }

    /// May make these kinds, by manifest and by grant. The shipped ServiceAccount has rights on Pods and Services only.
    pub fn children(mut self, kinds: &[Kind]) -> Self {
        let split = |kind: &Kind| kind.api_version.split_once('/').unwrap_or(("", kind.api_version));
        let declared = kinds.iter().map(
            |kind| json!({"group": split(kind).0, "version": split(kind).1, "kind": kind.kind, "plural": kind.plural}),
        );
        let granted = kinds.iter().map(|kind| json!({"group": split(kind).0, "kind": kind.kind}));
        merge(&mut self.manifest, &json!({"children": declared.collect::<Vec<_>>()}));
        merge(&mut self.spec, &json!({"grant": {"children": granted.collect::<Vec<_>>()}}));
        self
    }

    /// With the hook `finalize`: what it says is an object's annotation [`FINALIZE`] (guest: tests/guests/finalizer).
    pub fn finalizing(mut self) -> Self {
        self.guest = "finalizer.wasm";
        self
    }

    /// With the hook `related`, for these kinds by manifest and grant: it asks for what an object's annotation [`RELATED`]
    /// says (guest: tests/guests/relations).
    pub fn relating(mut self, kinds: &[Kind]) -> Self {
        self.guest = "relations.wasm";
        let split = |kind: &Kind| kind.api_version.split_once('/').unwrap_or(("", kind.api_version));
        let declared = kinds.iter().map(
            |kind| json!({"group": split(kind).0, "version": split(kind).1, "kind": kind.kind, "plural": kind.plural}),
        );
        let granted = kinds.iter().map(|kind| json!({"group": split(kind).0, "kind": kind.kind}));
        merge(&mut self.manifest, &json!({"related": declared.collect::<Vec<_>>()}));
        merge(&mut self.spec, &json!({"grant": {"related": granted.collect::<Vec<_>>()}}));
        self
    }

    /// What it renders for objects without a script of their own.
    pub fn script(self, script: &Value) -> Self {
        self.spec(&json!({"config": script}))
    }

    /// A merge patch over the document's `spec`: limits, grant, trust, …
    pub fn spec(mut self, patch: &Value) -> Self {
        merge(&mut self.spec, patch);
        self
    }

    /// A merge patch over what it says that it is; `{"act": "loop"}` never says it.
    pub fn manifest(mut self, patch: &Value) -> Self {
        merge(&mut self.manifest, patch);
        self
    }

    /// `NAME.wasm` and `NAME.yaml` into a folder of plugins.
    pub fn write(&self, folder: &Path) -> Outcome {
        self.write_component(folder)?;
        std::fs::write(folder.join(format!("{}.yaml", self.name)), self.document())?;
        Ok(())
    }

    /// As a file of a plugin folder, or as an object of the cluster.
    pub fn document(&self) -> String {
        json!({"apiVersion": "keelson.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": self.name}, "spec": self.spec})
            .to_string()
    }

    /// `NAME.wasm` alone.
    pub fn write_component(&self, folder: &Path) -> Outcome {
        let guest = paths::guests().join(self.guest);
        let mut component =
            std::fs::read(&guest).with_context(|| format!("no guest at {}: make test-guests", guest.display()))?;
        let manifest = self.manifest.to_string();
        let at = component.windows(MARK.len()).position(|bytes| bytes == MARK).context("the probe has no slot")?;
        let room = component.get_mut(at + MARK.len()..at + SLOT).context("the probe's slot is cut")?;
        ensure!(manifest.len() <= room.len(), "a manifest of {} bytes", manifest.len());
        room.fill(b' ');
        room.iter_mut().zip(manifest.bytes()).for_each(|(to, from)| *to = from);
        std::fs::create_dir_all(folder)?;
        // At once, as `keelson plugin copy` does it: a host may be looking.
        let (file, new) = (folder.join(format!("{}.wasm", self.name)), folder.join(format!(".{}.new", self.name)));
        std::fs::write(&new, component)?;
        std::fs::rename(new, file)?;
        Ok(())
    }
}

/// RFC 7386, but that a null stays one: nothing here is ever taken away.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
