// The queued prompts of a session panel are edited and moved.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import type { FakeHost } from "./pages/panelhost";
import { callsOf, startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";
import { scene } from "./scene";

declare const window: { host: FakeHost };

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

interface Opened {
  page: Page;
  /** The prompt box. */
  box: Locator;
  queue: Locator;
  /** A button of a row. */
  press: (name: string) => Locator;
  editor: Locator;
}

/** opened opens a panel whose agent works, with these prompts in the queue: run-1, run-2 and so on. */
async function opened(...prompts: string[]): Promise<Opened> {
  const page = await pages.open({ prepare: scene });
  const box = page.getByRole("textbox", { name: "Prompt", exact: true });
  await page.getByRole("combobox", { name: "Mode", exact: true }).waitFor();
  for (const words of prompts) {
    await box.fill(words);
    await box.press("Enter");
    await page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>(".prompt-box textarea")!.value === "");
  }
  const queue = page.getByRole("list", { name: "Queued prompts" });
  const press = (name: string): Locator => queue.getByRole("button", { name, exact: true });
  await press(`Edit: ${prompts[0]}`).waitFor();
  return { page, box, queue, press, editor: queue.getByRole("textbox", { name: "Queued prompt" }) };
}

/** shows waits until the queue shows these prompts in this order. */
async function shows(page: Page, ...texts: string[]): Promise<void> {
  await page.waitForFunction((all) => JSON.stringify([...document.querySelectorAll(".queued-text")].map((one) => one.textContent)) === JSON.stringify(all), texts);
}

/** focused waits until a button or a box has the focus. */
async function focused(page: Page, name: string): Promise<void> {
  await page.waitForFunction((label) => document.activeElement?.getAttribute("aria-label") === label, name);
}

async function begin(page: Page, run: string): Promise<void> {
  await tell(page, "turn.state", { turn_uuid: "run", state: "completed" });
  await tell(page, "turn.state", { turn_uuid: run, state: "starting" });
}

test("a queued prompt is edited by the keyboard, and begins with its new text", async () => {
  const { page, press, editor } = await opened("first", "second");
  await press("Edit: first").focus();
  await page.keyboard.press("Enter");
  await focused(page, "Queued prompt");
  await page.keyboard.type(" words");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("and more");
  await page.keyboard.press("Escape");
  await focused(page, "Edit: first");
  assert.deepEqual([await callsOf(page, "turn.edit"), await callsOf(page, "turn.interrupt")], [[], []]);
  await page.keyboard.press("Enter");
  assert.equal(await editor.inputValue(), "first");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("line");
  await page.keyboard.press("Enter");
  await focused(page, "Edit: first\nline");
  assert.deepEqual(await callsOf(page, "turn.edit"), [{ turn: "run-1", prompt: "first\nline" }]);
  await press("Edit: second").click();
  await editor.fill("other");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await shows(page, "first\nline", "other");
  await focused(page, "Edit: other");
  await begin(page, "run-1");
  await page.locator(".log .prompt", { hasText: "line" }).waitFor();
  await shows(page, "other");
  await focused(page, "Edit: other");
});

test("queued prompts are moved past each other, and the focus stays", async () => {
  const { page, queue, press } = await opened("first", "not editable", "second", "third");
  await press("Edit: third").waitFor();
  const names = await queue.getByRole("button").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  assert.deepEqual(names, [
    "Edit: first", "Move down: first", "Take back: first", "Take back: not editable",
    "Edit: second", "Move up: second", "Move down: second", "Take back: second", "Edit: third", "Move up: third", "Take back: third",
  ]);
  await press("Move up: third").focus();
  await page.keyboard.press("Enter");
  await shows(page, "first", "not editable", "third", "second");
  await focused(page, "Move up: third");
  await page.getByRole("status").filter({ hasText: "Moved to place 3 of 4" }).waitFor({ state: "attached" });
  await page.keyboard.press("Enter");
  await shows(page, "third", "first", "not editable", "second");
  await focused(page, "Edit: third");
  await press("Move down: third").click();
  await shows(page, "first", "not editable", "third", "second");
  await press("Move down: third").click();
  await shows(page, "first", "not editable", "second", "third");
  assert.deepEqual(await callsOf(page, "turn.move"), [
    { turn: "run-4", before: "run-3" }, { turn: "run-4", before: "run-1" }, { turn: "run-4", before: "run-3" }, { turn: "run-4" },
  ]);
});

test("a prompt that begins while it is edited leaves the edited text in the prompt box", async () => {
  const { page, box, press, editor } = await opened("first", "second");
  await press("Edit: first").click();
  await editor.fill("first edited");
  await begin(page, "run-1");
  await page.getByRole("status").filter({ hasText: /^The prompt has begun already: your edited text is in the prompt box\.$/ }).waitFor();
  assert.equal(await box.inputValue(), "first edited");
  await focused(page, "Prompt");
  await page.locator(".log .prompt", { hasText: /^first$/ }).waitFor();
  // The hub acts before its event arrives.
  await press("Edit: second").click();
  await editor.fill("second edited");
  await page.evaluate(() => (window.host.queued = []));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>(".prompt-box textarea")!.value === "first edited\n\nsecond edited");
  await focused(page, "Prompt");
  await page.getByText("The prompt has begun already").waitFor();
});

test("an edit that could not be saved stays, and says why", async () => {
  const { page, press, editor } = await opened("first");
  await page.evaluate(() => {
    window.host.answers["turn.edit"] = () => {
      throw new Error("the disk is full");
    };
  });
  await press("Edit: first").click();
  await editor.fill("first edited");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "The edited prompt was not saved: the disk is full" }).waitFor();
  assert.equal(await editor.inputValue(), "first edited");
});

test("what another client changes is shown at once, beside the text that is edited here", async () => {
  const { page, queue, press, editor } = await opened("first", "second", "third");
  await press("Edit: second").click();
  await editor.fill("mine");
  await page.evaluate(() => {
    window.host.changeQueue({ turn: "run-1", prompt: "theirs" });
    window.host.changeQueue({ turn: "run-3", before: "run-1" });
    window.host.changeQueue({ turn: "run-2", before: "run-3" });
  });
  await queue.getByText("theirs").waitFor();
  await shows(page, "third", "theirs");
  assert.equal(await editor.inputValue(), "mine");
  await focused(page, "Queued prompt");
  assert.equal(await queue.locator("li").first().getByRole("textbox").count(), 1);
  await begin(page, "run-1");
  await page.locator(".log .prompt", { hasText: /^theirs$/ }).waitFor();
  assert.equal(await editor.inputValue(), "mine");
  // Another client takes the prompt back.
  await tell(page, "turn.state", { turn_uuid: "run-2", state: "cancelled" });
  await page.getByRole("status").filter({ hasText: "The prompt was taken back elsewhere" }).waitFor();
});
