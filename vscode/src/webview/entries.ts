// The entries of a session: their types, the data of tool calls, and their order.
import type { Item, PlanEntry } from "../protocol";
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
  /** The prompt was cancelled while it was queued: the agent never gets it. */
  withdrawn: boolean;
  attachments: Data[];
  /** The text is cut. */
  truncated: boolean;
  /** Of a plan: its steps. */
  plan: readonly PlanEntry[];
  /** Of a diff, an answer or an error: the data of the event or the item. */
  data: Data;
  tool: ToolCall | undefined;
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

/** updateTool updates a tool call from an item of a page or an event. Missing members stay unchanged. */
export function updateTool(call: ToolCall, item: Item & { approval?: string }): void {
  call.name = item.tool_name ?? call.name;
  call.title = item.title ?? call.title;
  call.kind = item.tool_kind ?? call.kind;
  call.status = item.status ?? call.status;
  // An event may cut a text that is known in full.
  if (item.result !== undefined && !(item.truncated && call.result.startsWith(item.result))) call.result = item.result;
  call.approval = item.approval ?? call.approval;
  call.refusedBy = item.refused_by ?? call.refusedBy;
  call.refusal = item.refusal ?? call.refusal;
  call.input = item.tool_input ?? call.input;
  if (item.details === undefined) return;
  const { paths = [], diffs = [], terminal } = item.details;
  call.paths = paths;
  call.diffs = diffs.map(({ path, line, old_text: before, new_text: after }) => ({ path, line: Math.max(1, line ?? 1), before, after }));
  call.terminal = terminal;
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
  return { key, kind, turn, created, parent: undefined, seq: 0, open: false, text: "", withdrawn: false, attachments: [], truncated: false, plan: [], data: {}, tool: undefined };
}

export function toolKey(turn: string, id: string): string {
  return `${turn}/${id}`; // an agent may reuse an id in another turn
}
