// Between the contract's types and a plugin's own function. Yours to read and to change. `console` writes to
// the host's log, and `Math.random` follows from the object.
//
// `plugin(render, about)` makes what the contract calls `operator`. `render(object)` gets the custom resource and gives
//
// * `children`: a list of objects, or "keep" (all stay as they are) or "none" (none is intended);
// * `status`, `secrets` (see `secret`), `conditions`, `notReady` ({reason, message}), `lookAgainAfter` (seconds).
//
// The same object must give the same answer: there is no network, no file and no other clock than `object.now`.

import { log as line } from "keelson:operator/log@0.1.0";

// A kind of child; `observe` lists the JSON pointers to see in it beside identity, phase and conditions.
export const kind = (group, version, kind, plural, observe = []) => ({ kind: { group, version, kind, plural }, observe });

export const CONFIG_MAP = kind("", "v1", "ConfigMap", "configmaps");
export const PERSISTENT_VOLUME_CLAIM = kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
export const POD = kind("", "v1", "Pod", "pods");
export const SECRET = kind("", "v1", "Secret", "secrets");
export const SERVICE = kind("", "v1", "Service", "services");
export const DEPLOYMENT = kind("apps", "v1", "Deployment", "deployments");
export const STATEFUL_SET = kind("apps", "v1", "StatefulSet", "statefulsets");
export const CRON_JOB = kind("batch", "v1", "CronJob", "cronjobs");
export const JOB = kind("batch", "v1", "Job", "jobs");

class Failure {
  constructor(payload) {
    this.payload = payload;
  }
}

const failure = (kind, reason, message, { fields = [], allowed = [], remedy, retryAfter } = {}) =>
  new Failure({ class: kind, reason, message, fields, allowed: allowed.map(String), remedy, retryAfter });

// To throw: the object is wrong, and not asked about again until it changes.
export const invalid = (message, { reason = "InvalidSpec", ...more } = {}) => failure("invalid", reason, message, more);

// To throw: something is missing; asked again when a child changes, or after `retryAfter` seconds.
export const notYet = (reason, message, more) => failure("not-yet", reason, message, more);

// The child stays when its object goes, because it holds data.
export const retained = (object, dataVersion, line) => ({ child: object, retain: { dataVersion, line } });

// A Secret that the host generates once: `secret("a", {password: 24, user: "root"})`; a number is a random text's length.
export const secret = (name, keys) => ({
  name,
  keys: Object.entries(keys).map(([name, value]) => ({
    name,
    value: typeof value === "number" ? { tag: "random", val: { length: value } } : { tag: "literal", val: value },
  })),
});

// A line in the host's log.
export const log = (message, fields = {}) =>
  line("info", message, Object.entries(fields).map(([key, value]) => ({ key, value: String(value) })));

const shown = (word) => (typeof word === "object" ? JSON.stringify(word) : String(word));
const say = (level) => (...words) => line(level, words.map(shown).join(" "), []);
globalThis.console = {
  ...{ trace: say("trace"), debug: say("debug"), log: say("info") },
  ...{ info: say("info"), warn: say("warn"), error: say("error") },
};

// Random numbers follow from the request: the engine's own begin anew, the same for every object.
function seeded(seed) {
  let state = Number(BigInt.asUintN(31, BigInt(seed))) + 1;
  Math.random = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

export function plugin(render, { name, version, serves, children, schema, usesTime = false }) {
  return {
    describe: () => ({
      name,
      version,
      serves: [serves].flat().map(({ only, ...serving }) => ({
        ...serving,
        discriminator: only && { path: only[0], value: only[1] },
      })),
      children,
      related: [],
      schema: schema && JSON.stringify(schema),
      usesTime,
    }),
    render: (request) => {
      seeded(request.seed);
      try {
        return rendering(render(read(request)));
      } catch (error) {
        if (error instanceof Failure) throw error.payload;
        throw failure("internal", "PluginError", `${error}`).payload;
      }
    },
  };
}

// The custom resource, and what the host knows around it.
function read(request) {
  const parent = JSON.parse(request.parent);
  const { name, namespace = "", uid = "" } = parent.metadata;
  return {
    parent,
    name,
    namespace,
    uid,
    spec: parent.spec ?? {},
    config: JSON.parse(request.config),
    // What a Service, or whatever else selects Pods, must select by.
    selector: Object.fromEntries(request.selectorLabels.map(({ key, value }) => [key, value])),
    now: request.now,
    seed: request.seed,
    // Name to revision, which changes exactly when the data does.
    secrets: Object.fromEntries(request.secrets.map(({ name, revision }) => [name, revision])),
    // A child that is there, cut down to what is observed.
    child: (kind, name) => {
      const found = request.children.find((child) => child.kind === kind.kind.kind && child.name === name);
      return found && JSON.parse(found.object);
    },
  };
}

function rendering({ children, status, secrets = [], conditions = [], notReady, lookAgainAfter }) {
  const list = () => children.map((it) => ({ object: JSON.stringify(it.child ?? it), retain: it.retain }));
  return {
    children: typeof children === "string" ? { tag: children } : { tag: "exactly", val: list() },
    secrets,
    status: status && JSON.stringify(status),
    conditions,
    ready: notReady ? { tag: "not-ready", val: notReady } : { tag: "auto" },
    lookAgainAfter,
  };
}
