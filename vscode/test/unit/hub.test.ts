// The connection and the model of a project, against the built duet-rpc and its demo agent.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { ResponseError } from "vscode-jsonrpc/node";
import { BinaryError } from "../../src/hub/binary";
import { NotConnectedError } from "../../src/hub/connection";
import type { ConnectionState } from "../../src/hub/connection";
import { groupOf, nameOf } from "../../src/hub/groups";
import type { Question } from "../../src/hub/model";
import { choicesOf } from "../../src/hub/questions";
import type { Params, Result } from "../../src/protocol";
import { duetBinary, newProject, removeProject, startHub } from "../hub";
import type { TestHub, TestProject } from "../hub";

/** hub makes a connection for one test. After the test it stops the process and the daemon. */
function hub(t: test.TestContext, over: Parameters<typeof startHub>[0] = {}, project = newProject()): TestHub {
  const started = startHub(over, project);
  t.after(async () => {
    await started.end();
    await removeProject(project);
  });
  return started;
}

/** twoHubs makes two connections to the daemon of one project, as two windows have them. */
async function twoHubs(t: test.TestContext): Promise<[TestHub, TestHub]> {
  const project = newProject();
  const [first, second] = [startHub({}, project), startHub({}, project)];
  t.after(async () => {
    await second.end();
    await first.end();
    await removeProject(project);
  });
  await first.connection.start();
  await second.connection.start();
  return [first, second];
}

/** noOtherClient resolves when the daemon has seen that every client has gone. */
async function noOtherClient({ folder, env }: TestProject): Promise<void> {
  for (;;) {
    const { stdout } = await promisify(execFile)(duetBinary, ["--root", folder, "daemon", "status", "--json"], { env });
    if ((JSON.parse(stdout) as Result<"daemon.status">).subsystems.ipc.clients === 1) return; // the caller itself
  }
}

function choose(question: Question, id: string): Params<"approval.decide"> {
  const choice = choicesOf(question).find((choice) => choice.id === id);
  assert.ok(choice, id);
  return { approval: question.approval, ...choice.decision };
}

test("an error of the hub is the sentence for people, without the name of its code", async (t) => {
  const project = newProject();
  const { connection, end } = startHub({}, project);
  t.after(async () => {
    await end();
    await removeProject(project);
  });
  await connection.start();
  await assert.rejects(connection.request("session.start", { prompt: "go", agent: "nix", working_dir: project.folder }), { code: -32602, message: /^there is no agent "nix"; / });
  await assert.rejects(connection.request("turn.interrupt", { turn: "nix" }), { code: -32050, message: /^no session or turn has the id "nix"/ });
});

test("a session begins, asks, is allowed, and completes", async (t) => {
  const { connection, model, until, project } = hub(t);
  await connection.start();
  const asked: Question[][] = [];
  model.onQuestions((questions) => asked.push(questions));
  const { turn_uuid } = await connection.request("session.start", { prompt: "Greet the reader", agent: "demo", working_dir: project.folder });
  await until("a question", () => model.questions.length === 1);
  await until("the waiting session", () => model.ofTurn(turn_uuid)?.state === "waiting_input");
  assert.equal(groupOf(model.ofTurn(turn_uuid)!), "waiting");
  assert.equal(nameOf(model.ofTurn(turn_uuid)!), "Greet the reader");
  assert.deepEqual(asked.map((questions) => questions.length), [1]);
  const question = model.questions[0]!;
  assert.equal(question.title, "Write demo.txt");
  const decided = await connection.request("approval.decide", { approval: question.approval, ...choicesOf(question)[0]!.decision });
  assert.equal(decided.success, true);
  await until("its end", () => model.ofTurn(turn_uuid)?.state === "completed");
  await until("an empty inbox", () => model.questions.length === 0);
  assert.match(readFileSync(join(project.folder, "demo.txt"), "utf8"), /Greet the reader/);
});

