// The client of Littoral's API. Types are generated from shared/api/openapi.yaml ("npm run schema").
import type { components } from "./schema";
import { session } from "./session.svelte";

type Schemas = components["schemas"];
export type Application = Schemas["JobGroup"];
export type Job = Schemas["Job"];
export type Target = Schemas["Target"];
export type Entry = Schemas["Entry"];
export type Policy = Schemas["Policy"];
export type PolicyDefinition = Schemas["PolicyDefinition"];
export type PolicyPreview = Schemas["PolicyPreview"];
export type PolicyPast = Schemas["PolicyPast"];
export type Preview = Schemas["Preview"];
export type Revision = Schemas["Revision"];
export type RevisionWithFields = Schemas["RevisionWithFields"];
export type Field = Schemas["Fields"][number];
export type Cordon = Schemas["Cordon"];
export type Outcome = Schemas["Outcome"];
export type Shift = Schemas["Shift"];
export type Answer = Schemas["Answer"];
export type Explained = NonNullable<Schemas["Explanation"]["components"]>[number];
export type NodeExplanation = Schemas["NodeExplanation"];
export type DeadLetter = Schemas["DeadLetter"];
export type Controller = Schemas["Controller"];
export type Handover = Schemas["Handover"];
export type Entity = Schemas["MdmEntity"];
export type Surroundings = Schemas["MdmSurroundings"];
export type MdmState = Schemas["MdmState"];
export type Course = Schemas["Course"];
export type Courses = Schemas["Courses"];
export type LogLine = Schemas["LogLine"];
export type LogMove = Schemas["LogMove"];
export type Suggestion = Schemas["Suggestion"];
export type Link = Schemas["MeasuredLink"];
export type Channel = Schemas["PlacedChannel"];

/** Node and Cluster are the parts of the taxonomy that the console shows; numbers that nobody measured are missing. */
export interface Node {
  name: string;
  engine?: string;
  lastSeen?: number;
  schedulable?: boolean;
  ScaScore?: number;
  location?: { name?: string; country?: string; city?: string; latitude?: number; longitude?: number };
  staticMetrics?: { cpuArchitecture?: string; cpuCores?: number; RAMMemory?: number };
  dynamicMetrics?: { cpuUsagePercent?: number; memoryUsagePercent?: number; cpuPowerWatts?: number };
  labels?: Record<string, string>;
  pod?: Record<string, unknown>;
}
export interface Cluster {
  name: string;
  type?: string;
  engine?: string;
  icosAgentID?: string;
  node?: Record<string, Node>;
}
export interface Taxonomy {
  timestamp?: { staleAfter?: number };
  cluster: Record<string, Cluster>;
  warnings?: string[];
}

/** Fault is one problem of a request, at a path and line of what was sent. */
export interface Fault {
  path?: string;
  line?: number;
  detail: string;
}

/** Problem is an answer that is no success: RFC 9457. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly faults: Fault[] = [],
    readonly trace = "",
  ) {
    super(message);
  }
}

export interface Call {
  method?: string;
  body?: string;
  type?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  cache?: RequestCache;
}

/** call sends a request as the user who is signed in and returns the answer, or throws a Problem. */
export async function call<T>(path: string, c: Call = {}): Promise<T> {
  return (await ask<T>(path, c)).body;
}

/** all reads every page of a list: an answer that is not the last one names the next in its header Link. */
async function all<T>(path: string, c: Call = {}): Promise<T[]> {
  const list: T[] = [];
  for (let next: string | undefined = path; next; ) {
    const { body, link }: { body: T[]; link: string } = await ask<T[]>(next, c);
    list.push(...body);
    next = /<([^>]+)>;\s*rel="?next"?/.exec(link)?.[1];
  }
  return list;
}

async function ask<T>(path: string, c: Call): Promise<{ body: T; link: string }> {
  const answer = await send(path, c);
  const body = await answer.text();
  return { body: (body ? JSON.parse(body) : undefined) as T, link: answer.headers.get("Link") ?? "" };
}

const unchanged = 304;

