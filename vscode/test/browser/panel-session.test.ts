// The session around a transcript: settings, states, loading, screen readers and the keyboard.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { FakeHost } from "./pages/panelhost";
import { callsOf, problemsOf, startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";
import { scene } from "./scene";
import type { Theme } from "./themes";

declare const window: { host: FakeHost };

const pictures = fileURLToPath(new URL("../pictures/", import.meta.url));
let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

test("mode, model and options are set; what is refused goes back and says why", async () => {
  const page = await pages.open({ prepare: scene });
  const mode = page.getByRole("combobox", { name: "Mode", exact: true });
  await mode.selectOption("acceptEdits");
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "session.set"));
  await page.getByRole("combobox", { name: "Effort" }).selectOption("low");
  await page.evaluate(() => {
    window.host.answers["session.set"] = () => {
      throw new Error("the agent has no model small today");
    };
  });
  const model = page.getByRole("combobox", { name: "Model" });
  await model.selectOption("small");
  await page.getByText("Model is unchanged: the agent has no model small today").waitFor();
  assert.equal(await model.inputValue(), "large");
  assert.deepEqual(await callsOf(page, "session.set"), [{ session: "thread", mode: "acceptEdits" }, { session: "thread", options: { effort: "low" } }, { session: "thread", model: "small" }]);
});

test("what the agent changes by itself is shown", async () => {
  const page = await pages.open({ prepare: scene });
  const mode = page.getByRole("combobox", { name: "Mode", exact: true });
  await mode.waitFor();
  await page.evaluate(() => {
    window.host.session = { ...window.host.session, mode: "plan" };
    window.host.event("session.changed", { agent_mode: "plan" });
  });
  await page.waitForFunction(() => document.querySelector<HTMLSelectElement>("select[aria-label=Mode]")!.value === "plan");
});

test("the head tells state, time, tokens and cost, and interrupts", async () => {
  const page = await pages.open({ prepare: scene });
  const head = page.getByRole("banner");
  await head.getByText("waits for your answer").waitFor();
  await head.getByText("44k tokens · $0.42").waitFor();
  assert.equal(await head.getByText("12", { exact: true }).getAttribute("title"), "Session 12");
  await head.getByText(/^1m \d\ds$/).waitFor();
  assert.equal(await head.getByRole("progressbar", { name: "Context used" }).getAttribute("value"), "31");
  await head.getByRole("button", { name: "Interrupt" }).click();
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "turn.interrupt"));
  assert.deepEqual(await callsOf(page, "turn.interrupt"), [{ turn: "run" }]);
  await head.getByRole("button", { name: "Show changes" }).click();
  await head.getByRole("button", { name: "Fork the session" }).click();
  await head.getByRole("button", { name: "Rename the session" }).click();
  await page.waitForFunction(() => window.host.calls.filter(({ method }) => method === "panel.command").length === 2);
  assert.deepEqual([await callsOf(page, "panel.openChanges"), await callsOf(page, "panel.command")], [[{}], [{ command: "duet.fork" }, { command: "duet.rename" }]]);
});

test("in a narrow panel, the tokens and the share of the context stay in one row", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running", started_at: new Date(Date.now() - 83_000).toISOString() }), width: 360 });
  await page.getByRole("banner").getByText("running").waitFor();
  await tell(page, "usage", { input_tokens: 1_200_000, output_tokens: 50_000, context_used: 120_000, context_size: 200_000, cost_usd: 12.4 });
  await tell(page, "agent.silent", { since: new Date(Date.now() - 400_000).toISOString(), ended: false });
  const usage = page.getByText("1.3M tokens · $12.40");
  await usage.waitFor();
  await page.getByText(/^silent for/).waitFor({ state: "attached" });
  const [words, bar] = [(await usage.boundingBox())!, (await page.getByRole("progressbar", { name: "Context used" }).boundingBox())!];
  assert.ok(bar.x > words.x && bar.y > words.y && bar.y < words.y + words.height, JSON.stringify([words, bar]));
});

test("the head has the sums over all turns of the session, with the turn that works", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.session = { ...host.session, state: "completed", ended_at: "2026-01-02T03:05:05Z", input_tokens: 900, output_tokens: 100, cost_usd: 0.25, duration_ms: 60_000 };
      host.answers["panel.totals"] = () => ({ turns: 2, last: host.session["turn_uuid"], tokens: host.session["turn_uuid"] === "run" ? 21_000 : 31_000, cost: 1.5, time: 200_000 });
    },
  });
  const usage = page.getByRole("banner").locator(".usage");
  await usage.getByText("21k tokens · $1.50 · 3m 20s in all turns", { exact: true }).waitFor();
  assert.equal(await usage.getAttribute("title"), "The last turn: 1.0k tokens · $0.25");
  await tell(page, "turn.state", { turn_uuid: "run-2", state: "running" });
  await tell(page, "usage", { turn_uuid: "run-2", input_tokens: 2_000, cost_usd: 0.5 });
  await usage.getByText("23k tokens · $2.00 · 3m 20s in all turns", { exact: true }).waitFor();
  await tell(page, "turn.state", { turn_uuid: "run-2", state: "completed" });
  await usage.getByText("31k tokens · $1.50", { exact: false }).waitFor();
});

