// The line to duet-rpc web and the projects behind it, over a fake WebSocket.
import assert from "node:assert/strict";
import test from "node:test";
import type { HubEvent } from "../../src/protocol";
import { ProjectHub } from "../../src/web/hub";
import { Line, OfflineError } from "../../src/web/line";
import type { Socket } from "../../src/web/line";
import { Outbox } from "../../src/web/outbox";

type Message = { id?: number; method?: string; params?: Record<string, unknown> };

class FakeSocket implements Socket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  readonly sent: Message[] = [];
  closed = false;

  send(text: string): void {
    for (const line of text.split("\n")) if (line !== "") this.sent.push(JSON.parse(line) as Message);
  }

  close(): void {
    this.closed = true;
  }

  /** Sends messages in one text. */
  say(...messages: object[]): void {
    this.onmessage?.({ data: messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("") });
  }

  /** The last request for a method. */
  last(method: string): Message {
    return this.sent.filter((message) => message.method === method).at(-1)!;
  }

  answer(method: string, result: object): void {
    this.say({ id: this.last(method).id, result });
  }
}

const hello = { device: { id: "d", name: "Phone" }, version: "1", projects: [], inbox: [] };

/** until lets the line work until something holds: it may hand messages to timers. */
async function until(holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 20_000; !holds(); await new Promise((resolve) => setImmediate(resolve))) assert.ok(Date.now() < end, holds.toString());
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

function lineOf(): { line: Line; sockets: FakeSocket[]; timers: Array<{ milliseconds: number; then: () => void }>; greet: () => Promise<FakeSocket> } {
  const sockets: FakeSocket[] = [];
  const timers: Array<{ milliseconds: number; then: () => void }> = [];
  const line = new Line({
    key: "key",
    open: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket;
    },
    later: (milliseconds, then) => {
      const timer = { milliseconds, then };
      timers.push(timer);
      return () => {
        if (timers.includes(timer)) timers.splice(timers.indexOf(timer), 1);
      };
    },
  });
  const greet = async (): Promise<FakeSocket> => {
    const socket = sockets.at(-1)!;
    socket.onopen?.();
    socket.answer("web.hello", hello);
    await settled();
    return socket;
  };
  return { line, sockets, timers, greet };
}

test("the first request has the key, and a broken line is opened again after growing pauses", async () => {
  const { line, sockets, timers, greet } = lineOf();
  let ready = 0;
  line.onReady(() => ready++);
  line.open();
  const first = await greet();
  assert.deepEqual([first.sent[0]!.method, first.sent[0]!.params, ready, line.ready], ["web.hello", { key: "key" }, 1, true]);
  const pauses: number[] = [];
  for (let i = 0; i < 8; i++) {
    sockets.at(-1)!.onclose?.({ code: 1006 });
    const retry = timers.pop()!;
    pauses.push(retry.milliseconds);
    retry.then();
  }
  assert.deepEqual(pauses, [300, 600, 1_200, 2_400, 4_800, 9_600, 10_000, 10_000]);
  await greet();
  assert.equal(ready, 2);
  sockets.at(-1)!.onclose?.({ code: 1006 });
  assert.equal(timers.at(-1)!.milliseconds, 300, "after a connection the pauses begin anew");
});

test("requests without a connection are refused as unsent, and those that it loses are not", async () => {
  const { line, greet } = lineOf();
  line.open();
  await assert.rejects(line.send("turn.get", {}), (error) => error instanceof OfflineError && error.unsent);
  const socket = await greet();
  const lost = assert.rejects(line.send("turn.get", {}), (error) => error instanceof OfflineError && !error.unsent);
  socket.onclose?.({ code: 1006 });
  await lost;
});

test("a message that the server would not read is refused before it is kept or sent", async () => {
  const { line, greet } = lineOf();
  const { hub } = projectOf(line);
  line.open();
  const socket = await greet();
  await assert.rejects(hub.request("session.prompt", { session: "s", prompt: "ä".repeat(6 << 20) }), /session\.prompt has 12\.0 MiB, and the limit is 10 MiB/);
  socket.onclose?.({ code: 1006 });
  await assert.rejects(hub.request("session.prompt", { session: "s", prompt: "ä".repeat(6 << 20) }), /the limit is 10 MiB/);
});

test("a line that is woken connects at once, and ends a connection that is dead", async () => {
  const { line, sockets, timers, greet } = lineOf();
  line.open();
  await greet();
  sockets[0]!.onclose?.({ code: 1006 });
  line.wake();
  line.wake(); // the attempt before may hang
  assert.deepEqual([sockets.length, sockets[1]!.closed], [3, true]);
  const socket = await greet();
  timers.splice(0).forEach(({ then }) => then()); // the probe of the greeting was answered
  assert.equal(socket.closed, false);
  line.wake();
  timers.splice(0).forEach(({ then }) => then());
  assert.equal(socket.closed, true);
});

