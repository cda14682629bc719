// Long monospaced texts, first shown in part: code blocks, output of tools, and diffs.
import Anser from "anser";
import { formatPatch, parsePatch, structuredPatch } from "diff";
import type { StructuredPatch } from "diff";
import { clipped, visible } from "../hub/groups";
import { button, cutBefore, fill, inTurns, loadButton, make, piecesOf } from "./dom";
import type { FileDiff } from "./entries";
import { highlighted, languageOf, whenSeen } from "./highlight";
import type { Actions, CodeUse } from "./view";

/** How much of a code block, and of each of its lines, is shown at first, in characters. */
const longestBlock = 200_000;
const longestCodeLine = 5_000;

/** A code block that can grow. */
export interface CodeBlock {
  element: HTMLElement;
  /** Appends text. */
  append(text: string): void;
}

/** A block of code, with buttons that copy, insert and run it as it was written. */
export function codeBlock(content: string, language: string): CodeBlock {
  let whole = "";
  let shown = 0;
  let lineLength = 0;
  let showsAll = false;
  const code = make("code");
  const all = button({
    class: "text-button", label: "Show all",
    press: () => {
      all.hidden = true;
      showsAll = true;
      code.replaceChildren();
      inTurns(piecesOf(whole.replace(/\n$/, "")), code, (piece) => make("span", { text: piece }));
    },
  });
  all.hidden = true;
  /** Shows more text, up to the limits. A very long line would block the browser. */
  const show = (text: string): void => {
    if (showsAll) return fill(code, text);
    let part = "";
    for (let at = 0; at < text.length && shown < longestBlock; ) {
      const newline = text.indexOf("\n", at);
      const end = newline === -1 ? text.length : newline;
      const last = cutBefore(text, Math.min(end, at + Math.max(0, longestCodeLine - lineLength)));
      part += text.slice(at, last);
      if (newline !== -1) part += "\n";
      if (last < end) all.hidden = false;
      lineLength = newline === -1 ? lineLength + end - at : 0;
      shown += last - at + 1;
      at = end + 1;
    }
    fill(code, ...piecesOf(part));
    if (shown >= longestBlock) all.hidden = false;
  };
  const element = make(
    "div",
    { class: "code-block" },
    make(
      "div", { class: "code-head" }, make("span", { class: "code-language", text: language }),
      useButton("insert", () => whole), shells.has(language.toLowerCase()) && useButton("run", () => whole), copyButton(() => whole, "Copy code"),
    ),
    make("pre", { is: { tabindex: "0" } }, code),
    all,
  );
  whole = content;
  show(content.replace(/\n$/, ""));
  let length = -1;
  uncoloured.set(element, () => {
    if (!all.hidden || showsAll || length === whole.length) return;
    length = whole.length;
    const lines = highlighted(whole === content ? content.replace(/\n$/, "") : whole, language);
    if (lines) code.replaceChildren(...lines.flatMap((line, i) => (i === 0 ? [line] : ["\n", line])));
  });
  return {
    element,
    append: (text) => {
      whole += text;
      show(text);
    },
  };
}

/** The functions that highlight a code block, by its element. */
const uncoloured = new WeakMap<Element, () => void>();

/** Highlights the code blocks in an element when the user sees them. The caller has finished these blocks. */
export function colourCode(within: ParentNode): void {
  for (const block of within.querySelectorAll(".code-block")) {
    const colour = uncoloured.get(block);
    if (colour) whenSeen(block, colour);
  }
}

/** The languages of code blocks that a terminal can run. */
const shells = new Set(["sh", "bash", "zsh", "fish", "shell", "console", "powershell", "pwsh", "ps1", "bat", "cmd"]);

const uses = { insert: { icon: "insert", name: "Insert code into the editor" }, run: { icon: "terminal", name: "Run code in a terminal" } } as const;

