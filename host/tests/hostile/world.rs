//! Guests of the virtual world: those that it stops, and one that sees all of it.

use keelson::limits;

use crate::cases::Stopped::{self, Describe, Load, Render};
use crate::cases::{Case, Limits, limits};
use crate::guest::{self, Guest, ZEROS};

/// A function of WASI that a guest imports: interface, name, and its type in the core module.
const ALL: &[(&str, &str, &str)] = &[
    ("io/error", "[method]error.to-debug-string", "(param i32 i32)"),
    ("io/poll", "[method]pollable.ready", "(param i32) (result i32)"),
    ("io/poll", "[method]pollable.block", "(param i32)"),
    ("io/poll", "poll", "(param i32 i32 i32)"),
    ("io/poll", "[resource-drop]pollable", "(param i32)"),
    ("io/streams", "[method]input-stream.read", "(param i32 i64 i32)"),
    ("io/streams", "[method]input-stream.blocking-read", "(param i32 i64 i32)"),
    ("io/streams", "[method]input-stream.skip", "(param i32 i64 i32)"),
    ("io/streams", "[method]input-stream.blocking-skip", "(param i32 i64 i32)"),
    ("io/streams", "[method]input-stream.subscribe", "(param i32) (result i32)"),
    ("io/streams", "[method]output-stream.check-write", "(param i32 i32)"),
    ("io/streams", "[method]output-stream.write", "(param i32 i32 i32 i32)"),
    ("io/streams", "[method]output-stream.blocking-write-and-flush", "(param i32 i32 i32 i32)"),
    ("io/streams", "[method]output-stream.flush", "(param i32 i32)"),
    ("io/streams", "[method]output-stream.blocking-flush", "(param i32 i32)"),
    ("io/streams", "[method]output-stream.subscribe", "(param i32) (result i32)"),
    ("io/streams", "[method]output-stream.write-zeroes", "(param i32 i64 i32)"),
    ("io/streams", "[method]output-stream.blocking-write-zeroes-and-flush", "(param i32 i64 i32)"),
    ("io/streams", "[method]output-stream.splice", "(param i32 i32 i64 i32)"),
    ("io/streams", "[method]output-stream.blocking-splice", "(param i32 i32 i64 i32)"),
    ("clocks/monotonic-clock", "now", "(result i64)"),
    ("clocks/monotonic-clock", "resolution", "(result i64)"),
    ("clocks/monotonic-clock", "subscribe-instant", "(param i64) (result i32)"),
    ("clocks/monotonic-clock", "subscribe-duration", "(param i64) (result i32)"),
    ("clocks/wall-clock", "now", "(param i32)"),
    ("clocks/wall-clock", "resolution", "(param i32)"),
    ("random/random", "get-random-bytes", "(param i64 i32)"),
    ("random/random", "get-random-u64", "(result i64)"),
    ("random/insecure", "get-insecure-random-bytes", "(param i64 i32)"),
    ("random/insecure", "get-insecure-random-u64", "(result i64)"),
    ("random/insecure-seed", "insecure-seed", "(param i32)"),
    ("cli/environment", "get-environment", "(param i32)"),
    ("cli/environment", "get-arguments", "(param i32)"),
    ("cli/environment", "initial-cwd", "(param i32)"),
    ("cli/exit", "exit", "(param i32)"),
    ("cli/exit", "exit-with-code", "(param i32)"),
    ("cli/stdin", "get-stdin", "(result i32)"),
    ("cli/stdout", "get-stdout", "(result i32)"),
    ("cli/stderr", "get-stderr", "(result i32)"),
    ("cli/terminal-stdin", "get-terminal-stdin", "(param i32)"),
    ("cli/terminal-stdout", "get-terminal-stdout", "(param i32)"),
    ("cli/terminal-stderr", "get-terminal-stderr", "(param i32)"),
    ("filesystem/types", "[method]descriptor.sync", "(param i32 i32)"),
    ("filesystem/types", "filesystem-error-code", "(param i32 i32)"),
    ("filesystem/preopens", "get-directories", "(param i32)"),
    ("sockets/instance-network", "instance-network", "(result i32)"),
    ("sockets/ip-name-lookup", "resolve-addresses", "(param i32 i32 i32 i32)"),
    ("sockets/ip-name-lookup", "[method]resolve-address-stream.subscribe", "(param i32) (result i32)"),
    ("sockets/tcp", "[method]tcp-socket.subscribe", "(param i32) (result i32)"),
    ("sockets/tcp-create-socket", "create-tcp-socket", "(param i32 i32)"),
    ("sockets/udp", "[method]udp-socket.subscribe", "(param i32) (result i32)"),
    ("sockets/udp-create-socket", "create-udp-socket", "(param i32 i32)"),
];

