// Server-sent events with the headers of whoever is signed in, which EventSource cannot send.
import { Problem, refusal } from "./api";
import { session } from "./session.svelte";

const silence = 40_000; // milliseconds: the server sends something every 15 seconds, so by then the connection is dead

export interface Message {
  id: string;
  name: string;
  data: string;
}

/** follow reads the stream after the id, "" for what the server gives first, and calls each for every message, until the stream ends or signal aborts. */
export async function follow(path: string, after: string, each: (m: Message) => void, signal: AbortSignal): Promise<void> {
  const cut = new AbortController();
  const gone = () => cut.abort();
  let watch = setTimeout(gone, silence);
  // A browser that loses its network keeps an open connection and only says that it is offline.
  addEventListener("offline", gone);
  try {
    await read(path, after, each, AbortSignal.any([signal, cut.signal]), () => {
      clearTimeout(watch);
      watch = setTimeout(gone, silence);
    });
  } catch (e) {
    if (!signal.aborted) throw e;
  } finally {
    clearTimeout(watch);
    removeEventListener("offline", gone);
  }
}

async function read(path: string, after: string, each: (m: Message) => void, signal: AbortSignal, alive: () => void): Promise<void> {
  let answer: Response;
  try {
    answer = await session.fetch(path, {
      headers: { Accept: "text/event-stream", ...(after ? { "Last-Event-ID": after } : {}) },
      signal,
      cache: "no-store",
    });
  } catch {
    throw new Problem(0, "Littoral does not answer");
  }
  if (!answer.ok || !answer.body) throw await refusal(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = "", name = "", data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
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
  } catch {
    throw new Problem(0, "The connection to Littoral broke");
  }
}
