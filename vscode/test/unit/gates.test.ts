// Gates of a project, against the built duet-rpc.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { CancellationTokenSource, ResponseError } from "vscode-jsonrpc/node";
import { checkGate, listGates, statusOf } from "../../src/hub/builds";
import { ErrorCode } from "../../src/rpc/messages";
import { newProject, removeProject, startHub } from "../hub";
import type { TestHub } from "../hub";

const never = new CancellationTokenSource().token;

/** gated is a hub with gates in the user's configuration, and in that of the project, which is untrusted. */
async function gated(t: test.TestContext, trusted = true): Promise<TestHub> {
  const project = newProject();
  const folder = join(project.home, ".config", "duet");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "config.toml"), `
[[gates]]
name = "fine"
command = ["echo", "all is well"]
[[gates]]
name = "wrong"
command = ["sh", "-c", "echo 'main.c:3:7: error: no such thing'; exit 2"]
[[gates]]
name = "endless"
command = ["sh", "-c", "echo begun; sleep 1000"]
`);
  const started = startHub({ trusted: () => trusted }, project);
  t.after(async () => {
    await started.end();
    await removeProject(project);
  });
  await started.connection.start();
  return started;
}

test("gates are listed; those of a file that has come since wait for trust", async (t) => {
  const { connection, project } = await gated(t);
  writeFileSync(join(project.folder, ".duet.toml"), `[[gates]]\nname = "theirs"\ncommand = ["touch", "ran"]\n`);
  assert.deepEqual(await listGates(connection), [
    { name: "fine", command: ["echo", "all is well"], waitsForTrust: false },
    { name: "wrong", command: ["sh", "-c", "echo 'main.c:3:7: error: no such thing'; exit 2"], waitsForTrust: false },
    { name: "endless", command: ["sh", "-c", "echo begun; sleep 1000"], waitsForTrust: false },
    { name: "theirs", command: [], waitsForTrust: true },
  ]);
  await assert.rejects(checkGate(connection, "theirs", () => {}, never), /waits for your trust/);
});

test("a gate passes, or says what is wrong where; a line for the shell is one, too", async (t) => {
  const { connection } = await gated(t);
  let printed = "";
  assert.equal((await checkGate(connection, "fine", (text) => (printed += text), never)).passed, true);
  assert.equal(printed, "all is well\n");
  const { passed, reason, findings } = await checkGate(connection, "wrong", () => {}, never);
  assert.deepEqual([passed, reason], [false, "exit status 2"]);
  assert.deepEqual(findings.map(({ file, line, column, message }) => [file, line, column, message]), [["main.c", 3, 7, "no such thing"]]);
  const other = await checkGate(connection, "exit 3", () => {}, never);
  assert.equal(other.reason, "exit status 3");
  assert.deepEqual([other, { passed: true }, { passed: false }, { passed: false, reason: "signal: killed" }].map(statusOf), [3, 0, 1, 1]);
});

test("a gate is ended with what it has started", async (t) => {
  const { connection } = await gated(t);
  const cancelling = new CancellationTokenSource();
  await assert.rejects(checkGate(connection, "endless", () => cancelling.cancel(), cancelling.token), (error) => error instanceof ResponseError && error.code === -32800);
});

test("a gate that runs when the daemon dies fails with hub_lost", async (t) => {
  const { connection, daemon } = await gated(t);
  const pid = await daemon();
  const { token } = new CancellationTokenSource();
  await assert.rejects(checkGate(connection, "endless", () => process.kill(pid, "SIGKILL"), token), { code: ErrorCode.HubLost });
  assert.notEqual(await daemon(), pid);
});

test("in a workspace that is not trusted nothing is listed or run", async (t) => {
  const { connection } = await gated(t, false);
  await assert.rejects(listGates(connection), /does not trust the workspace/);
  await assert.rejects(checkGate(connection, "true", () => {}, never), /does not trust the workspace/);
});
