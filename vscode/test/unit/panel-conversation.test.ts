import assert from "node:assert/strict";
import test from "node:test";
import type { HubEvent, SessionItem } from "../../src/protocol";
import { Conversation } from "../../src/webview/conversation";
import { sessionOf } from "../../src/webview/session";

const time = "2026-01-02T03:04:05Z";

function item(over: Partial<SessionItem>): SessionItem {
  return { turn: "1.1", turn_uuid: "run", turn_state: "running", type: "message", key: "", created_at: time, updated_at: time, ...over };
}

function event(seq: number, kind: string, { turn_uuid = "run", ...data }: Record<string, unknown>): HubEvent {
  return { subscription_id: "sub", seq, kind, time, turn_uuid, data } as HubEvent;
}

function updated(seq: number, type: string, data: Record<string, unknown>): HubEvent {
  return event(seq, type === "tool_call" ? "item.changed" : "item.added", { type, ...data });
}

function delta(seq: number, text: string, key = "m1"): HubEvent {
  return event(seq, "text.delta", { key, text });
}

function loaded(...items: SessionItem[]): Conversation {
  const conversation = new Conversation();
  conversation.load(items);
  conversation.takeChanges();
  return conversation;
}

/** Summarises the entries of a conversation. */
function brief(conversation: Conversation): string[] {
  return conversation.entries.map(({ kind, text, open, tool }) => `${kind}${open ? "…" : ""} ${tool ? `${tool.title} ${tool.status}` : text}`);
}

test("text grows by its deltas, and is settled by the whole message", () => {
  const conversation = loaded();
  conversation.apply(event(1, "thought.delta", { key: "t1", text: "hm" }));
  conversation.apply(delta(2, "Hel"));
  assert.deepEqual(brief(conversation), ["thinking… hm", "text… Hel"]);
  assert.equal(conversation.takeChanges().order, true);
  conversation.apply(delta(3, "lo"));
  assert.deepEqual([...conversation.takeChanges().keys], ["m1"]);
  assert.deepEqual(brief(conversation), ["thinking… hm", "text… Hello"]);
  conversation.apply(updated(4, "message", { role: "assistant", key: "m1", text: "Hello!" }));
  conversation.apply(delta(5, "late"));
  assert.deepEqual(brief(conversation), ["thinking… hm", "text Hello!"]);
});

test("a delta that begins in what was loaded adds what is new of it", () => {
  const part = (text: string): SessionItem => item({ id: 1, role: "assistant", text, open: true, key: "m1", seq: 5 });
  for (const [text, length, expected] of [["lo, you", 10, "Hello, you"], ["lo", 5, "Hello"], [", you", 10, "Hello, you"], ["!", undefined, "Hello!"], ["later", 20, "Hellolater"]] as const) {
    const conversation = loaded(part("Hello"));
    conversation.apply(event(9, "text.delta", { key: "m1", text, ...(length !== undefined && { length }) }));
    assert.equal(conversation.entries[0]!.text, expected);
  }
});

test("a whole message that was cut for its event does not cut what the deltas told", () => {
  const conversation = loaded();
  conversation.apply(delta(1, "all of it"));
  conversation.apply(updated(2, "message", { role: "assistant", key: "m1", text: "all", truncated: true }));
  assert.deepEqual(brief(conversation), ["text all of it"]);
});

test("what came before the page was there is applied after it, once", () => {
  const conversation = new Conversation();
  conversation.apply(delta(4, "b"));
  conversation.apply(delta(5, "c"));
  conversation.apply(updated(6, "message", { role: "user", key: "p2", text: "and?" }));
  assert.deepEqual(brief(conversation), []);
  conversation.load([item({ key: "p1", role: "user", text: "go", seq: 1 }), item({ key: "m1", role: "assistant", text: "ab", open: true, seq: 4 })]);
  assert.deepEqual(brief(conversation), ["prompt go", "text… abc", "prompt and?"]);
});

test("an older page stands before what is there, and sub-agents get under a call that it brings", () => {
  const conversation = loaded(
    item({ key: "s1", role: "assistant", text: "from below", parent_tool_use_id: "task", seq: 8 }),
    item({ key: "m2", role: "assistant", text: "done", seq: 9 }),
  );
  assert.deepEqual(brief(conversation), ["text from below", "text done"]);
  conversation.load([item({ key: "p1", role: "user", text: "go", seq: 1 }), item({ type: "tool_call", key: "task", title: "Look", status: "completed", seq: 7 })], true);
  assert.deepEqual(brief(conversation), ["prompt go", "tool Look completed", "text done"]);
  assert.deepEqual(conversation.partsOf("run/task").map(({ text }) => text), ["from below"]);
});

