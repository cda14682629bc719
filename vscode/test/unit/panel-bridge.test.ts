// The extension's side of a panel, against the built duet-rpc. A fake page is at the other end of a channel.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { Bridge } from "../../src/panel/bridge";
import type { PanelHandlers } from "../../src/panel/bridge";
import { passedMethods } from "../../src/panel/protocol";
import type { PanelConnection, PanelStart } from "../../src/panel/protocol";
import type { ApprovalOpenedEvent, HubEvent, ItemList, Result } from "../../src/protocol";
import { JSONRPCClient, JSONRPCServer } from "../../src/rpc/index";
import type { RPCTransport, JSONRPCMessage } from "../../src/rpc/index";
import { Contents } from "../../src/webview/contents";
import { newProject, removeProject, startHub } from "../hub";
import type { TestHub } from "../hub";

function stateOf(event: HubEvent): string | undefined {
  return event.kind === "turn.state" ? event.data.state : undefined;
}

interface Page {
  request: <T = Record<string, unknown>>(method: string, params?: Record<string, unknown>) => Promise<T>;
  events: HubEvent[];
  connections: PanelConnection[];
  inserted: string[];
  bridge: Bridge;
  lost: () => number;
}

/** openPage opens a panel of a session with its page. */
function openPage(t: test.TestContext, { connection }: TestHub, session: string): Page {
  const [toPage, toHost] = [new Set<(message: unknown) => void>(), new Set<(message: unknown) => void>()];
  const send = (to: Set<(message: unknown) => void>, message: unknown): void => {
    const copy: unknown = JSON.parse(JSON.stringify(message));
    setImmediate(() => to.forEach((listener) => listener(copy)));
  };
  let lost = 0;
  const refuse = (): never => {
    throw new Error("not in this test");
  };
  const handlers: PanelHandlers = {
    "panel.start": () => Promise.resolve({ title: "a title", draft: { text: "", content: [] }, history: [] }),
    "panel.choose": refuse, "panel.launch": refuse, "panel.keepDraft": () => null, "panel.findFiles": refuse, "panel.readFiles": refuse, "panel.readSource": refuse, "panel.pickContext": refuse, "panel.context": refuse, "panel.readContext": refuse, "panel.openFile": refuse, "panel.openLink": refuse,
    "panel.openDiff": refuse, "panel.openPatch": refuse, "panel.openChanges": refuse, "panel.openAddress": refuse, "panel.editInput": refuse, "panel.command": refuse, "panel.totals": refuse, "panel.insertCode": refuse, "panel.runCode": refuse,
  };
  const errors: unknown[] = [];
  const bridge = new Bridge({
    webview: {
      postMessage: (message) => (send(toPage, message), Promise.resolve(true)),
      onDidReceiveMessage: (listener) => (toHost.add(listener), { dispose: () => toHost.delete(listener) }),
    },
    hub: connection, session, handlers, onLost: () => lost++, onError: (error) => errors.push(error),
  });
  const transport: RPCTransport = {
    send: (message) => send(toHost, message),
    onMessage: (handler) => {
      const own = (message: unknown): void => handler(message as JSONRPCMessage);
      toPage.add(own);
      return () => toPage.delete(own);
    },
  };
  const client = new JSONRPCClient(transport, { timeout: 60_000 });
  const server = new JSONRPCServer(transport);
  const page: Page = { request: (method, params) => client.request(method, params), events: [], connections: [], inserted: [], bridge, lost: () => lost };
  server.onNotify("event", (params) => void page.events.push(params as unknown as HubEvent));
  server.onNotify("panel.connection", (params) => void page.connections.push(params as unknown as PanelConnection));
  server.onNotify("panel.insert", (params) => void page.inserted.push((params as { text: string }).text));
  t.after(() => {
    bridge.dispose();
    assert.deepEqual(errors, []);
  });
  return page;
}

async function begin(t: test.TestContext): Promise<TestHub> {
  const project = newProject();
  const hub = startHub({}, project);
  t.after(async () => {
    await hub.end();
    await removeProject(project);
  });
  await hub.connection.start();
  return hub;
}

