// The part of a tool's input that a user edits before the tool runs.

/** An input as a text to edit. */
export interface EditableInput {
  /** The file of the change. undefined: the text is all of the input, as JSON. */
  path: string | undefined;
  /** The text that the tool replaces. undefined: all of the file. */
  before: string | undefined;
  text: string;
  /** The input with another text. Throws an error for the user if the text is none. */
  changed(text: string): Record<string, unknown>;
}

/** The members of inputs that name a file. */
const pathMembers = ["file_path", "path", "filePath", "abs_path"];

/** The members that have the new text of a file or of a part of it, each with that of the old text of the part. */
const textMembers: ReadonlyArray<readonly [text: string, before?: string]> = [
  ["new_string", "old_string"], ["new_str", "old_str"], ["new_text", "old_text"], ["newText", "oldText"], ["newString", "oldString"], ["content"], ["file_text"],
];

/** The text to edit of an input: that of a file if the input has one, else the whole input as JSON. */
export function editableInput(input: Record<string, unknown>): EditableInput {
  const textOf = (name: string | undefined): string | undefined => (name !== undefined && typeof input[name] === "string" ? input[name] : undefined);
  const path = pathMembers.map(textOf).find((of) => of !== undefined);
  for (const [name, old] of textMembers) {
    const [text, before] = [textOf(name), textOf(old)];
    if (path === undefined || text === undefined || (old !== undefined && before === undefined)) continue;
    return { path, before, text, changed: (changed) => ({ ...input, [name]: changed }) };
  }
  return { path: undefined, before: undefined, text: `${JSON.stringify(input, null, 2)}\n`, changed: parsed };
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
