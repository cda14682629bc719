import assert from "node:assert/strict";
import test from "node:test";
import type { HubEvent, SessionItem } from "../../src/protocol";
import { Contents } from "../../src/webview/contents";
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

function loaded(...items: SessionItem[]): Contents {
  const contents = new Contents();
  contents.load(items);
  contents.takeChanges();
  return contents;
}

/** Summarises the entries of a session. */
function brief(contents: Contents): string[] {
  return contents.entries.map(({ kind, text, open, tool }) => `${kind}${open ? "…" : ""} ${tool ? `${tool.title} ${tool.status}` : text}`);
}

test("text grows by its deltas, and is settled by the whole message", () => {
  const contents = loaded();
  contents.apply(event(1, "thought.delta", { key: "t1", text: "hm" }));
  contents.apply(delta(2, "Hel"));
  assert.deepEqual(brief(contents), ["thinking… hm", "text… Hel"]);
  assert.equal(contents.takeChanges().order, true);
  contents.apply(delta(3, "lo"));
  assert.deepEqual([...contents.takeChanges().keys], ["m1"]);
  assert.deepEqual(brief(contents), ["thinking… hm", "text… Hello"]);
  contents.apply(updated(4, "message", { role: "assistant", key: "m1", text: "Hello!" }));
  contents.apply(delta(5, "late"));
  assert.deepEqual(brief(contents), ["thinking… hm", "text Hello!"]);
});

test("a delta that begins in what was loaded adds what is new of it", () => {
  const part = (text: string): SessionItem => item({ id: 1, role: "assistant", text, open: true, key: "m1", seq: 5 });
  for (const [text, length, expected] of [["lo, you", 10, "Hello, you"], ["lo", 5, "Hello"], [", you", 10, "Hello, you"], ["!", undefined, "Hello!"], ["later", 20, "Hellolater"]] as const) {
    const contents = loaded(part("Hello"));
    contents.apply(event(9, "text.delta", { key: "m1", text, ...(length !== undefined && { length }) }));
    assert.equal(contents.entries[0]!.text, expected);
  }
});

test("a whole message that was cut for its event does not cut what the deltas told", () => {
  const contents = loaded();
  contents.apply(delta(1, "all of it"));
  contents.apply(updated(2, "message", { role: "assistant", key: "m1", text: "all", truncated: true }));
  assert.deepEqual(brief(contents), ["text all of it"]);
});

test("what came before the page was there is applied after it, once", () => {
  const contents = new Contents();
  contents.apply(delta(4, "b"));
  contents.apply(delta(5, "c"));
  contents.apply(updated(6, "message", { role: "user", key: "p2", text: "and?" }));
  assert.deepEqual(brief(contents), []);
  contents.load([item({ key: "p1", role: "user", text: "go", seq: 1 }), item({ key: "m1", role: "assistant", text: "ab", open: true, seq: 4 })]);
  assert.deepEqual(brief(contents), ["prompt go", "text… abc", "prompt and?"]);
});

test("an older page stands before what is there, and sub-agents get under a call that it brings", () => {
  const contents = loaded(
    item({ key: "s1", role: "assistant", text: "from below", parent_tool_use_id: "task", seq: 8 }),
    item({ key: "m2", role: "assistant", text: "done", seq: 9 }),
  );
  assert.deepEqual(brief(contents), ["text from below", "text done"]);
  contents.load([item({ key: "p1", role: "user", text: "go", seq: 1 }), item({ type: "tool_call", key: "task", title: "Look", status: "completed", seq: 7 })], true);
  assert.deepEqual(brief(contents), ["prompt go", "tool Look completed", "text done"]);
  assert.deepEqual(contents.partsOf("run/task").map(({ text }) => text), ["from below"]);
});

