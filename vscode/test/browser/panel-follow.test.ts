// A user who scrolls up while the agent writes stays there, even if the browser scrolls in small steps.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { longSession } from "./longsession";
import type { FakeHost } from "./pages/panelhost";
import { startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";

declare const window: { host: FakeHost };

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

/** Waits until a given number of further characters of the agent are shown. */
async function writes(page: Page, count: number): Promise<void> {
  const written = (): number => document.querySelector('[data-key="m"]')?.textContent.length ?? 0;
  const before = await page.evaluate(written);
  await page.waitForFunction((most) => (document.querySelector('[data-key="m"]')?.textContent.length ?? 0) > most, before + count);
}

/** A panel with a long session, to which its agent adds a few lines in each frame. */
async function writing(): Promise<Page> {
  const page = await pages.open({
    prepare: (host) => {
      host.start = { ...host.start, connection: { is: "starting" } };
      host.session = { ...host.session, state: "running" };
    },
  });
  await page.getByText("duet-rpc is starting…").waitFor();
  const keys = await page.evaluate(longSession);
  await page.evaluate(() => window.host.notify("panel.connection", { is: "ready" }));
  await page.locator(`[data-key="${keys.at(-1)}"]`).waitFor();
  await page.evaluate(() => {
    let told = 0;
    setInterval(() => window.host.event("text.delta", { key: "m", text: told++ % 8 === 7 ? "\n\n" : "Some words of it. " }), 8);
  });
  await writes(page, 2_000);
  await page.mouse.move(300, 300);
  await page.locator(".transcript").focus();
  return page;
}

const ways: Array<[string, (page: Page) => Promise<unknown>]> = [
  ["A tick of a wheel", (page) => page.mouse.wheel(0, -120)],
  [
    "A touchpad",
    async (page) => {
      for (let i = 0; i < 6; i++) await page.mouse.wheel(0, -12);
    },
  ],
  ["ArrowUp", (page) => page.keyboard.press("ArrowUp")],
  ["PageUp", (page) => page.keyboard.press("PageUp")],
];

for (const [way, up] of ways) {
  test(`${way} leaves the end while the agent writes, and who comes back to it is taken along`, async () => {
    const page = await writing();
    const distance = (): Promise<number> =>
      page.evaluate(() => {
        const { scrollTop, scrollHeight, clientHeight } = document.querySelector(".transcript")!;
        return scrollHeight - scrollTop - clientHeight;
      });
    const jump = page.getByRole("button", { name: "Newest" });
    assert.equal(await jump.isVisible(), false);
    await up(page);
    await jump.waitFor();
    await page.waitForFunction(() => {
      const { scrollTop, scrollHeight, clientHeight } = document.querySelector(".transcript")!;
      return scrollHeight - scrollTop - clientHeight > 300;
    });
    assert.equal(await jump.isVisible(), true);
    // Text that arrives between the wheel event and the frame may exceed the threshold for the end. A user scrolls again, too.
    while (await jump.isVisible()) {
      await page.mouse.wheel(0, 1_000_000);
      await writes(page, 20);
    }
    await writes(page, 2_000);
    assert.equal(await jump.isVisible(), false);
    assert.ok((await distance()) < 100, "what is written is seen");
    await page.close();
  });
}

test("what the user reads is in the same place after a reload, also on an older page; the end stays the end", async () => {
  const page = await pages.open({
    prepare: (host) => {
      for (let i = 1; i <= 500; i++) host.items.push({ turn_uuid: "run", created_at: "2026-01-02T03:04:05Z", type: "message", role: "assistant", key: `m${i}`, seq: i, id: i, text: `Message ${i}\n\n${"Some words of it. ".repeat((i * 7) % 90)}` });
    },
  });
  const reading = (): Promise<{ key: string; offset: number } | undefined> => page.evaluate(() => {
    const { top } = document.querySelector(".transcript")!.getBoundingClientRect();
    const seen = [...document.querySelectorAll<HTMLElement>(".entry")].find((entry) => entry.getBoundingClientRect().bottom > top);
    return seen && { key: seen.dataset["key"]!, offset: Math.round(seen.getBoundingClientRect().top - top) };
  });
  const kept = (): Promise<unknown> => page.evaluate(() => (window.host.state as { reading?: { key: string } }).reading?.key);
  await page.locator('[data-key="m500"]').waitFor();
  await page.getByRole("button", { name: "Show older messages" }).evaluate((button: HTMLElement) => button.click());
  await page.locator('[data-key="m240"]').waitFor({ state: "attached" });
  await page.locator(".transcript").evaluate((element) => element.dispatchEvent(new PointerEvent("pointerdown")));
  await page.locator('[data-key="m240"]').evaluate((element) => element.scrollIntoView({ block: "start" }));
  await page.waitForFunction(() => (window.host.state as { reading?: unknown }).reading !== undefined);
  await page.waitForTimeout(500);
  const before = await reading();
  assert.equal(await kept(), before!.key);
  await page.reload();
  await page.locator(`[data-key="${before!.key}"]`).waitFor();
  await page.waitForFunction((key) => {
    const { top } = document.querySelector(".transcript")!.getBoundingClientRect();
    return [...document.querySelectorAll<HTMLElement>(".entry")].find((entry) => entry.getBoundingClientRect().bottom > top)?.dataset["key"] === key;
  }, before!.key);
  assert.ok(Math.abs((await reading())!.offset - before!.offset) <= 2, JSON.stringify([before, await reading()]));
  await page.waitForTimeout(500);
  assert.equal(await kept(), before!.key);

  await page.getByRole("button", { name: "Newest" }).click();
  await page.waitForFunction(() => (window.host.state as { reading?: unknown }).reading === undefined);
  await page.reload();
  await page.locator('[data-key="m500"]').waitFor();
  assert.equal(await page.getByRole("button", { name: "Newest" }).isVisible(), false);
});

test("a scroll bar leaves the end, though what it brings into view is lower than it was thought to be", async () => {
  const page = await writing();
  await page.locator(".transcript").evaluate((transcript) => {
    transcript.dispatchEvent(new PointerEvent("pointerdown"));
    transcript.querySelector<HTMLElement>(".log")!.style.marginTop = "-100px";
    transcript.scrollTop = 0;
  });
  await page.getByRole("button", { name: "Newest" }).waitFor();
  await writes(page, 20);
  assert.ok(await page.locator(".transcript").evaluate(({ scrollTop, scrollHeight }) => scrollTop < scrollHeight / 2), "the view has stayed there");
  await page.close();
});

test("what is selected while the agent writes stays under the pointer, and selected", async () => {
  const page = await writing();
  const box = (await page.locator('[data-key="m"]').boundingBox())!;
  const y = box.y + box.height - 600; // well above the paragraph that is still being written, whose text is replaced
  const jump = page.getByRole("button", { name: "Newest" });
  // A drag that begins in text that the agent's next words replace selects nothing: a user drags again.
  for (let tries = 0; !(await jump.isVisible()) && tries < 20; tries++) {
    if (tries > 0) await page.mouse.up();
    await page.mouse.move(box.x + 20, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 90, y - 80, { steps: 4 }); // over several lines, one of which has words
  }
  await jump.waitFor();
  // If entries above are lower than estimated, the browser adjusts the scroll position so that the text stays in place.
  const seen = (): Promise<[number, string]> => page.evaluate(() => [Math.round(getSelection()!.getRangeAt(0).getBoundingClientRect().top), getSelection()!.toString()]);
  const before = await seen();
  assert.match(before[1], /\w/);
  await writes(page, 2_000);
  assert.deepEqual(await seen(), before);
  await page.mouse.up();
  await writes(page, 500);
  assert.deepEqual(await seen(), before);
  await page.mouse.click(box.x + 20, y);
  await jump.click();
  await writes(page, 500);
  assert.equal(await jump.isVisible(), false);
  await page.close();
});

test("a wheel over a long code block scrolls that alone, and the end is followed", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  await page.getByRole("heading", { name: "A session" }).waitFor();
  const code = Array.from({ length: 200 }, (_, i) => `let v${i} = ${i};`).join("\n");
  await tell(page, "text.delta", { key: "m", text: `${"It begins.\n\n".repeat(60)}\`\`\`js\n${code}\n\`\`\`\n\nThat was it.\n\n` });
  const block = page.locator("[data-key='m'] pre");
  await block.getByText("let v199").waitFor();
  await block.evaluate((element) => (element.scrollTop = 500));
  await block.hover();
  await page.mouse.wheel(0, -120);
  await page.waitForFunction(() => document.querySelector("[data-key='m'] pre")!.scrollTop < 500);
  assert.equal(await page.getByRole("button", { name: "Newest" }).isVisible(), false);
  await tell(page, "text.delta", { key: "m", text: "It goes on.\n\n".repeat(60) });
  await page.waitForFunction(() => document.querySelector("[data-key='m']")!.textContent.includes("It goes on."));
  await page.waitForFunction(() => {
    const { scrollTop, scrollHeight, clientHeight } = document.querySelector(".transcript")!;
    return scrollHeight - scrollTop - clientHeight < 5;
  });
  await page.close();
});

