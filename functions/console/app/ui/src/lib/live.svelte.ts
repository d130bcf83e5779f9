// What the pages show, kept up to date: a stream tells what happens, and only what that changed is read anew. A part is read
// when something on the screen first needs it, and none waits for another.
import { untrack } from "svelte";
import { api, Problem, type Application, type Entry, type Policy } from "./api";
import { placeId, type Place } from "./continuum";
import { Infrastructure } from "./infrastructure";
import { session } from "./session.svelte";
import { follow } from "./stream";

const kept = 500; // entries of history
const gather = 150; // milliseconds in which events are answered by one reading
const again = 2000; // milliseconds until a stream that ended is opened anew
const retry = 5000; // milliseconds until a part that could not be read is asked for anew
const slow = 10_000; // milliseconds between readings of the infrastructure, whose numbers change without events
const share = 4; // times as long as such a reading takes is waited before the next, where that is longer
const batch = 100; // ids of one reading: they are in its address
const few = 6; // clusters that are read by themselves; of more the whole infrastructure is read

/** Part is one kind of thing that pages show. */
export class Part {
  loaded = $state(false);
  problem = $state(""); // why it could not be read last
  at = $state<Date | undefined>(); // what is shown is of this time
  wanted = 0; // by so much of what is on the screen
  tried = 0; // when a reading ended last
  busy: Promise<void> | undefined;
  private more = false;

  constructor(private readonly read: (signal: AbortSignal) => Promise<Date>) {}

  /** load reads all of it, once after is fulfilled. Who asks while that goes on gets another reading after it. */
  load(signal: AbortSignal, after: Promise<void> = Promise.resolve()): Promise<void> {
    if (this.busy) {
      this.more = true;
      return this.busy;
    }
    const run = async () => {
      await after;
      do {
        this.more = false;
        await this.note(signal, async () => {
          const at = await this.read(signal);
          if (signal.aborted) return;
          this.at = at;
          this.loaded = true;
        });
      } while (this.more && !signal.aborted);
    };
    const mine: Promise<void> = run().finally(() => {
      if (this.busy === mine) this.busy = undefined;
    });
    return (this.busy = mine);
  }

  /** note carries out a reading and keeps how it ended. */
  async note(signal: AbortSignal, reading: () => Promise<void>) {
    try {
      await reading();
      if (!signal.aborted) this.problem = "";
    } catch (e) {
      if (!signal.aborted) this.problem = e instanceof Problem ? e.message : String(e);
    }
    this.tried = Date.now();
  }

  /** forget lets go of a reading that was aborted. */
  forget() {
    this.busy = undefined;
    this.more = false;
  }

  reset() {
    this.forget();
    this.loaded = false;
    this.problem = "";
    this.at = undefined;
  }
}

type Name = "applications" | "policies" | "history" | "infrastructure";
const names: Name[] = ["infrastructure", "history", "applications", "policies"];

class Live {
  applications = $state.raw<Application[]>([]);
  policies = $state.raw<Policy[]>([]);
  history = $state.raw<Entry[]>([]);
  places = $state.raw<Place[]>([]);
  warnings = $state.raw<string[]>([]);
  problem = $state(""); // of the connection
  at = $state<Date | undefined>(); // when there was one last

  readonly parts: Record<Name, Part> = {
    applications: new Part((signal) => this.readApplications(signal)),
    policies: new Part((signal) => this.readPolicies(signal)),
    history: new Part((signal) => this.readHistory(signal)),
    infrastructure: new Part((signal) => this.readInfrastructure(signal)),
  };

  private readonly byId = $derived(new Map(this.applications.map((a) => [a.id, a])));
  private readonly byPlace = $derived(new Map(this.places.map((p) => [placeId(p), p])));
  private readonly byInstance = $derived.by(() => {
    const by = new Map<string, Policy[]>();
    for (const p of this.policies) {
      const id = instance(p), list = by.get(id);
      if (list) list.push(p);
      else by.set(id, [p]);
    }
    return by;
  });

  private single = $state.raw<ReadonlySet<string>>(new Set()); // applications that were read by themselves
  private readonly watched = new Map<string, number>(); // applications that are on the screen by themselves
  private readonly infrastructure = new Infrastructure();
  private fresh = false; // whether the next reading waits for telemetry rather than take what is stored
  private asked = 0; // when one last did
  private took = 0; // milliseconds that it took
  private last = -1; // entry of history
  private gap = false; // whether things may have happened that nobody told
  private running = false;
  private known: Promise<void> = Promise.resolve(); // fulfilled when it is known from where on events are told
  private abort = new AbortController();
  private readonly timers = new Set<ReturnType<typeof setTimeout>>();
  private news: Entry[] = [];
  private due = { applications: new Set<string>(), policies: new Set<string>(), clusters: new Set<string>() };
  private reading = false;

