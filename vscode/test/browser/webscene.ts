// Projects with each kind of content, for pictures of the page of duet-rpc web and for checks of its screens.
import { approvalOf, sessionOf } from "./fakeweb";
import type { FakeWeb } from "./fakeweb";

const diff = `--- a/src/lexer.ts
+++ b/src/lexer.ts
@@ -1,4 +1,5 @@
 function skipBlank(text, at) {
   while (blank(text[at])) at++;
+  if (text[at] === "#") return skipBlank(text, lineEnd(text, at));
   return at;
 }
@@ -40,9 +41,9 @@
 export function tokens(text: string): Token[] {
   const all: Token[] = [];
-  for (let at = 0; at < text.length; ) {
+  for (let at = skipBlank(text, 0); at < text.length; at = skipBlank(text, at)) {
     const token = next(text, at);
     all.push(token);
     at = token.end;
   }
   return all;
 }
`;

const hour = 3_600_000;
const ago = (milliseconds: number): string => new Date(Date.now() - milliseconds).toISOString();

/** Three projects, one of which cannot be reached, with questions, a conversation and changes. */
export function webScene(web: FakeWeb): void {
  web.projects = [
    { id: "p1", name: "parser", root: "/home/alice/parser", state: "connected" },
    { id: "p2", name: "website@devbox", root: "/home/alice/website", host: "devbox", state: "connected" },
    { id: "p3", name: "notes@laptop", root: "/home/alice/notes", host: "laptop", state: "unreachable", error: "the line to laptop has broken: connection timed out", last_seen: ago(26 * hour) },
  ];
  web.sessions = [
    { project: "p1", sessions: [
      sessionOf(12, { state: "waiting_input", title: "Make the parser accept comments", active_at: ago(60_000), mode: "default", modes: [{ id: "default", name: "Default", by: "duet" }, { id: "plan", name: "Plan", by: "duet" }], agent_session: { model: { current: "opus", available: [{ id: "opus", name: "Opus" }, { id: "sonnet", name: "Sonnet" }] } }, input_tokens: 41_200, output_tokens: 3_150, context_tokens: 62_000, context_size: 200_000, cost_usd: 0.42, started_at: ago(83_000) }),
      sessionOf(11, { session_title: "Überprüfe die Größenänderung der Fußnoten im Anhang", agent: "codex", active_at: ago(2 * hour) }),
      sessionOf(10, { session_title: "אפס את בסיס הנתונים של הבדיקות", state: "failed", error: "the agent has ended: exit status 1", active_at: ago(5 * hour) }),
      sessionOf(9, { session_title: "Update dependencies", state: "running", active_at: ago(20_000) }),
      ...Array.from({ length: 16 }, (_, i) => sessionOf(8 - i, { session_title: `An earlier session about thing ${i + 1}`, session: 100 - i, session_uuid: `old-${i}`, turn_uuid: `turn-old-${i}`, active_at: ago((30 + i) * hour) })),
    ] },
    { project: "p2", sessions: [sessionOf(3, { session_uuid: "site-3", turn_uuid: "turn-site-3", state: "waiting_input", title: "Dark mode for the shop", active_at: ago(400_000) })] },
    { project: "p3", sessions: [sessionOf(1, { session_uuid: "note-1", turn_uuid: "turn-note-1", title: "Sort the notes", active_at: ago(50 * hour) })], error: "the line to laptop has broken: connection timed out" },
  ];
  const rule_preview = { session: { tool_name: "Edit", covers: "files", pattern: "src/**", text: "Edit of src/**" }, project: { tool_name: "Edit", covers: "files", pattern: "src/**", text: "Edit of src/**" } };
  web.approvals = [
    { project: "p2", approval: approvalOf("q2", 3, { session_uuid: "site-3", turn_uuid: "turn-site-3", created_at: ago(26 * 60_000), title: "Run a command", tool_input: { command: "npx playwright test --project=chromium --grep 'dark mode' --reporter=line --workers=4 --max-failures=1 && rsync -az --delete dist/ deploy@shop.example.org:/srv/www/shop/" }, rule_preview: { session: { tool_name: "Bash", covers: "commands", pattern: "npx playwright test *", text: "Bash of npx playwright test *" }, project: { tool_name: "Bash", covers: "commands", pattern: "npx playwright test *", text: "Bash of npx playwright test *" } } }) },
    { project: "p1", approval: approvalOf("q1", 12, { tool_name: "Edit", tool_kind: "edit", tool_use_id: "c4", title: "Edit src/lexer.ts", tool_input: { file_path: "src/lexer.ts" }, paths: ["src/lexer.ts"], diff: diff.replace(" export function", `${Array.from({ length: 20 }, (_, i) => ` // line ${i}`).join("\n")}\n export function`).replace("-40,9 +41,9", "-20,29 +21,29"), rule_preview }) },
    { project: "p1", approval: approvalOf("q3", 11, { type: "human_contact", tool_name: "AskUser", title: "Welche Größe sollen die Fußnoten haben?", tool_input: {}, options: [{ option_id: "s", name: "Klein" }, { option_id: "m", name: "Mittel" }], created_at: ago(30_000) }) },
  ];
  const item = (over: Record<string, unknown>): void => {
    const items = (web.items["session-12"] ??= []);
    items.push({ id: items.length + 1, seq: items.length + 1, turn_uuid: "turn-12", turn: "12.1", turn_state: "waiting_input", type: "message", created_at: ago(80_000), ...over });
  };
  item({ key: "p1", role: "user", text: "Make the parser accept `#` comments, and add tests." });
  item({ type: "thought", key: "t1", text: "The lexer skips white space in one place. Comments can go there." });
  item({ type: "tool_call", key: "c2", tool_name: "Bash", title: "npm test", tool_kind: "execute", status: "failed", tool_input: { command: "npm test" }, result: "\u001b[32mPASS\u001b[0m test/number.test.ts\n\u001b[1;31mFAIL\u001b[0m test/comment.test.ts\n  a very long line that goes on and on, beyond the width of any phone: /home/alice/parser/test/comment.test.ts:12:34\n" });
  item({ key: "m1", role: "assistant", text: "The lexer skips white space in `src/lexer.ts:42`, so comments belong there:\n\n1. `skipBlank` gets a second case\n2. a comment ends **with its line**\n\n```ts\nfunction skipBlank(text: string, at: number): number {\n  while (/\\s/.test(text[at] ?? \"\")) at++;\n  return text[at] === \"#\" ? skipBlank(text, lineEnd(text, at)) : at;\n}\n```\n\n| case | before | after |\n| --- | :---: | ---: |\n| `# at the end` | error | skipped |\n\nשלום, זה טקסט מימין לשמאל.\n\nSee [the grammar](https://example.org/grammar)." });
  item({ type: "tool_call", key: "c4", tool_name: "Edit", title: "Edit src/lexer.ts", tool_kind: "edit", status: "pending", tool_input: { file_path: "src/lexer.ts" }, open: true, tool_use_id: "c4", details: { paths: ["src/lexer.ts"] } });
  const hunk = (id: string, at: number, state = "open"): Record<string, unknown> => ({ id, old_start: at, old_lines: 4, new_start: at, new_lines: 5, added: 1, removed: at === 1 ? 0 : 1, state });
  web.changes["turn-12"] = [
    { path: "/home/alice/parser/src/lexer.ts", before: "", after: "", binary: false, diff, hunks: [hunk("h1", 1), hunk("h2", 40, "accepted")], state: "open", changed_at: ago(1_000) },
    { path: "/home/alice/parser/test/ein-sehr-langer-ordner/comment.test.ts", before: null, after: "x", binary: false, diff: "--- /dev/null\n+++ b/test/comment.test.ts\n@@ -0,0 +1,2 @@\n+test(\"skips a comment\", () => assert.deepEqual(tokens(\"1 # one\").map(({ text }) => text), [\"1\"]));\n+\n", hunks: [{ ...hunk("h3", 1), old_lines: 0, new_lines: 2, added: 2 }], state: "open", changed_at: ago(1_000) },
  ];
}
