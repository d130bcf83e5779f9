// Short messages about what an action did.
import { Problem } from "./api";

export interface Notice {
  id: number;
  kind: "good" | "bad";
  message: string;
  details: string[];
}

class Notices {
  list = $state<Notice[]>([]);
  private next = 1;

  good(message: string) {
    this.add({ id: this.next++, kind: "good", message, details: [] }, 6000);
  }

  bad(e: unknown) {
    const p = e instanceof Problem ? e : new Problem(0, String(e));
    const details = p.faults.map((f) => [f.path, f.detail].filter(Boolean).join(": "));
    if (p.trace) details.push(`trace ${p.trace}`);
    this.add({ id: this.next++, kind: "bad", message: p.message, details }, 20_000);
  }

  dismiss(id: number) {
    this.list = this.list.filter((n) => n.id !== id);
  }

  private add(n: Notice, milliseconds: number) {
    this.list = [...this.list, n];
    setTimeout(() => this.dismiss(n.id), milliseconds);
  }
}

export const notices = new Notices();

/** run carries out an action and says how it ended. */
export async function run(done: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    notices.good(done);
    return true;
  } catch (e) {
    notices.bad(e);
    return false;
  }
}
