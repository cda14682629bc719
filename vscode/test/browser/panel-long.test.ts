// Long messages and long conversations in the page of a session panel. test/performance measures how long they take.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isComplete, kinds, stream } from "./deltas";
import { openLong, scrollThrough } from "./longscroll";
import { startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

for (const kind of kinds) {
  test(`a message of 10,000 deltas of ${kind} is shown to its end`, async () => {
    const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, status: "running", state: "running" }) });
    await page.getByRole("heading", { name: "A conversation" }).waitFor();
    await stream(page, 10_000, 20_000, kind);
    await tell(page, "message_delta", { message_id: `m-${kind}`, delta: "\n\nThat is the end." });
    const said = page.locator(".said").filter({ hasText: "That is the end." });
    await said.waitFor();
    const text = (await said.textContent()) ?? "";
    assert.ok(isComplete(text), text.slice(-200));
    await page.close();
  });
}

test("20,000 lines open, and scroll from their end to their beginning and back", async () => {
  const { page, keys } = await openLong(pages);
  await scrollThrough(page, keys);
  await page.close();
});
