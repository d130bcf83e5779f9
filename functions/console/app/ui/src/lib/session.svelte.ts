// Who is signed in. The token lives as long as the tab, and the server checks each call besides.
const slot = "littoral-token";

interface Claims {
  sub?: string;
  name?: string;
  preferred_username?: string;
  exp?: number;
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

class Session {
  token = $state("");
  refused = $state(false);
  private read = $derived(claims(this.token));
  user = $derived(this.read.preferred_username ?? this.read.name ?? this.read.sub ?? "");
  roles = $derived([...(this.read.roles ?? []), ...(this.read.realm_access?.roles ?? [])]);

  constructor() {
    // A link may carry the token behind "#token=": "littoral console" opens one. It leaves the address bar at once.
    const given = new URLSearchParams(location.hash.replace(/^#\/?/, "")).get("token");
    if (given) history.replaceState(null, "", location.pathname);
    const token = given ?? sessionStorage.getItem(slot) ?? "";
    if (token) this.signIn(token);
  }

  signIn(token: string) {
    this.token = token.trim();
    this.refused = false;
    sessionStorage.setItem(slot, this.token);
  }

  signOut() {
    this.token = "";
    sessionStorage.removeItem(slot);
  }

  refuse() {
    this.signOut();
    this.refused = true;
  }

  /** may says whether the user has one of the roles that change things. */
  get operates(): boolean {
    return this.roles.includes("operator") || this.roles.includes("admin");
  }

}

export const session = new Session();
