// The transcript: the list of entries. It follows new entries while its end is in view, loads older
// pages at its top, and draws in short steps that do not block the page.
import type { Changes } from "./contents";
import { button, make } from "./dom";
import type { Entry } from "./entries";
import { Views } from "./entryview";
import type { OpenQuestion } from "./questions";
import { QuestionView } from "./questionview";
import { ToolView } from "./toolview";
import type { Actions } from "./view";

/** The time for one drawing, in milliseconds. The rest waits for the next frame. The layout takes the browser several times as long. */
const budget = 5;

/** The distance from the end, in pixels, at which a view that scrolls down follows again. */
const nearEnd = 40;

/** How long the view stays at the end after a jump there, in milliseconds, while the browser lays out entries. */
const settling = 1_000;

/** The distance from the beginning, in pixels, at which older pages are loaded. */
const nearTop = 400;

/** A place in a transcript: an entry, and where its top is below that of the view, in pixels. */
export interface ReadingPlace {
  key: string;
  offset: number;
}

/** The list of entries and questions, and its scroll position. */
export class Transcript {
  readonly element: HTMLElement;
  private readonly log = make("div", { class: "log", is: { role: "log", "aria-label": "Transcript", "aria-live": "off", "aria-relevant": "additions" } });
  private readonly loose = make("div", { class: "questions loose" });
  private readonly older = make("div", { class: "older", is: { role: "status" } });
  private readonly ending = make("div", { class: "older" });
  private readonly jump: HTMLButtonElement;
  private readonly stretches = new Stretches(this.log);
  private readonly views: Views;
  private readonly questions = new Map<string, QuestionView>();
  /** The question to show once it is loaded, and the answer to give there. */
  private wanted: { id: string; answer: string | undefined } | undefined;
  /** The entry to show once it is drawn, by its key. */
  private sought: string | undefined;
  /** The place to return to once its entry is drawn. */
  private returning: ReadingPlace | undefined;
  private readonly dirty = new Set<string>();
  private orderChanged = false;
  private following = true;
  private lastTop = 0;
  private lastHeight = 0;
  private lastDistance = 0;
  private settledAt = 0;
  /** Whether a mouse button is pressed on the session. The view must not move then. */
  private pressed = false;
  /** Whether the last press was on the scroll bar. */
  private onScrollBar = false;
  /** The element that the user opened at the end, and the least y coordinate of its top, in pixels of the window. */
  private opened: { element: Element; top: number } | undefined;

  /** Called when the view is near the beginning. */
  onTop: () => void = () => {};
  /** Called when other questions may be in view. */
  onScroll: () => void = () => {};

  constructor(
    private readonly actions: Actions,
    /** Ends the listeners at the window. */
    signal: AbortSignal,
    /** Entries that are shown elsewhere: prompts that wait for their turn, and what a tool call says. */
    private readonly hidden: (entry: Entry) => boolean,
  ) {
    this.views = new Views(actions);
    this.element = make("main", { class: "transcript", is: { tabindex: "-1" } }, this.older, this.log, this.loose, this.ending);
    this.jump = button({ class: "jump", icon: "down", label: "Newest", press: () => this.toEnd() });
    this.jump.hidden = true;
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.takeEnd();
    this.keepOpened();
    this.leaveToSelect(signal);
    // Entries grow when they are opened or loaded, and the view shrinks. A following view stays at the end.
    const sizes = new ResizeObserver(() => {
      if (this.following) this.pin();
      else this.lastDistance = this.distance();
    });
    for (const element of [this.log, this.loose, this.ending, this.element]) sizes.observe(element);
  }

  get jumpButton(): HTMLButtonElement {
    return this.jump;
  }

  /** What the user reads. undefined: the view is at the end, and follows it. */
  get place(): ReadingPlace | undefined {
    const { top } = this.element.getBoundingClientRect();
    const seen = this.following ? undefined : this.stretches.below(top);
    const key = seen instanceof HTMLElement ? seen.dataset["key"] : undefined;
    return key === undefined ? undefined : { key, offset: Math.round(seen!.getBoundingClientRect().top - top) };
  }

