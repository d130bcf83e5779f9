// What the console costs at 5,000 nodes and 1,000 applications, printed as a table. "make bench-console" starts the host; it needs a
// machine that does nothing else.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { loadavg } from "node:os";
import { join } from "node:path";

const { LITTORAL_SERVER: server, LITTORAL_HOME: home, LITTORAL_MODULES: modules } = process.env;
const nodes = Number(process.env.NODES ?? 5000);
const applications = Number(process.env.APPLICATIONS ?? 1000);
const events = Number(process.env.EVENTS ?? 900); // changes, of which each has several entries of history
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");
const token = readFileSync(join(home, "token-admin"), "utf8").trim();
const patience = 1000 * Number(process.env.LITTORAL_PATIENCE ?? 120);

const call = async (method, path, body) => {
  const answer = await fetch(server + path, { method, body, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/yaml" } });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? undefined : answer.json();
};
const descriptor = (name) => `name: ${name}
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 10m, memory: 8Mi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
`;
const at = (list, share) => list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(share * list.length))];
// Each figure with the load of the machine over the last minute, since it may have other work.
const row = (what, value, goal = "") => console.log(`| ${what} | ${value} | ${goal} | ${loadavg()[0].toFixed(1)} |`);
/** part measures one thing; what cannot be measured is said in its row. */
async function part(what, measure) {
  try {
    await measure();
  } catch (e) {
    row(what, `not measured: ${String(e.message).split("\n")[0]}`);
  }
}
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, so) {
  for (const end = Date.now() + 10 * patience; Date.now() < end; await wait(500)) if (await so().catch(() => false)) return;
  throw new Error(`it never came to that: ${what}`);
}

/** open signs in with a new context, and goes to a page. */
async function open(browser, page) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 850 } });
  const p = await context.newPage();
  p.setDefaultTimeout(patience);
  await p.goto(`${server}/console/#token=${token}`);
  await p.getByRole("heading", { name: "Overview" }).waitFor();
  await p.goto(`${server}/console/${page}`);
  return p;
}

/** painted is the time from the beginning of the document until the cells of all nodes are drawn, in ms. */
const painted = (page) => page.evaluate(async (nodes) => {
  const drawn = () => {
    const cells = document.querySelector(".cells"), canvas = cells?.querySelector("canvas");
    if (!canvas || canvas.height < 20 || Number(cells.dataset.nodes) < nodes) return false;
    const some = canvas.getContext("2d").getImageData(0, canvas.height - 40, canvas.width, 40).data; // the last of them
    return some.some((v, i) => i % 4 === 3 && v > 0);
  };
  while (!drawn()) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now();
}, nodes);

await until(`${nodes} nodes are seen`, async () => {
  const seen = await call("GET", "/aggregator/?keys=name");
  return Object.values(seen.cluster).reduce((n, c) => n + Object.keys(c.node ?? {}).length, 0) >= nodes;
});
/** submit hands an application in, again where the host was too busy: the same key makes it the same application. */
async function submit(name) {
  for (const end = Date.now() + 10 * patience; ; await wait(1000)) {
    const answer = await fetch(server + "/jobmanager/groups", {
      method: "POST", body: descriptor(name), headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/yaml", "Idempotency-Key": name },
    });
    if (answer.ok) return answer.json();
    if (answer.status !== 503 || Date.now() > end) throw new Error(`${name}: ${answer.status} ${await answer.text()}`);
  }
}
const apps = [];
for (let i = 0; i < applications; i += 10) {
  apps.push(...await Promise.all(Array.from({ length: 10 }, (_, k) => submit(`app-${i + k}`))));
}
// Their placement is no part of what is measured.
await until("all of them are placed", async () => (await call("GET", "/jobmanager/jobs?state=Created&manifests=false&limit=1")).length === 0);
console.log(`\n|  | ${nodes} nodes, ${apps.length} applications | goal | load |\n|---|---|---|---|`);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", timeout: patience,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--enable-precise-memory-info"],
});
try {
  const page = await open(browser, "#/continuum");
  await part("Continuum", async () => {
    const paints = [];
    for (let i = 0; i < 5; i++) {
      await page.reload({ waitUntil: "commit" });
      paints.push(await painted(page));
    }
    row("Continuum, from the request of the page to all cells, median of 5", `${at(paints, 0.5).toFixed(0)} ms`, "1500 ms");
    const bytes = await page.evaluate(() => performance.getEntriesByType("resource").filter((r) => /\.js$/.test(r.name)).reduce((n, r) => n + r.encodedBodySize, 0));
    row("JavaScript of the page, compressed", `${(bytes / 1024).toFixed(0)} KiB`, "300 KB");
  });
  await part("interaction", async () => {
    // Interactions: choose cells, and write into the search.
    await page.evaluate(() => {
      window.took = [];
      new PerformanceObserver((list) => { for (const e of list.getEntries()) if (e.interactionId) window.took.push(e.duration); }).observe({ type: "event", durationThreshold: 16, buffered: true });
    });
    const box = await page.locator(".cells canvas").boundingBox();
    for (let i = 0; i < 20; i++) {
      await page.mouse.click(box.x + 10 + (i * 37) % (box.width - 20), box.y + 10 + (i * 53) % Math.min(box.height - 20, 500));
      await wait(200);
    }
    await page.keyboard.press("/");
    await page.keyboard.type("app-77", { delay: 150 });
    await wait(500);
    const took = await page.evaluate(() => window.took);
    row("interaction to next paint, the worst of " + (20 + 7), `${took.length ? Math.max(...took) : "< 16"} ms`, "200 ms");
  });
  await page.context().close();

  const screen = await open(browser, "#/events");
  await part("from the commit to the screen", async () => {
    // From the commit to the screen: history says when it was written, by the clock of the same machine.
    await screen.locator("main").waitFor();
    const delays = [];
    for (let i = 0; i < 50; i++) {
      const name = `seen-${Date.now()}-${i}`;
      const shown = screen.waitForFunction((n) => (document.querySelector("main")?.textContent.includes(n) ? Date.now() : 0), name, { polling: "raf" });
      const app = await call("POST", "/jobmanager/groups", descriptor(name));
      const [entry] = await call("GET", `/jobmanager/history?app=${app.id}&event=application.submitted&limit=1`);
      delays.push((await (await shown).jsonValue()) - new Date(entry.at).getTime());
      await call("DELETE", `/jobmanager/groups/${app.id}?stop=true`);
    }
    row("from the commit to the screen, p50", `${at(delays, 0.5).toFixed(0)} ms`);
    row("from the commit to the screen, p99", `${at(delays, 0.99).toFixed(0)} ms`, "1000 ms");
  });
  await part("memory", async () => {
    // Memory over as many changes as an hour has at one in four seconds.
    const session = await screen.context().newCDPSession(screen);
    await session.send("Performance.enable");
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      const { metrics } = await session.send("Performance.getMetrics");
      return metrics.find((m) => m.name === "JSHeapUsedSize").value / 2 ** 20;
    };
    const sizes = [];
    for (let i = 0; i < events; i++) {
      await call("PUT", `/jobmanager/groups/${i % 2 ? "start" : "stop"}/${apps[(i >> 1) % apps.length].id}`);
      if (i % (events / 3) === 0 || i === events - 1) {
        await wait(2000);
        sizes.push(await heap());
      }
    }
    row(`memory of the page over ${events} changes`, sizes.map((s) => s.toFixed(1)).join(", ") + " MiB", "flat");
  });
} finally {
  await browser.close();
}
