// The page is the fragment of the address: every page can be linked to, and the server serves one file.
class Router {
  path = $state(read());

  constructor() {
    addEventListener("hashchange", () => (this.path = read()));
  }

  parts = $derived(this.path.split("?")[0]!.split("/").filter(Boolean).map(decodeURIComponent));
  query = $derived(new URLSearchParams(this.path.split("?")[1] ?? ""));

  go(path: string) {
    location.hash = path;
  }
}

function read(): string {
  return location.hash.replace(/^#/, "") || "/";
}

export const router = new Router();

/** link makes the address of a page from its parts. */
export const link = (...parts: string[]) => "#/" + parts.map(encodeURIComponent).join("/");