  /** Scrolls to a place, once its entry is drawn. */
  showPlace(place: ReadingPlace): void {
    this.following = false;
    this.returning = place;
    this.drawPlace(true);
  }

  /** drawPlace scrolls to the wanted place if its entry is drawn. more: it may still be. */
  private drawPlace(more: boolean): void {
    const { key, offset } = this.returning!;
    const element = this.views.known(key)?.element;
    if (!element?.isConnected) {
      if (more) return;
      this.returning = undefined;
      return this.toEnd();
    }
    this.returning = undefined;
    this.following = false;
    this.jump.hidden = false;
    // Only entries near the view have their real height, so the first scroll may miss.
    const scroll = (): void => void (this.element.scrollTop += element.getBoundingClientRect().top - this.element.getBoundingClientRect().top - offset);
    scroll();
    requestAnimationFrame(() => {
      scroll();
      requestAnimationFrame(scroll);
    });
  }

  /** Whether some loaded entries are not drawn yet. */
  get unfinished(): boolean {
    return this.orderChanged;
  }

  /** Sets the note above the first entry, such as a button for older entries. */
  setOlder(...children: Array<Node | string>): void {
    this.older.replaceChildren(...children);
  }

  /** Sets the note after the last entry. */
  setEnd(...children: Array<Node | string>): void {
    this.ending.replaceChildren(...children);
    if (this.following) this.pin();
  }

  /** Draws changes. Returns true if there is more to draw in the next frame. */
  draw(changes: Changes): boolean {
    const until = performance.now() + budget;
    for (const key of changes.keys) this.dirty.add(key);
    if (changes.order || changes.session) this.orderChanged = true;
    const stay = this.following || this.dirty.size === 0 ? undefined : this.staying();
    for (const key of this.dirty) {
      if (!this.views.known(key)?.update(until)) this.dirty.delete(key);
      if (performance.now() > until) break;
    }
    stay?.();
    const more = (this.orderChanged && this.arrange(until)) || this.dirty.size > 0;
    if (changes.questions || changes.order || changes.keys.size > 0) this.drawQuestions();
    if (this.following) this.pin();
    if (this.sought !== undefined) this.drawSought(more);
    if (this.returning !== undefined) this.drawPlace(more);
    return more;
  }

