// What the parts of the page know of each other: a view of an entry, and what it may ask the panel for.
import type { Choice } from "../hub/questions";
import type { Conversation } from "./conversation";
import type { Entry, FileDiff } from "./entries";
import type { OpenQuestion, Outcome } from "./questions";

/** The view of an entry, a part of the transcript. */
export interface View {
  readonly element: HTMLElement;
  /**
   * Called whenever its entry, or what is part of that, has changed. What takes long is drawn until a time (that of
   * performance.now); true: there is more, and it is to be called again.
   */
  update(until?: number): boolean | undefined;
}

/** The views of all entries: that of a tool call shows the entries that are part of it. */
export interface EntryViews {
  readonly actions: Actions;
  /** The view of an entry, made if there is none: one that has to be updated yet. */
  of(entry: Entry): View;
  known(key: string): View | undefined;
}

/** What came of an answer. */
export interface Answered {
  done: boolean;
  /** Why not, in words for a person. */
  why?: string;
}

/** What a part of the page may ask for beyond drawing itself. */
export interface Actions {
  readonly conversation: Conversation;
  openFile(path: string, line?: number, column?: number): void;
  openDiff(diff: FileDiff): void;
  openChanges(path?: string): void;
  openLink(url: string): void;
  command(command: "duet.restart" | "duet.showLog" | "duet.openText" | "duet.fork" | "duet.showChanges"): void;
  answer(question: OpenQuestion, choice: Choice): Promise<Answered>;
  /** What is said where a question stood; undefined: nothing, since it was answered here. */
  endOf(id: string, outcome: Outcome | undefined): string | undefined;
  focusPrompt(): void;
  /** Asks the hub for all of an entry whose text was cut, and has it drawn. Rejects if it is not to be had. */
  whole(entry: Entry): Promise<void>;
  /** The address of an attachment's bytes, for an image; undefined: it cannot be shown. */
  picture(id: string, type: string): Promise<string | undefined>;
  /** Says to a screen reader what has happened. */
  announce(text: string): void;
}
