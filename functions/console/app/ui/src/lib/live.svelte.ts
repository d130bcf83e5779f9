// What the pages show, kept up to date: a stream tells what happens, and what that changed is read anew.
import { api, Problem, type Application, type Entry, type Policy, type Taxonomy } from "./api";
import { session } from "./session.svelte";
import { follow } from "./stream";

const kept = 500; // entries of history
const gather = 150; // milliseconds in which events are answered by one reading
const again = 2000; // milliseconds until a stream that ended is opened anew
const slow = 10_000; // between readings of the taxonomy, whose numbers change without events

class Live {
  applications = $state.raw<Application[]>([]);
  taxonomy = $state.raw<Taxonomy | undefined>();
  history = $state.raw<Entry[]>([]);
  policies = $state.raw<Policy[]>([]);
  loaded = $state(false);
  problem = $state("");
  at = $state<Date | undefined>();

  private last = -1;
  private abort = new AbortController();
  private timers = new Set<ReturnType<typeof setTimeout>>();
  private due = { applications: false, policies: false, taxonomy: false };
  private reading = false;

  start() {
    this.stop();
    this.abort = new AbortController();
    void this.run(this.abort.signal);
  }

  stop() {
    this.abort.abort();
    for (const t of this.timers) clearTimeout(t);
    this.timers.clear();
    this.reading = false;
  }

  reset() {
    this.stop();
    this.applications = [];
    this.taxonomy = undefined;
    this.history = [];
    this.policies = [];
    this.loaded = false;
    this.last = -1;
  }

  /** refresh reads everything anew, after an action of the user. */
  refresh() {
    this.due = { applications: true, policies: true, taxonomy: true };
    this.soon(this.abort.signal);
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

  private async run(signal: AbortSignal) {
    void this.tick(signal);
    while (!signal.aborted && session.active) {
      try {
        if (this.last < 0) {
          const newest = await api.history({ limit: 200 });
          this.history = newest;
          this.last = newest[newest.length - 1]?.id ?? 0;
        }
        this.due = { applications: true, policies: true, taxonomy: true };
        await this.read(signal);
        await follow("/events/stream", String(this.last), (m) => this.take(m.id, m.name, m.data, signal), signal);
      } catch (e) {
        if (signal.aborted) return;
        this.problem = e instanceof Problem ? e.message : String(e);
      }
      await this.later(again, signal);
    }
  }

  /** tick reads the taxonomy from time to time, while somebody looks. */
  private async tick(signal: AbortSignal) {
    for (;;) {
      await this.later(slow, signal);
      if (signal.aborted) return;
      if (document.hidden || this.problem) continue;
      this.due.taxonomy = true;
      this.soon(signal);
    }
  }

  private take(id: string, name: string, data: string, signal: AbortSignal) {
    if (name === "opened") {
      this.problem = "";
      return;
    }
    const e = JSON.parse(data) as Entry;
    this.last = Number(id);
    if (this.history.some((known) => known.id === e.id)) return; // a stream that is resumed may repeat
    this.history = [...this.history, e].slice(-kept);
    this.at = new Date();
    if (e.applicationId) this.due.applications = true;
    if (/^(policy|application)\./.test(name)) this.due.policies = true;
    if (name.startsWith("topology.") || name.startsWith("job.")) this.due.taxonomy = true;
    this.soon(signal);
  }

  private soon(signal: AbortSignal) {
    if (this.reading) return;
    this.reading = true;
    void this.later(gather, signal).then(async () => {
      this.reading = false;
      try {
        await this.read(signal);
      } catch (e) {
        if (!signal.aborted) this.problem = e instanceof Problem ? e.message : String(e);
      }
    });
  }

  /** read reads what is due. */
  private async read(signal: AbortSignal) {
    const due = this.due;
    this.due = { applications: false, policies: false, taxonomy: false };
    const [applications, policies, taxonomy] = await Promise.all([
      due.applications ? api.applications() : this.applications,
      due.policies ? api.policies() : this.policies,
      due.taxonomy ? api.taxonomy().catch((e: unknown) => (this.taxonomy ? this.taxonomy : Promise.reject(e))) : this.taxonomy,
    ]);
    if (signal.aborted) return;
    this.applications = applications;
    this.policies = policies;
    this.taxonomy = taxonomy;
    this.loaded = true;
    this.problem = "";
    this.at = new Date();
  }
}

export const live = new Live();