async function launch({ connection, project }: TestHub, query: string): Promise<{ turn: string; session: string }> {
  const { turn_uuid, session_uuid } = await connection.request("session.start", { prompt: query, agent: "demo", working_dir: project.folder });
  return { turn: turn_uuid, session: session_uuid };
}

/** until polls for an effect of messages and events: no single event reports it. */
async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 60_000; !holds(); await new Promise((resolve) => setTimeout(resolve, 10))) assert.ok(Date.now() < end, `${what} did not come`);
}

test("a page follows its session, answers in it, and continues it", async (t) => {
  const hub = await begin(t);
  const { session } = await launch(hub, "Greet the reader");
  const page = openPage(t, hub, session);
  const start = await page.request<PanelStart>("panel.start", {});
  assert.deepEqual([start.session, start.connection], [session, { is: "ready" }]);
  await until("the question", () => page.events.some(({ kind }) => kind === "approval.opened"));
  // The line may break right after the event, so that an answer must not need another request first.
  const asked = t.mock.method(hub.connection, "request");
  const opened = page.events.find(({ kind }) => kind === "approval.opened")!.data as unknown as ApprovalOpenedEvent;
  const decided = await page.request("approval.decide", { approval: opened.approval, decision: "approve" });
  assert.equal(decided["success"], true);
  assert.ok(!asked.mock.calls.some(({ arguments: [method] }) => method === "approval.get"));
  const completed = (): number => page.events.filter((event) => stateOf(event) === "completed").length;
  await until("the end", () => completed() === 1);
  // The panel also shows the next turn of the session.
  const next = await page.request<Result<"session.prompt">>("session.prompt", { session, prompt: "quiet again", deliver: "steer" });
  assert.equal(next.session_uuid, session);
  await until("the end of the next one", () => completed() === 2);
  assert.ok(page.events.some(({ kind, turn_uuid }) => kind === "text.delta" && turn_uuid === next.turn_uuid), "text comes as it is written");
});

test("a page reaches no other session, and no other method", async (t) => {
  const hub = await begin(t);
  const own = await launch(hub, "quiet");
  const other = await launch(hub, "quiet image");
  const asking = await launch(hub, "Greet another reader");
  await hub.until("the question", () => hub.model.questions.length === 1);
  await hub.until("the image", () => hub.model.ofTurn(other.turn)?.state === "completed");
  const theirs = hub.model.questions[0]!;
  const { items } = await hub.connection.request("session.items", { session: other.session });
  const attachment = /"attachment_id":"([^"]+)"/.exec(JSON.stringify(items))?.[1];
  assert.ok(attachment);
  const page = openPage(t, hub, own.session);
  await page.request("panel.start", {});
  const foreign = { code: -32602, message: /is not of the session that this panel shows/ };
  const named = [
    ["session.items", "session"], ["session.items", "turn"], ["session.set", "session"], ["session.get", "session"], ["session.prompt", "session"], ["turn.get", "turn"], ["turn.interrupt", "turn"], ["turn.edit", "turn"],
    ["turn.move", "turn"], ["approval.list", "turn"],
  ] as const;
  const numbers = (await hub.connection.request("turn.get", { turn: other.turn })).turn;
  for (const id of [other.turn, other.session, asking.turn, numbers.turn, String(numbers.session), "last"]) {
    for (const [method, name] of named) await assert.rejects(page.request(method, { [name]: id, ...(method === "session.prompt" || method === "turn.edit" ? { prompt: "hello" } : {}) }), foreign, method);
    await assert.rejects(page.request("turn.move", { turn: own.session, before: id }), foreign);
    await assert.rejects(page.request("session.items", { session: own.session, turn: id }), foreign);
    await assert.rejects(page.request("session.items", { session: id, turn: own.turn }), foreign);
  }
  assert.equal((await page.request<Result<"turn.get">>("turn.get", { turn: "1.1" })).turn.turn_uuid, own.turn);
  await assert.rejects(page.request("approval.decide", { approval: theirs.approval, decision: "approve" }), foreign);
  await assert.rejects(page.request("attachment.get", { id: attachment }), foreign);
  assert.deepEqual(await page.request("approval.list", {}), { approvals: [] });
  for (const method of ["session.start", "createApproval", "shutdown", "session.delete", "terminal.start", "event.subscribe", "Subscribe", "panel.nothing", "toString"]) {
    await assert.rejects(page.request(method, {}), { code: -32601 }, method);
  }
  // Some parameters of the forwarded methods name programs to run.
  for (const member of ["mcp_config", "gates", "additional_directories", "fork"]) {
    await assert.rejects(page.request("session.prompt", { session: own.session, prompt: "hello", [member]: [] }), { code: -32602, message: new RegExp(`may not give ${member}`) });
  }
  await assert.rejects(page.request("session.items", { session: own.session, after: 0 }), { code: -32602, message: /may not give after/ });
  await assert.rejects(page.request("session.items", {}), { code: -32602, message: /session has to be .* and is missing/ });
  const theirItem = items[0]!.id;
  await assert.rejects(page.request("session.items", { session: own.session, before: theirItem }), { code: -32050, data: { kind: "item_not_found" } });
  for (const method of passedMethods) if (method !== "approval.list") await assert.rejects(page.request(method, {}), { code: -32602 }, method);
  // The hub's error for a wrong request reaches the page unchanged.
  await assert.rejects(page.request("turn.get", { turn: "unknown" }), { code: -32050, data: { kind: "not_found" } });
  assert.equal(page.events.filter(({ turn_uuid }) => turn_uuid !== own.turn).length, 0);
});

