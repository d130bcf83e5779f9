// The taxonomy as the pages use it: places with their names, and what runs there.
import type { Application, Cluster, Job, Node } from "./api";

export interface Place {
  cluster: string;
  node: string;
  orchestrator: string;
  in: Cluster;
  at: Node;
  lost: boolean;
}

/** named gives each key the name of its element where that is unique, as the server names places. */
export function named<E extends { name?: string }>(elements: Record<string, E>): Map<string, string> {
  const holders = new Map<string, number>();
  for (const e of Object.values(elements)) holders.set(e.name ?? "", (holders.get(e.name ?? "") ?? 0) + 1);
  return new Map(
    Object.entries(elements).map(([key, e]) => {
      const own = e.name ?? "";
      const taken = own === "" || (holders.get(own) ?? 0) > 1 || (own in elements && own !== key);
      return [key, taken ? key : own];
    }),
  );
}

export const placeId = (p: { cluster: string; node: string }) => `${p.cluster}/${p.node}`;

/** components are the jobs that stand for components, without the removals of former copies. */
export function components(a: Application): Job[] {
  return a.jobs.filter((j) => !j.cleans && !(a.desired === "running" && gone(j)));
}

export function gone(j: Job): boolean {
  return j.type === "DeleteDeployment" || (j.state === "Finished" && !j.owner_id);
}

export function componentName(j: Job): string {
  return (j.instruction.componentName ?? "") + (j.replica ? `/${j.replica}` : "");
}

export function available(j: Job): boolean {
  if (j.state !== "Finished" || gone(j)) return false;
  const c = j.resource.conditions?.find((c) => c.type === "Available");
  return c ? c.status === "True" : true;
}

/** condition is the sentence of the orchestrator that says most about the job. */
export function condition(j: Job): string {
  const list = j.resource.conditions ?? [];
  const of = (type: string, status: string) => list.find((c) => c.type === type && c.status === status)?.message;
  return of("Degraded", "True") ?? of("Available", "True") ?? of("Available", "Unknown") ?? of("Available", "False") ?? of("Progressing", "True") ?? "";
}

/** health of one component, in the words of applications. */
export function health(j: Job): string {
  if (available(j)) return "Available";
  if (j.state === "Degraded" || j.resource.conditions?.some((c) => c.type === "Degraded" && c.status === "True")) return "Degraded";
  if (j.resource.conditions?.some((c) => c.type === "Available" && c.status === "Unknown")) return "Unknown";
  return j.targets.node_name ? "Deploying" : "Pending";
}

/** Facts are what lists show of an application. */
export interface Facts {
  components: Job[];
  names: string[]; // of its components, with the numbers of replicas
  up: number; // components that are available
  places: string[];
  wrong: Job[]; // components that should be available and are not
}

const facts = new WeakMap<Application, Facts>();

/** factsOf works them out once: an application that changes is another object. */
export function factsOf(a: Application): Facts {
  let f = facts.get(a);
  if (!f) {
    const list = components(a), ill = list.filter((j) => health(j) !== "Available");
    f = {
      components: list,
      names: [...new Set(list.map(componentName))],
      up: list.length - ill.length,
      places: [...new Set(list.flatMap((j) => (j.targets.node_name ? [placeId({ cluster: j.targets.cluster_name ?? "", node: j.targets.node_name })] : [])))],
      wrong: a.desired === "running" && a.status !== "Available" ? ill : [],
    };
    facts.set(a, f);
  }
  return f;
}
