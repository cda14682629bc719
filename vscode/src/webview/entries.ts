// The entries of a session: their types, the data of tool calls, and their order.
import { limitLevels } from "../hub/depth";
import { objectOf, objectsOf, stringOf, stringsOf } from "./json";
import type { Data } from "./json";

/** The kinds of entries. content and sketch are an agent's message or thought other than text. */
export type EntryKind = "prompt" | "text" | "thinking" | "content" | "sketch" | "system" | "error" | "tool" | "plan" | "diff" | "answer";

/** An entry of a session: a message, a tool call, a plan, an error. */
export interface Entry {
  /** Unique in the session. */
  readonly key: string;
  readonly kind: EntryKind;
  /** The uuid of the turn of the entry. */
  readonly turn: string;
  /** The key of the tool call that the entry is part of, such as a sub-agent's. */
  parent: string | undefined;
  readonly created: string;
  /** The number of the last event that changed it. */
  seq: number;
  /** The text still grows, or the tool still runs. */
  open: boolean;
  text: string;
  /** Of a message: cancelled, if the agent never got it. */
  status: string | undefined;
  attachments: Data[];
  /** The text is cut. */
  truncated: boolean;
  /** Of a plan: its steps. */
  plan: PlanStep[];
  /** Of a diff, an answer or an error: the data of the event or the item. */
  data: Data;
  tool: ToolCall | undefined;
}

/** A step of a plan. */
export interface PlanStep {
  content: string;
  /** pending, in_progress or completed. */
  status: string;
}

/** A change of a file or of a part of it, reported by the agent as texts. */
export interface FileDiff {
  path: string;
  /** The line of the file, from 1, at which the texts begin. */
  line: number;
  /** undefined: the file is new. */
  before: string | undefined;
  after: string;
}

/** A call of a tool by the agent. */
export interface ToolCall {
  id: string;
  name: string;
  /** A description for the user. */
  title: string;
  /** read, edit, delete, move, search, execute, think, fetch or other. */
  kind: string;
  /** pending, in_progress, completed or failed. */
  status: string;
  /** undefined: unknown. A string: not JSON. */
  input: unknown;
  result: string;
  paths: string[];
  diffs: FileDiff[];
  terminal: string | undefined;
  approval: string | undefined;
  /** The user, rule or mode that refused the call. */
  refusedBy: string | undefined;
  refusal: string | undefined;
}

export function newTool(id: string): ToolCall {
  return {
    id, name: "", title: "", kind: "other", status: "pending", input: undefined, result: "", paths: [], diffs: [],
    terminal: undefined, approval: undefined, refusedBy: undefined, refusal: undefined,
  };
}

/**
 * Updates a tool call from an event conversation_updated or an item of getConversation. Missing members
 * stay unchanged. Returns the attachments, if there are any in the data.
 */
export function updateTool(call: ToolCall, data: Data): Data[] | undefined {
  call.name = stringOf(data["tool_name"]) ?? call.name;
  call.title = stringOf(data["tool_title"]) ?? stringOf(data["title"]) ?? call.title;
  call.kind = stringOf(data["tool_kind"]) ?? call.kind;
  call.status = stringOf(data["tool_status"]) ?? stringOf(data["status"]) ?? call.status;
  const result = stringOf(data["tool_result_content"]);
  // An event may cut a text that is known in full.
  if (result !== undefined && !(data["truncated"] === true && call.result.startsWith(result))) call.result = result;
  call.approval = stringOf(data["approval_id"]) ?? call.approval;
  call.refusedBy = stringOf(data["refused_by"]) ?? call.refusedBy;
  call.refusal = stringOf(data["refusal"]) ?? call.refusal;
  call.input = data["tool_input"] ?? parsed(stringOf(data["tool_input_json"])) ?? call.input;
  const more = data["tool_data"] ?? (stringOf(data["tool_result_for_id"]) === undefined ? data["data"] : undefined);
  if (more === undefined || more === null) return undefined;
  const details = objectOf(more);
  call.paths = stringsOf(details["paths"]);
  call.diffs = objectsOf(details["diffs"]).map(diffOf);
  call.terminal = stringOf(details["terminal"]);
  return objectsOf(details["attachments"]);
}

