// What graphs draw, and where: the continuum as a tree around its controller, and what surrounds an entity of metadata.
import type { Application, Job } from "./api";
import { componentName, factsOf, health, type Place } from "./continuum";

/** Vertex is one thing of a graph. Its colour is the name of a variable of the style. */
export interface Vertex {
  id: string;
  label: string;
  x: number;
  y: number;
  size: number;
  color: string;
  lines?: string[]; // shown beside the label on hover
  drag?: boolean; // it can be drawn onto another
  drop?: boolean; // others can be drawn onto it
}

export interface Edge {
  from: string;
  to: string;
  label?: string;
  color: string;
  size: number;
}

export interface Drawing {
  vertices: Vertex[];
  edges: Edge[];
}

/** Branch is one line of the continuum as a tree, which the graph and the list beside it both show. */
export interface Branch {
  id: string;
  level: 1 | 2 | 3 | 4;
  kind: "controller" | "cluster" | "node" | "component";
  name: string;
  state: string;
  parent: string;
  children: number;
  open: boolean;
  place?: Place;
  app?: Application;
  job?: Job;
}

export const root = "controller";
export const clusterId = (cluster: string) => `cluster:${cluster}`;
export const nodeId = (p: { cluster: string; node: string }) => `node:${p.cluster}/${p.node}`;

/** branches lists what is to be seen of the continuum: of what is closed, nothing that is in it. */
export function branches(places: Place[], applications: Application[], name: string, closed: (id: string, children: number) => boolean): Branch[] {
  const here = new Map<string, Branch[]>();
  for (const app of applications) {
    for (const job of factsOf(app).components) {
      if (!job.targets.node_name) continue;
      const parent = nodeId({ cluster: job.targets.cluster_name ?? "", node: job.targets.node_name });
      const b: Branch = { id: `component:${job.id}`, level: 4, kind: "component", name: `${app.appName}/${componentName(job)}`, state: health(job), parent, children: 0, open: false, app, job };
      const list = here.get(parent);
      if (list) list.push(b);
      else here.set(parent, [b]);
    }
  }
  const clusters = new Map<string, Place[]>();
  for (const p of places) {
    const list = clusters.get(p.cluster);
    if (list) list.push(p);
    else clusters.set(p.cluster, [p]);
  }
  const out: Branch[] = [{ id: root, level: 1, kind: "controller", name, state: "Ready", parent: "", children: clusters.size, open: !closed(root, clusters.size) }];
  if (!out[0]!.open) return out;
  for (const [cluster, members] of clusters) {
    const id = clusterId(cluster);
    const lost = members.filter((p) => p.lost).length;
    const open = !closed(id, members.length);
    out.push({ id, level: 2, kind: "cluster", name: cluster, state: lost === members.length ? "Lost" : lost ? "Degraded" : "Ready", parent: root, children: members.length, open });
    if (!open) continue;
    for (const place of members) {
      const id = nodeId(place), inside = here.get(id) ?? [];
      const open = inside.length > 0 && !closed(id, inside.length);
      out.push({ id, level: 3, kind: "node", name: place.node, state: nodeState(place), parent: clusterId(cluster), children: inside.length, open, place });
      if (open) out.push(...inside);
    }
  }
  return out;
}

export const nodeState = (p: Place) => (p.lost ? "Lost" : p.at.schedulable === false ? "Drained" : "Ready");

const colors: Record<string, string> = { Ready: "--accent", Available: "--good", Lost: "--bad", Degraded: "--bad", Drained: "--warn", Pending: "--warn", Unknown: "--warn", Deploying: "--calm" };
const golden = Math.PI * (3 - Math.sqrt(5));
const step = 10; // between the nodes of a cluster

/** tree draws branches: clusters in a circle about the controller, their nodes as the seeds of a sunflower, and components
 * about their nodes. Nothing is left to chance or to forces, so that everything is found where it was before. */
