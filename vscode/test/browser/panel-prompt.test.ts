// The prompt box of a session panel.
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

async function opened(prepare: (host: FakeHost) => void = scene): Promise<{ page: Page; box: Locator }> {
  const page = await pages.open({ prepare });
  const box = page.getByRole("textbox", { name: "Prompt" });
  await page.getByRole("combobox", { name: "Mode", exact: true }).waitFor();
  await box.focus();
  return { page, box };
}

/** called waits until the page has called a method a given number of times. */
async function called(page: Page, method: string, times = 1): Promise<Array<Record<string, unknown>>> {
  await page.waitForFunction(([of, count]) => window.host.calls.filter((call) => call.method === of).length >= count, [method, times] as const);
  return callsOf(page, method);
}

test("slash commands are completed by the keyboard alone", async () => {
  const { page, box } = await opened();
  await page.keyboard.type("/");
  const list = page.getByRole("listbox", { name: "Completions" });
  await list.waitFor();
  assert.deepEqual(await list.getByRole("option").allInnerTexts().then((all) => all.map((text) => text.split("\n")[0])), ["/compact", "/init", "/review"]);
  await page.keyboard.type("re");
  await page.keyboard.press("ArrowDown");
  assert.equal(await box.getAttribute("aria-activedescendant"), "completion-0");
  await page.keyboard.press("Tab");
  assert.equal(await box.inputValue(), "/review ");
  assert.equal(await list.count(), 0);
  await page.keyboard.type("main");
  await page.keyboard.press("Enter");
  assert.deepEqual(await called(page, "session.prompt"), [{ session: "thread", prompt: "/review main" }]);
});

test("Escape closes the completions first, then it interrupts the turn; the text stays", async () => {
  const { page, box } = await opened();
  await page.keyboard.type("/re");
  await page.getByRole("option", { name: /review/ }).waitFor();
  await page.keyboard.press("Escape");
  assert.deepEqual([await page.getByRole("listbox", { name: "Completions" }).count(), await callsOf(page, "turn.interrupt")], [0, []]);
  await page.keyboard.press("Escape");
  assert.deepEqual(await called(page, "turn.interrupt"), [{ turn: "run" }]);
  assert.equal(await box.inputValue(), "/re");
});

test("Escape interrupts from anywhere in the panel, but not from a select box, and not without a running turn", async () => {
  const { page } = await opened();
  await page.getByRole("combobox", { name: "Mode", exact: true }).focus();
  await page.keyboard.press("Escape");
  await page.locator(".transcript").focus();
  assert.deepEqual(await callsOf(page, "turn.interrupt"), []);
  await page.keyboard.press("Escape");
  assert.deepEqual(await called(page, "turn.interrupt"), [{ turn: "run" }]);
  await tell(page, "turn.state", { state: "interrupted" });
  await page.getByRole("banner").getByText("interrupted").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("textbox", { name: "Prompt" }).focus();
  await page.keyboard.type("x");
  assert.equal((await callsOf(page, "turn.interrupt")).length, 1);
});

test("Escape stops the queue, too, says so, and keeps its prompts", async () => {
  const { page, box } = await opened();
  for (const words of ["first", "second"]) {
    await page.keyboard.type(words);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("textarea")!.value === "");
  }
  await page.getByRole("list", { name: "Queued prompts" }).getByText("second").waitFor();
  await page.keyboard.type("third");
  await page.keyboard.press("Escape");
  await page.getByText("Interrupted. The queue is stopped: its 2 prompts are in the prompt box.").waitFor();
  assert.deepEqual(await callsOf(page, "turn.interrupt"), [{ turn: "run-2", reason: "taken back" }, { turn: "run-1", reason: "taken back" }, { turn: "run" }]);
  assert.equal(await box.inputValue(), "third\n\nfirst\n\nsecond");
});

test("the keys of the extension's commands are not typed", async () => {
  const { page, box } = await opened();
  await page.keyboard.type("a");
  await page.keyboard.press("Alt+q");
  await page.keyboard.press("n");
  await page.keyboard.press("Alt+q");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Alt+q");
  await page.keyboard.press("Shift+N");
  await page.keyboard.press("b");
  assert.equal(await box.inputValue(), "ab");
  assert.deepEqual(await callsOf(page, "turn.interrupt"), []);
});