  /** need keeps parts up to date while the component that calls it is there, and once when is true, if that is given. */
  need(parts: Name[], when: () => boolean = () => true) {
    $effect(() => {
      if (!when()) return;
      untrack(() => parts.forEach((name) => this.want(name)));
      return () => parts.forEach((name) => this.parts[name].wanted--);
    });
  }

  /** needApplication keeps one application and its policies up to date. */
  needApplication(id: () => string) {
    $effect(() => {
      const one = id();
      this.watched.set(one, (this.watched.get(one) ?? 0) + 1);
      untrack(() => {
        if (!this.running) return;
        if (this.single.has(one)) this.soon(); // what has happened to it meanwhile
        else this.changed(one);
      });
      return () => {
        const left = (this.watched.get(one) ?? 1) - 1;
        if (left > 0) this.watched.set(one, left);
        else this.watched.delete(one);
      };
    });
  }

  /** needKeys has more read of each node. */
  needKeys(keys: () => string[]) {
    $effect(() => {
      const wanted = keys();
      if (this.infrastructure.want(wanted)) untrack(() => this.running && this.parts.infrastructure.loaded && this.again("infrastructure"));
      return () => this.infrastructure.release(wanted);
    });
  }

  application(id: string): Application | undefined {
    return this.byId.get(id);
  }

  /** knows says whether the application that is needed would be there if there were one. */
  knows(id: string): boolean {
    return this.single.has(id);
  }

  policiesOf(id: string): Policy[] {
    return this.byInstance.get(id) ?? none;
  }

  place(cluster: string, node: string): Place | undefined {
    return this.byPlace.get(placeId({ cluster, node }));
  }

  start() {
    this.stop();
    this.abort = new AbortController();
    const signal = this.abort.signal;
    this.running = true;
    this.gap = false; // what happened since the last entry is told
    let known = () => {};
    this.known = new Promise((done) => (known = done));
    for (const name of names) {
      this.parts[name].forget();
      if (this.parts[name].wanted && (name !== "history" || this.last >= 0)) void this.load(name); // else run reads it
    }
    void this.run(signal, known);
    void this.tick(signal);
    for (const id of this.watched.keys()) this.changed(id);
  }

  stop() {
    this.running = false;
    this.abort.abort();
    for (const t of this.timers) clearTimeout(t);
    this.timers.clear();
    this.reading = false;
  }

  reset() {
    this.stop();
    for (const name of names) this.parts[name].reset();
    this.applications = [];
    this.policies = [];
    this.history = [];
    this.places = [];
    this.warnings = [];
    this.single = new Set();
    this.infrastructure.clear();
    this.due = { applications: new Set(), policies: new Set(), clusters: new Set() };
    this.problem = "";
    this.last = -1;
    this.asked = 0;
  }

  /** again reads a part anew, after an action of the user or because the user asks for it. */
  again(name: Name) {
    if (name === "infrastructure") this.fresh = true;
    void this.load(name);
  }

  /** changed reads an application and its policies anew, after an action of the user. */
  changed(application: string) {
    this.due.applications.add(application);
    this.due.policies.add(application);
    this.soon();
  }

  /** policyChanged reads a policy anew. */
  async policyChanged(p: Policy) {
    const signal = this.abort.signal;
    await this.parts.policies.note(signal, async () => {
      const now = await api.policy(p.id).catch((e: unknown) => (e instanceof Problem && e.status === 404 ? undefined : Promise.reject(e)));
      if (!signal.aborted) this.policies = this.policies.flatMap((o) => (o.id !== p.id ? [o] : now ? [now] : []));
    });
  }

  private want(name: Name) {
    const part = this.parts[name];
    part.wanted++;
    if (!this.running) return;
    if (part.loaded) this.soon(); // what was not read while nobody looked
    else if (!part.busy) void this.load(name);
  }

  private async load(name: Name) {
    const signal = this.abort.signal;
    // What happens after a list was read must be told; what the infrastructure is like is read again anyway.
    await this.parts[name].load(signal, name === "applications" || name === "policies" ? this.known : undefined);
  }

