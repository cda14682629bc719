// The model of a session: the items of getConversation and the events after them become
// entries, questions and states. It knows neither the transport nor the page. A view takes the
// changes (takeChanges) when it draws.
import { turnOf } from "../hub/events";
import type { EventParams } from "../hub/events";
import type { Item } from "../hub/transcript";
import type { AgentSessionEvent, DeltaEvent, ItemEvent, QueueEvent, ResolvedEvent, StatusEvent, ThinkingEvent } from "../protocol";
import { Entries, newEntry, newTool, planOf, updateTool, toolKey } from "./entries";
import type { Entry, EntryKind } from "./entries";
import { interruptionReason } from "./interruption";
import { objectOf, objectsOf, stringOf } from "./json";
import type { Data } from "./json";
import { Questions } from "./questions";
import type { OpenQuestion, Outcome } from "./questions";
import { gatesAfter, gatesOf, Turns } from "./turns";
import type { Gates } from "./turns";
import { turnWords } from "./session";

/** The agent's own session: the data of the event agent_session. */
export interface AgentSession {
  agent?: Data;
  mode?: Data;
  model?: Data;
  options?: Data[];
  commands?: Data[];
  info?: Data;
  background?: Data[];
}

/** The changes since the last call of takeChanges. */
export interface Changes {
  /** Entries were added or moved. */
  order: boolean;
  /** The keys of changed entries. */
  keys: Set<string>;
  questions: boolean;
  /** A state, a setting or the agent's own session. */
  session: boolean;
}

/** Codes of task_error that have an entry in the session as well. */
const codesWithEntry = new Set(["MCP_SERVER_FAILED", "CONTENT_REFUSED", "SETTING_IGNORED", "RULES_NOT_ASKED"]);

/** The model of one session. */
export class Conversation {
  private readonly all = new Entries();
  private readonly asked = new Questions();
  readonly turns = new Turns();
  private held: EventParams[] | undefined = [];
  private questionsChanged = false;
  private sessionChanged = false;
  private agentSession: AgentSession = {};
  private gatesNow: Gates | undefined;

  /** The entries that are not part of another one, the oldest first. */
  get entries(): readonly Entry[] {
    return this.all.list;
  }

  /** The queued prompts, in the order in which they will run. */
  get queued(): Entry[] {
    const waiting = this.all.list.filter(({ kind, turn }) => kind === "prompt" && this.turns.waits(turn));
    return waiting.sort((a, b) => this.turns.place(a.turn) - this.turns.place(b.turn));
  }

  get questions(): readonly OpenQuestion[] {
    return this.asked.open;
  }

  /** The latest agent_session. */
  get agent(): Readonly<AgentSession> {
    return this.agentSession;
  }

  /** The state of the session's gates. undefined: it has none. */
  get gates(): Readonly<Gates> | undefined {
    return this.gatesNow;
  }

  entry(key: string): Entry | undefined {
    return this.all.get(key);
  }

  /** The entries that are part of a tool call, such as those of its sub-agent. */
  partsOf(key: string): readonly Entry[] {
    return this.all.partsOf(key);
  }

  /** The key of the entry of the list that an entry belongs to: its own, or that of the outermost tool call. */
  outermost(key: string): string | undefined {
    const entry = this.all.get(key);
    return entry && this.all.outermost(entry).key;
  }

  /** The outcome of an answered question. */
  outcome(id: string): Outcome | undefined {
    return this.asked.outcome(id);
  }

  takeChanges(): Changes {
    const changes = { ...this.all.takeChanges(), questions: this.questionsChanged, session: this.sessionChanged };
    this.questionsChanged = this.sessionChanged = false;
    return changes;
  }

  /**
   * Takes a page of getConversation: the newest one first, then older ones with older. Events
   * that came before the first page are applied after it.
   */
  load(items: readonly Item[], older = false): void {
    const add = (): void => {
      for (const [i, item] of items.entries()) {
        this.loadItem(item);
        if (items[i + 1]?.session_id !== item.session_id) this.loadEnd(item);
      }
    };
    if (older) this.all.before(add);
    else add();
    const held = this.held ?? [];
    this.held = undefined;
    for (const params of held) this.apply(params);
  }