/// A guest that imports these as `$NAME`, the part behind the dot for methods, and whatever else of `ALL` it calls.
pub(crate) struct World {
    guest: Guest,
    imports: String,
}

impl World {
    pub(crate) fn new(render: &str) -> Self {
        let mut world = Self { guest: Guest::default(), imports: String::new() };
        world.guest.render = render.to_owned();
        world
    }

    pub(crate) fn component(mut self) -> Vec<u8> {
        let code = format!("{} {} {}", self.guest.describe, self.guest.render, self.guest.fields);
        for (interface, name, ty) in ALL {
            let call = format!("$\"{interface}#{name}\"");
            if code.contains(&call) || code.contains(";; ALL") {
                self.import(interface, name, &call, ty);
            }
        }
        self.encode()
    }

    fn import(&mut self, interface: &str, name: &str, call: &str, ty: &str) {
        self.imports += &format!("(import \"wasi:{interface}@0.2.6\" \"{name}\" (func {call} {ty}))\n");
    }

    fn encode(&self) -> Vec<u8> {
        let module = self.guest.module().replacen("(memory ", &format!("{} (memory ", self.imports), 1);
        guest::encode_with(&module, include_str!("wasi.wit"), "guest")
    }
}

fn world(name: &'static str, stopped: Stopped, render: &str) -> Case {
    Case { name, bytes: World::new(render).component(), limits: limits(), stopped }
}

/// Makes resources of a type of its own, which no import shows, when it starts.
fn own_resources() -> Vec<u8> {
    let text = r#"(component
      (type $r (resource (rep i32)))
      (core func $new (canon resource.new $r))
      (core module $m
        (import "" "new" (func $new (param i32) (result i32)))
        (func (export "f") (result i32) (i32.const 1))
        (func $start (loop $l (drop (call $new (i32.const 1))) (br $l)))
        (start $start))
      (core instance $m (instantiate $m (with "" (instance (export "new" (func $new))))))
      (func $f (result u32) (canon lift (core func $m "f")))
      (instance $i (export "describe" (func $f)) (export "render" (func $f)))
      (export "keelson:operator/operator@0.1.0" (instance $i)))"#;
    wat::parse_str(text).unwrap()
}

fn forever(body: &str) -> String {
    format!("(loop $l {body} (br $l))")
}

