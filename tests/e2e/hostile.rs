//! A plugin in WAT that loops where no toolchain lets one loop. What it returns is laid out beforehand, in the
//! canonical ABI; it serves Databases of one type and makes nothing.

use keelson_tests::prelude::*;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loop {
    Start,
    Describe,
    Realloc,
    PostReturn,
}

const DATA: u32 = 1024;

/// The module's data: texts, and words at eight-byte borders.
#[derive(Default)]
struct Layout(Vec<u8>);

impl Layout {
    fn at(&self) -> u32 {
        DATA + self.0.len() as u32
    }

    fn text(&mut self, text: &str) -> [u32; 2] {
        let at = self.at();
        self.0.extend(text.bytes());
        [at, text.len() as u32]
    }

    fn words(&mut self, words: &[u32]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = self.at();
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at
    }
}

/// `NAME.wasm` and `NAME.yaml`, granted the Databases of this type.
pub(crate) fn write(folder: &Path, name: &str, database_type: &str, place: Loop) -> Outcome {
    std::fs::write(folder.join(format!("{name}.wasm")), component(name, database_type, place)?)?;
    let discriminator = json!({"path": "/spec/type", "value": database_type});
    let spec = json!({"source": {"file": {"path": format!("{name}.wasm")}}, "trust": {"unsigned": true},
        "limits": {"wallMilliseconds": 60_000},
        "grant": {"namespaces": ["*"], "serves": [{"group": "zalando.org", "kind": "Database", "discriminator": discriminator}]}});
    let document =
        json!({"apiVersion": "keelson.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name}, "spec": spec});
    std::fs::write(folder.join(format!("{name}.yaml")), document.to_string())?;
    Ok(())
}

fn component(name: &str, database_type: &str, place: Loop) -> anyhow::Result<Vec<u8>> {
    let mut data = Layout::default();
    let version = data.text("v1");
    let versions = [data.words(&version), 1];
    let texts = ["zalando.org", "Database", "databases", "/spec/type", database_type].map(|text| data.text(text));
    let [group, kind, plural, path, value] = texts;
    let serving = [&group[..], &versions, &kind, &plural, &[1], &path, &value].concat();
    let serves = [data.words(&serving), 1];
    let [name, semver] = [name, "0.0.1"].map(|text| data.text(text));
    let none = [0, 0];
    // name, version, serves, children, related, no schema, no time
    let manifest = data.words(&[&name[..], &semver, &serves, &none, &none, &[0, 0, 0, 0]].concat());
    // ok, children: none; no secrets, status, conditions; ready: auto; no look-again-after
    let rendering = data.words(&[[0, 2].as_slice(), &[0; 16]].concat());
    let hot = |here: Loop| if here == place { "(loop $l (br $l))" } else { "" };
    let bytes: String = data.0.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let module = format!(
        r#"(module
  (memory (export "memory") 8)
  (global $heap (mut i32) (i32.const 131072))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $bytes i32) (result i32)
    (local $at i32)
    {}
    (local.set $at (global.get $heap))
    (global.set $heap (i32.and (i32.add (i32.add (global.get $heap) (local.get $bytes)) (i32.const 7)) (i32.const -8)))
    (local.get $at))
  (func (export "keelson:operator/operator@0.1.0#describe") (result i32) {} (i32.const {manifest}))
  (func (export "keelson:operator/operator@0.1.0#render")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i64) (result i32) (i32.const {rendering}))
  (func (export "cabi_post_keelson:operator/operator@0.1.0#render") (param i32) {})
  (func $start {}) (start $start)
  (data (i32.const {DATA}) "{bytes}"))"#,
        hot(Loop::Realloc),
        hot(Loop::Describe),
        hot(Loop::PostReturn),
        hot(Loop::Start),
    );
    encode(&module)
}

/// A core module of the contract's world as a component, as every toolchain does it.
fn encode(module: &str) -> anyhow::Result<Vec<u8>> {
    let mut module = wat::parse_str(module)?;
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(repository().join("wit/operator-0.1.0"))?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8)?;
    wit_component::ComponentEncoder::default().module(&module)?.encode()
}