test("the prompt of a turn has its actions, by the pointer and by the keyboard", async () => {
  const page = await pages.open({ prepare: scene });
  const prompt = page.getByRole("article", { name: "You" }).first();
  const actions = prompt.getByRole("group", { name: "Of this prompt" });
  const opacity = (): Promise<string> => actions.evaluate((element) => getComputedStyle(element).opacity);
  await prompt.waitFor();
  await page.mouse.move(0, 0);
  assert.equal(await opacity(), "0");
  await prompt.hover();
  assert.equal(await opacity(), "1");
  await page.mouse.move(0, 0);
  const names = ["Rewind to before this prompt", "Edit this prompt and send it again", "Fork after this prompt"];
  await actions.getByRole("button", { name: names[0]! }).focus();
  assert.equal(await opacity(), "1");
  for (const name of names) {
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), name);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
  }
  await page.waitForFunction(() => window.host.calls.filter(({ method }) => method === "panel.command").length === 3);
  assert.deepEqual(await callsOf(page, "panel.command"), ["duet.rewind", "duet.editPrompt", "duet.fork"].map((command) => ({ command, turn: "run" })));

  // What the user sends during a turn begins none.
  await tell(page, "item.added", { type: "message", role: "user", key: "p2", text: "Also in strings" });
  await page.getByText("Also in strings").waitFor();
  assert.equal(await page.getByRole("group", { name: "Of this prompt" }).count(), 1);
});

test("the prompt of a failed turn is sent again, with its attachments", async () => {
  const page = await pages.open({ prepare: scene });
  await page.getByRole("banner").getByText("waits for your answer").waitFor();
  const again = page.getByRole("group", { name: "Failed" }).getByRole("button", { name: "Try Again" });
  assert.equal(await again.count(), 0);
  await page.evaluate(() => {
    window.host.session = { ...window.host.session, prompt: "Make the parser accept comments", error: "the model is overloaded" };
    window.host.event("turn.state", { state: "failed", error: "the model is overloaded" });
  });
  await page.getByRole("group", { name: "Failed" }).getByText("The turn failed", { exact: true }).waitFor();
  await again.press("Enter");
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "session.prompt"));
  const [sent] = await callsOf(page, "session.prompt");
  const [image] = sent!["content"] as Array<Record<string, string>>;
  assert.deepEqual([sent!["prompt"], image!["type"], image!["mimeType"], image!["data"]!.length > 50], ["Make the parser accept comments", "image", "image/png", true]);
});

test("the prompt of a failed turn is not sent without an attachment that is gone", async () => {
  const page = await pages.open({ prepare: scene });
  await page.getByRole("banner").getByText("waits for your answer").waitFor();
  await page.evaluate(() => {
    window.host.answers["attachment.get"] = () => {
      throw new Error("gone");
    };
    window.host.items[0]!["attachments"] = [{ type: "image", attachment_id: "blue", mime_type: "image/png", name: "blue.png" }];
    window.host.session = { ...window.host.session, prompt: "Look", error: "lost" };
    window.host.event("item.changed", { type: "message", role: "user", key: "p1", text: "Look", attachments: window.host.items[0]!["attachments"] });
    window.host.event("turn.state", { state: "failed", error: "lost" });
  });
  await page.getByRole("button", { name: "Try Again" }).click();
  await page.getByText("It was not sent: its attachment blue.png is not there any more").waitFor();
  assert.deepEqual(await callsOf(page, "session.prompt"), []);
});

test("in high contrast, adjacent insertions or removals have one border around them, and the diff and the context have one", async () => {
  const page = await pages.open({ prepare: scene, theme: "high-contrast" });
  await page.locator(".diff-lines > ins").first().waitFor();
  const styles = await page.evaluate(() => {
    const lines = document.querySelector(".question .diff-lines")!;
    lines.replaceChildren(...["span", "del", "del", "ins", "ins", "span", "del"].map((name) => document.createElement(name)));
    const edges = ({ borderTopStyle, borderBottomStyle }: CSSStyleDeclaration): string => `${borderTopStyle} ${borderBottomStyle}`;
    return { lines: [...lines.children].map((line) => edges(getComputedStyle(line))), diff: edges(getComputedStyle(lines)), context: edges(getComputedStyle(document.querySelector(".context")!)) };
  });
  assert.deepEqual(styles, {
    lines: ["none none", "dashed none", "none none", "solid none", "none none", "solid none", "dashed dashed"],
    diff: "none none", context: "solid solid",
  });
});