test("what is opened at the end is read from its beginning, and what is short leaves the end where it is", async () => {
  const page = await pages.open({
    prepare: (host) => {
      const item = (seq: number, over: Record<string, unknown>): Record<string, unknown> => ({ turn_uuid: "run", created_at: "2026-01-02T03:04:05Z", seq, ...over });
      const tool = (seq: number, id: string, lines: number): Record<string, unknown> =>
        item(seq, { type: "tool_call", key: id, tool_name: "Read", title: `Read ${id}`, tool_kind: "read", status: "completed", tool_input: { file_path: id }, result: Array.from({ length: lines }, (_, i) => `${id} line ${i}.`).join("\n") });
      host.session = { ...host.session, state: "running" };
      host.items = [item(1, { type: "message", role: "assistant", key: "m0", text: "It begins.\n\n".repeat(60) }), tool(2, "short", 2), tool(3, "long", 300)];
    },
  });
  const jump = page.getByRole("button", { name: "Newest" });
  const title = (text: string): Locator => page.locator(".tool-title", { hasText: text });
  const top = (text: string): Promise<number> => page.getByText(text, { exact: false }).first().evaluate((element) => element.getBoundingClientRect().top - document.querySelector(".transcript")!.getBoundingClientRect().top);
  await title("Read short").click();
  await page.getByText("short line 1.").waitFor();
  assert.equal(await jump.isVisible(), false);
  await title("Read short").click();
  await title("Read long").click();
  await page.getByRole("button", { name: "Show all 300 lines" }).click();
  await page.getByText("long line 150.").waitFor({ state: "attached" });
  await jump.waitFor();
  await tell(page, "text.delta", { key: "m", text: "It goes on.\n\n".repeat(60) });
  await page.locator("[data-key='m']").waitFor({ state: "attached" });
  assert.ok((await top("long line 0.")) >= 0, "its beginning is seen");
  await jump.click();
  await tell(page, "text.delta", { key: "m", text: "It ends.\n\n".repeat(60) });
  await page.waitForFunction(() => document.querySelector("[data-key='m']")!.textContent.includes("It ends."));
  assert.equal(await jump.isVisible(), false);
  await page.close();
});
