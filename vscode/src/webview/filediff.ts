// A change of a file, small: what is otherwise, with some lines around it.
import { structuredPatch } from "diff";
import { clipped } from "../hub/groups";
import { button, fill, inTurns, make, piecesOf } from "./dom";
import type { FileDiff } from "./entry";

/** Characters of both texts; what is longer is shown in the editor alone. */
const longest = 400_000;
const firstLines = 60;
/** No line is shown longer than this at first. */
const longestLine = 2_000;

interface Actions {
  openDiff(diff: FileDiff): void;
  openFile(path: string): void;
}

export function fileDiff(diff: FileDiff, actions: Actions): HTMLElement {
  const lines = linesOf(diff);
  const head = make(
    "div",
    { class: "diff-head" },
    button({ class: "text-button diff-path", label: nameOf(diff.path), tip: diff.path, press: () => actions.openFile(diff.path) }),
    lines && make("span", { class: "added", text: `+${count(lines, "+")}` }),
    lines && make("span", { class: "removed", text: `−${count(lines, "-")}` }),
    diff.before === undefined && make("span", { class: "tag", text: "new" }),
    button({ icon: "diff", name: `Show the change of ${nameOf(diff.path)} in the diff editor`, tip: "Open in the diff editor", press: () => actions.openDiff(diff) }),
  );
  return make("div", { class: "file-diff" }, head, lines ? unified(lines) : make("p", { class: "note", text: "The change is too long to be shown here: open it in the diff editor." }));
}

/** A unified diff that somebody else has made, such as that of a question. */
export function unifiedDiff(text: string): HTMLElement {
  return unified(text.replace(/\n$/, "").split("\n").filter((line) => !/^(?:---|\+\+\+|diff |index |\\ )/.test(line)));
}

function linesOf({ path, before, after }: FileDiff): string[] | undefined {
  if ((before?.length ?? 0) + after.length > longest) return undefined;
  const patch = structuredPatch(path, path, before ?? "", after, "", "", { context: 2, timeout: 40 });
  return patch?.hunks.flatMap((hunk, i) => [...(i > 0 || hunk.oldStart > 1 ? [`@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`] : []), ...hunk.lines.filter((line) => !line.startsWith("\\"))]);
}

function count(lines: readonly string[], sign: string): number {
  return lines.filter((line) => line.startsWith(sign)).length;
}

function unified(lines: readonly string[]): HTMLElement {
  const pre = make("pre", { class: "diff-lines", is: { tabindex: "0", "aria-label": "Changed lines" } });
  const write = (part: readonly string[]): void => {
    for (const line of part) {
      const kind = line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : "span";
      const element = make(kind, { class: line.startsWith("@@") ? "hunk" : "line", text: line === "" ? " " : clipped(line, longestLine) });
      fill(pre, element);
      if (clipped(line, longestLine) === line) continue;
      const whole = button({
        class: "text-button", label: "Show the whole line",
        press: () => {
          whole.remove();
          element.replaceChildren();
          inTurns(piecesOf(line), element, (piece) => make("span", { text: piece }));
        },
      });
      pre.append(whole);
    }
  };
  write(lines.slice(0, firstLines));
  if (lines.length > firstLines) {
    const more = button({
      class: "text-button", label: `Show ${lines.length - firstLines} more lines`,
      press: () => {
        more.remove();
        write(lines.slice(firstLines));
      },
    });
    pre.append(more);
  }
  return pre;
}

/** The last part of a path. */
export function nameOf(path: string): string {
  return path.split(/[\\/]/).filter((part) => part !== "").at(-1) ?? path;
}
