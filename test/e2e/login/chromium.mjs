// A person signs in to the console at an issuer and out again, in a real browser. Called by chromium_test.go.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const { LITTORAL_SERVER: server, LITTORAL_MODULES: modules, SIGN_IN_NAME: name, SIGN_IN_PASSWORD: password } = process.env;
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");
const patience = 1000 * Number(process.env.LITTORAL_PATIENCE ?? 20);

const browser = await chromium.launch({
  timeout: 10 * patience,
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
});
try {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const complaints = [];
  page.on("pageerror", (e) => complaints.push(e.message));
  page.on("console", (m) => /Content Security Policy|Refused to/.test(m.text()) && complaints.push(m.text()));

  await page.goto(`${server}/console/#/settings`);
  await page.getByRole("link", { name: "Sign in with your name" }).click();
  await page.locator("input[type=password]").waitFor(); // the issuer's own page
  assert.notEqual(new URL(page.url()).origin, server, "names and passwords are typed at the issuer");
  await page.locator("input[name=login], input[name=username]").fill(name);
  await page.locator("input[type=password]").fill("guess");
  const refused = page.waitForEvent("load"); // what is typed before the page is there again would be gone with it
  await page.keyboard.press("Enter");
  await refused;
  await page.locator("input[type=password]").waitFor();
  await page.locator("input[name=login], input[name=username]").fill(name);
  await page.locator("input[type=password]").fill(password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Settings" }).waitFor(); // where it was to go
  await page.getByText("Roles: operator").waitFor();
  assert.equal(await page.evaluate(() => document.cookie.includes("littoral_session")), false, "scripts cannot read the session");
  await page.reload();
  await page.getByText("Roles: operator").waitFor();
  const status = (headers) => page.evaluate(async (h) => (await fetch("/jobmanager/groups", { method: "POST", body: "a: b", headers: h })).status, headers);
  assert.equal(await status({}), 403, "a change needs the token besides the cookie");

  const left = page.waitForEvent("load"); // the page forgets the session at once, and only then goes by the issuer
  await page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
  await left;
  await page.getByRole("link", { name: "Sign in with your name" }).waitFor();
  assert.equal(await page.evaluate(async () => (await fetch("/jobmanager/groups")).status), 401, "the session is over");
  assert.deepEqual(complaints, []);
} finally {
  await browser.close();
}
