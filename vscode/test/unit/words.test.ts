import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { age, backgroundOf, backgroundWords, describe, exactly, grouped, groupOf, isAlive, isInterruptible, labelOf, nameOf, short, statusWords, unlinked, visible } from "../../src/hub/groups";
import { wholeQuestions } from "../../src/hub/model";
import type { Question, Session } from "../../src/hub/model";
import { answers } from "../../src/protocol";
import type { State } from "../../src/protocol";
import { prefix } from "../../src/webview/chord";
import { choicesOf, detailsOf, fieldsOf, titleOf, valueOf } from "../../src/hub/questions";

function session(over: Partial<Session>): Session {
  return { turn: "12.3", session: 12, turn_uuid: "s", session_uuid: "t", state: "completed", title: "", session_title: "", summary: "", prompt: "", agent: "demo", archived: false, active_at: "2026-01-01T00:00:00Z", ...over } as Session;
}

function question(over: Partial<Question>): Question {
  return { approval: "q", type: "function_call", title: "", tool_name: "Write", stale: false, ...over } as Question;
}

test("sessions stand in groups, those that wait for a person first", () => {
  const sessions = (["completed", "running", "waiting_input", "failed", "draft", "interrupting"] as const).map((state) => session({ state }));
  sessions.push(session({ state: "queued" }), session({ state: "starting" }), session({ state: "running", archived: true }), session({ state: "interrupted" }), session({ state: "timed_out" }), session({ state: "cancelled" }));
  const later = Date.parse("2026-01-03T12:00:00Z");
  assert.deepEqual(grouped(sessions, later).map(({ id, sessions }) => [id, sessions.length]), [["waiting", 1], ["today", 4], ["failed", 4], ["done", 1], ["draft", 1], ["archived", 1]]);
});

test("a session that ends stays in its place in the list for the day", () => {
  const now = new Date(2026, 0, 5, 20).getTime();
  const at = (hours: number): string => new Date(2026, 0, 5, hours).toISOString();
  const ids = (state: State, active: number): string[] =>
    grouped([session({ session: 2, state, active_at: at(active) }), session({ session: 3, state: "running", active_at: at(9) }), session({ session: 1, state: "completed", active_at: at(19) })], now).map(({ id, label, sessions }) => `${id} ${label}: ${sessions.map((one) => one.session).join(" ")}`);
  for (const state of ["queued", "running", "completed", "failed", "interrupted"] as const) assert.deepEqual(ids(state, 18), ["today Today: 3 2 1"], state);
  assert.deepEqual(ids("waiting_input", 18), ["waiting Waiting for you: 2", "today Today: 3 1"]);
  assert.deepEqual([ids("completed", -1), ids("failed", -1), ids("running", -1)], [["today Today: 3 1", "done Completed: 2"], ["today Today: 3 1", "failed Failed or interrupted: 2"], ["today Today: 3 2 1"]]);
});

test("a session is listed by what it does, not by its last turn alone", () => {
  const queued = { state: "queued" } as const;
  const ahead = (state: State): Partial<Session> => ({ ...queued, ahead: { turn_uuid: "before", state } });
  const sessions = [session(ahead("running")), session(ahead("waiting_input")), session({ state: "failed", waits: true }), session(queued)];
  assert.deepEqual(sessions.map(groupOf), ["working", "waiting", "waiting", "queued"]);
  assert.deepEqual(sessions.map(statusWords), ["running, and a prompt is queued", "waiting for you", "waiting for you", "queued"]);
  assert.deepEqual(sessions.map(isAlive), [true, true, false, true]);
});

test("what an agent does in the background is told while it works on no prompt", () => {
  const background = [{ id: "1", kind: "process", title: "sleep 5" }, { id: "2", kind: "terminal" }];
  const [over, works, archived] = [session({ background }), session({ background, state: "running" }), session({ background, archived: true })];
  assert.deepEqual([over, works, archived, session({})].map((one) => [backgroundOf(one), isInterruptible(one)]), [[["sleep 5", "terminal"], true], [[], true], [[], false], [[], false]]);
  assert.equal(describe(over, Date.parse(over.active_at)), "12 · demo · completed · now · works in the background: 2 tasks");
  assert.equal(backgroundWords(1), "works in the background: 1 task");
  assert.equal(groupOf(over), "working");
});

