// The changes of a session by turn, file and hunk, and the user's decision on each.
import { decisionsFor, partsOf, progressOf, stateWords } from "../hub/changes";
import type { ChangedFile, Decision, Hunk } from "../hub/changes";
import type { Result, Turn } from "../protocol";
import { button, make, setText } from "../webview/dom";
import { unified } from "../webview/output";
import type { App, Screen } from "./app";
import type { ProjectHub } from "./hub";

type TurnChanges = Result<"change.list">;

/** What the buttons of a decision say. */
const verbs: Record<Decision, string> = { accept: "Accept", revert: "Revert", reopen: "Undo" };

/** The most turns of a session that are searched for changes. */
const mostTurns = 200;

/** How many hunks of a file are drawn at first. */
const hunksOfPress = 20;

/** The changes of one session: of its last turn with changes, and of earlier ones on request. */
export class ChangesScreen implements Screen {
  private readonly title = make("p", { class: "note", is: { dir: "auto" } });
  private readonly status = make("p", { class: "note", is: { role: "status" } });
  private readonly list = make("div", { class: "turn-changes" });
  private readonly earlier = button({ class: "secondary", label: "Show earlier turns", press: () => this.app.attempt(this.load()) });
  readonly element = make("main", { class: "page changes-page" }, make("h1", { text: "Changes", is: { tabindex: "-1" } }), this.title, this.list, this.status, this.earlier);
  private turns: Turn[] = [];
  private next = 0;
  private readonly views = new Map<string, { element: HTMLElement; changes: TurnChanges }>();
  private readonly opened = new Set<string>();
  private stop: (() => void) | undefined;
  private loading = false;
  private disposed = false;
  private followed = false;
  private drawnIn = "";

  constructor(
    private readonly app: App,
    private readonly hub: ProjectHub,
    private readonly session: string,
  ) {
    this.earlier.hidden = true;
    this.update();
  }

  update(): void {
    setText(this.title, this.app.titleOf(this.hub.project.id, this.session));
    const { folder } = this;
    if (folder !== this.drawnIn) for (const [turn, { changes }] of this.views) this.draw(turn, changes);
    this.drawnIn = folder;
    if (this.turns.length === 0 && this.hub.answers && !this.loading) this.app.attempt(this.load());
  }

  dispose(): void {
    this.disposed = true;
    this.stop?.();
  }

