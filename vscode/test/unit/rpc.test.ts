// The library of src/rpc, between the ends of a MessageChannel and in a worker of Node.
import assert from "node:assert/strict";
import test from "node:test";
import { Worker } from "node:worker_threads";
import { JSONRPCClient, JSONRPCServer, RPCClosedError, RPCError, RPCTimeoutError, portTransport, webviewTransport, workerTransport } from "../../src/rpc/index.js";
import type { JSONRPCMessage, RPCTransport } from "../../src/rpc/index.js";

interface Ends {
  client: JSONRPCClient;
  server: JSONRPCServer;
  errors: Array<{ error: unknown; method: string }>;
  near: MessagePort;
  far: MessagePort;
}

function ends(t: test.TestContext, options: { timeout?: number } = {}): Ends {
  const { port1: near, port2: far } = new MessageChannel();
  const errors: Ends["errors"] = [];
  const client = new JSONRPCClient(portTransport(near), options);
  const server = new JSONRPCServer(portTransport(far), { onError: (error, method) => errors.push({ error, method }) });
  t.after(() => {
    client.destroy();
    server.destroy();
  });
  return { client, server, errors, near, far };
}

/** held is a transport whose other side is the test. */
function held(): { transport: RPCTransport; sent: JSONRPCMessage[]; receive: (message: unknown) => void } {
  const sent: JSONRPCMessage[] = [];
  const handlers = new Set<(message: JSONRPCMessage) => void>();
  return {
    sent,
    receive: (message) => handlers.forEach((handler) => handler(message as JSONRPCMessage)),
    transport: {
      send: (message) => void sent.push(message),
      onMessage: (handler) => {
        handlers.add(handler);
        return () => void handlers.delete(handler);
      },
    },
  };
}

test("a result comes to who asked, in whatever order", async (t) => {
  const { client, server } = ends(t);
  let release: (value: string) => void = () => {};
  server.method("slow", () => new Promise((resolve) => (release = resolve)));
  server.method("fast", (params) => ({ got: params }));
  const slow = client.request("slow");
  assert.deepEqual(await client.request("fast", { a: 1 }), { got: { a: 1 } });
  assert.deepEqual(await client.request("fast", [1, null]), { got: [1, null] });
  release("at last");
  assert.equal(await slow, "at last");
});

test("a response always has a result", async () => {
  const { transport, sent, receive } = held();
  const server = new JSONRPCServer(transport);
  server.method("nothing", () => undefined);
  receive({ jsonrpc: "2.0", id: "a", method: "nothing" });
  await new Promise(setImmediate);
  assert.deepEqual(sent, [{ jsonrpc: "2.0", result: null, id: "a" }]);
});

test("errors come with their code and data", async (t) => {
  const { client, server } = ends(t);
  server.method("fails", () => {
    throw new RPCError(-32001, "Build failed", { diagnostics: [] });
  });
  server.method("rejects", () => Promise.reject(Object.assign(new Error("no such file"), { code: "ENOENT" })));
  await assert.rejects(client.request("fails"), (error: RPCError) => {
    assert.ok(error instanceof RPCError);
    assert.deepEqual([error.code, error.message, error.data], [-32001, "Build failed", { diagnostics: [] }]);
    return true;
  });
  await assert.rejects(client.request("rejects"), { name: "RPCError", code: -32603, message: "no such file", data: undefined });
  await assert.rejects(client.request("nonexistent"), { code: -32601, message: "Method not found: nonexistent", data: { method: "nonexistent" } });
});

test("a result that cannot be sent is an error, and the server goes on", async (t) => {
  const { client, server, errors } = ends(t);
  server.method("function", () => () => {});
  server.method("ping", () => "pong");
  await assert.rejects(client.request("function"), { code: -32603 });
  assert.equal(errors[0]?.method, "function");
  assert.equal(await client.request("ping"), "pong");
  await assert.rejects(client.request("ping", { f: () => {} }), { name: "DataCloneError" });
  assert.equal(await client.request("ping"), "pong");
});

test("notifications are handed on, and what fails in them is told", async (t) => {
  const { client, server, errors } = ends(t);
  const seen: unknown[] = [];
  server.onNotify("console", (params) => seen.push(params));
  server.onNotify("fails", () => {
    throw new Error("broken");
  });
  server.method("ping", () => "pong");
  client.notify("console", { level: "error" });
  client.notify("console");
  client.notify("unknown", { a: 1 });
  client.notify("fails");
  assert.equal(await client.request("ping"), "pong");
  assert.deepEqual(seen, [{ level: "error" }, undefined]);
  assert.deepEqual(errors.map(({ method, error }) => [method, (error as Error).message]), [["fails", "broken"]]);
});

test("what is not JSON-RPC 2.0 passes by", async (t) => {
  const { client, server, near, far } = ends(t);
  server.method("ping", () => "pong");
  const others: unknown[] = [];
  far.addEventListener("message", ({ data }) => {
    if ((data as { jsonrpc?: string } | null)?.jsonrpc !== "2.0") others.push(data);
  });
  for (const other of [null, 1, "text", {}, { type: "build" }, { jsonrpc: "1.0", id: 1, method: "ping" }]) near.postMessage(other);
  assert.equal(await client.request("ping"), "pong");
  assert.equal(others.length, 6);
});

