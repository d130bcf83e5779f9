// The console as people use it. Each test has a browser context of its own; they share one laptop host.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";

const { LITTORAL_SERVER: server, LITTORAL_HOME: home, LITTORAL_MODULES: modules, LITTORAL_SHOTS: shots } = process.env;
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const token = (role) => readFileSync(join(home, `token-${role}`), "utf8").trim();

let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});
after(() => browser?.close());

/** api calls the server as a role. */
async function api(role, method, path, body) {
  return fetch(server + path, { method, body, headers: { Authorization: `Bearer ${token(role)}`, "Content-Type": "application/yaml" } });
}

/** open signs a role in and returns the page with what it complained about. */
async function open(t, role, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, ...options });
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.complaints = [];
  page.on("pageerror", (e) => page.complaints.push(e.message));
  page.on("console", (m) => /Content Security Policy|Refused to/.test(m.text()) && page.complaints.push(`${m.text()} (${JSON.stringify(m.location())})`));
  page.on("request", (r) => new URL(r.url()).origin !== server && !r.url().startsWith("data:") && page.complaints.push(`request to ${r.url()}`));
  await page.goto(`${server}/console/#token=${token(role)}`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  return page;
}

const descriptor = (name, more = "") => `name: ${name}
description: ${JSON.stringify(`for the tests ${more}`)}
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 250m, memory: 128Mi}
    manifests:
      - name: web
        manifest: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "example/web:1.0"}]}}}}
`;

/** submit hands an application in and removes it at the end. */
async function submit(t, name, more) {
  const answer = await api("admin", "POST", "/jobmanager/groups", descriptor(name, more));
  assert.equal(answer.status, 201, await answer.clone().text());
  const app = await answer.json();
  t.after(() => api("admin", "DELETE", `/jobmanager/groups/${app.id}?stop=true`));
  return app;
}

test("an application is deployed, explained, moved by a drain and deleted, by clicks", async (t) => {
  const page = await open(t, "admin");
  await page.getByRole("link", { name: "Deploy", exact: true }).click();
  await page.getByText("1 to change in a new application web.").waitFor();
  await page.getByRole("button", { name: "Apply", exact: true }).click();
  await page.getByRole("heading", { name: "web", exact: true }).waitFor();
  await page.getByText("1 of 1 components run").first().waitFor();
  await page.getByRole("tab", { name: "Why here" }).click();
  await page.getByText(/wins with/).waitFor();
  const chosen = page.locator("tr.chosen a");
  const first = await chosen.textContent();
  await chosen.click();
  await page.getByRole("button", { name: "Drain", exact: true }).click();
  await page.getByRole("button", { name: "Uncordon" }).waitFor();
  await page.getByRole("link", { name: "Applications", exact: true }).click();
  await page.waitForFunction((first) => {
    const row = [...document.querySelectorAll("tbody tr")].find((r) => r.textContent.includes("Available"));
    return row && !row.textContent.includes(first);
  }, first);
  await page.getByRole("link", { name: "web", exact: true }).click();
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.getByText(/drained/).first().waitFor();
  await page.getByRole("button", { name: "Delete…" }).click();
  const confirm = page.getByRole("dialog").getByRole("button", { name: "Delete…" });
  assert.equal(await confirm.isDisabled(), true, "the name has to be typed first");
  await page.getByRole("dialog").getByLabel("web").fill("web");
  await confirm.click();
  await page.getByText("This application is gone").waitFor();
  await api("admin", "PUT", `/matchmaker/nodes/${first}/uncordon`);
  assert.deepEqual(page.complaints, []);
});

test("faults of a descriptor are shown at their lines", async (t) => {
  const page = await open(t, "admin");
  await page.goto(`${server}/console/#/deploy`);
  const editor = page.getByLabel("Descriptor");
  await editor.click();
  await page.keyboard.press("Control+A");
  // Chromium tries to keep the style of a selection that text replaces, which the policy blocks; nothing is selected any more.
  await page.keyboard.press("Delete");
  await page.keyboard.insertText("name: web\ncomponents:\n  - name: a\n    type: parrot\n");
  await page.getByText(/is not a component type/).first().waitFor();
  await page.getByRole("button", { name: "line 4" }).click();
  assert.equal(await page.getByRole("button", { name: "Apply", exact: true }).isDisabled(), true);
  assert.deepEqual(page.complaints, []);
});

test("a viewer sees everything and can change nothing", async (t) => {
  const app = await submit(t, "seen");
  const page = await open(t, "viewer");
  await page.goto(`${server}/console/#/applications/${app.id}`);
  for (const name of ["Stop", "Delete…"]) assert.equal(await page.getByRole("button", { name }).isDisabled(), true, name);
  for (const [method, path] of [["PUT", `/jobmanager/groups/stop/${app.id}`], ["DELETE", `/jobmanager/groups/${app.id}?stop=true`], ["POST", "/jobmanager/groups"], ["POST", "/fleet/drain"]]) {
    const status = await page.evaluate(async ([method, path, token]) => (await fetch(path, { method, body: method === "POST" ? "{}" : undefined, headers: { Authorization: `Bearer ${token}` } })).status, [method, path, token("viewer")]);
    assert.equal(status, 403, `${method} ${path}`);
  }
  assert.equal((await fetch(`${server}/events/stream`)).status, 401);
});

test("what happens appears in every tab without a reload", async (t) => {
  const [one, two] = [await open(t, "viewer"), await open(t, "viewer")];
  const app = await submit(t, "appears");
  for (const page of [one, two]) {
    await page.goto(`${server}/console/#/applications`);
    await page.getByRole("link", { name: "appears" }).waitFor();
  }
  await api("admin", "PUT", `/jobmanager/groups/stop/${app.id}`);
  for (const page of [one, two]) await page.getByRole("row", { name: /appears.*Stopp/ }).waitFor();
});

