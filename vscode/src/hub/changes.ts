// The changes of a session, hunk by hunk, and the user's decision on each.
import { applyPatch, parsePatch, reversePatch } from "diff";
import type { Change as ChangedFile } from "../protocol";

/** A file that a turn has changed. */
export type { Change as ChangedFile } from "../protocol";

/** A hunk. Lines count from 1. If a side has no lines, its start is the line before. */
export type Hunk = ChangedFile["hunks"][number];

/** A part of a change with a decision of its own: a hunk, or the change of the mode. */
export type Part = Pick<Hunk, "id" | "state">;

/** The parts of the change of a file. */
export function partsOf({ hunks, mode }: Pick<ChangedFile, "hunks" | "mode">): Part[] {
  return mode ? [mode, ...hunks] : hunks;
}

/** What a user decides about a change: the verb of a method change.*. */
export type Decision = "accept" | "revert" | "reopen";

export type Side = "before" | "after";

/** The decisions that a hunk allows. */
export function decisionsFor({ state }: Pick<Part, "state">): Decision[] {
  return state === "open" ? ["accept", "revert"] : ["reopen"];
}

/** The label of a hunk's decision. Empty: it is open. */
export function stateWords({ state }: Pick<Part, "state">): string {
  return state === "accepted" ? "Accepted" : state === "reverted" ? "Reverted" : "";
}

/** The changed lines of a hunk on one side, without context: the first line, from 0, and the number of lines. */
interface Extent {
  line: number;
  count: number;
}

/** The hunks of a file, each with its extent on one side. */
export function extents({ hunks, diff }: Pick<ChangedFile, "hunks" | "diff">, side: Side): Array<{ hunk: Hunk; extent: Extent }> {
  const around = contexts(diff);
  return hunks.map((hunk, i) => {
    const [start, count] = side === "before" ? [hunk.old_start, hunk.old_lines] : [hunk.new_start, hunk.new_lines];
    const { before, after } = around[i] ?? { before: 0, after: 0 };
    // If a side has no lines, start is the line before.
    return { hunk, extent: { line: Math.max(0, start - 1 + before), count: Math.max(0, count - before - after) } };
  });
}

/** The hunk at a line, from 0. last is the last line of the side: lines deleted at the end of the file count as this line. */
export function hunkAt(file: Pick<ChangedFile, "hunks" | "diff">, side: Side, line: number, last = Number.POSITIVE_INFINITY): Hunk | undefined {
  const found = extents(file, side).find(({ extent: { line: from, count } }) => {
    const first = Math.min(from, last);
    return first <= line && line < first + Math.max(1, count);
  });
  return found?.hunk;
}

/** contexts counts the context lines before and after the change in each hunk of a unified diff. */
function contexts(diff: string): Array<{ before: number; after: number }> {
  const all: Array<{ before: number; after: number }> = [];
  let changed = false;
  for (const line of diff.split("\n")) {
    if (line.startsWith("@@")) {
      all.push({ before: 0, after: 0 });
      changed = false;
      continue;
    }
    const last = all.at(-1);
    if (!last) continue;
    if (line.startsWith(" ")) last[changed ? "after" : "before"]++;
    else if (/^[-+]/.test(line)) [changed, last.after] = [true, 0];
  }
  return all;
}

/** A file before and after a change. */
export interface Change {
  before: string;
  after: string;
  /** proposed: the file does not have it yet. part: only the changed parts are known, since the file has other text by now. */
  is: "proposed" | "made" | "part";
}

/** The change of a tool call, which may have told parts of the file only. text: the file as it is. */
export function wholeOfParts(text: string, before: string, after: string): Change {
  const once = (part: string): boolean => part !== "" && text.split(part, 3).length === 2;
  // A function, since replace would read $ in a text.
  if (text === before || once(before)) return { before: text, after: text.replace(before, () => after), is: "proposed" };
  if (text === after || once(after)) return { before: text.replace(after, () => before), after: text, is: "made" };
  return { before, after, is: "part" };
}

/** The change of a unified diff of one file. text: the file as it is. undefined: the diff does not fit it. */
export function wholeOfPatch(text: string, patch: string): Change | undefined {
  const [file] = parsePatch(patch);
  if (!file) return undefined;
  const after = applyPatch(text, file);
  if (after !== false) return { before: text, after, is: "proposed" };
  const before = applyPatch(text, reversePatch(file));
  return before === false ? undefined : { before, after: text, is: "made" };
}

/** The change of one file that a unified diff of several files has made. path: as in the diff. undefined: the diff does not have the file, or does not fit it. */
export function madeByPatch(text: string, patch: string, path: string): Change | undefined {
  const file = parsePatch(patch).find(({ oldFileName, newFileName }) => newFileName === `b/${path}` || (newFileName === "/dev/null" && oldFileName === `a/${path}`));
  const before = file && applyPatch(text, reversePatch(file));
  return before === undefined || before === false ? undefined : { before, after: text, is: "made" };
}

/** How many parts of a change are decided, for a message. Empty: none. */
export function progressOf(parts: readonly Part[]): string {
  const count = (state: string): number => parts.filter((part) => part.state === state).length;
  const [accepted, reverted] = [count("accepted"), count("reverted")];
  if (parts.length === 0 || accepted + reverted === 0) return "";
  if (accepted === parts.length) return "accepted";
  if (reverted === parts.length) return "reverted";
  return [...(accepted > 0 ? [`${accepted} accepted`] : []), ...(reverted > 0 ? [`${reverted} reverted`] : []), ...(count("open") > 0 ? [`${count("open")} open`] : [])].join(", ");
}
