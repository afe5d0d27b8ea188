//! A plugin in WAT: a healthy one, any part of which a case can replace. What it
//! returns is laid out beforehand, in the canonical ABI, in one data segment.

use std::path::Path;

/// Where the data segment begins, where the guest's allocator does, where zeros
/// begin that a case may point at, and where memory ends.
const DATA: u32 = 1 << 10;
pub(crate) const HEAP: u32 = 1 << 17;
pub(crate) const ZEROS: u32 = 1 << 18;
pub(crate) const MEMORY: u32 = PAGES * (1 << 16);
const PAGES: u32 = 64;

/// Text or a list in the guest's memory: address and length.
pub(crate) type Span = (u32, u32);

#[derive(Clone)]
pub(crate) struct Guest {
    data: Vec<u8>,
    /// Address of what `describe` and `render` return.
    pub(crate) manifest: u32,
    pub(crate) result: u32,
    /// Instructions before the return of each.
    pub(crate) describe: String,
    pub(crate) render: String,
    pub(crate) realloc: String,
    pub(crate) post_render: String,
    /// Whole fields of the module, for instance a start function.
    pub(crate) fields: String,
}

/// What `render` returns, as far as cases differ in it.
pub(crate) struct Result {
    pub(crate) children: Children,
    pub(crate) secrets: Span,
    pub(crate) status: Option<Span>,
    pub(crate) conditions: Span,
    pub(crate) not_ready: Option<(Span, Span)>,
}

pub(crate) enum Children {
    Keep,
    Exactly(Span),
    None,
    /// A case that the variant does not have.
    Unknown,
}

impl Default for Guest {
    /// Serves: one Pod.
    fn default() -> Self {
        Self::serving("wat")
    }
}

impl Guest {
    /// The same for Databases of this type.
    pub(crate) fn serving(database_type: &str) -> Self {
        let mut guest = Self {
            data: Vec::new(),
            manifest: 0,
            result: 0,
            describe: String::new(),
            render: String::new(),
            realloc: String::new(),
            post_render: String::new(),
            fields: String::new(),
        };
        let (name, version) = (guest.text("wat"), guest.text("0.0.1"));
        let one = guest.text("v1");
        let versions = (guest.words(&[one.0, one.1]), 1);
        let [group, kind, plural, path, value] =
            ["zalando.org", "Database", "databases", "/spec/type", database_type].map(|text| guest.text(text));
        let some = |span: Span| [1, span.0, span.1];
        let plain = [group, versions, kind, plural].map(|span| [span.0, span.1]).concat();
        let served = [&plain[..], &some(path), &[value.0, value.1]].concat();
        let serves = guest.words(&served);
        guest.manifest = guest
            .words(&[name.0, name.1, version.0, version.1, serves, 1, 0, 0, 0, 0, /* no schema */ 0, 0, 0, 0]);
        let pod = guest.text(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one"}}"#);
        guest.returns_children(&[pod]);
        guest
    }
}

impl Default for Result {
    fn default() -> Self {
        Self { children: Children::Keep, secrets: (0, 0), status: None, conditions: (0, 0), not_ready: None }
    }
}

impl Guest {
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) -> Span {
        let at = self.end();
        self.data.extend_from_slice(text.as_ref());
        (at, self.end() - at)
    }

    pub(crate) fn words(&mut self, words: &[u32]) -> u32 {
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        let at = self.end();
        self.data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at
    }

    fn end(&self) -> u32 {
        DATA + u32::try_from(self.data.len()).unwrap()
    }

    /// A list of children with these objects.
    pub(crate) fn children(&mut self, objects: &[Span]) -> Span {
        let words: Vec<u32> = objects.iter().flat_map(|object| [object.0, object.1, 0, 0, 0, 0, 0, 0, 0, 0]).collect();
        (self.words(&words), u32::try_from(objects.len()).unwrap())
    }

    /// A list of conditions of these types and reasons.
    pub(crate) fn conditions(&mut self, conditions: &[(Span, Span)]) -> Span {
        let words: Vec<u32> =
            conditions.iter().flat_map(|(kind, reason)| [kind.0, kind.1, 0, reason.0, reason.1, 0, 0]).collect();
        (self.words(&words), u32::try_from(conditions.len()).unwrap())
    }

