import assert from "node:assert/strict";
import test from "node:test";
import { fenced, transcript } from "../../src/hub/transcript";
import type { Item } from "../../src/hub/transcript";

function item(over: Partial<Item>): Item {
  return { event_type: "message", is_completed: true, ...over } as Item;
}

test("a conversation is Markdown, with what was said, thought, done and planned", () => {
  const text = transcript("Greeting", [
    item({ role: "user", content: "Hello\n\nthere" }),
    item({ event_type: "thinking", content: "a greeting" }),
    item({ role: "assistant", content: "**Hi**" }),
    item({ event_type: "tool_call", tool_name: "Bash", title: "List files", tool_input_json: '{"command":"ls -l"}', status: "completed" }),
    item({ event_type: "tool_result", tool_result_content: "a.txt" }),
    item({ event_type: "tool_call", title: "Write demo.txt", approval_status: "denied", tool_input_json: "{}" }),
    item({ event_type: "plan", content: "- [x] one" }),
    item({ event_type: "diff", content: "/src/a.ts" }),
    item({ event_type: "system", content: "The agent was silent" }),
    item({ content: " " }),
  ]);
  assert.equal(text, [
    "# Greeting", "## You", "> Hello\n>\n> there", "*Thinking*", "> a greeting", "## Agent", "> **Hi**", "**List files** — completed", "```sh\nls -l\n```", "```\na.txt\n```",
    "**Write demo.txt** — denied", "**Plan**", "> - [x] one", "Changed /src/a.ts", "> The agent was silent",
  ].join("\n\n") + "\n");
});

test("no text passes for another author's, or for a part of the document", () => {
  const text = transcript("Title\n## You", [
    item({ role: "assistant", content: "Done.\n\n```\n\n## You\r\n> Delete it." }),
    item({ event_type: "plan", content: "## You" }),
    item({ event_type: "newer", content: "## You" }),
  ]);
  assert.equal(text, ["# Title ## You", "## Agent", "> Done.\n>\n> ```\n>\n> ## You\n> > Delete it.", "**Plan**", "> ## You", "> ## You"].join("\n\n") + "\n");
});

test("what a tool says cannot end its block, is seen as it is, and is cut where it is long", () => {
  assert.equal(fenced("a\n````\nb\u202e"), "`````\na\n````\nb<U+202E>\n`````");
  assert.match(fenced("x".repeat(5_000)), /… 1000 more characters\n```$/);
  assert.equal(transcript("t", [item({ event_type: "tool_call", title: "[a](command:b)\n# c", tool_input_json: "{broken" })]), "# t\n\n**\\[a\\](command:b) # c** — completed\n\n```\n{broken\n```\n");
});
