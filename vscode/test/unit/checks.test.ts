// Builds and gates of a project, against the built duet-rpc.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { CancellationTokenSource, ResponseError } from "vscode-jsonrpc/node";
import { listChecks, runCheck } from "../../src/hub/checks";
import { newProject, removeProject, startHub } from "../hub";
import type { TestHub } from "../hub";

const never = new CancellationTokenSource().token;

/** checked is a hub whose user has configured a build and two gates. */
async function checked(t: test.TestContext): Promise<TestHub> {
  const project = newProject();
  const folder = join(project.home, ".config", "duet");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "config.toml"), `
[[builds]]
name = "page"
command = ["sh", "-c", "echo compiling; echo 'main.c:3:7: error: no such thing'; exit 2"]
[[gates]]
name = "fine"
command = ["echo", "all is well"]
[[gates]]
name = "endless"
command = ["sh", "-c", "echo begun; sleep 1000"]
`);
  const started = startHub({}, project);
  t.after(async () => {
    await started.end();
    removeProject(project);
  });
  await started.connection.start();
  return started;
}

test("builds and gates are listed", async (t) => {
  const { connection } = await checked(t);
  const { checks, waiting } = await listChecks(connection);
  assert.deepEqual(checks.map(({ kind, name }) => [kind, name]), [["build", "page"], ["gate", "fine"], ["gate", "endless"]]);
  assert.deepEqual(checks[1]!.command, ["echo", "all is well"]);
  assert.deepEqual(waiting, []);
});

test("a build that fails says what is wrong where", async (t) => {
  const { connection } = await checked(t);
  let printed = "";
  const result = await runCheck(connection, "build", "page", (text) => (printed += text), never);
  assert.equal(result.passed, false);
  assert.match(result.reason, /exit status 2/);
  assert.match(printed, /compiling/);
  assert.deepEqual(result.findings.map(({ file, line, column, severity, message }) => [file, line, column, severity, message]), [["main.c", 3, 7, "error", "no such thing"]]);
});

test("a gate passes, also one that is typed; another is ended", async (t) => {
  const { connection } = await checked(t);
  let printed = "";
  assert.deepEqual(await runCheck(connection, "gate", "fine", (text) => (printed += text), never), { passed: true, reason: "", findings: [] });
  assert.equal(printed, "all is well\n");
  assert.equal((await runCheck(connection, "gate", "exit 3", () => {}, never)).reason, "exit status 3");
  const cancelling = new CancellationTokenSource();
  await assert.rejects(runCheck(connection, "gate", "endless", () => cancelling.cancel(), cancelling.token), (error) => error instanceof ResponseError && error.code === -32800);
});

test("in a workspace that is not trusted nothing is checked", async (t) => {
  const project = newProject();
  const started = startHub({ trusted: () => false }, project);
  t.after(async () => {
    await started.end();
    removeProject(project);
  });
  await started.connection.start();
  await assert.rejects(listChecks(started.connection), /does not trust the workspace/);
  await assert.rejects(runCheck(started.connection, "gate", "true", () => {}, never), /does not trust the workspace/);
});
