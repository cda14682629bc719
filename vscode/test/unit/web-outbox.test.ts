// What waits for a connection is sent once, in order, and the user learns what became of it.
import assert from "node:assert/strict";
import test from "node:test";
import { RPCError } from "../../src/rpc/messages";
import { OfflineError } from "../../src/web/line";
import { Outbox, TakenBack } from "../../src/web/outbox";
import type { Store } from "../../src/web/store";

type Members = Record<string, unknown>;
type Answer = (method: string, params: Members) => unknown;

function memory(): Store & { texts: Map<string, string> } {
  const texts = new Map<string, string>();
  return { texts, keys: (begin) => [...texts.keys()].filter((key) => key.startsWith(begin)), get: (key) => texts.get(key), set: (key, value) => void (value === undefined ? texts.delete(key) : texts.set(key, value)) };
}

/** An outbox with its server. sent are the requests that the server has got. */
function outboxOf(store = memory(), answer: Answer = () => ({ success: true })): { outbox: Outbox; sent: Array<[string, Members]>; server: { answer: Answer }; outcomes: Array<[string, string | undefined]>; store: ReturnType<typeof memory>; pauses: Array<() => void> } {
  const sent: Array<[string, Members]> = [];
  const server = { answer };
  const pauses: Array<() => void> = [];
  const outbox = new Outbox(store, async <T>(method: string, params: Members) => {
    await Promise.resolve();
    const result = server.answer(method, params);
    if (!(result instanceof OfflineError) || !result.unsent) sent.push([method, params]);
    if (result instanceof Error) throw result;
    return result as T;
  }, (_, then) => pauses.push(then));
  const outcomes: Array<[string, string | undefined]> = [];
  outbox.onOutcome(({ waiting, why }) => outcomes.push([waiting.title, why]));
  return { outbox, sent, server, outcomes, store, pauses };
}