test("Escape closes the completions, and Enter sends then", async () => {
  const { page, box } = await opened();
  await page.keyboard.type("/re");
  await page.getByRole("option", { name: /review/ }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  assert.deepEqual((await called(page, "session.prompt"))[0]!["prompt"], "/re");
  await page.waitForFunction(() => document.querySelector("textarea")!.value === "");
  assert.equal(await box.inputValue(), "");
});

test("files behind @ go with the prompt as links, unless their name is taken out again", async () => {
  const { page, box } = await opened((host) => {
    host.session = { ...host.session, modes: [{ id: "default", name: "Default", by: "agent" }] };
    host.answers["panel.findFiles"] = ({ query }) => ({ files: ["src/lexer.ts", "src/parser.ts"].filter((path) => path.includes(query as string)).map((path) => ({ path, uri: `file:///project/${path}` })) });
  });
  await page.keyboard.type("Look at @lex");
  await page.getByRole("option", { name: /lexer\.ts/ }).waitFor();
  await page.keyboard.press("Enter");
  assert.equal(await box.inputValue(), "Look at @src/lexer.ts ");
  await page.keyboard.type("and @pars");
  await page.getByRole("option", { name: /parser\.ts/ }).click();
  await page.keyboard.type("now");
  await box.fill("Look at @src/lexer.ts now");
  await page.keyboard.press("Enter");
  assert.deepEqual(await called(page, "session.prompt"), [{ session: "thread", prompt: "Look at @src/lexer.ts now", content: [{ type: "resource_link", uri: "file:///project/src/lexer.ts", name: "src/lexer.ts" }] }]);
});

test("problems, the terminal and git's changes go along by @, and by the button, which offers files and folders, too", async () => {
  const block = (source: string, text: string) => ({ type: "resource", resource: { uri: `duet:/${source}`, mimeType: "text/plain", text } });
  const { page, box } = await opened((host) => {
    host.session = { ...host.session, modes: [{ id: "default", name: "Default", by: "agent" }] };
    host.answers["panel.findFiles"] = ({ query }) => ({ files: query === "pro" ? [{ path: "src/proc/", uri: "file:///project/src/proc/" }] : [] });
    host.answers["panel.readSource"] = ({ source }) => (source === "terminal" ? { content: [], refused: ["no terminal is open"] } : { content: [{ type: "resource", resource: { uri: `duet:/${source as string}`, mimeType: "text/plain", text: "a.ts:1:1: error" } }], refused: [] });
    host.answers["panel.pickContext"] = () => ({ content: [{ type: "resource", resource: { uri: "duet:/problems", mimeType: "text/plain", text: "none left" } }], refused: [] });
  });
  await page.keyboard.type("Fix @pro");
  const offers = (labels: string[]): Promise<unknown> =>
    page.waitForFunction((wanted) => [...document.querySelectorAll<HTMLElement>("[role=option]")].map((option) => option.innerText.split("\n")[0]).join() === wanted, labels.join());
  await offers(["problems", "proc/"]);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove problems" }).waitFor();
  await page.keyboard.type("@term");
  await offers(["terminal"]);
  await page.keyboard.press("Enter");
  await page.getByText("no terminal is open").waitFor();
  await page.getByRole("button", { name: "Add context" }).click();
  await called(page, "panel.pickContext");
  await box.fill("Fix the problems");
  await page.keyboard.press("Enter");
  assert.deepEqual(await called(page, "session.prompt"), [{ session: "thread", prompt: "Fix the problems", content: [block("problems", "none left")] }]);
});

const red = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC";

/** give pastes or drops files into the prompt box. */
async function give(page: Page, how: "paste" | "drop", files: Array<{ name: string; type: string; base64?: string; size?: number }>, uris = ""): Promise<void> {
  await page.evaluate(
    ([kind, all, addresses]) => {
      const data = new DataTransfer();
      for (const { name, type, base64, size } of all) data.items.add(new File([base64 === undefined ? new Uint8Array(size ?? 1) : Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))], name, { type }));
      if (addresses !== "") data.setData("text/uri-list", addresses);
      const options = { bubbles: true, cancelable: true };
      document.querySelector("textarea")!.dispatchEvent(kind === "paste" ? new ClipboardEvent("paste", { ...options, clipboardData: data }) : new DragEvent("drop", { ...options, dataTransfer: data }));
    },
    [how, files, uris] as const,
  );
}