test("a session is called by its title, else by what was asked", () => {
  assert.equal(nameOf(session({ title: "Mine", prompt: "q" })), "Mine");
  assert.equal(nameOf(session({ prompt: "fix it\nand more" })), "fix it");
  assert.equal(nameOf(session({})), "untitled");
  assert.deepEqual([labelOf(session({ title: "Mine" })), labelOf(session({ title: "Mine" }), "12.3")], ["12 Mine", "12.3 Mine"]);
});

test("what is not seen, or turns other text around, is written out", () => {
  assert.equal(visible("rm \u202efile\u0007\tok\n"), "rm <U+202E>file<U+0007>\tok\n");
  assert.equal(short("a".repeat(100), 10), `${"a".repeat(9)}…`);
  assert.equal(short("\n  😀😀😀", 2), "😀…");
});

test("invisible characters are written out by the rule of duet-rpc", () => {
  const table = JSON.parse(readFileSync("../testdata/visible.json", "utf8")) as Array<{ text: string; exact: string; prose: string }>;
  for (const { text, exact, prose } of table) assert.deepEqual([exactly(text), visible(text)], [exact, prose], JSON.stringify(text));
  for (const [text, shown] of Object.entries({ "👩\u200d": "👩<U+200D>", "❤\ufe0f\ufe0f": "❤\ufe0f<U+FE0F>", "a \u0338": "a <U+0338>", "\ud800": "<U+D800>" })) assert.equal(visible(text), shown);
});

test("ages are short", () => {
  const now = Date.parse("2026-01-03T00:00:00Z");
  assert.deepEqual(["2026-01-02T23:59:30Z", "2026-01-02T23:55:00Z", "2026-01-02T21:00:00Z", "2026-01-01T00:00:00Z", ""].map((time) => age(time, now)), ["now", "5m", "3h", "2d", ""]);
  assert.equal(describe(session({ state: "failed", error: "No such model" }), now), "12 · demo · failed · 2d · No such model");
});

test("a permission can be given once, as a rule, or denied with a reason", () => {
  const rule = { tool_name: "Write", covers: "files", pattern: "src/*", text: "Write of files src/*, in this session" };
  assert.deepEqual(choicesOf(question({ rule_preview: { session: rule } })).map(({ id, decision, needs }) => [id, decision, needs]), [
    ["approve", { decision: "approve" }, undefined],
    ["deny", { decision: "deny", comment: "Denied in VS Code" }, undefined],
    ["deny-why", { decision: "deny", tell: true }, { words: "Why not? The agent gets the reason." }],
    ["approve-session", { decision: "approve", scope: "session" }, { rule: { text: "Write of files src/*, in this session", pattern: "src/*" } }],
  ]);
});

test("the words and keys of the answers are those of every client", () => {
  const rule = { tool_name: "Write", covers: "files", text: "Write of files src/*" };
  const words = choicesOf(question({ rule_preview: { session: rule, project: rule }, input_editable: true })).map(({ key, label }) => `${key} ${label}`);
  assert.deepEqual(words, ["y Allow", "n Deny", "t Deny and say why", "s Always in this session", "p Always in this project", "e Edit"]);
  for (const over of [{ input_editable: false }, { input_editable: true, input_ambiguity: "a member twice" }]) assert.ok(!choicesOf(question(over)).some(({ id }) => id === "edit"), JSON.stringify(over));
});

test("README.md has the keys of all answers", () => {
  const readme = readFileSync("README.md", "utf8");
  for (const { key, words, meaning } of Object.values(answers)) assert.ok(readme.includes(`| \`${key}\` | ${words} | ${meaning} |`), words);
});

test("the first key of all commands is one that VS Code, desktops and AltGr leave free, and is the one that the page knows", () => {
  const { contributes } = JSON.parse(readFileSync("package.json", "utf8")) as { contributes: { keybindings: Array<Record<string, string>> } };
  for (const { key, mac } of contributes.keybindings) assert.deepEqual([key?.split(" ")[0], mac], [prefix, undefined]);
});