test("a tool call keeps what later events leave out; its id may come again in another run", () => {
  const contents = loaded();
  contents.apply(updated(1, "tool_call", { key: "c1", title: "Write a.txt", tool_kind: "edit", status: "in_progress", tool_input: { path: "a.txt" }, details: { paths: ["/a.txt"], diffs: [{ path: "/a.txt", new_text: "x" }, { path: "/b", old_text: "", new_text: "", line: 200 }] } }));
  assert.deepEqual(brief(contents), ["tool… Write a.txt in_progress"]);
  contents.apply(updated(2, "tool_call", { key: "c1", result: "ok", status: "completed" }));
  contents.apply(updated(1, "tool_call", { key: "c1", status: "pending" }));
  const { open, tool } = contents.entry("run/c1")!;
  assert.deepEqual([open, tool!.status, tool!.result, tool!.input, tool!.paths], [false, "completed", "ok", { path: "a.txt" }, ["/a.txt"]]);
  assert.deepEqual(tool!.diffs, [{ path: "/a.txt", line: 1, before: undefined, after: "x" }, { path: "/b", line: 200, before: "", after: "" }]);
  contents.apply(updated(3, "tool_call", { turn_uuid: "run2", key: "c1", title: "Again", status: "pending" }));
  assert.deepEqual(brief(contents), ["tool Write a.txt completed", "tool… Again pending"]);
});

test("what a sub-agent does stands under its call, and its change is one of the outermost call", () => {
  const contents = loaded(item({ type: "tool_call", key: "outer", title: "Outer", seq: 1 }));
  contents.apply(updated(2, "tool_call", { key: "inner", title: "Inner", parent_tool_use_id: "outer" }));
  contents.apply(event(3, "text.delta", { key: "deep", text: "a", parent_tool_use_id: "inner" }));
  contents.takeChanges();
  contents.apply(delta(4, "b", "deep"));
  assert.deepEqual([...contents.takeChanges().keys], ["run/outer"]);
  assert.deepEqual(brief(contents), ["tool… Outer pending"]);
  assert.equal(contents.partsOf("run/inner")[0]!.text, "ab");
});

test("calls that claim to be part of each other end nothing", () => {
  const contents = loaded(item({ type: "tool_call", key: "a", parent_tool_use_id: "b", seq: 1 }), item({ type: "tool_call", key: "b", parent_tool_use_id: "a", seq: 2 }));
  contents.load([], true);
  contents.apply(updated(3, "tool_call", { key: "a", status: "completed" }));
  assert.equal(contents.entry("run/a")!.open, false);
});

test("plan and changed files are replaced whole", () => {
  const contents = loaded(item({ type: "plan", key: "", seq: 1, entries: [{ content: "one", status: "pending" }] }));
  contents.apply(event(2, "plan", { entries: [{ content: "one", status: "completed" }, { content: "two" }] }));
  contents.apply(event(3, "change.made", { path: "/a", added: 1, removed: 0 }));
  contents.apply(event(4, "change.made", { path: "/a", added: 2, removed: 0 }));
  assert.deepEqual(contents.entries.map(({ kind }) => kind), ["plan", "diff"]);
  assert.deepEqual(contents.entries[0]!.plan, [{ content: "one", status: "completed" }, { content: "two" }]);
  assert.equal(contents.entries[1]!.data["added"], 2);
});

test("a question waits, with the call that it is about, until it is answered; a late reply does not bring it back", () => {
  const contents = loaded();
  contents.apply(event(1, "approval.opened", { approval: "a1", tool_use_id: "c1", title: "Write a.txt" }));
  assert.deepEqual(contents.questions.map(({ id, tool }) => [id, tool]), [["a1", undefined]]);
  contents.apply(updated(2, "tool_call", { key: "c1", title: "Write a.txt" }));
  assert.deepEqual(contents.questions.map(({ id, tool }) => [id, tool]), [["a1", "run/c1"]]);
  contents.takeChanges();
  contents.apply(event(3, "approval.closed", { approval: "a1", status: "denied", decided_by: "user", comment: "no" }));
  assert.equal(contents.takeChanges().questions, true);
  contents.loadQuestions([{ approval: "a1", turn_uuid: "run" }]);
  assert.deepEqual(contents.questions, []);
  assert.deepEqual(contents.entries.map(({ key, data }) => [key, data["comment"]]), [["run/c1", undefined], ["answer:a1", "no"]]);
});

