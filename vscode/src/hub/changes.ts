// What a session has changed, piece by piece, and what a person has decided of each.
import type { Params, Result } from "../protocol";

/** A file that a session has changed. */
export type Snapshot = Result<"getSessionSnapshots">["snapshots"][number];

/** A piece of a change. Lines count from 1; of a side without lines, start is the line before. */
export type Hunk = Snapshot["hunks"][number];

export type Decision = Params<"session.decideChange">["decision"];

export type Side = "before" | "after";

/** What can be done with a hunk. */
export function decisionsFor({ state }: Pick<Hunk, "state">): Decision[] {
  return state === "open" ? ["accept", "revert"] : ["reopen"];
}

/** What is to be seen of what was decided of a hunk; empty: nothing was. */
export function stateWords({ state }: Pick<Hunk, "state">): string {
  return state === "accepted" ? "Accepted" : state === "reverted" ? "Reverted" : "";
}

/** Where a hunk is on a side, without the lines around it: its first line, from 0, and how many it has there. */
interface Extent {
  line: number;
  count: number;
}

/** The hunks of a file, each with where it is on a side. */
export function extents({ hunks, diff }: Pick<Snapshot, "hunks" | "diff">, side: Side): Array<{ hunk: Hunk; extent: Extent }> {
  const around = contexts(diff);
  return hunks.map((hunk, i) => {
    const [start, count] = side === "before" ? [hunk.old_start, hunk.old_lines] : [hunk.new_start, hunk.new_lines];
    const { before, after } = around[i] ?? { before: 0, after: 0 };
    // Of a side without lines start is the line before; so it is where none is left.
    return { hunk, extent: { line: Math.max(0, start - 1 + before), count: Math.max(0, count - before - after) } };
  });
}

/** The hunk in which a line is, from 0. last is the last line of the side: what is gone from its end stands there. */
export function hunkAt(snapshot: Pick<Snapshot, "hunks" | "diff">, side: Side, line: number, last = Number.POSITIVE_INFINITY): Hunk | undefined {
  const found = extents(snapshot, side).find(({ extent: { line: from, count } }) => {
    const first = Math.min(from, last);
    return first <= line && line < first + Math.max(1, count);
  });
  return found?.hunk;
}

/** contexts are how many lines of a unified diff's hunks stand before and after what has changed. */
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

/** How much of a file is decided, in words; empty: nothing. */
export function progressOf(hunks: readonly Hunk[]): string {
  const count = (state: string): number => hunks.filter((hunk) => hunk.state === state).length;
  const [accepted, reverted] = [count("accepted"), count("reverted")];
  if (hunks.length === 0 || accepted + reverted === 0) return "";
  if (accepted === hunks.length) return "accepted";
  if (reverted === hunks.length) return "reverted";
  return [...(accepted > 0 ? [`${accepted} accepted`] : []), ...(reverted > 0 ? [`${reverted} reverted`] : []), ...(count("open") > 0 ? [`${count("open")} open`] : [])].join(", ");
}
