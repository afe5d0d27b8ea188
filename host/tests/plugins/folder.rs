//! A plugin folder for one test, with plugins in WAT.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sha2::{Digest, Sha256};

use crate::guest::Guest;

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("plugins-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    /// A document for `NAME.wasm`, changed; the digest is that of the bytes.
    pub(crate) fn plugin_with(&self, name: &str, serves: &str, wasm: &[u8], change: impl FnOnce(String) -> String) {
        self.put(&format!("{name}.wasm"), wasm);
        self.put(&format!("{name}.yaml"), change(document(name, serves, &digest(wasm))));
    }

    /// A plugin for the objects with this `/spec/type`.
    pub(crate) fn plugin(&self, name: &str, value: &str) {
        self.plugin_with(name, value, &component(value), |document| document);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn document(name: &str, value: &str, sha256: &str) -> String {
    format!(
        r#"apiVersion: keelson.dev/v1alpha1
kind: Plugin
metadata: {{name: {name}}}
spec:
  source: {{file: {{path: {name}.wasm}}}}
  trust: {{sha256: "{sha256}"}}
  grant:
    serves: [{{group: example.io, kind: Thing, discriminator: {{path: /spec/type, value: {value}}}}}]
    children: [{{group: "", kind: Pod}}]
    namespaces: ["*"]
"#
    )
}

/// Serves things of this type with one Pod, named `one`.
pub(crate) fn component(value: &str) -> Vec<u8> {
    guest(value).component()
}

pub(crate) fn guest(value: &str) -> Guest {
    let mut guest = Guest::default();
    let [name, version, group, v1, kind, plural, path, value, pod, pods] =
        ["wat", "0.0.1", "example.io", "v1", "Thing", "things", "/spec/type", value, "Pod", "pods"]
            .map(|text| guest.text(text));
    let versions = guest.words(&[v1.0, v1.1]);
    let serving = guest.words(&[
        group.0, group.1, versions, 1, kind.0, kind.1, plural.0, plural.1, 1, path.0, path.1, value.0, value.1,
    ]);
    let child = guest.words(&[0, 0, v1.0, v1.1, pod.0, pod.1, pods.0, pods.1, 0, 0]);
    guest.manifest = guest
        .words(&[name.0, name.1, version.0, version.1, serving, 1, child, 1, 0, 0, /* no schema */ 0, 0, 0, 0]);
    let object = guest.text(
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","labels":{"app":"db"}},
            "spec":{"containers":[{"name":"c","image":"i"}]}}"#,
    );
    guest.returns_children(&[object]);
    guest
}