  /** Takes a result of turn.get. */
  loadTurn(turn: { turn_uuid: string; state: string; agent_session?: AgentSession; silent_since?: string; gates?: unknown }): void {
    this.gatesNow = gatesOf(turn.gates);
    this.setState(turn.turn_uuid, turn.state);
    this.agentSession = { ...turn.agent_session, ...this.agentSession };
    if (turn.silent_since !== undefined) this.turns.wasSilent(turn.silent_since);
    this.sessionChanged = true;
  }

  /**
   * Takes the result of approval.list. known are the questions that were open at the request. If
   * one is missing in the result, it was answered while no events came, and is closed. One that an event has closed
   * since the request stays closed: the result is older.
   */
  loadQuestions(approvals: readonly Data[], known: readonly OpenQuestion[] = []): void {
    const idOf = (approval: Data): string => stringOf(approval["approval"]) ?? "";
    const ids = new Set(approvals.map(idOf));
    if (this.asked.close(known.filter(({ id }) => !ids.has(id)))) this.questionsChanged = true;
    const open = new Set(this.asked.open.map(({ id }) => id));
    const closed = new Set(known.filter(({ id }) => !open.has(id)).map(({ id }) => id));
    for (const approval of approvals) if (!closed.has(idOf(approval))) this.ask(approval, true);
  }

  /** Takes an event of this session. An event that is older than the entry changes nothing. */
  apply(params: EventParams): void {
    if (this.held !== undefined) {
      this.held.push(params);
      return;
    }
    const { seq, event } = params;
    const { timestamp } = event;
    const turn = turnOf(event) ?? "";
    switch (event.type) {
      case "message_delta":
        return this.delta("text", turn, event.data, seq, timestamp);
      case "thinking_delta":
        return this.delta("thinking", turn, event.data, seq, timestamp);
      case "conversation_updated":
        return this.updated(turn, event.data, seq, timestamp);
      case "plan":
        return this.put("plan", planKey(turn), turn, { entries: event.data.entries }, seq, timestamp);
      case "diff_updated":
        return this.put("diff", diffKey(turn, event.data), turn, event.data, seq, timestamp);
      case "new_approval":
        return this.ask(event.data);
      case "approval_resolved":
        return this.resolve(turn, event.data, seq, timestamp);
      case "session_status_changed":
        return this.statusChanged(turn, event.data, seq, timestamp);
      case "queue_changed":
        return this.queueChanged(turn, event.data, seq);
      case "usage":
        this.turns.setUsage(turn, event.data);
        this.sessionChanged = true;
        return;
      case "agent_session":
        return this.setAgent(event.data);
      case "agent_silent":
        this.turns.setSilent(event.data);
        this.sessionChanged = true;
        return;
      case "session_settings_changed":
        this.sessionChanged = true;
        return;
      case "iteration_start":
      case "gate_start":
      case "gate_result":
      case "gates_complete":
        this.gatesNow = gatesAfter(this.gatesNow, event);
        this.sessionChanged = true;
        return;
      case "task_error":
        if (codesWithEntry.has(event.data.code)) return;
        return this.note("error", `error:${seq}`, turn, stringOf(event.data.message) ?? "The agent reports an error", seq, timestamp, event.data);
    }
  }

  private loadItem(item: Item): void {
    const [turn, seq, data] = [item.session_id, item.seq ?? 0, objectOf(item.data)];
    const created = item.created_at;
    const key = keyOf(item);
    switch (item.event_type) {
      case "tool_call":
      case "tool_result":
        return this.tool(turn, { ...item }, seq, created, true);
      case "plan":
        return this.put("plan", key, turn, data, seq, created);
      case "diff":
        return this.put("diff", key, turn, data, seq, created);
      case "approval":
        return this.put("answer", key, turn, data, seq, created);
      default:
        return this.whole(turn, key, item.event_type, { ...item }, !item.is_completed, seq, created);
    }
  }

  /** loadEnd notes a bad end of a turn after its last item. */
  private loadEnd({ session_id: turn, session_state: state, seq, created_at: created }: Item): void {
    if (state !== undefined) this.noteEnd(turn, state, undefined, seq ?? 0, created, {});
  }

