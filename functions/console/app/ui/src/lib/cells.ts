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

export interface Block {
  text: string; // its cluster, and how many nodes that has
  x: number;
  y: number; // of its first cell
  width: number;
  columns: number;
  from: number; // its first place
  count: number;
}

export interface Layout {
  size: number;
  height: number;
  blocks: Block[];
  of: (i: number) => { x: number; y: number }; // where the cell of a place is
  at: (x: number, y: number) => number; // whose cell is there, -1 for nobody's
  step: (i: number, key: string) => number; // where an arrow key leads
}

const gap = 4;
const title = 26;
const apart = 18; // pixels between blocks
const letter = 7.4; // pixels, about

/** cells lays places, which are in the order of their clusters, into blocks: one for each cluster, as many beside each other as
 * the width has room for. Where a cell is follows from its block, so that nothing is stored of thousands. */
export function cells(places: Place[], width: number): Layout {
  const size = places.length > 2000 ? 12 : places.length > 400 ? 18 : 34;
  const pitch = size + gap;
  const most = Math.max(1, Math.floor((width + gap) / pitch));
  const blocks: Block[] = [];
  let x = 0, y = title, low = 0; // low is the lower end of the line of blocks
  for (let i = 0; i < places.length; ) {
    const cluster = places[i]!.cluster;
    let end = i;
    while (end < places.length && places[end]!.cluster === cluster) end++;
    const count = end - i, text = `${cluster} · ${count} ${count === 1 ? "node" : "nodes"}`;
    const columns = Math.min(most, Math.max(Math.ceil(Math.sqrt(count * 4)), Math.ceil((text.length * letter) / pitch)));
    const wide = columns * pitch - gap;
    if (x > 0 && x + wide > width) {
      x = 0;
      y = low + apart + title;
    }
    blocks.push({ text, x, y, width: wide, columns, from: i, count });
    low = Math.max(low, y + Math.ceil(count / columns) * pitch - gap);
    x += wide + apart;
    i = end;
  }
  const holds = (i: number) => {
    let a = 0, b = blocks.length - 1;
    while (a < b) {
      const middle = (a + b + 1) >> 1;
      if (blocks[middle]!.from <= i) a = middle;
      else b = middle - 1;
    }
    return blocks[a];
  };
  const of = (i: number) => {
    const b = holds(i), k = i - (b?.from ?? 0);
    return b ? { x: b.x + (k % b.columns) * pitch, y: b.y + Math.floor(k / b.columns) * pitch } : { x: 0, y: 0 };
  };
  /** inside is the place of a block whose cell is there or, of the gaps between, nearest before. */
  const inside = (b: Block, px: number, py: number) => {
    const k = Math.floor((py - b.y) / pitch) * b.columns + Math.floor((px - b.x) / pitch);
    return k >= 0 && k < b.count ? b.from + k : -1;
  };
  const at = (px: number, py: number) => {
    for (const b of blocks) {
      if (px < b.x || px >= b.x + b.width || py < b.y || (px - b.x) % pitch >= size || (py - b.y) % pitch >= size) continue;
      const i = inside(b, px, py);
      if (i >= 0) return i;
    }
    return -1;
  };
  const step = (i: number, key: string) => {
    if (key === "ArrowRight") return Math.min(places.length - 1, i + 1);
    if (key === "ArrowLeft") return Math.max(0, i - 1);
    const b = holds(i), down = key === "ArrowDown";
    if (!b) return -1;
    const next = i + (down ? b.columns : -b.columns);
    if (next >= b.from && next < b.from + b.count) return next;
    // In the next line of blocks, the cell that is nearest.
    const here = of(i);
    const line = blocks.filter((o) => (down ? o.y > b.y : o.y < b.y)).map((o) => o.y);
    const wanted = down ? Math.min(...line) : Math.max(...line);
    let best = i, least = Infinity;
    for (const o of blocks) {
      if (o.y !== wanted) continue;
      const row = down ? 0 : Math.ceil(o.count / o.columns) - 1;
      for (let k = row * o.columns; k < Math.min(o.count, (row + 1) * o.columns); k++) {
        const far = Math.abs(o.x + (k % o.columns) * pitch - here.x);
        if (far < least) [best, least] = [o.from + k, far];
      }
    }
    return best;
  };
  return { size, height: Math.max(low, 10) + 2, blocks, of, at, step };
}
