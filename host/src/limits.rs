//! Every limit and time-out: unit, default, reason.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// What one call of a plugin may use. `spec.limits` of the Plugin document;
/// what is absent there takes the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PluginLimits {
    /// MiB over all memories and tables of the instance. Default 64: Python wants 30.
    #[schemars(range(min = 1, max = 4096))]
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u32,
    /// Units of wasmtime fuel, about one per instruction. The limit that is the same on every machine. Default 50 million.
    #[schemars(range(min = 1))]
    pub fuel: u64,
    /// Milliseconds of wall time; the backstop behind fuel. Default 2000.
    #[schemars(range(min = 10, max = 60000))]
    pub wall_milliseconds: u32,
    /// KiB of text that one rendering may hold, and that one call may copy in. Default 1024: etcd refuses 1.5 MiB.
    #[schemars(range(min = 1, max = 16384))]
    #[serde(rename = "outputKiB")]
    pub output_kib: u32,
    /// Children and Secrets of one rendering. Default 256.
    #[schemars(range(min = 1, max = 4096))]
    pub children: u32,
    /// KiB of log text in one call; the rest is cut and said. Default 16.
    #[schemars(range(min = 0, max = 1024))]
    #[serde(rename = "logKiB")]
    pub log_kib: u32,
}

impl Default for PluginLimits {
    fn default() -> Self {
        Self {
            memory_mib: 64,
            fuel: 50_000_000,
            wall_milliseconds: 2_000,
            output_kib: 1_024,
            children: 256,
            log_kib: 16,
        }
    }
}

impl PluginLimits {
    pub fn memory_bytes(&self) -> usize {
        self.memory_mib as usize * MIB
    }
    pub fn wall(&self) -> Duration {
        Duration::from_millis(u64::from(self.wall_milliseconds))
    }
    pub fn output_bytes(&self) -> usize {
        self.output_kib as usize * KIB
    }
    pub fn log_bytes(&self) -> usize {
        self.log_kib as usize * KIB
    }
}