test("a tool call keeps what later events leave out; its id may come again in another run", () => {
  const conversation = loaded();
  conversation.apply(updated(1, "tool_call", { key: "c1", title: "Write a.txt", tool_kind: "edit", status: "in_progress", tool_input: { path: "a.txt" }, details: { paths: ["/a.txt"], diffs: [{ path: "/a.txt", new_text: "x" }, { path: "/b", old_text: "", new_text: "", line: 200 }] } }));
  assert.deepEqual(brief(conversation), ["tool… Write a.txt in_progress"]);
  conversation.apply(updated(2, "tool_call", { key: "c1", result: "ok", status: "completed" }));
  conversation.apply(updated(1, "tool_call", { key: "c1", status: "pending" }));
  const { open, tool } = conversation.entry("run/c1")!;
  assert.deepEqual([open, tool!.status, tool!.result, tool!.input, tool!.paths], [false, "completed", "ok", { path: "a.txt" }, ["/a.txt"]]);
  assert.deepEqual(tool!.diffs, [{ path: "/a.txt", line: 1, before: undefined, after: "x" }, { path: "/b", line: 200, before: "", after: "" }]);
  conversation.apply(updated(3, "tool_call", { turn_uuid: "run2", key: "c1", title: "Again", status: "pending" }));
  assert.deepEqual(brief(conversation), ["tool Write a.txt completed", "tool… Again pending"]);
});

test("what a sub-agent does stands under its call, and its change is one of the outermost call", () => {
  const conversation = loaded(item({ type: "tool_call", key: "outer", title: "Outer", seq: 1 }));
  conversation.apply(updated(2, "tool_call", { key: "inner", title: "Inner", parent_tool_use_id: "outer" }));
  conversation.apply(event(3, "text.delta", { key: "deep", text: "a", parent_tool_use_id: "inner" }));
  conversation.takeChanges();
  conversation.apply(delta(4, "b", "deep"));
  assert.deepEqual([...conversation.takeChanges().keys], ["run/outer"]);
  assert.deepEqual(brief(conversation), ["tool… Outer pending"]);
  assert.equal(conversation.partsOf("run/inner")[0]!.text, "ab");
});

test("calls that claim to be part of each other end nothing", () => {
  const conversation = loaded(item({ type: "tool_call", key: "a", parent_tool_use_id: "b", seq: 1 }), item({ type: "tool_call", key: "b", parent_tool_use_id: "a", seq: 2 }));
  conversation.load([], true);
  conversation.apply(updated(3, "tool_call", { key: "a", status: "completed" }));
  assert.equal(conversation.entry("run/a")!.open, false);
});

test("plan and changed files are replaced whole", () => {
  const conversation = loaded(item({ type: "plan", key: "", seq: 1, entries: [{ content: "one", status: "pending" }] }));
  conversation.apply(event(2, "plan", { entries: [{ content: "one", status: "completed" }, { content: "two" }] }));
  conversation.apply(event(3, "change.made", { path: "/a", added: 1, removed: 0 }));
  conversation.apply(event(4, "change.made", { path: "/a", added: 2, removed: 0 }));
  assert.deepEqual(conversation.entries.map(({ kind }) => kind), ["plan", "diff"]);
  assert.deepEqual(conversation.entries[0]!.plan, [{ content: "one", status: "completed" }, { content: "two" }]);
  assert.equal(conversation.entries[1]!.data["added"], 2);
});

test("a question waits, with the call that it is about, until it is answered; a late reply does not bring it back", () => {
  const conversation = loaded();
  conversation.apply(event(1, "approval.opened", { approval: "a1", tool_use_id: "c1", title: "Write a.txt" }));
  assert.deepEqual(conversation.questions.map(({ id, tool }) => [id, tool]), [["a1", undefined]]);
  conversation.apply(updated(2, "tool_call", { key: "c1", title: "Write a.txt" }));
  assert.deepEqual(conversation.questions.map(({ id, tool }) => [id, tool]), [["a1", "run/c1"]]);
  conversation.takeChanges();
  conversation.apply(event(3, "approval.closed", { approval: "a1", status: "denied", decided_by: "user", comment: "no" }));
  assert.equal(conversation.takeChanges().questions, true);
  conversation.loadQuestions([{ approval: "a1", turn_uuid: "run" }]);
  assert.deepEqual(conversation.questions, []);
  assert.deepEqual(conversation.entries.map(({ key, data }) => [key, data["comment"]]), [["run/c1", undefined], ["answer:a1", "no"]]);
});

