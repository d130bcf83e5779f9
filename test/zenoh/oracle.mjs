// Answers questions about key expressions with Zenoh's own code. Each line of standard input is [operation, a, b] in JSON;
// each answer is a line of JSON: the result, or {"error": text} where Zenoh refuses.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = join(process.argv[2], "node_modules", "@eclipse-zenoh", "zenoh-ts", "dist", "key_expr");
const glue = await import(pathToFileURL(join(folder, "zenoh_keyexpr_wasm_bg.js")));
const module = await WebAssembly.instantiate(readFileSync(join(folder, "zenoh_keyexpr_wasm_bg.wasm")), {
  "./zenoh_keyexpr_wasm_bg.js": glue,
});
glue.__wbg_set_wasm(module.instance.exports);
module.instance.exports.__wbindgen_start();

const operations = {
  parse: (a) => (glue.new_key_expr(a), true),
  canonical: glue.autocanonize,
  intersects: glue.intersects,
  includes: glue.includes,
};

for await (const line of createInterface({ input: process.stdin })) {
  const [operation, a, b] = JSON.parse(line);
  let answer;
  try {
    answer = operations[operation](a, b);
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
