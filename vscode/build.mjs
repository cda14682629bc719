// Bundles the extension into dist/, with --test the tests into out/, and with --web the page of duet-rpc web into the program.
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { build } from "esbuild";

const production = process.argv.includes("--production");
const shared = { bundle: true, target: "node20", logLevel: "warning", minify: production, sourcemap: production ? false : "linked" };

function files(folder, end) {
  return readdirSync(folder).filter((name) => name.endsWith(end)).map((name) => `${folder}/${name}`);
}

// The package contains the program that DUET_PACKAGED names, and never that of an earlier package, which may be for another platform.
rmSync("server", { recursive: true, force: true });
const packaged = process.env.DUET_PACKAGED;
if (packaged) cpSync(packaged, "server/duet-rpc");

rmSync("dist", { recursive: true, force: true });
const extension = await build({ ...shared, entryPoints: ["src/extension.ts"], outdir: "dist", format: "cjs", platform: "node", external: ["vscode"], metafile: true });
// The pages of a session panel and of a comparison, which have nothing but their element, their script and this sheet.
const page = { ...shared, platform: "browser", target: "es2022", outdir: "dist" };
const panel = await build({ ...page, metafile: true, format: "iife", entryPoints: { panel: "src/webview/main.ts", attempts: "src/webview/attempts.ts" } });
await build({ ...page, entryPoints: { panel: "src/webview/panel.css" } });
await build({ ...page, format: "iife", entryPoints: ["src/preview/page.ts", "src/preview/capture.ts", "src/preview/page.css"], outdir: "dist/preview" });
writeFileSync("dist/panel.licenses.txt", licences(extension, panel));

// licences are those of the packages whose code is in the bundles.
function licences(...results) {
  const inputs = results.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  const folders = new Set(inputs.map((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]).filter(Boolean));
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence with it: look at what it asks for`);
    return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
  }).join(`\n${"-".repeat(80)}\n\n`);
}

// languagesLater takes highlight.js out of the bundle of the page, which loads it when it needs it.
const languagesLater = {
  name: "languages later",
  setup: ({ onResolve }) => onResolve({ filter: /^\.\/languages$/ }, ({ resolveDir }) => ({ path: resolve(resolveDir, "../web/languages.ts") })),
};

// web bundles the page of duet-rpc web. The same sources give the same bytes, since the program contains them.
async function web(outdir) {
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  const shared = { bundle: true, minify: true, sourcemap: false, legalComments: "none", logLevel: "warning", platform: "browser", target: "es2022", outdir };
  const page = await build({ ...shared, metafile: true, format: "iife", entryPoints: { web: "src/web/main.ts", sw: "src/web/sw.ts" }, plugins: [languagesLater] });
  const languages = await build({ ...shared, metafile: true, format: "esm", entryPoints: ["src/webview/languages.ts"] });
  await build({ ...shared, entryPoints: { web: "src/web/web.css" } });
  for (const name of ["index.html", "manifest.webmanifest", "icon.svg", "icon.png"]) cpSync(`src/web/${name}`, `${outdir}/${name}`);
  writeFileSync(`${outdir}/licenses.txt`, licences(page, languages));
}

if (process.argv.includes("--web")) await web("../internal/web/assets");

if (process.argv.includes("--test")) {
  rmSync("out", { recursive: true, force: true });
  await web("out/web");
  const modules = {
    ...shared, format: "esm", platform: "node", outdir: "out", outbase: "test", outExtension: { ".js": ".mjs" }, external: ["playwright-core"],
    alias: { vscode: "./test/fakevscode.ts" }, logOverride: { "import-is-undefined": "silent" }, // it has only what the tests use
    // Bundled modules of the older kind ask for those of Node by require.
    banner: { js: `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);` },
  };
  await build({ ...modules, entryPoints: [...files("test/unit", ".ts"), ...files("test/browser", ".test.ts"), ...files("test/host", ".test.ts"), ...files("test/performance", ".test.ts")] });
  await build({ ...modules, entryPoints: ["test/unit/hub.test.ts"], entryNames: "[dir]/[name]-jsonrpc-10", alias: { ...modules.alias, "vscode-jsonrpc": "vscode-jsonrpc-10" }, outExtension: { ".js": ".test.mjs" } });
  await build({ ...shared, format: "iife", platform: "browser", target: "es2022", entryPoints: files("test/browser/pages", ".ts"), outdir: "out/browser/pages" });
}
