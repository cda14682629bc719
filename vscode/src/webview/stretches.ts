// The entries of a transcript, in stretches of some each. What is far from the view costs the browser nothing
// (content-visibility), but for a look at each stretch in each frame: of thousands of entries that were too many.

/** Entries of a stretch. */
const size = 16;

export class Stretches {
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
export class Arrangement {
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
    if (stretch !== null && (stretch.childElementCount < size || (next !== null && next !== stretch.firstElementChild))) return stretch;
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
