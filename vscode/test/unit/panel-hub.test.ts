// The panel's model against the built duet-rpc and its demo agent.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { backgroundOf, groupOf, isAlive, isInterruptible, nameOf } from "../../src/hub/groups";
import type { Session } from "../../src/hub/model";
import { choicesOf } from "../../src/hub/questions";
import type { ItemList, SessionItem } from "../../src/protocol";
import { Contents } from "../../src/webview/contents";
import { deliveredWords, Pages, sendPrompt } from "../../src/webview/host";
import type { Host } from "../../src/webview/host";
import { sessionOf, stateWords } from "../../src/webview/session";
import { transcript } from "../../src/hub/transcript";
import type { Transcript } from "../../src/webview/transcript";
import { newProject, removeProject, startHub } from "../hub";
import { addWriterAgent } from "../writeragent";

test("a session that was followed is the one that is loaded later", async (t) => {
  const project = newProject();
  const { connection, model, until, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const followed = new Contents();
  followed.load([]);
  connection.onEvent((event) => followed.apply(event));
  const { turn_uuid } = await connection.request("session.start", { prompt: "Greet the reader", agent: "demo", working_dir: project.folder });
  await until("a question", () => model.questions.length === 1);
  await until("its event", () => followed.questions.length === 1);
  assert.equal(followed.entry(followed.questions[0]!.tool ?? "")?.kind, "tool", "the question has the call that waits for it");
  await connection.request("approval.decide", { approval: model.questions[0]!.approval, ...choicesOf(model.questions[0]!)[0]!.decision });
  await until("its end", () => model.ofTurn(turn_uuid)?.state === "completed");
  await until("the event of its end", () => followed.turns.state(turn_uuid) === "completed");
  assert.deepEqual([followed.turns.state(turn_uuid), followed.turns.active, followed.questions.length], ["completed", undefined, 0]);

  const later = new Contents();
  const items: SessionItem[] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: ItemList = await connection.request("session.items", { session: turn_uuid, after, limit: 2 });
    items.push(...page.items);
    after = page.next_after;
  }
  later.load(items);
  const said = (contents: Contents): unknown[] =>
    contents.entries.filter(({ kind }) => kind !== "plan" && kind !== "diff").map(({ key, kind, text, open, tool }) => [key, kind, text, open, tool?.title, tool?.status, tool?.result]);
  assert.ok(later.entries.some(({ kind }) => kind === "tool"));
  assert.deepEqual(said(followed), said(later));
});

