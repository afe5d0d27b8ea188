// For each __KIND__ a Deployment, and a Service in front of it.

import { DEPLOYMENT, SERVICE, invalid, plugin } from "./keelson.js";

function render({ name, namespace, selector, spec }) {
  const { image, port = 80 } = spec;
  if (port === 22) {
    throw invalid("port 22 is for ssh", { fields: ["/spec/port"], remedy: "take 8080" });
  }
  const container = { name: "main", image, ports: [{ containerPort: port }] };
  const deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: {
      selector: { matchLabels: selector },
      template: { metadata: { labels: selector }, spec: { containers: [container] } },
    },
  };
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { selector, ports: [{ port }] },
  };
  return { children: [deployment, service], status: { endpoint: `${name}.${namespace}.svc:${port}` } };
}

export const operator = plugin(render, {
  name: "__NAME__",
  version: "0.1.0",
  serves: { group: "__GROUP__", versions: ["v1"], kind: "__KIND__", plural: "__PLURAL__" },
  children: [DEPLOYMENT, SERVICE],
});