/** send returns an answer that is a success, or says that the caller has it already. */
async function send(path: string, c: Call): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...c.headers };
  if (c.body !== undefined) headers["Content-Type"] = c.type ?? "application/json";
  let answer: Response;
  try {
    answer = await session.fetch(path, { method: c.method ?? "GET", headers, body: c.body ?? null, signal: c.signal ?? null, cache: c.cache ?? "default" });
  } catch (e) {
    if (e instanceof DOMException && e.name === "AbortError") throw e;
    throw new Problem(0, "Littoral does not answer");
  }
  if (answer.ok || answer.status === unchanged) return answer;
  throw await refusal(answer);
}

/** Looked is a picture of the infrastructure, without the taxonomy if that is as the caller has it. */
export interface Looked {
  taxonomy: Taxonomy | undefined;
  tag: string;
  at: Date; // of the picture, by the clock of the server
}

/** look reads some keys of the nodes, of all clusters or one. A stale picture is there at once; else telemetry is asked if it is old. */
async function look(keys: string[], o: { cluster?: string; tag?: string; stale?: boolean; signal: AbortSignal }): Promise<Looked> {
  const query = new URLSearchParams({ ...(o.cluster ? { cluster: o.cluster } : {}), keys: keys.join(",") });
  const headers: Record<string, string> = { ...(o.tag ? { "If-None-Match": o.tag } : {}), ...(o.stale ? { "Cache-Control": "max-stale" } : {}) };
  const answer = await send(`/aggregator/?${query}`, { headers, cache: "no-store", signal: o.signal }); // it is kept here, not by the browser
  const age = Number(answer.headers.get("Age") ?? 0), now = Date.parse(answer.headers.get("Date") ?? "") || Date.now();
  return {
    taxonomy: answer.status === unchanged ? undefined : ((await answer.json()) as Taxonomy),
    tag: answer.headers.get("ETag") ?? "",
    at: new Date(now - age * 1000),
  };
}

/** refusal is what an answer that is no success says. */
export async function refusal(answer: Response): Promise<Problem> {
  const said = answer.statusText || `HTTP ${answer.status}`;
  try {
    const p = await answer.json();
    return new Problem(answer.status, p.detail ?? p.title ?? said, p.errors ?? [], p.traceId ?? "");
  } catch {
    return new Problem(answer.status, said); // no problem document: its status says enough
  }
}

const registry = "/polman/registry/api/v1";
const id = encodeURIComponent;
const yaml = "application/yaml";
const of = (applications?: string[]) => (applications ? `&app=${applications.map(id).join(",")}` : "");

/** seen makes a change that is refused when somebody has changed the application since the version. */
const seen = (version?: number): Call => ({ method: "PUT", ...(version ? { headers: { "If-Match": `"${version}"` } } : {}) });