  /** noteEnd adds an entry for the bad end of a turn. A prompt that was taken back has never begun. */
  private noteEnd(turn: string, state: string, reason: string | undefined, seq: number, created: string, data: Data): void {
    if (state !== "interrupted" && state !== "failed" && state !== "timed_out") return;
    const { text } = turnWords(state);
    const words = `${text[0]!.toUpperCase()}${text.slice(1)}`;
    this.note(state === "interrupted" ? "system" : "error", `end:${turn}`, turn, reason === undefined ? words : state === "interrupted" ? `${words}: ${reason}` : reason, seq, created, data);
  }

  private updated(turn: string, data: ItemEvent, seq: number, created: string): void {
    const { event_type: type } = data;
    if (type === "tool_call" || type === "tool_result") return this.tool(turn, data, seq, created);
    this.whole(turn, stringOf(data.message_id) ?? `event:${seq}`, type, data, false, seq, created);
  }

  private delta(kind: "text" | "thinking", turn: string, data: DeltaEvent | ThinkingEvent, seq: number, created: string): void {
    const { message_id: key, delta, length } = data;
    if (!key || !delta) return;
    const entry = this.all.get(key);
    if (entry === undefined) {
      const fresh = newEntry(key, kind, turn, created);
      Object.assign(fresh, { text: delta, open: true, seq, parent: parentKey(turn, data) });
      return this.all.add(fresh);
    }
    if (!entry.open || seq <= entry.seq) return;
    // The hub merges deltas, so one may begin inside the loaded text.
    const known = length === undefined ? 0 : Math.max(0, entry.text.length + delta.length - length);
    entry.text += delta.slice(known);
    this.all.changed(entry, seq);
  }

  private whole(turn: string, key: string, type: string, data: Data, open: boolean, seq: number, created: string): void {
    const old = this.all.get(key);
    if (old !== undefined && seq < old.seq) return;
    const attachments = objectsOf(data["attachments"] ?? objectOf(data["data"])["attachments"]);
    const text = stringOf(data["content"]) ?? "";
    const entry = old ?? newEntry(key, kindOf(type, stringOf(data["role"]), attachments.length > 0), turn, created);
    // An event may cut a text that the deltas had in full.
    if (!(data["truncated"] === true && entry.text.startsWith(text))) entry.text = text;
    entry.open = open;
    entry.attachments = attachments;
    entry.status = stringOf(data["status"]);
    entry.truncated = data["truncated"] === true && entry.text === text;
    if (old !== undefined) return this.all.changed(entry, seq);
    entry.seq = seq;
    entry.parent = parentKey(turn, data);
    this.all.add(entry);
  }

  /** tool takes an item or an event about a tool call. whole: an item, which has all of it. Events cut long texts. */
  private tool(turn: string, data: Data, seq: number, created: string, whole = false): void {
    const id = stringOf(data["tool_result_for_id"]) ?? stringOf(data["tool_id"]);
    if (id === undefined) return;
    const key = toolKey(turn, id);
    const old = this.all.get(key);
    if (old !== undefined && seq < old.seq) return;
    const entry = old ?? newEntry(key, "tool", turn, created);
    const call = (entry.tool ??= newTool(id));
    entry.attachments = updateTool(call, data) ?? entry.attachments;
    const keepsMore = call.result.length > (stringOf(data["tool_result_content"])?.length ?? Number.POSITIVE_INFINITY);
    entry.truncated = (data["truncated"] === true && !keepsMore) || (entry.truncated && !whole);
    entry.open = call.status !== "completed" && call.status !== "failed";
    if (old !== undefined) return this.all.changed(entry, seq);
    entry.seq = seq;
    entry.parent = parentKey(turn, data);
    this.all.add(entry);
    if (this.asked.link(turn, id, key)) this.questionsChanged = true;
  }

  private put(kind: "plan" | "diff" | "answer", key: string, turn: string, data: Data, seq: number, created: string): void {
    const old = this.all.get(key);
    if (old !== undefined && seq < old.seq) return;
    const entry = old ?? newEntry(key, kind, turn, created);
    entry.data = data;
    if (kind === "plan") entry.plan = planOf(data);
    if (old !== undefined) return this.all.changed(entry, seq);
    entry.seq = seq;
    this.all.add(entry);
  }