  private later(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((done) => {
      const t = setTimeout(() => {
        this.timers.delete(t);
        if (!signal.aborted) done();
      }, milliseconds);
      this.timers.add(t);
    });
  }

  private async run(signal: AbortSignal, known: () => void) {
    while (!signal.aborted && session.active) {
      try {
        if (this.last < 0) await this.parts.history.load(signal);
        if (signal.aborted) return;
        if (this.last < 0) this.gap = true; // the stream tells from now on, which may be after the first readings
        known();
        await follow("/events/stream", this.last < 0 ? "" : String(this.last), (m) => this.take(m.id, m.name, m.data), signal);
      } catch (e) {
        if (signal.aborted) return;
        this.problem = e instanceof Problem ? e.message : String(e);
        this.gap = true;
      }
      await this.later(again, signal);
    }
  }

  /** tick reads what could not be read, and the infrastructure from time to time, while somebody looks. */
  private async tick(signal: AbortSignal) {
    for (;;) {
      await this.later(1000, signal);
      if (signal.aborted) return;
      if (document.hidden || this.problem) continue;
      if (Date.now() - Math.max(this.parts.applications.tried, this.parts.policies.tried) > retry && this.isDue()) this.soon();
      for (const name of names) {
        const part = this.parts[name];
        if (!part.wanted || part.busy) continue;
        if (part.problem && Date.now() - part.tried > retry) void this.load(name);
        else if (name === "infrastructure" && part.loaded && Date.now() - this.asked > Math.max(slow, share * this.took)) this.again(name);
      }
    }
  }

  private take(id: string, name: string, data: string) {
    if (name === "opened") {
      this.problem = "";
      this.at = new Date();
      if (this.last < 0 || Number(id) < this.last) this.last = Number(id); // a database that was set back counts anew
      if (!this.gap) return;
      this.gap = false;
      for (const name of names) {
        if (name === "history" && !this.parts.history.problem) continue; // whose gap the stream fills
        if (this.parts[name].wanted) void this.load(name);
        else if (name !== "history") this.parts[name].loaded = false;
      }
      this.single = new Set();
      for (const id of this.watched.keys()) this.changed(id);
      return;
    }
    if (Number(id) <= this.last) return; // a stream that is resumed may repeat
    this.last = Number(id);
    const e = JSON.parse(data) as Entry;
    if (name.startsWith("topology.")) {
      this.moved(e.data);
      delete e.data; // it may be of thousands of nodes
    }
    if (e.applicationId) {
      this.due.applications.add(e.applicationId);
      if (/^(policy|application)\./.test(name)) this.due.policies.add(e.applicationId);
    } else if (name.startsWith("policy.") && this.parts.policies.wanted) void this.load("policies"); // one of no application
    this.news.push(e);
    if (this.news.length === 1) queueMicrotask(() => this.tell()); // all that came together is shown together
    this.soon();
  }

  private tell() {
    this.history = [...this.history, ...this.news].slice(-kept);
    this.news = [];
    this.at = new Date();
  }

  /** moved notes which clusters have changed. */
  private moved(changes: unknown) {
    for (const c of Array.isArray(changes) ? (changes as { cluster?: string }[]) : []) this.due.clusters.add(c.cluster ?? "");
  }

  private soon() {
    if (this.reading || !this.running) return;
    this.reading = true;
    const signal = this.abort.signal;
    void this.later(gather, signal).then(async () => {
      const read = await this.readDue(signal);
      if (signal.aborted) return;
      this.reading = false;
      if (read && this.isDue()) this.soon(); // more has happened meanwhile; what failed waits for the tick
    });
  }

  /** take those of a set that somebody looks at. */
  private taken(due: Set<string>, all: boolean): string[] {
    const ids = [...due].filter((id) => all || this.watched.has(id));
    for (const id of ids) due.delete(id);
    return ids;
  }

  private isDue(): boolean {
    const { applications, policies, infrastructure } = this.parts;
    const any = (due: Set<string>, all: boolean) => [...due].some((id) => all || this.watched.has(id));
    return any(this.due.applications, applications.wanted > 0) || any(this.due.policies, policies.wanted > 0) || (infrastructure.wanted > 0 && this.due.clusters.size > 0);
  }

