// A conversation as the hub tells it: what getConversation has, and the events after that,
// become entries, questions and states. It knows neither the wire nor a page: whoever shows it
// takes what has changed (takeChanges) whenever there is time to draw.
import type { EventParams } from "../hub/events";
import type { Item } from "../hub/transcript";
import type { Entry, EntryKind } from "./entry";
import { objectOf, objectsOf, stringOf } from "./json";
import type { Data } from "./json";
import { newTool, planOf, tellTool } from "./tool";

/** A question that waits for an answer: the members of fetchApprovals, or of the event new_approval. */
export interface OpenQuestion {
  id: string;
  run: string;
  /** The key of the tool call that waits for it, if the conversation has it. */
  tool: string | undefined;
  data: Data;
}

/** What the agent tells of its session, see the event agent_session. */
export interface AgentSession {
  agent?: Data;
  mode?: Data;
  model?: Data;
  options?: Data[];
  commands?: Data[];
  info?: Data;
}

/** What is otherwise than when it was asked last. */
export interface Changes {
  /** Entries have come, at the end or at the beginning. */
  order: boolean;
  /** Of the entries that were there, those that are otherwise. */
  keys: Set<string>;
  questions: boolean;
  /** A state, a setting or the agent's own session. */
  session: boolean;
}

const active = new Set(["starting", "running", "waiting_input", "interrupting"]);
const ended = new Set(["completed", "failed", "timed_out", "cancelled", "interrupted", "discarded"]);

/** Codes of task_error of which the conversation has an entry as well. */
const toldTwice = new Set(["MCP_SERVER_FAILED", "CONTENT_REFUSED", "SETTING_IGNORED"]);

export class Conversation {
  private readonly byKey = new Map<string, Entry>();
  private readonly parts = new Map<string, Entry[]>();
  private readonly waiting = new Map<string, OpenQuestion>();
  private readonly answered = new Set<string>();
  private readonly states = new Map<string, string>();
  private readonly usage = new Map<string, Data>();
  private list: Entry[] = [];
  private held: EventParams[] | undefined = [];
  private changes = noChanges();
  private agentSession: AgentSession = {};
  private silentSince: string | undefined;
  private lastSeq = 0;

  /** What is not part of another entry, the oldest first. */
  get entries(): readonly Entry[] {
    return this.list;
  }

  get questions(): readonly OpenQuestion[] {
    return [...this.waiting.values()];
  }

  get told(): Readonly<AgentSession> {
    return this.agentSession;
  }

  /** Since when the agent gives no sign of life; undefined: it does, or nobody waits for it. */
  get silent(): string | undefined {
    return this.silentSince;
  }

  /** The number of the last event, to go on after it with since. */
  get seq(): number {
    return this.lastSeq;
  }

  /** The session that an agent works on. */
  get activeRun(): string | undefined {
    return [...this.states].find(([, state]) => active.has(state))?.[0];
  }

  /** How many prompts wait for their turn. */
  get queued(): number {
    return [...this.states.values()].filter((state) => state === "queued").length;
  }

  entry(key: string): Entry | undefined {
    return this.byKey.get(key);
  }

  /** What is part of a tool call, such as what its sub-agent says and does. */
  partsOf(key: string): readonly Entry[] {
    return this.parts.get(key) ?? [];
  }

  state(run: string): string | undefined {
    return this.states.get(run);
  }

  usageOf(run: string): Readonly<Data> {
    return this.usage.get(run) ?? {};
  }

  takeChanges(): Changes {
    const changes = this.changes;
    this.changes = noChanges();
    return changes;
  }

  /**
   * Takes a page of getConversation: the newest one first, then, with older, those before it.
   * Events that came before the first page are applied after it.
   */
  load(items: readonly Item[], older = false): void {
    const before = this.list;
    if (older) this.list = [];
    for (const item of items) this.loadItem(item);
    if (older) {
      this.list = [...this.list, ...before];
      this.adopt();
    }
    this.changes.order = true;
    const held = this.held ?? [];
    this.held = undefined;
    for (const params of held) this.apply(params);
  }