  /** Scrolls to a question and moves the focus there, once it is loaded. It then gives an answer, by the id of its choice. */
  showQuestion(id: string, answer?: string): void {
    const view = this.questions.get(id);
    this.wanted = view ? undefined : { id, answer };
    if (!view) return;
    this.following = false;
    for (let at = view.element.parentElement; at && at !== this.element; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
    this.scrollTo(view.element);
    view.focus();
    if (answer !== undefined) view.give(answer);
  }

  /** Scrolls to an entry of the list, opens it and moves the focus there, once it is drawn. */
  showEntry(key: string): void {
    this.following = false;
    this.sought = key;
    this.drawSought(true);
  }

  /** drawSought shows the sought entry if it is drawn. more: it may still be. */
  private drawSought(more: boolean): void {
    const element = this.sought === undefined ? undefined : this.views.known(this.sought)?.element;
    if (!element?.isConnected) {
      if (!more) this.sought = undefined;
      return;
    }
    this.sought = undefined;
    this.following = false;
    this.jump.hidden = false;
    if (element.querySelector("details:not([open])")) element.querySelector("summary")!.click();
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    // Only entries near the view have their real height, so the first scroll may miss.
    const scroll = (): void => this.scrollTo(element, element.clientHeight > this.element.clientHeight / 2);
    scroll();
    requestAnimationFrame(scroll);
  }

  /** scrollTo scrolls an element to the middle of the view, or to its start. scrollIntoView would also shift the page around the panel, which VS Code makes a few pixels too high. */
  private scrollTo(element: Element, start = false): void {
    const [own, frame] = [element.getBoundingClientRect(), this.element.getBoundingClientRect()];
    this.element.scrollTop += own.top - frame.top - (start ? 0 : (frame.height - own.height) / 2);
  }

  /** Whether a question is in view. */
  sees(id: string): boolean {
    const view = this.questions.get(id);
    if (!view) return false;
    const [own, frame] = [view.element.querySelector(".answers")?.getBoundingClientRect(), this.element.getBoundingClientRect()];
    return own !== undefined && own.height > 0 && own.bottom > frame.top && own.top < frame.bottom;
  }

  /** Moves the focus to the first open question in view. Returns false if there is none. */
  focusQuestion(): boolean {
    const seen = [...this.questions].find(([id]) => this.sees(id));
    seen?.[1].focus();
    return seen !== undefined;
  }

  toEnd(): void {
    this.following = true;
    this.opened = undefined;
    this.settledAt = performance.now() + settling;
    this.pin();
    this.scrolled();
  }

  /** arrange puts the entries in order, from the newest back. Returns true if older ones are left. */
  private arrange(until: number): boolean {
    const entries = this.actions.contents.entries;
    const stay = this.following ? undefined : this.staying();
    const arrangement = this.stretches.arrange();
    let unfinished = false;
    for (let i = entries.length - 1; i >= 0; i--) {
      const entry = entries[i]!;
      if (this.hidden(entry)) {
        this.views.known(entry.key)?.element.remove();
        continue;
      }
      const known = this.views.known(entry.key);
      if (!known && performance.now() > until) {
        unfinished = true;
        break;
      }
      const view = known ?? this.views.of(entry);
      if (!known && view.update(until)) this.dirty.add(entry.key);
      arrangement.put(view.element);
    }
    arrangement.end();
    this.orderChanged = unfinished;
    stay?.();
    return unfinished;
  }

  /** staying notes the first visible entry. The returned function scrolls it back to its place, after changes above it. */
  private staying(): (() => void) | undefined {
    const { top } = this.element.getBoundingClientRect();
    const seen = this.stretches.below(top);
    if (!seen) return undefined;
    const before = seen.getBoundingClientRect().top;
    this.element.style.overflowAnchor = "none"; // the browser's scroll anchoring does not work at the very beginning
    return () => {
      this.element.scrollTop += seen.getBoundingClientRect().top - before;
      this.element.style.overflowAnchor = "";
      this.onScroll();
    };
  }

  private drawQuestions(): void {
    const open = this.actions.contents.questions;
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, view] of this.questions) {
      if (ids.has(id)) continue;
      const isSeen = this.sees(id);
      this.questions.delete(id);
      this.ended(id, view, isSeen);
      this.updateTool(view.question);
    }
    for (const question of open) {
      let view = this.questions.get(question.id);
      if (!view) this.questions.set(question.id, (view = new QuestionView(question, this.actions)));
      view.update(question);
      const place = this.placeOf(question);
      if (view.element.parentElement !== place) place.append(view.element);
      this.updateTool(question);
    }
    if (this.wanted !== undefined && ids.has(this.wanted.id)) this.showQuestion(this.wanted.id, this.wanted.answer);
  }

  /** placeOf returns the place of a question: at its tool call, else at the end. */
  private placeOf({ tool }: OpenQuestion): HTMLElement {
    const view = tool === undefined ? undefined : this.views.known(tool);
    if (!(view instanceof ToolView) || !view.element.isConnected) return this.loose;
    for (let at = view.element.parentElement; at && at !== this.element; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
    return view.questions;
  }

  /** updateTool draws a question's tool call, which leaves out what the question shows. */
  private updateTool({ tool }: OpenQuestion): void {
    if (tool !== undefined) this.views.known(tool)?.update();
  }

  /**
   * ended replaces a question that another client has answered with a note. After the user's own answer, the focus goes to the next
   * question. If there is none, a view that was at the question follows the agent again.
   */
  private ended(id: string, view: QuestionView, isSeen: boolean): void {
    const outcome = this.actions.contents.outcome(id);
    const hadFocus = view.element.contains(document.activeElement);
    const words = this.actions.endOf(id, outcome);
    const isSaid = outcome?.decision === "denied" && view.question.tool !== undefined; // by the tool call
    if (words === undefined || isSaid) view.element.remove();
    else view.element.replaceWith(make("p", { class: "note", text: words }));
    const [next] = words === undefined ? this.actions.contents.questions : [];
    // showQuestion had stopped following.
    if (!this.following && ((hadFocus && this.distance() < nearEnd) || (words === undefined && isSeen && !next))) this.toEnd();
    if (!hadFocus) return;
    if (next) this.wanted = { id: next.id, answer: undefined };
    else this.actions.focusPrompt();
  }

  /** takeEnd handles scroll input. The End key needs it, because the browser only estimates the height of distant entries. */
  private takeEnd(): void {
    const byHand = (event: Event): void => {
      this.settledAt = 0;
      this.onScrollBar = event.type === "pointerdown" && event.target === this.element;
    };
    for (const type of ["wheel", "touchmove", "pointerdown"] as const) this.element.addEventListener(type, byHand, { passive: true });
    this.element.addEventListener("wheel", (event) => event.deltaY < 0 && !event.ctrlKey && !this.scrollsWithin(event.target) && this.leaveEnd(), { passive: true });
    this.element.addEventListener("keydown", (event) => {
      byHand(event);
      if (event.altKey || event.metaKey || (event.target instanceof Element && event.target.matches("input, textarea, select"))) return;
      if (goesUp(event)) this.leaveEnd();
      if (event.key !== "End" || event.shiftKey) return;
      event.preventDefault();
      this.toEnd();
    });
  }

  /**
   * leaveToSelect keeps the view still while a mouse button is pressed, and stops following when the user selects text.
   * Otherwise the view follows again when the button is released.
   */
  private leaveToSelect(signal: AbortSignal): void {
    this.log.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) this.pressed = true;
    });
    const release = (): void => {
      if (!this.pressed) return;
      this.pressed = false;
      if (this.following) this.pin();
    };
    for (const type of ["pointerup", "pointercancel", "blur"] as const) window.addEventListener(type, release, { signal });
    document.addEventListener("selectionchange", () => {
      const selection = document.getSelection();
      if (selection && !selection.isCollapsed && this.log.contains(selection.anchorNode)) this.leaveEnd();
    }, { signal });
  }

  /** Whether an element inside the transcript, such as a long output, scrolls up with the wheel. */
  private scrollsWithin(target: EventTarget | null): boolean {
    for (let at = target instanceof Element ? target : null; at && at !== this.element; at = at.parentElement) if (at.scrollTop > 0) return true;
    return false;
  }

  /**
   * leaveEnd stops following. It is called before the browser scrolls up in small steps. Otherwise, while the agent writes,
   * the view would return to the end after each step.
   */
  private leaveEnd(): void {
    if (!this.following || this.element.scrollTop === 0) return;
    this.following = false;
    this.opened = undefined;
    this.jump.hidden = false;
  }

  /** keepOpened keeps the top of an element that the user opens in view, while the view follows the end. */
  private keepOpened(): void {
    this.log.addEventListener("click", ({ target }) => {
      const element = target instanceof Element ? target.closest("summary, .text-button")?.closest("details, .output") : undefined;
      if (element) this.opened = { element, top: Math.min(element.getBoundingClientRect().top, this.element.getBoundingClientRect().top) };
    }, { capture: true });
  }

  /** stayAtOpened scrolls back if the opened element would leave the view at the top. The view then stops following. */
  private stayAtOpened({ element, top }: { element: Element; top: number }): void {
    const closed = !element.isConnected || (element instanceof HTMLDetailsElement && !element.open);
    const over = top - element.getBoundingClientRect().top;
    if (closed || over < 1) return;
    this.leaveEnd();
    this.element.scrollTop -= over;
  }

  /** distance returns the distance of the view from the end, in pixels. */
  private distance(): number {
    return this.element.scrollHeight - this.element.scrollTop - this.element.clientHeight;
  }

  private pin(): void {
    if (this.pressed) return;
    this.element.scrollTop = this.element.scrollHeight;
    if (this.opened) this.stayAtOpened(this.opened);
    this.lastTop = this.element.scrollTop;
    this.lastHeight = this.element.scrollHeight;
    this.lastDistance = this.distance();
  }

  private scrolled(): void {
    const { scrollTop, scrollHeight } = this.element;
    const distance = this.distance();
    // Only scrolling up stops following. New entries do not, nor entries that are lower than the browser estimated.
    // A view that scrolls towards the end follows again when it is near. With the scroll bar, entries may always be
    // lower than estimated, so there the height does not count.
    const settled = performance.now() > this.settledAt;
    const up = settled && scrollTop < this.lastTop - 1 && (this.onScrollBar || scrollHeight >= this.lastHeight) && distance > 1;
    this.following = (this.following && !up) || (distance < nearEnd && distance < this.lastDistance);
    if (!settled && this.following && distance >= nearEnd) return this.pin();
    if (!this.following) this.opened = undefined;
    this.lastTop = scrollTop;
    this.lastHeight = scrollHeight;
    this.lastDistance = distance;
    this.jump.hidden = this.following;
    if (scrollTop < nearTop) this.onTop();
    this.onScroll();
  }
}

