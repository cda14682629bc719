// A panel whose first prompt starts a session.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import type { FakeHost } from "./pages/panelhost";
import { callsOf, problemsOf, startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";
import type { Theme } from "./themes";

declare const window: { host: FakeHost };

const pictures = fileURLToPath(new URL("../pictures/", import.meta.url));
let pages: PanelPages;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  pages = await startPages();
});

after(() => pages?.close());

/** Runs in the page. */
function newSession(host: FakeHost): void {
  host.start.title = "New session";
  host.start.newSession = {
    about: "Your first prompt starts a session in parser.",
    folders: [{ path: "/home/alice/parser", name: "parser" }, { path: "/home/alice/shop", name: "shop" }],
    agents: [{ name: "claude", title: "Claude Code", description: "2.1" }, { name: "demo", title: "Demonstration", description: "" }],
    description: {
      agent: "claude", modes: [{ id: "default", name: "Default", by: "agent" }, { id: "plan", name: "Plan", by: "agent" }],
      agent_session: { model: { current: "large", available: [{ id: "large", name: "Large 4.1" }, { id: "small", name: "Small 4.1" }] }, commands: [{ name: "review" }], schema: 1 } as never,
    },
    chosen: { folder: "/home/alice/parser", agent: "claude" },
  };
  host.answers["panel.context"] = () => ({ label: "lexer.ts:42-46", reference: "@src/lexer.ts#L42-46" });
  host.answers["panel.readContext"] = () => ({ content: [{ type: "resource_link", uri: "file:///home/alice/parser/src/lexer.ts", name: "src/lexer.ts" }] });
  host.session = { ...host.session, title: "Greet the reader", session_title: "Greet the reader" };
}

const box = (page: Page): ReturnType<Page["getByRole"]> => page.getByRole("textbox", { name: "Prompt" });
const selects = (page: Page): Promise<string[]> => page.getByRole("combobox").evaluateAll((all) => all.map((one) => `${one.getAttribute("aria-label")}: ${(one as HTMLSelectElement).selectedOptions[0]!.text}`));

test("a fork shows the last turns that it continues, before its first prompt", async () => {
  const page = await pages.open({
    prepare: (host) => {
      const item = (key: string, role: string, text: string): Record<string, unknown> => ({ turn: "11.1", turn_uuid: "earlier", turn_state: "completed", created_at: "2026-01-02T03:04:05Z", updated_at: "2026-01-02T03:04:05Z", type: "message", key, role, text });
      const before = [item("p1", "user", "Fix the lexer"), item("m1", "assistant", "It skips comments now.")] as never[];
      host.start = { ...host.start, newSession: { about: "Your first prompt starts a fork.", before, folders: [], agents: [], chosen: { folder: "/home/alice/parser" } } };
    },
  });
  const about = page.getByText("Your first prompt starts a fork.");
  await about.waitFor();
  const said = page.getByText("It skips comments now.");
  await said.waitFor();
  assert.ok((await about.boundingBox())!.y > (await said.boundingBox())!.y, "it stands below them");
  await page.getByRole("article", { name: "You" }).hover();
  await page.getByRole("button", { name: "Fork after this prompt" }).click();
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "panel.command"));
  assert.deepEqual(await callsOf(page, "panel.command"), [{ command: "duet.fork", turn: "earlier" }]);
});

test("where only the demo agent is installed, the panel says so and leads to others", async () => {
  const page = await pages.open({ prepare: newSession });
  await page.getByText("Your first prompt starts a session in parser.").waitFor();
  assert.equal(await page.getByText("Only the demo agent").isVisible(), false);
  const alone = await pages.open({ prepare: (host) => (host.start.newSession = { about: "It starts.", folders: [], agents: [], onlyDemo: true, chosen: { folder: "/home/alice/parser" } }) });
  await alone.getByText("Only the demo agent is ready").waitFor();
  await alone.getByRole("button", { name: "Set Up an Agent…" }).click();
  assert.deepEqual(await callsOf(alone, "panel.command"), [{ command: "duet.setUpAgent" }]);
});