test("insertions and removals have borders of their own in high contrast", async () => {
  const borders = async (theme: Theme): Promise<string[]> => {
    const page = await pages.open({ prepare: scene, theme });
    await page.locator(".diff-lines > ins").first().waitFor();
    await page.evaluate(() => document.querySelector(".diff-lines")!.append(document.createElement("del")));
    return page.evaluate(() => ["ins", "del"].map((name) => getComputedStyle(document.querySelector(`.diff-lines > ${name}`)!).borderTopStyle));
  };
  assert.deepEqual([await borders("high-contrast"), await borders("dark")], [["solid", "dashed"], ["none", "none"]]);
});

for (const [theme, width] of [["dark", 720], ["high-contrast", 300]] as const) {
  test(`the head has the branch of a worktree, and its commands, until it is gone, ${theme}`, async () => {
    const page = await pages.open({ prepare: scene, theme, width });
    const head = page.getByRole("banner");
    const worktree = head.getByRole("group", { name: "Worktree" });
    await head.getByText("waits for your answer").waitFor();
    assert.equal(await worktree.isVisible(), false);
    await page.evaluate(() => {
      window.host.session = { ...window.host.session, worktree: { branch: "duet/accept-comments", dir: "/home/alice/.local/state/duet/worktrees/accept-comments" } };
      window.host.event("agent.session", {});
    });
    await worktree.getByText("duet/accept-comments", { exact: true }).waitFor();
    assert.equal(await worktree.getByRole("button", { name: "Compare Attempts" }).count(), 0, "it is no attempt");
    const land = worktree.getByRole("button", { name: "Land…" });
    assert.deepEqual([await land.isDisabled(), await worktree.getByRole("button", { name: "Discard…" }).isDisabled()], [true, true], "while the agent works");
    await worktree.getByRole("button", { name: "Open in New Window" }).click();
    await tell(page, "turn.state", { state: "completed" });
    await page.waitForFunction(() => [...document.querySelectorAll("button")].some(({ textContent, disabled }) => textContent === "Land…" && !disabled));
    await mkdir(pictures, { recursive: true });
    await page.screenshot({ path: `${pictures}worktree-${theme}.png` });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await land.click();
    await worktree.getByRole("button", { name: "Discard…" }).click();
    await page.waitForFunction(() => window.host.calls.filter(({ method }) => method === "panel.command").length === 3);
    assert.deepEqual(await callsOf(page, "panel.command"), [{ command: "duet.openWorktree" }, { command: "duet.land" }, { command: "duet.discardWorktree" }]);
    await page.evaluate(() => {
      window.host.session = { ...window.host.session, worktree: { ...(window.host.session["worktree"] as object), gone: true } };
      window.host.event("item.added", { type: "notice", role: "system", subtype: "worktree", key: "sys-1", text: "The worktree of duet/accept-comments was discarded." });
    });
    await worktree.getByText("The worktree of duet/accept-comments is gone: a fork continues in the project's folder").waitFor();
    assert.equal(await worktree.getByRole("button").count(), 0);
    await page.evaluate(() => {
      window.host.session = { ...window.host.session, attempts: "a1" };
      window.host.event("agent.session", {});
    });
    await worktree.getByRole("button", { name: "Compare Attempts" }).click();
    await page.waitForFunction(() => window.host.calls.some(({ params }) => params["command"] === "duet.compareAttempts"));
    await page.screenshot({ path: `${pictures}worktree-gone-${theme}.png` });
    assert.deepEqual(problemsOf(page), []);
  });
}

test("an agent that goes on by itself works without a prompt, is told of, and is interrupted", async () => {
  const page = await pages.open();
  const head = page.getByRole("banner");
  await head.getByText("completed").waitFor();
  const own = { turn_uuid: "own" };
  await tell(page, "item.added", { ...own, type: "notice", role: "system", subtype: "went_on", key: "sys-1", text: "Continued by itself: background task finished (sleep 3)." });
  await tell(page, "turn.state", { ...own, state: "starting" });
  await tell(page, "turn.state", { ...own, state: "running" });
  await tell(page, "text.delta", { ...own, key: "m1", text: "It has passed." });
  await page.locator('.note[data-key="sys-1"]', { hasText: /^Continued by itself: background task finished \(sleep 3\)\.$/ }).waitFor();
  await page.locator('[data-key="sys-1"] ~ .said', { hasText: "It has passed." }).waitFor();
  assert.equal(await page.locator(".prompt").count(), 0);
  await page.locator(".unseen").getByText("Continued by itself: background task finished (sleep 3).").waitFor({ state: "attached" });
  await head.getByText("running").waitFor();
  await page.getByRole("button", { name: "Add to the queue" }).waitFor();
  await head.getByRole("button", { name: "Interrupt" }).click();
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "turn.interrupt"));
  assert.deepEqual(await callsOf(page, "turn.interrupt"), [{ turn: "own" }]);
});

