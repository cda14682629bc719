// What the user has written in a panel and where the user reads, in this browser, for each session.
import type { Draft } from "../panel/protocol";
import type { Kept } from "../webview/panel";
import type { ReadingPlace } from "../webview/transcript";
import { readJSON } from "./store";
import type { Store } from "./store";

interface Stored {
  draft?: Draft;
  reading?: ReadingPlace;
  takenBack?: string[];
}

/** The most taken back turns that a session remembers. */
const mostTakenBack = 200;

/** The draft, the place and the taken back turns of one session. */
export class KeptInBrowser implements Kept {
  private readonly key: string;
  private stored: Stored;

  constructor(
    private readonly store: Store,
    project: string,
    session: string,
  ) {
    this.key = `session ${project} ${session}`;
    const stored = readJSON(store, this.key) as Stored | undefined;
    this.stored = stored && typeof stored === "object" ? stored : {};
  }

  get draft(): Draft | undefined {
    const { draft } = this.stored;
    return typeof draft?.text === "string" && Array.isArray(draft.content) ? draft : undefined;
  }

  keep(draft: Draft): void {
    this.stored = { ...this.stored, draft };
    if (draft.text === "" && draft.content.length === 0) delete this.stored.draft;
    this.save();
  }

  get place(): ReadingPlace | undefined {
    const { reading } = this.stored;
    return typeof reading?.key === "string" && typeof reading.offset === "number" ? reading : undefined;
  }

  keepPlace(place: ReadingPlace | undefined): void {
    if (place) this.stored.reading = place;
    else delete this.stored.reading;
    this.save();
  }

  get takenBack(): readonly string[] {
    return Array.isArray(this.stored.takenBack) ? this.stored.takenBack : [];
  }

  keepTakenBack(turn: string): void {
    this.stored.takenBack = [...this.takenBack, turn].slice(-mostTakenBack);
    this.save();
  }

  private save(): void {
    const { stored } = this;
    if (Object.keys(stored).length === 0) return this.store.set(this.key, undefined);
    this.store.set(this.key, JSON.stringify(stored));
    // Images may not fit: the text counts more.
    if (stored.draft && stored.draft.content.length > 0 && this.store.get(this.key) !== JSON.stringify(stored)) {
      this.store.set(this.key, JSON.stringify({ ...stored, draft: { ...stored.draft, content: [] } }));
    }
  }
}

/** The key of the half-typed reason for a question. */
export function reasonKey(project: string, approval: string): string {
  return `reason ${project} ${approval}`;
}

/** Keeps what the user types as the reason of an answer, in each question of an element, until the question is closed. */
export function keepReasons(root: HTMLElement, store: Store, project: () => string): void {
  const fieldOf = (event: Event): { input: HTMLTextAreaElement; key: string } | undefined => {
    const { target } = event;
    const id = target instanceof HTMLTextAreaElement && target.closest(".answer-field") && target.closest<HTMLElement>(".question")?.dataset["approval"];
    return id ? { input: target, key: reasonKey(project(), id) } : undefined;
  };
  root.addEventListener("input", (event) => {
    const field = fieldOf(event);
    if (field) store.set(field.key, field.input.value || undefined);
  });
  root.addEventListener("focusin", (event) => {
    const field = fieldOf(event);
    if (field?.input.value === "") field.input.value = store.get(field.key) ?? "";
  });
}
