// An agent that asks for a key, and says whether the key is the right one. It must be in the user's own
// configuration for an untrusted workspace.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "./hub";

export const wantedKey = "sk-test-0123456789";

const script = `
const socket = new (require("node:net").Socket)({ fd: Number(process.env.DUET_EXECUTOR_FD) });
let asked;
const send = (message) => socket.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const take = ({ id, method, params, result, error }) => {
  if (method === "execute_prompt") {
    asked = { id, token: params.session_token, task: params.task_id };
    send({ id: "key", method: "get_api_key", params: { session_token: params.session_token, service: "acme" } });
  } else if (id === "key" && asked) {
    const text = error ? "no key: " + error.message : result.api_key === ${JSON.stringify(wantedKey)} ? "the right key" : "another key";
    send({ id: "said", method: "create_message", params: { session_token: asked.token, task_id: asked.task, message: { role: "assistant", content: text } } });
  } else if (id === "said") {
    send({ id: asked.id, result: { status: "completed", message_count: 1 } });
  } else if (id !== undefined && method) {
    send({ id, result: {} });
  }
};
require("node:readline").createInterface({ input: socket }).on("line", (line) => take(JSON.parse(line))).on("close", () => process.exit(0));
`;

/** addKeyAgent puts the agent "keyed" into the configuration of a project's user. */
export function addKeyAgent({ home }: TestProject): void {
  const folder = join(home, ".config", "duet");
  mkdirSync(folder, { recursive: true });
  const file = join(home, "keyed.cjs");
  writeFileSync(file, script);
  writeFileSync(join(folder, "config.toml"), `[agents.keyed]\ndriver = "executor"\ncommand = [${JSON.stringify(process.execPath)}, ${JSON.stringify(file)}]\n`);
}