test("what was merely allowed is no entry of its own", () => {
  const conversation = loaded();
  conversation.apply(event(1, "approval.closed", { approval: "a1", status: "approved", decided_by: "user" }));
  conversation.apply(event(2, "approval.closed", { approval: "a2", status: "approved", decided_by: "user", input_was_edited: true }));
  assert.deepEqual(conversation.entries.map(({ key }) => key), ["answer:a2"]);
});

test("when a run ends its questions are closed and nothing is being written; an end is an end", () => {
  const conversation = loaded();
  conversation.apply(event(1, "turn.state", { state: "running" }));
  conversation.apply(event(1, "turn.state", { turn_uuid: "run2", state: "queued" }));
  assert.deepEqual([conversation.turns.active, conversation.turns.queued], ["run", ["run2"]]);
  conversation.apply(event(2, "agent.silent", { since: time, ended: false }));
  assert.equal(conversation.turns.silent, time);
  conversation.apply(delta(3, "half"));
  conversation.apply(event(4, "approval.opened", { approval: "a1" }));
  conversation.apply(event(5, "turn.state", { state: "failed", error: "it broke" }));
  conversation.loadTurn({ turn_uuid: "run", state: "running" });
  assert.deepEqual([conversation.turns.state("run"), conversation.turns.active, conversation.turns.silent, conversation.questions.length], ["failed", undefined, undefined, 0]);
  assert.deepEqual(brief(conversation), ["text half", "error it broke"]);
});

test("an interrupted turn stays marked when other prompts follow, and after a reload", () => {
  const prompt = (turn_uuid: string, over: Partial<SessionItem> = {}): SessionItem => item({ turn_uuid, key: `p-${turn_uuid}`, role: "user", text: turn_uuid, ...over });
  const conversation = loaded(prompt("run"), prompt("next"));
  conversation.loadTurn({ turn_uuid: "run", state: "running" });
  conversation.loadTurn({ turn_uuid: "next", state: "queued" });
  conversation.apply(event(5, "turn.state", { state: "interrupting", reason: "user_cancelled" }));
  conversation.apply(event(6, "turn.state", { state: "interrupted" }));
  conversation.apply(event(7, "turn.state", { turn_uuid: "next", state: "starting" }));
  assert.deepEqual(brief(conversation), ["prompt run", "system Interrupted: on request", "prompt next"]);
  const interrupted = { turn_state: "interrupted", seq: 3 };
  const later = loaded(item({ ...interrupted, key: "m1", role: "assistant", text: "Half", turn_uuid: "run" }), prompt("bad", { turn_state: "failed" }), prompt("back", { turn_state: "cancelled" }), prompt("next"));
  later.load([prompt("run", interrupted), item({ ...interrupted, key: "m1", role: "assistant", text: "Half", turn_uuid: "run" })], true);
  assert.deepEqual(brief(later), ["prompt run", "text Half", "system Interrupted", "prompt bad", "error Failed", "prompt back", "prompt next"]);
});

test("queued prompts have the order and the text of the last change, also when they begin", () => {
  const prompt = (run: string): SessionItem => item({ turn_uuid: run, key: `p-${run}`, role: "user", text: run, seq: 1 });
  const conversation = loaded(prompt("a"), prompt("b"), prompt("c"));
  conversation.loadTurn({ turn_uuid: "run", state: "running" });
  for (const id of ["a", "b", "c"]) conversation.loadTurn({ turn_uuid: id, state: "queued" });
  conversation.takeChanges();
  const queue = (): string[] => conversation.queued.map(({ text }) => text);
  conversation.apply(event(5, "queue.changed", { turn_uuid: "b", prompt: "begin", truncated: true, order: ["b", "a"] }));
  assert.deepEqual([queue(), conversation.queued[0]!.truncated, [...conversation.takeChanges().keys]], [["begin", "a", "c"], true, ["p-b"]]);
  conversation.load([item({ turn_uuid: "b", key: "p-b", role: "user", text: "begin and end", seq: 5 })]);
  conversation.apply(event(4, "queue.changed", { turn_uuid: "b", prompt: "old", order: ["b", "a", "c"] }));
  conversation.apply(event(6, "queue.changed", { turn_uuid: "c", order: ["c", "b", "a"] }));
  assert.deepEqual(queue(), ["c", "begin and end", "a"]);
  conversation.apply(event(7, "turn.state", { state: "completed" }));
  assert.deepEqual(queue(), ["c", "begin and end", "a"], "they wait also between two runs");
  conversation.apply(event(8, "turn.state", { turn_uuid: "c", state: "starting" }));
  assert.deepEqual([queue(), conversation.entries.at(-1)!.text], [["begin and end", "a"], "c"]);
});