test("a panel that is not loaded yet has no buttons of a session, and sends its prompt when it is", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.silent.add("panel.start");
      host.start.newSession = { about: "It starts.", folders: [], agents: [], chosen: { folder: "/home/alice/parser" } };
    },
  });
  await box(page).fill("Greet the reader");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector<HTMLButtonElement>(".send")!.disabled);
  assert.equal(await page.getByRole("banner").getByRole("button").count(), 0);
  await page.evaluate(() => window.host.release("panel.start"));
  await page.locator(".prompt", { hasText: "Greet the reader" }).waitFor();
  assert.deepEqual([await callsOf(page, "panel.launch"), await box(page).inputValue(), await page.locator(".failure").allTextContents()], [[{ prompt: "Greet the reader" }], "", [""]]);
  assert.deepEqual(problemsOf(page), []);
});

test("the folder, the agent, its mode and its model are chosen before the first prompt, which starts the session in the same panel", async () => {
  const page = await pages.open({ prepare: newSession });
  await page.getByRole("combobox", { name: "Agent" }).waitFor();
  assert.deepEqual(await selects(page), ["Folder: parser", "Agent: claude", "Mode: Default", "Model: Default"]);
  await page.getByText("Your first prompt starts a session in parser.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Fork the session" }).count(), 0, "there is no session yet");
  await page.getByRole("combobox", { name: "Model" }).selectOption("Small 4.1");
  await page.getByRole("combobox", { name: "Mode", exact: true }).selectOption("Plan");
  await page.waitForFunction(() => window.host.calls.filter(({ method }) => method === "panel.choose").length === 2);
  assert.deepEqual(await callsOf(page, "panel.choose"), [{ model: "small" }, { mode: "plan" }]);
  await box(page).focus();
  await page.keyboard.type("/rev");
  await page.getByRole("option", { name: /review/ }).waitFor();
  await box(page).fill("Greet\nthe reader");
  await page.keyboard.press("Enter");
  await page.locator(".prompt", { hasText: "the reader" }).waitFor();
  assert.deepEqual(await callsOf(page, "panel.launch"), [{ prompt: "Greet\nthe reader", content: [{ type: "resource_link", uri: "file:///home/alice/parser/src/lexer.ts", name: "src/lexer.ts" }] }]);
  await page.getByRole("heading", { name: "Greet the reader" }).waitFor();
  await page.getByText("7.1 works in this directory, too, and may change the same files.").waitFor();
  await page.getByRole("button", { name: "Fork the session" }).waitFor();
  assert.deepEqual([await box(page).inputValue(), await page.getByRole("combobox", { name: "Agent" }).count(), await page.getByText("Your first prompt").count()], ["", 0, 0]);
  // From here on the panel shows that session.
  await tell(page, "item.added", { type: "message", role: "assistant", key: "m1", text: "Hello, reader" });
  await page.getByText("Hello, reader").waitFor();
  await tell(page, "turn.state", { state: "completed" });
  await box(page).fill("Again");
  await page.keyboard.press("Enter");
  await page.locator(".prompt", { hasText: "Again" }).waitFor();
  assert.deepEqual([(await callsOf(page, "session.prompt")).length, (await callsOf(page, "panel.launch")).length], [1, 1]);
  assert.deepEqual(problemsOf(page), []);
});

test("a new session can get a worktree: off at first, and only where there is a repository", async () => {
  const page = await pages.open({ prepare: newSession });
  await page.getByRole("combobox", { name: "Agent" }).waitFor();
  assert.equal(await page.getByRole("combobox", { name: "Place of work" }).count(), 0);
  const inRepository = await pages.open({ prepare: newSession, height: 500 });
  await inRepository.evaluate(() => {
    window.host.start.newSession!.worktrees = true;
    window.host.notify("panel.connection", { is: "ready" });
  });
  const place = inRepository.getByRole("combobox", { name: "Place of work" });
  await place.waitFor();
  assert.deepEqual(await selects(inRepository), ["Folder: parser", "Agent: claude", "Mode: Default", "Model: Default", "Place of work: Default"]);
  await place.selectOption("In a worktree");
  await inRepository.waitForFunction(() => document.querySelector<HTMLSelectElement>("select[aria-label='Place of work']")!.title.startsWith("Place of work: In a worktree"));
  await inRepository.screenshot({ path: `${pictures}new-worktree.png` });
  await place.selectOption("In the project");
  await inRepository.waitForFunction(() => window.host.calls.filter(({ method }) => method === "panel.choose").length === 2);
  assert.deepEqual(await callsOf(inRepository, "panel.choose"), [{ worktree: "yes" }, { worktree: "no" }]);
  assert.deepEqual(problemsOf(inRepository), []);
});