    /// Exports the hook `finalize`, to be encoded in the world that has it; the instructions leave an address.
    pub(crate) fn finalizes(&mut self, body: &str) {
        self.fields += &format!(
            r#"(func (export "keelson:operator/finalizer@0.1.0#finalize")
                (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i64) (result i32) {body})"#
        );
    }

    pub(crate) fn returns_children(&mut self, objects: &[Span]) {
        let children = self.children(objects);
        self.returns(&Result { children: Children::Exactly(children), ..Result::default() });
    }

    pub(crate) fn returns(&mut self, result: &Result) {
        let (case, list) = match result.children {
            Children::Keep => (0, (0, 0)),
            Children::Exactly(list) => (1, list),
            Children::None => (2, (0, 0)),
            Children::Unknown => (77, (0, 0)),
        };
        let status = result.status.unwrap_or_default();
        let (reason, message) = result.not_ready.unwrap_or_default();
        self.result = self.words(&[
            0,
            case,
            list.0,
            list.1,
            result.secrets.0,
            result.secrets.1,
            u32::from(result.status.is_some()),
            status.0,
            status.1,
            result.conditions.0,
            result.conditions.1,
            u32::from(result.not_ready.is_some()),
            reason.0,
            reason.1,
            message.0,
            message.1,
            0,
            0,
        ]);
    }

    pub(crate) fn returns_failure(&mut self, reason: &str, message: &str) {
        let (reason, message) = (self.text(reason), self.text(message));
        self.result = self.words(&[1, 0, reason.0, reason.1, message.0, message.1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    /// Instructions that log this text as an error.
    pub(crate) fn log(&mut self, message: impl AsRef<[u8]>) -> String {
        let (at, bytes) = self.text(message);
        format!("(call $log (i32.const 4) (i32.const {at}) (i32.const {bytes}) (i32.const 0) (i32.const 0))")
    }

    pub(crate) fn module(&self) -> String {
        let Self { data, manifest, result, describe, render, realloc, post_render, fields } = self;
        let data: String = data.iter().map(|byte| format!("\\{byte:02x}")).collect();
        format!(
            r#"(module
  (import "keelson:operator/log@0.1.0" "log" (func $log (param i32 i32 i32 i32 i32)))
  (memory (export "memory") {PAGES})
  (global $heap (mut i32) (i32.const {HEAP}))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $bytes i32) (result i32)
    (local $at i32)
    {realloc}
    (local.set $at (global.get $heap))
    (global.set $heap (i32.and (i32.add (i32.add (global.get $heap) (local.get $bytes)) (i32.const 7)) (i32.const -8)))
    (local.get $at))
  (func (export "keelson:operator/operator@0.1.0#describe") (result i32)
    {describe}
    (i32.const {manifest}))
  (func $render (export "keelson:operator/operator@0.1.0#render")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i64) (result i32)
    (local $i i32)
    {render}
    (i32.const {result}))
  (func (export "cabi_post_keelson:operator/operator@0.1.0#render") (param i32)
    {post_render})
  {fields}
  (data (i32.const {DATA}) "{data}"))"#
        )
    }

    pub(crate) fn component(&self) -> Vec<u8> {
        encode(&self.module(), "plugin")
    }
}

/// A core module of one of our worlds as a component, as every toolchain does it.
pub(crate) fn encode(module: &str, world: &str) -> Vec<u8> {
    encode_with(module, "package keelson:none;", &format!("keelson:operator/{world}@0.1.0"))
}

/// The same of a world in this WIT.
pub(crate) fn encode_with(module: &str, wit: &str, world: &str) -> Vec<u8> {
    let mut module = wat::parse_str(module).unwrap_or_else(|error| panic!("{error}"));
    let mut resolve = wit_parser::Resolve::default();
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/operator-0.1.0");
    resolve.push_dir(contract).expect("the contract");
    let package = resolve.push_str("more.wit", wit).unwrap_or_else(|error| panic!("{error:?}"));
    let world = resolve.select_world(&[package], Some(world)).expect("its world");
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8)
        .expect("metadata");
    let mut encoder = wit_component::ComponentEncoder::default().module(&module).expect("a module of the world");
    encoder.encode().unwrap_or_else(|error| panic!("{error:?}"))
}