pub(crate) fn cases() -> Vec<Case> {
    let many = u32::try_from(limits::HANDLES).unwrap() + 1;
    let bytes = format!("(call $\"random/random#get-random-bytes\" (i64.const {}) (i32.const {ZEROS}))", 1_u64 << 40);
    let write = |to: &str, length: u32| {
        format!(
            "(call $\"io/streams#[method]output-stream.write\" {to} (i32.const {ZEROS}) (i32.const {length}) (i32.const 8))"
        )
    };
    let print = |stream: &str, length: u32| write(&format!("(call $\"cli/{stream}#get-{stream}\")"), length);
    let flood = |stream: &str, length: u32| {
        let stream = format!("(local.set $i (call $\"cli/{stream}#get-{stream}\"))");
        stream + &forever(&write("(local.get $i)", length))
    };
    let sleep = "(call $\"clocks/monotonic-clock#subscribe-duration\" (i64.const -1))";
    let in_start = |body: &str| {
        let mut world = World::new("");
        world.guest.fields = format!("(func $start {body}) (start $start)");
        world.component()
    };
    let exit = "(call $\"cli/exit#exit\" (i32.const 1))";
    let mut dated = World::new("(drop (call $\"offset\" (i64.const 0) (i32.const 0)))");
    dated.import("clocks/timezone", "utc-offset", "$\"offset\"", "(param i64 i32) (result i32)");
    vec![
        Case {
            name: "WASI beyond what there is",
            bytes: dated.encode(),
            limits: limits(),
            stopped: Load(
                "ImportDenied",
                "wasi:clocks/timezone@0.2.6, which does not exist here: a plugin has WASI 0.2",
            ),
        },
        world("a flood of stdout", Render("OutOfFuel", ""), &flood("stdout", 1000)),
        world("a flood of empty lines", Render("OutOfFuel", ""), &{
            let fill = format!("(memory.fill (i32.const {ZEROS}) (i32.const 10) (i32.const 100000))");
            fill + &flood("stderr", 100_000)
        }),
        world("2 MiB of stdout at once", Render("OutputTooLarge", "1024 KiB"), &print("stdout", 2 << 20)),
        world(
            "sleep without end",
            Render("OutOfFuel", ""),
            &forever(&format!(
                "(global.set $heap {sleep}) (call $\"io/poll#[method]pollable.block\" (global.get $heap))
             (call $\"io/poll#[resource-drop]pollable\" (global.get $heap))"
            )),
        ),
        world(
            "asks without end whether a day is over",
            Render("OutOfFuel", ""),
            &format!(
                "(local.set $i {sleep})
             (loop $l (br_if $l (i32.eqz (call $\"io/poll#[method]pollable.ready\" (local.get $i)))) (br $l))"
            ),
        ),
        world(
            "a poll of nothing",
            Render("Trap", "wasi:io/poll: a poll of nothing"),
            &format!("(call $\"io/poll#poll\" (i32.const {ZEROS}) (i32.const 0) (i32.const 8))"),
        ),
        world(
            "a poll of what is nobody's",
            Render("OutputInvalid", "unknown handle index"),
            &format!(
                "(i32.store (i32.const {ZEROS}) (i32.const 77))
             (call $\"io/poll#poll\" (i32.const {ZEROS}) (i32.const 1) (i32.const 8))"
            ),
        ),
        world(
            "a file that was never opened",
            Render("OutputInvalid", "unknown handle index"),
            "
            (call $\"filesystem/types#[method]descriptor.sync\" (i32.const 3) (i32.const 8))",
        ),
        world("a million pollables", Render("OutOfHandles", "4096 handles"), &forever(&format!("(drop {sleep})"))),
        world(
            "one handle too many of stdin",
            Render("OutOfHandles", ""),
            &format!(
                "(local.set $i (i32.const {many}))
             (loop $l (drop (call $\"cli/stdin#get-stdin\"))
               (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $l (local.get $i)))"
            ),
        ),
        Case {
            name: "a million resources of its own",
            bytes: own_resources(),
            limits: limits(),
            stopped: Describe("OutOfHandles", ""),
        },
        world("a terabyte of random numbers", Render("OutOfFuel", ""), &bytes),
        Case {
            limits: Limits { fuel: u64::MAX, ..limits() },
            ..world("a terabyte of random numbers, paid for", Render("Trap", "where 1048576 are the most"), &bytes)
        },
        world(
            "random numbers without end",
            Render("OutOfFuel", ""),
            &forever("(drop (call $\"random/insecure#get-insecure-random-u64\"))"),
        ),
        world("an exit", Render("Exited", "ended itself with code 1"), exit),
        world("an exit as if all were well", Render("Exited", "code 0"), "(call $\"cli/exit#exit\" (i32.const 0))"),
        world("an exit with a code", Render("Exited", "code 42"), "(call $\"cli/exit#exit-with-code\" (i32.const 42))"),
        world(
            "an exit after a word on stderr",
            Render("Exited", "code 1, after it logged: xx"),
            &format!("(memory.fill (i32.const {ZEROS}) (i32.const 120) (i32.const 2)) {} {exit}", print("stderr", 2)),
        ),
        Case {
            name: "an exit in a start function",
            bytes: in_start(exit),
            limits: limits(),
            stopped: Describe("Exited", "code 1"),
        },
        Case {
            name: "sleep without end in a start function",
            bytes: in_start(&forever("(drop (call $\"clocks/monotonic-clock#now\"))")),
            limits: limits(),
            stopped: Describe("OutOfFuel", ""),
        },
    ]
}

/// Calls that look at all of the world, and trap where something is in it.
pub(crate) fn explorer() -> Vec<u8> {
    let (result, second) = (ZEROS, ZEROS + 4);
    let byte = |at: u32, wanted: u32| {
        format!("(if (i32.ne (i32.load8_u (i32.const {at})) (i32.const {wanted})) (then unreachable))")
    };
    let list = |interface: &str| {
        format!(
            "(call $\"{interface}\" (i32.const {result}))
             (if (i32.load (i32.const {second})) (then unreachable))"
        )
    };
    let option = |interface: &str| format!("(call $\"{interface}\" (i32.const {result})) {}", byte(result, 0));
    let socket = |kind: &str| {
        // Err, and of two cases the second.
        format!("(call $\"sockets/{kind}\" (i32.const 0) (i32.const {result})) {} {}", byte(result, 1), byte(second, 1))
    };
    let stdin = "(call $\"cli/stdin#get-stdin\")";
    let parts = [
        list("cli/environment#get-environment"),
        list("cli/environment#get-arguments"),
        list("filesystem/preopens#get-directories"),
        option("cli/environment#initial-cwd"),
        option("cli/terminal-stdin#get-terminal-stdin"),
        option("cli/terminal-stdout#get-terminal-stdout"),
        option("cli/terminal-stderr#get-terminal-stderr"),
        socket("tcp-create-socket#create-tcp-socket"),
        socket("udp-create-socket#create-udp-socket"),
        // A name: error access-denied.
        format!(
            "(call $\"sockets/ip-name-lookup#resolve-addresses\" (call $\"sockets/instance-network#instance-network\")
               (i32.const {ZEROS}) (i32.const 0) (i32.const {result})) {} {}",
            byte(result, 1),
            byte(second, 1)
        ),
        // Stdin: error closed.
        format!(
            "(call $\"io/streams#[method]input-stream.blocking-read\" {stdin} (i64.const 10) (i32.const {result})) {} {}",
            byte(result, 1),
            byte(second, 1)
        ),
        // Of two pollables the one that is ready at once is the only one that is.
        format!(
            "(i32.store (i32.const {}) (call $\"clocks/monotonic-clock#subscribe-duration\" (i64.const 1000)))
             (i32.store (i32.const {}) (call $\"io/streams#[method]input-stream.subscribe\" {stdin}))
             (call $\"io/poll#poll\" (i32.const {}) (i32.const 2) (i32.const {result}))
             (if (i32.ne (i32.load (i32.const {second})) (i32.const 1)) (then unreachable))
             (if (i32.ne (i32.load (i32.load (i32.const {result}))) (i32.const 1)) (then unreachable))",
            ZEROS + 64,
            ZEROS + 68,
            ZEROS + 64,
        ),
        // An hour is slept at once.
        "(call $\"io/poll#[method]pollable.block\"
           (call $\"clocks/monotonic-clock#subscribe-duration\" (i64.const 3600000000000)))
         (if (i64.lt_u (call $\"clocks/monotonic-clock#now\") (i64.const 3600000000000)) (then unreachable))"
            .to_owned(),
        format!(
            "(call $\"clocks/wall-clock#now\" (i32.const {result}))
             (if (i64.ne (i64.load (i32.const {result})) (i64.const 1767229200)) (then unreachable))"
        ),
        // Two numbers of a sequence are two.
        "(if (i64.eq (call $\"random/random#get-random-u64\") (call $\"random/random#get-random-u64\"))
           (then unreachable))"
            .to_owned(),
        format!(
            "(call $\"random/random#get-random-bytes\" (i64.const 11) (i32.const {result}))
             (if (i32.ne (i32.load (i32.const {second})) (i32.const 11)) (then unreachable))"
        ),
    ];
    let mut world = World::new(&parts.concat());
    // It imports all that there is.
    world.guest.fields = ";; ALL\n".to_owned();
    world.component()
}