export function planOf(data: Data): PlanStep[] {
  return objectsOf(data["entries"]).map((step) => ({ content: stringOf(step["content"]) ?? "", status: stringOf(step["status"]) ?? "pending" }));
}

function diffOf(diff: Data): FileDiff {
  const before = diff["old_text"];
  const line = diff["line"];
  return { path: stringOf(diff["path"]) ?? "", line: typeof line === "number" && line > 1 ? line : 1, before: typeof before === "string" ? before : undefined, after: stringOf(diff["new_text"]) ?? "" };
}

function parsed(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return limitLevels(JSON.parse(json) as unknown);
  } catch {
    return json;
  }
}

/** The entries of a session in order, and the changes since they were last drawn. */
export class Entries {
  private readonly byKey = new Map<string, Entry>();
  private readonly parts = new Map<string, Entry[]>();
  private entries: Entry[] = [];
  private changedKeys = new Set<string>();
  private orderChanged = false;

  /** The entries that are not part of another one, the oldest first. */
  get list(): readonly Entry[] {
    return this.entries;
  }

  get(key: string): Entry | undefined {
    return this.byKey.get(key);
  }

  all(): Iterable<Entry> {
    return this.byKey.values();
  }

  partsOf(key: string): readonly Entry[] {
    return this.parts.get(key) ?? [];
  }

  takeChanges(): { order: boolean; keys: Set<string> } {
    const changes = { order: this.orderChanged, keys: this.changedKeys };
    this.orderChanged = false;
    this.changedKeys = new Set();
    return changes;
  }

  add(entry: Entry): void {
    this.byKey.set(entry.key, entry);
    const parent = entry.parent === undefined ? undefined : this.byKey.get(entry.parent);
    if (parent !== undefined) return this.partOf(parent, entry);
    this.entries.push(entry);
    this.orderChanged = true;
  }

  /** Calls add, and puts the entries that it adds before all others. */
  before(add: () => void): void {
    const later = this.entries;
    this.entries = [];
    add();
    this.entries = [...this.entries, ...later];
    this.adopt();
    this.orderChanged = true;
  }

  /** Moves an entry to the end, and marks the order as changed. */
  toEnd(entry: Entry): void {
    if (!this.entries.includes(entry)) return;
    if (this.entries.at(-1) !== entry) this.entries = [...this.entries.filter((other) => other !== entry), entry];
    this.orderChanged = true;
  }

  /** Marks the order as changed, because some entries are now shown elsewhere. */
  rearrange(): void {
    this.orderChanged = true;
  }

  changed(entry: Entry, seq = entry.seq): void {
    entry.seq = Math.max(entry.seq, seq);
    this.changedKeys.add(this.outermost(entry).key);
  }

  private partOf(parent: Entry, entry: Entry): void {
    const parts = this.parts.get(parent.key);
    if (parts === undefined) this.parts.set(parent.key, [entry]);
    else parts.push(entry);
    this.changedKeys.add(this.outermost(parent).key);
  }

  /** adopt moves entries into their tool call, if it was on an older page. */
  private adopt(): void {
    const orphans = this.entries.filter(({ parent }) => parent !== undefined && this.byKey.has(parent));
    if (orphans.length === 0) return;
    const moved = new Set(orphans);
    this.entries = this.entries.filter((entry) => !moved.has(entry));
    for (const orphan of orphans) this.partOf(this.byKey.get(orphan.parent!)!, orphan);
  }

  /** The entry of the list that contains another one. */
  outermost(entry: Entry): Entry {
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

export function newEntry(key: string, kind: EntryKind, turn: string, created: string): Entry {
  return { key, kind, turn, created, parent: undefined, seq: 0, open: false, text: "", status: undefined, attachments: [], truncated: false, plan: [], data: {}, tool: undefined };
}

export function toolKey(turn: string, id: string): string {
  return `${turn}/${id}`; // an agent may reuse an id in another turn
}