test("an interrupted turn says why, and a button continues its request", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running", prompt: "Mend it\n\nand test it" }) });
  const row = page.getByRole("group", { name: "Interrupted" });
  await page.getByRole("banner").getByText("running").waitFor();
  assert.equal(await row.count(), 0);
  await page.getByRole("textbox", { name: "Prompt" }).fill("a draft");
  await tell(page, "turn.state", { state: "interrupting", reason: "user_cancelled" });
  await tell(page, "turn.state", { state: "interrupted" });
  await row.getByText("Interrupted: on request", { exact: true }).waitFor();
  await page.evaluate(() => {
    window.host.answers["session.prompt"] = () => {
      throw new Error("the disk is full");
    };
  });
  await row.getByRole("button", { name: "Continue" }).click();
  await page.getByText("It was not continued: the disk is full").waitFor();
  await page.evaluate(() => delete window.host.answers["session.prompt"]);
  await row.getByRole("button", { name: "Continue" }).click();
  await row.waitFor({ state: "hidden" });
  const prompt = "Continue where you left off. You were interrupted: on request.\n\nThe request was:\n\nMend it\n\nand test it";
  assert.deepEqual((await callsOf(page, "session.prompt"))[1], { session: "thread", prompt });
  assert.equal(await page.getByRole("textbox", { name: "Prompt" }).inputValue(), "a draft");
  assert.deepEqual(problemsOf(page), []);
});

test("a turn that ended with its daemon can be continued after a reload, unless a question of it is open", async () => {
  const message = "duet-rpc was ended while this ran; continue it to go on where it was";
  const interrupted = (host: FakeHost, given: string): void => {
    host.session = { ...host.session, state: "interrupted", error: given, error_code: "SHUTDOWN", prompt: "Continue where you left off. You were interrupted.\n\nThe request was:\n\nMend it" };
  };
  const page = await pages.open({ prepare: interrupted, given: message });
  const row = page.getByRole("group", { name: "Interrupted" });
  await row.getByText(`Interrupted: ${message}`, { exact: true }).waitFor();
  await tell(page, "approval.opened", { approval: "q1", type: "function_call", tool_name: "Bash", title: "make", tool_input: { command: "make" }, stale: true });
  await row.waitFor({ state: "hidden" });
  await tell(page, "approval.closed", { approval: "q1", status: "denied", decided_by: "user" });
  await row.getByRole("button", { name: "Continue" }).click();
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "session.prompt"));
  assert.deepEqual(await callsOf(page, "session.prompt"), [{ session: "thread", prompt: `Continue where you left off. You were interrupted: ${message}.\n\nThe request was:\n\nMend it` }]);
});

test("in high contrast the icons of tool calls can be seen, also while they pulse", async () => {
  const page = await pages.open({ prepare: scene, theme: "high-contrast" });
  const pencils = page.locator(".tool .icon-edit");
  await pencils.first().waitFor();
  const contrasts = await pencils.evaluateAll((all) =>
    all.map((pencil) => {
      let seen = Number(/rgba\(.*, ([\d.]+)\)/.exec(getComputedStyle(pencil).stroke)?.[1] ?? 1);
      for (let at: Element | null = pencil; at && !at.matches(".entry"); at = at.parentElement) {
        for (const pulse of at.getAnimations()) {
          pulse.pause();
          pulse.currentTime = Number(pulse.effect!.getComputedTiming().duration) / 2;
        }
        seen *= Number(getComputedStyle(at).opacity);
      }
      // The contrast of white on black, as WCAG 2 defines it.
      return (((seen + 0.055) / 1.055) ** 2.4 + 0.05) / 0.05;
    }),
  );
  assert.ok(contrasts.length > 1 && contrasts.every((contrast) => contrast >= 4.5), contrasts.join(" "));
});

test("work in the background stands in the head, and is ended by the Interrupt button", async () => {
  const page = await pages.open();
  const head = page.getByRole("banner");
  const interrupt = head.getByRole("button", { name: "Interrupt" });
  await head.getByText("completed").waitFor();
  assert.equal(await interrupt.isVisible(), false);
  await tell(page, "agent.session", { background: [{ id: "1", kind: "process", title: "sleep 5" }, { id: "2", kind: "terminal", title: "npm run watch" }] });
  const state = head.getByText("completed; works in the background: 2 tasks", { exact: true });
  await state.waitFor();
  assert.equal(await state.getAttribute("title"), "sleep 5\nnpm run watch");
  assert.equal(await interrupt.getAttribute("title"), "Stop the agent's background work:\nsleep 5\nnpm run watch");
  await interrupt.click();
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "turn.interrupt"));
  assert.deepEqual(await callsOf(page, "turn.interrupt"), [{ turn: "run" }]);
  await tell(page, "agent.session", { background: [] });
  await interrupt.waitFor({ state: "hidden" });
  await head.getByText("completed", { exact: true }).waitFor();
});

