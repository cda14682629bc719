// The files of the VSIX.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
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

test("a package never takes the program of an interrupted one, only the program that DUET_PACKAGED names", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "duet-vsix-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["src", "node_modules"]) symlinkSync(resolve(name), join(folder, name));
  const program = join(folder, "server", "duet-rpc");
  const build = (packaged: string): void => void execFileSync(process.execPath, [resolve("build.mjs"), "--production"], { cwd: folder, env: { ...process.env, DUET_PACKAGED: packaged } });
  mkdirSync(join(folder, "server"));
  writeFileSync(program, "of another platform");
  writeFileSync(join(folder, "own"), "of this platform");

  build("own");
  assert.equal(readFileSync(program, "utf8"), "of this platform");
  build("");
  assert.ok(!existsSync(program));
});
