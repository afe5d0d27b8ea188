//! The table of hostile components: what each does, and the reason it is stopped for.
//! Read by the end-to-end tests too, where a whole host serves all of them at once.

use super::guest::{Children, Guest, MEMORY, Result, ZEROS, encode};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) limits: Limits,
    pub(crate) stopped: Stopped,
}

/// Of a call; what is not here has its default.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) memory_mib: u32,
    pub(crate) fuel: u64,
    pub(crate) wall_milliseconds: u32,
}

impl Case {
    /// The name as a Database and a plugin may have it, and the type of Database that it serves.
    pub(crate) fn slug(&self) -> String {
        slug(self.name)
    }
}

fn slug(name: &str) -> String {
    let words: Vec<String> = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    format!("x-{}", words.join("-"))
}

/// Where, with which reason, and with which words in the message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stopped {
    Load(&'static str, &'static str),
    Describe(&'static str, &'static str),
    Render(&'static str, &'static str),
}

use Stopped::{Describe, Load, Render};

const LOOP: &str = "(loop $l (br $l))";
/// Of the allocator.
const LIAR: &str = "realloc that gives what is not there";
const OPERATOR: &str = "keelson:operator/operator";

/// The defaults, but on a busy machine too it is not the clock that strikes first.
pub(crate) fn limits() -> Limits {
    Limits { memory_mib: 64, fuel: 50_000_000, wall_milliseconds: 60_000 }
}

/// A guest that differs from the healthy one in this.
fn guest(name: &'static str, stopped: Stopped, change: impl FnOnce(&mut Guest)) -> Case {
    let mut guest = Guest::serving(&slug(name));
    change(&mut guest);
    Case { name, bytes: guest.component(), limits: limits(), stopped }
}

fn bytes(name: &'static str, stopped: Stopped, bytes: impl Into<Vec<u8>>) -> Case {
    Case { name, bytes: bytes.into(), limits: limits(), stopped }
}

/// A component that the toolchain would not make.
fn text(name: &'static str, stopped: Stopped, wat: &str) -> Case {
    bytes(name, stopped, wat::parse_str(wat).unwrap_or_else(|error| panic!("{name}: {error}")))
}

pub(crate) fn all() -> Vec<Case> {
    [files(), imports_and_exports(), time(), memory(), traps(), output()].into_iter().flatten().collect()
}

fn files() -> Vec<Case> {
    let whole = Guest::default().component();
    vec![
        bytes("empty", Load("ArtifactInvalid", "empty"), ""),
        bytes("garbage", Load("ArtifactInvalid", "does not begin as WebAssembly"), [0xfe; 100]),
        bytes("text", Load("ArtifactInvalid", "text"), "(component)"),
        bytes("core module", Load("ArtifactInvalid", "core module"), wat::parse_str("(module)").unwrap()),
        bytes("machine code", Load("ArtifactInvalid", "machine code"), b"\x7fELF\x02\x01\x01"),
        bytes("cut in half", Load("ArtifactInvalid", "at offset"), &whole[..whole.len() / 2]),
        bytes("another layer", Load("ArtifactInvalid", "another version"), b"\0asm\x0e\0\x01\0"),
        text(
            "200 core instances",
            Load("CompileFailed", "128"),
            &format!("(component (core module $m) {})", "(core instance (instantiate $m))".repeat(200)),
        ),
        guest("five memories", Load("CompileFailed", "limit of 4"), |it| it.fields = "(memory 1)".repeat(4)),
        guest("a table of 2^20", Load("CompileFailed", "exceeds the limit"), |it| {
            it.fields = "(table 1048576 funcref)".into();
        }),
        text("shared memory", Load("ArtifactInvalid", "threads"), "(component (core module (memory 1 1 shared)))"),
    ]
}

