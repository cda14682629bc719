// The transcript: the entries one below the other. It follows what comes while its end is seen,
// asks for older pages at its top, and draws no longer at once than a person would notice.
import type { Changes } from "./conversation";
import { button, make } from "./dom";
import type { Entry } from "./entries";
import { Views } from "./entryview";
import type { OpenQuestion } from "./questions";
import { QuestionView } from "./questionview";
import { ToolView } from "./toolview";
import type { Actions } from "./view";

/** How long one drawing may take, in milliseconds, before the rest waits for the next frame. The browser needs several times as long to lay it out. */
const budget = 5;

/** How near the end somebody who scrolls down has to come to be taken along again, in pixels. */
const nearEnd = 40;

/** For how long somebody who asked for the end is kept there while what is near gets its height, in milliseconds. */
const settling = 1_000;

/** How near the beginning older pages are asked for, in pixels. */
const nearTop = 400;

export class Transcript {
  readonly element: HTMLElement;
  private readonly log = make("div", { class: "log", is: { role: "log", "aria-label": "Conversation", "aria-live": "off", "aria-relevant": "additions" } });
  private readonly loose = make("div", { class: "questions loose" });
  private readonly older = make("div", { class: "older", is: { role: "status" } });
  private readonly jump: HTMLButtonElement;
  private readonly stretches = new Stretches(this.log);
  private readonly views: Views;
  private readonly questions = new Map<string, QuestionView>();
  private readonly dirty = new Set<string>();
  private orderChanged = false;
  private following = true;
  private lastTop = 0;
  private lastHeight = 0;
  private lastDistance = 0;
  private settledAt = 0;
  /** Whether the mouse is pressed on the conversation: what is under it stays there, to be clicked or selected. */
  private pressed = false;
  /** Whether the mouse was pressed last where the scroll bar is: the view is moved by hand then. */
  private onScrollBar = false;
  /** What somebody has opened at the end, and the highest place that its top may come to, in the window's pixels. */
  private opened: { element: Element; top: number } | undefined;

  /** Called when older entries may be wanted. */
  onTop: () => void = () => {};
  /** Called when the questions that are seen may be others. */
  onScroll: () => void = () => {};

  constructor(
    private readonly actions: Actions,
    /** Entries that are shown elsewhere: prompts that wait for their turn. */
    private readonly hidden: (entry: Entry) => boolean,
  ) {
    this.views = new Views(actions);
    this.element = make("main", { class: "transcript", is: { tabindex: "-1" } }, this.older, this.log, this.loose);
    this.jump = button({ class: "jump", icon: "down", label: "Newest", press: () => this.toEnd() });
    this.jump.hidden = true;
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.takeEnd();
    this.keepOpened();
    this.leaveToSelect();
    // What is opened or loaded grows, and what stands below takes room: the end stays the end.
    const sizes = new ResizeObserver(() => {
      if (this.following) this.pin();
      else this.lastDistance = this.distance();
    });
    sizes.observe(this.log);
    sizes.observe(this.element);
  }

  get jumpButton(): HTMLButtonElement {
    return this.jump;
  }

  /** Not all entries that are there have been drawn yet. */
  get unfinished(): boolean {
    return this.orderChanged;
  }

  /** Says what stands above the first entry, such as that there is more. */
  setOlder(...children: Array<Node | string>): void {
    this.older.replaceChildren(...children);
  }