test("a page has the attachments of its session", async (t) => {
  const hub = await begin(t);
  const { turn, session } = await launch(hub, "quiet image");
  await hub.until("the end", () => hub.model.ofTurn(turn)?.state === "completed");
  const page = openPage(t, hub, session);
  await page.request("panel.start", {});
  const items = await page.request("session.items", { session });
  const id = /"attachment_id":"([^"]+)"/.exec(JSON.stringify(items))?.[1];
  assert.ok(id);
  const image = await page.request<Result<"attachment.get">>("attachment.get", { id });
  assert.ok(image.data.length > 0);
});

test("the window's process is killed while text streams: the page gets all of the text, and is told when it is ready", async (t) => {
  const hub = await begin(t);
  const { session } = await launch(hub, "quiet stream:600@200");
  const page = openPage(t, hub, session);
  await page.request("panel.start", {});
  const followed = new Contents();
  const { items } = await page.request<ItemList>("session.items", { session });
  followed.load(items);
  await until("text", () => page.events.filter(({ kind }) => kind === "text.delta").length > 2);
  process.kill(hub.connection.pid!, "SIGKILL");
  await until("the connection", () => page.connections.at(-1)?.is === "ready");
  assert.deepEqual(page.connections.map(({ is }) => is), ["starting", "ready"]);
  await until("the end", () => page.events.some((event) => stateOf(event) === "completed"));
  const numbers = page.events.map(({ seq = 0 }) => seq).filter((seq) => seq > 0);
  assert.deepEqual(numbers, [...numbers].sort((a, b) => a - b), "events come in order, and once");
  for (const event of page.events) followed.apply(event);
  const said = (contents: Contents): string[] => contents.entries.filter(({ kind }) => kind === "text").map(({ text }) => text);
  const later = new Contents();
  later.load((await page.request<ItemList>("session.items", { session })).items);
  assert.deepEqual(said(followed), said(later));
});

test("the daemon is killed while text streams: the page shows the end of the session, and goes on with the next one", async (t) => {
  const hub = await begin(t);
  const { turn, session } = await launch(hub, "quiet slow stream:20000@20");
  const page = openPage(t, hub, session);
  await page.request("panel.start", {});
  await until("text", () => page.events.filter(({ kind }) => kind === "text.delta").length > 2);
  process.kill(await hub.daemon(), "SIGKILL");
  const states = (of: string): unknown[] => page.events.filter(({ kind, turn_uuid }) => kind === "turn.state" && turn_uuid === of).map(stateOf);
  await until("the end", () => /failed|interrupted/.test(String(states(turn).at(-1))));
  const next = await page.request<Result<"session.prompt">>("session.prompt", { session, prompt: "quiet" });
  await until("the end of the next one", () => states(next.turn_uuid).at(-1) === "completed");
  const numbers = page.events.map(({ seq = 0 }) => seq).filter((seq) => seq > 0);
  assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b), "events come in order, and once");
  assert.deepEqual(page.connections, [], "the window's process goes on");
});