/// Fuel of a call on the thread that all waiting shares: half a millisecond. Where it is too little, the call is made anew
/// on a thread of its own; most plugins of native languages want a tenth, and save two switches of threads.
pub const QUICK_FUEL: u64 = 1_000_000;
/// MiB of such a call: filling memory costs little fuel and much time.
pub const QUICK_MEMORY_MIB: u32 = 8;
/// Milliseconds of such a call, for what costs no fuel: one tick of the clock.
pub const QUICK_MILLISECONDS: u32 = 10;
/// Calls of a component after one that was not quick until the next is tried so: what it can hold up is bounded.
pub const QUICK_REST: u32 = 100;
/// One tick of the epoch clock: how late the wall-time backstop may strike.
pub const EPOCH_TICK: Duration = Duration::from_millis(10);
/// Ticks without a call after which the epoch clock sleeps.
pub const EPOCH_IDLE_TICKS: u32 = 100;
/// Core instances of one component. componentize-py makes more than 32.
pub const INSTANCES: u32 = 128;
/// Memories of one component. QuickJS has three.
pub const MEMORIES: u32 = 4;
/// Tables of one component.
pub const TABLES: u32 = 8;
/// Elements of one table, eight bytes each. CPython has some ten thousand functions.
pub const TABLE_ELEMENTS: usize = 1 << 18;
/// Bytes of address space for one memory: all that 32 bits can name, so that compiled code needs no bounds checks.
pub const MEMORY_SLOT: usize = 4096 * MIB;
/// Memories that stay mapped after a call, for the next one of the same plugin.
pub const WARM_SLOTS: u32 = 4;
/// Bytes of each that stay resident: they are reset instead of faulted in anew.
pub const WARM_BYTES: usize = 512 * KIB;
/// What the host keeps for one record that a guest returns, beside the text in it.
pub const RECORD_BYTES: usize = 256;
/// Functions of a guest that are told when it is stopped, innermost first.
pub const FRAMES: Option<NonZeroUsize> = NonZeroUsize::new(16);
/// Bytes of the name of one of them.
pub const FRAME_BYTES: usize = 160;
/// Bytes of a mangled name that is taken apart to be read; a longer one is shown as it is, and cut.
pub const SYMBOL_BYTES: usize = 2048;
/// What one line or field of a guest's log counts beside its text.
pub const LOG_LINE_BYTES: usize = 48;
/// What a call of a guest into its virtual world costs in fuel, about what it costs the host in time: a tenth of a microsecond.
pub const WORLD_CALL_FUEL: u64 = 200;
/// Handles that a guest may hold at one time, of the virtual world's things and of its own. Each costs the host some forty
/// bytes; Python holds five.
pub const HANDLES: usize = 4_096;
/// Bytes of random numbers that a guest may ask for at once. A key needs 32.
pub const RANDOM_BYTES: u64 = MIB as u64;
/// Bytes of one line that a guest prints; what is longer goes on in the next.
pub const PRINTED_LINE_BYTES: usize = 4 * KIB;
/// The last lines of a guest's stderr that are kept to explain its end: a traceback of Python.
pub const PRINTED_LAST_LINES: usize = 24;
/// JSON values in one rendering: 1 MiB of `{"":0}` would be a hundred as a tree.
pub const JSON_VALUES: usize = 65_536;
/// Characters of a reason; the contract says so.
pub const REASON_CHARS: usize = 64;
/// Conditions of a plugin's own on one object.
pub const CONDITIONS: usize = 32;
/// Nesting of a JSON value that a guest returns; deeper is refused before it is walked.
pub const JSON_DEPTH: usize = 64;
/// Bytes of a component file; a larger one is refused before it is read. componentize-py makes 18 MB.
pub const COMPONENT_BYTES: u64 = 64 * MIB as u64;
/// Compiling one component, by the clock and by the processor. Python takes 11 s on two busy cores.
pub const COMPILE: Duration = Duration::from_secs(120);
/// Bytes of memory that a compiler may take; less where the container has less. Python takes 355 MiB.
pub const COMPILE_MEMORY: u64 = 1024 * MIB as u64;
/// Bytes that are left to the host itself while a compiler runs.
pub const COMPILE_RESERVE: u64 = 8 * MIB as u64;
/// How often a compiler's memory is looked at: at a gigabyte a second it is beyond its limit by so much of one.
pub const COMPILE_POLL: Duration = Duration::from_millis(5);
/// Bytes of one component's compiled form. Python's has 50 MiB.
pub const COMPILED_BYTES: u64 = 512 * MIB as u64;
/// Bytes of compiled code that are kept on disk; what was used longest ago goes. Less than the volume's `sizeLimit`.
pub const CACHE_BYTES: u64 = 224 * MIB as u64;
/// Golden fixtures of one component: each is run twice before it serves.
pub const FIXTURES: usize = 256;
/// Bytes of the section that they stand in.
pub const FIXTURES_BYTES: usize = 4 * MIB;
/// All of them together; a render of Python takes a few milliseconds.
pub const FIXTURES_TIME: Duration = Duration::from_secs(30);
/// Between two looks at an author's files: a person does not notice it, nor does the machine.
pub const DEV_POLL: Duration = Duration::from_millis(100);
/// Bytes of a Plugin document.
pub const DOCUMENT_BYTES: u64 = 256 * KIB as u64;
/// Bytes of a parent that a guest is asked to render; a larger one is `TooLarge`. A spec has no business near etcd's 1.5 MiB.
pub const PARENT_BYTES: usize = 256 * KIB;
/// Objects that `keelson plugin diff` looks at side by side.
pub const SHADOWED_AT_ONCE: usize = 8;
/// How long it waits for the caches.
pub const SHADOW_PATIENCE: Duration = Duration::from_secs(120);
/// Calls that came to nothing which are kept of each plugin.
pub const FAILURES: usize = 8;
/// Bytes of them.
pub const FAILURES_BYTES: usize = 512 * KIB;
/// How long who asks for a bundle waits for the object's turn.
pub const DEBUG_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer to `keelson debug`.
pub const DEBUG_BYTES: usize = 16 * MIB;
/// Questions of one parent's `related` hook.
pub const RELATED_QUERIES: usize = 64;
/// Objects that answer them, all together.
pub const RELATED_OBJECTS: usize = 256;
/// Bytes of what is shown of them, all together: they are copied into every render.
pub const RELATED_BYTES: usize = MIB;
/// Tries to look at one of them while its watch lists anew.
pub const RELATED_TRIES: usize = 8;
/// Bytes of one child as it is sent; beyond it the API server or etcd refuses.
pub const CHILD_BYTES: usize = MIB;
/// Bytes of all annotations of one object, as the API server has it.
pub const ANNOTATIONS_BYTES: usize = 256 * KIB;
/// Bytes of the status fields that a rendering gives; they are written with every outcome.
pub const STATUS_BYTES: usize = 32 * KIB;
/// Characters of a random text in a generated Secret.
pub const RANDOM_CHARS: (u32, u32) = (8, 256);
/// Different characters that a random text is chosen from, at the least.
pub const ALPHABET_CHARS: usize = 10;
/// Characters of a parent's name, so that a child's name of ours fits every kind.
pub const PARENT_NAME_CHARS: usize = 50;
/// Characters of what a plugin appends to the parent's name, the dash included.
pub const CHILD_SUFFIX_CHARS: usize = 13;
/// Bytes of an Event's note; the API server refuses 1025.
pub const EVENT_NOTE_BYTES: usize = 1024;
/// Bytes of a condition's message; metav1.Condition allows 32768, a screen wants less.
pub const CONDITION_MESSAGE_BYTES: usize = 1024;

