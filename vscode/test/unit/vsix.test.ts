// The files of the VSIX.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";

test("the VSIX contains the program, its icons and its texts, and no pictures of the README", () => {
  const files = execFileSync("node_modules/.bin/vsce", ["ls", "--no-dependencies"], { encoding: "utf8" }).split("\n").filter((file) => file !== "");
  const { icon, main } = JSON.parse(readFileSync("package.json", "utf8")) as { icon: string; main: string };
  for (const file of [icon, main.replace("./", ""), "dist/panel.js", "dist/attempts.js", "dist/panel.css", "dist/panel.licenses.txt", "dist/preview/page.js", "media/duet.svg", "media/state/waiting.svg", "media/walkthrough/session.md", "package.json", "README.md", "LICENSE"]) {
    assert.ok(files.includes(file), `${file} is in ${files.join(" ")}`);
  }
  assert.deepEqual(files.filter((file) => file.endsWith(".png")), [icon]);
  assert.deepEqual(files.filter((file) => /^(?:src|test|out|node_modules)\//.test(file)), []);
});
