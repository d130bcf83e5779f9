// Who is signed in: by a session cookie, which no script can read, or by a token that somebody gave this tab. The server
// checks each call besides.
import type { components } from "./schema";

const slot = "littoral-token";

type Who = components["schemas"]["Session"];

interface Claims {
  sub?: string;
  name?: string;
  preferred_username?: string;
  roles?: string[];
  realm_access?: { roles?: string[] };
}

/** claims reads the payload of a JWT. Only the server verifies it: here it decides which buttons are shown. */
function claims(token: string): Claims {
  try {
    const part = token.split(".")[1] ?? "";
    const bytes = Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) as Claims;
  } catch {
    return {};
  }
}

/** cookie is the value of a cookie that scripts may read, under its name with https or without. */
function cookie(name: string): string {
  for (const one of document.cookie.split("; ")) {
    const [key, value] = one.split("=", 2);
    if (key === name || key === `__Host-${name}`) return value ?? "";
  }
  return "";
}

class Session {
  token = $state("");
  refused = $state("");
  login = $state(""); // where a browser signs in; "" where it cannot
  asked = $state(false); // whether the server has said who we are
  private who = $state.raw<Who>({ signedIn: false });
  private read = $derived(claims(this.token));
  private refreshing: Promise<boolean> | undefined;

  /** active says whether there is anybody to act as. */
  active = $derived(this.token !== "" || this.who.signedIn);
  user = $derived(this.token ? (this.read.preferred_username ?? this.read.name ?? this.read.sub ?? "") : (this.who.name ?? this.who.subject ?? ""));
  roles: string[] = $derived(this.token ? [...(this.read.roles ?? []), ...(this.read.realm_access?.roles ?? [])] : (this.who.roles ?? []));

  constructor() {
    // A link may carry the token behind "#token=": "littoral console" opens one. It leaves the address bar at once.
    const given = new URLSearchParams(location.hash.replace(/^#\/?/, ""));
    const token = given.get("token") ?? sessionStorage.getItem(slot) ?? "";
    if (given.has("token") || given.has("refused")) history.replaceState(null, "", location.pathname);
    if (token) this.signIn(token);
    this.refused = given.get("refused") ?? "";
    void this.ask();
  }

  /** ask lets the server say whose the cookie is, and refreshes one that is over. */
  private async ask() {
    try {
      this.who = await this.whose();
      if (!this.who.signedIn && this.who.cookie) await this.refresh();
    } finally {
      this.asked = true;
    }
  }

  private async whose(): Promise<Who> {
    const answer = await fetch("/auth/session", { cache: "no-store" });
    if (!answer.ok) return { signedIn: false };
    const who = (await answer.json()) as Who;
    this.login = who.login ?? "";
    return who;
  }

  /** refresh gets fresh tokens for the cookie, once for all tabs, and says whether there is a session then. */
  refresh(): Promise<boolean> {
    const run = async () => {
      this.who = await this.whose();
      const soon = Date.now() + 30_000;
      if (this.who.signedIn && this.who.expires && Date.parse(this.who.expires) > soon) return true; // another tab did it
      const answer = await fetch("/auth/refresh", { method: "POST", headers: this.csrf() });
      this.who = answer.ok ? await this.whose() : { signedIn: false };
      return this.who.signedIn;
    };
    const locked = async (): Promise<boolean> => {
      try {
        return await (navigator.locks ? navigator.locks.request("littoral-refresh", run) : run());
      } catch {
        return false;
      } finally {
        this.refreshing = undefined;
      }
    };
    return (this.refreshing ??= locked());
  }

  private csrf(): Record<string, string> {
    return { "X-CSRF-Token": cookie("littoral_csrf") };
  }

  /** fetch sends a request as whoever is signed in. A session that has expired is refreshed, once. */
  async fetch(path: string, init: RequestInit): Promise<Response> {
    const token = this.token; // it may be another one, or none, when the answer comes
    const send = () => {
      const headers = new Headers(init.headers);
      if (token) headers.set("Authorization", `Bearer ${token}`);
      else for (const [name, value] of Object.entries(this.csrf())) headers.set(name, value);
      return fetch(path, { ...init, headers });
    };
    let answer = await send();
    if (answer.status === 401 && !token && (await this.refresh())) answer = await send();
    if (answer.status === 401 && token === this.token) this.refuse();
    return answer;
  }

  signIn(token: string) {
    this.token = token.trim();
    this.refused = "";
    sessionStorage.setItem(slot, this.token);
  }

  /** signOut ends the session here and at the issuer, or forgets the token. */
  async signOut() {
    if (this.token) {
      this.token = "";
      sessionStorage.removeItem(slot);
      return;
    }
    const answer = await fetch("/auth/logout", { method: "POST", headers: this.csrf() });
    this.who = { signedIn: false };
    if (answer.ok) location.assign(((await answer.json()) as { location: string }).location);
  }

  private refuse() {
    this.refused = this.token ? "token" : "session";
    this.token = "";
    this.who = { signedIn: false };
    sessionStorage.removeItem(slot);
  }

  /** may says whether the user has one of the roles that change things. */
  get operates(): boolean {
    return this.roles.includes("operator") || this.roles.includes("admin");
  }
}

export const session = new Session();
