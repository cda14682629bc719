// Markdown that grows. Finished blocks stay unchanged. Only the last ones are parsed and drawn again.
import { button, inTurns, make, piecesOf, setText } from "./dom";
import { blocksOf, renderBlock, renderMarkdown } from "./markdown";
import { codeBlock, colourCode } from "./output";
import type { CodeBlock } from "./output";

/** A last block longer than twice this is cut at a harmless place, so that drawing it again stays cheap. */
const longBlock = 3_000;

/** Blocks that are laid out together. */
const blocksOfPart = 12;

/** The piece of a text that is drawn at once, in characters. */
const pieceLength = 2_000;

/** A longer text is not parsed again when it is complete. */
const wholeText = 100_000;

/** The limit for the further rows of a table, in characters. */
const longestRows = 300_000;

/** The limit of Markdown in a text, in characters. Code blocks and further table rows do not count. The rest is plain text. */
const longestMarkdown = 200_000;

/** An open code block, to which further text is appended. */
interface OpenCode {
  view: CodeBlock;
  /** A line that ends it. */
  end: RegExp;
  /** The beginning of the last line, which may become the end of the block. */
  pending: string;
  /** The last line has begun, and cannot become the end. */
  within: boolean;
}

/** The longest line that may become the end of a code block, in characters. */
const longestEnd = 1_000;

/** A long table. Its further rows are counted, and shown on request. */
interface LongTable {
  /** Its first two lines. */
  head: string;
  /** Where its further rows begin. */
  from: number;
  /** The offset up to which rows are counted, and their number. */
  read: number;
  /** The offset up to which the end of the next row was searched. */
  searched: number;
  count: number;
  note: HTMLElement;
}

/** The text after the limit of Markdown: plain text, shown on request. */
interface Rest {
  /** The offset of the text that is not shown. */
  from: number;
  note: HTMLElement;
  count: HTMLElement;
}

/** The view of a Markdown text that grows. */
export class MarkdownStream {
  readonly element = make("div", { class: "markdown" });
  /** The part that gets further blocks. The browser lays out only the parts near the view. */
  private part: HTMLElement | undefined;
  private text = "";
  private complete = false;
  /** The offset of the tail, which is drawn again. */
  private tailAt = 0;
  private tailNodes: ChildNode[] = [];
  /** The tail continues a block that was cut. */
  private cutBefore = false;
  private code: OpenCode | undefined;
  private table: LongTable | undefined;
  /** The number of characters parsed as Markdown. */
  private read = 0;
  private rest: Rest | undefined;

