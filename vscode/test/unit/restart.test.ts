import assert from "node:assert/strict";
import test from "node:test";
import { RestartRule } from "../../src/hub/connection";

test("the fifth crash within three minutes is one too many", () => {
  let now = 0;
  const rule = new RestartRule(() => now);
  const crashes = (...at: number[]): boolean[] => at.map((time) => ((now = time), rule.crashed()));
  assert.deepEqual(crashes(0, 1_000, 2_000, 3_000, 179_999), [true, true, true, true, false]);
  rule.forget();
  assert.deepEqual(crashes(200_000, 201_000, 202_000, 203_000, 380_000, 381_500), [true, true, true, true, true, true], "the first two are three minutes ago");
});

test("setting the clock makes no crash count longer or shorter", (t) => {
  const rule = new RestartRule();
  t.mock.timers.enable({ apis: ["Date"], now: 10 * 3_600_000 });
  const crashes = Array.from({ length: 5 }, (_, hours) => (t.mock.timers.setTime((10 - hours) * 3_600_000), rule.crashed()));
  assert.deepEqual(crashes, [true, true, true, true, false], "set back by an hour after each");
  const other = new RestartRule();
  const later = Array.from({ length: 5 }, (_, hours) => (t.mock.timers.setTime((10 + hours) * 3_600_000), other.crashed()));
  assert.deepEqual(later, [true, true, true, true, false], "set forward by an hour after each");
});
