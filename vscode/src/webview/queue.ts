// The queued prompts. The user edits, moves or takes back each of them.
import { clipped, visible } from "../hub/groups";
import { button, make, setText } from "./dom";
import type { Entry } from "./entries";

/** The result of an edit. begun: the prompt is no longer queued. */
export type Saved = "saved" | "begun" | "failed";

/** The panel's part in the actions of the queue. */
export interface QueueActions {
  takeBack(entry: Entry): Promise<void>;
  /** Loads all of the entry's text. Resolves with false if that fails. */
  whole(entry: Entry): Promise<boolean>;
  save(entry: Entry, text: string): Promise<Saved>;
  /** Moves a prompt before that of another turn. undefined: to the end. */
  move(entry: Entry, before: string | undefined): Promise<void>;
  /** Keeps the edited text of a prompt that is no longer queued. focus: the text had the focus. */
  keepEdited(entry: Entry, text: string, focus: boolean): void;
  focusPrompt(): void;
}

/** The list of queued prompts. */
export class Queue {
  readonly element = make("ul", { class: "queue", is: { "aria-label": "Queued prompts" } });
  private rows: readonly Row[] = [];

  constructor(private readonly actions: QueueActions) {}

  /** Shows these prompts. A prompt keeps its row, and a row keeps its focus and its edited text. */
  update(waiting: readonly Entry[], editable: (entry: Entry) => boolean): void {
    const active = document.activeElement as HTMLElement | null;
    const focused = this.rows.findIndex((row) => row.hasFocus);
    const rows = waiting.map((entry) => this.rows.find((row) => row.entry === entry) ?? new Row(entry, this.actions));
    // Only editable prompts can move. The others keep their places.
    const movable = rows.filter(({ entry }) => editable(entry));
    for (const row of this.rows) if (!rows.includes(row)) row.remove();
    for (const [i, row] of rows.entries()) {
      if (this.element.children[i] !== row.element) this.element.insertBefore(row.element, this.element.children[i] ?? null);
      const at = movable.indexOf(row);
      row.update(at >= 0, at > 0 ? { before: movable[at - 1]!.entry.turn } : undefined, at >= 0 && at + 1 < movable.length ? { before: movable[at + 2]?.entry.turn } : undefined);
    }
    const before = this.rows[focused];
    this.rows = rows;
    if (active === null || before === undefined) return;
    // An element that was moved, hidden or removed loses the focus.
    if (active.isConnected && !active.hidden) return active.focus();
    if (document.activeElement !== active && document.activeElement !== document.body) return;
    const next = rows.includes(before) ? before : rows[Math.min(focused, rows.length - 1)];
    if (next) next.focus();
    else this.actions.focusPrompt();
  }
}

/** The destination of a move: before a turn, or at the end. */
interface Place {
  before: string | undefined;
}

/** The row of a queued prompt. */
class Row {
  readonly element = make("li");
  private readonly text = make("span", { class: "queued-text" });
  private readonly buttons: Record<"Edit" | "Move up" | "Move down" | "Take back", HTMLButtonElement>;
  private readonly box = make("textarea", { is: { "aria-label": "Queued prompt", rows: "2", spellcheck: "true" }, on: { keydown: (event) => this.key(event) } });
  private up: Place | undefined;
  private down: Place | undefined;
  private shown: string | undefined;
  /** The text from before editing. undefined: the row is not being edited. */
  private original: string | undefined;
  private busy = false;

  constructor(
    readonly entry: Entry,
    private readonly actions: QueueActions,
  ) {
    const move = (place: Place | undefined): Promise<void> => (place ? actions.move(entry, place.before) : Promise.resolve());
    this.buttons = {
      Edit: button({ icon: "edit", name: "Edit", press: () => void this.alone(() => this.edit()) }),
      "Move up": button({ icon: "up", name: "Move up", press: () => void this.alone(() => move(this.up)) }),
      "Move down": button({ icon: "down", name: "Move down", press: () => void this.alone(() => move(this.down)) }),
      "Take back": button({ class: "text-button", label: "Take back", press: () => void this.alone(() => actions.takeBack(entry)) }),
    };
    this.show();
  }

  get hasFocus(): boolean {
    return this.element.contains(document.activeElement);
  }

  focus(): void {
    if (this.original !== undefined) this.box.focus();
    else this.buttons[this.buttons.Edit.hidden ? "Take back" : "Edit"].focus();
  }

  /** up and down are the destinations of the buttons. undefined: the prompt cannot move there. */
  update(editable: boolean, up: Place | undefined, down: Place | undefined): void {
    [this.up, this.down] = [up, down];
    this.buttons.Edit.hidden = !editable;
    this.buttons["Move up"].hidden = up === undefined;
    this.buttons["Move down"].hidden = down === undefined;
    const { text } = this.entry;
    if (text === this.shown) return;
    this.shown = text;
    setText(this.text, text);
    this.text.title = visible(clipped(text, 2_000));
    for (const [name, of] of Object.entries(this.buttons)) of.setAttribute("aria-label", `${name}: ${visible(text.slice(0, 80))}`);
  }

  /** Removes the row of a prompt that is no longer queued. The panel gets its unsaved text. */
  remove(): void {
    const focus = this.hasFocus;
    this.element.remove();
    if (!this.busy) this.give(focus);
  }

  private show(): void {
    this.element.replaceChildren(make("span", { class: "tag", text: "queued" }), this.text, ...Object.values(this.buttons));
  }

  private async edit(): Promise<void> {
    if (!(await this.actions.whole(this.entry)) || !this.element.isConnected) return;
    this.box.value = this.original = this.entry.text;
    const save = button({ class: "text-button", label: "Save", tip: "Save (Enter)", press: () => void this.alone(() => this.save()) });
    const cancel = button({ class: "text-button", label: "Cancel", tip: "Cancel (Escape)", press: () => this.cancel() });
    this.element.replaceChildren(this.box, save, cancel);
    this.box.focus();
  }

  private key(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing || event.key === "Process") return; // a command or an input method handles it
    if (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey || event.altKey)) return;
    event.preventDefault();
    if (event.key === "Escape") this.cancel();
    else void this.alone(() => this.save());
  }

  private cancel(): void {
    if (!this.busy) this.close();
  }

  private async save(): Promise<void> {
    const text = this.box.value;
    if (text.trim() === "") return;
    if (text === this.original) return this.close();
    this.box.readOnly = true;
    const saved = await this.actions.save(this.entry, text);
    this.box.readOnly = false;
    if (saved === "saved") this.close();
    else if (saved === "begun" || !this.element.isConnected) this.give(this.hasFocus);
  }

  /** Gives an edited text to the panel. */
  private give(focus: boolean): void {
    const edited = this.original !== undefined && this.box.value !== this.original;
    this.close();
    if (edited) this.actions.keepEdited(this.entry, this.box.value, focus);
  }

  private close(): void {
    const focus = this.hasFocus;
    this.original = undefined;
    this.show();
    if (focus) this.focus();
  }

  /** alone runs an action, unless another action of this row is running. */
  private async alone(action: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    await action().finally(() => (this.busy = false));
  }
}