  private note(kind: "error" | "system", key: string, turn: string, text: string, seq: number, created: string, data: Data): void {
    if (this.all.get(key) !== undefined) return;
    const entry = newEntry(key, kind, turn, created);
    Object.assign(entry, { text, seq, data });
    this.all.add(entry);
  }

  private ask(data: Data, fetched = false): void {
    const known = (turn: string, call: string): string | undefined => this.all.get(toolKey(turn, call))?.key;
    if (this.asked.ask(data, known, fetched)) this.questionsChanged = true;
  }

  private resolve(turn: string, data: ResolvedEvent, seq: number, created: string): void {
    const { approval_id: id, decision, decided_by: by } = data;
    if (this.asked.resolve(id, data)) this.questionsChanged = true;
    const worthTelling = decision === "denied" || (by === "user" && (decision !== "approved" || data.input_was_edited === true));
    if (worthTelling) this.put("answer", answerKey(data), turn, data, seq, created);
  }

  private statusChanged(turn: string, data: StatusEvent, seq: number, created: string): void {
    const { state } = data;
    const why = stringOf(data.reason);
    if (why !== undefined && (state === "interrupting" || state === "interrupted")) this.turns.setReason(turn, why);
    this.setState(turn, state, created);
    if (this.turns.hasEnded(turn)) this.endTurn(turn);
    const error = stringOf(data.error);
    this.noteEnd(turn, state, state === "interrupted" ? interruptionReason(error, this.turns.reason(turn)) : (error ?? stringOf(data.error_code)), seq, created, data);
  }

  /** endTurn closes the questions and open entries of a turn, because there is no event for each. Unfinished text stays. */
  private endTurn(turn: string): void {
    if (this.asked.endTurn(turn)) this.questionsChanged = true;
    for (const entry of this.all.all()) {
      if (!entry.open || entry.turn !== turn) continue;
      entry.open = false;
      this.all.changed(entry);
    }
  }

  private setState(turn: string, state: string, at?: string): void {
    const before = this.turns.state(turn);
    if (!this.turns.setState(turn, state, at)) return;
    this.sessionChanged = true;
    if (state === "queued" && before !== "queued") this.all.rearrange();
    // The turn of a queued prompt begins at the current end of the session.
    if (before !== "queued" || state === "queued") return;
    for (const entry of this.all.list) if (entry.turn === turn) this.all.toEnd(entry);
  }

  private queueChanged(turn: string, { order, content, truncated }: QueueEvent, seq: number): void {
    if (Array.isArray(order)) this.turns.setOrder(order);
    this.sessionChanged = true;
    const text = stringOf(content);
    const entry = this.all.list.find((other) => other.kind === "prompt" && other.turn === turn);
    if (text === undefined || entry === undefined || seq < entry.seq) return;
    entry.text = text;
    entry.truncated = truncated === true;
    this.all.changed(entry, seq);
  }

  private setAgent(data: AgentSessionEvent): void {
    for (const part of ["agent", "mode", "model", "info"] as const) if (part in data) this.agentSession[part] = objectOf(data[part]);
    for (const part of ["options", "commands", "background"] as const) if (part in data) this.agentSession[part] = objectsOf(data[part]);
    this.sessionChanged = true;
  }
}

/** The key of an item's entry. */
export function keyOf(item: Item): string {
  const [turn, data] = [item.session_id, objectOf(item.data)];
  switch (item.event_type) {
    case "tool_call":
    case "tool_result":
      return toolKey(turn, stringOf(item.tool_result_for_id) ?? stringOf(item.tool_id) ?? "");
    case "plan":
      return planKey(turn);
    case "diff":
      return diffKey(turn, data);
    case "approval":
      return answerKey(data);
    default:
      return item.key ?? `item:${item.sequence}`;
  }
}

function parentKey(turn: string, data: Data): string | undefined {
  const id = stringOf(data["parent_tool_use_id"]);
  return id === undefined ? undefined : toolKey(turn, id);
}

function planKey(turn: string): string {
  return `plan:${turn}`;
}

function diffKey(turn: string, data: Data): string {
  return `diff:${turn}:${stringOf(data["path"]) ?? ""}`;
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