test("a session with a queued prompt is listed by the turn that works", async (t) => {
  const [{ connection, model, until }, other] = await twoHubs(t);
  const { turn_uuid } = await connection.request("session.start", { prompt: "hello", agent: "demo" });
  await until("a question", () => model.questions.length === 1);
  const { turn_uuid: next } = await connection.request("session.prompt", { session: turn_uuid, prompt: "quiet" });
  await until("the queued session", () => model.ofTurn(next)?.state === "queued");
  assert.deepEqual(model.sessions.map((session) => [session.turn_uuid, groupOf(session)]), [[next, "waiting"]]);
  // A window that opens now has received none of the events.
  const late = startHub({}, other.project);
  t.after(() => late.end());
  await late.connection.start();
  await late.until("the list", () => late.model.ofTurn(next)?.ahead?.turn_uuid === turn_uuid);
  await connection.request("approval.decide", choose(model.questions[0]!, "deny"));
  await until("its end", () => model.ofTurn(next)?.state === "completed");
  assert.deepEqual(model.sessions.map(({ ahead, waits }) => [ahead, waits]), [[undefined, undefined]]);
});

test("a session whose queued prompts were moved is listed by the turn that runs last", async (t) => {
  const [{ connection, model, until }] = await twoHubs(t);
  const { turn_uuid } = await connection.request("session.start", { prompt: "hello", agent: "demo" });
  await until("a question", () => model.questions.length === 1);
  const { turn_uuid: second } = await connection.request("session.prompt", { session: turn_uuid, prompt: "quiet second" });
  const { turn_uuid: third } = await connection.request("session.prompt", { session: turn_uuid, prompt: "quiet third" });
  await until("the queued session", () => model.ofTurn(third)?.state === "queued");
  await connection.request("turn.move", { turn: third, before: second });
  await until("the other one", () => model.ofTurn(second)?.state === "queued");
  await connection.request("approval.decide", choose(model.questions[0]!, "deny"));
  await until("its end", () => model.ofTurn(second)?.state === "completed");
  assert.deepEqual(model.sessions.map(({ turn_uuid: last }) => last), [second]);
});

test("what is denied is not done", async (t) => {
  const { connection, model, until, project } = hub(t);
  await connection.start();
  const { turn_uuid } = await connection.request("session.start", { prompt: "hello", agent: "demo" });
  await until("a question", () => model.questions.length === 1);
  await connection.request("approval.decide", choose(model.questions[0]!, "deny"));
  await until("its end", () => model.ofTurn(turn_uuid)?.state === "completed");
  assert.equal(existsSync(join(project.folder, "demo.txt")), false);
});

test("a process that is killed is started again, and the session goes on meanwhile", async (t) => {
  const { connection, model, until, daemon } = hub(t);
  await connection.start();
  const states: string[] = [];
  connection.onState((state) => states.push(state.is));
  const { turn_uuid } = await connection.request("session.start", { prompt: "hello", agent: "demo" });
  await until("a question", () => model.questions.length === 1);
  const [before, hubBefore] = [connection.pid!, await daemon()];
  process.kill(before, "SIGKILL");
  await until("another process", () => connection.state.is === "ready" && connection.pid !== before);
  assert.deepEqual(states, ["starting", "ready"]);
  assert.equal(await daemon(), hubBefore);
  assert.equal((await connection.request("turn.get", { turn: turn_uuid })).turn.state, "waiting_input");
  await connection.request("approval.decide", choose(model.questions[0]!, "approve"));
  await until("the end of the session", () => model.ofTurn(turn_uuid)?.state === "completed");
});

