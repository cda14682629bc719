// Measures how long the page of a session panel blocks the browser: npm run test:performance. PerformanceObserver
// reports long tasks of the clock. Other processes slow the clock down, so the tests judge the processor time of a task,
// which Chromium's tracing reports.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isComplete, kinds, stream } from "../browser/deltas";
import { openLong, scrollThrough } from "../browser/longscroll";
import { startPages } from "../browser/panelpage";
import type { PanelPages } from "../browser/panelpage";
import { best, longest, observe } from "./tasks";

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

for (const kind of kinds) {
  test(`2,000 deltas a second of ${kind} hold nothing up`, async (t) => {
    const measured = await best(t, `5 s of 2,000 deltas a second, ${kind}`, async () => {
      const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
      await page.getByRole("heading", { name: "A session" }).waitFor();
      const longestTask = await observe(page);
      await stream(page, 10_000, 2_000, kind);
      const worst = await longestTask();
      assert.ok(isComplete((await page.locator(".said").textContent()) ?? ""));
      await page.close();
      return worst;
    });
    assert.ok(measured <= longest, `${measured} ms`);
  });
}

test("20,000 lines open, and scroll from their end to their beginning and back, without a long task", async (t) => {
  const measured = await best(t, "20,000 lines", async () => {
    const { page, keys } = await openLong(pages);
    const longestTask = await observe(page);
    await scrollThrough(page, keys);
    const worst = await longestTask();
    await page.close();
    return worst;
  });
  assert.ok(measured <= longest, `${measured} ms`);
});