/** A button whose press useCode handles. */
function useButton(use: CodeUse, text: () => string): HTMLButtonElement {
  const { icon, name } = uses[use];
  const press = ({ target }: Event): void => void (target as Element).dispatchEvent(new CustomEvent<UsedCode>(usedCode, { bubbles: true, detail: { use, code: text() } }));
  return button({ icon, name, class: "icon-button use-code", press });
}

/** The event of a button of a code block. */
const usedCode = "duet-used-code";

interface UsedCode {
  use: CodeUse;
  code: string;
}

/** Inserts or runs the code of a block in an element when the user presses its button. */
export function useCode(root: HTMLElement, actions: Actions): void {
  root.addEventListener(usedCode, (event) => {
    const { use, code } = (event as CustomEvent<UsedCode>).detail;
    actions.useCode(use, code);
  });
}

/** A button that copies a text and confirms it. */
function copyButton(text: () => string, name: string): HTMLButtonElement {
  const copy = button({
    icon: "copy", name, class: "icon-button copy",
    press: () => {
      navigator.clipboard.writeText(text()).then(
        () => said("Copied"),
        () => said("Could not copy"),
      );
    },
  });
  const note = make("span", { class: "copy-note", is: { role: "status" } });
  const said = (what: string): void => {
    note.textContent = what;
    setTimeout(() => (note.textContent = ""), 2_000);
  };
  copy.append(note);
  return copy;
}

const headLines = 8;
const tailLines = 12;
/** How much of a line is shown at first, in characters. */
const longestOutputLine = 2_000;
/** Lines and characters that are drawn at once after "Show all". */
const linesAtOnce = 2_000;
const charactersAtOnce = 20_000;

/** The options of output. */
export interface OutputOptions {
  name: string;
  colours?: boolean;
  /** Loads all of a text that is cut, and draws it again. */
  load?: () => Promise<void>;
  /** Shows all of the text at once. */
  all?: boolean;
  /** The text is a command: the sign of a shell stands before it, which no copy has. */
  command?: boolean;
}

/** The input or output of a tool: the first and last lines, with a button that shows all of it. */
export function output(text: string, options: OutputOptions): HTMLElement {
  const element = make("div", { class: "output" });
  const lines = linesOf(text);
  const write = (to: Element, part: string[]): void => {
    if (options.colours) coloured(to, part.join("\n"));
    else fill(to, part.join("\n"));
  };
  const block = (part: string[]): HTMLElement => {
    const pre = make("pre", { is: { tabindex: "0", "aria-label": options.name } });
    write(pre, part);
    if (options.command && part[0] === lines[0]) pre.prepend(make("span", { class: "shell-sign", is: { "aria-hidden": "true" }, text: "$ " }));
    return pre;
  };
  const cut = lines.length > headLines + tailLines + 3;
  const shown = cut ? [...lines.slice(0, headLines), ...lines.slice(-tailLines)] : lines;
  const shorter = shown.map((line) => (line.length > longestOutputLine ? `${line.slice(0, longestOutputLine)}… (${line.length - longestOutputLine} more characters)` : line));
  const showAll = (): void => {
    element.replaceChildren(copy);
    inTurns(blocksOf(lines), element, block);
  };
  const copy = copyButton(() => text, `Copy ${options.name.toLowerCase()}`);
  if (options.load) {
    element.append(block(shorter.slice(0, headLines + tailLines)), loadButton("Only the beginning of this text is here.", options.load));
  } else if (options.all) {
    showAll();
  } else if (!cut && shorter.every((line, i) => line === lines[i])) {
    element.append(block(lines));
  } else {
    const hidden = cut ? lines.length - headLines - tailLines : 0;
    const all = make("button", { class: "text-button", is: { type: "button" }, text: hidden > 0 ? `Show all ${lines.length} lines (${hidden} hidden)` : "Show the whole lines" });
    all.addEventListener("click", () => {
      showAll();
      element.querySelector("pre")?.focus();
    });
    if (cut) element.append(block(shorter.slice(0, headLines)), all, block(shorter.slice(headLines)));
    else element.append(block(shorter), all);
  }
  element.prepend(copy);
  return element;
}

