// Renaming, deleting and searching sessions, and revoking rules, with the built duet-rpc.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import type { TestContext } from "node:test";
import { deleteSession, editPrompt, rename, revokeRules, rewind, ruleWords, search } from "../../src/sessions";
import { saved } from "../../src/editortools";
import { choicesOf } from "../../src/hub/questions";
import { nameOf } from "../../src/hub/groups";
import type { Beginning } from "../../src/panel/newsession";
import type { Panels } from "../../src/panel/panel";
import type { Project, ProjectSession } from "../../src/projects";
import { answers, shown } from "../fakevscode";
import { newProject, removeProject, startHub } from "../hub";

const noPanels = {} as unknown as Panels;

async function opened(t: TestContext, config = ""): Promise<{ of: Project } & Omit<ReturnType<typeof startHub>, "end"> & { launch: (query: string) => Promise<ProjectSession> }> {
  const project = newProject();
  if (config !== "") {
    const folder = join(project.home, ".config", "duet");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "config.toml"), config);
  }
  const { end, ...hub } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await hub.connection.start();
  answers.length = shown.length = 0;
  const of = { name: "project", connection: hub.connection, model: hub.model } as unknown as Project;
  const launch = async (query: string): Promise<ProjectSession> => {
    const { turn_uuid } = await hub.connection.request("session.start", { prompt: query, agent: "demo", working_dir: project.folder });
    await hub.until("the end", () => hub.model.ofTurn(turn_uuid)?.state === "completed");
    return { project: of, session: hub.model.ofTurn(turn_uuid)! };
  };
  return { of, ...hub, launch };
}

test("a session is renamed, found by its words, and deleted after a confirmation", async (t) => {
  const { of, model, until, launch } = await opened(t);
  const one = await launch("quiet walrus");
  const two = await launch("quiet otter");
  answers.push("The \u202ewalrus");
  await rename(one);
  assert.equal(shown.at(-1)!.labels[0], "quiet walrus");
  await until("the title", () => nameOf(model.ofTurn(one.session.turn_uuid)!) === "The <U+202E>walrus");

  const found: string[] = [];
  const at: Array<[number, string]> = [];
  answers.push("walr", "The <U+202E>walrus");
  await search([of], ({ session }, { item, key }) => {
    found.push(session.turn_uuid);
    at.push([item, key]);
  });
  const { items } = await of.connection.request("session.items", { session: one.session.turn_uuid });
  const match = items.find(({ text }) => text === "quiet walrus")!;
  assert.deepEqual(at, [[match.id, match.key]]);
  assert.deepEqual([shown.at(-1)!.labels, found], [["The <U+202E>walrus"], [one.session.turn_uuid]]);
  answers.push("otter", "quiet otter");
  await search([of], ({ session }) => found.push(session.turn_uuid));
  assert.deepEqual([shown.at(-1)!.labels, found.splice(1)], [["quiet otter"], [two.session.turn_uuid]], "a session without a title has the name of the lists");
  answers.push("elephant");
  await search([of], ({ session }) => found.push(session.turn_uuid));
  assert.deepEqual([shown.at(-1)!.text, found.length], ['Duet: no session contains "elephant"', 1]);

  answers.push(undefined);
  await deleteSession(one, noPanels);
  assert.equal(model.sessions.length, 2);
  answers.push("Delete");
  await deleteSession(one, noPanels);
  assert.match(shown.at(-1)!.text, /delete the session "quiet walrus"\?/);
  await until("the end of it", () => model.sessions.length === 1);
});