test("a denied call says its denial, and a call that wrote a file its change: neither is said twice", () => {
  const contents = loaded(
    item({ type: "tool_call", key: "c1", title: "Write a.txt", status: "failed", refused_by: "user", refusal: "Denied in Emacs", approval: "a1", approval_status: "denied" }),
    item({ type: "answer", key: "a1", answer: { approval: "a1", type: "function_call", status: "denied", title: "Write a.txt", response: "not now", decided_by: "user", decided_in: "Emacs" } }),
  );
  const said = (): string[] => contents.entries.filter((entry) => !contents.saidBy(entry)).map(({ key }) => key);
  assert.deepEqual(said(), ["run/c1"]);
  assert.deepEqual(contents.denialOf(contents.entry("run/c1")!), { by: "user", where: "Emacs", reason: "not now" });
  // The same by events.
  contents.apply(updated(2, "tool_call", { key: "c2", title: "Write b.txt", details: { diffs: [{ path: "b.txt", new_text: "b" }] } }));
  contents.apply(event(3, "approval.opened", { approval: "a2", tool_use_id: "c2", title: "Write b.txt" }));
  contents.takeChanges();
  contents.apply(event(4, "approval.closed", { approval: "a2", status: "denied", decided_by: "rule=7" }));
  assert.deepEqual([contents.takeChanges().keys, said()], [new Set(["run/c2"]), ["run/c1", "run/c2"]]);
  // A change stands by itself until a call that is done shows it.
  contents.apply(event(5, "change.made", { path: "/p/src/c.txt", added: 1, removed: 0 }));
  contents.apply(updated(6, "tool_call", { key: "c3", title: "Write c.txt", status: "in_progress", details: { diffs: [{ path: "src/c.txt", new_text: "c" }] } }));
  assert.deepEqual(said(), ["run/c1", "run/c2", "change:run:/p/src/c.txt", "run/c3"]);
  contents.takeChanges();
  contents.apply(updated(7, "tool_call", { key: "c3", status: "completed" }));
  assert.deepEqual([contents.takeChanges().order, said()], [true, ["run/c1", "run/c2", "run/c3"]]);
  assert.equal(contents.saidBy(contents.entry("change:run:/p/src/c.txt")!)?.key, "run/c3");
});

test("what was merely allowed is no entry of its own", () => {
  const contents = loaded();
  contents.apply(event(1, "approval.closed", { approval: "a1", status: "approved", decided_by: "user" }));
  contents.apply(event(2, "approval.closed", { approval: "a2", status: "approved", decided_by: "user", input_was_edited: true }));
  assert.deepEqual(contents.entries.map(({ key }) => key), ["answer:a2"]);
});

test("when a turn ends its questions are closed and nothing is being written; an end is an end", () => {
  const contents = loaded();
  contents.apply(event(1, "turn.state", { state: "running" }));
  contents.apply(event(1, "turn.state", { turn_uuid: "run2", state: "queued" }));
  assert.deepEqual([contents.turns.active, contents.turns.queued], ["run", ["run2"]]);
  contents.apply(event(2, "agent.silent", { since: time, ended: false }));
  assert.equal(contents.turns.silent, time);
  contents.apply(delta(3, "half"));
  contents.apply(event(4, "approval.opened", { approval: "a1" }));
  contents.apply(event(5, "turn.state", { state: "failed", error: "it broke" }));
  contents.loadTurn({ turn_uuid: "run", state: "running" });
  assert.deepEqual([contents.turns.state("run"), contents.turns.active, contents.turns.silent, contents.questions.length], ["failed", undefined, undefined, 0]);
  assert.deepEqual(brief(contents), ["text half", "error it broke"]);
});