test("images are pasted and dropped, shown small, taken away again, and sent", async () => {
  const { page } = await opened();
  await give(page, "paste", [{ name: "one.png", type: "image/png", base64: red }]);
  await give(page, "drop", [{ name: "two.png", type: "image/png", base64: red }]);
  await page.getByRole("img", { name: "two.png" }).waitFor();
  await page.getByRole("button", { name: "Remove one.png" }).click();
  await page.keyboard.type("Like this");
  await page.keyboard.press("Enter");
  assert.deepEqual(await called(page, "session.prompt"), [{ session: "thread", prompt: "Like this", content: [{ type: "image", mimeType: "image/png", data: red, name: "two.png" }] }]);
  await page.getByRole("img", { name: "two.png" }).waitFor({ state: "detached" });
});

test("what is too large, or no image, is refused with why", async () => {
  const { page } = await opened();
  await give(page, "drop", [{ name: "huge.png", type: "image/png", size: (10 << 20) + 1 }, { name: "notes.pdf", type: "application/pdf" }]);
  const alert = page.getByRole("alert").filter({ hasText: "huge.png" });
  await alert.waitFor();
  const text = await alert.innerText();
  assert.ok(text.includes("huge.png is too large: 10.5 MB, and an image may have 10 MiB") && text.includes("notes.pdf is no image"), text);
  assert.equal(await page.locator(".thumbnail").count(), 0);
});

test("files that are dropped from the explorer are read by the extension", async () => {
  const { page } = await opened((host) => {
    host.session = { ...host.session, modes: [{ id: "default", name: "Default", by: "agent" }] };
    host.answers["panel.readFiles"] = ({ uris }) => ({ content: [{ type: "resource_link", uri: (uris as string[])[0], name: "a.ts" }], refused: ["b.bin: it is too large"] });
  });
  await give(page, "drop", [], "file:///project/a.ts\r\nfile:///project/b.bin");
  await page.getByRole("button", { name: "Remove a.ts" }).waitFor();
  assert.deepEqual(await callsOf(page, "panel.readFiles"), [{ uris: ["file:///project/a.ts", "file:///project/b.bin"] }]);
  await page.getByText("b.bin: it is too large").waitFor();
});

test("a draft is kept, and is there again after a reload", async () => {
  const { page, box } = await opened();
  await page.keyboard.type("half a thou");
  const kept = await called(page, "panel.keepDraft");
  assert.deepEqual(kept.at(-1), { text: "half a thou", content: [], session: "thread" });
  await page.reload();
  await page.getByRole("combobox", { name: "Mode", exact: true }).waitFor();
  assert.equal(await box.inputValue(), "half a thou");
});

test("a draft of another window comes with the start", async () => {
  const { box } = await opened((host) => {
    host.session = { ...host.session, modes: [{ id: "default", name: "Default", by: "agent" }] };
    host.start.draft = { text: "from elsewhere", content: [] };
  });
  assert.equal(await box.inputValue(), "from elsewhere");
});

test("a prompt that could not be sent stays, and says why", async () => {
  const { page, box } = await opened((host) => {
    host.session = { ...host.session, modes: [{ id: "default", name: "Default", by: "agent" }] };
    host.answers["session.prompt"] = () => {
      throw new Error("the disk is full");
    };
  });
  await page.keyboard.type("important words");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "It was not sent: the disk is full" }).waitFor();
  assert.equal(await box.inputValue(), "important words");
});