  /** Takes what getSessionState says of a session. */
  loadSession(session: { id: string; state?: string; status?: string; agent_session?: AgentSession; silent_since?: string }): void {
    this.setState(session.id, session.state ?? session.status ?? "");
    this.agentSession = { ...session.agent_session, ...this.agentSession };
    if (session.silent_since !== undefined) this.silentSince ??= session.silent_since;
    this.changes.session = true;
  }

  /** Takes the questions that fetchApprovals has. */
  loadQuestions(approvals: readonly Data[]): void {
    for (const approval of approvals) this.ask(approval);
  }

  /** Takes an event of this conversation. What is older than what is known changes nothing. */
  apply(params: EventParams): void {
    if (this.held !== undefined) {
      this.held.push(params);
      return;
    }
    const { seq, event } = params;
    const { type, timestamp } = event;
    const data: Data = event.data;
    const run = stringOf(data["session_id"]) ?? "";
    this.lastSeq = Math.max(this.lastSeq, seq);
    switch (type) {
      case "message_delta":
        return this.delta("text", run, data, seq, timestamp);
      case "thinking_delta":
        return this.delta("thinking", run, data, seq, timestamp);
      case "conversation_updated":
        return this.updated(run, data, seq, timestamp);
      case "plan":
        return this.put("plan", planKey(run), run, { entries: data["entries"] }, seq, timestamp);
      case "diff_updated":
        return this.put("diff", diffKey(run, data), run, data, seq, timestamp);
      case "new_approval":
        return this.ask(data);
      case "approval_resolved":
        return this.resolve(run, data, seq, timestamp);
      case "session_status_changed":
        return this.statusChanged(run, data, seq, timestamp);
      case "usage":
        this.usage.set(run, { ...this.usage.get(run), ...data });
        this.changes.session = true;
        return;
      case "agent_session":
        return this.tell(data);
      case "agent_silent":
        this.silentSince = data["ended"] === true ? undefined : stringOf(data["since"]);
        this.changes.session = true;
        return;
      case "session_settings_changed":
        this.changes.session = true;
        return;
      case "task_error":
        if (toldTwice.has(stringOf(data["code"]) ?? "")) return;
        return this.note("error", `error:${seq}`, run, stringOf(data["message"]) ?? "The agent reports an error", seq, timestamp);
    }
  }

  private loadItem(item: Item): void {
    const [run, seq, data] = [item.session_id, item.seq ?? 0, objectOf(item.data)];
    const created = item.created_at;
    this.lastSeq = Math.max(this.lastSeq, seq);
    switch (item.event_type) {
      case "tool_call":
      case "tool_result":
        return this.tool(run, { ...item }, seq, created);
      case "plan":
        return this.put("plan", planKey(run), run, data, seq, created);
      case "diff":
        return this.put("diff", diffKey(run, data), run, data, seq, created);
      case "approval":
        return this.put("answer", answerKey(data), run, data, seq, created);
      default:
        return this.whole(run, item.key ?? `item:${item.sequence}`, item.event_type, { ...item }, !item.is_completed, seq, created);
    }
  }

  private updated(run: string, data: Data, seq: number, created: string): void {
    const type = stringOf(data["event_type"]) ?? "";
    if (type === "tool_call" || type === "tool_result") return this.tool(run, data, seq, created);
    this.whole(run, stringOf(data["message_id"]) ?? `event:${seq}`, type, data, false, seq, created);
  }

  private delta(kind: "text" | "thinking", run: string, data: Data, seq: number, created: string): void {
    const [key, delta] = [stringOf(data["message_id"]), stringOf(data["delta"])];
    if (key === undefined || delta === undefined) return;
    const entry = this.byKey.get(key);
    if (entry === undefined) {
      const fresh = newEntry(key, kind, run, created);
      Object.assign(fresh, { text: delta, open: true, seq, parent: parentKey(run, data) });
      return this.add(fresh);
    }
    if (!entry.open || seq <= entry.seq) return;
    entry.text += delta;
    this.changed(entry, seq);
  }

