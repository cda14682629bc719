// Replaces the extension behind a panel: it implements src/panel/protocol.ts, and a test sets its data.
import type { PanelStart } from "../../../src/panel/protocol";
import type { JSONRPCMessage } from "../../../src/rpc/index";

type Data = Record<string, unknown>;

/** A question as approval.list returns it, from the data of its event. */
export function approvalOf(data: Data, turn: string): Data {
  return { turn_uuid: turn, session_uuid: "thread", ...data };
}

export class FakeHost {
  /** The requests of the page. */
  readonly calls: Array<{ method: string; params: Data }> = [];
  start: PanelStart = { session: "thread", title: "A session", draft: { text: "", content: [] }, connection: { is: "ready" }, history: [] };
  items: Data[] = [];
  approvals: Data[] = [];
  /** The queued prompts, the next one first. */
  queued: Data[] = [];
  session: Data = { turn: "12.1", session: 12, turn_uuid: "run", session_uuid: "thread", agent: "demo", mode: "", state: "completed", prompt: "", title: "A session", session_title: "A session", created_at: "2026-01-02T03:04:05Z", modes: [], agent_session: {} };
  turns: Record<string, Data> = {};
  attachments: Record<string, string> = {};
  /** Results of methods that replace the default ones. A thrown error becomes an error response with its message and code. */
  readonly answers: Record<string, (params: Data) => unknown> = {};
  /** Methods that get no response, until release. */
  readonly silent = new Set<string>();
  private held: JSONRPCMessage[] = [];
  state: unknown;
  seq = 1000;
  private runs = 0;

  receive(message: JSONRPCMessage): void {
    if (!("method" in message) || !("id" in message)) return;
    const request = message;
    const params = structuredClone((request.params ?? {}) as Data);
    this.calls.push({ method: request.method, params });
    if (this.silent.has(request.method)) {
      this.held.push(message);
      return;
    }
    setTimeout(() => {
      try {
        const result = (this.answers[request.method] ?? ((given: Data) => this.answer(request.method, given)))(params);
        window.postMessage({ jsonrpc: "2.0", id: request.id, result: result ?? null });
      } catch (error) {
        window.postMessage({ jsonrpc: "2.0", id: request.id, error: { code: (error as { code?: number }).code ?? -32602, message: (error as Error).message, data: (error as { data?: unknown }).data } });
      }
    }, 0);
  }

  /** Answers the held requests of a method that was silent. */
  release(method: string): void {
    this.silent.delete(method);
    const held = this.held.filter((message) => "method" in message && message.method === method);
    this.held = this.held.filter((message) => !held.includes(message));
    this.calls.splice(0, this.calls.length, ...this.calls.filter((call) => call.method !== method));
    for (const message of held) this.receive(message);
  }

  notify(method: string, params: Data): void {
    window.postMessage({ jsonrpc: "2.0", method, params });
  }

  /** An event of a turn of the session: of run, unless its data has a turn_uuid. */
  event(kind: string, data: Data): void {
    const run = (data["turn_uuid"] as string | undefined) ?? "run";
    if (kind === "approval.opened") this.approvals.push(approvalOf(data, run));
    if (kind === "approval.closed") this.approvals = this.approvals.filter(({ approval }) => approval !== data["approval"]);
    if (kind === "turn.state") {
      const turn = this.queued.find((one) => one["turn_uuid"] === run)?.["turn"] ?? this.session["turn"];
      if (data["state"] !== "queued") this.queued = this.queued.filter((one) => one["turn_uuid"] !== run);
      // As in the daemon, the end of a turn closes its questions.
      if (["completed", "failed", "timed_out", "interrupted"].includes(data["state"] as string)) this.approvals = this.approvals.filter((one) => one["turn_uuid"] !== run);
      this.session = { ...this.session, turn, turn_uuid: run, state: data["state"] };
      this.turns[run] = this.session;
    }
    this.send(kind, data);
  }

  private send(kind: string, { turn_uuid = "run", ...data }: Data): void {
    this.notify("event", { subscription_id: "sub", seq: ++this.seq, kind, time: new Date().toISOString(), session: 12, turn_uuid, data });
  }

  /** Edits or moves a queued prompt, and sends the page an event as the hub does. */
  changeQueue({ turn, prompt: text, before }: { turn: string; prompt?: string; before?: string }): void {
    const prompt = this.queued.find((one) => one["turn_uuid"] === turn);
    if (prompt === undefined) throw Object.assign(new Error(`${turn} is running`), { code: -32051, data: { kind: "bad_state" } });
    if (text === undefined) {
      const rest = this.queued.filter((one) => one !== prompt);
      const at = rest.findIndex((one) => one["turn_uuid"] === before);
      this.queued = before === undefined ? [...rest, prompt] : [...rest.slice(0, at), prompt, ...rest.slice(at)];
    } else prompt["prompt"] = text;
    this.send("queue.changed", { turn_uuid: turn, ...(text === undefined ? {} : { prompt: text }), order: this.queued.map((one) => one["turn_uuid"]) });
  }

