// The work for third-party JSON, at each place where the extension or a page walks it: twice the size is at most about
// twice the work, for deep JSON and for wide JSON. Work is counted, so that a slow machine changes nothing.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { HubConnection } from "../../src/hub/connection";
import { limitLevels } from "../../src/hub/depth";
import type { Question } from "../../src/hub/model";
import { choicesOf, detailsOf, fieldsOf } from "../../src/hub/questions";
import { transcript } from "../../src/hub/transcript";
import type { SessionItem } from "../../src/protocol";
import { Scope } from "../../src/panel/scope";
import type { JSONRPCMessage, RPCTransport } from "../../src/rpc/index";
import { Contents } from "../../src/webview/contents";
import { Host } from "../../src/webview/host";

/** Wraps a value so that each read of a member, at any depth, calls step. */
function watched<T>(value: T, step: () => void): T {
  const known = new WeakMap<object, object>();
  const wrap = (of: unknown): unknown => {
    if (typeof of !== "object" || of === null) return of;
    let proxy = known.get(of);
    if (!proxy) {
      proxy = new Proxy(of, {
        get: (target, name, receiver) => (step(), wrap(Reflect.get(target, name, receiver))),
        has: (target, name) => (step(), Reflect.has(target, name)),
        getOwnPropertyDescriptor: (target, name) => (step(), Reflect.getOwnPropertyDescriptor(target, name)),
        ownKeys: (target) => (step(), Reflect.ownKeys(target)),
      });
      known.set(of, proxy);
    }
    return proxy;
  };
  return wrap(value) as T;
}

/** Counts the steps of the walks through what is parsed meanwhile. */
async function stepsOf(work: () => unknown): Promise<number> {
  const parse = JSON.parse;
  let steps = 0;
  JSON.parse = (...given: Parameters<typeof parse>): unknown => watched(parse(...given) as unknown, () => steps++);
  try {
    await work();
  } finally {
    JSON.parse = parse;
  }
  return steps;
}

const forms: Record<string, (size: number) => string> = {
  deep: (size) => `${'{"a":['.repeat(size / 2)}${"]}".repeat(size / 2)}`,
  "a wide array": (size) => `{"a":[${Array.from({ length: size }, () => '{"b":1}').join()}]}`,
  "a wide object": (size) => `{${Array.from({ length: size }, (_, i) => `"a${i}":{"b":[]}`).join()}}`,
};

/** A transport whose two ends are the same. */
function loop(): RPCTransport {
  const handlers = new Set<(message: JSONRPCMessage) => void>();
  return {
    send: (message) => setImmediate(() => handlers.forEach((handler) => handler(message))),
    onMessage: (handler) => (handlers.add(handler), () => handlers.delete(handler)),
  };
}

/** A program that speaks like duet-rpc. Each of its messages has the JSON. */
function speaker(json: string): string {
  return `#!${process.execPath}
const json = ${JSON.stringify(json)};
const send = (members) => {
  const body = '{"jsonrpc":"2.0",' + members + "}";
  process.stdout.write("Content-Length: " + Buffer.byteLength(body) + "\\r\\n\\r\\n" + body);
};
let read = "";
process.stdin.on("data", (data) => {
  for (read += data; ; ) {
    const head = /Content-Length: (\\d+)\\r\\n\\r\\n/.exec(read);
    if (!head || read.length < head.index + head[0].length + Number(head[1])) return;
    const body = read.slice(head.index + head[0].length, head.index + head[0].length + Number(head[1]));
    read = read.slice(head.index + head[0].length + Number(head[1]));
    const { id, method } = JSON.parse(body);
    if (id === undefined || method === undefined) continue;
    send('"id":' + id + ',"result":{"serverInfo":{"name":"duet-rpc","version":"1.0.0"},"subscription_id":"s","seq":0,"value":' + json + "}");
    if (method === "shutdown") process.exit(0);
    if (method !== "ping") continue;
    send('"id":"q","method":"editor.look","params":{"value":' + json + "}");
    send('"method":"event","params":{"subscription_id":"s","seq":1,"event":{"type":"plan","data":{"value":' + json + "}}}");
    send('"method":"other","params":{"value":' + json + "}");
  }
});
`;
}