/// One API call from the first byte sent to the last received. The API server's own limit for writes is 34 s with webhooks.
pub const API_CALL: Duration = Duration::from_secs(40);
/// TCP and TLS to the API server.
pub const API_CONNECT: Duration = Duration::from_secs(10);
/// TCP keep-alive probes start after this silence of a connection, and repeat at it.
pub const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// Sent bytes that the peer's TCP does not acknowledge for this long end the connection: a dropped route is noticed
/// before `API_CALL` and `WATCH_SILENCE`, and dead connections leave the pool.
pub const TCP_UNACKNOWLEDGED: Duration = Duration::from_secs(30);
/// A pooled connection that idles longer is closed, before kube-apiserver closes it at 90 s under a request.
pub const POOL_IDLE: Duration = Duration::from_secs(60);
/// Bytes that a connection reads at a time; hyper would grow to six times that and keep it.
pub const READ_BUFFER: usize = 64 * KIB;
/// Bytes of an answer that is no list. etcd holds 1.5 MiB; JSON and managedFields add to it.
pub const ANSWER_BYTES: usize = 8 * MIB;
/// Bytes of one page of a list.
pub const LIST_BYTES: usize = 256 * MIB;
/// Bytes of one line of a watch.
pub const WATCH_LINE_BYTES: usize = 4 * MIB;
/// Bytes of line buffer that a watch keeps between lines.
pub const WATCH_LINE_KEPT: usize = 64 * KIB;
/// Unreadable objects that one watch remembers to have said.
pub const WATCH_SAID: usize = 1024;
/// A watch that ends sooner and brought nothing counts as failed, else a server that hangs up at once is asked without end.
pub const WATCH_SHORT: Duration = Duration::from_secs(1);
/// What a watch asks the server to end it after; spread by a quarter so that not all end at once.
pub const WATCH_SERVER: Duration = Duration::from_secs(240);
/// Silence of a watch after which it is asked for anew. Bookmarks come once a minute, of a kind without changes
/// sometimes every other minute (seen on 1.37): silence alone is no error.
pub const WATCH_SILENCE: Duration = Duration::from_secs(80);
/// When a parent's kind is asked for again after its watch had to be opened anew: a CRD that changes (a status
/// subresource comes or goes) ends the watches, and discovery may tell the change a little later.
pub const KIND_RECHECK: Duration = Duration::from_secs(2);
/// Objects in one page of a list.
pub const LIST_PAGE: usize = 500;
/// A watch that worked is called forbidden only once it has been refused for this long: a kube-apiserver that starts
/// refuses everybody for two or three seconds.
pub const WATCH_FORBIDDEN: Duration = Duration::from_secs(6);
/// Delay before a failed watch or list is tried again: first, growth 2, cap. The cap bounds requests for a missing kind to one in 30 s.
pub const WATCH_BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Retries of what passes (a 500, no connection): first, growth 2, cap.
pub const PASSING_BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));
/// Retries of what the environment blocks (quota, a foreign object): first, growth 2, cap. No watch tells when it ends.
pub const BLOCKED_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How long an object waits, worker in hand, where all seats of its plugin are taken. A call that works takes a millisecond.
pub const BUSY_PATIENCE: Duration = Duration::from_millis(50);
/// When an object comes again whose plugin hangs: first, cap; between them one step for each that was sent away before,
/// so that thousands cost no more than a few.
pub const BUSY_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
pub const BUSY_STEP: Duration = Duration::from_millis(20);
/// Different objects that a plugin fails with, one after the other, until it is asked more rarely. A few are the objects' fault.
pub const FAILING_OBJECTS: usize = 8;
/// Between two tries of such a plugin, each with another object: first, growth 2, cap; spread by a quarter.
pub const FAILING_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How late an object may be for its turn with such a plugin before the next one has it: a backlog takes its time.
pub const FAILING_LATE: Duration = Duration::from_secs(5);
/// Every object is looked at again after this, though nothing has changed; spread by a tenth.
pub const RESYNC: Duration = Duration::from_secs(3600);
/// `--resync`: shorter would be a load of its own, longer than a day would be none.
pub const RESYNC_RANGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));
/// Seconds that a deleted parent may wait for its finalization, where the Plugin document says nothing: a dump takes its time.
pub const FINALIZE: u32 = 3600;
/// Of `finalize.timeoutSeconds`; at most 30 days.
pub const FINALIZE_RANGE: (u32, u32) = (1, 2_592_000);
/// Tries of one write to a parent's finalizers while others write to it.
pub const FINALIZER_TRIES: usize = 8;
/// Further renders of one walk with revisions that the one before has not seen, as Secrets come to be. A plugin that always
/// wants another goes on at the next walk.
pub const SECRET_ROUNDS: u32 = 4;
/// Characters that count of an annotation that asks for a render; they stand in status and Event.
pub const REQUEST_CHARS: usize = 128;
/// Entries of one list in `passed` of a Plugin document.
pub const PASSED_RULES: usize = 64;
/// Bytes of a manifest, an index or a token of a registry.
pub const MANIFEST_BYTES: u64 = 4 * MIB as u64;
/// Bytes of one signature or bundle.
pub const SIGNATURE_BYTES: u64 = 256 * KIB as u64;
/// Signatures of one image that are looked at, of each form.
pub const SIGNATURES: usize = 32;
/// One call of a registry, with all its redirects.
pub const REGISTRY_CALL: Duration = Duration::from_secs(300);
/// Silence of a registry after which a call is given up.
pub const REGISTRY_SILENCE: Duration = Duration::from_secs(30);
/// Redirects of one call.
pub const REGISTRY_REDIRECTS: usize = 5;
/// Before a plugin that failed for a reason that may pass is loaded again: first, growth 2, cap.
pub const PLUGIN_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often the status of Plugin objects is looked at; the number of objects in it may lag so far behind.
pub const PLUGIN_STATUS: Duration = Duration::from_secs(2);
/// How often it is asked whether the API server publishes other schemas, which a plugin's may not fit; the answer has ten kB.
pub const SCHEMA_POLL: Duration = Duration::from_secs(30);
/// The same while one does not fit: who applies another CustomResourceDefinition looks whether that was it.
pub const SCHEMA_RECHECK: Duration = Duration::from_secs(3);
/// How often the plugin folder is looked at for changes.
pub const FOLDER_POLL: Duration = Duration::from_secs(1);
/// How long plugins that changed wait for the kinds that they need before they serve without them: their objects wait then.
pub const SWAP_PATIENCE: Duration = Duration::from_secs(10);
/// Calm after a change of the served namespaces before the kinds are listed anew: many labels come together.
pub const NAMESPACES_SETTLE: Duration = Duration::from_millis(200);
/// How long a step between two "not ready" reasons is held back, so that a starting Pod's passing phases cost no write.
pub const STATUS_SETTLE: Duration = Duration::from_secs(2);
/// How long a child of an earlier parent of the same name is waited for before it is called a conflict.
pub const STALE_CHILD_GRACE: Duration = Duration::from_secs(5);
/// Before a child is replaced that cannot be changed where it stands, or has ended: first, growth 2, cap. The first also is
/// the least age of a child that this process has not replaced before: the memory of it goes with the process.
pub const REPLACE_BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// A child that stood for so long was well: the next replacement is a first one. More than the cap.
pub const REPLACE_FORGOTTEN: Duration = Duration::from_secs(600);
/// A Pod that has ended is told for so long before it is replaced: who looks shall see it.
pub const ENDED_GRACE: Duration = Duration::from_secs(2);
/// How often a field of ours that others took is put back at once: a person gives up sooner, a controller does not.
pub const FIGHT_PATIENCE: u32 = 5;
/// Between later repairs of the same field: first, growth 2, cap.
pub const FIGHT_BACKOFF: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));
/// A field that stayed ours for so long is not fought for any more. More than the cap.
pub const FIGHT_FORGOTTEN: Duration = Duration::from_secs(600);
/// The same reason is said of one object by an Event once in this time.
pub const EVENT_INTERVAL: Duration = Duration::from_secs(360);
/// `look-again-after` and `retry-after` of a guest are clamped to this range; spread by a tenth.
pub const LOOK_AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(86_400));
/// Objects in work at one time. The API server is the limit well before this.
pub const WORKERS: usize = 16;
/// One status write in so many goes before children, so that a backlog cannot starve it.
pub const REPORT_SHARE: u32 = 16;

/// Leader election, as controller-runtime has it. How long others wait for a leader that says nothing more.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long a leader writes on after it last began to renew with success; then it ends. The rest of the lease is for what
/// is still under way, and for clocks that do not run alike.
pub const LEASE_RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Between two looks at the lease, by whoever leads and whoever waits.
pub const LEASE_RETRY: Duration = Duration::from_secs(2);
/// Giving the lease back at the end; without it the next host waits for its whole duration.
pub const LEASE_RELEASE: Duration = Duration::from_secs(1);