  private whole(run: string, key: string, type: string, data: Data, open: boolean, seq: number, created: string): void {
    const old = this.byKey.get(key);
    if (old !== undefined && seq < old.seq) return;
    const attachments = objectsOf(data["attachments"] ?? objectOf(data["data"])["attachments"]);
    const text = stringOf(data["content"]) ?? "";
    const entry = old ?? newEntry(key, kindOf(type, stringOf(data["role"]), attachments.length > 0), run, created);
    // An event's text may be cut where the deltas have told all of it.
    if (!(data["truncated"] === true && entry.text.startsWith(text))) entry.text = text;
    entry.open = open;
    entry.attachments = attachments;
    entry.status = stringOf(data["status"]);
    if (old !== undefined) return this.changed(entry, seq);
    entry.seq = seq;
    entry.parent = parentKey(run, data);
    this.add(entry);
  }

  private tool(run: string, data: Data, seq: number, created: string): void {
    const id = stringOf(data["tool_result_for_id"]) ?? stringOf(data["tool_id"]);
    if (id === undefined) return;
    const key = toolKey(run, id); // an agent may use an id again in each run
    const old = this.byKey.get(key);
    if (old !== undefined && seq < old.seq) return;
    const entry = old ?? newEntry(key, "tool", run, created);
    const call = (entry.tool ??= newTool(id));
    entry.attachments = tellTool(call, data) ?? entry.attachments;
    entry.open = call.status !== "completed" && call.status !== "failed";
    if (old !== undefined) return this.changed(entry, seq);
    entry.seq = seq;
    entry.parent = parentKey(run, data);
    this.add(entry);
    this.linkQuestions(run, id, key);
  }

  private put(kind: "plan" | "diff" | "answer", key: string, run: string, data: Data, seq: number, created: string): void {
    const old = this.byKey.get(key);
    if (old !== undefined && seq < old.seq) return;
    const entry = old ?? newEntry(key, kind, run, created);
    entry.data = data;
    if (kind === "plan") entry.plan = planOf(data);
    if (old !== undefined) return this.changed(entry, seq);
    entry.seq = seq;
    this.add(entry);
  }

  private note(kind: "error" | "system", key: string, run: string, text: string, seq: number, created: string): void {
    if (this.byKey.has(key)) return;
    const entry = newEntry(key, kind, run, created);
    entry.text = text;
    entry.seq = seq;
    this.add(entry);
  }

  private ask(data: Data): void {
    const id = stringOf(data["approval_id"]) ?? stringOf(data["id"]);
    if (id === undefined || this.answered.has(id)) return;
    const run = stringOf(data["session_id"]) ?? "";
    const call = stringOf(data["tool_use_id"]) ?? stringOf(data["call_id"]);
    const key = call === undefined ? undefined : toolKey(run, call);
    const known = this.waiting.get(id);
    this.waiting.set(id, { id, run, tool: key !== undefined && this.byKey.has(key) ? key : undefined, data: { ...known?.data, ...data } });
    this.changes.questions = true;
  }

  private resolve(run: string, data: Data, seq: number, created: string): void {
    const id = stringOf(data["approval_id"]);
    if (id === undefined) return;
    this.answered.add(id); // a reply may still have it
    if (this.waiting.delete(id)) this.changes.questions = true;
    const [decision, by] = [data["decision"], data["decided_by"]];
    const worthTelling = decision === "denied" || (by === "user" && (decision !== "approved" || data["input_was_edited"] === true));
    if (worthTelling) this.put("answer", answerKey(data), run, data, seq, created);
  }

  private statusChanged(run: string, data: Data, seq: number, created: string): void {
    const state = stringOf(data["state"]) ?? stringOf(data["new_status"]) ?? "";
    this.setState(run, state);
    // Who waits for a person is not silent, nor is who has ended.
    if (state !== "starting" && state !== "running") this.silentSince = undefined;
    if (ended.has(state)) this.endRun(run);
    const reason = stringOf(data["error"]) ?? stringOf(data["error_code"]);
    if ((state === "failed" || state === "timed_out") && reason !== undefined) this.note("error", `end:${run}`, run, reason, seq, created);
  }

