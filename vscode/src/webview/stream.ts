// A text that grows. Blocks that can no longer change stay as they are: only the last ones are
// read and drawn again.
import { codeBlock } from "./codeblock";
import type { CodeBlock } from "./codeblock";
import { button, make } from "./dom";
import { blocksOf, renderBlock, renderMarkdown } from "./markdown";

/** A last block longer than twice this is cut where a reader sees no harm, so that drawing it again stays cheap. */
const longBlock = 3_000;

/** Blocks that are laid out together. */
const blocksOfPart = 12;

/** How much of a text is taken at once, in characters. */
const pieceLength = 2_000;

/** Whole texts longer than this are not read a second time when they are complete. */
const wholeText = 100_000;

/** A code block that is still open, and grows by what comes. */
interface OpenCode {
  view: CodeBlock;
  /** A line that ends it. */
  end: RegExp;
  /** The beginning of its last line: it may become its end. */
  pending: string;
}

/** A table that has become long: its further rows are counted, and shown when somebody wants them. */
interface LongTable {
  /** Its first two lines. */
  head: string;
  /** Where its further rows begin. */
  from: number;
  note: HTMLElement;
}

export class MarkdownStream {
  readonly element = make("div", { class: "markdown" });
  /** Where blocks are put now. The browser lays out what is near the view, part by part. */
  private part: HTMLElement | undefined;
  private text = "";
  private complete = false;
  /** Where the tail begins, which is drawn again. */
  private tailAt = 0;
  private tailNodes: ChildNode[] = [];
  /** The tail goes on with what was cut. */
  private cutBefore = false;
  private code: OpenCode | undefined;
  private table: LongTable | undefined;

