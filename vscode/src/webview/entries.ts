// The entries of a conversation in their order, some of them part of others, and what of them has changed.
import type { Entry, EntryKind } from "./entry";

export class Entries {
  private readonly byKey = new Map<string, Entry>();
  private readonly parts = new Map<string, Entry[]>();
  private entries: Entry[] = [];
  private changedKeys = new Set<string>();
  private orderChanged = false;

  /** What is not part of another entry, the oldest first. */
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

  /** What add adds to the end meanwhile stands before everything that was there. */
  before(add: () => void): void {
    const later = this.entries;
    this.entries = [];
    add();
    this.entries = [...this.entries, ...later];
    this.adopt();
    this.orderChanged = true;
  }

  /** Puts an entry behind all others, and has the entries arranged anew. */
  toEnd(entry: Entry): void {
    if (!this.entries.includes(entry)) return;
    if (this.entries.at(-1) !== entry) this.entries = [...this.entries.filter((other) => other !== entry), entry];
    this.orderChanged = true;
  }

  /** Has the entries arranged anew: some of them are shown elsewhere now. */
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

  /** adopt puts entries under the call that they are part of, where that was on an older page. */
  private adopt(): void {
    const orphans = this.entries.filter(({ parent }) => parent !== undefined && this.byKey.has(parent));
    if (orphans.length === 0) return;
    const moved = new Set(orphans);
    this.entries = this.entries.filter((entry) => !moved.has(entry));
    for (const orphan of orphans) this.partOf(this.byKey.get(orphan.parent!)!, orphan);
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

export function newEntry(key: string, kind: EntryKind, run: string, created: string): Entry {
  return { key, kind, run, created, parent: undefined, seq: 0, open: false, text: "", status: undefined, attachments: [], truncated: false, plan: [], data: {}, tool: undefined };
}

export function toolKey(run: string, id: string): string {
  return `${run}/${id}`; // an agent may use an id again in each run
}
