// The sessions of other projects, with the built duet-rpc.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { listOthers, worktreeOf } from "../../src/hub/root";
import { duetBinary, newProject, removeProject, startHub } from "../hub";

test("another project's sessions are listed, and those of open projects are not", async (t) => {
  const project = newProject();
  const other = { ...project, folder: join(project.folder, "..", "other") };
  mkdirSync(other.folder);
  const started = startHub({}, other);
  t.after(async () => {
    await started.end();
    await removeProject(project);
  });
  await started.connection.start();
  const { turn_uuid } = await started.connection.request("session.start", { prompt: "Elsewhere", agent: "demo" });
  await started.until("a question", () => started.model.questions.length === 1);
  const list = (open: string[]): ReturnType<typeof listOthers> => listOthers(duetBinary, project.folder, ({ root }) => open.includes(root), project.env);
  const others = await list([project.folder]);
  assert.deepEqual(others.map(({ root, hub, sessions }) => [root, hub, sessions.map(({ turn_uuid: last, state }) => [last, state])]), [[other.folder, true, [[turn_uuid, "waiting_input"]]]]);
  assert.deepEqual(await list([project.folder, other.folder]), []);
});

test("a worktree is called by its name", (t) => {
  const project = newProject();
  t.after(() => removeProject(project));
  const worktree = join(project.folder, "..", "fix-it");
  mkdirSync(worktree);
  assert.equal(worktreeOf(worktree, project.folder), undefined);
  writeFileSync(join(worktree, ".git"), "gitdir: /elsewhere\n");
  assert.equal(worktreeOf(worktree, project.folder), "fix-it");
  assert.equal(worktreeOf(project.folder, project.folder), undefined);
});
