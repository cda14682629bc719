// The part of a tool's input that a user edits before the tool runs.

import type { Approval } from "../protocol";

/** An input as a text to edit. */
export interface EditableInput {
  /** The name for the text: that of a file if there is one. */
  name: string;
  /** The file of the change. undefined: the text is a command, or all of the input as JSON. */
  path: string | undefined;
  /** The text that the tool replaces. undefined: all of the file. */
  before: string | undefined;
  text: string;
  /** The input with another text. Throws an error for the user if the text is none. */
  changed(text: string): Record<string, unknown>;
}

/** The text to edit of a question: what its tool writes or runs, else the whole input as JSON. */
export function editableInput({ tool_input, input_text_member: member, paths }: Pick<Approval, "tool_input" | "input_text_member" | "paths">): EditableInput {
  const input = tool_input as Record<string, unknown>;
  if (member === undefined) return { name: "input.json", path: undefined, before: undefined, text: `${JSON.stringify(input, null, 2)}\n`, changed: parsed };
  const path = paths?.length === 1 ? paths[0] : undefined;
  const before = member.startsWith("new") ? input[member.replace("new", "old")] : undefined;
  return {
    path, name: path?.split(/[/\\]/).pop() ?? (member === "command" ? "command.sh" : "text"), text: String(input[member]),
    before: typeof before === "string" ? before : undefined, changed: (changed) => ({ ...input, [member]: changed }),
  };
}

function parsed(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`the input is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("the input has to be a JSON object: { … }");
  return value as Record<string, unknown>;
}