test("Shift+Enter makes a line, and an input method keeps its Enter", async () => {
  const { page, box } = await opened();
  await page.keyboard.type("one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  await box.evaluate((element) => element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true })));
  assert.equal(await box.inputValue(), "one\ntwo");
  assert.deepEqual(await callsOf(page, "session.prompt"), []);
  const height = (await box.boundingBox())!.height;
  await box.fill(Array.from({ length: 100 }, (_, i) => String(i)).join("\n"));
  const grown = (await box.boundingBox())!.height;
  assert.ok(grown > height && grown <= 900 * 0.4 + 1, `${height} ${grown}`);
});

test("Up and Down at the borders go through earlier prompts and back to the draft", async () => {
  const { page, box } = await opened();
  await page.keyboard.type("draft");
  await page.keyboard.press("ArrowUp");
  assert.equal(await box.inputValue(), "Run the tests");
  await page.keyboard.press("ArrowUp");
  assert.equal(await box.inputValue(), "What does parse.ts do?");
  await page.keyboard.press("ArrowUp");
  assert.equal(await box.inputValue(), "What does parse.ts do?");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await box.inputValue(), "draft");
});

test("while the agent works prompts are queued, are taken back, and stand where they begin", async () => {
  const { page, box } = await opened();
  for (const words of ["first", "second"]) {
    await page.keyboard.type(words);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("textarea")!.value === "");
  }
  const queue = page.getByRole("list", { name: "Queued prompts" });
  await queue.getByText("second").waitFor();
  assert.equal(await page.locator(".log .prompt", { hasText: "first" }).count(), 0);
  await queue.getByRole("button", { name: "Take back: second" }).click();
  assert.deepEqual(await called(page, "turn.interrupt"), [{ turn: "run-2", reason: "taken back" }]);
  await tell(page, "turn.state", { turn_uuid: "run-2", state: "cancelled" });
  await tell(page, "item.changed", { turn_uuid: "run-2", type: "message", role: "user", key: "prompt-2", text: "second", withdrawn: true });
  await queue.getByText("second").waitFor({ state: "detached" });
  assert.equal(await box.inputValue(), "second");
  await page.waitForTimeout(300);
  assert.equal(await page.locator(".prompt", { hasText: "second" }).count(), 0, "it is in the box again");
  await tell(page, "item.added", { type: "message", role: "assistant", key: "m9", text: "Done with the old one." });
  await tell(page, "turn.state", { turn_uuid: "run", state: "completed" });
  await tell(page, "turn.state", { turn_uuid: "run-1", state: "starting" });
  await page.locator('[data-key="m9"] ~ .prompt', { hasText: "first" }).waitFor();
  await queue.waitFor({ state: "hidden" });
});

test("while the agent works a prompt is sent now by a button or by a key, and stands once in the transcript", async () => {
  const { page, box } = await opened();
  const now = page.getByRole("button", { name: "Send now" });
  assert.equal(await now.getAttribute("title"), "Send now: the agent gets it while it works (Ctrl+Enter)");
  await tell(page, "item.added", { type: "message", role: "assistant", key: "m8", text: "I go on." });
  await page.keyboard.type("Use the other file");
  await now.click();
  await page.getByRole("status").filter({ hasText: /^Sent: the agent has it\.$/ }).waitFor();
  await page.locator('[data-key="m8"] ~ .prompt', { hasText: "Use the other file" }).waitFor();
  assert.equal(await box.inputValue(), "");
  await box.focus();
  await page.keyboard.type("And be brief");
  assert.equal(await page.locator(".outcome").innerText(), "", "the status is gone when the next prompt is typed");
  await page.keyboard.press("Control+Enter");
  await page.locator(".log .prompt", { hasText: "And be brief" }).waitFor();
  assert.equal(await page.locator(".log .prompt", { hasText: "Use the other file" }).count(), 1);
  assert.deepEqual(await callsOf(page, "session.prompt"), ["Use the other file", "And be brief"].map((prompt) => ({ session: "thread", prompt, deliver: "steer" })));
  await page.keyboard.type("later");
  await page.keyboard.press("Enter");
  await page.getByRole("status").filter({ hasText: /^Queued: it runs when this turn has ended\.$/ }).waitFor();
  assert.deepEqual((await callsOf(page, "session.prompt")).at(-1), { session: "thread", prompt: "later" });
  await give(page, "paste", [{ name: "one.png", type: "image/png", base64: red }]);
  await page.getByRole("img", { name: "one.png" }).waitFor(); // the page reads it first
  await page.keyboard.type("Like this");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("status").filter({ hasText: "Queued: it runs when this turn has ended (files wait for that)." }).waitFor();
  await tell(page, "turn.state", { turn_uuid: "run", state: "completed" });
  await now.waitFor({ state: "hidden" });
  assert.equal(await page.locator(".outcome").innerText(), "");
});