/** settled waits until all that is promised now has happened. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const offline = (): OfflineError => new OfflineError(true);

test("with a connection, a decision is sent at once, and nothing is kept or reported", async () => {
  const { outbox, sent, outcomes, store } = outboxOf();
  assert.deepEqual(await outbox.decide("p", "npm test", { approval: "q", decision: "approve", fingerprint: "f" }), { success: true });
  assert.deepEqual(sent, [["approval.decide", { approval: "q", decision: "approve", fingerprint: "f", project: "p" }]]);
  assert.deepEqual([outcomes, store.texts.size, outbox.waiting], [[], 0, []]);
});

test("a decision made offline is kept, sent once after the reconnection with its fingerprint, and reported", async () => {
  const { outbox, sent, server, outcomes, store } = outboxOf(memory(), offline);
  const decided = outbox.decide("p", "npm test", { approval: "q", decision: "approve", fingerprint: "f" });
  await settled();
  assert.deepEqual([sent.length, outbox.waiting.map(({ title, tried }) => [title, tried])], [0, [["npm test", undefined]]]);
  server.answer = () => ({ success: true });
  outbox.flush();
  outbox.flush();
  assert.deepEqual(await decided, { success: true });
  await settled();
  assert.deepEqual([sent.map(([, { fingerprint }]) => fingerprint), outcomes, store.texts.size], [["f"], [["npm test", undefined]], 0]);
});

test("a page that was loaded again sends what an earlier one has kept", async () => {
  const store = memory();
  const before = outboxOf(store, offline);
  void before.outbox.decide("p", "npm test", { approval: "q", decision: "deny" });
  assert.deepEqual(await before.outbox.prompt("p", { session: "s", prompt: "And the tests?" }, "id-1"), { delivered: "kept" });
  const { outbox, sent, outcomes } = outboxOf(store);
  outbox.flush();
  await settled();
  assert.deepEqual(sent.map(([method, params]) => [method, params["prompt_id"]]), [["approval.decide", undefined], ["session.prompt", "id-1"]]);
  assert.deepEqual([outcomes.length, store.texts.size], [2, 0]);
});

test("a question that has changed refuses the kept decision, and the user learns that", async () => {
  const { outbox, server, outcomes } = outboxOf(memory(), offline);
  const decided = outbox.decide("p", "npm test", { approval: "q", decision: "approve", fingerprint: "f" });
  await settled();
  server.answer = () => new RPCError(-32602, "the question has changed", { kind: "changed" });
  outbox.flush();
  await assert.rejects(decided, /has changed/);
  assert.deepEqual(outcomes, [["npm test", "the question has changed"]]);
});

test("an answer that another client was quicker with does not count, and says so", async () => {
  const { outbox, server, outcomes } = outboxOf(memory(), offline);
  const decided = outbox.decide("p", "npm test", { approval: "q", decision: "approve" });
  await settled();
  server.answer = () => ({ success: false, error: "it is denied", status: "denied" });
  outbox.flush();
  assert.equal((await decided).success, false);
  assert.deepEqual(outcomes, [["npm test", "it is denied"]]);
});

test("a decision whose answer was lost counts if it was carried out", async () => {
  const { outbox, sent, server, outcomes } = outboxOf(memory(), () => new OfflineError());
  const decided = outbox.decide("p", "npm test", { approval: "q", decision: "approve" });
  await settled();
  assert.equal(outbox.waiting[0]!.tried, true);
  server.answer = (method) => (method === "approval.get" ? { approval: { status: "approved" } } : { success: false, error: "it is allowed already" });
  outbox.flush();
  assert.equal((await decided).success, true);
  assert.deepEqual(outcomes, [["npm test", undefined]]);
  assert.equal(sent.filter(([method]) => method === "approval.decide").length, 2);
});

test("prompts of a session keep their order and their ids, and the second waits for the first", async () => {
  const { outbox, sent, server, pauses } = outboxOf(memory(), offline);
  await outbox.prompt("p", { session: "s", prompt: "first" }, "id-1");
  await outbox.prompt("p", { session: "s", prompt: "second" }, "id-2");
  server.answer = () => new RPCError(-32042, "the daemon has ended", { kind: "hub_lost" });
  outbox.flush();
  await settled();
  assert.deepEqual(sent.map(([, { prompt_id }]) => prompt_id), ["id-1"]);
  server.answer = () => ({ delivered: "started" });
  assert.deepEqual(await outbox.prompt("p", { session: "s", prompt: "third" }, "id-3"), { delivered: "kept" });
  for (const pause of pauses) pause();
  await settled();
  assert.deepEqual(sent.map(([, { prompt, prompt_id }]) => [prompt, prompt_id]), [["first", "id-1"], ["first", "id-1"], ["second", "id-2"], ["third", "id-3"]]);
});

test("what waits can be taken back before it is sent, and not after", async () => {
  const { outbox, sent, server } = outboxOf(memory(), offline);
  const decided = outbox.decide("p", "npm test", { approval: "q", decision: "approve" });
  const rejected = assert.rejects(decided, TakenBack);
  await settled();
  assert.equal(outbox.takeBack(outbox.waiting[0]!.id)?.title, "npm test");
  await rejected;
  server.answer = () => ({ success: true });
  outbox.flush();
  await settled();
  assert.deepEqual([sent, outbox.takeBack("decide p q")], [[], undefined]);
});

test("what is under way is not sent a second time when the line comes back, and its question takes no other answer", async () => {
  const { outbox, sent } = outboxOf();
  const decided = outbox.decide("p", "npm test", { approval: "q", decision: "approve" });
  outbox.flush();
  await assert.rejects(outbox.decide("p", "npm test", { approval: "q", decision: "deny" }), /is being sent/);
  await decided;
  await settled();
  assert.equal(sent.length, 1);
});

test("a later decision replaces one that waits", async () => {
  const { outbox, sent, server } = outboxOf(memory(), offline);
  const first = assert.rejects(outbox.decide("p", "npm test", { approval: "q", decision: "approve" }), TakenBack);
  await settled();
  const second = outbox.decide("p", "npm test", { approval: "q", decision: "deny" });
  await first;
  await settled();
  server.answer = () => ({ success: true });
  outbox.flush();
  await second;
  assert.deepEqual(sent.map(([, { decision }]) => decision), ["deny"]);
});

test("a store without room loses nothing while the page lives", async () => {
  const full: Store = { keys: () => [], get: () => undefined, set: () => undefined };
  const { outbox, sent, server } = outboxOf(full as ReturnType<typeof memory>, offline);
  await outbox.start("p", { prompt: "long", session_uuid: "u" }, "start-1");
  server.answer = () => ({ delivered: "started" });
  outbox.flush();
  await settled();
  assert.deepEqual(sent.map(([method, { start_id }]) => [method, start_id]), [["session.start", "start-1"]]);
});