  /** load shows the changes of the next turn that has some. */
  private async load(): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    this.earlier.hidden = true;
    setText(this.status, "Loading…");
    try {
      await this.follow();
      if (this.turns.length === 0) this.turns = (await this.hub.request("turn.list", { session: this.session, limit: mostTurns })).turns;
      let found = false;
      while (!found && this.next < this.turns.length) {
        const turn = this.turns[this.next]!.turn_uuid;
        const changes = await this.hub.request("change.list", { turn });
        this.next++;
        found = changes.changes.length > 0;
        if (found) this.draw(turn, changes);
      }
      setText(this.status, this.views.size === 0 ? "This session has changed no file." : "");
      this.earlier.hidden = this.next >= this.turns.length;
    } catch (error) {
      setText(this.status, `The changes could not be loaded: ${(error as Error).message}`);
      this.earlier.hidden = false;
    } finally {
      this.loading = false;
    }
  }

  private async follow(): Promise<void> {
    if (this.followed) return;
    this.followed = true;
    const following = await this.hub.follow({ session: this.session, kinds: ["change.decided"] }, {
      event: ({ turn_uuid: turn }) => {
        if (turn && this.views.has(turn)) void this.refresh(turn).catch(() => undefined);
      },
      lost: () => (this.followed = false),
    });
    this.stop = () => void following.stop();
    if (this.disposed) this.stop();
  }

  private async refresh(turn: string): Promise<void> {
    this.draw(turn, await this.hub.request("change.list", { turn }));
  }

  private draw(turn: string, changes: TurnChanges): void {
    const focus = (document.activeElement as HTMLElement | null)?.dataset["key"];
    const files = changes.changes.map((file) => this.fileView(turn, file));
    const element = make("section", { class: "turn", is: { "aria-label": `Turn ${changes.turn}` } },
      make("h2", {}, make("span", { text: `Turn ${changes.turn}` }), make("span", { class: "note", text: `${changes.changes.length} ${changes.changes.length === 1 ? "file" : "files"}` })),
      changes.not_recorded === true && make("p", { class: "warning", text: "Changes of the agent's commands may be missing here." }),
      ...files);
    const known = this.views.get(turn);
    if (known) known.element.replaceWith(element);
    else this.list.append(element);
    this.views.set(turn, { element, changes });
    if (focus !== undefined) [...element.querySelectorAll<HTMLElement>("[data-key]")].find(({ dataset }) => dataset["key"] === focus)?.focus();
  }

  private fileView(turn: string, file: ChangedFile): HTMLElement {
    const { path, renamed_from, binary, hunks, mode, before, after } = file;
    const parts = partsOf(file);
    const kind = before === null ? "new" : after === null ? "deleted" : renamed_from ? "renamed" : "";
    const isOpen = parts.some(({ state }) => state === "open");
    const head = make("div", { class: "file-head" },
      make("h3", { text: this.shortened(path), tip: path }),
      make("span", { class: "added", text: `+${sum(hunks, "added")}` }), make("span", { class: "removed", text: `−${sum(hunks, "removed")}` }),
      kind !== "" && make("span", { class: "tag", text: kind }), progressOf(parts) !== "" && make("span", { class: "tag", text: progressOf(parts) }));
    const section = make("section", { class: "changed", is: { "aria-label": path } }, head, renamed_from && make("p", { class: "note", text: `before: ${renamed_from}` }));
    if (mode) section.append(make("div", { class: "hunk-view" }, make("p", { text: `File mode ${mode.old} → ${mode.new}` }), this.answers(turn, path, mode, `the mode of ${path}`)));
    if (binary) section.append(make("p", { class: "note", text: "It is binary: its change is not shown." }));
    const texts = hunksOf(file.diff);
    const draw = (from: number): void => {
      for (const [i, hunk] of hunks.slice(from, from + hunksOfPress).entries()) section.append(this.hunkView(turn, file, hunk, texts[from + i] ?? [], from + i));
      const rest = hunks.length - from - hunksOfPress;
      if (rest <= 0) return;
      const more = button({
        class: "text-button", label: `Show ${rest} more ${rest === 1 ? "hunk" : "hunks"}`,
        press: () => {
          more.remove();
          this.opened.add(`${turn} ${path}`);
          draw(from + hunksOfPress);
        },
      });
      section.append(more);
      if (this.opened.has(`${turn} ${path}`)) more.click();
    };
    draw(0);
    const all: Decision[] = isOpen || binary ? (binary ? ["accept"] : ["accept", "revert"]) : ["reopen"];
    if (hunks.length !== 1 || mode || binary) section.append(this.buttons(turn, path, undefined, all, `all of ${path}`, "file"));
    return section;
  }

  /** shortened returns a path relative to the directory of the session, if it is in there. */
  private shortened(path: string): string {
    const { folder } = this;
    return folder !== "" && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
  }

  /** The directory of the session. Empty: not known yet. */
  private get folder(): string {
    return this.app.session(this.hub.project.id, this.session)?.working_dir ?? "";
  }

  private hunkView(turn: string, { path }: ChangedFile, hunk: Hunk, lines: string[], i: number): HTMLElement {
    return make("div", { class: "hunk-view", is: { "data-state": hunk.state } }, unified(lines, path, { numbered: true }), this.answers(turn, path, hunk, `hunk ${i + 1} of ${path}`));
  }

  /** answers are the buttons of a hunk, with the decision that it has. */
  private answers(turn: string, path: string, part: Pick<Hunk, "id" | "state">, name: string): HTMLElement {
    const words = stateWords(part);
    const row = this.buttons(turn, path, part.id, decisionsFor(part), name, "hunk");
    if (words !== "") row.prepend(make("span", { class: "decided", text: words }));
    return row;
  }

  private buttons(turn: string, path: string, hunk: string | undefined, decisions: readonly Decision[], name: string, of: "hunk" | "file"): HTMLElement {
    return make("div", { class: "choices", is: { role: "group", "aria-label": name } }, ...decisions.map((decision) => {
      const press = button({
        class: decision === "accept" ? "primary" : "secondary", label: of === "file" ? `${verbs[decision]} all` : verbs[decision], name: `${verbs[decision]} ${name}`,
        press: () => void this.decide(decision, { turn, path, ...(hunk !== undefined && { hunk }) }, press),
      });
      press.dataset["key"] = `${turn} ${path} ${hunk ?? ""} ${decision === "revert" ? "revert" : "first"}`;
      return press;
    }));
  }

  private async decide(decision: Decision, params: { turn: string; path: string; hunk?: string }, press: HTMLButtonElement): Promise<void> {
    if (press.getAttribute("aria-disabled") === "true") return;
    press.setAttribute("aria-disabled", "true");
    try {
      await this.hub.request(`change.${decision}`, params);
      await this.refresh(params.turn);
    } catch (error) {
      press.removeAttribute("aria-disabled");
      this.app.warn(`${params.path} is unchanged: ${(error as Error).message}`);
    }
  }
}

function sum(hunks: readonly Hunk[], side: "added" | "removed"): number {
  return hunks.reduce((total, hunk) => total + hunk[side], 0);
}

/** hunksOf returns the lines of each hunk of a unified diff of one file. */
function hunksOf(diff: string): string[][] {
  const hunks: string[][] = [];
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    if (line.startsWith("@@")) hunks.push([line]);
    else if (hunks.length > 0 && !line.startsWith("\\")) hunks.at(-1)!.push(line);
  }
  return hunks;
}
