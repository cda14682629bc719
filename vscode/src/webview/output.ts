// What a tool got and gave back: long texts by their first and last lines, with their colours.
import Anser from "anser";
import { copyButton } from "./codeblock";
import { fill, make } from "./dom";

const headLines = 8;
const tailLines = 12;
/** No line is shown longer than this at first. */
const longestLine = 2_000;
/** Lines that are drawn at once when all is asked for. */
const linesAtOnce = 2_000;

/** A text of a tool's, which can be shown whole. */
export function output(text: string, options: { name: string; colours?: boolean }): HTMLElement {
  const element = make("div", { class: "output" });
  const clean = overwritten(text);
  const lines = clean.split("\n");
  if (lines.at(-1) === "" && lines.length > 1) lines.pop();
  const write = (to: Element, part: string[]): void => {
    if (options.colours) coloured(to, part.join("\n"));
    else fill(to, part.join("\n"));
  };
  const block = (part: string[]): HTMLElement => {
    const pre = make("pre", { is: { tabindex: "0", "aria-label": options.name } });
    write(pre, part);
    return pre;
  };
  const shorter = lines.map((line) => (line.length > longestLine ? `${line.slice(0, longestLine)}… (${line.length - longestLine} more characters)` : line));
  const cut = lines.length > headLines + tailLines + 3;
  if (!cut && shorter.every((line, i) => line === lines[i])) {
    element.append(block(lines));
  } else {
    const hidden = cut ? lines.length - headLines - tailLines : 0;
    const all = make("button", { class: "text-button", is: { type: "button" }, text: hidden > 0 ? `Show all ${lines.length} lines (${hidden} hidden)` : "Show the whole lines" });
    all.addEventListener("click", () => {
      element.replaceChildren(copy);
      showAll(element, lines, block);
      element.querySelector("pre")?.focus();
    });
    if (cut) element.append(block(shorter.slice(0, headLines)), all, block(shorter.slice(-tailLines)));
    else element.append(block(shorter), all);
  }
  const copy = copyButton(() => text, `Copy ${options.name.toLowerCase()}`);
  element.prepend(copy);
  return element;
}

/** showAll draws a long text in parts, each when there is time, so that nothing stands still. */
function showAll(element: Element, lines: string[], block: (part: string[]) => HTMLElement): void {
  const next = (at: number): void => {
    if (at > 0 && !element.isConnected) return;
    element.append(block(lines.slice(at, at + linesAtOnce)));
    if (at + linesAtOnce < lines.length) setTimeout(() => next(at + linesAtOnce), 0);
  };
  next(0);
}

/** overwritten is what a terminal would show: a line's beginning may be written anew, and cursors move nowhere here. */
function overwritten(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g, "")
    .replace(/\u001b\[[0-9;?]*[A-Za-ln-z]/g, "")
    .replace(/[^\n]*\r(?=[^\n])/g, "");
}

function coloured(to: Element, text: string): void {
  if (!text.includes("\u001b")) return fill(to, text);
  for (const part of Anser.ansiToJson(text, { use_classes: true, remove_empty: true })) {
    const classes = [part.fg, part.bg && part.bg.replace("ansi-", "ansi-bg-"), ...part.decorations.map((decoration) => `ansi-${decoration}`)].filter((name) => /^[a-z-]+$/.test(name ?? "") && !name.includes("palette") && !name.includes("truecolor"));
    const span = make("span", { class: classes.join(" "), text: part.content });
    if (part.fg_truecolor && part.fg?.endsWith("truecolor")) span.style.color = `rgb(${part.fg_truecolor})`;
    if (part.bg_truecolor && part.bg?.endsWith("truecolor")) span.style.backgroundColor = `rgb(${part.bg_truecolor})`;
    to.append(span);
  }
}