test("a new session on a host begins with the user's files, also while the host has no such project", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.start.newSession = { about: "Your first prompt starts a session in parser@devbox, which begins with your files.", folders: [], agents: [], worktrees: true, sends: "devbox", chosen: { folder: "/home/alice/parser" } };
      host.start.connection = { is: "failed", reason: "devbox: there is no directory src/parser", host: "devbox" };
      host.answers["panel.launch"] = () => ({ beside: [] });
    },
  });
  const place = page.getByRole("combobox", { name: "Place of work" });
  await place.waitFor();
  assert.deepEqual(await place.locator("option").allTextContents(), ["With your files", "In the project on devbox", "In a worktree on devbox"]);
  await page.getByText("There is no directory src/parser").waitFor();
  await box(page).fill("Greet the reader");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "panel.launch"));
  assert.deepEqual(problemsOf(page), []);
});

test("several agents can be chosen in a repository, and work in worktrees only", async () => {
  const page = await pages.open({ prepare: newSession, height: 500 });
  const agent = page.getByRole("combobox", { name: "Agent" });
  await agent.waitFor();
  const offered = (): Promise<string[]> => agent.locator("option").allTextContents();
  assert.deepEqual(await offered(), ["claude", "demo"], "without a repository");
  await page.evaluate(() => {
    const { newSession } = window.host.start;
    newSession!.worktrees = true;
    window.host.answers["panel.choose"] = ({ agents, agent }) => ({ ...newSession, chosen: { ...newSession!.chosen, ...(agents ? { agents: ["claude=opus", "demo"] } : { agent }) } });
    window.host.notify("panel.connection", { is: "ready" });
  });
  await page.getByRole("combobox", { name: "Place of work" }).waitFor();
  assert.deepEqual(await offered(), ["claude", "demo", "Several Agents…"]);
  await agent.selectOption("Several Agents…");
  await page.waitForFunction(() => document.querySelector<HTMLSelectElement>("select[aria-label='Agent']")!.selectedOptions[0]!.text === "claude (opus) + demo");
  assert.deepEqual([await offered(), await page.getByRole("combobox", { name: "Place of work" }).count()], [["claude", "demo", "claude (opus) + demo", "Several Agents…"], 0]);
  await page.screenshot({ path: `${pictures}new-attempts.png` });
  await agent.selectOption("demo");
  await page.getByRole("combobox", { name: "Place of work" }).waitFor();
  assert.deepEqual([(await selects(page))[1], await callsOf(page, "panel.choose")], ["Agent: demo", [{ agents: [] }, { agent: "demo" }]]);
  assert.deepEqual(problemsOf(page), []);
});

test("a session that cannot start says why, and its prompt stays in the box, also after a reload", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.start.newSession = { about: "A fork.", folders: [], agents: [], chosen: { folder: "/home/alice/parser" } };
      host.answers["panel.launch"] = () => {
        throw new Error("claude-agent-acp is not installed");
      };
    },
  });
  await page.getByText("A fork.").waitFor();
  assert.deepEqual(await selects(page), [], "what is not known, or cannot be chosen, is not shown");
  await box(page).fill("important words");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "It was not sent: claude-agent-acp is not installed" }).waitFor();
  assert.equal(await box(page).inputValue(), "important words");
  await page.reload();
  await page.getByText("A fork.").waitFor();
  assert.equal(await box(page).inputValue(), "important words");
});

test("a draft of an earlier window goes with its files, and leaves none of them in the box", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.start.newSession = { about: "New.", folders: [], agents: [], chosen: { folder: "/home/alice/parser" } };
      host.start.draft = { text: "Look at it", content: [{ type: "resource_link", uri: "file:///home/alice/a.pdf", name: "a.pdf" }] };
    },
  });
  await page.getByRole("button", { name: "Remove a.pdf" }).waitFor();
  await box(page).press("Enter");
  await page.locator(".prompt", { hasText: "Look at it" }).waitFor();
  await page.waitForFunction(() => document.querySelector("textarea")!.value === "");
  assert.equal(await page.getByRole("button", { name: "Remove a.pdf" }).count(), 0);
});

