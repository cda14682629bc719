// Attempts of several agents at one prompt, with the built duet-rpc: compared, opened, and one of them chosen.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { ComparedAttempts } from "../../src/attempts";
import { agentWords, changeWords, gatesWords, isChoosable, isWorking } from "../../src/hub/attempts";
import type { Attempt, Comparison } from "../../src/hub/attempts";
import type { Change } from "../../src/hub/changes";
import { madeByPatch } from "../../src/hub/changes";
import type { Project } from "../../src/projects";
import { answers, copied, shown, Uri } from "../fakevscode";
import { addRepository, git, newProject, removeProject, startHub } from "../hub";
import { addWriterAgent } from "../writeragent";

test("attempts at a prompt are compared; one is landed as the user says, the others are discarded and kept", async (t) => {
  const project = newProject();
  addWriterAgent(project);
  writeFileSync(join(project.folder, "cart.txt"), "one\n");
  addRepository(project.folder);
  const hub = startHub({}, project);
  t.after(async () => {
    await hub.end();
    await removeProject(project);
  });
  const { connection, model, until } = hub;
  await connection.start();
  answers.length = shown.length = copied.length = 0;
  const prompt = `Fill the cart ${JSON.stringify({ "cart.txt": "one\ntwo\n", "new.txt": "new\n" })}`;
  const { turns } = await connection.request("attempt.start", { prompt, agents: [{ agent: "writer", mode: "acceptEdits" }, { agent: "demo", mode: "acceptEdits" }] });
  const [writer, demo] = turns.map(({ session_uuid }) => session_uuid) as [string, string];
  const has = (session: string, state: string): Promise<void> => until(`${session} is ${state}`, () => model.sessionOf({ session_uuid: session })?.state === state);
  await Promise.all([has(writer, "completed"), has(demo, "completed")]);

  const drawn: Comparison[] = [];
  const opened: unknown[] = [];
  const compared = new ComparedAttempts({ name: "project", connection, model, folder: { uri: Uri.file(project.folder) } } as unknown as Project, () => turns[1]!.session_uuid, {
    panels: { open: ({ session }) => (opened.push(session.session_uuid), Promise.resolve({ insert: () => {}, focus: () => {} } as never)) },
    documents: { openDiff: (path: string, folder: string, change: Change, about?: string) => Promise.resolve(void opened.push([path.slice(folder.length + 1), change, about])) },
    changes: { open: () => Promise.resolve(void opened.push("changes")) },
  }, (comparison) => drawn.push(comparison));
  const { load, openSession, openFile, choose } = compared.methods;
  await load({});
  assert.equal(drawn.at(-1)!.prompt, prompt);
  assert.deepEqual(drawn.at(-1)!.attempts.map((attempt) => [agentWords(attempt), isChoosable(attempt), changeWords(attempt)]), [["writer", true, "2 files, +2 -0"], ["demo", true, "1 file, +1 -0"]]);
  await openSession({ session: demo });
  await openFile({ session: writer, path: "cart.txt" });
  await openFile({ session: writer, path: "new.txt" });
  assert.deepEqual(opened, [demo, ["cart.txt", { before: "one\n", after: "one\ntwo\n", is: "made" }, "writer"], ["new.txt", { before: "", after: "new\n", is: "made" }, "writer"]]);
  await assert.rejects(openSession({ session: "another" }), /was deleted/);

  await connection.request("session.prompt", { session: writer, prompt: "wait" });
  await has(writer, "running");
  await assert.rejects(choose({ session: writer }), /writer still works: wait for its end, or interrupt it/);
  answers.push(undefined);
  await choose({ session: demo });
  assert.deepEqual(shown.at(-1), { text: "How to land the changes of demo, and discard the others?", labels: ["Merge", "Squash", "Rebase", "Patch"] });
  answers.push("Squash", undefined);
  await choose({ session: demo });
  const { turn } = drawn.at(-1)!.attempts[0]!;
  assert.deepEqual(shown.at(-1), { text: `Duet: writer (${turn}) still works`, labels: ["Interrupt and Discard"], detail: "Choosing another attempt interrupts and discards this work. A git ref keeps it." });
  assert.ok(!existsSync(join(project.folder, "demo.txt")), "nothing was landed");
  // A file of the user conflicts, so nothing is discarded.
  writeFileSync(join(project.folder, "demo.txt"), "mine\n");
  answers.push("Squash", "Interrupt and Discard", undefined);
  await choose({ session: demo });
  assert.deepEqual([shown.at(-1)!.text, shown.at(-1)!.detail], ["Duet: nothing was landed: these files of yours are not committed and would be overwritten", "demo.txt\n\nCommit or stash them first."]);
  assert.equal(model.sessionOf({ session_uuid: writer })!.worktree?.gone, undefined);
  git(project.folder, "clean", "--quiet", "--force");

  answers.push("Squash", "Interrupt and Discard", "Copy Command");
  await choose({ session: demo });
  const [landed, discarded] = drawn.at(-1)!.notes;
  assert.equal(landed, "demo: landed on main: 1 commit, 1 file");
  const ref = new RegExp(`^writer \\(${turn.replace(".", "\\.")}\\) is discarded; its work is kept: git branch NAME (refs/\\S+)$`).exec(discarded!)?.[1];
  assert.ok(ref, discarded);
  await until("the copy", () => copied.length > 0);
  assert.deepEqual([copied, shown.at(-1)!.text], [[`git branch NAME ${ref}`], `Duet: ${landed}; ${discarded}`]);
  assert.ok(existsSync(join(project.folder, "demo.txt")));
  assert.equal(git(project.folder, "show", `${ref}:cart.txt`), "one\ntwo\n");
  assert.equal(readFileSync(join(project.folder, "cart.txt"), "utf8"), "one\n");
  await assert.rejects(choose({ session: writer }), /the worktree of writer is gone/);
});

test("an attempt says what it has changed, and whether its gates passed", () => {
  const attempt = { agent: "claude", model: "opus", state: "completed", files: [{ path: "a", added: 1, removed: 2 }], more: 2, added: 10, removed: 4, landed: true, gates: { state: "failed", failing: ["lint", "test"] } } as unknown as Attempt;
  assert.deepEqual([agentWords(attempt), changeWords(attempt), gatesWords(attempt), isWorking(attempt), isChoosable(attempt)], ["claude (opus)", "3 files, +10 -4, landed", "gates failed: lint, test", false, false]);
  const checked = { ...attempt, files: [], more: 0, gates: { state: "checking", failing: [] as string[] }, worktree: { branch: "b", dir: "/d" } } as unknown as Attempt;
  assert.deepEqual([changeWords(checked), gatesWords(checked), isWorking(checked), isChoosable(checked)], ["no change yet", "gates checking", true, false]);
  assert.equal(changeWords({ ...attempt, files: [], more: 0 }), "nothing to land");
  assert.equal(changeWords({ ...attempt, unknown: "its worktree is gone" }), "its worktree is gone");
});

test("the change of one file is found in a diff of several, also of a new and of a deleted one", () => {
  const patch = "diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\ndiff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n";
  assert.deepEqual(madeByPatch("new\n", patch, "new.txt"), { before: "", after: "new\n", is: "made" });
  assert.deepEqual(madeByPatch("", patch, "old.txt"), { before: "old\n", after: "", is: "made" });
  assert.deepEqual([madeByPatch("other\n", patch, "new.txt"), madeByPatch("new\n", patch, "w.txt")], [undefined, undefined]);
});
