// The projects that a window connects. A connection starts a daemon.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type * as vscode from "vscode";
import { Tasks } from "../../src/builds";
import type { BuildCommand, Problems } from "../../src/builds";
import type { ActiveEditor } from "../../src/panel/files";
import { Projects } from "../../src/projects";
import { fire, openFolders } from "../fakevscode";

const log = { warn: () => {}, info: () => {}, error: () => {}, debug: () => {}, trace: () => {} } as unknown as vscode.LogOutputChannel;

test("a folder is not connected before the user uses Duet, not even for the list of tasks", async (t) => {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "duet-projects-")));
  t.after(() => rmSync(top, { recursive: true, force: true }));
  t.after(() => (openFolders.length = 0));
  const [plain, configured] = [join(top, "plain"), join(top, "configured")];
  for (const folder of [plain, configured]) mkdirSync(folder);
  writeFileSync(join(configured, ".duet.toml"), "");
  process.env["DUET_RPC_BIN"] = join(top, "none"); // a connection fails, and starts nothing
  openFolders.push(plain);
  const projects = new Projects(log, "", {} as unknown as ActiveEditor);
  t.after(() => projects.dispose());
  const names = (): string[] => projects.all.map(({ name }) => name);
  const tasks = new Tasks(projects, {} as unknown as BuildCommand, {} as unknown as Problems, (error) => assert.fail(String(error)));

  assert.deepEqual([await tasks.provideTasks(), names()], [[], []]);
  openFolders.push(configured);
  fire("onDidChangeWorkspaceFolders");
  assert.deepEqual(names(), ["configured"], "the other folder stays alone");
  projects.start();
  assert.deepEqual(names().sort(), ["configured", "plain"]);
  openFolders.pop();
  fire("onDidChangeWorkspaceFolders");
  assert.deepEqual(names(), ["plain"]);
});