export function tree(list: Branch[], color: (b: Branch) => { color: string; lines?: string[] } | undefined): Drawing {
  const d: Drawing = { vertices: [], edges: [] };
  const of = new Map<string, Branch[]>();
  for (const b of list) {
    const siblings = of.get(b.parent);
    if (siblings) siblings.push(b);
    else of.set(b.parent, [b]);
  }
  const add = (b: Branch, x: number, y: number, size: number, more: Partial<Vertex> = {}) => {
    const given = color(b);
    const label = b.children && !b.open ? `${b.name} (${b.children})` : b.name;
    d.vertices.push({ id: b.id, label, x, y, size, color: given?.color ?? colors[b.state] ?? "--quiet", lines: [b.state, ...(given?.lines ?? [])], ...more });
    if (b.parent) d.edges.push({ from: b.parent, to: b.id, color: "--line", size: b.level === 2 ? 2 : 1 });
  };
  const top = list[0];
  if (!top) return d;
  add(top, 0, 0, 14);
  const clusters = of.get(root) ?? [];
  const radius = (c: Branch) => step * (c.open ? Math.sqrt((of.get(c.id) ?? []).length + 1) : 1) + step;
  const around = clusters.reduce((sum, c) => sum + 2 * radius(c), 0);
  const far = Math.max(around / (2 * Math.PI) * 1.15, Math.max(0, ...clusters.map(radius)) + 2 * step);
  let angle = Math.PI / 2;
  for (const c of clusters) {
    const share = around ? (2 * Math.PI * 2 * radius(c)) / around : 0;
    angle -= share / 2;
    const cx = far * Math.cos(angle), cy = far * Math.sin(angle);
    angle -= share / 2;
    add(c, cx, cy, 10);
    (of.get(c.id) ?? []).forEach((n, i) => {
      const r = step * Math.sqrt(i + 1), a = (i + 1) * golden;
      const x = cx + r * Math.cos(a), y = cy + r * Math.sin(a);
      add(n, x, y, 6, { drop: true });
      const inside = of.get(n.id) ?? [];
      inside.forEach((k, j) => {
        const a = (2 * Math.PI * j) / inside.length + Math.PI / 4;
        add(k, x + 0.34 * step * Math.cos(a), y + 0.34 * step * Math.sin(a), 4, { drag: true });
      });
    });
  }
  return d;
}

interface Surroundings {
  nodes: { id: number; label: string; object: { identifier?: string; edf_id: string }; hops: number }[];
  relations: { from: number; to: number; label: string }[];
}

const kinds = ["--bar-1", "--bar-2", "--bar-3", "--bar-4", "--warn", "--calm", "--good"];

/** rings draws what surrounds an entity: each step away from it is a circle further out, beside what leads there. */
export function rings(s: Surroundings): Drawing {
  const types = [...new Set(s.nodes.map((n) => n.label))].sort();
  const angles = new Map<number, number>();
  const near = new Map<number, number[]>();
  for (const r of s.relations) {
    near.set(r.from, [...(near.get(r.from) ?? []), r.to]);
    near.set(r.to, [...(near.get(r.to) ?? []), r.from]);
  }
  const hops = new Map(s.nodes.map((n) => [n.id, n.hops]));
  const vertices: Vertex[] = [];
  let inner = 0;
  for (let h = 0; s.nodes.some((n) => n.hops === h); h++) {
    const ring = s.nodes.filter((n) => n.hops === h);
    const wanted = (id: number) => {
      const leading = (near.get(id) ?? []).filter((o) => hops.get(o) === h - 1).map((o) => angles.get(o) ?? 0);
      return leading.length ? Math.min(...leading) : 0;
    };
    ring.sort((a, b) => wanted(a.id) - wanted(b.id) || a.label.localeCompare(b.label) || a.id - b.id);
    const r = h === 0 ? 0 : Math.max(inner + 20, (ring.length * 6) / (2 * Math.PI));
    ring.forEach((n, i) => {
      const a = (2 * Math.PI * i) / ring.length;
      angles.set(n.id, a);
      vertices.push({
        id: String(n.id), label: n.object.identifier || n.object.edf_id.slice(0, 8), x: r * Math.cos(a), y: r * Math.sin(a),
        size: h === 0 ? 12 : 8, color: kinds[types.indexOf(n.label) % kinds.length]!, lines: [n.label],
      });
    });
    inner = r;
  }
  return { vertices, edges: s.relations.map((r) => ({ from: String(r.from), to: String(r.to), label: r.label, color: "--quiet", size: 1 })) };
}