/** Whether a key scrolls up. */
function goesUp(event: KeyboardEvent): boolean {
  return ["ArrowUp", "PageUp", "Home"].includes(event.key) || (event.key === " " && event.shiftKey);
}

/** Entries of a stretch. */
const stretchSize = 16;

/**
 * The entries of a transcript, in stretches of some each. Distant stretches cost little, because of content-visibility.
 * But the browser looks at each one in each frame, so thousands of single entries would be too many.
 */
class Stretches {
  constructor(private readonly log: HTMLElement) {}

  /** Begins to put entries in order, from the last one back. */
  arrange(): Arrangement {
    return new Arrangement(this.log);
  }

  /** The first entry that ends below a y coordinate. */
  below(top: number): Element | undefined {
    const stretch = firstBelow(this.log.children, top);
    return stretch && firstBelow(stretch.children, top);
  }
}

/** Puts entries in order. An entry at its right place is not touched, so a selection in it stays. */
class Arrangement {
  private stretch: Element | null;
  /** The entry that was put last. The next one comes before it. */
  private next: Element | null = null;

  constructor(private readonly log: HTMLElement) {
    this.stretch = log.lastElementChild;
  }

  /** Puts an entry before all those put so far. */
  put(entry: Element): void {
    const at = entry.parentElement;
    if (at !== null && at !== this.stretch && at === this.stretch?.previousElementSibling) {
      this.stretch = at;
      this.next = null;
    }
    const stretch = at !== null && at === this.stretch ? at : this.room();
    if (entry.parentElement !== stretch || entry.nextElementSibling !== this.next) stretch.insertBefore(entry, this.next);
    this.next = entry;
  }

  /** Removes empty stretches. */
  end(): void {
    for (const stretch of [...this.log.children]) if (stretch.childElementCount === 0) stretch.remove();
  }

  /** room returns a stretch for one more entry: the current one, else a new one. */
  private room(): Element {
    const { stretch, next } = this;
    // A full stretch takes an entry in its middle, because otherwise the others would have to move.
    if (stretch !== null && (stretch.childElementCount < stretchSize || (next !== null && next !== stretch.firstElementChild))) return stretch;
    const fresh = document.createElement("div");
    fresh.className = "stretch";
    if (stretch === null) this.log.append(fresh);
    else if (next === null) stretch.after(fresh);
    else stretch.before(fresh);
    this.stretch = fresh;
    this.next = null;
    return fresh;
  }
}

/** firstBelow finds the first element that ends below a y coordinate, by binary search. */
function firstBelow(elements: HTMLCollection, top: number): Element | undefined {
  let [from, to] = [0, elements.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (elements[middle]!.getBoundingClientRect().bottom > top) to = middle;
    else from = middle + 1;
  }
  return elements[from];
}
