// An agent that writes several files in one turn: its prompt ends with a JSON object of their contents, by their
// paths. The prompt "long output" makes it run a tool that prints 300 kB, and "deep input" one whose input has many levels and many members. The prompt "wait" makes it work until there is a
// file "go". It takes no message while it works. It answers any other prompt with the content of the prompt.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "./hub";

const script = `
const fs = require("node:fs");
const path = require("node:path");
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const waiting = new Map();
let [next, cwd] = [0, ""];
const ask = (method, params) => new Promise((resolve, reject) => {
  waiting.set(++next, { resolve, reject });
  send({ id: next, method, params });
});
const turn = async ({ sessionId, prompt }) => {
  const update = (update) => send({ method: "session/update", params: { sessionId, update } });
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  const text = prompt.map(({ text }) => text ?? "").join("");
  if (text === "wait") {
    while (!fs.existsSync(path.join(cwd, "go"))) await new Promise((resolve) => setTimeout(resolve, 50));
    say("I have waited.");
    return { stopReason: "end_turn" };
  }
  if (text === "long output") {
    const tool = { toolCallId: "t1", title: "make", kind: "execute" };
    update({ sessionUpdate: "tool_call", ...tool, status: "in_progress", rawInput: { command: "make" } });
    const lines = Array.from({ length: 30_000 }, (_, i) => "line " + i).join("\\n");
    update({ sessionUpdate: "tool_call_update", toolCallId: "t1", status: "failed", content: [{ type: "content", content: { type: "text", text: lines + "\\nthe error" } }] });
    return { stopReason: "end_turn" };
  }
  if (text === "deep input") {
    const [levels, wide] = [90, 100_000]; // the hub refuses more than 100 levels
    const input = '{"wide":[' + "1,".repeat(wide) + '1],"deep":' + '{"a":['.repeat(levels / 2) + "]}".repeat(levels / 2) + "}";
    const tool = { sessionUpdate: "tool_call", toolCallId: "t1", title: "make", kind: "other", status: "completed", rawInput: "INPUT" };
    process.stdout.write(JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update: tool } }).replace('"INPUT"', input) + "\\n");
    return { stopReason: "end_turn" };
  }
  const at = text.indexOf("{");
  if (at < 0) {
    say("I was sent " + prompt.map(({ type, resource, uri }) => type + " " + (resource?.text ?? uri ?? "")).join(", ") + ".");
    return { stopReason: "end_turn" };
  }
  const files = Object.entries(JSON.parse(text.slice(at)));
  for (const [name, content] of files) await ask("fs/write_text_file", { sessionId, path: path.join(cwd, name), content });
  say("I wrote " + files.map(([name]) => "\`" + name + "\`").join(" and ") + ". See [the manual](https://example.com/manual).");
  return { stopReason: "end_turn" };
};
const answers = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: { promptCapabilities: { embeddedContext: true } }, authMethods: [] }),
  "session/new": (params) => ((cwd = params.cwd), { sessionId: "one" }),
  "session/prompt": turn,
};
require("node:readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) return error ? waiting.get(id)?.reject(new Error(error.message)) : waiting.get(id)?.resolve(result);
  if (id === undefined) return;
  try {
    send({ id, result: (await answers[method]?.(params)) ?? {} });
  } catch (error) {
    send({ id, error: { code: -32603, message: String(error) } });
  }
}).on("close", () => process.exit(0));
`;

/** addWriterAgent puts the agent "writer" into the configuration of a project's user. */
export function addWriterAgent({ home }: TestProject): void {
  const folder = join(home, ".config", "duet");
  mkdirSync(folder, { recursive: true });
  const file = join(home, "writer.cjs");
  writeFileSync(file, script);
  writeFileSync(join(folder, "config.toml"), `[agents.writer]\ndriver = "acp"\ncommand = [${JSON.stringify(process.execPath)}, ${JSON.stringify(file)}]\n`);
}