test("an agent that is silent is told of, until it goes on", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  const head = page.getByRole("banner");
  await head.getByText("running").waitFor();
  await tell(page, "agent.silent", { since: new Date(Date.now() - 12_000).toISOString() });
  await head.getByText(/^silent for 1\ds$/).waitFor();
  await tell(page, "agent.silent", { ended: true });
  await head.getByText("running").waitFor();
});

test("a failure says why and what to do", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  await page.getByRole("banner").getByText("running").waitFor();
  await tell(page, "turn.state", { state: "failed", error: "the agent wants a sign-in", error_code: "AGENT_AUTH_REQUIRED", auth_methods: [{ id: "key", name: "An API key" }] });
  const error = page.getByRole("group", { name: "Error" });
  await error.getByText("the agent wants a sign-in").waitFor();
  await error.getByText("Sign in to the agent in a terminal (duet-rpc agents login); it offers: An API key. Then send the prompt again.").waitFor();
});

test("after a reload, each failed turn says why and what to do, also an older one", async () => {
  const page = await pages.open({
    prepare: (host) => {
      const said = (turn: string, key: string, state: string): void => void host.items.push({ turn_uuid: turn, turn_state: state, created_at: "2026-01-02T03:04:05Z", type: "message", key, role: "user", text: key });
      said("first", "Mend it", "failed");
      said("second", "Test it", "interrupted");
      for (let i = 0; i < 160; i++) said("third", `Prompt ${i}`, "completed");
      said("fourth", "Ship it", "failed");
      said("run", "Try again", "completed");
      const turn = (turn_uuid: string, state: string, error: string, error_code?: string): void => void (host.turns[turn_uuid] = { ...host.session, turn_uuid, state, error, error_code });
      turn("first", "failed", "the disk has no space left", "STORE_FULL");
      turn("second", "interrupted", "the daemon has ended");
      turn("fourth", "failed", "the agent wants a sign-in", "AGENT_AUTH_REQUIRED");
    },
  });
  const errors = page.getByRole("group", { name: "Error" });
  await errors.getByText("the agent wants a sign-in").waitFor();
  await errors.getByText("Sign in to the agent in a terminal (duet-rpc agents login).").waitFor();
  await page.getByRole("button", { name: "Show older messages" }).evaluate((button: HTMLElement) => button.click());
  await errors.getByText("the disk has no space left").waitFor({ state: "attached" });
  await page.getByText("Interrupted: the daemon has ended").waitFor({ state: "attached" });
  const asked = (await callsOf(page, "turn.get")).map(({ turn }) => turn);
  assert.deepEqual(asked.filter((turn) => turn !== "thread"), ["fourth", "second", "first"], "no other turn is requested");
  assert.deepEqual(problemsOf(page), []);
});

test("when duet-rpc goes and comes again the page says so, and goes on", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  await page.getByRole("banner").getByText("running").waitFor();
  await tell(page, "text.delta", { key: "m1", text: "before " });
  await page.evaluate(() => window.host.notify("panel.connection", { is: "failed", reason: "it crashed 5 times" }));
  await page.getByText("duet-rpc does not run: it crashed 5 times").waitFor();
  const box = page.getByRole("textbox", { name: "Prompt" });
  await box.fill("are you there?");
  await page.keyboard.press("Enter");
  await page.getByText("It was not sent: duet-rpc does not run").waitFor();
  assert.equal(await box.inputValue(), "are you there?");
  await page.getByRole("button", { name: "Try again" }).click();
  await tell(page, "text.delta", { key: "m1", text: "and after" });
  await page.evaluate(() => window.host.notify("panel.connection", { is: "ready" }));
  await page.locator(".banner", { hasText: "does not run" }).waitFor({ state: "detached" });
  await page.getByText("before and after").waitFor();
  assert.deepEqual(await callsOf(page, "panel.command"), [{ command: "duet.restart" }]);
});

test("a prompt that is sent while duet-rpc starts is not refused", async () => {
  const page = await pages.open();
  await page.evaluate(() => window.host.notify("panel.connection", { is: "starting" }));
  await page.getByText("duet-rpc is starting").waitFor();
  const box = page.getByRole("textbox", { name: "Prompt" });
  await box.fill("are you there?");
  await page.keyboard.press("Enter");
  await page.getByRole("article").filter({ hasText: "are you there?" }).waitFor();
  assert.equal(await box.inputValue(), "");
});

