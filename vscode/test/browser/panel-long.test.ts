// Long messages and long sessions in the page of a session panel. test/performance measures how long they take.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isComplete, kinds, stream } from "./deltas";
import type { FakeHost } from "./pages/panelhost";
import { openLong, scrollThrough } from "./longscroll";
import { problemsOf, startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";

declare const window: Window & { host: FakeHost };

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

for (const kind of kinds) {
  test(`a message of 10,000 deltas of ${kind} is shown to its end`, async () => {
    const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
    await page.getByRole("heading", { name: "A session" }).waitFor();
    await stream(page, 10_000, 20_000, kind);
    await tell(page, "text.delta", { key: `m-${kind}`, text: "\n\nThat is the end." });
    const said = page.locator(".said").filter({ hasText: "That is the end." });
    await said.waitFor();
    const text = (await said.textContent()) ?? "";
    assert.ok(isComplete(text), text.slice(-200));
    await page.close();
  });
}

for (const loaded of [false, true]) {
  test(`a match of a search far up is loaded, opened and in view, ${loaded ? "in a panel that is open" : "before the panel is loaded"}`, async () => {
    const page = await pages.open({
      given: loaded,
      prepare: (host, is: boolean) => {
        const item = (i: number, of: Record<string, unknown>): Record<string, unknown> => ({ id: 2 * i, turn_uuid: "run", created_at: "2026-01-02T03:04:05Z", seq: i, ...of });
        const call = { type: "tool_call", key: "c1", tool_name: "Bash", title: "make walrus", tool_kind: "execute", status: "completed", result: "the walrus is made" };
        host.items = Array.from({ length: 500 }, (_, i) => item(i + 1, i === 39 ? call : { type: "message", role: i % 2 === 0 ? "user" : "assistant", key: `m${i}`, text: `message ${i}\n\n${"more\n".repeat(i % 7)}` }));
        if (is) return;
        host.silent.add("session.items");
      },
    });
    const show = (): Promise<void> => page.evaluate(() => window.host.notify("panel.showItem", { turn_uuid: "run", type: "tool_call", key: "c1" }));
    if (loaded) {
      await page.getByText("message 499").waitFor();
      await show();
    } else {
      await page.getByRole("heading", { name: "A session" }).waitFor();
      await show();
      await page.evaluate(() => window.host.release("session.items"));
    }
    const call = page.locator('[data-key="run/c1"]');
    await call.waitFor();
    await page.waitForFunction(() => document.activeElement?.getAttribute("data-key") === "run/c1");
    const body = call.getByText("the walrus is made");
    await body.waitFor();
    await page.waitForFunction(() => {
      const box = document.activeElement!.getBoundingClientRect();
      return box.top >= 0 && box.bottom <= window.innerHeight;
    });
    await page.getByRole("button", { name: "Newest" }).click();
    await page.getByText("message 499").waitFor();
    await page.evaluate(() => window.host.notify("panel.showItem", { turn_uuid: "run", type: "message", key: "gone" }));
    await page.getByText("The match could not be found in the session.").waitFor();
    assert.deepEqual(problemsOf(page), []);
    await page.close();
  });
}

test("inputs of tools and questions are shown however deep they are nested and however many members they have", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  await page.getByRole("banner").getByText("running").waitFor();
  await page.evaluate(() => {
    const deep = `${'{"a":['.repeat(500)}${"]}".repeat(500)}`;
    const wide = `[${"{},".repeat(100_000)}{}]`;
    for (const [name, json] of [["deep", deep], ["wide", wide]] as const) {
      const input = { [name]: JSON.parse(json) as unknown };
      const call = { type: "tool_call", title: `run ${name}`, tool_name: "Run", tool_kind: "other" };
      window.host.event("item.changed", { ...call, key: `input-${name}`, status: "failed", tool_input: input });
      window.host.event("approval.opened", { approval: `question-${name}`, type: "function_call", tool_name: "Run", title: `Run ${name}?`, tool_input: input });
    }
    window.host.event("text.delta", { key: "m1", text: "That is the end." });
  });
  await page.getByText("That is the end.").waitFor();
  for (const name of ["deep", "wide"]) {
    await page.getByText(`Run ${name}?`).first().waitFor();
    const call = page.locator(`[data-key="run/input-${name}"]`);
    if ((await call.locator("details[open]").count()) === 0) await call.locator("summary").first().click();
    await call.locator("pre").first().waitFor();
    if (name === "deep") {
      await call.getByRole("button", { name: /Show all/ }).click();
      await call.getByText("nested deeper than 200 levels").waitFor();
    }
  }
  assert.deepEqual(problemsOf(page), []);
});

test("20,000 lines open, and scroll from their end to their beginning and back", async () => {
  const { page, keys } = await openLong(pages);
  await scrollThrough(page, keys);
  await page.close();
});
