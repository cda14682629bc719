// The interfaces between the parts of the page: views of entries, and the actions of the panel.
import type { Decision } from "../hub/questions";
import type { PanelCommand } from "../panel/protocol";
import type { Contents } from "./contents";
import type { Entry, FileDiff } from "./entries";
import type { OpenQuestion, Outcome } from "./questions";

/** The view of an entry, a part of the transcript. */
export interface View {
  readonly element: HTMLElement;
  /**
   * Called when the entry, or a part of it, has changed. Draws until a deadline on the clock of performance.now. Returns
   * true if there is more to draw: call update again.
   */
  update(until?: number): boolean | undefined;
}

/** The views of all entries. The view of a tool call uses it for the entries that are part of the call. */
export interface EntryViews {
  readonly actions: Actions;
  /** The view of an entry. A new one still needs a call of update. */
  of(entry: Entry): View;
  known(key: string): View | undefined;
}

/** The result of an answer. */
export interface Answered {
  done: boolean;
  /** Why it failed, for the user. */
  why?: string;
}

/** What the panel does with the code of a message. */
export type CodeUse = "insert" | "run";

/** The actions of the panel, for its parts. */
export interface Actions {
  readonly contents: Contents;
  openFile(path: string, line?: number, column?: number): void;
  openDiff(diff: FileDiff): void;
  /** Shows the change of one file in the diff editor, from a unified diff. */
  openPatch(path: string, patch: string): void;
  openChanges(path?: string): void;
  openLink(url: string): void;
  /** Runs a command of the extension, for the session or for one of its turns. */
  command(command: PanelCommand, turn?: string): void;
  /** Inserts code into the text editor that was active last, or runs it in a terminal. */
  useCode(use: CodeUse, code: string): void;
  /** Sends a decision. With opens, the extension first opens the question's address in the browser. */
  answer(question: OpenQuestion, decision: Decision, opens?: boolean): Promise<Answered>;
  /** Opens the input of a question's tool in an editor. Resolves with why that failed, for the user; empty: it is open. */
  edit(question: OpenQuestion): Promise<string>;
  /** The note in the place of an ended question. undefined: none, because it was answered here. */
  endOf(id: string, outcome: Outcome | undefined): string | undefined;
  focusPrompt(): void;
  /** Loads all of an entry whose text is cut, and draws it. Rejects if that fails. */
  whole(entry: Entry): Promise<void>;
  /** The data URL of an image. undefined: it cannot be shown. */
  picture(id: string, type: string): Promise<string | undefined>;
  /** Announces a text to screen readers. */
  announce(text: string): void;
}
