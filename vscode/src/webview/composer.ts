// The prompt box together with completion, earlier prompts, images and files.
import type { Draft, EditorContext, PromptContent } from "../panel/protocol";
import { chips, contentOf, contextChip, stillNamed, uriOf } from "./attachments";
import { commandsFor, CompletionList, sourcesFor } from "./completion";
import type { Candidate, Completable } from "./completion";
import { button, make } from "./dom";
import type { Host } from "./host";
import type { Data } from "./json";
import { PromptBox } from "./promptbox";

/** How long typing has to pause before a search for files, in milliseconds. */
const searchPause = 60;

/** The prompt box with its completion list, history and attachments. */
export class Composer {
  readonly box: PromptBox;
  private readonly history = new PromptHistory();
  private readonly list: CompletionList;
  private readonly chips = make("ul", { class: "attached-list", is: { "aria-label": "Attached" } });
  /** The URIs of files that the text names by @. */
  private readonly named = new Set<string>();
  private searching: Promise<unknown> = Promise.resolve();
  private editor: EditorContext | undefined;
  private withoutEditor = false;

  constructor(
    private readonly host: Host,
    private readonly options: {
      commands: () => readonly Data[];
      /** Sends a prompt, and resolves with a note for the user. With now, a working agent gets it in the middle of its turn. */
      send: (draft: Draft, now: boolean) => Promise<string>;
      /** Called at each change of the draft. */
      keep: (draft: Draft) => void;
    },
  ) {
    this.box = new PromptBox(async (draft, now) => {
      const outcome = await options.send(await this.withContext(draft, now), now);
      this.history.add(draft.text);
      this.withoutEditor = false;
      return outcome;
    });
    const { text } = this.box;
    this.list = new CompletionList(text, { candidates: (of) => this.candidates(of), chosen: (candidate) => this.chosen(candidate) });
    this.box.above.append(this.chips);
    this.box.tools.prepend(button({ icon: "add", name: "Add context", press: () => void this.read(this.host.request("panel.pickContext", {})).then(() => this.box.focus()) }));
    this.box.element.prepend(this.list.element);
    this.box.onKey = (event) => this.list.key(event) || this.recall(event);
    this.box.onChange = (draft) => this.changed(draft);
    text.addEventListener("input", () => this.history.reset());
    text.addEventListener("paste", (event) => this.pasted(event));
    this.acceptDrops(this.box.element);
  }

  setHistory(prompts: readonly string[]): void {
    this.history.set(prompts);
  }

  /** Shows the active editor, which prompts refer to. null: they refer to none. */
  setContext(editor: EditorContext | null): void {
    this.editor = editor ?? undefined;
    this.drawChips();
  }

  setDraft(draft: Draft): void {
    this.withoutEditor = draft.withoutEditor === true;
    for (const { type, uri, name } of draft.content) if (type === "resource_link" && uri !== undefined && name !== undefined && draft.text.includes(`@${name}`)) this.named.add(uri);
    this.box.setDraft(draft);
    this.drawChips();
  }

  /** Appends a prompt of the queue to the box. */
  append(text: string): void {
    this.history.add(text);
    this.box.append(text);
  }

  /** Appends an edited text that the queue refused to the box, with a note that says why. */
  keepEdited(text: string, why: string, focus: boolean): void {
    this.history.add(text);
    this.box.append(text);
    this.box.say(why);
    if (focus) this.box.focus();
  }

  private candidates({ kind, query }: Completable): Candidate[] | Promise<Candidate[]> {
    return kind === "command" ? commandsFor(query, this.options.commands()) : this.files(query);
  }

  private async files(query: string): Promise<Candidate[]> {
    const mine = (this.searching = new Promise((resolve) => setTimeout(resolve, searchPause)));
    await mine;
    if (mine !== this.searching) return []; // the user typed meanwhile
    try {
      const { files } = await this.host.request("panel.findFiles", { query });
      const found = files.map(({ path, uri }) => {
        const cut = path.lastIndexOf("/", path.length - 2) + 1;
        return { label: path.slice(cut), detail: path.slice(0, cut), insert: `@${path} `, uri };
      });
      return query === "" ? [...found, ...sourcesFor(query)] : [...sourcesFor(query), ...found];
    } catch (error) {
      this.box.fail(`Files could not be looked for: ${(error as Error).message}`);
      return [];
    }
  }

  private chosen({ insert, uri, source }: Candidate): void {
    if (source) void this.read(this.host.request("panel.readSource", { source }));
    if (uri === undefined) return;
    const { content } = this.box.draft;
    this.named.add(uri);
    if (!content.some((block) => block.uri === uri)) this.box.setContent([...content, { type: "resource_link", uri, name: insert.trim().slice(1) }]);
  }

  private changed(draft: Draft): void {
    const content = stillNamed(draft.text, draft.content, this.named);
    if (content.length !== draft.content.length) return this.box.setContent(content);
    this.drawChips();
    this.options.keep({ ...draft, ...(this.withoutEditor && { withoutEditor: true }) });
  }