  /** endRun closes the questions of a run: no event tells of each. What it was writing stays as it is. */
  private endRun(run: string): void {
    for (const question of this.waiting.values()) {
      if (question.run !== run) continue;
      this.waiting.delete(question.id);
      this.changes.questions = true;
    }
    for (const entry of this.byKey.values()) {
      if (!entry.open || entry.run !== run) continue;
      entry.open = false;
      this.changes.keys.add(entry.key);
    }
  }

  private setState(run: string, state: string): void {
    const known = this.states.get(run);
    if (known !== undefined && ended.has(known) && !ended.has(state)) return; // an end is an end
    this.states.set(run, state);
    this.changes.session = true;
  }

  private tell(data: Data): void {
    for (const part of ["agent", "mode", "model", "info"] as const) if (part in data) this.agentSession[part] = objectOf(data[part]);
    for (const part of ["options", "commands"] as const) if (part in data) this.agentSession[part] = objectsOf(data[part]);
    this.changes.session = true;
  }

  private linkQuestions(run: string, call: string, key: string): void {
    for (const question of this.waiting.values()) {
      if (question.run === run && (question.data["tool_use_id"] ?? question.data["call_id"]) === call) question.tool = key;
    }
  }

  private add(entry: Entry): void {
    this.byKey.set(entry.key, entry);
    const parent = entry.parent === undefined ? undefined : this.byKey.get(entry.parent);
    if (parent === undefined) {
      this.list.push(entry);
      this.changes.order = true;
      return;
    }
    this.partOf(parent, entry);
  }

  private partOf(parent: Entry, entry: Entry): void {
    const parts = this.parts.get(parent.key);
    if (parts === undefined) this.parts.set(parent.key, [entry]);
    else parts.push(entry);
    this.changes.keys.add(this.outermost(parent).key);
  }

  /** adopt puts entries under the call that they are part of, where that was on an older page. */
  private adopt(): void {
    const orphans = this.list.filter(({ parent }) => parent !== undefined && this.byKey.has(parent));
    if (orphans.length === 0) return;
    const moved = new Set(orphans);
    this.list = this.list.filter((entry) => !moved.has(entry));
    for (const orphan of orphans) this.partOf(this.byKey.get(orphan.parent!)!, orphan);
  }

  private changed(entry: Entry, seq: number): void {
    entry.seq = Math.max(entry.seq, seq);
    this.changes.keys.add(this.outermost(entry).key);
  }

  /** outermost is the entry of the list in which another stands. */
  private outermost(entry: Entry): Entry {
    const seen = new Set<Entry>();
    for (let at = entry; !seen.has(at); ) {
      seen.add(at);
      const parent: Entry | undefined = at.parent === undefined ? undefined : this.byKey.get(at.parent);
      if (parent === undefined) return at;
      at = parent;
    }
    return entry;
  }
}

function noChanges(): Changes {
  return { order: false, keys: new Set(), questions: false, session: false };
}

function newEntry(key: string, kind: EntryKind, run: string, created: string): Entry {
  return { key, kind, run, created, parent: undefined, seq: 0, open: false, text: "", status: undefined, attachments: [], plan: [], data: {}, tool: undefined };
}

function toolKey(run: string, id: string): string {
  return `${run}/${id}`;
}

function parentKey(run: string, data: Data): string | undefined {
  const id = stringOf(data["parent_tool_use_id"]);
  return id === undefined ? undefined : toolKey(run, id);
}

function planKey(run: string): string {
  return `plan:${run}`;
}

function diffKey(run: string, data: Data): string {
  return `diff:${run}:${stringOf(data["path"]) ?? ""}`;
}

function answerKey(data: Data): string {
  return `answer:${stringOf(data["approval_id"]) ?? ""}`;
}

function kindOf(type: string, role: string | undefined, hasContent: boolean): EntryKind {
  if (type === "system") return "system";
  if (type === "thinking") return hasContent ? "sketch" : "thinking";
  if (role === "user") return "prompt";
  return hasContent ? "content" : "text";
}