test("an agent that goes on by itself works in the same session, without a prompt", async (t) => {
  const project = newProject();
  const { connection, model, until, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const asked: string[] = [];
  model.onQuestions((questions) => asked.push(...questions.map((question) => nameOf(model.sessionOf(question)!))));
  const followed = new Contents();
  followed.load([]);
  connection.onEvent((event) => followed.apply(event));
  const { turn_uuid, session_uuid } = await connection.request("session.start", { prompt: "quiet background", agent: "demo", working_dir: project.folder });
  const last = (): Session | undefined => model.sessionOf({ session_uuid });
  await until("a question", () => model.questions.length === 1 && last()?.state === "waiting_input");
  await until("its event", () => followed.questions.length === 1 && followed.turns.active !== undefined);
  const [own, listed] = [followed.turns.active!, last()!];
  assert.notEqual(own, turn_uuid);
  assert.deepEqual([listed.turn_uuid, listed.parent, listed.prompt, nameOf(listed), groupOf(listed), isAlive(listed)], [own, "1.1", "", "quiet background", "waiting", true]);
  assert.deepEqual(asked, ["quiet background"]);
  const [note] = followed.entries.filter(({ kind, turn }) => turn === own && kind !== "tool");
  assert.deepEqual([note?.kind, note?.text], ["system", "Continued by itself."]);
  assert.deepEqual(followed.entries.filter(({ kind }) => kind === "prompt").map(({ text }) => text), ["quiet background"]);

  const { turn_uuid: next } = await connection.request("session.prompt", { session: session_uuid, prompt: "quiet" });
  await until("the queued prompt", () => last()?.ahead?.turn_uuid === own && followed.turns.waits(next));
  assert.equal(nameOf(model.sessionOf(model.questions[0]!)!), "quiet background", "the question has its session, also when that is listed by a queued prompt");
  await connection.request("approval.decide", { approval: model.questions[0]!.approval, ...choicesOf(model.questions[0]!)[0]!.decision });
  await until("the end of the prompt", () => last()?.state === "completed" && followed.turns.state(next) === "completed");
  assert.deepEqual([followed.turns.state(own), followed.turns.active, followed.entries.at(-1)?.turn], ["completed", undefined, next]);
});

test("work in the background is listed and shown in the panel, and ends when it is interrupted", async (t) => {
  const project = newProject();
  const { connection, model, until, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const followed = new Contents();
  followed.load([]);
  connection.onEvent((event) => followed.apply(event));
  const { turn_uuid, session_uuid } = await connection.request("session.start", { prompt: "slow background", agent: "demo", working_dir: project.folder });
  const listed = (): Session | undefined => model.sessionOf({ session_uuid });
  await until("work in the background", () => listed()?.state === "completed" && backgroundOf(listed()!).length === 1);
  await until("its event", () => followed.turns.state(turn_uuid) === "completed" && sessionOf(undefined, followed).background.length === 1);
  assert.deepEqual([backgroundOf(listed()!), isInterruptible(listed()!), sessionOf(undefined, followed).background], [["sleep 60"], true, ["sleep 60"]]);
  assert.equal(stateWords(sessionOf(undefined, followed), Date.now()).text, "completed; works in the background: 1 task");
  const call = (): unknown => followed.entries.find(({ kind }) => kind === "tool")?.tool?.status;
  assert.equal(call(), "in_progress");
  await connection.request("turn.interrupt", { turn: turn_uuid });
  await until("its end", () => !isInterruptible(listed()!) && sessionOf(undefined, followed).background.length === 0);
  await until("its note", () => followed.entries.some(({ text }) => text === "The agent has ended, and with it what it did in the background: sleep 60"));
  assert.deepEqual([listed()?.state, call()], ["completed", "failed"]);
});

test("a prompt that is sent now reaches an agent that works, or waits if that takes none", async (t) => {
  const project = newProject();
  addWriterAgent(project);
  const { connection, until, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const host = { request: (...given: Parameters<typeof connection.request>) => connection.request(...given) } as unknown as Host;
  const said = (contents: Contents, start: string): boolean => contents.entries.some(({ kind, text, open }) => kind === "text" && !open && text.startsWith(start));
  for (const [agent, query, delivered] of [["demo", "quiet permit:1", "injected"], ["writer", "wait", "queued"]] as const) {
    const followed = new Contents();
    followed.load([]);
    const stop = connection.onEvent((event) => followed.apply(event));
    const { turn_uuid, session_uuid } = await connection.request("session.start", { prompt: query, agent, working_dir: project.folder });
    await until("its work", () => followed.turns.state(turn_uuid) === (agent === "demo" ? "waiting_input" : "running"));
    const pages = new Pages(host, followed, { setOlder: () => {} } as unknown as Transcript, () => {});
    assert.equal((await sendPrompt(host, followed, pages, session_uuid, { text: "Use the other file", content: [] }, true)).delivered, delivered);
    if (agent === "writer") writeFileSync(join(project.folder, "go"), "");
    else await connection.request("approval.decide", { approval: followed.questions[0]!.id, decision: "approve" });
    await until("the answer", () => followed.turns.active === undefined && said(followed, agent === "writer" ? "I was sent" : "You said meanwhile: Use the other file"));
    const sent = followed.entries.filter(({ kind, text }) => kind === "prompt" && text === "Use the other file");
    assert.deepEqual(sent.map(({ turn }) => turn === turn_uuid), [delivered === "injected"], "it stands there once");
    stop();
  }
});

test("queued prompts that were edited and moved are the same in a panel that followed and in one that is opened later", async (t) => {
  const project = newProject();
  const { connection, until, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const host = { request: (...given: Parameters<typeof connection.request>) => connection.request(...given) } as unknown as Host;
  const pagesOf = (contents: Contents): Pages => new Pages(host, contents, { setOlder: () => {} } as unknown as Transcript, () => {});
  const followed = new Contents();
  followed.load([]);
  connection.onEvent((event) => followed.apply(event));
  const { turn_uuid, session_uuid } = await connection.request("session.start", { prompt: "quiet permit:1", agent: "demo", working_dir: project.folder });
  await until("a question", () => followed.turns.state(turn_uuid) === "waiting_input");
  const ids: string[] = [];
  for (const query of ["quiet a", "quiet b", "quiet c"]) ids.push((await connection.request("session.prompt", { session: session_uuid, prompt: query })).turn_uuid);
  await until("the queue", () => followed.queued.length === 3);
  const [a, b, c] = ids as [string, string, string];
  const long = `quiet ${"long ".repeat(40_000)}`;
  await connection.request("turn.edit", { turn: b, prompt: long });
  await connection.request("turn.move", { turn: c, before: a });
  const { queued } = await connection.request("turn.move", { turn: a });
  assert.deepEqual(queued.map(({ turn_uuid: id, editable }) => [id, editable]), [[c, true], [b, true], [a, true]]);
  await until("the order", () => followed.queued.map(({ turn }) => turn).join() === [c, b, a].join());
  const edited = followed.queued[1]!;
  assert.equal(edited.truncated, true);
  const pages = pagesOf(followed);
  await pages.load(session_uuid);
  await pages.whole(edited);
  assert.deepEqual([edited.text === long, edited.truncated, followed.turns.isEditable(b)], [true, false, true]);

  const later = new Contents();
  await pagesOf(later).load(session_uuid);
  assert.deepEqual(later.queued.map(({ text }) => text), followed.queued.map(({ text }) => text));
  await connection.request("approval.decide", { approval: followed.questions[0]!.id, decision: "approve" });
  await until("the end of all", () => ids.every((id) => followed.turns.state(id) === "completed"));
  await assert.rejects(connection.request("turn.edit", { turn: a, prompt: "late" }), (error: { data?: { kind?: string } }) => error.data?.kind === "bad_state");
  assert.deepEqual(followed.entries.filter(({ kind, turn }) => kind === "prompt" && turn !== turn_uuid).map(({ turn }) => turn), [c, b, a]);
});

test("a panel and the list of sessions know a queue of any length", async (t) => {
  const project = newProject();
  const { connection, model, until, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const { turn_uuid, session_uuid } = await connection.request("session.start", { prompt: "quiet permit:1", agent: "demo", working_dir: project.folder });
  await until("a question", () => model.questions.length === 1);
  const ids: string[] = [];
  for (let i = 0; i < 160; i++) ids.push((await connection.request("session.prompt", { session: session_uuid, prompt: `quiet ${i}` })).turn_uuid);
  const host = { request: (...given: Parameters<typeof connection.request>) => connection.request(...given) } as unknown as Host;
  const contents = new Contents();
  const last = await new Pages(host, contents, { setOlder: () => {} } as unknown as Transcript, () => {}).load(session_uuid);
  assert.deepEqual(contents.queued.map(({ turn }) => turn), ids);
  assert.deepEqual([last.turn_uuid, contents.turns.last, contents.turns.active], [ids.at(-1), ids.at(-1), turn_uuid]);
  assert.deepEqual(contents.entries.filter(({ turn }) => turn === turn_uuid).map(({ text }) => text).slice(0, 1), ["quiet permit:1"]);
  assert.equal(ids.every((id) => contents.turns.isEditable(id)), true);
  const other = startHub({}, project);
  t.after(other.end);
  await other.connection.start();
  await other.until("the list", () => other.model.sessions[0]?.ahead !== undefined);
  assert.equal(other.model.sessions[0]!.ahead!.turn_uuid, turn_uuid);
});

test("a person is told what became of a prompt", () => {
  const words = (delivered: "injected" | "queued" | "started" | undefined, now: boolean, working = true, content = false): string => deliveredWords(delivered, { now, working, content });
  assert.deepEqual([words("injected", true), words("queued", true), words("queued", true, true, true), words("queued", false), words("queued", false, false), words("started", true), words("started", false), words(undefined, false)], [
    "Sent: the agent has it.", "Queued: it runs when this turn has ended (the agent cannot take it now).", "Queued: it runs when this turn has ended (files wait for that).",
    "Queued: it runs when this turn has ended.", "", "Sent.", "", "",
  ]);
});

test("a tool's output that an event cuts comes whole from the hub, with its end", async (t) => {
  const project = newProject();
  addWriterAgent(project);
  const { connection, model, until, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const followed = new Contents();
  followed.load([]);
  connection.onEvent((event) => followed.apply(event));
  const { turn_uuid } = await connection.request("session.start", { prompt: "long output", agent: "writer", working_dir: project.folder });
  await until("its end", () => model.ofTurn(turn_uuid)?.state === "completed");
  await until("the event of its end", () => followed.turns.state(turn_uuid) === "completed");
  const entry = followed.entries.find(({ kind }) => kind === "tool")!;
  assert.deepEqual([entry.truncated, entry.tool!.result.endsWith("the error")], [true, false]);
  const host = { request: (...given: Parameters<typeof connection.request>) => connection.request(...given) } as unknown as Host;
  const pages = new Pages(host, followed, { setOlder: () => {} } as unknown as Transcript, () => {});
  await pages.whole(entry);
  assert.deepEqual([entry.truncated, entry.tool!.result.endsWith("the error"), entry.tool!.status], [false, true, "failed"]);
});

test("a tool's input of many levels and members comes to the panel, whole", async (t) => {
  const project = newProject();
  addWriterAgent(project);
  const { connection, model, until, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const { turn_uuid } = await connection.request("session.start", { prompt: "deep input", agent: "writer", working_dir: project.folder });
  await until("the end", () => model.ofTurn(turn_uuid)?.state === "completed");
  const loaded = new Contents();
  const { items } = await connection.request("session.items", { session: turn_uuid });
  loaded.load(items);
  const expected = `{"wide":[${"1,".repeat(100_000)}1],"deep":${'{"a":['.repeat(45)}${"]}".repeat(45)}}`;
  assert.ok(JSON.stringify(loaded.entry(`${turn_uuid}/t1`)!.tool!.input) === expected); // assert.equal would print all of it
  assert.ok(transcript("title", items).includes("make"));
});
