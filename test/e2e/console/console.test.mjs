// The console as people use it. Each test has a browser context of its own; they share one laptop host.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { hostile } from "./hostile.mjs";

const { LITTORAL_SERVER: server, LITTORAL_HOME: home, LITTORAL_MODULES: modules, LITTORAL_SHOTS: shots } = process.env;
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const token = (role) => readFileSync(join(home, `token-${role}`), "utf8").trim();
const patience = 1000 * Number(process.env.LITTORAL_PATIENCE ?? 20); // for a page to show what it is to show

let browser;
before(async () => {
  browser = await chromium.launch({
    timeout: 10 * patience,
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
  page.setDefaultTimeout(patience);
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
async function submit(t, name, more, policies = "") {
  const answer = await api("admin", "POST", "/jobmanager/groups", descriptor(name, more).replace("    manifests:", `${policies}    manifests:`));
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
  await page.getByText("nothing runs here any more").waitFor();
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
  for (const name of ["Stop", "Scale…", "Pin…", "Delete…"]) assert.equal(await page.getByRole("button", { name }).isDisabled(), true, name);
  for (const [method, path] of [["PUT", `/jobmanager/groups/stop/${app.id}`], ["PUT", `/jobmanager/groups/scale/${app.id}?component=web&replicas=2`], ["PUT", `/jobmanager/groups/pin/${app.id}?component=web`], ["DELETE", `/jobmanager/groups/${app.id}?stop=true`], ["POST", "/jobmanager/groups"], ["POST", "/fleet/drain"]]) {
    const status = await page.evaluate(async ([method, path, token]) => (await fetch(path, { method, body: method === "POST" ? "{}" : undefined, headers: { Authorization: `Bearer ${token}` } })).status, [method, path, token("viewer")]);
    assert.equal(status, 403, `${method} ${path}`);
  }
  assert.equal((await fetch(`${server}/events/stream`)).status, 401);
});

test("a component is scaled, fixed to a node and freed again", async (t) => {
  const app = await submit(t, "operated");
  const page = await open(t, "operator");
  await page.goto(`${server}/console/#/applications/${app.id}`);
  await page.getByText("1 of 1 components run").first().waitFor();
  await page.getByRole("button", { name: "Scale…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("(now 1)").waitFor();
  await dialog.getByLabel("Replicas").fill("2");
  await dialog.getByText("littoral scale operated web 2").waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("web gets 2 replicas").waitFor();
  await page.getByText("version 2 by").waitFor();

  await page.getByRole("button", { name: "Pin…" }).click();
  await dialog.getByLabel("Node").fill("edge/nowhere");
  await dialog.getByText("There is no such node.").waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Pin", exact: true }).isDisabled(), true);
  await dialog.getByLabel("Node").fill("edge/edge-3");
  await dialog.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByText("version 3 by").waitFor();
  await page.getByRole("link", { name: "edge/edge-3" }).first().waitFor();
  const { descriptor } = await (await api("viewer", "GET", `/jobmanager/groups/${app.id}/revisions/3`)).json();
  assert.match(descriptor, /edge-3/);

  await page.getByRole("button", { name: "Pin…" }).click();
  await dialog.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByText("web may go anywhere").waitFor();
  await page.getByText("version 4 by").waitFor();
  assert.deepEqual(page.complaints, []);
});

test("the continuum is a graph whose list can be walked by keys, and asks what if a component ran elsewhere", async (t) => {
  const app = await submit(t, "carried");
  const page = await open(t, "operator");
  await page.goto(`${server}/console/#/applications/${app.id}`);
  await page.getByText("1 of 1 components run").first().waitFor();
  await page.goto(`${server}/console/#/continuum?view=graph`);
  const tree = page.getByRole("tree");
  const component = tree.getByRole("treeitem", { name: /carried\/web/ });
  await component.waitFor();
  await component.focus();
  await page.keyboard.press("m");
  await page.getByText("Where would carried/web go?").waitFor();
  await page.keyboard.press("Home"); // the controller
  await page.keyboard.press("ArrowDown"); // its first cluster
  await page.keyboard.press("ArrowLeft"); // which closes
  const cluster = tree.locator("[aria-level='2']").first();
  assert.equal(await cluster.getAttribute("aria-expanded"), "false");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown"); // its first node
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "What if", exact: true }).waitFor();
  await page.getByText(/applications looked at/).waitFor();
  await page.getByRole("button", { name: "Fix it there" }).click();
  await page.getByText(/web is fixed to/).waitFor();
  assert.deepEqual(page.complaints, []);
});

test("a component that is drawn onto a node with the pointer asks what if it ran there", async (t) => {
  const app = await submit(t, "drawn");
  const page = await open(t, "operator");
  await page.goto(`${server}/console/#/applications/${app.id}`);
  await page.getByText("1 of 1 components run").first().waitFor();
  await page.goto(`${server}/console/#/continuum?view=graph`);
  await page.getByRole("treeitem", { name: /drawn\/web/ }).waitFor();
  await page.waitForFunction(() => document.querySelector(".graph")?.sigma?.getGraph().findNode((id, a) => a.drag && /drawn/.test(a.label + id)));
  const ends = await page.evaluate(() => {
    const host = document.querySelector(".graph"), g = host.sigma.getGraph(), box = host.getBoundingClientRect();
    const at = (id) => { const p = host.sigma.graphToViewport(g.getNodeAttributes(id)); return { id, x: box.left + p.x, y: box.top + p.y }; };
    const from = at(g.findNode((id, a) => a.drag && /drawn/.test(a.label + id)));
    const onto = g.filterNodes((id, a) => a.drop).map(at).filter((p) => Math.hypot(p.x - from.x, p.y - from.y) > 80)[0];
    return { from, onto };
  });
  await page.mouse.move(ends.from.x, ends.from.y);
  await page.mouse.down();
  await page.mouse.move((ends.from.x + ends.onto.x) / 2, (ends.from.y + ends.onto.y) / 2, { steps: 5 });
  await page.mouse.move(ends.onto.x, ends.onto.y, { steps: 5 });
  await page.mouse.up();
  await page.getByRole("heading", { name: "What if", exact: true }).waitFor();
  await page.getByText(/applications looked at/).waitFor();
  assert.deepEqual(page.complaints, []);
});

test("logs go on over a move, with a rule where it was", async (t) => {
  const app = await submit(t, "wrote");
  const page = await open(t, "admin");
  await page.goto(`${server}/console/#/applications/${app.id}`);
  await page.getByText("1 of 1 components run").first().waitFor();
  await page.goto(`${server}/console/#/applications/${app.id}/logs`);
  const log = page.getByRole("log");
  await log.locator(".from").first().waitFor();
  const place = await log.locator(".from").first().getAttribute("title");
  const other = place.startsWith("edge/edge-2") ? "edge-3" : "edge-2";
  await api("operator", "PUT", `/jobmanager/groups/pin/${app.id}?component=web&cluster=edge&node=${other}`);
  await log.locator(".move", { hasText: other }).waitFor();
  await log.locator(`.move ~ p .from[title^="edge/${other} "]`).first().waitFor();
  await page.getByLabel("Contains").fill("no line has this in it");
  await log.locator(".from").first().waitFor({ state: "detached" });
  assert.deepEqual(page.complaints, []);
  const stranger = await open(t, "viewer");
  await stranger.goto(`${server}/console/#/applications/${app.id}/logs`);
  await stranger.getByRole("alert").getByText(/is for who handed it in/).waitFor();
});

test("charts show what is used, and what policies watch with their limits", async (t) => {
  const answer = await api("admin", "POST", "/jobmanager/groups", descriptor("measured").replace("    manifests:", "    policies: [{name: busy, type: custom, fromTemplate: app-host-cpu-usage-perc, variables: {threshold: 0.97}, remediation: none}]\n    manifests:"));
  assert.equal(answer.status, 201, await answer.clone().text());
  const app = await answer.json();
  t.after(() => api("admin", "DELETE", `/jobmanager/groups/${app.id}?stop=true`));
  const page = await open(t, "admin");
  await page.goto(`${server}/console/#/applications/${app.id}`);
  await page.getByText("1 of 1 components run").first().waitFor();
  const shown = (title) => page.getByRole("figure", { name: title }).or(page.locator("figure", { hasText: title }));
  for (const title of ["Processor by component, in cores", "Memory by component", "How busy the processors of its nodes are", "(limit 0.97)"]) {
    // Series appear as they are measured: the page is opened until there are some.
    for (let i = 0; i < 30 && !(await shown(title).count()); i++) {
      await page.goto(`${server}/console/#/applications/${app.id}`);
      await page.goto(`${server}/console/#/applications/${app.id}/charts`);
      await page.getByText("What its policies watch").waitFor();
      await shown(title).first().waitFor({ timeout: 5000 }).catch(() => {});
    }
    await shown(title).locator("canvas").first().waitFor();
    assert.match(await shown(title).locator("tbody td.number").first().textContent(), /\d/, title);
  }
  assert.deepEqual(page.complaints, []);
});

test("a limit that is dragged is tried out over what was measured, and nothing is stored", async (t) => {
  const answer = await api("admin", "POST", "/jobmanager/groups", descriptor("limited").replace("    manifests:", "    policies: [{name: busy, type: custom, fromTemplate: app-host-cpu-usage-perc, variables: {threshold: 0.97}, remediation: redeploy}]\n    manifests:"));
  const app = await answer.json();
  t.after(() => api("admin", "DELETE", `/jobmanager/groups/${app.id}?stop=true`));
  const page = await open(t, "operator");
  const list = async () => (await api("viewer", "GET", `/polman/registry/api/v1/policies/?app=${app.id}`)).json();
  await page.goto(`${server}/console/#/applications/${app.id}`);
  await page.getByText("1 of 1 components run").first().waitFor();
  await page.goto(`${server}/console/#/policies/${(await list())[0].id}`);
  const slider = page.getByRole("slider", { name: "Drag threshold" });
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByText(/it would have fired \d+ times/).waitFor();
  assert.equal(await page.getByLabel("threshold", { exact: true }).inputValue(), "0.96");
  await page.keyboard.press("Home"); // which is 0, so that anything violates it
  await page.getByText(/Each would move web away from|web has nowhere to go/).first().waitFor();
  assert.equal((await list())[0].variables.threshold, 0.97);
  assert.deepEqual(page.complaints, []);
});

test("a suggested remediation is done by a click, and another is dismissed", async (t) => {
  // Any use of the processor violates it, so the alert is real.
  const answer = await api("admin", "POST", "/jobmanager/groups", descriptor("advised").replace("    manifests:", "    policies: [{name: busy, type: custom, fromTemplate: app-host-cpu-usage-perc, variables: {threshold: 0}, remediation: redeploy, confirm: true}]\n    manifests:"));
  assert.equal(answer.status, 201, await answer.clone().text());
  const app = await answer.json();
  t.after(() => api("admin", "DELETE", `/jobmanager/groups/${app.id}?stop=true`));
  const page = await open(t, "operator");
  await page.goto(`${server}/console/#/applications/${app.id}`);
  const where = async () => (await (await api("viewer", "GET", `/jobmanager/groups/${app.id}`)).json()).jobs[0].targets.node_name;
  const doIt = page.getByRole("button", { name: "Do it: reallocate advised/web" });
  await doIt.waitFor();
  await page.getByText("Suggested, and waiting for you").waitFor();
  const first = await where();
  await doIt.click();
  await page.getByText("reallocate advised/web follows").waitFor();
  await page.goto(`${server}/console/#/applications/${app.id}/timeline`);
  await page.getByText(/reallocate is confirmed by/).first().waitFor();
  // It is busy where it is now, too.
  const dismiss = page.getByRole("button", { name: "Dismiss: reallocate advised/web" });
  await dismiss.waitFor();
  const second = await where();
  assert.notEqual(second, first);
  await dismiss.click();
  await page.getByText("reallocate advised/web is dismissed").waitFor();
  await dismiss.waitFor({ state: "detached" });
  assert.equal(await where(), second);
  assert.deepEqual(page.complaints, []);
});

test("nodes are coloured by what the choice of a component says of them", async (t) => {
  const app = await submit(t, "judged");
  const page = await open(t, "viewer");
  await page.goto(`${server}/console/#/continuum?view=graph`);
  await page.getByRole("treeitem", { name: /judged\/web/ }).click();
  await page.getByText("a constraint fails").waitFor();
  assert.match(await page.getByLabel("or where may it run").inputValue(), new RegExp(app.id));
  const lines = () => page.evaluate(() => { const g = document.querySelector(".graph").sigma.getGraph(); return g.filterNodes((id, a) => a.drop).map((id) => g.getNodeAttribute(id, "lines").join(" ")); });
  assert.ok((await lines()).some((l) => /chosen, [\d.]+ points: performance/.test(l)), "one says that it is chosen, with the terms of its score");
});

test("the form and the text of a descriptor say the same", async (t) => {
  const page = await open(t, "operator");
  await page.goto(`${server}/console/#/deploy?as=form`);
  const part = page.getByRole("group", { name: "Component web" });
  await part.getByLabel("Processor").fill("300m");
  await part.getByLabel("Memory").fill("96Mi");
  await page.getByLabel("Add a policy").selectOption({ label: "Security of the node" });
  await page.getByRole("button", { name: "Add a component" }).click();
  await page.getByRole("group", { name: "Component part-2" }).getByLabel("Replicas").fill("2");
  await page.getByLabel("Name").first().fill("formed");
  await page.keyboard.press("Tab");
  await page.getByText(/to change in a new application formed/).waitFor();
  await page.getByRole("radio", { name: "Text" }).check();
  const editor = page.getByLabel("Descriptor");
  const shown = await editor.evaluate((content) => { // all of it: the page has only the lines that are in view
    const tile = content.cmTile ?? content.cmView;
    return (tile.view ?? tile.rootView?.view ?? tile.root?.view).state.doc.toString();
  });
  for (const line of ["name: formed", "cpu: 300m", "memory: 96Mi", "level: high", "name: part-2"]) assert.ok(shown.includes(line), `${line} in ${shown}`);
  await editor.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText("policies: [{type: scheduler, energy: 1}]\n");
  await page.getByRole("radio", { name: "Form" }).check();
  await page.getByText("The text cannot be read as YAML").waitFor(); // it has policies twice now
  assert.deepEqual(page.complaints, []);
});

test("every example is a descriptor that is accepted", async (t) => {
  const page = await open(t, "viewer");
  await page.goto(`${server}/console/#/deploy`);
  await page.getByText(/to change in a new application/).waitFor();
  const example = page.getByLabel("Example");
  const names = await example.locator("option").allTextContents();
  assert.ok(names.length >= 14, `${names.length} examples`);
  for (const name of [...names.slice(1), names[0]]) {
    const answered = page.waitForResponse((r) => r.url().includes("/matchmaker/plan"));
    await example.selectOption({ label: name });
    const answer = await answered;
    assert.equal(answer.status(), 200, `${name}: ${await answer.text()}`);
    await page.getByText(/to change in a new application/).waitFor();
  }
  assert.deepEqual(page.complaints, []);
});

test("what would let a component fit is planned by one click", async (t) => {
  const answer = await api("admin", "POST", "/jobmanager/groups", descriptor("greedy").replace("cpu: 250m", "cpu: 900"));
  const app = await answer.json();
  t.after(() => api("admin", "DELETE", `/jobmanager/groups/${app.id}?stop=true`));
  const page = await open(t, "operator");
  await page.goto(`${server}/console/#/applications/${app.id}/why`);
  await page.getByText(/Would fit if/).waitFor();
  await page.getByRole("link", { name: "Plan that" }).click();
  await page.getByText("Changed so that it would fit").waitFor();
  await page.getByText(/to change in the running application greedy/).waitFor();
  assert.ok(!(await page.getByLabel("Descriptor").innerText()).includes("cpu: 900"));
  await page.getByRole("button", { name: "Apply", exact: true }).click();
  await page.getByText("Available", { exact: true }).first().waitFor();
  assert.deepEqual(page.complaints, []);
});

test("the slider of the timeline shows where everything was then, against now", async (t) => {
  const app = await submit(t, "wandered");
  const page = await open(t, "operator");
  await page.goto(`${server}/console/#/applications/${app.id}`);
  await page.getByText("1 of 1 components run").first().waitFor();
  const place = () => api("viewer", "GET", `/jobmanager/groups/${app.id}`).then((r) => r.json()).then((a) => a.jobs.find((j) => !j.cleans && j.state === "Finished" && j.owner_id)?.targets);
  const first = await place();
  const other = first.cluster_name === "edge" && first.node_name === "edge-2" ? "edge-3" : "edge-2";
  await api("operator", "PUT", `/jobmanager/groups/pin/${app.id}?component=web&cluster=edge&node=${other}`);
  await page.goto(`${server}/console/#/applications/${app.id}/timeline`);
  await page.getByRole("link", { name: `edge/${other}` }).first().waitFor();
  const before = page.getByRole("button", { name: "◀ Decision" });
  while (await before.isEnabled()) await before.click();
  await page.getByRole("row", { name: new RegExp(`web ${first.cluster_name}/${first.node_name}.*edge/${other}`) }).waitFor();
  const slider = page.getByRole("slider", { name: "Time" });
  await slider.focus();
  await page.keyboard.press("End"); // which is now
  await page.getByText("(elsewhere)").waitFor({ state: "detached" });
  assert.deepEqual(page.complaints, []);
});

test("the graph of metadata shows what surrounds an entity", async (t) => {
  const name = (n) => `00000000-0000-4000-8000-00000000000${n}`;
  const event = (payload) => ({ connector_edf_id: name(9), connector_type: "test", event_type: "upsert", timestamp: 1777888800, payload });
  const published = await fetch(`${server}/mdm/publish/event`, {
    method: "POST", headers: { Authorization: `Bearer ${token("admin")}`, "Content-Type": "application/json" },
    body: JSON.stringify([
      event({ json_schema_ref: "urn:codeco:camera:1", edf_id: name(1), identifier: "gate-camera", zone: "north" }),
      event({ json_schema_ref: "urn:codeco:dataset:1", edf_id: name(2), identifier: "frames", size: 12 }),
      event({ json_schema_ref: "urn:codeco:WRITES:1", from_edf_id: name(1), to_edf_id: name(2) }),
    ]),
  });
  assert.equal(published.status, 200, await published.text());
  const page = await open(t, "viewer");
  await page.goto(`${server}/console/#/metadata/camera`);
  await page.getByRole("link", { name: "gate-camera" }).click();
  await page.getByRole("heading", { name: "gate-camera" }).waitFor();
  await page.getByRole("row", { name: "gate-camera WRITES frames" }).waitFor();
  await page.waitForFunction(() => document.querySelector(".graph")?.sigma?.getGraph().order === 2);
  await page.getByRole("button", { name: "frames" }).click();
  await page.getByRole("heading", { name: "frames" }).waitFor();
  assert.deepEqual(page.complaints, []);
});

test("channels are shown with their ways, and why an end of one moved", async (t) => {
  // The front fits on cloud-4 alone, which has 32 cores, and the back not beside it, so the channel has to lead to another node of the
  // cloud. On each of them there is room for what the tests before leave behind for a moment.
  const needs = (cpu, more = "") => `podspec: {containers: [{name: c, image: "example/c:1", resources: {requests: {cpu: "${cpu}"}}}]}${more}`;
  const network = (narrow) => `networkImplementation: CONSOLE\nnodes: [{name: cloud-1}, {name: cloud-2}, {name: cloud-4}]\nlinks: [${
    ["cloud-1", "cloud-2"].flatMap((n) => [["cloud-4", n], [n, "cloud-4"]]).map(([source, target]) =>
      `{source: ${source}, target: ${target}, capabilities: {bandWidthBits: ${target === narrow ? "5M" : "100M"}, latencyNanos: "2e6"}}`).join(", ")}]\n`;
  t.after(async () => {
    await api("admin", "DELETE", "/acm/apps/default/channelled");
    for (const end = Date.now() + patience; Date.now() < end && (await api("admin", "DELETE", "/swm/topologies/console")).status === 409;) {
      await new Promise((then) => setTimeout(then, 200)); // its application has to be gone
    }
  });
  assert.equal((await api("admin", "PUT", "/swm/topologies/console", network())).status, 200);
  const descriptor = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: channelled}
spec:
  performanceProfile: Greenness
  codecoapp-msspec:
  - serviceName: front
    ${needs(24, "\n    serviceChannels:\n    - {channelName: frames, otherService: {serviceName: back}, advancedChannelSettings: {minBandwidth: 20M, maxDelay: 10e-3}}")}
  - serviceName: back
    ${needs(9)}
`;
  // While the front has no room, the back would be placed alone, and keep it from that.
  for (const end = Date.now() + 2 * patience; Date.now() < end;) {
    const { plan } = await (await api("viewer", "POST", "/matchmaker/explain", descriptor)).json();
    if (plan?.placed === 2) break;
  }
  // What is measured of a node may still be of pods of the tests before. An application that was placed in part by that is handed in again.
  let channel;
  for (const end = Date.now() + 2 * patience; !channel?.path && Date.now() < end;) {
    const handed = await api("admin", "POST", "/acm/apps", descriptor);
    assert.ok([201, 409].includes(handed.status), await handed.text()); // the former is not gone yet
    for (const soon = Date.now() + 10_000; handed.status === 201 && !channel?.path && Date.now() < soon;) {
      channel = (await (await api("viewer", "GET", "/swm/channels")).json()).find((c) => c.name === "frames");
    }
    if (handed.status === 201 && !channel?.path) await api("admin", "DELETE", "/acm/apps/default/channelled");
  }
  const why = async () => (await api("viewer", "POST", `/matchmaker/explain?app=${channel?.application}`)).text();
  assert.match(channel?.path ?? "nowhere", /^cloud-4-cloud-[12]$/, channel?.path ? undefined : await why());
  const page = await open(t, "viewer", { bypassCSP: true });
  await page.goto(`${server}/console/#/applications/${channel.application}/why`);
  await page.getByRole("heading", { name: "Channels" }).waitFor();
  const row = page.getByRole("row", { name: "frames" });
  for (const text of [channel.path, "CONSOLE", "20 Mbit/s", "bears 10 ms"]) await row.getByText(text, { exact: true }).waitFor();
  await row.getByRole("cell", { name: /^2 ms/ }).waitFor();

  assert.equal((await api("admin", "PUT", "/swm/topologies/console", network(channel.path.slice(-"cloud-1".length)))).status, 200);
  await page.getByRole("listitem").filter({ hasText: "because channel frames is out of QoS" }).filter({ hasText: "back on cloud/cloud-" }).waitFor();
  await row.getByText(channel.path, { exact: true }).waitFor({ state: "detached" });
  await page.evaluate(axe);
  for (const [name, colorScheme, width] of [["light", "light", 1360], ["dark", "dark", 1360], ["tablet", "light", 820]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 1180 });
    await page.screenshot({ path: join(shots, `channels-${name}.png`) });
    const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations);
    assert.deepEqual(found.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id), [], name);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `it fits ${width}`);
  }
});

