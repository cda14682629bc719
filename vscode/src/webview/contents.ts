// The model of a session: the items that session.items returns, and the events after them, become
// entries, questions and states. It knows neither the transport nor the page. A view takes the
// changes (takeChanges) when it draws.
import type { ItemKey } from "../panel/protocol";
import type { AgentSessionEvent, ApprovalClosedEvent, HubEvent, Item, QueueEvent, SessionItem, TextEvent, Turn, TurnStateEvent } from "../protocol";
import { Entries, newEntry, newTool, updateTool, toolKey } from "./entries";
import type { Entry, EntryKind } from "./entries";
import { interruptionReason } from "./interruption";
import { objectOf, objectsOf, stringOf } from "./json";
import type { Data } from "./json";
import { Questions } from "./questions";
import type { OpenQuestion, Outcome } from "./questions";
import { gatesAfter, gatesOf, Turns } from "./turns";
import type { Gates } from "./turns";
import { turnWords } from "./session";

/** The agent's own session: the data of the event agent.session. */
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

/** The end of a turn, from turn.get. */
type TurnEnd = Pick<Turn, "turn_uuid" | "state" | "error" | "error_code" | "auth_methods">;

/** Codes of agent.error that have an entry in the session as well. */
const codesWithEntry = new Set(["MCP_SERVER_FAILED", "CONTENT_REFUSED", "SETTING_IGNORED", "RULES_NOT_ASKED"]);

/** What a session contains. */
export class Contents {
  private readonly all = new Entries();
  private readonly asked = new Questions();
  readonly turns = new Turns();
  private held: HubEvent[] | undefined = [];
  private questionsChanged = false;
  private sessionChanged = false;
  private agentSession: AgentSession = {};
  private gatesNow: Gates | undefined;
  /** The keys of the answers to the questions of tool calls, by the key of the call. */
  private readonly answers = new Map<string, string>();
  /** The keys of the tool calls whose questions were answered, by the key of the answer. */
  private readonly answered = new Map<string, string>();
  /** The keys of the tool calls that show the change of a file, by turn and path. */
  private readonly shownFiles = new Map<string, Map<string, string>>();
  /** The turns whose queued prompts the user took back into the prompt box. */
  private readonly takenBack = new Set<string>();
  /** The turns whose bad end has no reason yet. */
  private readonly unexplained = new Set<string>();

  /** The entries that are not part of another one, the oldest first. */
  get entries(): readonly Entry[] {
    return this.all.list;
  }

  /** The queued prompts, in the order in which they will run. */
  get queued(): Entry[] {
    const waiting = this.all.list.filter(({ kind, turn }) => kind === "prompt" && this.turns.waits(turn));
    return waiting.sort((a, b) => this.turns.place(a.turn) - this.turns.place(b.turn));
  }

  /** Notes that the user took back a queued prompt. */
  takeBack(turn: string): void {
    this.takenBack.add(turn);
    this.all.rearrange();
  }

  /** Whether an entry is a prompt that the user took back. */
  isTakenBack({ kind, turn }: Entry): boolean {
    return kind === "prompt" && this.takenBack.has(turn);
  }

  get questions(): readonly OpenQuestion[] {
    return this.asked.open;
  }

  /** The latest agent.session. */
  get agent(): Readonly<AgentSession> {
    return this.agentSession;
  }

  /** The state of the session's gates. undefined: it has none. */
  get gates(): Readonly<Gates> | undefined {
    return this.gatesNow;
  }

