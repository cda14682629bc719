// What can be completed where the cursor is: a slash command at the beginning of a prompt, a file behind @.

export interface Completable {
  kind: "command" | "file";
  /** Where the sign stands, / or @. */
  from: number;
  /** What was typed behind it. */
  query: string;
}

/** What is being typed in front of the cursor; undefined: nothing that can be completed. */
export function completableAt(text: string, cursor: number): Completable | undefined {
  const before = text.slice(0, cursor);
  const command = /^\s*\/(\S*)$/.exec(before);
  if (command) return { kind: "command", from: cursor - command[1]!.length - 1, query: command[1]! };
  const file = /(?:^|[\s([{"'`])@([^\s@]*)$/.exec(before);
  return file ? { kind: "file", from: cursor - file[1]!.length - 1, query: file[1]! } : undefined;
}

/** Something to choose. */
export interface Candidate {
  label: string;
  detail: string;
  /** What stands in the prompt instead of what was typed. */
  insert: string;
  /** Of a file: its address. */
  uri?: string;
}

/** The commands that fit, those first whose name begins with what was typed. */
export function commandsFor(query: string, commands: ReadonlyArray<Record<string, unknown>>): Candidate[] {
  const typed = query.toLowerCase();
  const of = (name: unknown): string => (typeof name === "string" ? name : "");
  const fits = commands
    .map((command) => ({ name: of(command["name"]).replace(/^\//, ""), detail: [of(command["input_hint"]), of(command["description"])].filter((part) => part !== "").join(" — ") }))
    .filter(({ name }) => name !== "" && name.toLowerCase().includes(typed));
  const begins = (name: string): number => (name.toLowerCase().startsWith(typed) ? 0 : 1);
  return fits.sort((a, b) => begins(a.name) - begins(b.name) || (a.name < b.name ? -1 : 1)).map(({ name, detail }) => ({ label: `/${name}`, detail, insert: `/${name} ` }));
}
