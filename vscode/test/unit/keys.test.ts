// Keys that an agent asks for, against the built duet-rpc.
import assert from "node:assert/strict";
import test from "node:test";
import { KeyRequests } from "../../src/hub/keys";
import type { KeyRequest, KeyUser } from "../../src/hub/keys";
import { newProject, removeProject, startHub } from "../hub";
import type { TestHub } from "../hub";
import { addKeyAgent, wantedKey } from "../keyagent";

interface Asked {
  request: KeyRequest;
  known: boolean;
  signal: AbortSignal;
}

interface Answering extends TestHub {
  kept: Map<string, string>;
  asked: Asked[];
  warnings: string[];
  /** Makes the agent ask for its key, and resolves with its message about the answer. */
  ask: () => Promise<string>;
}

async function start(t: test.TestContext, over: { trusted?: boolean; answer?: (asked: Asked) => ReturnType<KeyUser["ask"]>; patience?: number }): Promise<Answering> {
  const project = newProject();
  addKeyAgent(project);
  const started = startHub({}, project);
  t.after(async () => {
    await started.end();
    await removeProject(project);
  });
  const { connection, model, until } = started;
  const kept = new Map<string, string>();
  const [asked, warnings]: [Asked[], string[]] = [[], []];
  const requests = new KeyRequests(connection, {
    trusted: () => over.trusted ?? true,
    stored: (service) => Promise.resolve(kept.get(service)),
    store: (service, key) => Promise.resolve(void kept.set(service, key)),
    ask: (request, known, signal) => {
      asked.push({ request, known, signal });
      return over.answer?.({ request, known, signal }) ?? Promise.resolve({ use: "none" });
    },
    warn: (message) => void warnings.push(message),
  }, over.patience);
  connection.onEvent((event) => {
    // The hub's log does not keep this event, so it comes without a number.
    if (event.kind !== "secret.requested") return;
    assert.equal(event.seq, undefined);
    void requests.take({ ...event.data, turn_uuid: event.turn_uuid });
  });
  await connection.start();
  const ask = async (): Promise<string> => {
    const { turn_uuid } = await connection.request("session.start", { prompt: "Get the key", agent: "keyed" });
    await until("the end of the session", () => model.ofTurn(turn_uuid)?.state === "completed");
    const { items } = await connection.request("session.items", { turn: turn_uuid });
    return items.filter(({ role }) => role === "assistant").at(-1)?.text ?? "";
  };
  return { ...started, kept, asked, warnings, ask };
}

test("a key that is to be remembered is asked for once, and stands in no log", async (t) => {
  const { ask, asked, kept, warnings, log, model } = await start(t, { answer: () => Promise.resolve({ use: "given", key: wantedKey, remember: true }) });
  assert.equal(await ask(), "the right key");
  assert.deepEqual(asked.map(({ request, known }) => [request.service, request.agent, known]), [["acme", "keyed", false]]);
  assert.equal(model.ofTurn(asked[0]!.request.turn_uuid ?? "")?.agent, "keyed");
  assert.deepEqual([...kept], [["acme", wantedKey]]);
  assert.equal(await ask(), "the right key");
  assert.equal(asked.length, 1);
  assert.deepEqual(warnings, []);
  assert.doesNotMatch(log.join("\n"), new RegExp(wantedKey));
});

test("a key that is given once is not kept, and none is given where the person says no", async (t) => {
  let yes = true;
  const { ask, kept } = await start(t, { answer: () => Promise.resolve(yes ? { use: "given", key: wantedKey, remember: false } : { use: "none" }) });
  assert.equal(await ask(), "the right key");
  assert.equal(kept.size, 0);
  yes = false;
  assert.match(await ask(), /no key: .*gave none/);
});

test("in an untrusted workspace a key that is kept is not given without a word", async (t) => {
  let use: "none" | "stored" = "none";
  const { ask, kept, asked } = await start(t, { trusted: false, answer: () => Promise.resolve({ use }) });
  kept.set("acme", wantedKey);
  assert.match(await ask(), /no key/);
  assert.deepEqual(asked.map(({ known }) => known), [true]);
  use = "stored";
  assert.equal(await ask(), "the right key");
});

test("an answer that comes too late leads to a warning", async (t) => {
  const { connection, asked, warnings } = await start(t, {
    patience: 1, answer: ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve({ use: "given", key: wantedKey, remember: false }))),
  });
  const { turn_uuid } = await connection.request("session.start", { prompt: "Get the key", agent: "keyed" });
  await new Promise<void>((resolve) => connection.onEvent(({ kind }) => kind === "secret.requested" && resolve()));
  while (warnings.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.match(warnings[0]!, /too late/);
  assert.equal(asked.length, 1);
  await connection.request("turn.interrupt", { turn: turn_uuid });
});
