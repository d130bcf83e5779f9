// What the form of descriptors knows: the kinds of policies with their fields, and what a new part looks like.
export type PolicyKind = "security" | "usage" | "telemetry" | "scheduler" | "template" | "expression" | "other";

export interface Field {
  key: string;
  short?: string; // the key of the short form, whose value it is
  inside?: string[]; // where the key is
  choice?: string[];
}

const remedies = ["redeploy", "scale-up", "scale-down", "scale-out", "scale-in", "patch", "replace", "secure", "none"];
const remediation: Field = { key: "remediation", choice: remedies };

export const kinds: Record<PolicyKind, { fields: Field[] }> = {
  security: { fields: [{ key: "level", short: "security", choice: ["high", "medium", "low"] }] },
  usage: { fields: [{ key: "cpu_threshold_perc" }, { key: "memory_threshold_perc" }, remediation] },
  telemetry: { fields: [{ key: "timeout", short: "redeployOnLostTelemetry" }] },
  scheduler: { fields: [{ key: "performance" }, { key: "energy" }, { key: "security" }] },
  template: { fields: [{ key: "fromTemplate" }, { key: "threshold", inside: ["variables"] }, remediation] },
  expression: { fields: [{ key: "expr", inside: ["spec"] }, { key: "violatedIf", inside: ["spec"] }, remediation] },
  other: { fields: [] },
};

/** kindOf tells which kind of policy something is, in its long or short form. */
export function kindOf(p: Record<string, unknown>): PolicyKind {
  const type = typeof p["type"] === "string" ? p["type"].toLowerCase().replace(/[-_ ]/g, "") : "";
  if (type === "security" || (!type && "security" in p)) return "security";
  if (type === "noderesourceusage") return "usage";
  if (type === "redeployonlosttelemetry" || "redeployOnLostTelemetry" in p) return "telemetry";
  if (["scheduler", "scheduling", "userpreference"].includes(type)) return "scheduler";
  if ("fromTemplate" in p) return "template";
  if ("spec" in p) return "expression";
  return "other";
}

/** policyText is a new policy of a kind. */
export function policyText(kind: PolicyKind): Record<string, unknown> {
  switch (kind) {
    case "security": return { type: "security", level: "high" };
    case "usage": return { type: "nodeResourceUsage", cpu_threshold_perc: 0.8, memory_threshold_perc: 0.8, remediation: "redeploy" };
    case "telemetry": return { type: "redeployOnLostTelemetry", timeout: "1m" };
    case "scheduler": return { type: "scheduler", name: "what matters", performance: 0.4, energy: 0.3, security: 0.3 };
    case "template": return { name: "score", type: "custom", fromTemplate: "app-sca-score", variables: { threshold: 60 }, remediation: "redeploy" };
    case "expression": return { name: "queue", type: "custom", spec: { expr: "sum(jobs_waiting)", violatedIf: "> 100" }, remediation: "scale-out" };
    default: return {};
  }
}

/** deployment is a new part: one container, kept running. */
export function deployment(name: string): Record<string, unknown> {
  return {
    name, type: "kubernetes", requirements: { cpu: "250m", memory: "128Mi" },
    manifests: [{
      name,
      manifest: {
        apiVersion: "apps/v1", kind: "Deployment", metadata: { name },
        spec: { replicas: 1, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, spec: { containers: [{ name, image: `example/${name}:1.0` }] } } },
      },
    }],
  };
}
