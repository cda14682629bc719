// Replaces duet-rpc web in tests of its page: the files of the page, the pairing, and the WebSocket with projects, sessions and
// questions that a test sets.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Approval, Project, ProjectSessions } from "../../src/web/protocol";

export type Data = Record<string, unknown>;

const types: Record<string, string> = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml", png: "image/png", webmanifest: "application/manifest+json" };

/** The policy that duet-rpc web sends with the page. */
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A text message of a WebSocket of a server, which is not masked. */
function frameOf(text: string): Buffer {
  const body = Buffer.from(text);
  const head = body.length < 126 ? Buffer.from([0x81, body.length]) : body.length < 65_536 ? Buffer.from([0x81, 126, body.length >> 8, body.length & 255]) : Buffer.alloc(10);
  if (body.length >= 65_536) {
    head.set([0x81, 127]);
    head.writeBigUInt64BE(BigInt(body.length), 2);
  }
  return Buffer.concat([head, body]);
}

/** A connection of the page. */
class Connection {
  readonly subscriptions = new Map<string, { project: string; session: string | undefined; kinds: string[] }>();
  ready = false;
  private unread = Buffer.alloc(0);
  private text = "";

  constructor(
    private readonly socket: Socket,
    private readonly receive: (message: Data) => void,
  ) {
    socket.on("data", (data) => this.read(data));
    socket.on("error", () => undefined);
  }

  send(...messages: Data[]): void {
    if (!this.socket.destroyed) this.socket.write(frameOf(messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("")));
  }

  close(code?: number): void {
    if (code !== undefined) this.socket.write(Buffer.from([0x88, 2, code >> 8, code & 255]));
    this.socket.destroySoon();
  }

  private read(data: Buffer): void {
    this.unread = Buffer.concat([this.unread, data]);
    for (;;) {
      if (this.unread.length < 2) return;
      const [first, second] = [this.unread[0]!, this.unread[1]! & 127];
      const lengthBytes = second === 126 ? 2 : second === 127 ? 8 : 0;
      const from = 2 + lengthBytes + 4;
      if (this.unread.length < from) return;
      const length = lengthBytes === 0 ? second : lengthBytes === 2 ? this.unread.readUInt16BE(2) : Number(this.unread.readBigUInt64BE(2));
      if (this.unread.length < from + length) return;
      const mask = this.unread.subarray(2 + lengthBytes, from);
      const body = Buffer.from(this.unread.subarray(from, from + length).map((byte, i) => byte ^ mask[i % 4]!));
      this.unread = this.unread.subarray(from + length);
      if ((first & 15) === 8) return this.close();
      if ((first & 15) > 1) continue;
      this.text += body.toString();
      if ((first & 128) === 0) continue;
      const lines = this.text.split("\n").filter((line) => line !== "");
      this.text = "";
      for (const line of lines) this.receive(JSON.parse(line) as Data);
    }
  }
}

/** An error for the page. */
export function refusal(kind: string, message: string, code = -32602): Error {
  return Object.assign(new Error(message), { code, data: { kind } });
}

/** A session as session.list returns it. */
export function sessionOf(session: number, over: Data = {}): Data {
  return {
    turn: `${session}.1`, session, turn_uuid: `turn-${session}`, session_uuid: `session-${session}`, agent: "claude", mode: "default", state: "completed", prompt: "Fix the parser", summary: "Fix the parser", title: "", session_title: "Fix the parser",
    created_at: "2026-01-02T03:04:05Z", active_at: new Date(Date.now() - 300_000).toISOString(), modes: [], agent_session: {}, working_dir: "/home/alice/parser", ...over,
  };
}

/** A question as approval.list returns it. */
export function approvalOf(approval: string, session: number, over: Data = {}): Approval {
  return {
    approval, call_id: approval, turn: `${session}.1`, session, turn_uuid: `turn-${session}`, session_uuid: `session-${session}`, agent: "claude", status: "pending", stale: false, created_at: new Date(Date.now() - 180_000).toISOString(),
    tool_name: "Bash", tool_input: { command: "npm test" }, input_editable: false, title: "Run npm test", takes_comment: true, type: "function_call", fingerprint: `print-${approval}`, tool_kind: "execute", ...over,
  } as unknown as Approval;
}