export const api = {
  applications: (ids?: string[]) => all<Application>(`/jobmanager/groups?manifests=false&limit=1000${of(ids)}`),
  application: (key: string) => call<Application>(`/jobmanager/groups/${id(key)}`),
  create: (body: string, key: string) =>
    call<Application>("/jobmanager/groups", { method: "POST", body, type: yaml, headers: { "Idempotency-Key": key } }),
  update: (key: string, body: string) =>
    call<Application>(`/jobmanager/groups/${id(key)}`, { method: "PUT", body, type: yaml }),
  start: (key: string) => call<Application>(`/jobmanager/groups/start/${id(key)}`, { method: "PUT" }),
  stop: (key: string) => call<Application>(`/jobmanager/groups/stop/${id(key)}`, { method: "PUT" }),
  scale: (key: string, component: string, replicas: number, version: number) =>
    call<Application>(`/jobmanager/groups/scale/${id(key)}?${new URLSearchParams({ component, replicas: String(replicas) })}`, seen(version)),
  pin: (key: string, component: string, to: { cluster: string; node: string } | undefined, version?: number) =>
    call<Application>(`/jobmanager/groups/pin/${id(key)}?${new URLSearchParams({ component, ...to })}`, seen(version)),
  controllers: () => call<Controller[] | undefined>("/api/v3/controller/").then((l) => l ?? []),
  handovers: () => call<Handover[] | undefined>("/controller/handovers").then((l) => l ?? []),
  remove: (key: string) => call<Application>(`/jobmanager/groups/${id(key)}?stop=true`, { method: "DELETE" }),
  plan: (body: string, signal?: AbortSignal) =>
    call<Preview>("/matchmaker/plan", { method: "POST", body, type: yaml, ...(signal ? { signal } : {}) }),
  explain: (key: string) => call<Answer>(`/matchmaker/explain?app=${id(key)}`, { method: "POST" }),
  explainDraft: (body: string, signal?: AbortSignal) =>
    call<Answer>("/matchmaker/explain", { method: "POST", body, type: yaml, ...(signal ? { signal } : {}) }),
  revisions: (key: string) => call<Revision[]>(`/jobmanager/groups/${id(key)}/revisions`),
  revision: (key: string, n: number) => call<RevisionWithFields>(`/jobmanager/groups/${id(key)}/revisions/${n}`),
  rollBack: (key: string, to: number) => call<Application>(`/jobmanager/groups/rollback/${id(key)}?to=${to}`, { method: "PUT" }),
  whatIf: (question: object) => call<Outcome>("/matchmaker/whatif", { method: "POST", body: JSON.stringify(question) }),
  closed: () => call<Cordon[]>("/matchmaker/nodes"),
  changeNode: (cluster: string, node: string, what: "cordon" | "uncordon" | "drain") =>
    call<unknown>(`/matchmaker/nodes/${id(cluster)}/${id(node)}/${what}`, { method: "PUT" }),
  taxonomy: look,
  node: (cluster: string, node: string) =>
    call<Taxonomy>(`/aggregator/?${new URLSearchParams({ cluster, node, keys: "labels" })}`, { headers: { "Cache-Control": "max-stale" }, cache: "no-store" })
      .then((t) => Object.values(t.cluster).flatMap((c) => Object.values(c.node ?? {}))[0]),
  history: (query: Record<string, string | number>) =>
    call<Entry[]>(`/jobmanager/history?${new URLSearchParams(Object.entries(query).map(([k, v]) => [k, String(v)]))}`),
  policies: (ids?: string[]) => all<Policy>(`${registry}/policies/?limit=1000${of(ids)}`),
  policy: (key: string) => call<Policy>(`${registry}/policies/${id(key)}`),
  activate: (key: string) => call<Policy>(`${registry}/policies/${id(key)}/activate`, { method: "POST" }),
  deactivate: (key: string) => call<Policy>(`${registry}/policies/${id(key)}/deactivate`, { method: "POST" }),
  removePolicy: (key: string) => call<Policy>(`${registry}/policies/${id(key)}`, { method: "DELETE" }),
  setVariable: (key: string, name: string, value: string) =>
    call<Policy>(`${registry}/policies/${id(key)}/variables/${id(name)}/${id(value)}`, { method: "POST" }),
  render: (p: PolicyDefinition) => call<PolicyPreview>(`${registry}/render`, { method: "POST", body: JSON.stringify(p) }),
  backtest: (policy: PolicyDefinition, from: string) =>
    call<PolicyPast>(`${registry}/backtest`, { method: "POST", body: JSON.stringify({ policy, from }) }),
  suggestions: (app?: string) => call<Suggestion[]>(`${registry}/suggestions${app ? `?app=${id(app)}` : ""}`),
  decide: (key: string, answer: "confirm" | "dismiss") => call<unknown>(`${registry}/suggestions/${id(key)}/${answer}`, { method: "POST" }),
  series: (query: Record<string, string>) => call<Courses>(`/telemetry/series?${new URLSearchParams(query)}`),
  metadata: () => call<MdmState>("/mdm/state"),
  entities: (type: string) => call<Entity[]>(`/mdm/graph/entity/type/${id(type)}?limit=1000`, { method: "POST", body: "{}" }),
  surroundings: (key: string, hops: number) => call<Surroundings>(`/mdm/graph/path/${id(key)}?hops=${hops}`),
  channels: (key: string) => call<Channel[]>(`/swm/channels?app=${id(key)}`),
  links: () => call<Link[] | undefined>("/netma/links").then((l) => l ?? []),
  dead: () => call<DeadLetter[]>("/events/dead"),
  replay: (event: string) => call<unknown>(`/events/${id(event)}/replay`, { method: "POST" }),
  fleet: () => call<{ clusters: unknown[] | null }>("/fleet"),
  drain: (node: string) => call<unknown>("/fleet/drain", { method: "POST", body: JSON.stringify({ node }) }),
  restore: (node: string) => call<unknown>("/fleet/restore", { method: "POST", body: JSON.stringify({ node }) }),
};