test("events that the window's process has missed come before the page is told that it is ready", async (t) => {
  const first = await begin(t);
  const second = startHub({}, first.project);
  t.after(() => second.end());
  await second.connection.start();
  const { turn, session } = await launch(first, "Greet the reader");
  const page = openPage(t, second, session);
  await page.request("panel.start", {});
  await first.until("the question", () => first.model.questions.length === 1);
  await until("its event", () => page.events.some(({ kind }) => kind === "approval.opened"));
  const stopped = second.connection.pid!;
  process.kill(stopped, "SIGSTOP");
  await first.connection.request("approval.decide", { approval: first.model.questions[0]!.approval, decision: "approve" });
  await first.until("the end", () => first.model.ofTurn(turn)?.state === "completed");
  const before = page.events.length;
  let whenReady: HubEvent[] = [];
  page.connections.push = (...told) => {
    if (told.some(({ is }) => is === "ready")) whenReady = page.events.slice(before);
    return Array.prototype.push.apply(page.connections, told);
  };
  page.connections.length = 0; // it may have received the first process
  process.kill(stopped, "SIGKILL");
  await until("the connection", () => page.connections.at(-1)?.is === "ready");
  assert.ok(whenReady.some(({ kind }) => kind === "approval.closed"));
  assert.ok(whenReady.some(({ kind, data }) => kind === "item.added" && /I wrote demo.txt/.test(data.text ?? "")));
});

test("a panel that is hidden gets nothing, and begins anew when it is shown", async (t) => {
  const hub = await begin(t);
  const { turn, session } = await launch(hub, "Greet the reader");
  const page = openPage(t, hub, session);
  page.bridge.post("panel.insert", { text: "first" });
  await page.request("panel.start", {});
  await until("what was to be inserted", () => page.inserted.length === 1);
  await until("the question", () => page.events.some(({ kind }) => kind === "approval.opened"));
  page.bridge.pause();
  await page.request("turn.get", { turn: session }); // its response comes behind the events that were on their way
  page.events.length = 0;
  await hub.until("the question", () => hub.model.questions.length === 1);
  await hub.connection.request("approval.decide", { approval: hub.model.questions[0]!.approval, decision: "approve" });
  await hub.until("the end", () => hub.model.ofTurn(turn)?.state === "completed");
  // The response to a request arrives after all earlier messages.
  await page.request("turn.get", { turn: session });
  assert.deepEqual(page.events, []);
  await page.request("panel.start", {});
  await page.request("session.prompt", { session, prompt: "quiet" });
  await until("its events", () => page.events.some((event) => stateOf(event) === "completed"));
});

test("a page that is there before duet-rpc is told when that is ready; one that cannot be started says why", async (t) => {
  const project = newProject();
  const hub = startHub({}, project);
  t.after(async () => {
    await hub.end();
    await removeProject(project);
  });
  await hub.connection.start();
  const { turn, session } = await launch(hub, "quiet");
  await hub.until("the end", () => hub.model.ofTurn(turn)?.state === "completed");
  await hub.connection.stop();
  const page = openPage(t, hub, session);
  const start = await page.request<PanelStart>("panel.start", {});
  assert.equal(start.connection.is, "stopped");
  await assert.rejects(page.request("session.items", { session }), { message: /duet-rpc does not run/ });
  await hub.connection.start();
  await until("the connection", () => page.connections.at(-1)?.is === "ready");
  await page.request("session.prompt", { session, prompt: "quiet" });
  await until("its events", () => page.events.some((event) => stateOf(event) === "completed"));

  const program = join(project.folder, "failing");
  writeFileSync(program, "#!/bin/sh\nexit 3\n", { mode: 0o755 });
  const failing = startHub({ findBinary: () => Promise.reject(new Error("there is none")) }, project);
  t.after(() => failing.end());
  await failing.connection.start();
  const other = openPage(t, failing, session);
  assert.deepEqual((await other.request<PanelStart>("panel.start", {})).connection, { is: "failed", reason: "there is none" });
});