test("the files of a session go back to before a prompt, and that is undone", async (t) => {
  const { of, connection, until, project } = await opened(t, "[checkpoints]\nenabled = true\n");
  const demo = join(project.folder, "demo.txt");
  writeFileSync(join(project.folder, "large"), "x".repeat(11 << 20));
  const { turn_uuid, session_uuid } = await connection.request("session.start", { prompt: "write it", agent: "demo", mode: "acceptEdits" });
  await until("the end", () => of.model.ofTurn(turn_uuid)?.state === "completed");
  const session = of.model.ofTurn(turn_uuid)!;
  const begun: Array<Omit<Beginning, "session">> = [];
  const panels = { begin: (_: Project, beginning: Omit<Beginning, "session">) => Promise.resolve(void begun.push(beginning)) } as unknown as Panels;
  const label = "write it";

  answers.push(label, undefined);
  await rewind({ project: of, session }, panels);
  assert.deepEqual([shown.at(-1)!.text, shown.at(-1)!.labels], ['Duet: go back to before "write it"?', ["Restore 1 file", "Keep the Files"]]);
  assert.match(shown.at(-1)!.detail ?? "", /^demo.txt: is deleted \(\+0 -1\)\nlarge: stays, not recorded$/);
  assert.ok(existsSync(demo) && begun.length === 0, "nothing happens without a button");

  answers.push(label, "Restore 1 file", "Undo");
  await rewind({ project: of, session }, panels);
  assert.deepEqual([begun[0]!.prompt, begun[0]!.fork, begun[0]!.chosen.agent], ["write it", undefined, "demo"], "before the first prompt there is nothing to fork");
  await until("the undo", () => existsSync(demo) && shown.at(-1)!.text === "Duet: 1 file restored");

  await connection.request("session.prompt", { session: session_uuid, prompt: "and more" });
  await until("the second turn", () => {
    const now = of.model.sessionOf({ session_uuid });
    return now?.prompt === "and more" && now.state === "completed";
  });
  writeFileSync(demo, "mine");
  answers.push("and more", "Keep the Files");
  await rewind({ project: of, session }, panels);
  assert.deepEqual(shown.at(-1)!.labels, ["Restore All Files", "Keep the Files"]);
  assert.equal(begun[1]!.fork!.turn, session.turn);
  assert.equal(readFileSync(demo, "utf8"), "mine");

  // A panel names the turn, and no list asks for it.
  const asked = shown.length;
  const second = of.model.sessionOf({ session_uuid })!;
  await editPrompt({ project: of, session: second }, panels, second.turn_uuid);
  assert.deepEqual([begun[2]!.prompt, begun[2]!.fork!.turn, shown.length], ["and more", session.turn, asked]);
  await editPrompt({ project: of, session: second }, panels, session.turn_uuid);
  assert.deepEqual([begun[3]!.prompt, begun[3]!.fork], ["write it", undefined]);
  assert.match(begun[3]!.about!, /from before 1\.1, in a new session\. The old session stays, too, and the files stay as they are/);
  answers.push("and more");
  await editPrompt({ project: of, session: second }, panels);
  assert.deepEqual([begun[4]!.prompt, begun[4]!.fork!.turn, shown.at(-1)!.text], ["and more", session.turn, "Edit and send again which prompt of write it?"]);
  answers.push("Keep the Files");
  await rewind({ project: of, session: second }, panels, second.turn_uuid);
  assert.deepEqual([begun[5]!.prompt, shown.at(-1)!.text], ["and more", 'Duet: go back to before "and more"?']);
  assert.equal(readFileSync(demo, "utf8"), "mine");
});

test("the rules that answers have made are revoked", async (t) => {
  const { of, connection, model, until } = await opened(t);
  await revokeRules(of);
  assert.deepEqual(shown.at(-1), { text: "Duet: this project has no rules from answers", labels: [] });
  await connection.request("session.start", { prompt: "Greet the reader", agent: "demo" });
  await until("a question", () => model.questions.length === 1);
  const question = model.questions[0]!;
  await connection.request("approval.decide", { approval: question.approval, ...choicesOf(question).find(({ id }) => id === "approve-project")!.decision });
  const { rules } = await connection.request("rule.list", {});
  assert.equal(rules.length, 1);
  answers.push(undefined, [ruleWords(rules[0]!)]);
  await revokeRules(of);
  assert.deepEqual((await connection.request("rule.list", {})).rules, rules);
  await revokeRules(of);
  assert.deepEqual((await connection.request("rule.list", {})).rules, []);
});

test("the menu of a session has entries for what it can do, and each has a command", () => {
  const { contributes } = JSON.parse(readFileSync("package.json", "utf8")) as { contributes: { commands: Array<{ command: string }>; menus: Record<string, Array<{ command: string; when: string }>> } };
  const declared = new Set(contributes.commands.map(({ command }) => command));
  const source = readFileSync("src/commands.ts", "utf8");
  const entries = contributes.menus["view/item/context"]!.filter(({ when }) => when.includes("duet.sessions")).map(({ command }) => command);
  for (const command of ["duet.rename", "duet.delete", "duet.revokeRules"]) assert.ok(entries.includes(command), command);
  assert.ok(contributes.menus["view/title"]!.some(({ command, when }) => command === "duet.search" && when.includes("duet.sessions")));
  for (const command of [...entries, "duet.search"]) {
    assert.ok(declared.has(command), `${command} is declared`);
    assert.ok(source.includes(`"${command.slice("duet.".length)}"`), `${command} is registered`);
  }
});

test("a hub learns which files the user saves", async (t) => {
  const { of, connection, project } = await opened(t);
  const answered: unknown[] = [];
  const request = connection.request.bind(connection);
  connection.request = (...[method, params]: Parameters<typeof request>) => {
    const answer = request(method, params);
    answered.push(answer.then((result) => [method, params, result]));
    return answer;
  };
  saved([of], join(project.folder, "demo.txt"));
  assert.deepEqual(await Promise.all(answered), [["editor.saved", { paths: [join(project.folder, "demo.txt")] }, { success: true }]]);
});