/** The entrances of JSON. Each takes JSON of one form. */
const entrances: Record<string, (json: string) => unknown> = {
  "the limit of levels": (json) => limitLevels(JSON.parse(json) as unknown),
  "the ids of a panel": (json) => new Scope("thread", () => Promise.reject(new Error("not asked"))).note(JSON.parse(json)),
  "a form": (json) => {
    const properties = JSON.parse(json) as Record<string, unknown>;
    fieldsOf(JSON.parse(JSON.stringify({ properties: Object.fromEntries(Object.keys(properties).map((name) => [name, {}])), required: Object.keys(properties) })));
    fieldsOf({ properties });
    fieldsOf({ properties: { one: { type: "array", items: properties }, two: { oneOf: properties["a"], enum: properties["a"], enumNames: properties["a"] } }, required: properties["a"] });
  },
  "a question": (json) => {
    const question = limitLevels({ type: "function_call", title: "title", tool_input: JSON.parse(json) as unknown, options: JSON.parse(json) as unknown, rule_preview: JSON.parse(json) as unknown }) as unknown as Question;
    detailsOf(question);
    choicesOf(question);
    choicesOf({ ...question, type: "human_contact" });
    choicesOf({ ...question, type: "human_contact", mode: "form", schema: JSON.parse(json) as never });
  },
  "the document of a session": (json) => transcript("title", [limitLevels({ type: "tool_call", tool_input: JSON.parse(json) as unknown }) as SessionItem]),
  "the model of a page": (json) => {
    const contents = new Contents();
    contents.load([limitLevels({ turn_uuid: "run", type: "tool_call", key: "c1", tool_input: JSON.parse(json) as unknown, created_at: "2026-01-02T03:04:05Z", details: JSON.parse(json) as unknown }) as never]);
    const events = ["item.changed", "plan", "approval.opened", "agent.session", "session.changed", "queue.changed", "gate.ended", "usage"];
    for (const [i, kind] of events.entries()) {
      const value = JSON.parse(json) as Record<string, unknown>;
      const data = { ...value, key: "c1", approval: "q", type: "tool_call", entries: value["a"], details: value, tool_input: value, order: [], commands: value["a"], mode: value };
      contents.apply(limitLevels({ subscription_id: "s", seq: i + 1, kind, time: "2026-01-02T03:04:05Z", turn_uuid: "run", data } as never));
    }
    contents.loadQuestions([limitLevels({ approval: "q", tool_input: JSON.parse(json) as unknown })]);
  },
  "the messages between a page and the extension": async (json) => {
    const transport = loop();
    const host = new Host(transport);
    const seen = new Promise((resolve) => host.on("panel.state" as never, resolve));
    transport.send({ jsonrpc: "2.0", method: "panel.state", params: { value: JSON.parse(json) as unknown } });
    await seen;
    const answered = host.request("turn.get", { turn: "s" });
    transport.send({ jsonrpc: "2.0", id: 1, result: { value: JSON.parse(json) as unknown } });
    await answered;
  },
  "the messages of duet-rpc": async (json) => {
    const folder = mkdtempSync(join(tmpdir(), "duet-walks-"));
    const path = join(folder, "speaker");
    writeFileSync(path, speaker(json));
    chmodSync(path, 0o755);
    const log = (): void => {};
    const asked: unknown[] = [];
    const hub = new HubConnection({
      folder, env: process.env, trusted: () => true, log: { trace: log, info: log, warn: log, error: log }, findBinary: () => Promise.resolve({ path, source: "test", version: "1.0.0" }),
      tools: { names: () => ["look"], answer: (_, params) => (asked.push(params), Promise.resolve({})) },
    });
    try {
      await hub.start();
      const events: unknown[] = [];
      hub.onEvent((event) => events.push(event));
      const other = new Promise((resolve) => hub.onNotification(resolve));
      await hub.request("ping", {});
      await other;
      assert.equal(events.length, 1);
      assert.equal(asked.length, 1);
    } finally {
      await hub.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

for (const [entrance, take] of Object.entries(entrances)) {
  for (const [form, json] of Object.entries(forms)) {
    test(`${entrance}: twice the JSON is twice the work: ${form}`, async () => {
      const size = form === "deep" ? 10_000 : 4_000;
      const [once, twice] = [await stepsOf(() => take(json(size / 2))), await stepsOf(() => take(json(size)))];
      assert.ok(once > 0, "nothing is counted");
      assert.ok(twice <= 2.1 * once + 1_000, `${once} steps for ${size / 2} levels or values, ${twice} for ${size}`);
    });
  }
}
