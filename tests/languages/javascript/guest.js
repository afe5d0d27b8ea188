// A plugin for tests: it serves Databases, and does what the annotation `example.org/act` says.
// What it sees of the world stands in annotations of its Service.
import { plugin } from "./keelson.js";

const kind = (kind, plural) => ({ kind: { group: "", version: "v1", kind, plural }, observe: [] });

export const operator = plugin({
  describe() {
    const discriminator = { path: "/spec/type", value: "mysql" };
    return {
      name: "javascript", version: "1.0.0",
      serves: [{ group: "zalando.org", versions: ["v1"], kind: "Database", plural: "databases", discriminator }],
      children: [kind("Pod", "pods"), kind("Service", "services")],
      related: [], schema: null, usesTime: false,
    };
  },

  render(request) {
    const { name, annotations = {} } = JSON.parse(request.parent).metadata;
    const act = annotations["example.org/act"] ?? "";
    if (act !== "say nothing") {
      console.log("renders", name);
      console.warn("takes care");
    }
    switch (act) {
      case "raise": throw new Error("no such colour");
      case "refuse": throw {
        class: "invalid", reason: "WrongColour", message: "no such colour", fields: ["/spec/colour"], allowed: ["red"],
        remedy: null, retryAfter: null,
      };
      case "loop": while (Date.now() < 4e12);
    }
    const seen = act === "say nothing" ? {} : {
      random: String(Math.random()),
      now: new Date().toISOString(),
      environment: String(typeof process),
    };
    const noted = Object.fromEntries(Object.entries(seen).map(([key, value]) => [`example.org/${key}`, value]));
    const selector = Object.fromEntries(request.selectorLabels.map(({ key, value }) => [key, value]));
    const service = {
      apiVersion: "v1", kind: "Service", metadata: { name, annotations: noted },
      spec: { selector, ports: [{ port: 80 }] },
    };
    const pod = {
      apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { containers: [{ name: "c", image: "mysql:8.0" }] },
    };
    const children = [service, pod].map((child) => ({ object: JSON.stringify(child), retain: null, strategy: null }));
    return {
      children: { tag: "exactly", val: children }, secrets: [], status: null, conditions: [], ready: { tag: "auto" },
      lookAgainAfter: null,
    };
  },
});