test("the agents are there once duet-rpc is ready, and what was typed meanwhile stays", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.start.connection = { is: "starting" };
      host.start.newSession = { about: "New.", folders: [], agents: [], chosen: { folder: "/home/alice/parser" } };
    },
  });
  await page.getByText("duet-rpc is starting…").waitFor();
  await box(page).fill("typed early");
  await page.keyboard.press("Home");
  await page.evaluate(() => {
    window.host.start.connection = { is: "ready" };
    window.host.start.newSession!.agents = [{ name: "demo", title: "Demonstration", description: "" }];
    window.host.notify("panel.connection", { is: "ready" });
  });
  await page.getByRole("combobox", { name: "Agent" }).waitFor();
  await page.keyboard.type("was ");
  assert.deepEqual([await box(page).inputValue(), await page.getByText("duet-rpc is starting").count()], ["was typed early", 0]);
});

test("each setting has a visible label, whose text and value fit at 360 pixels", async () => {
  const page = await pages.open({
    prepare: (host) => {
      const modes = [{ id: "default", name: "Default", by: "agent" }];
      const options = [{ id: "thinking", name: "A long name for the thinking of the agent", values: [{ id: "on", name: "On" }, { id: "off", name: "Off" }] }];
      const models = [{ id: "large", name: "A large model with a name that does not fit in a narrow panel" }];
      host.start.newSession = {
        about: "It starts.", worktrees: true, folders: [], agents: [{ name: "claude", title: "", description: "" }, { name: "demo", title: "", description: "" }],
        description: { agent: "claude", modes, agent_session: { model: { available: models }, options, schema: 1 } } as never,
        chosen: { folder: "/home/alice/parser", agent: "claude", model: "large" },
      };
    },
    width: 360,
  });
  await page.getByRole("combobox", { name: "Agent", exact: true }).waitFor();
  assert.deepEqual(await page.locator(".setting").evaluateAll((all) => all.map((one) => `${one.querySelector("span")!.textContent}: ${one.querySelector("select")!.selectedOptions[0]!.text}`)), [
    "Agent: claude", "Place: Default", "Mode: Default", "Model: A large model with a name that does not fit in a narrow panel", "A long name for the thinking of the agent: Default",
  ]);
  const add = (await page.getByRole("button", { name: "Add context" }).boundingBox())!;
  const right = await page.locator(".settings").evaluate((element) => element.getBoundingClientRect().right);
  const boxes = await page.locator(".setting").evaluateAll((all) => all.flatMap((one) => [...one.children].map((part) => part.getBoundingClientRect()).map(({ width, top, right }) => ({ width, top, right }))));
  assert.ok(boxes.every((box) => box.width > 20 && box.right <= right), JSON.stringify([right, boxes]));
  assert.ok(boxes[0]!.top < add.y + add.height, "the first of them stands beside the button");
  await page.screenshot({ path: `${pictures}new-settings-narrow.png` });
  assert.deepEqual(problemsOf(page), []);
});

for (const theme of ["dark", "light", "high-contrast"] as Theme[]) {
  test(`an empty panel, ${theme}`, async () => {
    const page = await pages.open({ prepare: newSession, theme, height: 500 });
    await page.getByRole("combobox", { name: "Agent" }).waitFor();
    await page.getByRole("button", { name: "Remove the active editor, lexer.ts:42-46" }).waitFor();
    await box(page).focus();
    await page.screenshot({ path: `${pictures}new-${theme}.png` });
    await page.evaluate(() => window.host.notify("panel.contextChanged", { context: { label: `${"long".repeat(50)}.ts:1-2`, reference: "@long.ts" } }));
    await page.getByRole("button", { name: /longlong/ }).waitFor();
    assert.equal(await page.evaluate(() => document.querySelector(".prompt-box")!.scrollWidth - document.querySelector(".prompt-box")!.clientWidth), 0);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 720);
    assert.deepEqual(problemsOf(page), []);
  });
}
