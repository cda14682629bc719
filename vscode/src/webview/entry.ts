// What stands in a conversation, one after the other.
import type { Data } from "./json";

/** What an entry is. content and sketch: what an agent says or thinks that is no text. */
export type EntryKind = "prompt" | "text" | "thinking" | "content" | "sketch" | "system" | "error" | "tool" | "plan" | "diff" | "answer";

/** Something in a conversation that has a place of its own. */
export interface Entry {
  /** No other entry of the conversation has it. */
  readonly key: string;
  readonly kind: EntryKind;
  /** The session (one prompt and its execution) that it belongs to. */
  readonly run: string;
  /** The key of the tool call that it is part of, such as that of a sub-agent. */
  parent: string | undefined;
  readonly created: string;
  /** The number of the last event that changed it. */
  seq: number;
  /** It is still being written, or the tool still runs. */
  open: boolean;
  text: string;
  /** Of a message: cancelled, if the agent was not given it. */
  status: string | undefined;
  attachments: Data[];
  /** Not all of its text came. */
  truncated: boolean;
  /** Of a plan: its entries. */
  plan: PlanStep[];
  /** Of a diff, an answer or an error: what the event, or the conversation, has of it. */
  data: Data;
  tool: ToolCall | undefined;
}

export interface PlanStep {
  content: string;
  /** pending, in_progress or completed. */
  status: string;
}

/** A change of a file, as the agent tells it: whole texts. */
export interface FileDiff {
  path: string;
  /** undefined: the file is new. */
  before: string | undefined;
  after: string;
}

export interface ToolCall {
  id: string;
  name: string;
  /** What it does, in words. */
  title: string;
  /** read, edit, delete, move, search, execute, think, fetch or other. */
  kind: string;
  /** pending, in_progress, completed or failed. */
  status: string;
  /** undefined: not known; a string: no JSON. */
  input: unknown;
  result: string;
  paths: string[];
  diffs: FileDiff[];
  terminal: string | undefined;
  approval: string | undefined;
  /** Who did not let it run, and why. */
  refusedBy: string | undefined;
  refusal: string | undefined;
}