  /**
   * Shows a text. complete: nothing more comes. A long one is taken piece by piece, as if it came so, until a time
   * (that of performance.now); true: there is more of it, and show is to be called again.
   */
  show(text: string, complete: boolean, until = Number.POSITIVE_INFINITY): boolean {
    if (text === this.text && complete === this.complete) return false;
    this.complete = false;
    if (!text.startsWith(this.text)) this.reset();
    for (let pieces = 0; this.text.length < text.length; pieces++) {
      if (pieces > 0 && performance.now() > until) return true;
      const added = text.slice(this.text.length, pieceEnd(text, this.text.length));
      this.text += added;
      this.complete = complete && this.text.length === text.length;
      if (!this.appendCode(added)) this.drawTail();
    }
    this.complete = complete;
    if (complete && this.table) this.drawTail();
    // A definition of a link may stand behind its use.
    if (complete && this.tailAt > 0 && text.length <= wholeText && /^\[[^\]\n]+\]:/m.test(text)) {
      this.reset();
      for (const block of blocksOf(text)) this.place().append(renderBlock(block));
      this.text = text;
      this.tailAt = text.length;
    }
    return false;
  }

  /** place is the part that further blocks go to; a full one is followed by another. */
  private place(continued = false): HTMLElement {
    if (!this.part || this.part.childElementCount >= blocksOfPart) {
      this.part = make("div", { class: continued ? "part continued" : "part" });
      this.element.append(this.part);
    }
    return this.part;
  }

  private reset(): void {
    this.element.replaceChildren();
    this.part = undefined;
    this.text = "";
    this.tailAt = 0;
    this.tailNodes = [];
    this.cutBefore = false;
    this.code = undefined;
    this.table = undefined;
  }

  /** appendCode adds to an open code block; false: the tail has to be read again. */
  private appendCode(added: string): boolean {
    if (!this.code) return false;
    const lines = (this.code.pending + added).split("\n");
    if (lines.some((line) => this.code!.end.test(line))) {
      this.code = undefined;
      return false;
    }
    const last = lines.at(-1)!;
    // What may yet become the end of the block waits until its line is whole.
    const keep = /^ {0,3}[`~]*\s*$/.test(last) ? last : "";
    const ready = (this.code.pending + added).slice(0, (this.code.pending + added).length - keep.length);
    this.code.pending = keep;
    if (ready !== "") this.code.view.append(ready);
    return true;
  }

  private drawTail(): void {
    if (this.table && !this.countRows(this.table)) return;
    this.cutLong();
    if (this.table) return;
    const tail = this.text.slice(this.tailAt);
    const blocks = blocksOf(tail);
    for (const node of this.tailNodes) node.remove();
    this.tailNodes = [];
    this.code = undefined;
    const starts = lineStarts(tail);
    const last = blocks.length - 1;
    for (const [i, block] of blocks.entries()) {
      const openCode = i === last ? this.openCode(tail.slice(starts[block.from])) : undefined;
      const fragment = openCode ? fragmentOf(openCode.view.element) : renderBlock(block);
      if (openCode) this.code = openCode;
      const nodes = [...fragment.childNodes];
      const continued = i === 0 && this.cutBefore;
      if (continued && nodes[0] instanceof HTMLElement) nodes[0].classList.add("continued");
      this.place(continued).append(fragment);
      // Once another block has begun, the one before stays as it is.
      if (i === last) this.tailNodes = nodes;
    }
    if (last > 0) {
      this.tailAt += starts[blocks[last]!.from] ?? 0;
      this.cutBefore = false;
    }
  }

  /** openCode is the code block that a text is, if nothing of it is its end. */
  private openCode(text: string): OpenCode | undefined {
    const head = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/.exec(text);
    if (!head) return undefined;
    const [whole, fence, info] = [head[0], head[1]!, head[2]!.trim()];
    if (fence.startsWith("`") && info.includes("`")) return undefined;
    const end = new RegExp(`^ {0,3}${fence[0]!}{${fence.length},}\\s*$`);
    const lines = text.slice(whole.length).split("\n");
    if (lines.some((line) => end.test(line))) return undefined;
    const last = lines.at(-1)!;
    const keep = /^ {0,3}[`~]*\s*$/.test(last) ? last : "";
    const view = codeBlock("", info.split(/\s+/, 1)[0] ?? "");
    const body = text.slice(whole.length, text.length - keep.length);
    if (body !== "") view.append(body);
    return { view, end, pending: keep };
  }

  /** cutLong settles the beginning of a very long paragraph, or list; the rows of a long table are counted. */
  private cutLong(): void {
    while (this.text.length - this.tailAt > 2 * longBlock) {
      const tail = this.text.slice(this.tailAt);
      const [first, second] = blocksOf(tail.slice(0, 2 * longBlock));
      const type = first?.tokens[0]?.type;
      // Whole blocks before the last one are settled by drawTail, and code grows by itself.
      if (!first || second || type === "fence") return;
      const at = type === "table_open" ? tail.lastIndexOf("\n", longBlock) + 1 : cutAt(tail, type === "bullet_list_open" || type === "ordered_list_open");
      if (at <= 0) return;
      const nodes = [...renderMarkdown(tail.slice(0, at)).childNodes];
      for (const node of this.tailNodes) node.remove();
      this.tailNodes = [];
      const continued = type !== "table_open" && this.cutBefore;
      if (continued && nodes[0] instanceof HTMLElement) nodes[0].classList.add("continued");
      this.cutBefore = true;
      this.place(continued).append(...nodes);
      this.tailAt += at;
      if (type !== "table_open") continue;
      this.table = { head: tail.split("\n", 2).join("\n"), from: this.tailAt, note: make("p", { class: "note" }) };
      this.place().append(this.table.note);
      if (!this.countRows(this.table)) return;
    }
  }

  /** countRows tells how many more rows a table has; true: it is at its end. */
  private countRows({ head, from, note }: LongTable): boolean {
    const rest = this.text.slice(from);
    const end = /\n[ \t]*(?:\n|$)/.exec(rest)?.index ?? (rest.trim() === "" ? 0 : rest.length);
    const rows = rest.slice(0, end);
    const count = rows.trim() === "" ? 0 : rows.trim().split("\n").length;
    note.textContent = count === 0 ? "" : `… and ${count} more rows`;
    if (!this.complete && !/\n[ \t]*\n/.test(rest)) return false;
    if (count > 0) {
      const show = button({ class: "text-button", label: `Show ${count} more rows`, press: () => note.replaceWith(renderMarkdown(`${head}\n${rows}`)) });
      note.replaceChildren(show);
    }
    this.table = undefined;
    this.tailAt = from + end;
    return true;
  }
}

/** cutAt is where a long text is cut: before an item of a list, at a line's or a sentence's end, behind a word; 0: nowhere yet. */
function cutAt(tail: string, isList: boolean): number {
  const part = tail.slice(0, longBlock);
  if (isList) {
    // Not inside of an item, whose lines mean something else without its beginning.
    const items = [...tail.slice(0, 8 * longBlock).matchAll(/^(?:[-*+]|\d{1,9}[.)])\s/gm)].map(({ index }) => index).filter((index) => index > 0);
    return items.filter((index) => index <= longBlock).at(-1) ?? items[0] ?? (tail.length > 8 * longBlock ? longBlock : 0);
  }
  for (const end of ["\n", ". ", " "]) {
    const at = part.lastIndexOf(end);
    if (at > longBlock / 2) return at + end.length;
  }
  return longBlock;
}

/** pieceEnd is where the piece of a text ends that begins at from: with a line, unless that is longer than the piece. */
function pieceEnd(text: string, from: number): number {
  if (text.length - from <= 2 * pieceLength) return text.length;
  const line = text.lastIndexOf("\n", from + pieceLength);
  return line >= from ? line + 1 : from + pieceLength;
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function fragmentOf(node: Node): DocumentFragment {
  const fragment = document.createDocumentFragment();
  fragment.append(node);
  return fragment;
}