  /**
   * Shows a text. complete: it will not grow. A long text is drawn piece by piece until a deadline on the clock of
   * performance.now. Returns true if there is more to draw: call show again.
   */
  show(text: string, complete: boolean, until = Number.POSITIVE_INFINITY): boolean {
    if (text === this.text && complete === this.complete) return false;
    this.complete = false;
    if (!text.startsWith(this.text)) this.reset();
    for (let pieces = 0; this.text.length < text.length; pieces++) {
      if (this.read >= longestMarkdown && !this.code && !this.table) {
        this.rest ??= this.startRest(this.text.length);
        this.text = text;
        this.showRest(this.rest);
        break;
      }
      if (pieces > 0 && performance.now() > until) return true;
      const added = text.slice(this.text.length, pieceEnd(text, this.text.length));
      this.text = text.slice(0, this.text.length + added.length); // slice, since joining would copy all of it each time
      this.complete = complete && this.text.length === text.length;
      if (this.appendCode(added)) continue;
      if (!this.table) this.read += added.length;
      this.drawTail();
    }
    this.complete = complete;
    if (complete && this.table) this.drawTail();
    // A link may be defined after its use.
    if (complete && this.tailAt > 0 && text.length <= wholeText && /^\[[^\]\n]+\]:/m.test(text)) {
      this.reset();
      for (const block of blocksOf(text)) this.place().append(renderBlock(block));
      this.text = text;
      this.tailAt = text.length;
    }
    if (complete) colourCode(this.element);
    return false;
  }

  /** place returns the part for further blocks, and begins a new one if it is full. */
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
    this.read = 0;
    this.rest = undefined;
  }

  /** showRest updates the note about the text that is not shown. */
  private showRest({ from, note, count }: Rest): void {
    note.hidden = from === this.text.length;
    setText(count, `This message is too long to be shown as Markdown: ${this.text.length - from} more characters.`);
  }

  private startRest(from: number): Rest {
    const count = make("span");
    const all = button({
      class: "text-button", label: "Show them as plain text",
      press: () => {
        const plain = make("div", { class: "plain" });
        rest.note.before(plain);
        inTurns(piecesOf(this.text.slice(rest.from)), plain, (piece) => make("span", { text: piece }));
        rest.from = this.text.length;
        this.showRest(rest);
      },
    });
    const rest: Rest = { from, note: make("p", { class: "note" }, count, " ", all), count };
    this.element.append(rest.note);
    return rest;
  }

  /** appendCode appends text to an open code block. Returns false if the tail has to be parsed again. */
  private appendCode(added: string): boolean {
    if (!this.code) return false;
    const { end, view } = this.code;
    const more = this.code.pending + added;
    const lines = more.split("\n");
    const begins = (line: number): boolean => line > 0 || !this.code!.within;
    if (lines.some((line, i) => begins(i) && end.test(line))) {
      this.code = undefined;
      return false;
    }
    // A line that may become the end of the block waits until it is complete.
    const keep = begins(lines.length - 1) ? possibleEnd(lines) : "";
    this.code.within = lines.at(-1) !== "" ? keep === "" : !begins(lines.length - 1);
    this.code.pending = keep;
    const ready = more.slice(0, more.length - keep.length);
    if (ready !== "") view.append(ready);
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
      if (i < last) colourCode(fragment);
      this.place(continued).append(fragment);
      // A block is final once another one has begun.
      if (i === last) this.tailNodes = nodes;
    }
    // The last line of a code block may be very long. Its further text is parsed separately.
    if (last === 0 && !this.code && blocks[0]!.tokens[0]!.type === "fence" && tail.includes("\n") && tail.length - tail.lastIndexOf("\n") > longestEnd) {
      this.tailAt = this.text.length;
      this.tailNodes = [];
    }
    if (last > 0) {
      this.tailAt += starts[blocks[last]!.from] ?? 0;
      this.cutBefore = false;
    }
  }

  /** openCode returns the open code block that a text consists of. undefined: it is something else, or the block has ended. */
  private openCode(text: string): OpenCode | undefined {
    // The lookahead makes the fence a whole run. Without it, each part of a long run would be tried as a fence.
    const head = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^\n]*)\n/.exec(text);
    if (!head) return undefined;
    const [whole, fence, info] = [head[0], head[1]!, head[2]!.trim()];
    if (fence.startsWith("`") && info.includes("`")) return undefined;
    const end = new RegExp(`^ {0,3}${fence[0]!}{${fence.length},}\\s*$`);
    const lines = text.slice(whole.length).split("\n");
    if (lines.some((line) => end.test(line))) return undefined;
    const keep = possibleEnd(lines);
    const view = codeBlock("", info.split(/\s+/, 1)[0] ?? "");
    const body = text.slice(whole.length, text.length - keep.length);
    if (body !== "") view.append(body);
    return { view, end, pending: keep, within: lines.at(-1) !== "" && keep === "" };
  }

  /** cutLong finishes the beginning of a very long paragraph or list, and counts the rows of a long table. */
  private cutLong(): void {
    while (this.text.length - this.tailAt > 2 * longBlock) {
      const tail = this.text.slice(this.tailAt);
      const part = tail.slice(0, 2 * longBlock);
      const [first, second] = blocksOf(part);
      if (!first) {
        // The part shows nothing, such as blank lines.
        this.tailAt += part.lastIndexOf("\n") + 1 || part.length;
        continue;
      }
      const type = first.tokens[0]?.type;
      // drawTail finishes whole blocks before the last one, and appendCode extends code after its first line.
      if (second || (type === "fence" && part.includes("\n", first.tokens[0]!.markup.length))) return;
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
      this.table = { head: tail.split("\n", 2).join("\n"), from: this.tailAt, read: this.tailAt, searched: this.tailAt, count: 0, note: make("p", { class: "note" }) };
      this.place().append(this.table.note);
      if (!this.countRows(this.table)) return;
    }
  }

  /** countRows counts the further rows of a table. Returns true if the table has ended. */
  private countRows(table: LongTable): boolean {
    const { head, from, note } = table;
    let ended = false;
    // Only new text is read. A partial last line counts, and is read again.
    for (let end: number; !ended && (end = this.text.indexOf("\n", table.searched)) !== -1; ) {
      ended = this.text.slice(table.read, end).trim() === "";
      if (ended) break;
      table.count++;
      table.read = table.searched = end + 1;
    }
    if (!ended) table.searched = this.text.length;
    const last = ended ? "" : this.text.slice(table.read, table.read + longBlock);
    const count = table.count + (last.trim() === "" ? 0 : 1);
    note.textContent = count === 0 ? "" : `… and ${count} more rows`;
    if (!this.complete && !ended) return false;
    const end = (ended ? table.read : this.text.length) - from;
    if (count > 0) {
      const rows = this.text.slice(from, from + end).trimEnd();
      const drawn = rows.length > longestRows ? rows.slice(0, rows.lastIndexOf("\n", longestRows) + 1 || longestRows) : rows;
      const show = button({
        class: "text-button", label: `Show ${count} more rows`,
        press: () => {
          note.before(renderMarkdown(`${head}\n${drawn}`));
          if (drawn.length === rows.length) note.remove();
          else note.textContent = "The table is too long to be shown here: open the session as text.";
        },
      });
      note.replaceChildren(show);
    }
    this.table = undefined;
    this.tailAt = from + end;
    return true;
  }
}

/** cutAt returns where to cut a long text: before a list item, or after a line, a sentence or a word. 0: nowhere yet. */
function cutAt(tail: string, isList: boolean): number {
  const part = tail.slice(0, longBlock);
  if (isList) {
    // Never inside an item: without its beginning, its lines would have another meaning.
    const items = [...tail.slice(0, 8 * longBlock).matchAll(/^(?:[-*+]|\d{1,9}[.)])\s/gm)].map(({ index }) => index).filter((index) => index > 0);
    return items.filter((index) => index <= longBlock).at(-1) ?? items[0] ?? (tail.length > 8 * longBlock ? longBlock : 0);
  }
  for (const end of ["\n", ". ", " "]) {
    const at = part.lastIndexOf(end);
    if (at > longBlock / 2) return at + end.length;
  }
  return longBlock;
}

/** possibleEnd returns the last line, if it may become the end of a code block. */
function possibleEnd(lines: readonly string[]): string {
  const last = lines.at(-1)!;
  return last.length <= longestEnd && /^ {0,3}[`~]*\s*$/.test(last) ? last : "";
}

/** pieceEnd returns the end of the piece that begins at from: the end of a line, unless the line is longer than a piece. */
function pieceEnd(text: string, from: number): number {
  if (text.length - from <= 2 * pieceLength) return text.length;
  // Only the piece is searched: the line may begin megabytes before.
  const line = text.slice(from, from + pieceLength + 1).lastIndexOf("\n");
  return line >= 0 ? from + line + 1 : from + pieceLength;
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
