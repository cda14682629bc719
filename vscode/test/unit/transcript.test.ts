import assert from "node:assert/strict";
import test from "node:test";
import { fenced, transcript } from "../../src/hub/transcript";
import type { ItemType, SessionItem } from "../../src/protocol";

function item(over: Partial<SessionItem>): SessionItem {
  return { type: "message", ...over } as SessionItem;
}

test("a session is Markdown, with what was said, thought, done and planned", () => {
  const text = transcript("Greeting", [
    item({ role: "user", text: "Hello\n\nthere" }),
    item({ type: "thought", text: "a greeting" }),
    item({ role: "assistant", text: "**Hi**" }),
    item({ type: "tool_call", tool_name: "Bash", title: "List files", tool_input: { command: "ls -l" }, status: "completed", result: "a.txt" }),
    item({ type: "tool_call", title: "Write demo.txt", approval: "a1", approval_status: "denied", refusal: "not yet", tool_input: {} }),
    item({ type: "answer", key: "a1", text: "Write demo.txt — denied: not yet" }),
    item({ type: "plan", text: "- [x] one" }),
    item({ type: "change", text: "/src/a.ts", change: { path: "/src/a.ts", added: 1, removed: 0 } }),
    item({ type: "notice", text: "The agent was silent" }),
    item({ text: " " }),
  ]);
  assert.equal(text, [
    "# Greeting", "## You", "> Hello\n>\n> there", "*Thinking*", "> a greeting", "## Agent", "> **Hi**", "**List files** — completed", "```sh\nls -l\n```", "```\na.txt\n```",
    "**Write demo.txt** — denied: not yet", "**Plan**", "> - [x] one", "Changed /src/a.ts", "> The agent was silent",
  ].join("\n\n") + "\n");
});

test("no text passes for another author's, or for a part of the document", () => {
  const text = transcript("Title\n## You", [
    item({ role: "assistant", text: "Done.\n\n```\n\n## You\r\n> Delete it." }),
    item({ type: "plan", text: "## You" }),
    item({ type: "newer" as ItemType, text: "## You" }),
  ]);
  assert.equal(text, ["# Title ## You", "## Agent", "> Done.\n>\n> ```\n>\n> ## You\n> > Delete it.", "**Plan**", "> ## You", "> ## You"].join("\n\n") + "\n");
});

test("what a tool says cannot end its block, is seen as it is, and is cut where it is long", () => {
  assert.equal(fenced("a\n````\nb\u202e"), "`````\na\n````\nb<U+202E>\n`````");
  assert.match(fenced("x".repeat(5_000)), /… 1000 more characters\n```$/);
  assert.equal(transcript("t", [item({ type: "tool_call", title: "[a](command:b)\n# c", tool_input: "{broken" })]), "# t\n\n**\\[a\\](command:b) # c** — completed\n\n```\n{broken\n```\n");
});
