// Server-sent events with an Authorization header, which EventSource cannot send.
import { Problem } from "./api";
import { session } from "./session.svelte";

export interface Message {
  id: string;
  name: string;
  data: string;
}

/** follow reads the stream after the id and calls each for every message, until the stream ends or signal aborts. */
export async function follow(path: string, after: number, each: (m: Message) => void, signal: AbortSignal): Promise<void> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      headers: { Accept: "text/event-stream", Authorization: `Bearer ${session.token}`, ...(after >= 0 ? { "Last-Event-ID": String(after) } : {}) },
      signal,
      cache: "no-store",
    });
  } catch (e) {
    if (signal.aborted) return;
    throw new Problem(0, "Littoral does not answer");
  }
  if (answer.status === 401) session.refuse();
  if (!answer.ok || !answer.body) throw new Problem(answer.status, answer.statusText || `HTTP ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = "", name = "", data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) each({ id, name: name || "message", data: data.join("\n") });
          name = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "id") id = text;
        else if (field === "event") name = text;
        else if (field === "data") data.push(text);
      }
    }
  } catch (e) {
    if (signal.aborted) return;
    throw new Problem(0, "The connection to Littoral broke");
  }
}
