// Landing, discarding and opening the git worktree of a session, with the built duet-rpc.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { deleteSession, forkChoices } from "../../src/sessions";
import { worktreeWords } from "../../src/hub/groups";
import type { Panels } from "../../src/panel/panel";
import type { Project, ProjectSession } from "../../src/projects";
import { discardWorktree, hasWorktree, land, openWorktree } from "../../src/worktrees";
import { answers, copied, executed, shown, Uri } from "../fakevscode";
import { addRepository, git, newProject, removeProject, startHub } from "../hub";

test("changes in a worktree are landed as the user says, or discarded and kept; what is in the way is listed", async (t) => {
  const project = newProject();
  addRepository(project.folder);
  const { end, connection, model, until } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  answers.length = shown.length = executed.length = 0;
  const inserted: string[] = [];
  const panels = { open: () => Promise.resolve({ insert: (text: string) => inserted.push(text), focus: () => inserted.push("focus") }) } as unknown as Panels;
  const demo = join(project.folder, "demo.txt");
  const { session_uuid } = await connection.request("session.start", { prompt: "hello", title: "The parser", agent: "demo", mode: "acceptEdits", worktree: true });
  const of = (): ProjectSession => ({ project: { name: "project", connection, model, folder: { uri: Uri.file(project.folder) } } as unknown as Project, session: model.sessionOf({ session_uuid })! });
  const ended = (prompt: string): Promise<void> => until("the end", () => of().session?.prompt === prompt && of().session.state === "completed" && of().session.worktree !== undefined);
  const last = (): string => shown.at(-1)!.text;
  await ended("hello");
  assert.deepEqual([hasWorktree(of().session), worktreeWords(of().session.worktree!), existsSync(demo)], [true, "In a worktree on the branch duet/the-parser", false]);
  const { dir } = of().session.worktree!;
  await openWorktree(of());
  assert.deepEqual(executed.map(([command, uri, options]) => [command, (uri as { fsPath: string }).fsPath, options]), [["vscode.openFolder", dir, { forceNewWindow: true }]]);

  answers.push(undefined);
  await land(of(), panels);
  assert.deepEqual([shown.at(-1)!.labels, existsSync(demo)], [["Merge", "Squash", "Rebase", "Patch"], false]);
  const attributes = join(project.folder, ".git", "info", "attributes");
  writeFileSync(attributes, "*.txt filter=git-crypt\n"); // which is configured nowhere
  answers.push("Merge");
  await land(of(), panels);
  const unfiltered = "committed without the filter that .gitattributes names (look before you push): demo.txt";
  assert.deepEqual([last(), existsSync(demo)], [`Duet: landed on main: 1 commit, 1 file; ${unfiltered}`, true]);
  rmSync(attributes);
  answers.push("Squash");
  await land(of(), panels);
  assert.equal(last(), "Duet: there is nothing new to land");

  // A fork works there, too.
  const { session_uuid: fork } = await connection.request("session.fork", { turn: session_uuid, prompt: "quiet" });
  await until("the fork", () => model.sessionOf({ session_uuid: fork })?.state === "completed");
  answers.push("Delete");
  await deleteSession({ ...of(), session: model.sessionOf({ session_uuid: fork })! }, panels);
  assert.equal(last(), `Duet: the session is deleted; its worktree stays: ${dir}`);

  // Both sides change the file.
  await connection.request("session.prompt", { session: session_uuid, prompt: "again" });
  await ended("again");
  writeFileSync(demo, "mine\n");
  answers.push("Merge", undefined);
  await land(of(), panels);
  assert.deepEqual([last(), shown.at(-1)!.detail], ["Duet: nothing was landed: these files of yours are not committed and would be overwritten", "demo.txt\n\nCommit or stash them first."]);
  git(project.folder, "commit", "--quiet", "--all", "--message=mine");
  const head = git(project.folder, "rev-parse", "HEAD");
  answers.push("Rebase", undefined, "Merge", "Let the Agent Merge");
  await land(of(), panels);
  assert.deepEqual([shown.at(-1)!.detail, inserted], ["demo.txt", []]);
  await land(of(), panels);
  assert.equal(last(), "Duet: nothing was landed: these files conflict with your branch");
  assert.deepEqual(inserted, ["Merge my branch into yours and resolve the conflicts", "focus"]);
  assert.deepEqual([git(project.folder, "rev-parse", "HEAD"), readFileSync(demo, "utf8")], [head, "mine\n"], "nothing has changed");

  // Deleting a session with unlanded work needs more than one press.
  answers.push("Delete", undefined);
  await deleteSession(of(), panels);
  assert.deepEqual(shown.at(-1), { text: 'Duet: "The parser" was not deleted: its worktree has work that is not landed. Land or discard it first.', labels: ["Land…", "Discard Worktree…"] });
  answers.push("Delete", "Land…", undefined);
  await deleteSession(of(), panels);
  assert.match(last(), /^How to land the changes of "The parser"/);
  answers.push("Delete", "Discard Worktree…", undefined);
  await deleteSession(of(), panels);
  assert.deepEqual(shown.at(-1), { text: "Duet: discard the worktree with this work?", labels: ["Discard"], detail: "1 changed file that is not committed:\ndemo.txt\n\nA git ref keeps commits and uncommitted files." });
  assert.ok(existsSync(join(dir, "demo.txt")) && of().session);

  answers.push("Discard", "Copy Command");
  await discardWorktree(of());
  const ref = /^Duet: the worktree is discarded; its work is kept; bring it back with: git branch NAME (refs\/\S+)$/.exec(last())?.[1];
  assert.deepEqual(copied, [`git branch NAME ${ref}`]);
  git(project.folder, "branch", "back", ref!);
  assert.notEqual(git(project.folder, "show", "back:demo.txt"), "mine\n");
  assert.ok(!existsSync(dir));
  await until("its end in the list", () => of().session.worktree?.gone === true);
  assert.equal(worktreeWords(of().session.worktree!), "The worktree of duet/the-parser is gone: a fork continues in the project's folder");
  assert.deepEqual([hasWorktree(of().session), forkChoices(of()).folder], [false, project.folder]);
  await assert.rejects(openWorktree(of()), /the worktree of duet\/the-parser is gone/);
  answers.push("Merge");
  await assert.rejects(land(of(), panels), /no longer exists.*refs\/duet\/discarded/);
  answers.push("Delete");
  await deleteSession(of(), panels);
  await until("its end", () => model.sessions.length === 0);
});
