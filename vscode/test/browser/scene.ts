// A session with each kind of content, for pictures and for checks of the whole page.
import type { FakeHost } from "./pages/panelhost";

/** Runs in the page. */
export function scene(host: FakeHost): void {
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC";
  const at = "2026-01-02T03:04:05Z";
  let seq = 0;
  const item = (over: Record<string, unknown>): void => void host.items.push({ turn_uuid: "run", created_at: at, type: "message", seq: ++seq, ...over });
  host.attachments["red"] = png;
  host.start.title = "Make the parser accept comments";
  host.start.history = ["Run the tests", "What does parse.ts do?"];
  host.session = {
    ...host.session, state: "waiting_input", title: "Make the parser accept comments", started_at: new Date(Date.now() - 83_000).toISOString(), mode: "default",
    input_tokens: 41_200, output_tokens: 3_150, context_tokens: 62_000, context_size: 200_000, cost_usd: 0.42,
    modes: [{ id: "default", name: "Default", description: "Asks before it edits", by: "agent" }, { id: "acceptEdits", name: "Accept edits", by: "agent" }, { id: "plan", name: "Plan", by: "agent" }],
    agent_session: {
      agent: { title: "Demo agent" },
      model: { current: "large", available: [{ id: "large", name: "Large 4.1" }, { id: "small", name: "Small 4.1" }] },
      options: [{ id: "effort", name: "Effort", current: "high", values: [{ id: "low", name: "Low effort" }, { id: "high", name: "High effort" }] }],
      commands: [{ name: "review", description: "Reviews what has changed", input_hint: "a branch" }, { name: "compact", description: "Makes the context smaller" }, { name: "init", description: "Writes a file of instructions" }],
    },
  };
  item({ key: "p1", role: "user", text: "Make the parser accept `#` comments, and add tests. The drawing shows what I mean.", attachments: [{ type: "image", attachment_id: "red", mime_type: "image/png", size: 69, name: "drawing.png" }] });
  item({ type: "thought", key: "t1", text: "The lexer skips white space in one place. Comments can go there." });
  item({ type: "plan", key: "", entries: [{ content: "Read the lexer", status: "completed" }, { content: "Skip comments", status: "in_progress" }, { content: "Add tests", status: "pending" }] });
  item({ type: "tool_call", key: "c1", tool_name: "Read", title: "Read lexer.ts", tool_kind: "read", status: "completed", tool_input: { file_path: "/home/alice/parser/src/lexer.ts" }, details: { paths: ["/home/alice/parser/src/lexer.ts"] } });
  item({ type: "tool_call", key: "c2", tool_name: "Bash", title: "npm test", tool_kind: "execute", status: "failed", tool_input: { command: "npm test" }, result: `\u001b[32mPASS\u001b[0m test/number.test.ts\n\u001b[1;31mFAIL\u001b[0m test/comment.test.ts\n  \u001b[31m✕ skips a comment\u001b[0m (3 ms)\n${Array.from({ length: 40 }, (_, i) => `    at line ${i + 1}`).join("\n")}\n\nTests: \u001b[31m1 failed\u001b[0m, 12 passed\n` });
  item({ key: "m1", role: "assistant", text: "The lexer skips white space in `src/lexer.ts:42`, so comments belong there:\n\n1. `skipBlank` gets a second case\n2. a comment ends **with its line**, not with the file\n\n```ts\nfunction skipBlank(text: string, at: number): number {\n  while (/\\s/.test(text[at] ?? \"\")) at++;\n  return text[at] === \"#\" ? skipBlank(text, lineEnd(text, at)) : at;\n}\n```\n\n| case | before | after |\n| --- | :---: | ---: |\n| `# at the end` | error | skipped |\n| `a # b` | error | `a` |\n\n> A string may have a `#` in it, too: see [the grammar](docs/grammar.md#L12)." });
  item({ type: "tool_call", key: "task", tool_name: "Task", title: "Look for other uses", tool_kind: "think", status: "completed", tool_input: { prompt: "Look for other uses of skipBlank" }, result: "One use." });
  item({ type: "tool_call", key: "c3", tool_name: "Grep", title: "Search for skipBlank", tool_kind: "search", status: "completed", parent_tool_use_id: "task", tool_input: { pattern: "skipBlank" } });
  item({ key: "s1", role: "assistant", text: "It is used in `src/lexer.ts:42` alone.", parent_tool_use_id: "task" });
  item({ type: "change", key: "/home/alice/parser/src/lexer.ts", change: { path: "/home/alice/parser/src/lexer.ts", added: 3, removed: 1 } });
  item({ type: "tool_call", key: "c4", tool_name: "Edit", title: "Edit lexer.ts", tool_kind: "edit", status: "pending", tool_input: { file_path: "/home/alice/parser/src/lexer.ts" }, open: true, details: { paths: ["/home/alice/parser/src/lexer.ts"], diffs: [{ path: "/home/alice/parser/src/lexer.ts", old_text: "function skipBlank(text, at) {\n  while (blank(text[at])) at++;\n  return at;\n}\n", new_text: "function skipBlank(text, at) {\n  while (blank(text[at])) at++;\n  if (text[at] === \"#\") return skipBlank(text, lineEnd(text, at));\n  return at;\n}\n" }] } });
  host.approvals = [{ approval: "q1", turn_uuid: "run", session_uuid: "thread", tool_use_id: "c4", type: "function_call", tool_name: "Edit", title: "Edit src/lexer.ts", tool_input: { file_path: "src/lexer.ts" }, tool_kind: "edit", diff: "--- a/src/lexer.ts\n+++ b/src/lexer.ts\n@@ -1,4 +1,5 @@\n function skipBlank(text, at) {\n   while (blank(text[at])) at++;\n+  if (text[at] === \"#\") return skipBlank(text, lineEnd(text, at));\n   return at;\n }\n", rule_preview: { session: { text: "Edit of src/**" }, project: { text: "Edit of src/**" } } }];
}