  /** The prompt that began a turn. Later ones were sent during the turn. undefined: it is not loaded, or the turn had none. */
  promptOf(turn: string): Entry | undefined {
    return this.all.list.find((entry) => entry.kind === "prompt" && entry.turn === turn);
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

  /** The denial of a tool call. undefined: it was not denied, or the denial is unknown. */
  denialOf({ key, tool }: Entry): Denial | undefined {
    const { data } = this.all.get(this.answers.get(key) ?? "") ?? {};
    if (data?.["status"] === "denied") return { by: stringOf(data["decided_by"]) ?? "", where: stringOf(data["decided_in"]), reason: stringOf(data["response"]) ?? stringOf(data["comment"]) };
    if (tool?.refusedBy === undefined && tool?.refusal === undefined) return undefined;
    return { by: tool.refusedBy ?? "", where: undefined, reason: tool.refusal };
  }

  /** The tool call whose view says all that an entry says: its denial, or its change of a file. */
  saidBy({ key, kind, turn, data }: Entry): Entry | undefined {
    if (kind === "answer") return data["status"] === "denied" ? this.all.get(this.answered.get(key) ?? "") : undefined;
    const path = kind === "diff" && stringOf(data["path"]);
    if (!path) return undefined;
    for (const [shown, call] of this.shownFiles.get(turn) ?? []) if (path === shown || path.endsWith(`/${shown.replace(/^\.\//, "")}`)) return this.all.get(call);
    return undefined;
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
   * Takes a page of session.items: the newest one first, then older ones with older. Events
   * that came before the first page are applied after it.
   */
  load(items: readonly SessionItem[], older = false): void {
    const add = (): void => {
      for (const [i, item] of items.entries()) {
        const { turn_uuid: turn, turn_state: state, seq = 0, created_at: created } = item;
        this.item(turn, item, seq, created, true);
        if (items[i + 1]?.turn_uuid !== turn) this.noteEnd(turn, state, undefined, seq, created, {});
      }
    };
    if (older) this.all.before(add);
    else add();
    const held = this.held ?? [];
    this.held = undefined;
    for (const event of held) this.apply(event);
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
  apply(event: HubEvent): void {
    if (this.held !== undefined) {
      this.held.push(event);
      return;
    }
    const { seq = 0, time, turn_uuid: turn = "" } = event;
    switch (event.kind) {
      case "text.delta":
        return this.delta("text", turn, event.data, seq, time);
      case "thought.delta":
        return this.delta("thinking", turn, event.data, seq, time);
      case "item.added":
      case "item.changed":
        return this.item(turn, event.data, seq, time);
      case "plan":
        return this.item(turn, { type: "plan", key: "", ...event.data }, seq, time);
      case "change.made":
        return this.item(turn, { type: "change", key: event.data.path, change: event.data }, seq, time);
      case "approval.opened":
        return this.ask({ ...event.data, turn_uuid: turn });
      case "approval.closed":
        return this.resolve(turn, event.data, seq, time);
      case "turn.state":
        return this.stateChanged(turn, event.data, seq, time);
      case "queue.changed":
        return this.queueChanged(turn, event.data, seq);
      case "usage":
        this.turns.setUsage(turn, event.data);
        this.sessionChanged = true;
        return;
      case "agent.session":
        return this.setAgent(event.data);
      case "agent.silent":
        this.turns.setSilent(event.data);
        this.sessionChanged = true;
        return;
      case "session.changed":
        this.sessionChanged = true;
        return;
      case "gate.iteration":
      case "gate.started":
      case "gate.result":
      case "gate.ended":
        this.gatesNow = gatesAfter(this.gatesNow, event);
        this.sessionChanged = true;
        return;
      case "agent.error":
        if (codesWithEntry.has(event.data.code)) return;
        return this.note("error", `error:${seq}`, turn, event.data.message || "The agent reports an error", seq, time, event.data);
    }
  }

  /** noteEnd adds an entry for the bad end of a turn. A prompt that was taken back has never begun. */
  private noteEnd(turn: string, state: string, reason: string | undefined, seq: number, created: string, data: Data): void {
    if (state !== "interrupted" && state !== "failed" && state !== "timed_out") return;
    const words = endWords(state);
    if (reason === undefined) this.unexplained.add(turn);
    this.note(state === "interrupted" ? "system" : "error", `end:${turn}`, turn, reason === undefined ? words : state === "interrupted" ? `${words}: ${reason}` : reason, seq, created, data);
  }

  /** Returns the turns whose bad end has no reason yet, the newest first. Each turn is returned once. */
  takeUnexplained(): string[] {
    const turns = [...this.unexplained].reverse();
    this.unexplained.clear();
    return turns;
  }

  /** explainEnd sets why a turn ended badly. A page of session.items has its state alone, and turn.get has the reason. */
  explainEnd({ turn_uuid: turn, state, error, error_code, auth_methods }: TurnEnd): void {
    this.unexplained.delete(turn);
    const entry = this.all.get(`end:${turn}`);
    if (!entry || !error || entry.text !== endWords(state)) return;
    entry.text = state === "interrupted" ? `${endWords(state)}: ${interruptionReason(error, undefined)}` : error;
    entry.data = { ...(error_code !== undefined && { error_code }), ...(auth_methods && { auth_methods }) };
    this.all.changed(entry);
  }

  private delta(kind: "text" | "thinking", turn: string, data: TextEvent, seq: number, created: string): void {
    const { key, text, length } = data;
    const entry = this.all.get(key);
    if (entry === undefined) {
      const fresh = newEntry(key, kind, turn, created);
      Object.assign(fresh, { text, open: true, seq, parent: parentKey(turn, data) });
      return this.all.add(fresh);
    }
    if (!entry.open || seq <= entry.seq) return;
    // The daemon merges deltas, so one may begin inside the loaded text.
    const known = length === undefined ? 0 : Math.max(0, entry.text.length + text.length - length);
    entry.text += text.slice(known);
    this.all.changed(entry, seq);
  }

  /** item takes an item of a page or an event. whole: an item of a page, which has all of it. Events cut long texts. */
  private item(turn: string, item: AnyItem, seq: number, created: string, whole = false): void {
    const key = keyOf({ ...item, turn_uuid: turn });
    const old = this.all.get(key);
    if (old !== undefined && seq < old.seq) return;
    const entry = old ?? newEntry(key, kindOf(item), turn, created);
    switch (item.type) {
      case "tool_call":
        updateCall(entry, item, whole);
        break;
      case "plan":
        entry.plan = item.entries ?? [];
        break;
      case "change":
        entry.data = item.change ?? {};
        break;
      case "answer":
        entry.data = item.answer ?? {};
        break;
      default:
        updateText(entry, item);
    }
    if (old !== undefined) {
      this.all.changed(entry, seq);
      return this.noteSaid(entry, item);
    }
    entry.seq = seq;
    entry.parent = parentKey(turn, item);
    this.all.add(entry);
    this.noteSaid(entry, item);
    if (item.type === "tool_call" && this.asked.link(turn, item.key, key)) this.questionsChanged = true;
  }

  /** noteSaid notes what a tool call says: its denial and its changes of files. Their own entries are not shown then. */
  private noteSaid({ key, turn, tool }: Entry, { type, approval, answer }: AnyItem): void {
    const call = stringOf(answer?.["tool_use_id"]);
    if (type === "answer" && call !== undefined) this.link(toolKey(turn, call), key);
    if (!tool) return;
    if (approval) this.link(key, keyOf({ turn_uuid: turn, type: "answer", key: approval }));
    if (tool.status !== "completed" || tool.diffs.length === 0) return;
    const paths = this.shownFiles.get(turn) ?? new Map<string, string>();
    this.shownFiles.set(turn, paths);
    for (const { path } of tool.diffs) {
      if (!paths.has(path)) this.all.rearrange();
      paths.set(path, key);
    }
  }

  /** link links a tool call with the answer to its question, each by its key. */
  private link(call: string, answer: string): void {
    if (this.answers.get(call) === answer) return;
    this.answers.set(call, answer);
    this.answered.set(answer, call);
    const entry = this.all.get(call);
    if (entry) this.all.changed(entry);
    this.all.rearrange();
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

  private resolve(turn: string, data: ApprovalClosedEvent, seq: number, created: string): void {
    const { approval: id, status, decided_by: by } = data;
    const call = this.asked.open.find((question) => question.id === id)?.tool;
    if (call !== undefined) this.link(call, keyOf({ turn_uuid: turn, type: "answer", key: id }));
    if (this.asked.resolve(id, data)) this.questionsChanged = true;
    const worthTelling = status === "denied" || (by === "user" && (status !== "approved" || data.input_was_edited === true));
    if (worthTelling) this.item(turn, { type: "answer", key: id, answer: data }, seq, created);
  }

  private stateChanged(turn: string, data: TurnStateEvent, seq: number, created: string): void {
    const { state, reason, error, error_code: code } = data;
    if (reason && (state === "interrupting" || state === "interrupted")) this.turns.setReason(turn, reason);
    this.setState(turn, state, created);
    if (this.turns.hasEnded(turn)) this.endTurn(turn);
    this.noteEnd(turn, state, state === "interrupted" ? interruptionReason(error, this.turns.reason(turn)) : (error ?? code), seq, created, data);
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

  private queueChanged(turn: string, { order, prompt: text, truncated }: QueueEvent, seq: number): void {
    this.turns.setOrder(order);
    this.sessionChanged = true;
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

/** The denial of a tool call. */
export interface Denial {
  /** user, rule=… or mode=…. Empty: unknown. */
  by: string;
  /** The client in which the user decided. */
  where: string | undefined;
  reason: string | undefined;
}

/** An item of a page or an event. An event of a change or an answer has more data than the item of a page. */
type AnyItem = Item & Pick<SessionItem, "approval" | "open" | "withdrawn" | "entries"> & { change?: Data; answer?: Data };

/** The key of an item's entry. */
export function keyOf({ turn_uuid: turn, type, key }: ItemKey): string {
  switch (type) {
    case "tool_call":
      return toolKey(turn, key);
    case "plan":
    case "change":
      return `${type}:${turn}:${key}`;
    case "answer":
      return `answer:${key}`;
    default:
      return key;
  }
}

function updateCall(entry: Entry, item: AnyItem, whole: boolean): void {
  const call = (entry.tool ??= newTool(item.key));
  updateTool(call, item);
  if (item.details) entry.attachments = item.details.attachments ?? [];
  const keepsMore = call.result.length > (item.result?.length ?? Number.POSITIVE_INFINITY);
  entry.truncated = (item.truncated === true && !keepsMore) || (entry.truncated && !whole);
  entry.open = call.status !== "completed" && call.status !== "failed";
}

function updateText(entry: Entry, { text = "", open, attachments, withdrawn, truncated }: AnyItem): void {
  // An event may cut a text that the deltas had in full.
  if (!(truncated && entry.text.startsWith(text))) entry.text = text;
  entry.open = open === true;
  entry.attachments = attachments ?? [];
  entry.withdrawn = withdrawn === true;
  entry.truncated = truncated === true && entry.text === text;
}

function parentKey(turn: string, { parent_tool_use_id: id }: Item | TextEvent): string | undefined {
  return id ? toolKey(turn, id) : undefined;
}

function kindOf({ type, role, attachments = [] }: AnyItem): EntryKind {
  const hasContent = attachments.length > 0;
  switch (type) {
    case "tool_call":
      return "tool";
    case "change":
      return "diff";
    case "plan":
    case "answer":
      return type;
    case "notice":
      return "system";
    case "thought":
      return hasContent ? "sketch" : "thinking";
    default:
      return role === "user" ? "prompt" : hasContent ? "content" : "text";
  }
}

/** The words of a bad end without its reason. */
function endWords(state: string): string {
  const { text } = turnWords(state);
  return `${text[0]!.toUpperCase()}${text.slice(1)}`;
}
