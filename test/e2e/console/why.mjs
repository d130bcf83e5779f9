// Opens the page that says why the application APPLICATION is where it is, and waits until it shows each of TEXTS. The suite of a real
// cluster starts it (test/e2e/knative).
import { createRequire } from "node:module";
import { join } from "node:path";

const { LITTORAL_SERVER: server, LITTORAL_MODULES: modules, LITTORAL_TOKEN: token, APPLICATION: application, TEXTS: texts, SHOT: shot } = process.env;
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1360, height: 1180 } });
page.setDefaultTimeout(120_000);
await page.goto(`${server}/console/#token=${token}`, { timeout: 300_000 });
await page.getByRole("heading", { name: "Overview" }).waitFor();
await page.goto(`${server}/console/#/applications/${application}/why`);
try {
  for (const text of JSON.parse(texts)) await page.getByText(text).first().waitFor();
} finally {
  await page.screenshot({ path: shot, fullPage: true }); // of what is missing, too
}
await browser.close();