test("text that the extension inserts stands at the cursor, and the box gets the keyboard", async () => {
  const { page, box } = await opened();
  await page.keyboard.type("ab");
  await page.keyboard.press("ArrowLeft");
  await page.evaluate(() => window.host.notify("panel.insert", { text: "XY", content: [{ type: "resource_link", uri: "file:///project/c.ts", name: "c.ts" }] }));
  await page.getByRole("button", { name: "Remove c.ts" }).waitFor();
  assert.equal(await box.inputValue(), "aXYb");
  assert.equal(await box.evaluate((element) => document.activeElement === element), true);
});

const lines = { type: "resource", resource: { uri: "file:///project/src/panel.ts#L46-90", mimeType: "text/plain", text: "the lines" } };

test("a chip shows the active editor, which goes with the prompt unless it is removed from that one", async () => {
  const { page, box } = await opened((host) => {
    host.session = { ...host.session, modes: [{ id: "default", name: "Default", by: "agent" }], agent_session: { commands: [{ name: "review" }] } };
    host.answers["panel.context"] = () => ({ label: "panel.ts:46-90", reference: "@src/panel.ts#L46-90" });
    host.answers["panel.readContext"] = () => ({ content: [{ type: "resource", resource: { uri: "file:///project/src/panel.ts#L46-90", mimeType: "text/plain", text: "the lines" } }] });
  });
  const remove = page.getByRole("list", { name: "Attached" }).getByRole("button", { name: "Remove the active editor, panel.ts:46-90" });
  await remove.waitFor();
  await page.keyboard.type("What is this?");
  await page.keyboard.press("Enter");
  assert.deepEqual(await called(page, "session.prompt"), [{ session: "thread", prompt: "What is this?", content: [lines] }]);
  await page.waitForFunction(() => document.querySelector("textarea")!.value === "");

  // Remove it by the keyboard; a reload does not bring it back.
  await page.keyboard.press("Shift+Tab");
  assert.equal(await remove.evaluate((element) => document.activeElement === element), true);
  await page.keyboard.press("Enter");
  assert.equal(await remove.count(), 0);
  await page.keyboard.type("Without it");
  await page.reload();
  await page.getByRole("combobox", { name: "Mode", exact: true }).waitFor();
  assert.deepEqual([await box.inputValue(), await remove.count()], ["Without it", 0]);
  await box.press("Enter");
  assert.deepEqual(await called(page, "session.prompt"), [{ session: "thread", prompt: "Without it" }]);
  await remove.waitFor(); // for the next prompt

  await box.fill("/review");
  assert.equal(await remove.count(), 0, "a command has no other arguments");
  await box.fill("");
  await page.evaluate(() => window.host.notify("panel.contextChanged", { context: { label: "a.ts", reference: "@a.ts" } }));
  await page.getByRole("button", { name: "Remove the active editor, a.ts" }).waitFor();
  await page.evaluate(() => window.host.notify("panel.contextChanged", { context: null }));
  await box.fill("Nothing is open");
  await box.press("Enter");
  assert.deepEqual((await called(page, "session.prompt", 2))[1], { session: "thread", prompt: "Nothing is open" });
});