test("a prompt that was on its way when duet-rpc ended stays, with why, unless it has arrived", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.items = [{ turn_uuid: "run", type: "message", role: "user", key: "p1", text: "are you there?", created_at: "2026-01-02T03:04:05Z", seq: 1001 }];
    },
  });
  const box = page.getByRole("textbox", { name: "Prompt" });
  await page.getByRole("banner").getByText("completed").waitFor();
  await page.evaluate(() => {
    window.host.answers["session.prompt"] = () => {
      window.host.notify("panel.connection", { is: "starting" });
      window.host.notify("panel.connection", { is: "ready" });
      throw Object.assign(new Error("duet-rpc has ended before it answered session.prompt"), { code: -32042 });
    };
  });
  await box.fill("are you there?");
  await page.keyboard.press("Enter");
  const why = page.getByText("It was not sent: duet-rpc has ended before it answered session.prompt");
  await why.waitFor();
  await page.evaluate(() => window.host.notify("panel.connection", { is: "ready" }));
  await page.waitForFunction(() => window.host.calls.filter(({ method }) => method === "session.get").length > 2);
  await why.waitFor();
  assert.equal(await box.inputValue(), "are you there?");

  // The same text again, which the hub has stored before it ended.
  await page.evaluate(() => {
    const lost = window.host.answers["session.prompt"]!;
    window.host.answers["session.prompt"] = (params) => {
      window.host.items.push({ turn_uuid: "accepted", type: "message", role: "user", key: "p2", text: params["prompt"], created_at: "2026-01-02T03:04:06Z", seq: 1002 });
      return lost(params);
    };
  });
  await page.keyboard.press("Enter");
  await why.waitFor({ state: "detached" });
  await page.waitForFunction(() => document.querySelector("textarea")!.value === "");

  // There is no state that shows whether it has arrived.
  await page.evaluate(() => {
    window.host.answers["session.items"] = () => {
      throw new Error("the disk is full");
    };
  });
  await box.fill("and now?");
  await page.keyboard.press("Enter");
  await page.getByText("It is not known whether it was sent: the disk is full. Look for it in the session before you send it again.").waitFor();
  assert.equal(await box.inputValue(), "and now?");
});

test("what comes while the first page is asked for is not lost, and not there twice", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.items = [{ turn_uuid: "run", type: "message", role: "assistant", key: "m1", text: "one ", open: true, created_at: "2026-01-02T03:04:05Z", seq: 1001 }];
      host.answers["panel.start"] = () => {
        host.event("text.delta", { key: "m1", text: "one " });
        host.event("text.delta", { key: "m1", text: "two" });
        return host.start;
      };
    },
  });
  await page.getByText("one two", { exact: true }).waitFor();
});

test("older messages come when the beginning is reached, and what was read stays in view", async () => {
  const page = await pages.open({
    prepare: (host) => {
      host.items = Array.from({ length: 600 }, (_, i) => ({ turn_uuid: "run", type: "message", role: i % 2 ? "assistant" : "user", key: `m${i}`, text: `message ${i}`, created_at: "2026-01-02T03:04:05Z", seq: i + 1 }));
    },
  });
  await page.getByText("message 599", { exact: true }).waitFor();
  await page.locator('[data-key="m450"]').waitFor();
  assert.equal(await page.locator('[data-key="m440"]').count(), 0);
  await page.locator(".transcript").evaluate((element) => element.scrollTo(0, 0));
  await page.locator('[data-key="m300"]').waitFor({ state: "attached" });
  const keys = await page.locator(".stretch > .entry").evaluateAll((entries) => entries.map((entry) => Number((entry as HTMLElement).dataset["key"]!.slice(1))));
  assert.deepEqual(keys, Array.from({ length: keys.length }, (_, i) => keys[0]! + i), "in their order, none twice");
  const frame = (await page.locator(".transcript").boundingBox())!;
  const seen = (await page.locator('[data-key="m450"]').boundingBox())!;
  assert.ok(seen.y > frame.y - 700 && seen.y < frame.y + frame.height, `m450 at ${seen.y}`);
});

test("what is far from the view is copied with the rest", async () => {
  const page = await pages.open({
    prepare: (host) => {
      const content = Array.from({ length: 200 }, (_, i) => `Paragraph ${i} of a long answer.`).join("\n\n");
      host.items = Array.from({ length: 40 }, (_, i) => ({ turn_uuid: "run", type: "message", role: "assistant", key: `m${i}`, text: i === 20 ? content : `message ${i}`, created_at: "2026-01-02T03:04:05Z", seq: i + 1 }));
    },
  });
  await page.locator('[data-key="m0"]').waitFor({ state: "attached" });
  await page.locator(".log").evaluate((log) => getSelection()!.selectAllChildren(log));
  // A frame later the browser has laid out the selection.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0))));
  await page.keyboard.press("ControlOrMeta+c");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const lines = copied.split("\n").filter((line) => line.trim() !== "");
  assert.deepEqual(lines, Array.from({ length: 40 }, (_, i) => (i === 20 ? Array.from({ length: 200 }, (_, at) => `Paragraph ${at} of a long answer.`) : [`message ${i}`])).flat());
});

