// Quantities and times as people read them.
import { settings } from "./settings.svelte";

export function percent(v: number | undefined): string {
  return v === undefined ? "–" : `${Math.round(v)} %`;
}

export function bytes(v: number | undefined): string {
  if (v === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (v >= 1024 && i < units.length - 1) {
    v /= 1024;
    i++;
  }
  return `${v >= 100 || i === 0 ? Math.round(v) : v.toFixed(1)} ${units[i]}`;
}

/** rate is a bandwidth in bits per second. */
export function rate(v: number | undefined): string {
  if (v === undefined) return "–";
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
  let i = 0;
  while (v >= 1000 && i < units.length - 1) {
    v /= 1000;
    i++;
  }
  return `${Number(v.toPrecision(3))} ${units[i]}`;
}

/** span is a time of so many nanoseconds. */
export function span(v: number | undefined): string {
  return v === undefined ? "–" : `${Number((v / 1e6).toPrecision(3))} ms`;
}

/** figure is a number in as few digits as tell it from its neighbours. */
export function figure(v: number | null | undefined): string {
  if (v === null || v === undefined) return "–";
  return Math.abs(v) >= 1000 ? Math.round(v).toLocaleString() : String(Number(v.toPrecision(3)));
}

export function points(v: number | undefined): string {
  return v === undefined ? "–" : v.toFixed(1);
}

/** exact is a time to the second in the user's zone. */
export function exact(at: string | Date | undefined): string {
  if (!at) return "";
  return zoned({ dateStyle: "medium", timeStyle: "medium" }).format(new Date(at)) + (settings.zone === "UTC" ? " UTC" : "");
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** zoned is a format in the user's zone. They are kept: to make one takes longer than to use it a thousand times. */
function zoned(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const all = settings.zone === "UTC" ? { ...options, timeZone: "UTC" } : options;
  const key = JSON.stringify(all);
  let f = formats.get(key);
  if (!f) formats.set(key, (f = new Intl.DateTimeFormat(undefined, all)));
  return f;
}

/** clock is the time of day. */
export function clock(at: string | Date): string {
  return zoned({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }).format(new Date(at));
}

/** ago says how long something is past. */
export function ago(at: string | Date, now: Date): string {
  const s = Math.max(0, Math.round((now.getTime() - new Date(at).getTime()) / 1000));
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86_400)} d ago`;
}