test("a question is answered by an option, by words, or by neither", () => {
  const ids = (over: Partial<Question>): string[] => choicesOf(question({ type: "human_contact", ...over })).map(({ id }) => id);
  const options = [{ name: "red" }, { option_id: "b", name: "Blue" }, {}];
  assert.deepEqual(ids({ options }), ["option-red", "option-b", "respond"]);
  assert.deepEqual(ids({ options, options_only: true, declinable: true }), ["option-red", "option-b", "deny"]);
  assert.deepEqual(ids({ mode: "form", schema: {} }), ["fill", "deny"]);
  assert.deepEqual(ids({ mode: "url", url: "https://example.org" }), ["open", "deny"]);
});

test("the fields of a form say what they take", () => {
  const fields = fieldsOf({
    type: "object", required: ["name"],
    properties: {
      name: { type: "string", title: "Your name" }, port: { type: "integer", default: 80 }, sure: { type: "boolean" },
      colour: { type: "string", oneOf: [{ const: "r", title: "Red" }] }, days: { type: "array", items: { enum: ["Mo", "Tu"] } }, other: { type: "object" },
    },
  });
  assert.deepEqual(fields.map(({ name, kind, required, choices }) => [name, kind, required, choices.map(({ label }) => label)]), [
    ["name", "text", true, []], ["port", "integer", false, []], ["sure", "boolean", false, []],
    ["colour", "choice", false, ["Red"]], ["days", "choices", false, ["Mo", "Tu"]], ["other", "json", false, []],
  ]);
  assert.deepEqual(fieldsOf("nonsense"), []);
  const [name, port, , , , other] = fields;
  assert.equal(valueOf(port!, " 8080 "), 8080);
  assert.equal(valueOf(port!, ""), undefined);
  assert.throws(() => valueOf(port!, "1.5"), /has to be a whole number/);
  assert.equal(valueOf(name!, ""), "");
  assert.deepEqual(valueOf(other!, '{"a":1}'), { a: 1 });
  assert.throws(() => valueOf(other!, "{"), /has to be JSON/);
});

test("the limits of a form's fields are known before it is sent", () => {
  const [count, name, most] = fieldsOf({
    properties: { count: { type: "integer", title: "How many", minimum: 1, maximum: 9 }, name: { type: "string", minLength: 2 }, most: { type: "number", maximum: 1.5 } },
  });
  assert.equal(valueOf(count!, "9"), 9);
  assert.throws(() => valueOf(count!, "10"), { message: "How many has to be from 1 to 9" });
  assert.equal(valueOf(name!, "👍👍"), "👍👍");
  assert.throws(() => valueOf(name!, "👍"), { message: "name has to have at least 2 characters" });
  assert.throws(() => valueOf(most!, "1.6"), { message: "most has to be at most 1.5" });
});

test("what is asked cannot break out of where it is shown", () => {
  assert.equal(titleOf(question({ title: "Write \u202etxt.exe" })), "Write <U+202E>txt.exe");
  const details = detailsOf(question({ title: "run", diff: "```\n[a](command:evil)", stale: true }));
  assert.match(details, /````diff\n```\n\[a\]\(command:evil\)\n````/);
  assert.match(details, /an answer continues it/);
  assert.match(detailsOf(question({ reopened: "[x](command:y)" })), /\\\[x\\\]\\\(command:y\\\)/);
});

test("a question that a list cuts is asked for by itself", async () => {
  const asked: unknown[] = [];
  const request = ((method: string, params: unknown) => {
    asked.push([method, params]);
    return Promise.resolve({ approval: { approval: "b", title: "all of it" } });
  }) as unknown as Parameters<typeof wholeQuestions>[0];
  const list = [{ approval: "a", title: "short" }, { approval: "b", title: "cut", truncated: true }] as Question[];
  assert.deepEqual((await wholeQuestions(request, list)).map(({ title }) => title), ["short", "all of it"]);
  assert.deepEqual(asked, [["approval.get", { approval: "b" }]]);
});

test("a text of an agent is no link in a message of VS Code", () => {
  assert.equal(unlinked("Edit [a](command:workbench.action.quit)\u202e"), "Edit [a] (command:workbench.action.quit)<U+202E>");
});