test("a daemon that is killed is replaced, and the question is still there", async (t) => {
  const { connection, model, until, daemon } = hub(t);
  await connection.start();
  const states: string[] = [];
  connection.onState((state) => states.push(state.is));
  const { turn_uuid } = await connection.request("session.start", { prompt: "hello", agent: "demo" });
  await until("a question", () => model.questions.length === 1);
  const [before, hubBefore] = [connection.pid!, await daemon()];
  process.kill(hubBefore, "SIGKILL");
  await until("the question of the session that was cut off", () => model.questions[0]?.stale === true);
  assert.notEqual(await daemon(), hubBefore);
  assert.deepEqual([connection.pid, states], [before, []], "the process of the connection goes on");
  // The answer starts another turn of the same session.
  await connection.request("approval.decide", choose(model.questions[0]!, "approve"));
  const session_uuid = (await connection.request("turn.get", { turn: turn_uuid })).turn.session_uuid;
  await until("the end of what goes on", () => model.sessions.some((session) => session.session_uuid === session_uuid && session.state === "completed"));
});

test("events that a process has missed come after its restart, in order and once", async (t) => {
  const [first, second] = await twoHubs(t);
  const seen: number[] = [];
  second.connection.onEvent(({ seq }) => seq !== undefined && seen.push(seq));
  process.kill(second.connection.pid!, "SIGSTOP");
  const stopped = second.connection.pid!;
  const { turn_uuid } = await first.connection.request("session.start", { prompt: "quiet", agent: "demo" });
  await first.until("its end", () => first.model.ofTurn(turn_uuid)?.state === "completed");
  process.kill(stopped, "SIGKILL");
  await second.until("the end of the session in the other window", () => second.model.ofTurn(turn_uuid)?.state === "completed");
  assert.deepEqual(seen, [...new Set(seen)].sort((a, b) => a - b));
});

test("the next window says that work went on without one", async (t) => {
  const { connection, model, until, project } = hub(t);
  const notices: string[] = [];
  connection.onNotice((text) => notices.push(text));
  await connection.start();
  const { turn_uuid } = await connection.request("session.start", { prompt: "quiet stream:1000000@100", agent: "demo" });
  await until("its work", () => model.ofTurn(turn_uuid)?.state === "running");
  await connection.stop();
  await noOtherClient(project);
  await connection.start();
  assert.equal(notices.length, 1);
  assert.match(notices[0]!, /^1\.1 continued without an editor or shell/);
  await connection.request("turn.interrupt", { turn: turn_uuid });
  await until("its end", () => model.ofTurn(turn_uuid)?.state === "interrupted");
});

test("a process that keeps dying is not started again, until a person asks for it", async (t) => {
  const project = newProject();
  const program = join(project.folder, "dying");
  writeFileSync(program, `#!/bin/sh\ncase $1 in --version) echo duet-rpc 0.1.0;; *) echo "no disk" >&2; exit 3;; esac\n`, { mode: 0o755 });
  const { connection, log } = hub(t, { findBinary: () => Promise.resolve({ path: program, source: "the test", version: "0.1.0" }) }, project);
  const states: ConnectionState[] = [];
  connection.onState((state) => states.push(state));
  await connection.start();
  assert.equal(log.filter((line) => line.includes(": starting ")).length, 5);
  assert.deepEqual(states.map(({ is }) => is), ["starting", "failed"]);
  assert.match((states.at(-1) as { reason: string }).reason, /status 3.*no disk.*crashed five times/s);
  await assert.rejects(connection.request("health", {}), NotConnectedError);
});

test("without a program it says where it has looked", async (t) => {
  const { connection } = hub(t, { findBinary: () => Promise.reject(new BinaryError("it was not found")) });
  await connection.start();
  assert.deepEqual(connection.state, { is: "failed", reason: "it was not found" });
  await assert.rejects(connection.request("health", {}), { name: "NotConnectedError", message: "it was not found" });
});

test("errors of the hub come as they are", async (t) => {
  const { connection } = hub(t);
  await connection.start();
  await assert.rejects(connection.request("turn.get", { turn: "nonexistent" }), (error) => error instanceof ResponseError && error.code === -32050);
});