/** blocksOf groups lines that are drawn at once. It cuts a longer line into several. */
function blocksOf(lines: readonly string[]): string[][] {
  const blocks: string[][] = [[]];
  let characters = 0;
  for (const line of lines) {
    for (let at = 0, end: number; at === 0 || at < line.length; at = end) {
      end = line.length - at > charactersAtOnce ? partEnd(line, at) : Math.max(line.length, 1);
      const part = line.slice(at, end);
      if (characters > 0 && (characters + part.length > charactersAtOnce || blocks.at(-1)!.length >= linesAtOnce)) {
        blocks.push([]);
        characters = 0;
      }
      blocks.at(-1)!.push(part);
      characters += part.length + 1;
    }
  }
  return blocks;
}

/** partEnd returns the end of the part of a long line that begins at from. It is not within a character or an escape sequence. */
function partEnd(line: string, from: number): number {
  const end = cutBefore(line, from + charactersAtOnce);
  const escape = line.lastIndexOf("\u001b", end - 1);
  return escape > Math.max(from, end - 40) && !line.slice(escape, end).includes("m") ? escape : end;
}

/** The lines of a text as a terminal would show them. */
export function linesOf(text: string): string[] {
  const lines = withoutCursor(text).split("\n").map(overwritten);
  if (lines.at(-1) === "" && lines.length > 1) lines.pop();
  return lines;
}

/** overwritten returns the last version of a line that carriage returns overwrite. */
function overwritten(line: string): string {
  return line.slice(line.lastIndexOf("\r", line.length - 2) + 1);
}

/** withoutCursor removes the escape sequences that move the cursor. */
function withoutCursor(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g, "")
    .replace(/\u001b\[[0-9;?]*[A-Za-ln-z]/g, "");
}