test("without an answer a request fails after ten seconds, or as long as was said", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { transport, sent, receive } = held();
  const client = new JSONRPCClient(transport);
  const outcomes: string[] = [];
  const ask = (name: string, timeout?: number): void => {
    client.request(name, undefined, timeout === undefined ? {} : { timeout }).then(
      (result) => outcomes.push(`${name}: ${String(result)}`),
      (error: unknown) => outcomes.push(`${name}: ${String(error)}`),
    );
  };
  ask("default");
  ask("short", 100);
  ask("endless", 0);
  t.mock.timers.tick(100);
  await Promise.resolve();
  assert.deepEqual(outcomes, ["short: RPCTimeoutError: JSON-RPC timeout: no answer to short within 100 ms"]);
  t.mock.timers.tick(9_899);
  await Promise.resolve();
  assert.equal(outcomes.length, 1);
  t.mock.timers.tick(1);
  await Promise.resolve();
  assert.match(outcomes[1] ?? "", /no answer to default within 10000 ms/);
  assert.deepEqual(sent.filter((m) => "method" in m && m.method === "$/cancelRequest"), [
    { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 2 } },
    { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } },
  ]);
  receive({ jsonrpc: "2.0", id: 1, result: "too late" });
  receive({ jsonrpc: "2.0", id: 3, result: "done" });
  await Promise.resolve();
  assert.deepEqual(outcomes.slice(2), ["endless: done"]);
  assert.ok(new RPCTimeoutError("x", 1) instanceof Error);
});

test("destroy rejects what is pending, and what is asked later", async (t) => {
  const { client, server } = ends(t);
  server.method("hang", () => new Promise(() => {}));
  const pending = client.request("hang", undefined, { timeout: 0 });
  client.destroy();
  await assert.rejects(pending, RPCClosedError);
  await assert.rejects(client.request("hang"), RPCClosedError);
  client.notify("into the void");
  client.destroy();
});

test("the end of the other side rejects what is pending", async (t) => {
  const { client, server } = ends(t);
  let asked: () => void = () => {};
  const arrived = new Promise<void>((resolve) => (asked = resolve));
  server.method("hang", () => (asked(), new Promise(() => {})));
  const pending = client.request("hang", undefined, { timeout: 0 });
  const rejected = assert.rejects(pending, { name: "RPCClosedError", message: "the port was closed" });
  await arrived;
  server.destroy();
  await rejected;
});

test("a request can be taken back", async (t) => {
  const { client, server } = ends(t);
  let aborted: () => void = () => {};
  const told = new Promise<void>((resolve) => (aborted = resolve));
  server.method("build", (_params, { signal }) => new Promise((_resolve, reject) => signal.addEventListener("abort", () => (aborted(), reject(new Error("stopped"))))));
  const controller = new AbortController();
  const pending = client.request("build", undefined, { signal: controller.signal });
  controller.abort();
  await assert.rejects(pending, { name: "RPCError", code: -32800 });
  await told;
  await assert.rejects(client.request("build", undefined, { signal: controller.signal }), { code: -32800 });
});

test("a client and a server share a transport, in both directions", async (t) => {
  const { port1, port2 } = new MessageChannel();
  const [near, far] = [portTransport(port1), portTransport(port2)];
  const peers = [near, far].map((transport, i) => {
    const server = new JSONRPCServer(transport);
    server.method("who", () => `side ${i}`);
    return { server, client: new JSONRPCClient(transport) };
  });
  t.after(() => peers.forEach(({ client, server }) => (client.destroy(), server.destroy())));
  assert.deepEqual(await Promise.all(peers.map(({ client }) => client.request("who"))), ["side 1", "side 0"]);
});

test("a request that is none is refused", () => {
  const { transport, sent, receive } = held();
  new JSONRPCServer(transport);
  receive({ jsonrpc: "2.0", id: 7, method: 1 });
  receive({ jsonrpc: "2.0", id: {}, method: "x" });
  assert.deepEqual(sent.map((m) => ("error" in m ? [m.id, m.error.code] : m)), [[7, -32600], [null, -32600]]);
});

test("answers that break the specification are errors, or answer no request", async () => {
  const { transport, receive } = held();
  const client = new JSONRPCClient(transport, { timeout: 0 });
  const first = client.request("a");
  const second = client.request("b");
  receive({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } });
  receive({ jsonrpc: "2.0", id: "1", result: "another's" });
  receive({ jsonrpc: "2.0", id: 1 });
  receive({ jsonrpc: "2.0", id: 1, error: null });
  receive({ jsonrpc: "2.0", id: 2, error: { code: "E", message: 5, data: 1 } });
  await assert.rejects(first, { code: -32603, message: "Error without a message" });
  await assert.rejects(second, { code: -32603, data: 1 });
});

test("a worker of Node answers, and its end is noticed", async () => {
  const worker = new Worker(new URL("./rpc-worker.mjs", import.meta.url));
  const client = new JSONRPCClient(workerTransport(worker), { timeout: 0 });
  assert.deepEqual(await client.request("build", { entry: "src/App.tsx" }), { built: "src/App.tsx" });
  const pending = client.request("exit");
  await assert.rejects(pending, { name: "RPCClosedError", message: "the worker has ended" });
  client.destroy();
});

test("a webview of VS Code is a transport", async () => {
  const page = held();
  const listeners = new Set<(message: unknown) => void>();
  const webview = {
    postMessage: (message: unknown) => (page.receive(structuredClone(message)), Promise.resolve(true)),
    onDidReceiveMessage: (listener: (message: unknown) => void) => {
      listeners.add(listener);
      return { dispose: () => listeners.delete(listener) };
    },
  };
  const client = new JSONRPCClient(webviewTransport(webview));
  const server = new JSONRPCServer({ ...page.transport, send: (message) => listeners.forEach((listener) => listener(message)) });
  server.method("ping", () => "pong");
  listeners.forEach((listener) => listener({ type: "not ours" }));
  assert.equal(await client.request("ping"), "pong");
  client.destroy();
  assert.equal(listeners.size, 0);
});
