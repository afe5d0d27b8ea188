// What QuickJS lacks for a plugin: a console, and random numbers that follow from the request.
//
//     import { plugin } from "./keelson.js";
//     export const operator = plugin({ describe() { … }, render(request) { … } });

import host from "keelson:operator/log@0.1.0";

const text = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value));
const at = (level) => (...words) => host.log(level, words.map(text).join(" "), []);

globalThis.console = {
  trace: at("trace"), debug: at("debug"), log: at("info"), info: at("info"), warn: at("warn"), error: at("error"),
};

// The engine's own sequence is the same for every object: it was begun when the component was built.
function seed(number) {
  let state = Number(BigInt(number) & 0xffffffffn);
  Math.random = () => { // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The interface `operator`, seeded by each request. */
export function plugin({ describe, render }) {
  return {
    describe,
    render(request) {
      seed(request.seed);
      return render(request);
    },
  };
}
