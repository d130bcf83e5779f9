// Opens the console of a cluster and waits until the application APPLICATION is in its list: each line says a step and how many
// milliseconds it took. The suite of a real cluster starts it while everything sleeps (test/e2e/knative).
import { createRequire } from "node:module";
import { join } from "node:path";

const { LITTORAL_SERVER: server, LITTORAL_MODULES: modules, LITTORAL_TOKEN: token, APPLICATION: application, SHOT: shot } = process.env;
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");
const say = (step, since) => console.log(`${step} ${Math.round(performance.now() - since)}`);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1360, height: 850 } });
page.setDefaultTimeout(300_000);
const start = performance.now();
await page.goto(`${server}/console/#token=${token}`, { timeout: 300_000 });
await page.getByRole("heading", { name: "Overview" }).waitFor();
say("usable", start);
await page.goto(`${server}/console/#/applications`);
await page.getByRole("heading", { name: "Applications" }).waitFor();
const watching = performance.now();
say("watching", watching);
await page.getByRole("link", { name: application, exact: true }).waitFor();
say("seen", watching);
if (shot) await page.screenshot({ path: shot });
await browser.close();
