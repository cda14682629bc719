// Opens a session of 20,000 lines and scrolls through it.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import type { FakeHost } from "./pages/panelhost";
import { longSession } from "./longsession";
import type { PanelPages } from "./panelpage";

declare const window: { host: FakeHost };

/** Opens a page that waits for duet-rpc and loads the long session later. Returns the keys of its entries. */
export async function openLong(pages: PanelPages): Promise<{ page: Page; keys: string[] }> {
  const page = await pages.open({
    prepare: (host) => {
      host.start = { ...host.start, connection: { is: "starting" } };
      host.session = { ...host.session, state: "running" };
    },
  });
  await page.getByText("duet-rpc is starting…").waitFor();
  return { page, keys: await page.evaluate(longSession) };
}

function ended(): boolean {
  const element = document.querySelector(".transcript")!;
  return element.scrollHeight - element.scrollTop - element.clientHeight < 5;
}

/** Goes to the end by one key. Entries on the way get their final height only then. */
async function toEnd(page: Page): Promise<void> {
  await page.keyboard.press("End");
  await page.waitForFunction(ended);
}

/** Shows the long session, and scrolls from its end to its beginning and back. */
export async function scrollThrough(page: Page, keys: string[]): Promise<void> {
  await page.evaluate(() => window.host.notify("panel.connection", { is: "ready" }));
  // Playwright's own locators search the whole page: they were the longest tasks.
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
  await page.waitForFunction(() => document.querySelector(".transcript")!.scrollTop > 10_000);
  await toEnd(page);
  for (let i = 0; i < 20; i++) await page.keyboard.press("PageUp");
  await page.waitForFunction(() => {
    const element = document.querySelector(".transcript")!;
    return element.scrollHeight - element.scrollTop - element.clientHeight > 5_000;
  });
  await page.keyboard.press("Home");
  await page.waitForFunction(() => document.querySelector(".transcript")!.scrollTop < 5_000);
  await toEnd(page);
  // The view stays at the end while text arrives.
  await page.evaluate(() => window.host.event("text.delta", { key: "more", text: "It goes on.\n\n".repeat(30) }));
  await page.waitForFunction(() => document.querySelector('[data-key="more"]') !== null);
  await page.waitForFunction(ended);
}