function coloured(to: Element, text: string): void {
  if (!text.includes("\u001b")) return fill(to, text);
  // Anser reads a line again for each escape sequence that is no colour.
  const known = text.replace(/\u001b(?!\[[\d;]*m)/g, visible);
  for (const part of Anser.ansiToJson(known, { use_classes: true, remove_empty: true })) {
    const classes = [part.fg, part.bg && part.bg.replace("ansi-", "ansi-bg-"), ...part.decorations.map((decoration) => `ansi-${decoration}`)].filter((name) => /^[a-z-]+$/.test(name ?? "") && !name.includes("palette") && !name.includes("truecolor"));
    const span = make("span", { class: classes.join(" "), text: part.content });
    if (part.fg_truecolor && part.fg?.endsWith("truecolor")) span.style.color = `rgb(${part.fg_truecolor})`;
    if (part.bg_truecolor && part.bg?.endsWith("truecolor")) span.style.backgroundColor = `rgb(${part.bg_truecolor})`;
    to.append(span);
  }
}

/** The limit for both texts of a diff together, in characters. Only the editor shows a longer one. */
const longestDiff = 400_000;
/** The most changed lines of a text that stays in part. The time grows with the square: to 40 ms. A new file has no such limit. */
const mostEdits = 1_000;
const firstDiffLines = 60;
/** How much of a line is shown at first, in characters. */
const longestDiffLine = 2_000;

/** A change of a file: the changed lines with some context, and a button for the diff editor. */
export function fileDiff(diff: FileDiff, actions: Pick<Actions, "openDiff" | "openFile">): HTMLElement {
  return changedFile(diff.path, diff.before === undefined, diffLines(diff), () => actions.openDiff(diff), actions);
}

/** How a diff is shown. */
interface DiffOptions {
  /** How many lines are shown at first. */
  first?: number;
  /** The headers of the hunks have the true line numbers of the file. */
  numbered?: boolean;
}

function changedFile(path: string, isNew: boolean, lines: string[] | undefined, open: () => void, actions: Pick<Actions, "openFile">, options: DiffOptions = {}): HTMLElement {
  const head = make(
    "div",
    { class: "diff-head" },
    button({ class: "text-button diff-path", label: nameOf(path), tip: path, press: () => actions.openFile(path) }),
    lines && make("span", { class: "added", text: `+${countOf(lines, "+")}` }),
    lines && make("span", { class: "removed", text: `−${countOf(lines, "-")}` }),
    isNew && make("span", { class: "tag", text: "new" }),
    button({ icon: "diff", name: `Show the change of ${nameOf(path)} in the diff editor`, tip: "Open in the diff editor", press: open }),
  );
  return make("div", { class: "file-diff" }, head, lines ? unified(lines, path, options) : make("p", { class: "note", text: "The change is too long to be shown here: open it in the diff editor." }));
}

/** How many lines of a unified diff are shown at first, in all of its files. What asks for an answer stays in view below them. */
const firstUnifiedLines = 16;

/** The fewest lines of a further file that are shown at first. */
const fewestLines = 4;

/** The files of a unified diff, such as that of a question, with their line numbers. The first lines are shown, and the others are counted. A diff that is cut is shown as it is. */
export function unifiedDiff(text: string, actions: Pick<Actions, "openPatch" | "openFile">): HTMLElement[] {
  let files: ReturnType<typeof parsePatch>;
  try {
    files = parsePatch(text);
  } catch {
    return [unified(text.replace(/\n$/, "").split("\n"), "", { first: firstUnifiedLines })];
  }
  const shown = files.map((file) => ({ file, lines: linesOfPatch(file) }));
  const draw = ({ file, lines }: (typeof shown)[number], first: number): HTMLElement => {
    const path = ((file.newFileName === "/dev/null" ? file.oldFileName : file.newFileName) ?? "").replace(/^[ab]\//, "");
    return changedFile(path, file.oldFileName === "/dev/null", lines, () => actions.openPatch(path, formatPatch(file)), actions, { first, numbered: true });
  };
  const elements: HTMLElement[] = [];
  let left = firstUnifiedLines;
  while (elements.length < shown.length && (elements.length === 0 || left >= fewestLines)) {
    const next = shown[elements.length]!;
    elements.push(draw(next, left));
    left -= next.lines.length;
  }
  const others = shown.slice(elements.length);
  if (others.length === 0) return elements;
  const rest = make("div", { class: "more-files" });
  const more = button({
    class: "text-button", label: `Show ${counted(others.length, "more file")} (${counted(linesIn(others.flatMap(({ lines }) => lines)), "line")})`,
    press: () => {
      rest.replaceChildren();
      inTurns(others, rest, (other) => draw(other, firstDiffLines));
    },
  });
  rest.append(more);
  return [...elements, rest];
}

/** linesIn counts the lines of a diff, without the headers of its hunks. */
function linesIn(lines: readonly string[]): number {
  return lines.filter((line) => !line.startsWith("@@")).length;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function diffLines({ path, line, before, after }: FileDiff): string[] | undefined {
  if ((before?.length ?? 0) + after.length > longestDiff) return undefined;
  const patch = structuredPatch(path, path, before ?? "", after, "", "", { context: 3, ...(before && after && { maxEditLength: mostEdits }) });
  return patch && linesOfPatch(patch, line - 1);
}

/** linesOfPatch returns the lines of a patch. skipped is the number of lines of the file before its texts. */
function linesOfPatch({ hunks }: StructuredPatch, skipped = 0): string[] {
  return hunks.flatMap((hunk, i) => [...(i > 0 || hunk.oldStart + skipped > 1 ? [`@@ -${hunk.oldStart + skipped},${hunk.oldLines} +${hunk.newStart + skipped},${hunk.newLines} @@`] : []), ...hunk.lines.filter((line) => !line.startsWith("\\"))]);
}

function countOf(lines: readonly string[], sign: string): number {
  return lines.filter((line) => line.startsWith(sign)).length;
}

/** numbersOf returns the line numbers of the lines of a diff: in the new file, and of deleted lines in the old one. */
function numbersOf(lines: readonly string[]): Array<number | undefined> {
  let [before, after] = [1, 1];
  return lines.map((line) => {
    const header = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (header) {
      [before, after] = [Number(header[1]), Number(header[2])];
      return undefined;
    }
    if (line.startsWith("-")) return before++;
    if (!line.startsWith("+")) before++;
    return after++;
  });
}

/** Draws the lines of a diff. Without the path of the file they are not highlighted. */
export function unified(lines: readonly string[], path = "", { first = firstDiffLines, numbered = false }: DiffOptions = {}): HTMLElement {
  const pre = make("pre", { class: "diff-lines", is: { tabindex: "0", "aria-label": "Changed lines" } });
  const numbers = numbered ? numbersOf(lines) : [];
  if (numbered) {
    pre.classList.add("numbered");
    pre.style.setProperty("--digits", String(numbers.reduce((most: number, number = 0) => Math.max(most, String(number).length), 1)));
  }
  const write = (from: number, to?: number): void => {
    const part = lines.slice(from, to);
    const elements = part.map((line, i) => {
      const kind = line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : "span";
      const element = make(kind, { class: line.startsWith("@@") ? "hunk" : "line", text: line === "" ? " " : clipped(line, longestDiffLine) });
      if (numbered) element.dataset["line"] = String(numbers[from + i] ?? "");
      fill(pre, element);
      if (clipped(line, longestDiffLine) === line) return element;
      const whole = button({
        class: "text-button", label: "Show the whole line",
        press: () => {
          whole.remove();
          element.replaceChildren();
          inTurns(piecesOf(line), element, (piece) => make("span", { text: piece }));
        },
      });
      pre.append(whole);
      return element;
    });
    if (elements[0]) whenSeen(elements[0], () => colourLines(part, elements, languageOf(path)));
  };
  write(0, first);
  if (lines.length > first) {
    const rest = lines.slice(first);
    const hunks = rest.length - linesIn(rest);
    const more = button({
      class: "text-button", label: `Show ${counted(linesIn(rest), "more line")}${hunks > 0 ? ` (${counted(hunks, "more hunk")})` : ""}`,
      press: () => {
        more.remove();
        write(first);
        pre.focus({ preventScroll: true });
      },
    });
    pre.append(more);
  }
  return pre;
}

/**
 * colourLines highlights drawn lines of a diff, one hunk after the other, without blocking the page. In each hunk, the
 * lines before the change are one text, and those after it another.
 */
function colourLines(lines: readonly string[], elements: readonly Element[], language: string): void {
  const colour = (side: readonly number[]): void => {
    const drawn = side.length > 0 && highlighted(side.map((i) => lines[i]!.slice(1)).join("\n"), language);
    if (drawn) for (const [at, i] of side.entries()) elements[i]!.replaceChildren(lines[i]![0]!, drawn[at]!);
  };
  const next = (from: number): void => {
    const [before, after]: [number[], number[]] = [[], []];
    let i = from;
    for (; i < lines.length && !(lines[i]!.startsWith("@") && before.length + after.length > 0); i++) {
      const sign = lines[i]![0];
      if (sign === "-" || sign === " ") before.push(i);
      if (sign === "+" || sign === " ") after.push(i);
    }
    colour(before);
    colour(after); // also draws the lines of both again
    if (i < lines.length && elements[i]!.isConnected) setTimeout(() => next(i), 0);
  };
  next(0);
}

/** The last part of a path. */
export function nameOf(path: string): string {
  return path.split(/[\\/]/).filter((part) => part !== "").at(-1) ?? path;
}