test("an interrupted turn stays marked when other prompts follow, and after a reload", () => {
  const prompt = (turn_uuid: string, over: Partial<SessionItem> = {}): SessionItem => item({ turn_uuid, key: `p-${turn_uuid}`, role: "user", text: turn_uuid, ...over });
  const contents = loaded(prompt("run"), prompt("next"));
  contents.loadTurn({ turn_uuid: "run", state: "running" });
  contents.loadTurn({ turn_uuid: "next", state: "queued" });
  contents.apply(event(5, "turn.state", { state: "interrupting", reason: "user_cancelled" }));
  contents.apply(event(6, "turn.state", { state: "interrupted" }));
  contents.apply(event(7, "turn.state", { turn_uuid: "next", state: "starting" }));
  assert.deepEqual(brief(contents), ["prompt run", "system Interrupted: on request", "prompt next"]);
  const interrupted = { turn_state: "interrupted", seq: 3 } as const;
  const later = loaded(item({ ...interrupted, key: "m1", role: "assistant", text: "Half", turn_uuid: "run" }), prompt("bad", { turn_state: "failed" }), prompt("back", { turn_state: "cancelled" }), prompt("next"));
  later.load([prompt("run", interrupted), item({ ...interrupted, key: "m1", role: "assistant", text: "Half", turn_uuid: "run" })], true);
  assert.deepEqual(brief(later), ["prompt run", "text Half", "system Interrupted", "prompt bad", "error Failed", "prompt back", "prompt next"]);
  assert.deepEqual(later.takeUnexplained(), ["bad", "run"]);
  later.explainEnd({ turn_uuid: "bad", state: "failed", error: "it broke" });
  later.explainEnd({ turn_uuid: "run", state: "interrupted", error: "the daemon stopped." });
  assert.deepEqual(brief(later).filter((line) => /^(error|system)/.test(line)), ["system Interrupted: the daemon stopped", "error it broke"]);
});

test("queued prompts have the order and the text of the last change, also when they begin", () => {
  const prompt = (run: string): SessionItem => item({ turn_uuid: run, key: `p-${run}`, role: "user", text: run, seq: 1 });
  const contents = loaded(prompt("a"), prompt("b"), prompt("c"));
  contents.loadTurn({ turn_uuid: "run", state: "running" });
  for (const id of ["a", "b", "c"]) contents.loadTurn({ turn_uuid: id, state: "queued" });
  contents.takeChanges();
  const queue = (): string[] => contents.queued.map(({ text }) => text);
  contents.apply(event(5, "queue.changed", { turn_uuid: "b", prompt: "begin", truncated: true, order: ["b", "a"] }));
  assert.deepEqual([queue(), contents.queued[0]!.truncated, [...contents.takeChanges().keys]], [["begin", "a", "c"], true, ["p-b"]]);
  contents.load([item({ turn_uuid: "b", key: "p-b", role: "user", text: "begin and end", seq: 5 })]);
  contents.apply(event(4, "queue.changed", { turn_uuid: "b", prompt: "old", order: ["b", "a", "c"] }));
  contents.apply(event(6, "queue.changed", { turn_uuid: "c", order: ["c", "b", "a"] }));
  assert.deepEqual(queue(), ["c", "begin and end", "a"]);
  contents.apply(event(7, "turn.state", { state: "completed" }));
  assert.deepEqual(queue(), ["c", "begin and end", "a"], "they wait also between two runs");
  contents.apply(event(8, "turn.state", { turn_uuid: "c", state: "starting" }));
  assert.deepEqual([queue(), contents.entries.at(-1)!.text], [["begin and end", "a"], "c"]);
});