fn imports_and_exports() -> Vec<Case> {
    let import = |import: &str| format!("(component (import {import}))");
    vec![
        text(
            "http",
            Load(
                "ImportDenied",
                "wasi:http/outgoing-handler@0.2.3, which does not exist here: a plugin has WASI 0.2 without",
            ),
            &import(r#""wasi:http/outgoing-handler@0.2.3" (instance (export "handle" (func)))"#),
        ),
        text(
            "WASI of a later time",
            Load("ImportDenied", "wasm32-unknown-unknown"),
            &import(r#""wasi:cli/stdout@0.3.0" (instance (export "write-via-stream" (func)))"#),
        ),
        text(
            "more of sockets than there is",
            Load("ImportDenied", "wasi:sockets/tcp-create-socket@0.2.3#listen"),
            &import(r#""wasi:sockets/tcp-create-socket@0.2.3" (instance (export "listen" (func)))"#),
        ),
        text(
            "a socket that is no method's",
            Load("ImportDenied", "wasi:sockets/tcp@0.2.3#connect"),
            &import(r#""wasi:sockets/tcp@0.2.3" (instance (export "connect" (func)))"#),
        ),
        text(
            "WASI of other types",
            Load("ArtifactInvalid", "does not fit the contract 0.1.0"),
            &format!(
                r#"(component
                    (import "wasi:cli/exit@0.2.3" (instance (export "exit" (func (param "status" u32)))))
                    (instance $i) (export "{OPERATOR}@0.1.0" (instance $i)))"#
            ),
        ),
        text(
            "a component of async functions",
            Load("ArtifactInvalid", "build JavaScript with --sync"),
            "(component (core func (canon task.cancel)))",
        ),
        text("an import of nobody's", Load("ImportDenied", "evil:net/socket"), &import(r#""evil:net/socket" (func)"#)),
        text(
            "log of another version",
            Load("ImportDenied", "this host provides keelson:operator/types@0.1.0"),
            &import(r#""keelson:operator/log@0.2.0" (instance (export "log" (func)))"#),
        ),
        text(
            "more of log than there is",
            Load("ImportDenied", "keelson:operator/log@0.1.0#read"),
            &import(r#""keelson:operator/log@0.1.0" (instance (export "read" (func)))"#),
        ),
        text(
            "log that is no interface",
            Load("ImportDenied", "keelson:operator/log@0.1.0"),
            &import(r#""keelson:operator/log@0.1.0" (func)"#),
        ),
        text(
            "log of other types",
            Load("ArtifactInvalid", "does not fit the contract 0.1.0"),
            &format!(
                r#"(component
                    (import "keelson:operator/log@0.1.0" (instance (export "log" (func (param "message" string)))))
                    (instance $i) (export "{OPERATOR}@0.1.0" (instance $i)))"#
            ),
        ),
        text(
            "no export",
            Load("ArtifactInvalid", "a plugin must export keelson:operator/operator@0.1.0"),
            "(component)",
        ),
        text(
            "operator of another version",
            Load("ArtifactInvalid", "this host serves keelson:operator/operator@0.1.0"),
            &format!(r#"(component (instance $i) (export "{OPERATOR}@0.2.0" (instance $i)))"#),
        ),
        text(
            "operator without functions",
            Load("ArtifactInvalid", "exports no `describe`"),
            &format!(r#"(component (instance $i) (export "{OPERATOR}@0.1.0" (instance $i)))"#),
        ),
        text(
            "describe of another type",
            Load("ArtifactInvalid", "expected `record` found `u32`"),
            &format!(
                r#"(component
                    (core module $m (func (export "f") (result i32) (i32.const 1)))
                    (core instance $m (instantiate $m))
                    (func $f (result u32) (canon lift (core func $m "f")))
                    (instance $i (export "describe" (func $f)) (export "render" (func $f)))
                    (export "{OPERATOR}@0.1.0" (instance $i)))"#
            ),
        ),
    ]
}

fn time() -> Vec<Case> {
    let start = |body: &str| format!("(func $start {body}) (start $start)");
    let mut cases = vec![
        guest("loop in render", Render("OutOfFuel", "50000000"), |it| it.render = LOOP.into()),
        guest("loop in describe", Describe("OutOfFuel", ""), |it| it.describe = LOOP.into()),
        guest("loop in a start function", Describe("OutOfFuel", ""), |it| it.fields = start(LOOP)),
        guest("loop in realloc", Render("OutOfFuel", ""), |it| it.realloc = LOOP.into()),
        guest("loop in post-return", Render("OutOfFuel", ""), |it| it.post_render = LOOP.into()),
        guest("a log of a flood", Render("OutOfFuel", ""), |it| {
            let log = it.log([b'x'; 1000]);
            it.render = format!("(loop $l {log} (br $l))");
        }),
        guest("a log of empty lines", Render("OutOfFuel", ""), |it| {
            let log = it.log("");
            it.render = format!("(loop $l {log} (br $l))");
        }),
        // One unit of fuel each, milliseconds of work.
        guest("memory filled again and again", Render("Timeout", "200 ms"), |it| {
            it.render =
                format!("(loop $l (memory.fill (i32.const {ZEROS}) (i32.const 1) (i32.const 2000000)) (br $l))");
        }),
        guest("a loop that fuel does not stop", Render("Timeout", "200 ms"), |it| it.render = LOOP.into()),
        guest("a start function that fuel does not stop", Describe("Timeout", "200 ms"), |it| it.fields = start(LOOP)),
    ];
    for case in &mut cases {
        if let Render("Timeout", _) | Describe("Timeout", _) = case.stopped {
            case.limits = Limits { fuel: i64::MAX as u64, wall_milliseconds: 200, ..limits() };
        }
    }
    cases
}

fn memory() -> Vec<Case> {
    let grow = "(loop $l (drop (memory.grow (i32.const 1))) (br $l))";
    vec![
        guest("memory grown for ever", Render("OutOfMemory", "64 MiB"), |it| it.render = grow.into()),
        guest("memory grown at once", Render("OutOfMemory", ""), |it| {
            it.render = "(drop (memory.grow (i32.const 60000)))".into();
        }),
        guest("memory grown in a start function", Describe("OutOfMemory", ""), |it| {
            it.fields = format!("(func $start {grow}) (start $start)");
        }),
        guest("memory too large from the start", Describe("OutOfMemory", ""), |it| it.fields = "(memory 1025)".into()),
        guest("memories below the limit each", Describe("OutOfMemory", ""), |it| it.fields = "(memory 480)".repeat(3)),
        guest("memories grown below the limit each", Render("OutOfMemory", ""), |it| {
            it.fields = "(memory $a 1) (memory $b 1)".into();
            it.render = "(drop (memory.grow $a (i32.const 600))) (drop (memory.grow $b (i32.const 600)))".into();
        }),
        Case {
            limits: Limits { memory_mib: 5, ..limits() },
            ..guest("big tables", Describe("OutOfMemory", "5 MiB"), |it| it.fields = "(table 200000 funcref)".repeat(2))
        },
        Case {
            limits: Limits { memory_mib: 5, ..limits() },
            ..guest("tables grown", Render("OutOfMemory", "5 MiB"), |it| {
                it.fields = "(table $t 1 funcref)".into();
                it.render = "(drop (table.grow $t (ref.null func) (i32.const 200000)))".into();
            })
        },
    ]
}

fn traps() -> Vec<Case> {
    vec![
        guest("unreachable", Render("Trap", "unreachable"), |it| it.render = "unreachable".into()),
        guest("a panic that was logged", Render("Trap", "after it logged: panicked at lib.rs"), |it| {
            it.render = it.log("panicked at lib.rs") + "unreachable";
        }),
        guest("a panic after a flood of log", Render("Trap", "after it logged: panicked at lib.rs"), |it| {
            it.render = it.log([b'x'; 20_000]) + &it.log("panicked at lib.rs") + "unreachable";
        }),
        guest("unreachable in realloc", Render("Trap", "unreachable"), |it| it.realloc = "unreachable".into()),
        guest("unreachable in post-return", Render("Trap", "unreachable"), |it| it.post_render = "unreachable".into()),
        guest("unreachable in a start function", Describe("Trap", "unreachable"), |it| {
            it.fields = "(func $start unreachable) (start $start)".into();
        }),
        guest("division by zero", Render("Trap", "divide by zero"), |it| {
            it.render = "(drop (i32.div_u (i32.const 1) (i32.const 0)))".into();
        }),
        guest("a read beyond memory", Render("Trap", "out of bounds"), |it| {
            it.render = "(drop (i32.load (i32.const -1)))".into();
        }),
        guest("data beyond memory", Describe("Trap", "out of bounds"), |it| {
            it.fields = r#"(data (i32.const -1) "xx")"#.into();
        }),
        guest("a call of nothing", Render("Trap", "uninitialized element"), |it| {
            it.fields = "(table $t 1 funcref)".into();
            it.render = "(call_indirect $t (i32.const 0))".into();
        }),
        guest("endless recursion", Render("Trap", "call stack exhausted"), |it| {
            it.fields = "(func $f (call $f) (call $f))".into();
            it.render = "(call $f)".into();
        }),
        guest("a call to the host out of realloc", Render("Trap", "cannot leave component"), |it| {
            it.realloc = it.log("now");
        }),
    ]
}

fn output() -> Vec<Case> {
    let status = |text| Result { status: Some(text), ..Result::default() };
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    vec![
        guest("exactly of none", Render("OutputInvalid", "return `none`"), |it| it.returns_children(&[])),
        guest("257 children", Render("OutputInvalid", "257 children and Secrets, where 256"), |it| {
            let object = it.text("{}");
            it.returns_children(&[object; 257]);
        }),
        guest("200 children and 57 Secrets", Render("OutputInvalid", "257 children and Secrets"), |it| {
            let object = it.text("{}");
            let children = Children::Exactly(it.children(&[object; 200]));
            it.returns(&Result { children, secrets: (ZEROS, 57), ..Result::default() });
        }),
        guest("100000 children", Render("OutputTooLarge", "1024 KiB"), |it| {
            let children = Children::Exactly((ZEROS + 1024, 60_000));
            it.returns(&Result { children, ..Result::default() });
        }),
        guest("a list of 2^31", Render("OutputInvalid", "out of bounds"), |it| {
            it.returns(&Result { children: Children::Exactly((ZEROS, 1 << 31)), ..Result::default() });
        }),
        guest("a list beyond memory", Render("OutputInvalid", "out of bounds"), |it| {
            it.returns(&Result { children: Children::Exactly((MEMORY - 8, 1)), ..Result::default() });
        }),
        guest("a list not aligned", Render("OutputInvalid", "aligned"), |it| {
            it.returns(&Result { children: Children::Exactly((ZEROS + 1, 1)), ..Result::default() });
        }),
        guest("a result not aligned", Render("OutputInvalid", "aligned"), |it| it.result += 1),
        guest("a result beyond memory", Render("OutputInvalid", "out of bounds"), |it| it.result = MEMORY),
        guest("a manifest beyond memory", Describe("OutputInvalid", "out of bounds"), |it| it.manifest = MEMORY),
        guest("a case that is none", Render("OutputInvalid", "discriminant"), |it| {
            it.returns(&Result { children: Children::Unknown, ..Result::default() });
        }),
        guest("text beyond memory", Render("OutputInvalid", "out of bounds"), |it| {
            it.returns(&status((MEMORY - 1, 2)))
        }),
        guest("text of 4 GiB", Render("OutputInvalid", "out of bounds"), |it| it.returns(&status((16, u32::MAX)))),
        guest("text that is no UTF-8", Render("OutputInvalid", "utf-8"), |it| {
            let text = it.text(b"{\"a\":\"\xff\"}");
            it.returns(&status(text));
        }),
        guest("2 MiB of status", Render("OutputTooLarge", "1024 KiB"), |it| it.returns(&status((ZEROS, 2 << 20)))),
        guest("the same text 200 times", Render("OutputTooLarge", ""), |it| {
            it.returns_children(&[(ZEROS, 1 << 20); 200]);
        }),
        guest("a little more text than is allowed", Render("OutputTooLarge", ""), |it| {
            let object = it.text(format!("{{\"a\":\"{}\"}}", "x".repeat(8192)));
            it.returns_children(&[object; 129]);
        }),
        guest("a manifest of 2 MiB", Describe("OutputTooLarge", ""), |it| {
            it.manifest = it.words(&[ZEROS, 2 << 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        }),
        guest("a log of 2 MiB at once", Render("OutputTooLarge", ""), |it| {
            it.render = format!(
                "(call $log (i32.const 0) (i32.const {ZEROS}) (i32.const {}) (i32.const 0) (i32.const 0))",
                2 << 20
            );
        }),
        guest("JSON 100000 deep", Render("OutputInvalid", "status is nested deeper than 64"), |it| {
            it.render = format!("(memory.fill (i32.const {ZEROS}) (i32.const 91) (i32.const 100000))");
            it.returns(&status((ZEROS, 100_000)));
        }),
        guest("objects 10000 deep", Render("OutputInvalid", "nested deeper than 64"), |it| {
            let text = it.text(&deep("{\"\":", "}")[..40_000]);
            it.returns(&status(text));
        }),
        guest("JSON of a hundred thousand values", Render("OutputInvalid", "JSON values"), |it| {
            let text = it.text(format!("{{\"a\":[{}0]}}", "0,".repeat(50_000)));
            it.returns_children(&[text; 2]);
        }),
        guest("no JSON", Render("OutputInvalid", "status is not JSON"), |it| it.returns(&status((ZEROS, 10)))),
        guest("a child that is a list", Render("OutputInvalid", "children[1] is a list, not a JSON object"), |it| {
            let (object, list) = (it.text("{}"), it.text("[]"));
            it.returns_children(&[object, list]);
        }),
        guest("a reason with a line in it", Render("OutputInvalid", r#""Bad\nReason""#), |it| {
            it.returns_failure("Bad\nReason", "no");
        }),
        guest("no reason", Render("OutputInvalid", "CamelCase"), |it| {
            it.returns(&Result { not_ready: Some(((0, 0), (0, 0))), ..Result::default() });
        }),
        guest("33 conditions", Render("OutputInvalid", "33 conditions, where 32"), |it| {
            let text = it.text("Fine");
            let conditions = it.conditions(&[(text, text); 33]);
            it.returns(&Result { conditions, ..Result::default() });
        }),
        Case {
            bytes: encode(
                &Guest::serving(&slug(LIAR)).module().replace("(local.get $at))\n", "(i32.const -16))\n"),
                "plugin",
            ),
            ..guest(LIAR, Render("OutputInvalid", "realloc"), |_| {})
        },
    ]
}
