// Installing agents and signing in to them, with the built duet-rpc.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { setUpAgent } from "../../src/agents";
import type { Project } from "../../src/projects";
import { answers, shown } from "../fakevscode";
import { newProject, removeProject, startHub } from "../hub";

/** An agent that signs in by itself, or in a terminal. */
const agent = `#!/usr/bin/env node
let signed = false;
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const answer = (result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  const refuse = () => console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32000, message: "Authentication required" } }));
  if (method === "initialize") answer({ protocolVersion: 1, agentCapabilities: {}, authMethods: [{ id: "web", name: "In the browser" }, { id: "tty", name: "In a terminal", type: "terminal", args: ["--login"] }] });
  else if (method === "authenticate") { signed = true; answer({}); }
  else if (method === "session/new") signed ? answer({ sessionId: "s" }) : refuse();
});
`;

test("an agent is installed after asking, and signed in to, and a session begins", async (t) => {
  const project = newProject();
  const [bin, config] = [join(project.home, "bin"), join(project.home, ".config", "duet")];
  for (const folder of [bin, config]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(bin, "theirs"), agent);
  chmodSync(join(bin, "theirs"), 0o755);
  writeFileSync(join(config, "config.toml"), `[agents.theirs]\ntitle = "Theirs"\ndriver = "acp"\ncommand = ["${join(bin, "theirs")}"]\n`);
  const { connection, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  const of = { name: "project", folder: { uri: { fsPath: project.folder } }, connection } as unknown as Project;
  let begun = 0;
  const setUp = async (...given: Array<string | undefined>): Promise<void> => {
    answers.length = shown.length = 0;
    answers.push(...given);
    await setUpAgent(of, () => void begun++);
  };

  await setUp("copilot", "Install");
  assert.equal(shown[0]!.text, "Which agent?");
  assert.deepEqual(shown.at(-1), { text: "Install copilot", labels: ["npm install -g @github/copilot"] });
  await setUp("copilot", undefined);
  assert.equal(shown.at(-1)!.text, "Duet: install copilot?");
  await setUp("goose");
  assert.match(shown.at(-1)!.text, /to install goose, see the project's page/);

  await setUp("demo", "New Session");
  assert.deepEqual([shown.at(-1)!.text, begun], ["Duet: demo is ready", 1]);
  await setUp("theirs", "Sign In", "In a terminal");
  assert.deepEqual(shown.find(({ text }) => text.includes("not signed in")), { text: "Duet: you are not signed in to theirs", labels: ["Sign In"] });
  assert.deepEqual(shown.at(-1), { text: "Sign in to theirs", labels: ["agents", "login", "theirs", "--method", "tty"] });
  await setUp("theirs", "Sign In", "In the browser", "New Session");
  assert.deepEqual([shown.at(-1)!.text, begun], ["Duet: you are signed in to theirs", 2]);
});
