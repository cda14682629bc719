// A text that grows. Blocks that can no longer change stay as they are: only the last ones are
// read and drawn again.
import { codeBlock } from "./codeblock";
import type { CodeBlock } from "./codeblock";
import { make } from "./dom";
import { blocksOf, renderBlock, renderMarkdown } from "./markdown";

/** A last block longer than this is cut where a reader sees no harm, so that drawing it again stays cheap. */
const longBlock = 8_000;

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

export class MarkdownStream {
  readonly element = make("div", { class: "markdown" });
  private text = "";
  private complete = false;
  /** Where the tail begins, which is drawn again. */
  private tailAt = 0;
  private tailNodes: ChildNode[] = [];
  private code: OpenCode | undefined;

  /** Shows a text. complete: nothing more comes. */
  show(text: string, complete: boolean): void {
    if (text === this.text && complete === this.complete) return;
    this.complete = complete;
    if (text !== this.text && text.startsWith(this.text)) {
      const added = text.slice(this.text.length);
      this.text = text;
      if (!this.appendCode(added)) this.drawTail();
    } else if (text !== this.text) {
      this.reset();
      this.text = text;
      this.drawTail();
    }
    // A definition of a link may stand behind its use.
    if (complete && this.tailAt > 0 && text.length <= wholeText && /^\[[^\]\n]+\]:/m.test(text)) {
      this.reset();
      this.element.append(renderMarkdown(text));
      this.text = text;
      this.tailAt = text.length;
    }
  }

  private reset(): void {
    this.element.replaceChildren();
    this.text = "";
    this.tailAt = 0;
    this.tailNodes = [];
    this.code = undefined;
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
    this.cutLong();
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
      this.element.append(fragment);
      // Once another block has begun, the one before stays as it is.
      if (i === last) this.tailNodes = nodes;
    }
    if (last > 0) this.tailAt += starts[blocks[last]!.from] ?? 0;
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

  /** cutLong settles the beginning of a very long paragraph, or list. */
  private cutLong(): void {
    while (this.text.length - this.tailAt > 2 * longBlock) {
      const tail = this.text.slice(this.tailAt);
      const blocks = blocksOf(tail.slice(0, 2 * longBlock));
      const starts = lineStarts(tail);
      const last = blocks.at(-1);
      if (!last || last.tokens[0]?.type === "fence") return;
      // Whole blocks before the last one are settled by drawTail.
      if (last.from > 0 && (starts[last.from] ?? 0) > longBlock / 2) return;
      const at = cutAt(tail);
      const nodes = [...renderMarkdown(tail.slice(0, at)).childNodes];
      for (const node of this.tailNodes) node.remove();
      this.tailNodes = [];
      this.element.append(...nodes);
      this.tailAt += at;
    }
  }
}

/** cutAt is where a long text is cut: at a line's end, else behind a word, else anywhere. */
function cutAt(tail: string): number {
  const part = tail.slice(0, longBlock);
  const line = part.lastIndexOf("\n");
  if (line > longBlock / 2) return line + 1;
  const word = part.lastIndexOf(" ");
  return word > longBlock / 2 ? word + 1 : longBlock;
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
