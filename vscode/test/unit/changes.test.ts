// Hunks of a change, as a diff editor shows them.
import assert from "node:assert/strict";
import test from "node:test";
import { decisionsFor, extents, partAt, partsOf, placesIn, progressOf, wholeOfParts, wholeOfPatch } from "../../src/hub/changes";
import type { Hunk } from "../../src/hub/changes";

const hunk = (id: string, old: [number, number], now: [number, number], state = "open"): Hunk => ({ id, old_start: old[0], old_lines: old[1], new_start: now[0], new_lines: now[1], added: 0, removed: 0, state });

// A changed line among others, a deleted line at the end, and a new file.
const diff = `--- a/f
+++ b/f
@@ -1,4 +1,5 @@
 one
-two
+2
+2½
 three
 four
@@ -20,3 +21,2 @@
 twenty
 more
-last
`;
const hunks = [hunk("first", [1, 4], [1, 5]), hunk("second", [20, 3], [21, 2])];

test("a hunk stands where something has changed, and not at the lines around it", () => {
  assert.deepEqual(extents({ hunks, diff }, "after").map(({ extent }) => extent), [{ line: 1, count: 2 }, { line: 22, count: 0 }]);
  assert.deepEqual(extents({ hunks, diff }, "before").map(({ extent }) => extent), [{ line: 1, count: 1 }, { line: 21, count: 1 }]);
  assert.deepEqual(extents({ hunks: [hunk("new", [0, 0], [1, 2])], diff: "@@ -0,0 +1,2 @@\n+a\n+b\n" }, "after")[0]?.extent, { line: 0, count: 2 });
});

test("the cursor means the hunk in which it is, and no other one", () => {
  const at = (line: number): string | undefined => partAt(extents({ hunks, diff }, "after"), line)?.id;
  assert.deepEqual([0, 1, 2, 3, 21, 22, 99].map(at), [undefined, "first", "first", undefined, undefined, "second", undefined]);
  // If the last lines are deleted, the side ends there.
  assert.equal(partAt(extents({ hunks, diff }, "after"), 21, 21)?.id, "second");
  assert.equal(partAt([], 0), undefined);
});

test("what was decided can be taken back alone, and is told in words", () => {
  assert.deepEqual([decisionsFor({ state: "open" }), decisionsFor({ state: "reverted" })], [["accept", "revert"], ["reopen"]]);
  const states = (...all: string[]): string => progressOf(all.map((state, i) => hunk(String(i), [1, 1], [1, 1], state)));
  const mode = { id: "mode", old: "100644", new: "100755", state: "accepted" };
  assert.equal(progressOf(partsOf({ hunks: [hunk("first", [1, 1], [1, 1])], mode })), "1 accepted, 1 open");
  assert.deepEqual([states("open"), states("accepted", "accepted"), states("open", "accepted", "reverted")], ["", "accepted", "1 accepted, 1 reverted, 1 open"]);
});

test("the change of a tool call that told parts of a file is shown in the whole file, before and after it is made", () => {
  const [before, after] = ["one\ntwo\nthree\n", "one\n$&\nthree\n"];
  assert.deepEqual(wholeOfParts(before, "two", "$&"), { before, after, is: "proposed" });
  assert.deepEqual(wholeOfParts(after, "two", "$&"), { before, after, is: "made" });
  assert.deepEqual(wholeOfParts("two\ntwo\n", "two", "2"), { before: "two", after: "2", is: "part" });
  assert.deepEqual(wholeOfParts("", "", "new\n"), { before: "", after: "new\n", is: "proposed" });
  assert.deepEqual(wholeOfParts("new\n", "", "new\n"), { before: "", after: "new\n", is: "made" });
});

test("the change of a question is shown in the whole file; one that no longer fits is not", () => {
  const patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
  const [before, after] = ["zero\none\ntwo\nthree\nfour\n", "zero\none\n2\nthree\nfour\n"];
  assert.deepEqual(wholeOfPatch(before, patch), { before, after, is: "proposed" });
  assert.deepEqual(wholeOfPatch(after, patch), { before, after, is: "made" });
  assert.equal(wholeOfPatch("something else\n", patch), undefined);
  assert.deepEqual(wholeOfPatch("", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n"), { before: "", after: "new\n", is: "proposed" });
});

// Two changes with a line between them, a removal, and an insertion.
const before = ["a", "b", "c", "d", "e", "f", "g", "h", ""].join("\n");
const after = ["a", "B", "c", "D1", "D2", "e", "g", "h", "i", ""].join("\n");
const joined = (...states: string[]): Hunk => ({
  ...hunk("joined", [1, 8], [1, 9]),
  parts: [
    { id: "b", old_start: 2, old_lines: 1, new_start: 2, new_lines: 1, state: states[0] ?? "open" },
    { id: "d", old_start: 4, old_lines: 1, new_start: 4, new_lines: 2, state: states[1] ?? "open" },
    { id: "f", old_start: 6, old_lines: 1, new_start: 6, new_lines: 0, state: states[2] ?? "open" },
    { id: "i", old_start: 8, old_lines: 0, new_start: 9, new_lines: 1, state: states[3] ?? "open" },
  ],
});
const changed = (...states: string[]): { hunks: Hunk[]; diff: string; before: string; after: string } => ({ hunks: [joined(...states)], diff: "@@ -1,8 +1,9 @@\n", before, after });
const places = (text: string, ...states: string[]): Record<string, number[]> => Object.fromEntries(placesIn(changed(...states), text).map(({ part, extent: { line, count } }) => [part.id, [line, count]]));

test("the changes that a hunk joins are decided apart", () => {
  assert.deepEqual(partsOf(changed()).map(({ id }) => id), ["b", "d", "f", "i"]);
  assert.deepEqual(extents(changed(), "after").map(({ extent: { line, count } }) => [line, count]), [[1, 1], [3, 2], [6, 0], [8, 1]]);
  assert.deepEqual(extents(changed(), "before").map(({ extent: { line, count } }) => [line, count]), [[1, 1], [3, 1], [5, 1], [8, 0]]);
  assert.deepEqual([1, 2, 3, 4, 5, 6, 8].map((line) => partAt(extents(changed(), "after"), line)?.id), ["b", undefined, "d", "d", undefined, "f", "i"]);
});

test("the changes of a file have their places in its text as it is now", () => {
  assert.deepEqual(places(after), { b: [1, 1], d: [3, 2], f: [6, 0], i: [8, 1] });
  assert.deepEqual(places(`0\n${after.replace("D2", "mine")}`), { b: [2, 1], f: [7, 0], i: [9, 1] }, "one was edited, all have moved");
  assert.deepEqual(places(after.replace("e\ng", "e\nmine\ng")), { b: [1, 1], d: [3, 2], i: [9, 1] }, "a line came where one was removed");
  const [reverted] = [["a", "B", "c", "d", "e", "g", "h", "i", ""].join("\n")];
  assert.deepEqual(places(reverted, "accepted", "reverted"), { d: [3, 1], f: [5, 0], i: [7, 1] }, "an accepted one needs no decision, a reverted one can be reopened");
  assert.deepEqual(places("something else\n"), {});
  const numbers = (mark: string): string => Array.from({ length: 3_000 }, (_, i) => `${mark}${i}`).join("\n");
  assert.deepEqual(placesIn({ hunks: [hunk("all", [1, 3_000], [1, 3_000])], diff: "@@ -1,3000 +1,3000 @@\n", before: numbers("a"), after: numbers("b") }, numbers("c")), []);
});
