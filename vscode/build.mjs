// Bundles the extension into dist/, and with --test the tests into out/.
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const production = process.argv.includes("--production");
const shared = { bundle: true, target: "node20", logLevel: "warning", minify: production, sourcemap: production ? false : "linked" };

function files(folder, end) {
  return readdirSync(folder).filter((name) => name.endsWith(end)).map((name) => `${folder}/${name}`);
}

if (process.argv.includes("--test")) {
  rmSync("out", { recursive: true, force: true });
  const modules = { ...shared, format: "esm", platform: "node", packages: "external", outExtension: { ".js": ".mjs" } };
  await build({ ...modules, entryPoints: [...files("test/unit", ".ts"), ...files("test/browser", ".test.ts")], outdir: "out", outbase: "test" });
  await build({ ...shared, format: "iife", platform: "browser", target: "es2022", entryPoints: files("test/browser/pages", ".ts"), outdir: "out/browser/pages" });
}
