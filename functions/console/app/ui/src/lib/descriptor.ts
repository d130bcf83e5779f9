// Changes of a descriptor's text that keep the rest of it as it is: comments, order and fields that are not known here.
// Loaded when needed, with the library that reads YAML.
import { isMap, isScalar, isSeq, parseAllDocuments, type Document, type YAMLMap, type YAMLSeq } from "yaml";

/** Descriptor is a text that is being changed. Its head is the document with the components. */
export class Descriptor {
  private readonly documents: Document[];
  readonly head: Document | undefined;

  constructor(text: string) {
    const parsed = parseAllDocuments(text);
    this.documents = Array.isArray(parsed) ? (parsed as Document[]) : [];
    this.head = this.documents.find((d) => isMap(d.contents) && d.has("components") && !(d.has("apiVersion") && d.has("kind"))) ?? this.documents.find((d) => isMap(d.contents));
  }

  /** faulty says whether the text could not be read. */
  get faulty(): boolean {
    return this.documents.some((d) => d.errors.length > 0);
  }

  get components(): YAMLMap[] {
    const list = this.head?.get("components");
    return isSeq(list) ? list.items.filter((c): c is YAMLMap => isMap(c)) : [];
  }

  component(name: string): YAMLMap | undefined {
    return this.components.find((c) => String(c.get("name")) === name);
  }

  /** set gives a field of the head, or of what a path leads to, a value; undefined takes it away. */
  set(path: (string | number)[], value: unknown) {
    if (!this.head) return;
    if (value === undefined) this.head.deleteIn(path);
    else this.head.setIn(path, this.head.createNode(value));
  }

  /** pin fixes a component to a place. */
  pin(component: string, cluster: string, node: string) {
    const c = this.component(component);
    if (!c || !this.head) return;
    c.delete("target");
    c.set("targets", this.head.createNode([{ cluster_name: cluster, node_name: node }]));
  }

  /** relax carries out what would let a component fit, and says which changes it could not write into the text. */
  relax(component: string, changes: Relaxation[]): Relaxation[] {
    const c = this.component(component);
    return c ? changes.filter((ch) => !this.one(c, component, ch)) : changes;
  }

  private one(c: YAMLMap, name: string, ch: Relaxation): boolean {
    const requirement = (...keys: string[]) => {
      const q = c.get("requirements");
      const key = isMap(q) ? keys.find((k) => q.has(k)) : undefined;
      if (!isMap(q) || key === undefined) return false;
      if (ch.to === undefined || ch.to === "none" || ch.to === "0") q.delete(key);
      else q.set(key, written(ch.to));
      return true;
    };
    switch (ch.rule) {
      case "cpu": return requirement("cpu");
      case "memory": return requirement("memory");
      case "architecture": return requirement("architecture");
      case "device": return requirement("devices", "device");
      case "label": return requirement("nodelabel", "nodeLabel");
      case "resource": return requirement(ch.key ?? "");
      case "target": {
        const had = c.has("targets") || c.has("target");
        c.delete("targets");
        c.delete("target");
        return had;
      }
      case "security": return this.security(c, name, ch);
    }
    return false;
  }

  /** security lowers what policies of the component, or of all, ask of a node's score. */
  private security(c: YAMLMap, name: string, ch: Relaxation): boolean {
    const to = Number.parseFloat(ch.to ?? "");
    let done = false;
    for (const [owner, own] of [[c, true], [this.head?.contents, false]] as const) {
      const list = isMap(owner) ? owner.get("policies") : undefined;
      if (!isSeq(list)) continue;
      for (const p of list.items) {
        if (!isMap(p) || !(p.has("security") || String(p.get("type")) === "security")) continue;
        const scope = p.get("component") ?? p.get("apply-to");
        if (!own && scope !== undefined && !String(scope).includes(name)) continue;
        for (const key of ["security", "level", "threshold"]) p.delete(key);
        p.set("type", "security");
        p.set("threshold", Number.isFinite(to) ? Math.floor(to) : 0);
        done = true;
      }
    }
    return done;
  }

  toString(): string {
    return this.documents.map((d, i) => (i ? "---\n" : "") + d.toString({ lineWidth: 0, directives: false })).join("");
  }
}

export interface Relaxation {
  rule?: string | undefined;
  key?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

/** written is an amount without the spaces and words that sentences have. */
function written(amount: string): string {
  return amount.replace(/\s*cores?$/, "").replace(/\s+/g, "").replace(/(Ki|Mi|Gi|Ti)B$/, "$1").replace(/(\d)B$/, "$1");
}

export { isMap, isScalar, isSeq, type YAMLMap, type YAMLSeq };
