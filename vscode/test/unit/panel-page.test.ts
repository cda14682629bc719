// The parts of the session panel's page that need no browser.
import assert from "node:assert/strict";
import test from "node:test";
import { commandsFor, completableAt } from "../../src/webview/completion";
import { PromptHistory } from "../../src/webview/composer";
import { fileOf, linkOf, pieces } from "../../src/webview/references";
import { duration, money, thousands } from "../../src/webview/session";
import { settingsOf } from "../../src/webview/settings";

test("a slash is a command at the beginning alone, and @ a file behind a space", () => {
  assert.deepEqual(completableAt("/re", 3), { kind: "command", from: 0, query: "re" });
  assert.deepEqual(completableAt("look at @src/a", 14), { kind: "file", from: 8, query: "src/a" });
  assert.deepEqual(completableAt("(@a", 3), { kind: "file", from: 1, query: "a" });
  for (const text of ["a /re", "/review main", "alice@example.org", "@a b", ""]) assert.equal(completableAt(text, text.length), undefined, text);
});

test("the mode in force is shown, not the requested one that the agent has left", () => {
  const modes = ["plan", "auto"].map((id) => ({ id, by: "agent" }));
  assert.equal(settingsOf({ modes, mode: "auto", requested_mode: "plan" }, {})[0]?.current, "auto");
});

test("commands that begin with what was typed come first", () => {
  const commands = [{ name: "preview" }, { name: "review", description: "Reviews", input_hint: "a branch" }, { name: "init" }, {}];
  assert.deepEqual(commandsFor("RE", commands).map(({ label, detail }) => [label, detail]), [["/review", "a branch — Reviews"], ["/preview", ""]]);
});

test("an earlier prompt is called back, and the draft is there again", () => {
  const history = new PromptHistory(["b", "a"]);
  assert.deepEqual([history.older("draft"), history.older("b"), history.older("a"), history.newer(), history.newer(), history.newer()], ["b", "a", undefined, "b", "draft", undefined]);
  history.add("a");
  assert.deepEqual([history.older(""), history.older("")], ["a", "b"]);
});

test("files with a line are links in prose, and other words are not", () => {
  assert.deepEqual(pieces("see src/a.ts:12:3, b.go#L4 and /x/y.py:1.").filter(({ target }) => target).map(({ text, target }) => [text, target]), [
    ["src/a.ts:12:3", { path: "src/a.ts", line: 12, column: 3 }], ["b.go#L4", { path: "b.go", line: 4 }], ["/x/y.py:1", { path: "/x/y.py", line: 1 }],
  ]);
  const linked = (text: string): unknown[] => pieces(text, true).filter(({ target }) => target).map(({ text: part, target }) => [part, target]);
  assert.deepEqual(linked("@lexer.ts#L6-8, @src/a.ts and lexer.ts:6-8; me@example.org"), [
    ["@lexer.ts#L6-8", { path: "lexer.ts", line: 6 }], ["@src/a.ts", { path: "src/a.ts" }], ["lexer.ts:6-8", { path: "lexer.ts", line: 6 }],
  ]);
  assert.deepEqual(pieces("see lexer.ts:6-8.").map(({ text }) => text), ["see ", "lexer.ts:6-8", "."]);
  for (const text of ["e.g. 10:30", "http://example.org:80/x", "node.js", "1.2.3:4"]) assert.deepEqual(pieces(text).filter(({ target }) => target), [], text);
  assert.deepEqual([fileOf("src/a.ts"), fileOf("a.ts:3"), fileOf("a.b"), fileOf("rm -r x/y.z")], [{ path: "src/a.ts" }, { path: "a.ts", line: 3 }, undefined, undefined]);
});

test("only addresses of the web, of mails and of files are links", () => {
  assert.deepEqual(linkOf("https://example.org/"), { url: "https://example.org/" });
  assert.deepEqual(linkOf("docs/a%20b.md#L3"), { path: "docs/a b.md", line: 3 });
  assert.deepEqual(linkOf("file:///home/a.ts:7"), { path: "/home/a.ts", line: 7 });
  for (const href of ["javascript:alert(1)", "JaVaScRiPt:x", "data:text/html,x", "command:workbench.action.quit", "vscode://x/y", "vscode-insiders:x", "//evil.example/x", "#top", "", "blob:x", "a%00b"]) assert.equal(linkOf(href), undefined, href);
});

test("times, counts and costs are short", () => {
  assert.deepEqual([0, 59_999, 65_000, 7_380_000].map(duration), ["0s", "59s", "1m 05s", "2h 03m"]);
  assert.deepEqual([999, 1_234, 9_960, 45_300, 1_250_000].map(thousands), ["999", "1.2k", "10k", "45k", "1.3M"]);
  assert.deepEqual([0.001, 0.42].map(money), ["< $0.01", "$0.42"]);
});