  /** readDue reads what events have changed of what somebody looks at, and says whether there was any. */
  private async readDue(signal: AbortSignal): Promise<boolean> {
    await this.known;
    const { applications, policies, infrastructure } = this.parts;
    await Promise.all([applications.busy, policies.busy]); // what they read may be older
    const apps = this.taken(this.due.applications, applications.wanted > 0);
    const of = this.taken(this.due.policies, policies.wanted > 0);
    const clusters = infrastructure.wanted > 0 && infrastructure.loaded ? [...this.due.clusters] : [];
    if (clusters.length) this.due.clusters.clear();
    await Promise.all([
      apps.length && applications.note(signal, () => this.readSome(apps, signal)),
      of.length && policies.note(signal, () => this.readPoliciesOf(of, signal)),
      clusters.length > few || clusters.includes("") ? infrastructure.load(signal)
        : clusters.length && infrastructure.note(signal, () => this.readClusters(clusters, signal)),
    ]);
    if (signal.aborted) return false;
    if (applications.problem) apps.forEach((id) => this.due.applications.add(id));
    if (policies.problem) of.forEach((id) => this.due.policies.add(id));
    return apps.length + of.length + clusters.length > 0 && !applications.problem && !policies.problem;
  }

  private async readApplications(signal: AbortSignal): Promise<Date> {
    const list = await api.applications();
    if (!signal.aborted) this.applications = list;
    return new Date();
  }

  private async readSome(ids: string[], signal: AbortSignal) {
    for (let i = 0; i < ids.length; i += batch) {
      const some = ids.slice(i, i + batch), asked = new Set(some);
      const found = new Map((await api.applications([...asked])).map((a) => [a.id, a]));
      if (signal.aborted) return;
      const list: Application[] = [];
      for (const a of this.applications) {
        if (!asked.has(a.id)) list.push(a);
        else if (found.has(a.id)) list.push(found.get(a.id)!);
        asked.delete(a.id);
      }
      for (const id of asked) if (found.has(id)) list.push(found.get(id)!); // they are newer than all others
      this.applications = list;
      const alone = some.filter((id) => this.watched.has(id) && !this.single.has(id));
      if (alone.length) this.single = new Set([...this.single, ...alone]);
    }
  }

  private async readPolicies(signal: AbortSignal): Promise<Date> {
    const list = await api.policies();
    if (!signal.aborted) this.policies = list;
    return new Date();
  }

  private async readPoliciesOf(ids: string[], signal: AbortSignal) {
    for (let i = 0; i < ids.length; i += batch) {
      const asked = ids.slice(i, i + batch);
      const found = await api.policies(asked);
      if (signal.aborted) return;
      this.policies = [...this.policies.filter((p) => !asked.includes(instance(p))), ...found];
    }
  }

  private async readHistory(signal: AbortSignal): Promise<Date> {
    const newest = await api.history({ limit: 200, data: "false" });
    if (signal.aborted) return new Date();
    const from = newest[newest.length - 1]?.id ?? 0;
    this.history = [...newest, ...this.history.filter((e) => e.id > from)].slice(-kept);
    this.last = Math.max(this.last, from);
    return new Date();
  }

  private async readInfrastructure(signal: AbortSignal): Promise<Date> {
    const fresh = this.fresh, began = Date.now();
    this.fresh = false;
    try {
      const answer = await api.taxonomy(this.infrastructure.keys, { tag: this.infrastructure.tag, stale: !fresh, signal });
      if (answer.taxonomy && !signal.aborted) {
        this.infrastructure.whole(answer.taxonomy, answer.at, answer.tag);
        this.publish();
      }
      return answer.at;
    } finally {
      if (fresh) {
        this.asked = Date.now();
        this.took = this.asked - began;
      }
    }
  }

  private async readClusters(clusters: string[], signal: AbortSignal) {
    for (const cluster of clusters) {
      const answer = await api.taxonomy(this.infrastructure.keys, { cluster, stale: true, signal }).catch((e: unknown) => (e instanceof Problem && e.status === 404 ? undefined : Promise.reject(e)));
      if (signal.aborted) return;
      if (answer?.taxonomy) this.infrastructure.part(answer.taxonomy, answer.at);
      else return void this.parts.infrastructure.load(signal); // it has gone
    }
    this.publish();
  }

  private publish() {
    this.places = this.infrastructure.places();
    const warnings = this.infrastructure.warnings;
    if (warnings.join("\n") !== this.warnings.join("\n")) this.warnings = warnings;
  }
}

const none: Policy[] = [];
const instance = (p: Policy): string => ("appInstance" in p.subject ? (p.subject.appInstance ?? "") : "");

export const live = new Live();
