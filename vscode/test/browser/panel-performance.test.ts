// How long the page of a session panel holds the browser up. PerformanceObserver tells its long tasks; on a machine
// that does other things, too, their time is also that of others, so what is judged is the processor time of a task,
// which Chromium's tracing tells.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import type { FakeHost } from "./pages/panelhost";
import { startPages } from "./panelpage";
import type { PanelPages } from "./panelpage";
import { longConversation } from "./longconversation";
import { best, longest, observe } from "./tasks";

declare const window: { host: FakeHost };

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

/** Tells 2,000 deltas a second, for some seconds; by says what each adds. */
async function stream(page: Page, seconds: number, by: string): Promise<{ told: number; took: number }> {
  return page.evaluate(
    async ([length, kind]) => {
      const words = ["The ", "parser ", "reads ", "**one** ", "token ", "`next()` ", "after ", "another. "];
      const piece = (i: number): string => {
        if (kind === "paragraph") return words[i % words.length]!;
        if (kind === "code") return i === 0 ? "```ts\n" : i % 8 === 7 ? ";\n" : `value${i % 10} `;
        if (kind === "list") return i % 12 === 0 ? `\n- ` : words[i % words.length]!;
        if (kind === "table") return i === 0 ? "| a | b |\n| --- | --- |\n" : `| ${i} | ${words[i % words.length]!.trim()} |\n`;
        return i % 40 === 0 ? "\n\n" : i % 400 === 1 ? "\n\n```js\nlet a = 1;\n```\n\n" : words[i % words.length]!;
      };
      const began = performance.now();
      let told = 0;
      await new Promise<void>((resolve) => {
        const timer = setInterval(() => {
          const due = Math.min(length * 2_000, Math.floor((performance.now() - began) * 2));
          while (told < due) window.host.event("message_delta", { message_id: `m-${kind}`, delta: piece(told++) });
          if (told < length * 2_000) return;
          clearInterval(timer);
          resolve();
        }, 4);
      });
      return { told, took: performance.now() - began };
    },
    [seconds, by] as const,
  );
}

for (const kind of ["prose", "paragraph", "list", "code", "table"]) {
  test(`2,000 deltas a second of ${kind} hold nothing up`, async (t) => {
    const measured = await best(t, `5 s of 2,000 deltas a second, ${kind}`, async () => {
      const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, status: "running", state: "running" }) });
      await page.getByRole("heading", { name: "A conversation" }).waitFor();
      const longestTask = await observe(page);
      const { told } = await stream(page, 5, kind);
      assert.equal(told, 10_000);
      const worst = await longestTask();
      const text = (await page.locator(".said").textContent()) ?? "";
      assert.ok(text.length > 20_000 || /… and \d{4} more rows/.test(text), text.slice(-200));
      await page.close();
      return worst;
    });
    assert.ok(measured <= longest, `${measured} ms`);
  });
}

function ended(): boolean {
  const element = document.querySelector(".transcript")!;
  return element.scrollHeight - element.scrollTop - element.clientHeight < 5;
}

/** Goes to the end by one key, though what is on the way gets its height only then. */
async function toEnd(page: Page): Promise<void> {
  await page.keyboard.press("End");
  await page.waitForFunction(ended);
}

test("20,000 lines open, and scroll from their end to their beginning and back", async (t) => {
  const measured = await best(t, "20,000 lines", async () => {
    const page = await pages.open({
      prepare: (host) => {
        host.start = { ...host.start, connection: { is: "starting" } };
        host.session = { ...host.session, status: "running", state: "running" };
      },
    });
    await page.getByText("duet-rpc is being started…").waitFor();
    const keys = await page.evaluate(longConversation);
    const longestTask = await observe(page);
    await page.evaluate(() => window.host.notify("panel.connection", { is: "ready" }));
    // Not by Playwright's own looks, which search the whole page: they were the longest tasks.
    await page.waitForFunction((key) => document.querySelector(`[data-key="${key}"]`) !== null, keys.at(-1));
    const transcript = page.locator(".transcript");

    await page.mouse.move(300, 300);
    const atBeginning = (): Promise<boolean> => page.evaluate(() => document.querySelector(".transcript")!.scrollTop === 0 && document.querySelector(".older")!.childElementCount === 0);
    for (let turns = 1; turns % 10 !== 0 || !(await atBeginning()); turns++) {
      assert.ok(turns < 5_000, "the beginning is reached");
      await page.mouse.wheel(0, -1_200);
    }
    await page.waitForFunction((count) => document.querySelectorAll(".log [data-key]").length === count, keys.length);
    assert.deepEqual(await page.locator(".log [data-key]").evaluateAll((entries) => entries.map((entry) => (entry as HTMLElement).dataset["key"])), keys, "all are there, in their order");

    await transcript.focus();
    for (let i = 0; i < 40; i++) await page.keyboard.press("PageDown");
    assert.ok((await transcript.evaluate((element) => element.scrollTop)) > 10_000);
    await toEnd(page);
    for (let i = 0; i < 20; i++) await page.keyboard.press("PageUp");
    await page.waitForFunction(() => {
      const element = document.querySelector(".transcript")!;
      return element.scrollHeight - element.scrollTop - element.clientHeight > 5_000;
    });
    await page.keyboard.press("Home");
    await page.waitForFunction(() => document.querySelector(".transcript")!.scrollTop < 5_000);
    await toEnd(page);
    // The end stays the end while more comes.
    await page.evaluate(() => window.host.event("message_delta", { message_id: "more", delta: "It goes on.\n\n".repeat(30) }));
    await page.waitForFunction(() => document.querySelector('[data-key="more"]') !== null);
    await page.waitForFunction(ended);
    const worst = await longestTask();
    await page.close();
    return worst;
  });
  assert.ok(measured <= longest, `${measured} ms`);
});