export class FakeWeb {
  readonly calls: Array<{ method: string; params: Data }> = [];
  projects: Project[] = [{ id: "p1", name: "parser", root: "/home/alice/parser", state: "connected" }];
  approvals: Array<{ project: string; approval: Approval }> = [];
  sessions: Array<{ project: string; sessions: Data[]; error?: string }> = [{ project: "p1", sessions: [] }];
  /** The items of sessions, by their uuids. */
  readonly items: Record<string, Data[]> = {};
  /** The changes of turns, by their uuids. */
  readonly changes: Record<string, Data[]> = {};
  /** Results of methods that replace the default ones. */
  readonly answers: Record<string, (params: Data) => unknown> = {};
  /** Requests for decisions by a notification: the header with the key, and the body. */
  readonly decided: Array<{ key: string; body: Data }> = [];
  code = "ABCD-1234";
  key = "";
  refused: { kind: string } | undefined;
  origin = "";
  private readonly log: Data[] = [];
  private seq = 100;
  private readonly connections = new Set<Connection>();
  private isOff = false;
  private readonly server: Server;
  private subscriptions = 0;
  private turns = 1;

  constructor() {
    this.server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://localhost").pathname;
      if (this.isOff) return void request.socket.destroy();
      if (request.method === "POST") {
        const chunks: Buffer[] = [];
        request.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => {
          const body = JSON.parse(Buffer.concat(chunks).toString()) as Data;
          const [status, answer] = path === "/pair" ? this.pair(body) : this.decide(request, body);
          response.writeHead(status, { "content-type": "application/json", ...(status === 200 && path === "/pair" && { "set-cookie": "duet=1; HttpOnly; SameSite=Strict" }) }).end(JSON.stringify(answer));
        });
        return;
      }
      const name = path === "/" ? "index.html" : path.slice(1);
      readFile(new URL(`../web/${name}`, import.meta.url)).then(
        (body) => response.writeHead(200, { "content-type": types[name.split(".").at(-1)!] ?? "text/plain", "content-security-policy": policy, "cache-control": "no-cache" }).end(body),
        () => response.writeHead(404).end(),
      );
    });
    this.server.on("upgrade", (request: IncomingMessage, socket: Socket) => {
      if (this.isOff) return void socket.destroy();
      const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
      const connection: Connection = new Connection(socket, (message) => this.receive(connection, message));
      this.connections.add(connection);
      socket.on("close", () => this.connections.delete(connection));
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.origin = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.off();
    this.server.closeAllConnections();
    this.server.close();
  }

  /** Breaks all connections, and accepts no other ones. */
  off(): void {
    this.isOff = true;
    for (const connection of this.connections) connection.close();
  }

  on(): void {
    this.isOff = false;
  }

  /** Ends the connections with a code. */
  kick(code: number): void {
    for (const connection of this.connections) connection.close(code);
  }

  of(method: string): Data[] {
    return this.calls.filter((call) => call.method === method).map(({ params }) => params);
  }

  notify(method: string, params: Data): void {
    for (const connection of this.connections) if (connection.ready) connection.send({ method, params });
  }

  /** Sends the inbox, after approvals has changed. */
  sendInbox(): void {
    this.notify("web.inbox", { questions: this.approvals });
  }

  /** Adds a question, as a daemon does. */
  ask(project: string, approval: Approval): void {
    this.approvals.push({ project, approval });
    this.event(project, "approval.opened", { session: approval.session, session_uuid: approval.session_uuid, turn_uuid: approval.turn_uuid }, approval);
    this.sendInbox();
  }

  /** Answers a question, as another client does. */
  answer(id: string, status: string): void {
    const found = this.approvals.find(({ approval }) => approval.approval === id);
    if (!found) return;
    this.approvals = this.approvals.filter((one) => one !== found);
    this.ended.set(id, { ...found.approval, status, decided_by: "user" });
    this.event(found.project, "approval.closed", { session_uuid: found.approval.session_uuid, turn_uuid: found.approval.turn_uuid }, { approval: id, status, decided_by: "user" });
    this.sendInbox();
  }
  private readonly ended = new Map<string, unknown>();

  /** An event of a project, which the log keeps unless it is a delta. */
  event(project: string, kind: string, of: { session_uuid: string; turn_uuid?: string } & Data, data: Data): void {
    const event = { project, seq: ++this.seq, kind, time: new Date().toISOString(), session: 12, ...of, data };
    this.log.push(event);
    this.deliver(event);
  }

  private deliver(event: Data, only?: Connection): void {
    for (const connection of only ? [only] : this.connections) {
      for (const [subscription_id, { project, session, kinds }] of connection.subscriptions) {
        if (project === event["project"] && (session === undefined || session === event["session_uuid"]) && kinds.includes(event["kind"] as string)) connection.send({ method: "event", params: { ...event, subscription_id } });
      }
    }
  }

  private pair({ code, name }: Data): [number, Data] {
    if (code !== this.code) return [403, { error: "the code is wrong or has expired" }];
    this.key = "key-1";
    return [200, { key: this.key, device: { id: "d1", name } }];
  }

  private decide(request: IncomingMessage, body: Data): [number, Data] {
    this.decided.push({ key: String(request.headers["duet-key"]), body });
    this.answer(String(body["approval"]), body["decision"] === "approve" ? "approved" : "denied");
    return [200, { success: true }];
  }

  private receive(connection: Connection, message: Data): void {
    const { id, method, params = {} } = message as { id?: number; method: string; params?: Data };
    if (id === undefined) return;
    this.calls.push({ method, params });
    try {
      if (method === "web.hello" && (params["key"] !== this.key || this.key === "")) throw refusal("not_paired", "this device is not paired");
      const answered = this.answers[method]?.(params);
      const result = answered ?? this.result(connection, method, params);
      connection.send({ id, result });
      if (method === "web.hello") connection.ready = true;
      if (method === "event.subscribe") for (const event of this.log) if ((event["seq"] as number) > Number(params["since"] ?? this.seq)) this.deliver(event, connection);
    } catch (error) {
      const { code = -32603, message: words, data } = error as Error & { code?: number; data?: unknown };
      connection.send({ id, error: { code, message: words, data } });
    }
  }

  private turn(uuid: string): Data {
    const all = this.sessions.flatMap(({ sessions }) => sessions);
    const found = all.find((one) => one["session_uuid"] === uuid || one["turn_uuid"] === uuid);
    if (!found) throw refusal("not_found", `there is no session ${uuid}`);
    return found;
  }

  private result(connection: Connection, method: string, params: Data): unknown {
    const project = String(params["project"]);
    switch (method) {
      case "web.hello":
        return { device: { id: "d1", name: "Android phone" }, version: "0.1.0", projects: this.projects, inbox: this.approvals, push: { public_key: "BEl62iUYgUivxIkv69yViEuiBIa-Ib9-SkvMeAtA3LFgDzkrxZJjSgSnfckjBJuBkr3qBUYIHBQFLXYp5Nksh8U" } };
      case "web.sessions":
        return { projects: this.sessions as unknown as ProjectSessions[] };
      case "event.subscribe": {
        const id = `sub-${++this.subscriptions}`;
        connection.subscriptions.set(id, { project, session: params["session"] as string | undefined, kinds: params["kinds"] as string[] });
        return { subscription_id: id, seq: Number(params["since"] ?? this.seq) };
      }
      case "event.unsubscribe":
        return { success: connection.subscriptions.delete(String(params["subscription_id"])) };
      case "session.get":
        return { session: this.turn(String(params["session"])), queued: [] };
      case "turn.get":
        return { turn: this.turn(String(params["turn"])) };
      case "turn.list":
        return { turns: [this.turn(String(params["session"]))] };
      case "session.items":
        return { items: this.items[String(params["session"])] ?? [] };
      case "session.search":
        return { hits: [] };
      case "approval.list":
        return { approvals: this.approvals.filter((one) => one.project === project).map(({ approval }) => approval) };
      case "approval.get": {
        const open = this.approvals.find(({ approval }) => approval.approval === params["approval"])?.approval ?? this.ended.get(String(params["approval"]));
        if (!open) throw refusal("not_found", "there is no such question");
        return { approval: open };
      }
      case "approval.decide": {
        const open = this.approvals.find(({ approval }) => approval.approval === params["approval"]);
        const status = params["decision"] === "approve" ? "approved" : params["decision"] === "deny" ? "denied" : "responded";
        if (!open) return { success: false, error: "it is decided already", status: (this.ended.get(String(params["approval"])) as Data | undefined)?.["status"] };
        if (open.approval.fingerprint !== params["fingerprint"]) throw refusal("changed", "the question has changed since it was shown");
        this.answer(String(params["approval"]), status);
        return { success: true };
      }
      case "session.prompt": {
        const turn = this.turn(String(params["session"]));
        const number = String(turn["session"]);
        const turn_uuid = `turn-${number}-${++this.turns}`;
        Object.assign(turn, { turn: `${number}.${this.turns}`, turn_uuid, state: "running", prompt: params["prompt"] });
        (this.items[String(params["session"])] ??= []).push({ id: this.seq, seq: this.seq + 1, turn_uuid, type: "message", role: "user", key: `prompt-${this.turns}`, text: params["prompt"], created_at: new Date().toISOString() });
        this.event(project, "item.added", { session_uuid: String(params["session"]), turn_uuid }, { type: "message", role: "user", key: `prompt-${this.turns}`, text: params["prompt"] });
        this.event(project, "turn.state", { session_uuid: String(params["session"]), turn_uuid }, { state: "running" });
        return { turn: turn["turn"], session: turn["session"], turn_uuid, session_uuid: params["session"], agent: "claude", state: "running", delivered: "started" };
      }
      case "session.start": {
        const uuid = String(params["session_uuid"]);
        const session = sessionOf(20, { session_uuid: uuid, turn_uuid: `turn-of-${uuid}`, state: "running", prompt: params["prompt"], session_title: params["prompt"] });
        this.sessions.find((one) => one.project === project)!.sessions.unshift(session);
        this.items[uuid] = [{ id: 1, seq: ++this.seq, turn_uuid: session["turn_uuid"], type: "message", role: "user", key: "p", text: params["prompt"], created_at: new Date().toISOString() }];
        return { turn: "20.1", session: 20, turn_uuid: session["turn_uuid"], session_uuid: uuid, agent: "claude", state: "starting", delivered: "started" };
      }
      case "agent.list":
        return { agents: [{ name: "claude", title: "Claude Code", driver: "acp", default: true, available: true, source: "known", trusted: true, version: "2.1" }, { name: "codex", title: "Codex", driver: "acp", default: false, available: true, source: "known", trusted: true }] };
      case "agent.describe":
        return {
          agent: params["agent"], modes: [{ id: "default", name: "Default", by: "duet" }, { id: "plan", name: "Plan", by: "duet" }],
          agent_session: { model: { current: "", available: [{ id: "opus", name: "Opus" }, { id: "sonnet", name: "Sonnet" }] } },
        };
      case "change.list":
        return { turn: "12.1", turn_uuid: params["turn"], changes: this.changes[String(params["turn"])] ?? [], diff: "" };
      case "change.accept":
      case "change.revert":
      case "change.reopen": {
        const file = this.changes[String(params["turn"])]!.find(({ path }) => path === params["path"])!;
        const state = method === "change.accept" ? "accepted" : method === "change.revert" ? "reverted" : "open";
        for (const hunk of file["hunks"] as Data[]) if (params["hunk"] === undefined || hunk["id"] === params["hunk"]) hunk["state"] = state;
        return { path: file["path"], state, hunks: file["hunks"] };
      }
      case "session.set":
        return { live: false, turn: this.turn(String(params["session"])) };
      case "web.rename":
      case "web.leave":
      case "web.push.set":
      case "web.push.test":
      case "session.rename":
      case "turn.interrupt":
        return {};
      default:
        throw refusal("not_allowed", `${method} is not allowed`);
    }
  }
}
