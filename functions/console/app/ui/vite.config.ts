import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The pages are built into ../dist, which is committed and embedded by the function. Names carry a hash of the content, so
// that they may be cached for ever.
export default defineConfig({
  plugins: [svelte({ compilerOptions: { runes: true } })],
  base: "/console/",
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // data: URLs are not allowed by the Content-Security-Policy
    modulePreload: { polyfill: false }, // it would be an inline script
    reportCompressedSize: true,
  },
  server: { proxy: { "^/(?!console/|@|src/|node_modules/)": process.env.LITTORAL_SERVER ?? "http://127.0.0.1:8080" } },
});