test("lines that the user has added go once; a working agent gets their place in the text", async () => {
  const { page, box } = await opened((host) => {
    host.session = { ...host.session, state: "running", modes: [{ id: "default", name: "Default", by: "agent" }] };
    host.answers["panel.context"] = () => ({ label: "panel.ts:46-90", reference: "@src/panel.ts#L46-90" });
    host.answers["panel.readContext"] = () => ({ content: [{ type: "resource", resource: { uri: "file:///project/src/panel.ts#L46-90", mimeType: "text/plain", text: "the lines" } }] });
  });
  await page.evaluate((content) => window.host.notify("panel.insert", { text: "Look at @src/panel.ts#L46-90 ", content: [content] }), lines);
  await page.getByRole("button", { name: "Remove panel.ts#L46-90" }).waitFor();
  await box.press("Enter");
  assert.deepEqual(await called(page, "session.prompt"), [{ session: "thread", prompt: "Look at @src/panel.ts#L46-90 ", content: [lines] }]);
  await page.waitForFunction(() => document.querySelector("textarea")!.value === "");
  await page.keyboard.type("And here");
  await page.keyboard.press("Control+Enter");
  assert.deepEqual((await called(page, "session.prompt", 2))[1], { session: "thread", prompt: "And here\n\n@src/panel.ts#L46-90", deliver: "steer" });
});

test("a prompt that was taken back stays away after a reload and goes below the draft; one that another client cancelled stays", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.session = { ...host.session, state: "running" };
      const prompt = (n: number, text: string, over: Record<string, unknown> = {}): void => void host.items.push({ turn_uuid: `run-${n}`, created_at: "2026-01-02T03:04:05Z", type: "message", role: "user", key: `prompt-${n}`, text, seq: n, ...over });
      if (host.state === undefined) return;
      prompt(1, "mine", { turn_state: "cancelled", withdrawn: true });
      prompt(2, "theirs", { turn_state: "cancelled", withdrawn: true });
    },
  });
  const box = page.getByRole("textbox", { name: "Prompt", exact: true });
  await page.getByRole("banner").getByText("running").waitFor();
  for (const words of ["mine", "theirs"]) {
    await box.fill(words);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("textarea")!.value === "");
  }
  await box.fill("a draft");
  await page.getByRole("button", { name: "Take back: mine" }).click();
  for (const n of [1, 2]) {
    await tell(page, "turn.state", { turn_uuid: `run-${n}`, state: "cancelled" });
    await tell(page, "item.changed", { turn_uuid: `run-${n}`, type: "message", role: "user", key: `prompt-${n}`, text: n === 1 ? "mine" : "theirs", withdrawn: true });
  }
  const prompts = page.locator(".log .prompt");
  await prompts.filter({ hasText: "The agent did not get this." }).waitFor();
  assert.deepEqual([await prompts.locator(".prompt-text").allTextContents(), await box.inputValue()], [["theirs"], "a draft\n\nmine"]);
  await page.reload();
  await prompts.filter({ hasText: "theirs" }).waitFor();
  assert.deepEqual(await prompts.locator(".prompt-text").allTextContents(), ["theirs"]);
});

test("the prompt box is as high as its text or its placeholder, also when the panel gets another width", async () => {
  const page = await pages.open({ width: 360, prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  const box = page.getByRole("textbox", { name: "Prompt", exact: true });
  const fits = (): Promise<unknown> => page.waitForFunction(() => {
    const { scrollHeight, clientHeight } = document.querySelector("textarea")!;
    return scrollHeight <= clientHeight && clientHeight < scrollHeight + 10;
  }, undefined, { timeout: 20_000 });
  await page.getByPlaceholder("Add to the queue: it is sent when the agent is done").waitFor();
  await fits();
  assert.ok((await box.boundingBox())!.height > 40, "two rows");
  await tell(page, "turn.state", { state: "completed" });
  await page.getByPlaceholder("Write a prompt").waitFor();
  assert.ok((await box.boundingBox())!.height < 40, "one row");
  await page.setViewportSize({ width: 800, height: 900 });
  await box.fill("Words of a prompt that fill about one row of a wide panel, and more in a narrow one");
  assert.ok((await box.boundingBox())!.height < 40, "one row");
  await page.setViewportSize({ width: 360, height: 900 });
  await page.waitForFunction(() => document.querySelector("textarea")!.clientHeight > 40, undefined, { timeout: 20_000 });
  await fits();
});
