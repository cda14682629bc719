// Completion in the prompt box: of a slash command at the beginning of the prompt, and of a file name after @.
import type { ContextSource } from "../panel/protocol";
import { make } from "./dom";

/** A completable text before the cursor. */
export interface Completable {
  kind: "command" | "file";
  /** The offset of the sign, / or @. */
  from: number;
  /** The text after the sign. */
  query: string;
}

/** Returns the completable text before the cursor. undefined: there is none. */
export function completableAt(text: string, cursor: number): Completable | undefined {
  const before = text.slice(0, cursor);
  const command = /^\s*\/(\S*)$/.exec(before);
  if (command) return { kind: "command", from: cursor - command[1]!.length - 1, query: command[1]! };
  const file = /(?:^|[\s([{"'`])@([^\s@]*)$/.exec(before);
  return file ? { kind: "file", from: cursor - file[1]!.length - 1, query: file[1]! } : undefined;
}

/** An item of the list. */
export interface Candidate {
  label: string;
  detail: string;
  /** The text that replaces the typed text. */
  insert: string;
  /** The URI of a file. */
  uri?: string;
  /** Context that is no file. */
  source?: ContextSource;
}

const sources: ReadonlyArray<[ContextSource, string]> = [
  ["problems", "errors and warnings of the session's folder"], ["terminal", "text of the active terminal"], ["changes", "what differs from the last commit"],
];

/** The sources whose names begin with a query. */
export function sourcesFor(query: string): Candidate[] {
  const typed = query.toLowerCase();
  return sources.filter(([source]) => source.startsWith(typed)).map(([source, detail]) => ({ label: source, detail, insert: `@${source} `, source }));
}

/** The commands that match a query. Those whose name begins with it are first. */
export function commandsFor(query: string, commands: ReadonlyArray<Record<string, unknown>>): Candidate[] {
  const typed = query.toLowerCase();
  const of = (name: unknown): string => (typeof name === "string" ? name : "");
  const fits = commands
    .map((command) => ({ name: of(command["name"]).replace(/^\//, ""), detail: [of(command["input_hint"]), of(command["description"])].filter((part) => part !== "").join(" — ") }))
    .filter(({ name }) => name !== "" && name.toLowerCase().includes(typed));
  const begins = (name: string): number => (name.toLowerCase().startsWith(typed) ? 0 : 1);
  return fits.sort((a, b) => begins(a.name) - begins(b.name) || (a.name < b.name ? -1 : 1)).map(({ name, detail }) => ({ label: `/${name}`, detail, insert: `/${name} ` }));
}

interface CompletionSource {
  candidates(of: Completable): Candidate[] | Promise<Candidate[]>;
  chosen(candidate: Candidate): void;
}

/** The list of completions. The focus stays in the prompt box. */
export class CompletionList {
  readonly element = make("ul", { class: "completions", is: { role: "listbox", id: "completions", "aria-label": "Completions" } });
  private candidates: Candidate[] = [];
  private selected = 0;
  private of: Completable | undefined;
  private asked = 0;
  /** Where the user closed the list. It stays closed there. */
  private closedAt: string | undefined;

  constructor(
    private readonly text: HTMLTextAreaElement,
    private readonly source: CompletionSource,
  ) {
    this.element.hidden = true;
    text.setAttribute("aria-autocomplete", "list");
    text.setAttribute("aria-controls", "completions");
    text.addEventListener("input", () => void this.look());
    text.addEventListener("click", () => void this.look());
    text.addEventListener("keyup", (event) => /^(?:Arrow(?:Left|Right)|Home|End)$/.test(event.key) && void this.look());
    text.addEventListener("blur", () => this.close());
    // A click in the list does not take the focus from the box.
    this.element.addEventListener("mousedown", (event) => event.preventDefault());
    this.element.addEventListener("click", (event) => {
      const option = event.target instanceof Element ? event.target.closest<HTMLElement>("[role=option]") : null;
      if (option) this.choose([...this.element.children].indexOf(option));
    });
  }

  /** Handles a key while the list is open. Returns false if the list does not use it. */
  key(event: KeyboardEvent): boolean {
    if (this.element.hidden || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return false;
    const { length } = this.candidates;
    switch (event.key) {
      case "ArrowDown":
        this.select((this.selected + 1) % length);
        return true;
      case "ArrowUp":
        this.select((this.selected + length - 1) % length);
        return true;
      case "PageDown":
        this.select(Math.min(length - 1, this.selected + 8));
        return true;
      case "PageUp":
        this.select(Math.max(0, this.selected - 8));
        return true;
      case "Enter":
      case "Tab":
        this.choose(this.selected);
        return true;
      case "Escape":
        this.closedAt = this.signature();
        this.close();
        return true;
      default:
        return false;
    }
  }

  private signature(): string {
    return this.of ? `${this.of.kind} ${this.of.from}` : "";
  }

  private async look(): Promise<void> {
    const asked = ++this.asked;
    this.of = this.text.selectionStart === this.text.selectionEnd ? completableAt(this.text.value, this.text.selectionStart) : undefined;
    if (!this.of) this.closedAt = undefined;
    if (!this.of || this.closedAt === this.signature()) return this.close();
    const found = await this.source.candidates(this.of);
    if (asked !== this.asked) return; // the user typed meanwhile
    this.candidates = found.slice(0, 50);
    const [first] = this.candidates;
    // A complete command needs no completion.
    if (!first || (this.candidates.length === 1 && first.label.slice(1) === this.of.query && this.of.kind === "command")) return this.close();
    this.draw();
  }

  private draw(): void {
    this.element.replaceChildren(
      ...this.candidates.map(({ label, detail }, i) =>
        make("li", { class: "completion", is: { role: "option", id: `completion-${i}` } }, make("span", { class: "completion-label", text: label }), make("span", { class: "completion-detail", text: detail })),
      ),
    );
    this.element.hidden = false;
    this.select(0);
  }

  private select(at: number): void {
    this.element.children[this.selected]?.setAttribute("aria-selected", "false");
    this.selected = at;
    const option = this.element.children[at];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    this.text.setAttribute("aria-activedescendant", `completion-${at}`);
  }

  private choose(at: number): void {
    const [candidate, of] = [this.candidates[at], this.of];
    this.close();
    if (!candidate || !of) return;
    const cursor = this.text.selectionStart;
    const gap = /^\s/.test(this.text.value.slice(cursor)) ? candidate.insert.trimEnd() : candidate.insert;
    this.text.setRangeText(gap, of.from, cursor, "end");
    this.source.chosen(candidate);
    this.text.dispatchEvent(new Event("input"));
    this.close();
  }

  private close(): void {
    this.asked++;
    this.element.hidden = true;
    this.element.replaceChildren();
    this.candidates = [];
    this.selected = 0;
    this.text.removeAttribute("aria-activedescendant");
  }
}