test("the view follows what comes, stays where a person reads, and goes to the newest by a button", async () => {
  const page = await pages.open({ prepare: scene, height: 600 });
  await page.locator('[data-key="p1"]').waitFor({ state: "attached" });
  const atEnd = (): Promise<boolean> => page.locator(".transcript").evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight < 5);
  assert.equal(await atEnd(), true);
  await tell(page, "text.delta", { key: "new", text: "words\n\n".repeat(60) });
  await page.locator('[data-key="new"]').waitFor();
  await page.waitForFunction(() => {
    const element = document.querySelector(".transcript")!;
    return element.scrollHeight - element.scrollTop - element.clientHeight < 5;
  });
  await page.mouse.move(300, 300);
  await page.mouse.wheel(0, -600);
  const jump = page.getByRole("button", { name: "Newest" });
  await jump.waitFor();
  const before = await page.locator(".transcript").evaluate((element) => element.scrollTop);
  await tell(page, "text.delta", { key: "new", text: "more\n\n".repeat(60) });
  await page.waitForFunction(() => document.querySelector('[data-key="new"]')!.textContent.includes("more"));
  assert.ok(Math.abs((await page.locator(".transcript").evaluate((element) => element.scrollTop)) - before) < 5);
  await jump.click();
  assert.equal(await atEnd(), true);
  await jump.waitFor({ state: "hidden" });
});

test("a screen reader is told of questions and ends, not of each word", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  await page.getByRole("banner").getByText("running").waitFor();
  const said = page.locator(".unseen");
  await tell(page, "text.delta", { key: "m1", text: "I think about it." });
  await page.getByText("I think about it.").waitFor();
  assert.equal(await said.innerText(), "");
  await tell(page, "approval.opened", { approval: "q1", type: "function_call", tool_name: "Bash", title: "make test", tool_input: {} });
  await said.getByText("Question: make test").waitFor({ state: "attached" });
  await tell(page, "approval.closed", { approval: "q1", title: "make test", status: "approved", decided_by: "user" });
  await said.getByText("Answered elsewhere: allowed").waitFor({ state: "attached" });
  await tell(page, "turn.state", { state: "completed" });
  await said.getByText("The turn is over: completed").waitFor({ state: "attached" });
  assert.equal(await page.getByRole("log").getAttribute("aria-live"), "off");
});

test("all of it has a role and a name", async () => {
  const page = await pages.open({ prepare: scene });
  await page.locator('[data-key="p1"]').waitFor({ state: "attached" });
  const tree = await page.locator("#app").ariaSnapshot();
  for (const part of [
    '- heading "Make the parser accept comments" [level=1]', '- log "Transcript":', '- article "You":', '- article "Plan":', '- img "In progress"', '- article "npm test, failed":', '- button "Copy code"', '- link "src/lexer.ts:42"',
    '- article "Edit lexer.ts, waiting":', 'group "Question: Edit src/lexer.ts"', '- group "Answers":', '- button "Allow"', '- textbox "Prompt"', '- combobox "Mode"', '- combobox "Model"', '- button "Add to the queue"',
  ]) assert.ok(tree.includes(part), `${part} in\n${tree}`);
  const nameless = await page.locator("button, select, textarea, [role=link], img").evaluateAll((elements) => elements.filter((element) => !(element.getAttribute("aria-label") ?? element.getAttribute("alt") ?? element.textContent)).map(({ outerHTML }) => outerHTML));
  assert.deepEqual(nameless, []);
});

test("the keyboard alone reaches and does everything", async () => {
  const page = await pages.open({ prepare: scene });
  await page.locator('[data-key="p1"]').waitFor({ state: "attached" });
  const reached: string[] = [];
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const element = document.activeElement;
      const shown = element?.cloneNode(true) as Element | undefined;
      for (const key of shown?.querySelectorAll("kbd") ?? []) key.remove();
      return element === document.body ? "" : (element?.getAttribute("aria-label") ?? shown?.textContent?.trim().slice(0, 40) ?? "");
    });
    if (name === "" || (reached.length > 0 && name === reached[0])) break;
    reached.push(name);
  }
  for (const name of ["Interrupt", "Show changes", "Fork the session", "Thought", "src/lexer.ts:42", "Copy code", "lexer.ts", "Allow", "Always in this session", "Deny", "Prompt", "Mode", "Model", "Add to the queue"]) assert.ok(reached.some((one) => one === name || one.startsWith(name)), `${name} in ${reached.join(" | ")}`);
  const order = ["Interrupt", "Allow", "Prompt", "Mode"].map((name) => reached.indexOf(name));
  assert.deepEqual(order, [...order].sort((a, b) => a - b));
  await page.locator(".thinking summary").focus();
  await page.keyboard.press("Enter");
  await page.getByText("The lexer skips white space in one place").waitFor();
  assert.deepEqual(problemsOf(page), []);
});

