// Where each node's cell is on the canvas, and what its colour may stand for.
import type { Node } from "./api";
import type { Place } from "./continuum";
import { percent } from "./format";

export interface Measure {
  key: string;
  name: string;
  good: boolean; // more is better
  of: (n: Node) => number | undefined; // 0 to 100
  text: (n: Node) => string;
}

export const measures: Measure[] = [
  { key: "cpu", name: "CPU", good: false, of: (n) => n.dynamicMetrics?.cpuUsagePercent, text: (n) => percent(n.dynamicMetrics?.cpuUsagePercent) },
  { key: "memory", name: "Memory", good: false, of: (n) => n.dynamicMetrics?.memoryUsagePercent, text: (n) => percent(n.dynamicMetrics?.memoryUsagePercent) },
  { key: "security", name: "Security score", good: true, of: (n) => n.ScaScore, text: (n) => (n.ScaScore === undefined ? "–" : String(n.ScaScore)) },
  {
    key: "energy", name: "Power per core", good: false,
    of: (n) => watts(n) === undefined ? undefined : Math.min(100, watts(n)! * 5), // 20 W a core fill the cell
    text: (n) => (n.dynamicMetrics?.cpuPowerWatts === undefined ? "–" : `${n.dynamicMetrics.cpuPowerWatts.toFixed(0)} W`),
  },
];

function watts(n: Node): number | undefined {
  const w = n.dynamicMetrics?.cpuPowerWatts, cores = n.staticMetrics?.cpuCores;
  return w === undefined || !cores ? undefined : w / cores;
}

export interface Layout {
  size: number;
  columns: number;
  height: number;
  cells: { x: number; y: number; place: Place }[];
  titles: { text: string; y: number }[];
  at: (x: number, y: number) => Place | undefined;
}

const gap = 4;
const title = 26;

/** cells lays places, which are in the order of their clusters, into rows of the width. */
export function cells(places: Place[], width: number): Layout {
  const size = places.length > 2000 ? 12 : places.length > 400 ? 18 : 34;
  const columns = Math.max(1, Math.floor((width + gap) / (size + gap)));
  const layout: Layout = { size, columns, height: 0, cells: [], titles: [], at: () => undefined };
  let y = 0;
  for (let i = 0; i < places.length; ) {
    const cluster = places[i]!.cluster;
    let end = i;
    while (end < places.length && places[end]!.cluster === cluster) end++;
    layout.titles.push({ text: `${cluster} · ${end - i} nodes`, y: y + 16 });
    y += title;
    for (let k = i; k < end; k++) {
      const at = k - i;
      layout.cells.push({ x: (at % columns) * (size + gap), y: y + Math.floor(at / columns) * (size + gap), place: places[k]! });
    }
    y += Math.ceil((end - i) / columns) * (size + gap) + 10;
    i = end;
  }
  layout.height = Math.max(y, 10);
  layout.at = (x, y) => layout.cells.find((c) => x >= c.x && x < c.x + size && y >= c.y && y < c.y + size)?.place;
  return layout;
}
