// Hunks of a change, as an editor for diffs shows them.
import assert from "node:assert/strict";
import test from "node:test";
import { decisionsFor, extents, hunkAt, progressOf } from "../../src/hub/changes";
import type { Hunk } from "../../src/hub/changes";

const hunk = (id: string, old: [number, number], now: [number, number], state = "open"): Hunk => ({ id, old_start: old[0], old_lines: old[1], new_start: now[0], new_lines: now[1], added: 0, removed: 0, state });

// A line changed among others; one that is gone at the end, and a whole file that was made.
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
  const at = (line: number): string | undefined => hunkAt({ hunks, diff }, "after", line)?.id;
  assert.deepEqual([0, 1, 2, 3, 21, 22, 99].map(at), [undefined, "first", "first", undefined, undefined, "second", undefined]);
  // The side ends where its last lines are gone.
  assert.equal(hunkAt({ hunks, diff }, "after", 21, 21)?.id, "second");
  assert.equal(hunkAt({ hunks: [], diff: "" }, "after", 0), undefined);
});

test("what was decided can be taken back alone, and is told in words", () => {
  assert.deepEqual([decisionsFor({ state: "open" }), decisionsFor({ state: "reverted" })], [["accept", "revert"], ["reopen"]]);
  const states = (...all: string[]): string => progressOf(all.map((state, i) => hunk(String(i), [1, 1], [1, 1], state)));
  assert.deepEqual([states("open"), states("accepted", "accepted"), states("open", "accepted", "reverted")], ["", "accepted", "1 accepted, 1 reverted, 1 open"]);
});