test("being cut off is said, and what was missed is there afterwards", async (t) => {
  const page = await open(t, "viewer");
  await page.goto(`${server}/console/#/events`);
  await page.context().setOffline(true);
  await page.getByRole("alert").waitFor({ timeout: 40_000 });
  await submit(t, "missed");
  await page.context().setOffline(false);
  await page.getByRole("link", { name: "missed" }).first().waitFor({ timeout: 40_000 });
  await page.getByRole("alert").waitFor({ state: "detached" });
});

test("hostile texts are shown as text", async (t) => {
  const texts = [
    "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "\"><svg onload=alert(1)>", "javascript:alert(1)", "{{7*7}}", "${alert(1)}",
    "</title><script>alert(1)</script>", "<iframe srcdoc='<script>alert(1)</script>'>", "&lt;b&gt;", "<style>*{display:none}</style>",
  ];
  const page = await open(t, "viewer");
  page.on("dialog", (d) => { page.complaints.push(`dialog ${d.message()}`); void d.dismiss(); });
  for (const [i, text] of texts.entries()) {
    const app = await submit(t, `hostile-${i}`, text);
    await page.goto(`${server}/console/#/applications/${app.id}`);
    await page.getByText(text, { exact: false }).first().waitFor();
  }
  assert.equal(await page.locator("main script, main iframe, main img, main style").count(), 0);
  assert.deepEqual(page.complaints, []);
});

test("every page can be reached and used by keyboard", async (t) => {
  const page = await open(t, "viewer");
  for (const [key, heading] of [["c", "Continuum"], ["a", "Applications"], ["p", "Policies"], ["e", "Events"], ["o", "Overview"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.getByRole("heading", { name: heading, exact: true }).waitFor();
  }
  await page.keyboard.press("/");
  await page.keyboard.type("edge-4");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "edge/edge-4" }).waitFor();
  await page.getByRole("application").focus();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("heading", { name: "edge/edge-5" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("This list").waitFor();
  await page.keyboard.press("Escape");
  await page.goto(`${server}/console/#/nowhere`);
  await page.getByRole("heading", { name: "There is no such page" }).waitFor();
});

test("a token that is over leads back to the sign-in", async (t) => {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(`${server}/console/`);
  await page.getByLabel("Access token").fill("not.a.token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The token was refused").waitFor();
});

test("people sign in with a name and a password, stay signed in, and sign out", async (t) => {
  const context = await browser.newContext({ bypassCSP: true }); // axe is injected as a script
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  await page.goto(`${server}/console/#/settings`);
  await page.getByRole("link", { name: "Sign in with your name" }).click();
  await page.getByRole("heading", { name: "Sign in to Littoral" }).waitFor();
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  assert.deepEqual(violations.map((v) => v.id), [], "the issuer's page");
  await page.getByLabel("Name").fill("operator");
  await page.getByLabel("Password").fill("guess");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Password").fill(readFileSync(join(home, "password-operator"), "utf8").trim());
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Settings" }).waitFor(); // where it was to go
  await page.getByText("Roles: operator").waitFor();
  assert.equal(await page.evaluate(() => document.cookie.includes("littoral_session")), false, "scripts cannot read the session");
  await page.reload();
  await page.getByText("Roles: operator").waitFor();

  const post = (headers) => page.evaluate(async (h) => (await fetch("/jobmanager/groups", { method: "POST", body: "a: b", headers: h })).status, headers);
  const csrf = (await context.cookies()).find((c) => c.name === "littoral_csrf").value;
  assert.equal(await post({}), 403, "a change needs the token besides the cookie");
  assert.equal(await post({ "X-CSRF-Token": csrf }), 422, "and is then let through");

  await page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("link", { name: "Sign in with your name" }).waitFor();
  await page.getByRole("link", { name: "Sign in with your name" }).click();
  await page.getByRole("heading", { name: "Sign in to Littoral" }).waitFor(); // the issuer has forgotten him too
});

test("no page has a serious or critical fault of accessibility, in light and dark", async (t) => {
  const app = await submit(t, "accessible");
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(t, "admin", { colorScheme, bypassCSP: true }); // axe is injected as a script
    const policy = (await (await api("admin", "GET", "/polman/registry/api/v1/policies/")).json())[0]?.id;
    const pages = {
      overview: "/", continuum: "/continuum", node: "/continuum/cloud/cloud-1", applications: "/applications", tree: `/applications/${app.id}`,
      why: `/applications/${app.id}/why`, timeline: `/applications/${app.id}/timeline`, revisions: `/applications/${app.id}/revisions`, whatif: "/whatif?drain=cloud/cloud-1", policies: "/policies", deploy: "/deploy", events: "/events",
      dead: "/dead", settings: "/settings", missing: "/nowhere", ...(policy ? { policy: `/policies/${policy}` } : {}),
    };
    await page.evaluate(axe);
    for (const [name, path] of Object.entries(pages)) {
      await page.evaluate((p) => (location.hash = p), path);
      await page.locator("main h1, main h2").first().waitFor();
      await page.waitForFunction(() => !document.querySelector("main")?.textContent.includes("Loading…"));
      await page.screenshot({ path: join(shots, `${name}-${colorScheme}.png`) });
      const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations);
      const bad = found.filter((v) => ["serious", "critical"].includes(v.impact));
      assert.deepEqual(bad.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`), [], `${name} in ${colorScheme}`);
    }
  }
});
