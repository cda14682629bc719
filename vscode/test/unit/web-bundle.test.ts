// The page of duet-rpc web that the repository contains.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";
import { gzipSync } from "node:zlib";

const [built, kept] = ["out/web", "../internal/web/assets"];

test("the repository contains the page as its sources make it", () => {
  assert.deepEqual(readdirSync(kept).sort(), readdirSync(built).sort());
  for (const name of readdirSync(built)) assert.ok(readFileSync(`${built}/${name}`).equals(readFileSync(`${kept}/${name}`)), `${name} is old: run npm run web`);
});

test("the page loads nothing from elsewhere, runs nothing inline, and names no source map", () => {
  const html = readFileSync(`${built}/index.html`, "utf8");
  assert.doesNotMatch(html, /<script(?![^>]* src=)|style=|\son\w+=|https?:/);
  for (const name of ["web.js", "sw.js", "languages.js", "web.css"]) assert.doesNotMatch(readFileSync(`${built}/${name}`, "utf8"), /sourceMappingURL/);
  assert.doesNotMatch(readFileSync(`${built}/web.css`, "utf8"), /url\(|@import/);
});

test("a phone gets the page's script in less than 120 KB", () => {
  const size = gzipSync(readFileSync(`${built}/web.js`), { level: 9 }).length;
  assert.ok(size < 120_000, `${size} bytes`);
});
