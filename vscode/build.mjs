// Bundles the extension into dist/, and with --test the tests into out/.
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const production = process.argv.includes("--production");
const shared = { bundle: true, target: "node20", logLevel: "warning", minify: production, sourcemap: production ? false : "linked" };

function files(folder, end) {
  return readdirSync(folder).filter((name) => name.endsWith(end)).map((name) => `${folder}/${name}`);
}

rmSync("dist", { recursive: true, force: true });
await build({ ...shared, entryPoints: ["src/extension.ts"], outdir: "dist", format: "cjs", platform: "node", external: ["vscode"] });
await build({ ...shared, entryPoints: ["src/preview/page.ts", "src/preview/capture.ts", "src/preview/page.css"], outdir: "dist/preview", format: "iife", platform: "browser", target: "es2022" });

if (process.argv.includes("--test")) {
  rmSync("out", { recursive: true, force: true });
  const modules = {
    ...shared, format: "esm", platform: "node", outdir: "out", outbase: "test", outExtension: { ".js": ".mjs" }, external: ["playwright-core"],
    // Bundled modules of the older kind ask for those of Node by require.
    banner: { js: `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);` },
  };
  await build({ ...modules, entryPoints: [...files("test/unit", ".ts"), ...files("test/browser", ".test.ts"), ...files("test/host", ".test.ts")] });
  await build({ ...modules, entryPoints: ["test/unit/hub.test.ts"], entryNames: "[dir]/[name]-jsonrpc-10", alias: { "vscode-jsonrpc": "vscode-jsonrpc-10" }, outExtension: { ".js": ".test.mjs" } });
  await build({ ...shared, format: "iife", platform: "browser", target: "es2022", entryPoints: files("test/browser/pages", ".ts"), outdir: "out/browser/pages" });
}