  /** The active editor, if the prompt refers to it. A command of the agent might take it for an argument. */
  private get context(): EditorContext | undefined {
    return this.withoutEditor || this.box.text.value.trimStart().startsWith("/") ? undefined : this.editor;
  }

  private async withContext(draft: Draft, now: boolean): Promise<Draft> {
    const { context } = this;
    if (!context) return draft;
    // A working agent gets content after its turn only, so the text has to name the lines.
    if (now && this.box.queues) return draft.text.includes(context.reference) ? draft : { ...draft, text: `${draft.text}\n\n${context.reference}` };
    const { content } = await this.host.request("panel.readContext", {});
    const known = draft.content.map(uriOf);
    return { ...draft, content: [...draft.content, ...content.filter((block) => !known.includes(uriOf(block)))] };
  }

  private drawChips(): void {
    const { context } = this;
    const removeContext = (): void => {
      this.withoutEditor = true;
      this.changed(this.box.draft);
      this.box.focus();
    };
    this.chips.replaceChildren(
      ...(context ? [contextChip(context, removeContext)] : []),
      ...chips(this.box.draft.content, this.named, (block) => {
        this.box.setContent(this.box.draft.content.filter((other) => other !== block));
        this.box.focus();
      }),
    );
  }

  /** recall goes through earlier prompts, if the cursor is in the first or the last line. */
  private recall(event: KeyboardEvent): boolean {
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return false;
    const { text } = this.box;
    const { value, selectionStart: from, selectionEnd: to } = text;
    if (from !== to) return false;
    const up = event.key === "ArrowUp" && !value.slice(0, from).includes("\n");
    const down = event.key === "ArrowDown" && !value.slice(from).includes("\n");
    // In a wrapped line, the keys first move through its rows.
    if ((up && from > 0 && text.clientHeight > 48) || (down && to < value.length && text.clientHeight > 48)) return false;
    const prompt = up ? this.history.older(value) : down ? this.history.newer() : undefined;
    if (prompt === undefined) return false;
    this.box.replaceText(prompt);
    return true;
  }

  private pasted(event: ClipboardEvent): void {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void this.attach(files);
  }

  private acceptDrops(element: HTMLElement): void {
    for (const type of ["dragenter", "dragover"] as const) {
      element.addEventListener(type, (event) => {
        event.preventDefault();
        element.classList.add("drop");
      });
    }
    element.addEventListener("dragleave", (event) => !element.contains(event.relatedTarget as Node | null) && element.classList.remove("drop"));
    element.addEventListener("drop", (event) => {
      event.preventDefault();
      element.classList.remove("drop");
      const data = event.dataTransfer;
      const addresses = (data?.getData("application/vnd.code.uri-list") || data?.getData("text/uri-list") || "").split(/\r?\n/).filter((line) => line !== "" && !line.startsWith("#"));
      const files = [...(data?.files ?? [])];
      if (addresses.length > 0) void this.read(this.host.request("panel.readFiles", { uris: addresses }));
      else if (files.length > 0) void this.attach(files);
      else if (data?.getData("text/plain")) this.box.insert(data.getData("text/plain"));
      this.box.focus();
    });
  }

  private async attach(files: readonly File[]): Promise<void> {
    try {
      this.add(await contentOf(files, this.box.draft.content));
    } catch (error) {
      this.box.fail((error as Error).message);
    }
  }

  private async read(asked: Promise<{ content: PromptContent[]; refused: string[] }>): Promise<void> {
    try {
      this.add(await asked);
    } catch (error) {
      this.box.fail(`The context could not be read: ${(error as Error).message}`);
    }
  }

  private add({ content, refused }: { content: PromptContent[]; refused: string[] }): void {
    const uris = content.map(uriOf);
    const kept = this.box.draft.content.filter((block) => uriOf(block) === undefined || !uris.includes(uriOf(block))); // read anew
    if (content.length > 0) this.box.setContent([...kept, ...content]);
    this.box.fail(refused.join(". "));
  }
}

/** Earlier prompts: up to older ones, down to the draft. */
export class PromptHistory {
  private at = -1;
  private draft = "";

  /** prompts: the newest first. */
  constructor(private prompts: string[] = []) {}

  set(prompts: readonly string[]): void {
    this.prompts = [...prompts];
    this.reset();
  }

  /** Adds a sent prompt. */
  add(prompt: string): void {
    if (prompt.trim() !== "") this.prompts = [prompt, ...this.prompts.filter((other) => other !== prompt)];
    this.reset();
  }

  /** Leaves the history: the text in the box is the draft again. */
  reset(): void {
    this.at = -1;
  }

  /** The next older prompt, given the text in the box. undefined: there is none. */
  older(current: string): string | undefined {
    if (this.at === -1) this.draft = current;
    let next = this.at + 1;
    if (this.at === -1) while (this.prompts[next] !== undefined && this.prompts[next] === current) next++;
    if (this.prompts[next] === undefined) return undefined;
    this.at = next;
    return this.prompts[next];
  }

  newer(): string | undefined {
    if (this.at === -1) return undefined;
    this.at--;
    return this.at === -1 ? this.draft : this.prompts[this.at];
  }
}
