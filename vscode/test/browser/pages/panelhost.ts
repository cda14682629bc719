// Replaces the extension behind a panel: it implements src/panel/protocol.ts, and a test sets its data.
import type { PanelStart } from "../../../src/panel/protocol";
import type { JSONRPCMessage } from "../../../src/rpc/index";

type Data = Record<string, unknown>;

/** A question as approval.list returns it, from the data of its event. */
export function approvalOf({ approval_id, session_id, ...data }: Data, turn: string): Data {
  return { approval: approval_id, turn_uuid: session_id ?? turn, session_uuid: "thread", ...data };
}

export class FakeHost {
  /** The requests of the page. */
  readonly calls: Array<{ method: string; params: Data }> = [];
  start: PanelStart = { thread: "thread", session: "run", title: "A conversation", draft: { text: "", content: [] }, connection: { is: "ready" }, history: [] };
  items: Data[] = [];
  approvals: Data[] = [];
  /** The queued prompts, the next one first. */
  queued: Data[] = [];
  session: Data = { id: "run", agent: "demo", status: "completed", state: "completed", title: "A conversation", conversation_title: "A conversation", thread_id: "thread", created_at: "2026-01-02T03:04:05Z", modes: [], agent_session: {} };
  sessions: Record<string, Data> = {};
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

  /** An event of the conversation. */
  event(type: string, data: Data): void {
    const run = (data["session_id"] as string | undefined) ?? "run";
    if (type === "new_approval") this.approvals.push(approvalOf(data, run));
    if (type === "approval_resolved") this.approvals = this.approvals.filter(({ approval }) => approval !== data["approval_id"]);
    if (type === "session_status_changed") {
      if (data["state"] !== "queued") this.queued = this.queued.filter((one) => one["session_id"] !== run);
      // As in the hub, the end of a run closes its questions.
      if (["completed", "failed", "timed_out", "interrupted"].includes(data["state"] as string)) this.approvals = this.approvals.filter((one) => one["turn_uuid"] !== run);
      this.session = { ...this.session, id: run, state: data["state"], status: data["state"] };
      this.sessions[run] = this.session;
    }
    this.send(type, data);
  }

  private send(type: string, data: Data): void {
    this.notify("event", { subscription_id: "sub", seq: ++this.seq, event: { type, timestamp: new Date().toISOString(), data: { session_id: "run", thread_id: "thread", ...data } } });
  }

  /** Edits or moves a queued prompt, and sends the page an event as the hub does. */
  changeQueue({ session_id, query, before }: { session_id: string; query?: string; before?: string }): void {
    const prompt = this.queued.find((one) => one["session_id"] === session_id);
    if (prompt === undefined) throw Object.assign(new Error(`${session_id} is running`), { data: { kind: "bad_state" } });
    if (query === undefined) {
      const rest = this.queued.filter((one) => one !== prompt);
      const at = rest.findIndex((one) => one["session_id"] === before);
      this.queued = before === undefined ? [...rest, prompt] : [...rest.slice(0, at), prompt, ...rest.slice(at)];
    } else prompt["query"] = query;
    this.send("queue_changed", { session_id, ...(query === undefined ? {} : { content: query }), order: this.queued.map((one) => one["session_id"]) });
  }

  /** The state of a session. The conversation's is that of its last one, which may be queued. */
  private stateOf(id: string): Data {
    const at = id === "thread" ? this.queued.length - 1 : this.queued.findIndex((one) => one["session_id"] === id);
    if (at < 0) return this.sessions[id] ?? this.session;
    return { ...this.session, id: this.queued[at]!["session_id"], status: "starting", state: "queued", parent_session_id: at === 0 ? this.session["id"] : this.queued[at - 1]!["session_id"] };
  }

  private answer(method: string, params: Data): unknown {
    switch (method) {
      case "panel.start":
        return this.start;
      case "getConversation": {
        const offset = (params["offset"] as number | undefined) ?? 0;
        const end = offset + ((params["limit"] as number | undefined) ?? this.items.length);
        return { events: this.items.slice(offset, end), total: this.items.length, ...(end < this.items.length ? { next_offset: end } : {}) };
      }
      case "getSessionState":
        return { session: this.stateOf(params["session_id"] as string) };
      case "approval.list":
        return { approvals: this.approvals };
      case "getAttachment":
        return { id: params["id"], size: 10, data: this.attachments[params["id"] as string] ?? "" };
      case "approval.decide":
        this.event("approval_resolved", { approval_id: params["approval"], decision: params["decision"] === "approve" ? "approved" : params["decision"] === "deny" ? "denied" : "responded", decided_by: "user" });
        return { success: true };
      case "continueSession": {
        const working = this.session["state"] === "running" || this.session["state"] === "waiting_input";
        if (working && params["deliver"] === "steer" && params["content"] === undefined) {
          this.event("conversation_updated", { event_type: "message", role: "user", message_id: `now-${++this.seq}`, content: params["query"] });
          return { session_id: this.session["id"], run_id: this.session["id"], task_id: this.session["id"], thread_id: "thread", agent: "demo", status: this.session["state"], delivered: "injected" };
        }
        const id = `run-${++this.runs}`;
        this.event("conversation_updated", { session_id: id, event_type: "message", role: "user", message_id: `prompt-${this.runs}`, content: params["query"] });
        if (working) {
          this.queued.push({ session_id: id, task_id: id, query: params["query"], created_at: "2026-01-02T03:04:05Z", editable: params["query"] !== "not editable" });
          this.send("session_status_changed", { session_id: id, state: "queued" });
        }
        return { session_id: id, run_id: id, task_id: id, thread_id: "thread", agent: "demo", status: "starting", delivered: working ? "queued" : "started" };
      }
      case "session.queue":
        return { queued: this.queued };
      case "session.editQueued":
      case "session.moveQueued":
        this.changeQueue(params as { session_id: string });
        return { queued: this.queued };
      case "session.set":
        return { live: true, session: this.session };
      case "interruptSession":
        return { success: true, session_id: params["session_id"], status: "interrupting" };
      case "panel.choose":
        this.start.newSession!.chosen = { ...this.start.newSession!.chosen, ...params };
        return this.start.newSession;
      case "panel.launch":
        delete this.start.newSession;
        this.items.push({ session_id: "run", created_at: "2026-01-02T03:04:05Z", is_completed: true, event_type: "message", sequence: 1, seq: 1, key: "p1", role: "user", content: params["query"] });
        this.session = { ...this.session, status: "running", state: "running" };
        return { beside: ["task-0007"] };
      case "panel.answer":
        return { answered: true };
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
