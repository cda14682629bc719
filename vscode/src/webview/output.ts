// What a tool got and gave back: long texts by their first and last lines, with their colours.
import Anser from "anser";
import { visible } from "../hub/groups";
import { copyButton } from "./codeblock";
import { cutBefore, fill, inTurns, loadButton, make } from "./dom";

const headLines = 8;
const tailLines = 12;
/** No line is shown longer than this at first. */
const longestLine = 2_000;
/** Lines and characters that are drawn at once when all is asked for. */
const linesAtOnce = 2_000;
const charactersAtOnce = 20_000;

export interface OutputOptions {
  name: string;
  colours?: boolean;
  /** Gets all of a text of which only the beginning is there, and has it drawn anew. */
  load?: () => Promise<void>;
  /** It is to be shown whole at once. */
  all?: boolean;
}

/** A text of a tool's, which can be shown whole. */
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
    return pre;
  };
  const cut = lines.length > headLines + tailLines + 3;
  const shown = cut ? [...lines.slice(0, headLines), ...lines.slice(-tailLines)] : lines;
  const shorter = shown.map((line) => (line.length > longestLine ? `${line.slice(0, longestLine)}… (${line.length - longestLine} more characters)` : line));
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

/** blocksOf puts lines together that are drawn at once. A longer line is cut into several. */
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

/** partEnd is where the part of a long line ends that begins at from: within no character, and within no colour. */
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

/** overwritten is what a terminal would show of a line, whose beginning may be written anew. */
function overwritten(line: string): string {
  return line.slice(line.lastIndexOf("\r", line.length - 2) + 1);
}

/** withoutCursor leaves out what moves a cursor: it moves nowhere here. */
function withoutCursor(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g, "")
    .replace(/\u001b\[[0-9;?]*[A-Za-ln-z]/g, "");
}

function coloured(to: Element, text: string): void {
  if (!text.includes("\u001b")) return fill(to, text);
  // Of what is no colour Anser reads each line again and again.
  const known = text.replace(/\u001b(?!\[[\d;]*m)/g, visible);
  for (const part of Anser.ansiToJson(known, { use_classes: true, remove_empty: true })) {
    const classes = [part.fg, part.bg && part.bg.replace("ansi-", "ansi-bg-"), ...part.decorations.map((decoration) => `ansi-${decoration}`)].filter((name) => /^[a-z-]+$/.test(name ?? "") && !name.includes("palette") && !name.includes("truecolor"));
    const span = make("span", { class: classes.join(" "), text: part.content });
    if (part.fg_truecolor && part.fg?.endsWith("truecolor")) span.style.color = `rgb(${part.fg_truecolor})`;
    if (part.bg_truecolor && part.bg?.endsWith("truecolor")) span.style.backgroundColor = `rgb(${part.bg_truecolor})`;
    to.append(span);
  }
}