test("controllers that the lighthouse knows are listed with their health", async (t) => {
  const registered = await fetch(`${server}/api/v3/controller/`, {
    method: "POST", body: JSON.stringify({ name: "harbour", address: "http://127.0.0.1:9" }),
    headers: { Authorization: `Bearer ${token("admin")}`, "Content-Type": "application/json" },
  });
  assert.ok(registered.ok, String(registered.status));
  const page = await open(t, "viewer");
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await page.getByRole("heading", { name: "Controllers", exact: true }).waitFor();
  await page.getByRole("row", { name: /harbour http:\/\/127.0.0.1:9/ }).waitFor();
  assert.deepEqual(page.complaints, []);
});

test("lists of several pages are shown whole", async (t) => {
  for (const name of ["paged-a", "paged-b", "paged-c"]) await submit(t, name);
  const page = await open(t, "viewer");
  let pages = 0;
  await page.route(/\/jobmanager\/groups\?/, (route) => {
    pages++;
    return route.continue({ url: route.request().url().replace("limit=1000", "limit=2") });
  });
  await page.goto(`${server}/console/#/applications`);
  await page.reload();
  for (const name of ["paged-a", "paged-b", "paged-c"]) await page.getByRole("link", { name, exact: true }).waitFor();
  assert.ok(pages > 1, "it has one page");
  assert.deepEqual(page.complaints, []);
});

