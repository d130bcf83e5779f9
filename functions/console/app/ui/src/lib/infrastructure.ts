// The infrastructure as it was read, in parts: what is read of one cluster replaces that cluster.
import type { Cluster, Taxonomy } from "./api";
import { named, type Place } from "./continuum";

// What every page that shows nodes needs. More is read while somebody looks at it.
const always = [
  "lastSeen", "engine", "schedulable", "ScaScore", "staticMetrics.cpuArchitecture", "staticMetrics.cpuCores", "staticMetrics.RAMMemory",
  "dynamicMetrics.cpuUsagePercent", "dynamicMetrics.memoryUsagePercent", "dynamicMetrics.cpuPowerWatts",
];
const order = new Intl.Collator(undefined, { numeric: true }).compare;

interface Known {
  cluster: Cluster;
  at: number; // epoch milliseconds by the clock of the server
}

export class Infrastructure {
  tag = ""; // of the whole, "" while it is not what was read last
  warnings: string[] = [];
  private clusters = new Map<string, Known>();
  private staleAfter = 60;
  private readonly extra = new Map<string, number>();
  private made = new Map<string, { of: Known; name: string; places: Place[] }>();

  get keys(): string[] {
    return [...always, ...this.extra.keys()];
  }

  /** want has more keys read of each node, and says whether one of them was not. */
  want(keys: string[]): boolean {
    const added = keys.filter((k) => !this.extra.has(k));
    for (const k of keys) this.extra.set(k, (this.extra.get(k) ?? 0) + 1);
    if (added.length) this.tag = "";
    return added.length > 0;
  }

  release(keys: string[]) {
    for (const k of keys) {
      const left = (this.extra.get(k) ?? 1) - 1;
      if (left > 0) this.extra.set(k, left);
      else this.extra.delete(k);
    }
  }

  clear() {
    this.tag = "";
    this.warnings = [];
    this.clusters.clear();
    this.made.clear();
  }

  whole(t: Taxonomy, at: Date, tag: string) {
    this.clusters.clear();
    this.part(t, at);
    this.tag = tag;
  }

  part(t: Taxonomy, at: Date) {
    this.tag = "";
    this.staleAfter = t.timestamp?.staleAfter ?? 60;
    this.warnings = t.warnings ?? [];
    for (const [key, cluster] of Object.entries(t.cluster)) this.clusters.set(key, { cluster, at: at.getTime() });
  }

  /** places lists all nodes, cluster by cluster. Those of clusters that were not read anew stay the same. */
  places(): Place[] {
    const names = named(Object.fromEntries([...this.clusters].map(([key, k]) => [key, k.cluster])));
    const made = new Map<string, { of: Known; name: string; places: Place[] }>();
    for (const [key, of] of this.clusters) {
      const name = names.get(key)!, before = this.made.get(key);
      made.set(key, before && before.of === of && before.name === name ? before : { of, name, places: this.nodes(name, of) });
    }
    this.made = made;
    return [...made.values()].sort((a, b) => order(a.name, b.name)).flatMap((c) => c.places);
  }

  private nodes(name: string, { cluster, at }: Known): Place[] {
    const nodes = cluster.node ?? {}, names = named(nodes);
    // Whether a node was silent is told by the time of the picture: this browser's clock may be another, and the picture old.
    const lost = (seen: number | undefined) => seen !== undefined && at / 1000 - seen > this.staleAfter;
    return Object.entries(nodes)
      .map(([key, n]) => ({ cluster: name, node: names.get(key)!, orchestrator: cluster.type ?? "", in: cluster, at: n, lost: lost(n.lastSeen) }))
      .sort((a, b) => order(a.node, b.node));
  }
}