test("the panel shows the state of the gates from the session, then from events, until a prompt has none", () => {
  const contents = loaded();
  const words = (): string => sessionOf(undefined, contents).gates;
  assert.equal(words(), "");
  contents.loadTurn({ turn_uuid: "run", state: "running", gates: { state: "working", iteration: 1, max_iterations: 5 } });
  assert.equal(words(), "turn 1 of 5");
  contents.apply(event(1, "gate.started", { gate: "make test", iteration: 1 }));
  assert.equal(words(), "turn 1 of 5, checks make test");
  contents.apply(event(2, "gate.result", { gate: "make test", iteration: 1, max_iterations: 5, passed: false }));
  contents.apply(event(3, "gate.iteration", { iteration: 2, max_iterations: 5 }));
  assert.equal(words(), "turn 2 of 5");
  contents.apply(event(4, "gate.ended", { gates_state: "passed", iteration: 2, max_iterations: 5 }));
  assert.equal(words(), "gates passed");
  assert.equal(contents.takeChanges().session, true);
  contents.loadTurn({ turn_uuid: "run2", state: "queued" });
  assert.equal(words(), "");
});

test("what the agent tells of its session is newer than the reply that it overtakes", () => {
  const contents = loaded();
  contents.apply(event(1, "agent.session", { mode: { current: "plan", available: [] } }));
  contents.loadTurn({ turn_uuid: "run", state: "running", agent_session: { mode: { current: "default" }, commands: [{ name: "init" }] } });
  assert.equal(contents.agent.mode!["current"], "plan");
  assert.deepEqual(contents.agent.commands, [{ name: "init" }]);
});

test("an error that an entry of the session tells stands there once", () => {
  const contents = loaded();
  contents.apply(event(1, "agent.error", { code: "CONTENT_REFUSED", message: "too long" }));
  contents.apply(updated(2, "notice", { key: "n1", text: "too long" }));
  contents.apply(event(3, "agent.error", { code: "AGENT", message: "odd" }));
  assert.deepEqual(brief(contents), ["system too long", "error odd"]);
});

test("a change of one entry among thousands is told by its key alone", () => {
  const contents = loaded(...Array.from({ length: 5_000 }, (_, i) => item({ key: `k${i}`, role: "assistant", text: "x", seq: i + 1 })));
  for (let i = 0; i < 20_000; i++) contents.apply(delta(6_000 + i, "x"));
  const changes = contents.takeChanges();
  assert.deepEqual([contents.entries.length, contents.entry("m1")!.text.length, [...changes.keys]], [5_001, 20_000, ["m1"]]);
});

test("a question is partial until it was fetched, and no cut event takes anything away again", () => {
  const contents = loaded();
  const question = { approval: "q", title: "Run it", tool_input: { command: "x" } };
  contents.apply(event(1, "approval.opened", { ...question, tool_input: null, truncated: true }));
  assert.equal(contents.questions[0]!.partial, true);
  contents.loadQuestions([{ approval: "q", title: "Run it", tool_input: { command: "x" } }]);
  contents.apply(event(2, "approval.opened", { ...question, tool_input: null, truncated: true, replayed: true }));
  const { partial, data } = contents.questions[0]!;
  assert.deepEqual([partial, data["tool_input"], data["truncated"]], [false, { command: "x" }, undefined]);
});

test("a tool call is cut until an item has all of it", () => {
  const contents = loaded();
  contents.apply(updated(1, "tool_call", { key: "c", status: "failed", result: "the beg", truncated: true }));
  assert.equal(contents.entries[0]!.truncated, true);
  contents.load([item({ type: "tool_call", key: "c", result: "the beginning and the end", status: "failed", seq: 1 })]);
  contents.apply(updated(2, "tool_call", { key: "c", status: "failed", result: "the beg", truncated: true }));
  assert.deepEqual([contents.entries[0]!.tool!.result, contents.entries[0]!.truncated], ["the beginning and the end", false]);
});