test("a part that cannot be read hides no other, and is there when it can be read again", async (t) => {
  const page = await open(t, "viewer");
  let broken = true;
  await page.route(/\/jobmanager\/groups\?/, (route) => (broken ? route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify({ title: "broken", detail: "it is broken on purpose" }) }) : route.continue()));
  await page.route(/\/polman\/registry\/api\/v1\/policies/, () => {}); // which is never answered
  await page.reload();
  await page.getByText("4 nodes · 72 cores").waitFor();
  await page.getByText("The applications could not be read: it is broken on purpose.").first().waitFor();
  assert.equal(await page.getByRole("alert").count(), 0, "the connection is there");
  await page.screenshot({ path: join(shots, "failed-light.png") });
  await page.goto(`${server}/console/#/continuum/cloud/cloud-1`);
  await page.getByRole("heading", { name: "cloud/cloud-1" }).waitFor();
  await page.getByText("zone=core").waitFor();
  await page.locator(".cells[data-nodes='12'] canvas").waitFor();
  broken = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("No component of an application.").waitFor();
  await page.getByText("could not be read").waitFor({ state: "detached" });
  assert.deepEqual(page.complaints, []);
});

test("what changes is read by itself, and each list once", async (t) => {
  const app = await submit(t, "itself");
  const page = await open(t, "viewer");
  const asked = [];
  page.on("request", (r) => /jobmanager\/groups|policies|aggregator/.test(r.url()) && asked.push(new URL(r.url())));
  await page.goto(`${server}/console/#/continuum`);
  await page.reload();
  await page.locator(".cells[data-nodes='12'] canvas").waitFor();
  await page.getByRole("option", { name: "itself/web" }).waitFor({ state: "attached" });
  const lists = () => asked.filter((u) => u.pathname === "/jobmanager/groups" && !u.searchParams.has("app")).length;
  assert.equal(lists(), 1);
  assert.equal(asked.filter((u) => /policies/.test(u.pathname)).length, 0, "this page shows no policies");
  assert.ok(asked.filter((u) => u.pathname === "/aggregator/").every((u) => !/labels|location|pod/.test(u.searchParams.get("keys"))), "this page shows none of these");
  await page.goto(`${server}/console/#/applications`);
  await page.getByRole("row", { name: /itself.*Available/ }).waitFor();
  await api("admin", "PUT", `/jobmanager/groups/stop/${app.id}`);
  await page.getByRole("row", { name: /itself.*Stopp/ }).waitFor();
  assert.equal(lists(), 1, "the list was read once");
  assert.ok(asked.some((u) => u.searchParams.get("app")?.split(",").includes(app.id)));
  await api("admin", "DELETE", `/jobmanager/groups/${app.id}?stop=true`);
  await page.getByRole("link", { name: "itself", exact: true }).waitFor({ state: "detached" });
  assert.equal(lists(), 1);
  assert.deepEqual(page.complaints, []);
});