test("a device that is no longer paired, or was removed, stays away", async () => {
  for (const [code, why] of [[4401, "not_paired"], [4403, "removed"]] as const) {
    const { line, sockets, timers, greet } = lineOf();
    const refused: string[] = [];
    line.onRefused((reason) => refused.push(reason));
    line.open();
    await greet();
    sockets[0]!.onclose?.({ code });
    assert.deepEqual([refused, timers.length], [[why], 0]);
  }
  const { line, sockets } = lineOf();
  const refused: string[] = [];
  line.onRefused((reason) => refused.push(reason));
  line.open();
  sockets[0]!.onopen?.();
  sockets[0]!.say({ id: sockets[0]!.last("web.hello").id, error: { code: -32602, message: "no", data: { kind: "not_paired" } } });
  await settled();
  assert.deepEqual(refused, ["not_paired"]);
});

function projectOf(line: Line): { hub: ProjectHub; events: number[]; lost: () => number; follow: () => Promise<unknown>; troubles: Array<string | undefined> } {
  const store = { keys: () => [], get: () => undefined, set: () => undefined };
  const hub = new ProjectHub({ id: "p", name: "parser", root: "/parser", state: "connected" }, line, new Outbox(store, (method, params) => line.send(method, params)));
  const events: number[] = [];
  let lost = 0;
  const troubles: Array<string | undefined> = [];
  hub.onTrouble((trouble) => troubles.push(trouble));
  line.onEvent<HubEvent>((event) => hub.take(event));
  line.onBroken(() => hub.broken());
  line.onReady(() => void hub.resume());
  return { hub, events, lost: () => lost, troubles, follow: () => hub.follow({ session: "s", kinds: ["turn.state"] }, { event: ({ seq }) => events.push(seq!), lost: () => lost++ }) };
}

const event = (subscription_id: string, seq: number): object => ({ method: "event", params: { project: "p", subscription_id, seq, kind: "turn.state", time: "", data: { state: "running" } } });

test("a subscription goes on after its last event when the line is back, and takes events that come with its answer", async () => {
  const { line, sockets, timers, greet } = lineOf();
  const { hub, events, follow, troubles } = projectOf(line);
  line.open();
  const first = await greet();
  const following = follow();
  await settled();
  assert.deepEqual(first.last("event.subscribe").params, { session: "s", kinds: ["turn.state"], project: "p" });
  first.say({ id: first.last("event.subscribe").id, result: { subscription_id: "one", seq: 7 } }, event("one", 8), event("one", 9));
  await following;
  await until(() => events.length === 2);
  assert.deepEqual(events, [8, 9]);
  first.onclose?.({ code: 1006 });
  assert.deepEqual([hub.answers, hub.trouble], [false, "you are offline"]);
  timers.pop()!.then();
  const second = await greet();
  assert.deepEqual(second.last("event.subscribe").params, { session: "s", kinds: ["turn.state"], project: "p", since: 9 });
  assert.equal(hub.answers, false, "the missed events come first");
  second.say({ id: second.last("event.subscribe").id, result: { subscription_id: "two", seq: 9 } }, event("one", 10), event("two", 10));
  await until(() => events.length === 3 && hub.answers);
  assert.deepEqual([events, hub.answers, sockets.length], [[8, 9, 10], true, 2]);
  assert.equal(troubles.at(-1), undefined);
});

test("a daemon that does not answer is a trouble of its project", async () => {
  const { line, greet } = lineOf();
  const { hub, troubles } = projectOf(line);
  line.open();
  await greet();
  hub.setTrouble("the daemon does not answer");
  hub.setTrouble(null);
  assert.deepEqual(troubles.slice(-2), ["the daemon does not answer", undefined]);
});

test("a decision names the fingerprint of the question as the page has got it", async () => {
  const { line, greet } = lineOf();
  const { hub } = projectOf(line);
  line.open();
  const socket = await greet();
  const listed = hub.request("approval.list", {});
  await settled();
  socket.answer("approval.list", { approvals: [{ approval: "q", title: "npm test", fingerprint: "f1", input_editable: true }] });
  assert.deepEqual((await listed).approvals.map(({ input_editable }) => input_editable), [false], "this page has no editor for an input");
  void hub.request("approval.decide", { approval: "q", decision: "approve" });
  await settled();
  assert.deepEqual(socket.last("approval.decide").params, { approval: "q", decision: "approve", fingerprint: "f1", project: "p" });
});

test("a prompt has an id, with which it is sent again after the line was broken", async () => {
  const { line, timers, greet } = lineOf();
  const { hub } = projectOf(line);
  line.open();
  const first = await greet();
  const sent = hub.request("session.prompt", { session: "s", prompt: "And the tests?" });
  await settled();
  const { prompt_id } = first.last("session.prompt").params!;
  assert.match(String(prompt_id), /^[0-9a-f-]{36}$/);
  first.onclose?.({ code: 1006 });
  assert.deepEqual(await sent, { delivered: "kept" });
  timers.pop()!.then();
  const second = await greet();
  assert.equal(second.last("session.prompt"), undefined, "the owner of the outbox sends it again");
});