test("a request over the limit is refused before it is sent", async (t) => {
  const { connection, project } = hub(t);
  await connection.start();
  await assert.rejects(connection.request("session.start", { prompt: "x".repeat(10 * 1024 * 1024), agent: "demo", working_dir: project.folder }), /10\.0 MiB.*the limit is 10 MiB/);
});

test("a connection that is stopped ends its process, and running work goes on until the next one", async (t) => {
  const { connection, model, log, until, daemon } = hub(t);
  await connection.start();
  const { turn_uuid } = await connection.request("session.start", { prompt: "hello", agent: "demo" });
  await until("a question", () => model.questions.length === 1);
  const [pid, hubBefore] = [connection.pid!, await daemon()];
  await connection.stop();
  assert.deepEqual(connection.state, { is: "stopped" });
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" }, log.join("\n"));
  await connection.restart();
  assert.equal(connection.state.is, "ready");
  assert.equal(await daemon(), hubBefore);
  assert.equal((await connection.request("turn.get", { turn: turn_uuid })).turn.state, "waiting_input");
  await connection.request("turn.interrupt", { turn: turn_uuid });
  await until("the end of the session", () => model.ofTurn(turn_uuid)?.state === "interrupted");
});

test("two windows see the same question, and the first answer counts", async (t) => {
  const [first, second] = await twoHubs(t);
  await first.connection.request("session.start", { prompt: "hello", agent: "demo" });
  await Promise.all([first, second].map((one) => one.until("the question", () => one.model.questions.length === 1)));
  const question = second.model.questions[0]!;
  const answers = await Promise.all([
    second.connection.request("approval.decide", { approval: question.approval, decision: "deny", comment: "no" }),
    first.connection.request("approval.decide", { approval: question.approval, decision: "approve" }),
  ]);
  assert.equal(answers.filter(({ success }) => success).length, 1);
  assert.match(answers.find(({ success }) => !success)?.error ?? "", /already/);
  await Promise.all([first, second].map((one) => one.until("an empty inbox", () => one.model.questions.length === 0)));
});

test("what a hub that went away has not carried out is sent to the next one, and nothing that it may have carried out", async (t) => {
  const project = newProject();
  const program = join(project.folder, "forgetful");
  // It first answers each method with an error: its hub was lost, or the request was not sent.
  writeFileSync(program, `#!${process.execPath}
const seen = new Set();
let input = "";
process.stdin.on("data", (data) => {
  input += data;
  for (let frame; (frame = /^Content-Length: (\\d+)\\r\\n\\r\\n/.exec(input)) && input.length >= frame[0].length + Number(frame[1]); ) {
    const { id, method } = JSON.parse(input.slice(frame[0].length, frame[0].length + Number(frame[1])));
    input = input.slice(frame[0].length + Number(frame[1]));
    const first = !seen.has(method);
    seen.add(method);
    const code = method === "session.prompt" ? -32044 : -32042;
    const answer = !first || ["initialize", "event.subscribe", "shutdown"].includes(method)
      ? { result: { serverInfo: { name: "duet-rpc", version: "0.1.0" }, subscription_id: "s", seq: 1 } }
      : { error: { code, message: "lost", data: { retry: true } } };
    const body = JSON.stringify({ jsonrpc: "2.0", id, ...answer });
    process.stdout.write("Content-Length: " + body.length + "\\r\\n\\r\\n" + body);
  }
}).on("end", () => process.exit());
`, { mode: 0o755 });
  const { connection, model } = hub(t, { findBinary: () => Promise.resolve({ path: program, source: "the test", version: "0.1.0" }) }, project);
  model.dispose(); // it would send requests, too
  await connection.start();
  assert.deepEqual(connection.state, { is: "ready", version: "0.1.0" });
  await connection.request("turn.get", { turn: "s" });
  await connection.request("approval.decide", { approval: "a", decision: "approve" });
  await connection.request("session.prompt", { session: "s", prompt: "once" });
  await assert.rejects(connection.request("session.start", { prompt: "once" }), { code: -32042 });
});
