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

/** The first line of a hunk on a side, from 0, and how many lines it has there. */
export function linesOf(hunk: Hunk, side: Side): { line: number; count: number } {
  const [start, count] = side === "before" ? [hunk.old_start, hunk.old_lines] : [hunk.new_start, hunk.new_lines];
  return { line: Math.max(0, start - 1), count };
}

/** The hunk in which a line is, from 0; else the next one behind it, else the last. */
export function hunkAt(hunks: readonly Hunk[], side: Side, line: number): Hunk | undefined {
  return hunks.find((hunk) => linesOf(hunk, side).line + Math.max(1, linesOf(hunk, side).count) > line) ?? hunks.at(-1);
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
