// The changes of a session, and the user's decision on each.
import { applyPatch, diffArrays, parsePatch, reversePatch } from "diff";
import type { Change as ChangedFile } from "../protocol";

/** A file that a turn has changed. */
export type { Change as ChangedFile } from "../protocol";

/** A hunk. Lines count from 1. If a side has no lines, its start is the line before. */
export type Hunk = ChangedFile["hunks"][number];

/** A part of a change with a decision of its own: a hunk, one of the changes that it joins, or the change of the mode. */
export type Part = Pick<Hunk, "id" | "state">;

/** The parts of the change of a file. */
export function partsOf({ hunks, mode }: Pick<ChangedFile, "hunks" | "mode">): Part[] {
  const parts = hunks.flatMap((hunk): Part[] => hunk.parts ?? [hunk]);
  return mode ? [mode, ...parts] : parts;
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

/** A part of a change of text, with its lines. */
export interface PlacedPart {
  part: Part;
  extent: Extent;
}

/** The parts of the text of a file, in order, each with its extent on one side. */
export function extents({ hunks, diff }: Pick<ChangedFile, "hunks" | "diff">, side: Side): PlacedPart[] {
  const around = contexts(diff);
  return hunks.flatMap((hunk, i) => {
    const { before, after } = around[i] ?? { before: 0, after: 0 };
    return hunk.parts?.map((part) => ({ part, extent: extentOf(part, side) })) ?? [{ part: hunk, extent: extentOf(hunk, side, before, after) }];
  });
}

/** extentOf returns the lines of a side, without the context. If the side has no lines, its start is the line before. */
function extentOf(of: Omit<Hunk, "id" | "state" | "added" | "removed" | "parts">, side: Side, before = 0, after = 0): Extent {
  const [start, lines] = side === "before" ? [of.old_start, of.old_lines] : [of.new_start, of.new_lines];
  return { line: lines === 0 ? start : start - 1 + before, count: Math.max(0, lines - before - after) };
}

/** The part at a line, from 0. last is the last line of the side: lines deleted at the end of the file count as this line. */
export function partAt(placed: readonly PlacedPart[], line: number, last = Number.POSITIVE_INFINITY): Part | undefined {
  const found = placed.find(({ extent: { line: from, count } }) => {
    const first = Math.min(from, last);
    return first <= line && line < first + Math.max(1, count);
  });
  return found?.part;
}

/** The most lines that differ between a changed file and its text in an editor. Beyond that, the search for the changes would take too long. */
const mostEdits = 2_000;

/** The undecided and reverted parts of a change, where the file's text now has them. A part whose lines were edited since has no place. */
export function placesIn(file: Pick<ChangedFile, "hunks" | "diff" | "before" | "after">, text: string): PlacedPart[] {
  const decided = asDecided(file);
  const now = text.split("\n");
  const moved = movedLines(decided.lines, now);
  if (!moved) return [];
  return decided.placed.flatMap(({ part, extent: { line, count } }) => {
    // The lines before and behind a removal have to be next to each other.
    const from = count === 0 ? line - 1 : line;
    const first = from < 0 ? -1 : moved[from];
    const rest = count === 0 ? 1 : count - 1;
    const isWhole = first !== undefined && Array.from({ length: rest }, (_, i) => from + i + 1).every((old) => (old < decided.lines.length ? moved[old] : now.length) === first + old - from);
    return isWhole && part.state !== "accepted" ? [{ part, extent: { line: count === 0 ? first + 1 : first, count } }] : [];
  });
}

/** asDecided returns the lines of a file with the user's decisions, and its parts there. */
function asDecided(file: Pick<ChangedFile, "hunks" | "diff" | "before" | "after">): { lines: string[]; placed: PlacedPart[] } {
  const [before, after] = [(file.before ?? "").split("\n"), (file.after ?? "").split("\n")];
  const lines: string[] = [];
  const olds = extents(file, "before");
  let done = 0;
  const placed = extents(file, "after").map(({ part, extent: { line, count } }, i) => {
    for (; done < line && done < after.length; done++) lines.push(after[done]!);
    const old = olds[i]!.extent;
    const chosen = part.state === "reverted" ? before.slice(old.line, old.line + old.count) : after.slice(line, line + count);
    const extent = { line: lines.length, count: chosen.length };
    for (const one of chosen) lines.push(one);
    done = line + count;
    return { part, extent };
  });
  for (; done < after.length; done++) lines.push(after[done]!);
  return { lines, placed };
}

/** movedLines returns where a text now has the lines of another. undefined: they differ too much. */
function movedLines(old: readonly string[], now: readonly string[]): Array<number | undefined> | undefined {
  const steps = diffArrays([...old], [...now], { maxEditLength: mostEdits });
  let line = 0;
  return steps?.flatMap(({ added, removed, count }) => {
    if (removed) return Array<undefined>(count).fill(undefined);
    const from = line;
    line += count;
    return added ? [] : Array.from({ length: count }, (_, i) => from + i);
  });
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

/** The changed parts of one file in a unified diff, where the file itself cannot be read. path: as in a diff of several files. undefined: the diff does not have the file. */
export function partsOfPatch(patch: string, path?: string): Change | undefined {
  const files = parsePatch(patch);
  const file = path === undefined ? files[0] : files.find(isOf(path));
  if (!file || file.hunks.length === 0) return undefined;
  const side = (sign: string): string => file.hunks.map(({ lines }) => lines.filter((line) => line.startsWith(" ") || line.startsWith(sign)).map((line) => `${line.slice(1)}\n`).join("")).join("…\n");
  return { before: side("-"), after: side("+"), is: "part" };
}

/** isOf matches the file of a diff by its path. */
function isOf(path: string): (file: { oldFileName?: string | undefined; newFileName?: string | undefined }) => boolean {
  return ({ oldFileName, newFileName }) => newFileName === `b/${path}` || (newFileName === "/dev/null" && oldFileName === `a/${path}`);
}

/** The change of one file that a unified diff of several files has made. path: as in the diff. undefined: the diff does not have the file, or does not fit it. */
export function madeByPatch(text: string, patch: string, path: string): Change | undefined {
  const file = parsePatch(patch).find(isOf(path));
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
