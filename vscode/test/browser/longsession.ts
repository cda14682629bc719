// A realistic session of 20,000 lines: prompts, prose, lists, tables, code, and output of programs.
import type { FakeHost } from "./pages/panelhost";

declare const window: { host: FakeHost };

/** Gives the session to the host of the page in which this runs; returns the keys of its entries. */
export function longSession(): string[] {
  const items: Array<Record<string, unknown>> = [];
  const keys: string[] = [];
  let lines = 0;
  const add = (key: string, text: string, item: Record<string, unknown>): void => {
    const at = items.length + 1;
    items.push({ turn_uuid: "run", created_at: "2026-01-02T03:04:05Z", seq: at, ...item });
    keys.push(key);
    lines += text.split("\n").length;
  };
  const say = (key: string, role: string, text: string): void => add(key, text, { type: "message", role, key, text });
  const run = (id: string, count: number): void => {
    const output = Array.from({ length: count }, (_, i) => `${i}: \u001b[32mok\u001b[0m test ${i} of ${id} went well`).join("\n");
    add(`run/${id}`, output, { type: "tool_call", key: id, tool_name: "Bash", title: `make ${id}`, tool_kind: "execute", status: "completed", tool_input: { command: `make ${id}` }, result: output });
  };
  const code = (count: number): string => `\`\`\`ts\n${Array.from({ length: count }, (_, i) => `const value${i} = await read("part-${i}"); // what it is for`).join("\n")}\n\`\`\``;
  const prose = (i: number): string => `The parser reads **one** token, \`next()\` another; see src/parser.ts:${i} and https://example.org/a. It goes on for a while, so that a line is broken, once or twice, as prose is.`;
  for (let i = 0; lines < 20_000; i++) {
    const key = `m${i}`;
    if (i % 6 === 0) say(key, "user", `Question ${i}: what does the parser do with it?\nAnd why?`);
    else if (i % 150 === 145) say(key, "assistant", Array.from({ length: 150 }, (_, part) => `${prose(part)}\n\n${code(10)}\n`).join("\n"));
    else if (i % 3 === 1) say(key, "assistant", `## Part ${i}\n\n${prose(i)}\n\n- one item with \`code\`\n- another item\n  - a nested one\n\n${code(8)}\n\n| a | b |\n| --- | --- |\n| ${i} | two |\n`);
    else run(`test-${i}`, i % 6 === 2 ? 18 : 60);
  }
  window.host.items = items;
  return keys;
}
