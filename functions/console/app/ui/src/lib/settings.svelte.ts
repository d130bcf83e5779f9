// What a user chose for this browser.
const slot = "littoral-settings";

class Settings {
  theme = $state<"system" | "light" | "dark">("system");
  zone = $state<"local" | "UTC">("local");

  constructor() {
    try {
      const kept = JSON.parse(localStorage.getItem(slot) ?? "{}");
      if (["light", "dark"].includes(kept.theme)) this.theme = kept.theme;
      if (kept.zone === "UTC") this.zone = "UTC";
    } catch {
      // unreadable settings are the defaults
    }
    this.show();
  }

  save() {
    localStorage.setItem(slot, JSON.stringify({ theme: this.theme, zone: this.zone }));
    this.show();
  }

  private show() {
    document.documentElement.dataset["theme"] = this.theme;
  }
}

export const settings = new Settings();