test("of a thousand applications those are drawn that are to be seen", async (t) => {
  await submit(t, "many");
  const page = await open(t, "viewer");
  await page.route(/\/jobmanager\/groups\?/, async (route) => {
    const answer = await route.fetch();
    const all = await answer.json();
    const one = all.find((a) => a.appName === "many");
    if (!one || new URL(route.request().url()).searchParams.has("app")) return route.fulfill({ response: answer });
    const more = Array.from({ length: 1000 }, (_, i) => ({ ...one, id: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`, appName: `one-of-many-${i}`, jobs: [] }));
    return route.fulfill({ response: answer, json: more });
  });
  await page.goto(`${server}/console/#/applications`);
  await page.reload();
  await page.getByRole("link", { name: "one-of-many-0", exact: true }).waitFor();
  const table = page.getByRole("table");
  assert.equal(await table.getAttribute("aria-rowcount"), "1001");
  assert.ok(await table.locator("tbody tr").count() < 200);
  await page.screenshot({ path: join(shots, "many-light.png") });
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  const last = page.getByRole("link", { name: "one-of-many-999", exact: true });
  await last.waitFor();
  assert.equal(await last.locator("xpath=ancestor::tr").getAttribute("aria-rowindex"), "1001");
  assert.ok(await table.locator("tbody tr").count() < 200);
  // By the keyboard, too: what has the focus stays there, and the next row is there to go to.
  await last.focus();
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("Shift+Tab");
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))); // nobody types faster
  }
  await page.waitForFunction(() => document.activeElement?.textContent === "one-of-many-959");
  await page.getByLabel("Filter by name").fill("many-77");
  await page.getByRole("link", { name: "one-of-many-770", exact: true }).waitFor();
  assert.equal(await table.getAttribute("aria-rowcount"), "12");
  assert.deepEqual(page.complaints, []);
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
  await page.getByRole("alert").waitFor({ timeout: 2 * patience });
  await submit(t, "missed");
  await page.context().setOffline(false);
  await page.getByRole("link", { name: "missed" }).first().waitFor({ timeout: 2 * patience });
  await page.getByRole("alert").waitFor({ state: "detached" });
});

test("a host that is restarted is found again, and the pages go on", async (t) => {
  const page = await open(t, "viewer");
  const app = await submit(t, "outlives");
  await page.goto(`${server}/console/#/applications`);
  await page.getByRole("row", { name: /outlives.*Available/ }).waitFor();
  const host = () => Number(readFileSync(join(home, "pid"), "utf8"));
  const first = host();
  // A host that is back within the two seconds after which the page asks again is not missed by anybody, so this one stays away.
  const away = join(home, "away");
  t.after(() => rmSync(away, { force: true }));
  writeFileSync(away, "");
  process.kill(first, "SIGINT");
  await page.getByRole("alert").waitFor({ timeout: 3 * patience });
  rmSync(away);
  await page.getByRole("alert").waitFor({ state: "detached", timeout: 6 * patience });
  assert.notEqual(host(), first);
  await api("admin", "PUT", `/jobmanager/groups/stop/${app.id}`);
  await page.getByRole("row", { name: /outlives.*Stopp/ }).waitFor();
  assert.deepEqual(page.complaints, []);
});

/** watch lets a page complain about scripts that run and elements that texts became. */
function watch(page) {
  page.on("dialog", (d) => { page.complaints.push(`dialog ${d.message()}`); void d.dismiss(); });
  return () => page.locator("main script, main iframe, main img, main style, main object, main embed, main base, main meta, main link").count();
}

test("hostile texts in applications and what happens to them are shown as text", async (t) => {
  const page = await open(t, "viewer");
  const strangers = watch(page);
  const each = 12; // texts of one description
  for (let i = 0; i < hostile.length; i += each) {
    const texts = hostile.slice(i, i + each);
    const app = await submit(t, `hostile-${i}`, texts.join(" | "));
    await page.goto(`${server}/console/#/applications/${app.id}`);
    await page.getByRole("heading", { name: app.appName }).waitFor();
    const shown = await page.locator("main").textContent();
    for (const text of texts) assert.ok(shown.includes(text.replace(/\s+/g, " ")) || shown.replace(/\s+/g, " ").includes(text.replace(/\s+/g, " ")), JSON.stringify(text));
  }
  await page.goto(`${server}/console/#/events`);
  await page.getByRole("heading", { name: "Events" }).waitFor();
  assert.equal(await strangers(), 0);
  assert.deepEqual(page.complaints, []);
});

test("hostile texts in names and attributes of metadata are shown as text", async (t) => {
  const id = (n) => `00000000-0000-4000-8000-0000000${String(10000 + n)}`;
  const published = await fetch(`${server}/mdm/publish/event`, {
    method: "POST", headers: { Authorization: `Bearer ${token("admin")}`, "Content-Type": "application/json" },
    body: JSON.stringify(hostile.map((text, n) => ({
      connector_edf_id: id(0), connector_type: "hostile", event_type: "upsert", timestamp: 1777888800,
      payload: { json_schema_ref: "urn:codeco:hostile:1", edf_id: id(n + 1), identifier: `${n} ${text}`, label: text },
    }))),
  });
  assert.equal(published.status, 200, await published.text());
  const page = await open(t, "viewer");
  const strangers = watch(page);
  await page.goto(`${server}/console/#/metadata/hostile`);
  const links = page.locator("section .list a");
  await links.first().waitFor();
  const shown = (await links.allTextContents()).join("\n").replace(/[ \t]+/g, " ");
  for (const [n, text] of hostile.entries()) assert.ok(shown.includes(`${n} ${text}`.replace(/[ \t\n]+/g, " ")) || shown.replace(/\s+/g, " ").includes(`${n} ${text}`.replace(/\s+/g, " ")), JSON.stringify(text));
  for (const n of [0, 20, 60, 100]) {
    await links.nth(n).click();
    await page.waitForFunction(() => document.querySelector(".graph")?.sigma);
  }
  assert.equal(await strangers(), 0);
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
  page.setDefaultTimeout(patience);
  const refused = page.getByText("The token was refused");
  const late = [];
  let first = true;
  await page.route("**", async (route) => { // one request is answered at once, those beside it after the page has said so
    if (!route.request().headers().authorization || first) {
      first &&= !route.request().headers().authorization;
      return route.continue();
    }
    late.push(route.request());
    await refused.waitFor();
    return route.continue();
  });
  await page.goto(`${server}/console/`);
  await page.getByLabel("Access token").fill("not.a.token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await refused.waitFor();
  assert.ok(late.length > 0, "more than one request was on its way");
  for (const request of late) assert.equal((await request.response())?.status(), 401);
  await page.evaluate(() => new Promise(requestAnimationFrame)); // the page has its answers,
  await page.evaluate(() => navigator.locks.request("littoral-refresh", () => {})); // and refreshes nothing because of them
  await page.evaluate(() => new Promise(requestAnimationFrame));
  assert.equal(await refused.count(), 1);
});

test("people sign in with a name and a password, stay signed in, and sign out", async (t) => {
  const context = await browser.newContext({ bypassCSP: true }); // axe is injected as a script
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
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

  const left = page.waitForEvent("load"); // by the issuer
  await page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
  await left;
  await page.getByRole("link", { name: "Sign in with your name" }).click();
  await page.getByRole("heading", { name: "Sign in to Littoral" }).waitFor(); // the issuer has forgotten him too
});

test("no page has a serious or critical fault of accessibility, in light and dark, or is wider than a tablet", async (t) => {
  const app = await submit(t, "accessible", "", "    policies: [{name: trust, fromTemplate: app-sca-score, variables: {threshold: 1}, remediation: reallocate}]\n");
  let policy;
  for (const end = Date.now() + patience; !policy && Date.now() < end;) { // it is made by a reaction
    policy = (await (await api("admin", "GET", "/polman/registry/api/v1/policies/")).json()).find((p) => p.subject.appInstance === app.id)?.id;
  }
  assert.ok(policy, "the application has its policy");
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(t, "admin", { colorScheme, bypassCSP: true }); // axe is injected as a script
    const pages = {
      overview: "/", continuum: "/continuum", node: "/continuum/cloud/cloud-1", applications: "/applications", tree: `/applications/${app.id}`,
      why: `/applications/${app.id}/why`, timeline: `/applications/${app.id}/timeline`, revisions: `/applications/${app.id}/revisions`, logs: `/applications/${app.id}/logs`, charts: `/applications/${app.id}/charts`, whatif: "/whatif?drain=cloud/cloud-1", policies: "/policies", deploy: "/deploy", events: "/events",
      dead: "/dead", controllers: "/controllers", graph: "/continuum?view=graph", form: "/deploy?as=form", metadata: "/metadata", settings: "/settings", missing: "/nowhere", policy: `/policies/${policy}`,
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
      if (colorScheme === "light") {
        const { width, height } = page.viewportSize();
        await page.setViewportSize({ width: 820, height: 1180 });
        await page.screenshot({ path: join(shots, `${name}-tablet.png`) });
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} fits a tablet`);
        assert.ok((await page.getByRole("navigation").boundingBox()).height < 150, `${name} has the menu in two lines`);
        await page.setViewportSize({ width, height });
      }
    }
  }
});