test("at 200 % and in 300 pixels nothing is cut off, and nothing moves where that is not wanted", async () => {
  const page = await pages.open({ prepare: scene, width: 300, height: 600, reducedMotion: true });
  await page.getByRole("group", { name: /^Question/ }).waitFor();
  await page.evaluate(() => document.documentElement.style.setProperty("--vscode-font-size", "26px"));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 300);
  for (const name of ["Send", "Add to the queue"]) {
    const button = page.getByRole("button", { name, exact: true });
    if ((await button.count()) > 0) {
      const box = (await button.boundingBox())!;
      assert.ok(box.x >= 0 && box.x + box.width <= 300 && box.y + box.height <= 600, `${name} at ${JSON.stringify(box)}`);
    }
  }
  assert.deepEqual(await page.evaluate(() => document.getAnimations().length), 0);
});

test("what an event leaves out is said to be cut, and comes when it is asked for", async () => {
  const lines = Array.from({ length: 3_000 }, (_, i) => `line ${i}`).join("\n");
  const page = await pages.open({
    prepare: (host, whole: string) => {
      const item = { turn_uuid: "run", created_at: "2026-01-02T03:04:05Z" };
      host.session = { ...host.session, state: "running" };
      const others = Array.from({ length: 25 }, (_, i) => ({ ...item, type: "message", role: "assistant", key: `m${i}`, text: `Message ${i}`, seq: 2_000 + i }));
      const later = [
        { ...item, type: "tool_call", key: "c1", tool_name: "Bash", title: "make", tool_kind: "execute", status: "failed", tool_input: { command: "make" }, result: whole, seq: 1_002 },
        { ...item, type: "message", role: "user", key: "p1", text: `${"please ".repeat(100)}hurry`, seq: 1_003 },
        ...others,
      ];
      (window as unknown as { later: unknown[] }).later = later;
    },
    given: lines,
  });
  await page.getByRole("heading", { name: "A session" }).waitFor();
  await tell(page, "item.changed", { type: "tool_call", key: "c1", tool_name: "Bash", title: "make", tool_kind: "execute", tool_input: { command: "make" } });
  await tell(page, "item.changed", { type: "tool_call", key: "c1", status: "failed", result: lines.slice(0, 9_000), truncated: true });
  await tell(page, "item.added", { type: "message", role: "user", key: "p1", text: "please ".repeat(50), truncated: true });
  const output = page.locator(".tool .output").last();
  await output.getByText("Only the beginning of this text is here.").waitFor();
  // The hub cannot be reached at first.
  await page.evaluate(() => {
    window.host.answers["session.items"] = () => {
      throw new Error("no answer");
    };
  });
  await output.getByRole("button", { name: "Show all" }).click();
  await output.getByText("The rest could not be loaded: no answer").waitFor();
  await page.evaluate(() => {
    delete window.host.answers["session.items"];
    window.host.items = (window as unknown as { later: Array<Record<string, unknown>> }).later;
  });
  await output.getByRole("button", { name: "Show all" }).click();
  await page.locator(".tool .output").last().getByText("line 2999", { exact: false }).waitFor({ state: "attached" });
  assert.equal(await page.locator(".tool").getByText("Only the beginning").count(), 0);
  const prompt = page.locator(".prompt");
  await prompt.getByRole("button", { name: "Show all" }).click();
  await prompt.getByText("hurry").waitFor();
  assert.equal(await prompt.getByText("Only the beginning").count(), 0);
  assert.deepEqual(problemsOf(page), []);
});

test("the panel names the host of a session, and shows a broken line until another one works; the unsent prompt stays", async () => {
  const page = await pages.open({ prepare: (host) => (host.start.where = "parser@devbox") });
  await page.getByRole("banner").getByText("parser@devbox").waitFor();
  await page.evaluate(() => window.host.notify("panel.connection", { is: "ready", trouble: "the line to devbox broke; the agents there go on", host: "devbox" }));
  await page.locator(".banner", { hasText: "The line to devbox broke; the agents there go on." }).waitFor();
  await page.evaluate(() => {
    window.host.answers["session.prompt"] = () => {
      throw new Error("devbox: ssh: No route to host");
    };
  });
  await page.getByRole("textbox", { name: "Prompt" }).fill("go on");
  await page.keyboard.press("Enter");
  await page.getByText("It was not sent: devbox: ssh: No route to host").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Prompt" }).inputValue(), "go on");
  await page.evaluate(() => window.host.notify("panel.connection", { is: "failed", reason: "devbox: ssh: No route to host", host: "devbox" }));
  await page.locator(".banner", { hasText: /^devbox: ssh: No route to host\. The next attempt follows\./ }).waitFor();
  await page.evaluate(() => window.host.notify("panel.connection", { is: "ready", host: "devbox" }));
  await page.locator(".banner p").waitFor({ state: "detached" });
  assert.deepEqual(problemsOf(page), []);
});