test("where gates stand is told by the session, then by events, until a prompt has none", () => {
  const conversation = loaded();
  const words = (): string => sessionOf(undefined, conversation).gates;
  assert.equal(words(), "");
  conversation.loadTurn({ turn_uuid: "run", state: "running", gates: { state: "working", iteration: 1, max_iterations: 5 } });
  assert.equal(words(), "turn 1 of 5");
  conversation.apply(event(1, "gate.started", { gate: "make test", iteration: 1 }));
  assert.equal(words(), "turn 1 of 5, checks make test");
  conversation.apply(event(2, "gate.result", { gate: "make test", iteration: 1, max_iterations: 5, passed: false }));
  conversation.apply(event(3, "gate.iteration", { iteration: 2, max_iterations: 5 }));
  assert.equal(words(), "turn 2 of 5");
  conversation.apply(event(4, "gate.ended", { gates_state: "passed", iteration: 2, max_iterations: 5 }));
  assert.equal(words(), "gates passed");
  assert.equal(conversation.takeChanges().session, true);
  conversation.loadTurn({ turn_uuid: "run2", state: "queued" });
  assert.equal(words(), "");
});

test("what the agent tells of its session is newer than the reply that it overtakes", () => {
  const conversation = loaded();
  conversation.apply(event(1, "agent.session", { mode: { current: "plan", available: [] } }));
  conversation.loadTurn({ turn_uuid: "run", state: "running", agent_session: { mode: { current: "default" }, commands: [{ name: "init" }] } });
  assert.equal(conversation.agent.mode!["current"], "plan");
  assert.deepEqual(conversation.agent.commands, [{ name: "init" }]);
});

test("an error that the conversation tells itself stands there once", () => {
  const conversation = loaded();
  conversation.apply(event(1, "agent.error", { code: "CONTENT_REFUSED", message: "too long" }));
  conversation.apply(updated(2, "notice", { key: "n1", text: "too long" }));
  conversation.apply(event(3, "agent.error", { code: "AGENT", message: "odd" }));
  assert.deepEqual(brief(conversation), ["system too long", "error odd"]);
});

test("a change of one entry among thousands is told by its key alone", () => {
  const conversation = loaded(...Array.from({ length: 5_000 }, (_, i) => item({ key: `k${i}`, role: "assistant", text: "x", seq: i + 1 })));
  for (let i = 0; i < 20_000; i++) conversation.apply(delta(6_000 + i, "x"));
  const changes = conversation.takeChanges();
  assert.deepEqual([conversation.entries.length, conversation.entry("m1")!.text.length, [...changes.keys]], [5_001, 20_000, ["m1"]]);
});

test("a question is partial until it was fetched, and no cut event takes anything away again", () => {
  const conversation = loaded();
  const question = { approval: "q", title: "Run it", tool_input: { command: "x" } };
  conversation.apply(event(1, "approval.opened", { ...question, tool_input: null, truncated: true }));
  assert.equal(conversation.questions[0]!.partial, true);
  conversation.loadQuestions([{ approval: "q", title: "Run it", tool_input: { command: "x" } }]);
  conversation.apply(event(2, "approval.opened", { ...question, tool_input: null, truncated: true, replayed: true }));
  const { partial, data } = conversation.questions[0]!;
  assert.deepEqual([partial, data["tool_input"], data["truncated"]], [false, { command: "x" }, undefined]);
});

test("a tool call is cut until an item has all of it", () => {
  const conversation = loaded();
  conversation.apply(updated(1, "tool_call", { key: "c", status: "failed", result: "the beg", truncated: true }));
  assert.equal(conversation.entries[0]!.truncated, true);
  conversation.load([item({ type: "tool_call", key: "c", result: "the beginning and the end", status: "failed", seq: 1 })]);
  conversation.apply(updated(2, "tool_call", { key: "c", status: "failed", result: "the beg", truncated: true }));
  assert.deepEqual([conversation.entries[0]!.tool!.result, conversation.entries[0]!.truncated], ["the beginning and the end", false]);
});
