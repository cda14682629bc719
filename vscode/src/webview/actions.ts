// What a part of the page may ask for beyond drawing itself.
import type { Entry, FileDiff } from "./entry";
import type { Choice } from "../hub/questions";
import type { Conversation } from "./conversation";
import type { OpenQuestion, Outcome } from "./questions";

/** What came of an answer. */
export interface Answered {
  done: boolean;
  /** Why not, in words for a person. */
  why?: string;
}

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
