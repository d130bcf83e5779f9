// What an application looked like at a time, from the decisions and moves that its history has.
import type { Entry, Explained } from "./api";

/** Then is a component as it was. */
export interface Then {
  component: string;
  place: string; // cluster/node, "" without one
  state: string;
  why: Explained | undefined;
}

type Decided = Explained & { placed?: boolean };

/** decided are the components that an entry decided on, none for most entries. */
export function decided(e: Entry): Decided[] {
  if (e.event !== "application.placed" && e.event !== "application.unplaced") return [];
  const why = (e.data as { why?: unknown } | null | undefined)?.why;
  return Array.isArray(why) ? (why as Decided[]) : [];
}

/** past is the application after the first entries. Removals of former copies are no components. */
export function past(entries: Entry[], after: number): Then[] {
  const now = new Map<string, Then>();
  const removing = new Set<string>();
  for (const e of entries.slice(0, after + 1)) {
    for (const d of decided(e)) {
      const target = d.nodes?.find((n) => n.chosen)?.target ?? d.target;
      const component = d.component ?? "";
      now.set(component, { component, place: d.placed && target ? `${target.cluster}/${target.node}` : "", state: d.placed ? "Deploying" : "Pending", why: d });
    }
    const name = e.component ?? "";
    if (e.jobId && (e.event === "job.cleanup" || e.event === "job.stopped")) removing.add(e.jobId);
    if (e.jobId && removing.has(e.jobId)) {
      const it = now.get(name);
      if (it && e.event === "job.stopped") it.state = "Stopping";
      if (e.event === "job.finished" && it?.state === "Stopping") now.delete(name);
      continue;
    }
    if (!e.event.startsWith("job.") || !name || !e.toState) continue;
    const it = now.get(name) ?? { component: name, place: "", state: "Pending", why: undefined };
    it.state = e.toState === "Finished" ? "Available" : e.toState === "Degraded" ? "Degraded" : it.place ? "Deploying" : "Pending";
    now.set(name, it);
  }
  return [...now.values()].sort((a, b) => a.component.localeCompare(b.component, undefined, { numeric: true }));
}
