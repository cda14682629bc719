// Deep and wide JSON of third parties, at each place where the extension or a page walks it.
import assert from "node:assert/strict";
import test from "node:test";
import { limitLevels, mostLevels } from "../../src/hub/depth";
import { Scope } from "../../src/panel/scope";
import { JSONRPCClient, JSONRPCServer } from "../../src/rpc/index";
import type { JSONRPCMessage, RPCTransport } from "../../src/rpc/index";
import { Contents } from "../../src/webview/contents";

const levels = 10_000;
const deepJSON = `${'{"a":['.repeat(levels / 2)}${"]}".repeat(levels / 2)}`;
const wideJSON = `[${"{},".repeat(100_000)}{}]`;

function levelsOf(value: unknown): number {
  let count = 0;
  for (let at = value; typeof at === "object" && at !== null; at = Object.values(at)[0]) count++;
  return count;
}

test("deep values end at a level, and the others stay", () => {
  assert.equal(levelsOf(limitLevels(JSON.parse(deepJSON))), mostLevels);
  assert.equal(JSON.stringify(limitLevels(JSON.parse(wideJSON))), wideJSON);
  const own = limitLevels(JSON.parse(`${'{"__proto__":'.repeat(levels)}1${"}".repeat(levels)}`) as object);
  assert.equal(JSON.stringify(own).split("__proto__").length - 1, mostLevels);
  for (const value of [undefined, null, "text", 1]) assert.equal(limitLevels(value), value);
});

for (const [name, json] of [["deep", deepJSON], ["wide", wideJSON]] as const) {
  test(`${name} JSON passes the messages of the SDK, the scope of a panel and the model of a page`, async () => {
    const handlers = new Set<(message: JSONRPCMessage) => void>();
    const transport: RPCTransport = {
      send: (message) => setImmediate(() => handlers.forEach((handler) => handler(message))),
      onMessage: (handler) => (handlers.add(handler), () => handlers.delete(handler)),
    };
    const [client, server] = [new JSONRPCClient(transport), new JSONRPCServer(transport)];
    server.method("echo", (params) => params);
    const params = { value: JSON.parse(json) as unknown };
    assert.equal(await client.request("echo", params), params);

    const scope = new Scope("thread", () => Promise.reject(new Error("not asked")));
    scope.note({ ...params, last: { attachment_id: "a1" } });
    await scope.check("attachment.get", { id: "a1" });

    const contents = new Contents();
    contents.load([limitLevels({ turn_uuid: "run", type: "tool_call", key: "c1", tool_input: JSON.parse(json) as unknown, created_at: "2026-01-02T03:04:05Z", details: { _meta: params } }) as never]);
    assert.ok(JSON.stringify(contents.entry("run/c1")!.tool!.input, null, 2).length > 0);
  });
}