  /** A turn, by its uuid or number. The session's is its last one, which may be queued. */
  private turnOf(id: string): Data {
    const at = id === "thread" ? this.queued.length - 1 : this.queued.findIndex((one) => one["turn_uuid"] === id);
    if (at < 0) return id === this.session["turn"] ? this.session : (this.turns[id] ?? this.session);
    const { turn, turn_uuid, prompt } = this.queued[at]!;
    return { ...this.session, turn, turn_uuid, prompt, state: "queued", parent: (at === 0 ? this.session : this.queued[at - 1]!)["turn"] };
  }

  /** A page of items. Without ids of their own, they are numbered from 1. */
  private page({ turn, key, before, limit = 100 }: { turn?: string; key?: string; before?: number; limit?: number }): Data {
    const numbered: Data[] = this.items.map((item, i) => ({ id: i + 1, ...item }));
    const items = numbered.filter((item) => turn === undefined || (item["turn_uuid"] === turn && (key === undefined || item["key"] === key)));
    const end = before === undefined ? items.length : items.findIndex(({ id }) => id === before);
    if (end < 0) throw Object.assign(new Error(`the session has no item with the id ${before}`), { code: -32050, data: { kind: "item_not_found" } });
    const from = Math.max(0, end - limit);
    return { items: items.slice(from, end), ...(from > 0 && { next_before: items[from]!["id"] }) };
  }

  private answer(method: string, params: Data): unknown {
    switch (method) {
      case "panel.start":
        return this.start;
      case "session.items":
        return this.page(params);
      case "turn.get":
        return { turn: this.turnOf(params["turn"] as string) };
      case "session.get":
        return { session: this.turnOf(params["session"] as string), queued: this.queued };
      case "approval.list":
        return { approvals: this.approvals };
      case "attachment.get":
        return { id: params["id"], size: 10, data: this.attachments[params["id"] as string] ?? "" };
      case "approval.decide":
        this.event("approval.closed", { approval: params["approval"], status: params["decision"] === "approve" ? "approved" : params["decision"] === "deny" ? "denied" : "responded", decided_by: "user" });
        return { success: true };
      case "session.prompt": {
        const working = this.session["state"] === "running" || this.session["state"] === "waiting_input";
        const started = (turn: unknown, turn_uuid: unknown, state: unknown, delivered: string): Data => ({ turn, session: 12, turn_uuid, session_uuid: "thread", agent: "demo", state, delivered });
        if (working && params["deliver"] === "steer" && params["content"] === undefined) {
          this.event("item.added", { type: "message", role: "user", key: `now-${++this.seq}`, text: params["prompt"] });
          return started(this.session["turn"], this.session["turn_uuid"], this.session["state"], "injected");
        }
        const id = `run-${++this.runs}`;
        const turn = `12.${this.runs + 1}`;
        this.event("item.added", { turn_uuid: id, type: "message", role: "user", key: `prompt-${this.runs}`, text: params["prompt"] });
        if (working) {
          this.queued.push({ turn, turn_uuid: id, prompt: params["prompt"], created_at: "2026-01-02T03:04:05Z", editable: params["prompt"] !== "not editable" });
          this.send("turn.state", { turn_uuid: id, state: "queued" });
        }
        return started(turn, id, working ? "queued" : "starting", working ? "queued" : "started");
      }
      case "turn.edit":
      case "turn.move":
        this.changeQueue(params as { turn: string });
        return { queued: this.queued };
      case "session.set":
        return { live: true, turn: this.session };
      case "turn.interrupt":
        return { turn: this.session["turn"], state: this.queued.some((one) => one["turn_uuid"] === params["turn"]) ? "cancelled" : "interrupting" };
      case "panel.choose":
        this.start.newSession!.chosen = { ...this.start.newSession!.chosen, ...params };
        return this.start.newSession;
      case "panel.launch":
        delete this.start.newSession;
        this.items.push({ turn_uuid: "run", created_at: "2026-01-02T03:04:05Z", type: "message", seq: 1, key: "p1", role: "user", text: params["prompt"] });
        this.session = { ...this.session, state: "running" };
        return { beside: ["7.1"] };
      case "panel.openAddress":
        return { opened: true };
      case "panel.findFiles":
        return { files: [] };
      case "panel.readFiles":
        return { content: [], refused: [] };
      default:
        return null;
    }
  }
}

const host = new FakeHost();
declare global {
  interface Window {
    host: FakeHost;
    acquireVsCodeApi: () => unknown;
  }
}
window.host = host;
const kept = sessionStorage.getItem("state");
host.state = kept === null ? undefined : JSON.parse(kept);
window.acquireVsCodeApi = () => ({
  postMessage: (message: JSONRPCMessage) => host.receive(structuredClone(message)),
  getState: () => host.state,
  setState: (state: unknown) => {
    host.state = state;
    sessionStorage.setItem("state", JSON.stringify(state));
  },
});
// A test sets the data before the first request of the page.
(window as unknown as { prepare?: (host: FakeHost) => void }).prepare?.(host);