  /** Draws what has changed. true: not all was done, and it is to be called again in the next frame. */
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
    return more;
  }

  /** Shows a question and puts the keyboard there. */
  showQuestion(id: string): void {
    const view = this.questions.get(id);
    if (!view) return;
    this.following = false;
    for (let at = view.element.parentElement; at && at !== this.element; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
    view.element.scrollIntoView({ block: "center" });
    view.focus();
  }

  /** Whether a question is seen. */
  sees(id: string): boolean {
    const view = this.questions.get(id);
    if (!view) return false;
    const [own, frame] = [view.element.querySelector(".choices")?.getBoundingClientRect(), this.element.getBoundingClientRect()];
    return own !== undefined && own.height > 0 && own.bottom > frame.top && own.top < frame.bottom;
  }

  toEnd(): void {
    this.following = true;
    this.opened = undefined;
    this.settledAt = performance.now() + settling;
    this.pin();
    this.scrolled();
  }

  /** arrange puts the entries into their order, from the newest on; true: there are older ones yet. */
  private arrange(until: number): boolean {
    const entries = this.actions.conversation.entries;
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

  /** staying notes what is seen; the function that it returns has it stand where it stood, whatever has come above it. */
  private staying(): (() => void) | undefined {
    const { top } = this.element.getBoundingClientRect();
    const seen = this.stretches.below(top);
    if (!seen) return undefined;
    const before = seen.getBoundingClientRect().top;
    this.element.style.overflowAnchor = "none"; // the browser does so, too, but not at the very beginning
    return () => {
      this.element.scrollTop += seen.getBoundingClientRect().top - before;
      this.element.style.overflowAnchor = "";
      this.onScroll();
    };
  }

  private drawQuestions(): void {
    const open = this.actions.conversation.questions;
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, view] of this.questions) {
      if (ids.has(id)) continue;
      this.questions.delete(id);
      this.ended(id, view);
    }
    for (const question of open) {
      let view = this.questions.get(question.id);
      if (!view) this.questions.set(question.id, (view = new QuestionView(question, this.actions)));
      view.update(question);
      const place = this.placeOf(question);
      if (view.element.parentElement !== place) place.append(view.element);
    }
  }

  /** placeOf is where a question stands: at its tool call, else at the end. */
  private placeOf({ tool }: OpenQuestion): HTMLElement {
    const view = tool === undefined ? undefined : this.views.known(tool);
    if (!(view instanceof ToolView) || !view.element.isConnected) return this.loose;
    for (let at = view.element.parentElement; at && at !== this.element; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
    return view.questions;
  }

  /** ended leaves a word where a question stood that somebody else has answered. */
  private ended(id: string, view: QuestionView): void {
    const outcome = this.actions.conversation.outcome(id);
    const hadFocus = view.element.contains(document.activeElement);
    const words = this.actions.endOf(id, outcome);
    if (words === undefined) view.element.remove();
    else view.element.replaceWith(make("p", { class: "note", text: words }));
    if (hadFocus) this.actions.focusPrompt();
  }

  /** takeEnd has the key End go to the end by itself: of what is far the browser knows only about how high it is. */
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
   * leaveToSelect keeps the text still that a person presses the mouse on, and leaves the end when they select some.
   * Otherwise the view follows again when they release the button.
   */
  private leaveToSelect(): void {
    this.log.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) this.pressed = true;
    });
    const release = (): void => {
      if (!this.pressed) return;
      this.pressed = false;
      if (this.following) this.pin();
    };
    for (const type of ["pointerup", "pointercancel", "blur"] as const) window.addEventListener(type, release);
    document.addEventListener("selectionchange", () => {
      const selection = document.getSelection();
      if (selection && !selection.isCollapsed && this.log.contains(selection.anchorNode)) this.leaveEnd();
    });
  }

  /** Whether something within the transcript, such as a long output, takes a wheel that turns up. */
  private scrollsWithin(target: EventTarget | null): boolean {
    for (let at = target instanceof Element ? target : null; at && at !== this.element; at = at.parentElement) if (at.scrollTop > 0) return true;
    return false;
  }

  /**
   * leaveEnd stays behind what comes. It is called before the browser scrolls up, which it does bit by bit: while
   * the agent writes, the view would be put back to the end after each of them.
   */
  private leaveEnd(): void {
    if (!this.following || this.element.scrollTop === 0) return;
    this.following = false;
    this.opened = undefined;
    this.jump.hidden = false;
  }

  /** keepOpened has what somebody opens stay in view, from where it begins, though the end goes on. */
  private keepOpened(): void {
    this.log.addEventListener("click", ({ target }) => {
      const element = target instanceof Element ? target.closest("summary, .text-button")?.closest("details, .output") : undefined;
      if (element) this.opened = { element, top: Math.min(element.getBoundingClientRect().top, this.element.getBoundingClientRect().top) };
    }, { capture: true });
  }

  /** stayAtOpened moves the view back from the end as far as what was opened would leave it; it is followed no more then. */
  private stayAtOpened({ element, top }: { element: Element; top: number }): void {
    const closed = !element.isConnected || (element instanceof HTMLDetailsElement && !element.open);
    const over = top - element.getBoundingClientRect().top;
    if (closed || over < 1) return;
    this.leaveEnd();
    this.element.scrollTop -= over;
  }

  /** distance is how far the view is from the end, in pixels. */
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
    // What came since the view was put to the end moves nobody away from it, nor does what turns out to be
    // lower than it was thought to be: only scrolling up does. Only who comes nearer to the end is taken along again.
    // What a scroll bar brings into view may well be lower than it was thought to be.
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

class Stretches {
  constructor(private readonly log: HTMLElement) {}

  /** Begins to put entries into their order, from the last one on. */
  arrange(): Arrangement {
    return new Arrangement(this.log);
  }

  /** The first entry that ends below a line across the page. */
  below(top: number): Element | undefined {
    const stretch = firstBelow(this.log.children, top);
    return stretch && firstBelow(stretch.children, top);
  }
}

/** Entries that stand where they should stay untouched: who has selected something there keeps it. */
class Arrangement {
  private stretch: Element | null;
  /** What was put last, before which the next one comes. */
  private next: Element | null = null;

  constructor(private readonly log: HTMLElement) {
    this.stretch = log.lastElementChild;
  }

  /** Puts an entry before those that were put so far. */
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

  /** Ends it: stretches of which nothing is left go. */
  end(): void {
    for (const stretch of [...this.log.children]) if (stretch.childElementCount === 0) stretch.remove();
  }

  /** room is where one more entry has place: here, else in a new stretch. */
  private room(): Element {
    const { stretch, next } = this;
    // In the middle of a full stretch it is put all the same, since the others would have to move.
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

/** firstBelow looks at few of the elements: they stand one below the other. */
function firstBelow(elements: HTMLCollection, top: number): Element | undefined {
  let [from, to] = [0, elements.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (elements[middle]!.getBoundingClientRect().bottom > top) to = middle;
    else from = middle + 1;
  }
  return elements[from];
}
