// Questions in the page of a session panel.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import type { FakeHost } from "./pages/panelhost";
import { callsOf, problemsOf, startPages, tell, toTop } from "./panelpage";
import type { PanelPages } from "./panelpage";
import { scene } from "./scene";

declare const window: { host: FakeHost };

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

const ask = { approval: "q2", type: "function_call", tool_name: "Bash", title: "rm -r build", tool_input: { command: "rm -r build" } };

async function working(): Promise<Page> {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }), height: 500 });
  await page.getByRole("heading", { name: "A session" }).waitFor();
  return page;
}

test("a question stands at its tool call, and holds all that is to be known before it is answered", async () => {
  const page = await working();
  await tell(page, "approval.opened", { ...ask, tool_use_id: "c1", input_ambiguity: "Programs may read the input differently", stale: true });
  const question = page.getByRole("group", { name: "Question: rm -r build" });
  await question.waitFor();
  // Its tool call arrives later, and the question moves there.
  await tell(page, "item.changed", { type: "tool_call", key: "c1", tool_name: "Bash", title: "rm -r build", tool_kind: "execute", tool_input: { command: "rm -r build" } });
  await page.locator(".tool .question").waitFor();
  for (const words of ["Programs may read the input differently", "Its agent has ended: an answer continues it."]) await question.getByText(words).waitFor();
  await question.getByRole("button", { name: "Deny", exact: true }).click();
  await question.waitFor({ state: "detached" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q2", decision: "deny", comment: "Denied in VS Code" }]);
  // The call says the denial, which is no failure, and says it once.
  await tell(page, "item.changed", { type: "tool_call", key: "c1", status: "failed", refused_by: "user", refusal: "Denied in VS Code", result: "The user denied this." });
  const tool = page.getByRole("article", { name: "rm -r build, you denied this" });
  await tool.waitFor();
  const transcript = page.locator(".transcript");
  assert.deepEqual([await transcript.getByText(/den(y|ied)/i).count(), await transcript.getByText("rm -r build").count()], [1, 1]);
  const colours = await tool.evaluate((element) => [".tool-status", ".tool-mark", ".tool-title"].map((of) => getComputedStyle(element.querySelector(of)!).color));
  const bad = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement("p"));
    probe.className = "failure";
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  });
  assert.ok(!colours.includes(bad), `${colours.join(" ")} without ${bad}`);
});

test("a command is said once while its question waits, and a reason once after a denial", async () => {
  const page = await working();
  const long = { command: "rm -r build &&\nmake" };
  await tell(page, "item.changed", { type: "tool_call", key: "c1", tool_name: "Bash", title: "Bash", tool_kind: "execute", tool_input: long });
  await tell(page, "approval.opened", { ...ask, title: "Bash", tool_input: long, tool_use_id: "c1" });
  await page.getByText("Allow this?").waitFor();
  assert.deepEqual([await page.getByText("rm -r build").count(), await page.getByText("Bash", { exact: true }).count()], [1, 1]);
  await tell(page, "approval.closed", { approval: "q2", tool_use_id: "c1", title: "Bash", status: "denied", decided_by: "user", decided_in: "Emacs", comment: "not yet" });
  await page.getByRole("article", { name: "Bash, you denied this in Emacs" }).waitFor();
  await page.getByText("Why not: not yet").waitFor();
  assert.equal(await page.locator(".transcript").getByText(/denied/).count(), 1);
});

/** Waits until a question takes keys: not for a moment after it has appeared or has got the focus. */
async function rest(page: Page): Promise<void> {
  const until = (await page.evaluate(() => performance.now())) + 550;
  await page.waitForFunction((until) => performance.now() > until, until);
}

const isFocused = (page: Page, name: string): Promise<void> => page.getByRole("button", { name, exact: true }).and(page.locator(":focus")).waitFor();

test("the keys of every client answer the question that has the focus, and its buttons show them", async () => {
  const page = await working();
  const rule_preview = { session: { text: "Bash of rm" }, project: { text: "Bash of rm" } };
  for (const approval of ["a", "b", "c", "d"]) await tell(page, "approval.opened", { ...ask, approval, title: `rm ${approval}`, rule_preview });
  const first = page.getByRole("group", { name: "Question: rm a" });
  await first.waitFor();
  assert.deepEqual(await first.locator(".choices button").evaluateAll((buttons) => buttons.map((button) => [button.querySelector("span")!.textContent, button.getAttribute("aria-keyshortcuts"), button.querySelector("kbd")!.textContent])), [
    ["Allow", "y", "[y]"], ["Deny", "n", "[n]"], ["Deny and say why", "t", "[t]"], ["Always in this session", "s", "[s]"], ["Always in this project", "p", "[p]"], ["Keys", "?", "[?]"],
  ]);
  // Without the focus, no key answers.
  await page.getByRole("textbox", { name: "Prompt" }).focus();
  await page.keyboard.type("yn");
  await rest(page);
  await first.getByRole("button", { name: "Allow", exact: true }).focus();
  await page.keyboard.press("?");
  await first.getByText("[y] Allow: The tool runs this once.").waitFor();
  for (const key of ["Control+y", "Alt+y", "Shift+Y", "x"]) await page.keyboard.press(key);
  assert.deepEqual(await callsOf(page, "approval.decide"), []);
  await page.keyboard.press("y");
  await first.waitFor({ state: "detached" });
  // The focus goes on to the next question, which no key answers that was meant for the first one.
  await isFocused(page, "Allow");
  await page.keyboard.press("y");
  await page.keyboard.press("Enter");
  await rest(page);
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "a", decision: "approve" }]);
  await page.keyboard.press("n");
  await page.getByRole("group", { name: "Question: rm b" }).waitFor({ state: "detached" });
  for (const [key, approval, label] of [["s", "c", "Always in this session"], ["p", "d", "Always in this project"]] as const) {
    await isFocused(page, "Allow");
    await rest(page);
    await page.keyboard.press(key);
    await isFocused(page, label);
    await rest(page);
    await page.keyboard.press("Enter");
    await page.getByRole("group", { name: `Question: rm ${approval}` }).waitFor({ state: "detached" });
  }
  await page.getByRole("textbox", { name: "Prompt" }).and(page.locator(":focus")).waitFor();
  assert.deepEqual((await callsOf(page, "approval.decide")).slice(1), [
    { approval: "b", decision: "deny", comment: "Denied in VS Code" }, { approval: "c", decision: "approve", scope: "session" }, { approval: "d", decision: "approve", scope: "project" },
  ]);
  assert.equal(await page.getByRole("textbox", { name: "Prompt" }).inputValue(), "yn");
});

test("a key that is held answers one question", async () => {
  const page = await working();
  for (const approval of ["a", "b"]) await tell(page, "approval.opened", { ...ask, approval, title: `rm ${approval}` });
  for (const [key, approval] of [["Enter", "a"], ["y", "b"]] as const) {
    const question = page.getByRole("group", { name: `Question: rm ${approval}` });
    await question.getByRole("button", { name: "Allow", exact: true }).focus();
    await rest(page);
    await page.keyboard.down(key);
    await question.waitFor({ state: "detached" });
    await tell(page, "approval.opened", { ...ask, approval: `${approval}2`, title: `rm ${approval}2` });
    await page.getByRole("group", { name: `Question: rm ${approval}2` }).getByRole("button", { name: "Allow", exact: true }).focus();
    await rest(page);
    await page.keyboard.down(key); // repeats
    await page.keyboard.up(key);
  }
  assert.deepEqual((await callsOf(page, "approval.decide")).map(({ approval }) => approval), ["a", "b"]);
});

test("the options of a question have numbers as keys; the bar takes the keys of its question, too", async () => {
  const page = await working();
  const options = [{ option_id: "red", name: "Red" }, { option_id: "green", name: "Green" }];
  await tell(page, "approval.opened", { approval: "q3", type: "human_contact", tool_name: "other", title: "Which colour do you like?", options, declinable: true });
  const question = page.getByRole("group", { name: "Question: Which colour do you like?" });
  await question.getByRole("button", { name: "Red" }).focus();
  await rest(page);
  await page.keyboard.press("2");
  await question.waitFor({ state: "detached" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q3", decision: "respond", option: "green" }]);

  const other = await pages.open({ prepare: scene, height: 700 });
  await other.getByRole("group", { name: /^Question: Edit/ }).waitFor();
  await toTop(other);
  const bar = other.getByRole("region", { name: "Open questions" });
  await bar.getByRole("button", { name: "Deny" }).focus();
  await rest(other);
  await other.keyboard.press("?");
  await bar.waitFor({ state: "hidden" });
  await other.getByText("[y] Allow: The tool runs this once.").waitFor();
  await toTop(other);
  await bar.getByRole("button", { name: "Deny" }).focus();
  await rest(other);
  await other.keyboard.press("y");
  await bar.waitFor({ state: "hidden" });
  assert.deepEqual(await callsOf(other, "approval.decide"), [{ approval: "q1", decision: "approve" }]);
});

test("a question inside of a sub-agent opens the call that it is part of", async () => {
  const page = await working();
  await tell(page, "item.changed", { type: "tool_call", key: "outer", tool_name: "Task", title: "Look around", tool_kind: "think" });
  await tell(page, "item.changed", { type: "tool_call", key: "inner", tool_name: "Bash", title: "rm -r build", tool_kind: "execute", parent_tool_use_id: "outer" });
  await page.locator(".parts .tool").waitFor();
  await page.locator(".tool > details > summary").first().click();
  await tell(page, "approval.opened", { ...ask, tool_use_id: "inner" });
  await page.locator(".parts .question").waitFor();
  assert.equal(await page.locator(".parts .question").isVisible(), true);
});

test("a bar has the question that is out of view, answers it, and leads to it", async () => {
  const page = await pages.open({ prepare: scene, height: 700 });
  await page.getByRole("group", { name: /^Question: Edit/ }).waitFor();
  const bar = page.getByRole("region", { name: "Open questions" });
  assert.equal(await bar.count(), 0);
  await toTop(page);
  await bar.getByText("Edit src/lexer.ts").waitFor();
  await bar.getByRole("button", { name: "Show the question" }).click();
  await bar.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Allow", exact: true }).and(page.locator(":focus")).waitFor();
  await toTop(page);
  await bar.getByRole("button", { name: "Allow" }).waitFor();
  assert.deepEqual(await bar.locator(".choices button > span").allInnerTexts(), ["Allow", "Deny"]);
  await bar.getByRole("button", { name: "Allow" }).click();
  await bar.waitFor({ state: "hidden" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q1", decision: "approve" }]);
  assert.equal(await page.getByRole("textbox", { name: "Prompt" }).evaluate((element) => document.activeElement === element), true, "the keyboard is not lost");
  const options = [1, 2, 3, 4, 5, 6].map((n) => ({ option_id: `o${n}`, name: `Answer ${n}`, kind: "allow_once" }));
  await tell(page, "approval.opened", { approval: "q9", type: "human_contact", title: "Which one?", options, options_only: true, declinable: true });
  await toTop(page);
  await bar.getByRole("button", { name: "Decline" }).waitFor();
  assert.equal(await bar.getByRole("button", { name: /^Answer/ }).count(), 4, "a few of many answers, and always the denial");
});

test("the extension leads to a question; its change is shown once, and opens in the diff editor", async () => {
  const page = await pages.open({ prepare: scene, height: 700 });
  const question = page.getByRole("group", { name: /^Question: Edit/ });
  await question.waitFor();
  const tool = page.locator(".tool").filter({ has: question });
  assert.equal(await tool.locator(".file-diff").count(), 1);
  await toTop(page);
  await page.evaluate(() => window.host.notify("panel.showQuestion", { id: "q1" }));
  await question.getByRole("button", { name: "Allow", exact: true }).and(page.locator(":focus")).waitFor();
  await question.getByRole("button", { name: "Show the change of lexer.ts in the diff editor" }).click();
  const [{ path, patch }] = (await callsOf(page, "panel.openPatch")) as [{ path: string; patch: string }];
  assert.equal(path, "src/lexer.ts");
  assert.match(patch, /^\+\+\+ b\/src\/lexer.ts$/m);
  await question.getByRole("button", { name: "Deny", exact: true }).click();
  await question.waitFor({ state: "detached" });
  await page.locator(".tool .tool-body .file-diff").last().waitFor();
});

test("a change stands directly above the answers, once, with its line numbers; what does not fit is counted and can be reached", async () => {
  const page = await working();
  const file = (name: string, from: number, count: number): string => `--- a/${name}\n+++ b/${name}\n@@ -${from},2 +${from},${count + 1} @@\n before\n-old\n${Array.from({ length: count }, (_, i) => `+new ${i}\n`).join("")}`;
  const diff = `${file("a.ts", 41, 200)}@@ -90,1 +289,2 @@\n last\n+end\n${file("b.ts", 1, 3)}${file("c.ts", 1, 1)}`;
  const title = "Edit a.ts";
  const tool_input = { file_path: "a.ts", new_string: "the whole input" };
  await tell(page, "item.changed", { type: "tool_call", key: "c1", tool_name: "Edit", title, tool_kind: "edit", tool_input, details: { diffs: [{ path: "a.ts", old_text: "old", new_text: "new 0" }] } });
  await tell(page, "approval.opened", { approval: "q1", type: "function_call", tool_name: "Edit", title, tool_use_id: "c1", tool_input, diff, details: "why ".repeat(200), truncated: false, rule_preview: { session: { text: "Edit of a.ts" } } });
  const question = page.getByRole("group", { name: "Question: Edit a.ts" });
  await question.getByText("Show 189 more lines (1 more hunk)").waitFor();
  const parts = question.locator(".question-about > *");
  assert.deepEqual(await parts.evaluateAll((all: Element[]) => all.slice(-2).map((part) => part.classList[0])), ["file-diff", "more-files"]);
  assert.equal(await question.evaluate((element) => element.querySelector(".question-about")!.nextElementSibling!.querySelector(".choices")!.getBoundingClientRect().top - element.querySelector(".more-files")!.getBoundingClientRect().bottom < 20), true);
  assert.deepEqual([await page.locator(".diff-lines").count(), await page.getByText("the whole input").count()], [1, 0]);
  const numbers = (from: number, to?: number): Promise<string[]> => question.locator(".diff-lines").first().locator(".line, ins, del, .hunk").evaluateAll((lines, [from, to]) => lines.slice(from, to).map((line) => `${(line as HTMLElement).dataset["line"]} ${line.textContent}`), [from, to] as const);
  assert.deepEqual(await numbers(0, 5), [" @@ -41,2 +41,201 @@", "41  before", "42 -old", "42 +new 0", "43 +new 1"]);
  const inView = async (): Promise<boolean> => question.getByRole("button", { name: "Allow", exact: true }).evaluate((element) => {
    const [own, frame] = [element.getBoundingClientRect(), element.closest(".transcript")!.getBoundingClientRect()];
    return own.top >= frame.top && own.bottom <= frame.bottom;
  });
  assert.equal(await inView(), true);
  await question.getByRole("button", { name: "Show 189 more lines (1 more hunk)" }).click();
  assert.deepEqual(await numbers(-3), [" @@ -90,1 +289,2 @@", "289  last", "290 +end"]);
  await question.getByRole("button", { name: "Show 2 more files (8 lines)" }).click();
  await question.getByRole("button", { name: "c.ts", exact: true }).waitFor();
  assert.deepEqual(problemsOf(page), []);
});

test("a reason is typed in the question: Enter sends it, Escape goes back and keeps it", async () => {
  const page = await working();
  await tell(page, "approval.opened", ask);
  const question = page.getByRole("group", { name: "Question: rm -r build" });
  await question.getByRole("button", { name: "Allow", exact: true }).focus();
  await rest(page);
  await page.keyboard.down("t");
  const reason = question.getByRole("textbox", { name: "Why not? The agent gets the reason." });
  await reason.and(page.locator(":focus")).waitFor();
  await page.keyboard.down("t"); // repeats
  await page.keyboard.up("t");
  assert.equal(await reason.inputValue(), "");
  await rest(page);
  await page.keyboard.press("Enter");
  await question.getByText("Type something, or press Escape to go back").waitFor();
  await page.keyboard.type("yes, but ?");
  await page.keyboard.press("Escape");
  await isFocused(page, "Deny and say why");
  assert.deepEqual(await callsOf(page, "turn.interrupt"), [], "Escape only goes back");
  await rest(page);
  await page.keyboard.press("t");
  assert.equal(await reason.inputValue(), "yes, but ?");
  await rest(page);
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("later");
  await page.keyboard.press("Enter");
  await question.waitFor({ state: "detached" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q2", decision: "deny", tell: true, comment: "yes, but ?\nlater" }]);
});

test("the field of an answer is in view with its buttons when it opens, also in a low panel", async () => {
  for (const leads of [false, true]) {
    const page = await pages.open({ prepare: scene, height: 500, width: 360 });
    await page.getByRole("group", { name: /^Question: Edit/ }).waitFor();
    await tell(page, "approval.closed", { approval: "q1", title: "Edit src/lexer.ts", status: "approved", decided_by: "rule=session" });
    await tell(page, "approval.opened", { approval: "q2", type: "human_contact", title: "How should the release be named?" });
    const question = page.getByRole("group", { name: "Question: How should the release be named?" });
    await question.waitFor();
    if (leads) await page.evaluate(() => window.host.notify("panel.showQuestion", { id: "q2", choice: "respond" }));
    else await question.locator(".choices button").first().click();
    await question.getByRole("textbox").waitFor();
    await page.waitForFunction(() => {
      const [frame, last] = [document.querySelector(".transcript")!, [...document.querySelectorAll(".answer-field button")].at(-1)!].map((element) => element.getBoundingClientRect());
      return last!.bottom <= frame!.bottom;
    }, undefined, { timeout: 20_000 });
  }
});

test("a rule is shown before it is stored, and its pattern can be changed", async () => {
  const page = await working();
  const rule = { tool_name: "Bash", covers: "command", pattern: "rm -r build", text: "the command rm -r build, in this session" };
  await tell(page, "approval.opened", { ...ask, rule_preview: { session: rule, project: rule } });
  const question = page.getByRole("group", { name: "Question: rm -r build" });
  await question.getByRole("button", { name: "Always in this project" }).click();
  await question.getByText("Allowed without a question: the command rm -r build, in this session").waitFor();
  const pattern = question.getByRole("textbox", { name: "Pattern" });
  await pattern.and(page.locator(":focus")).waitFor();
  assert.equal(await pattern.inputValue(), "rm -r build");
  await question.getByRole("button", { name: "Back" }).click();
  await question.getByRole("button", { name: "Always in this session" }).click();
  await pattern.fill("rm -r *");
  await page.evaluate(() => {
    window.host.answers["approval.decide"] = () => {
      delete window.host.answers["approval.decide"];
      throw new Error("the pattern does not match this call");
    };
  });
  await rest(page);
  await pattern.press("Enter");
  await question.getByText("The answer was not sent: the pattern does not match this call").waitFor();
  await pattern.press("Enter");
  await question.waitFor({ state: "detached" });
  assert.deepEqual((await callsOf(page, "approval.decide"))[1], { approval: "q2", decision: "approve", scope: "session", pattern: "rm -r *" });
});

test("a form is filled in in the question, and says which value is wrong", async () => {
  const page = await working();
  const schema = {
    type: "object", required: ["colour", "sure"],
    properties: {
      colour: { type: "string", title: "Colour", enum: ["red", "blue"], default: "red" }, count: { type: "integer", title: "How many", minimum: 1, maximum: 9, default: 2 },
      sure: { type: "boolean", title: "Sure" }, days: { type: "array", title: "Days", items: { enum: ["Mo", "Tu"] } }, name: { type: "string", title: "Name on it" },
    },
  };
  await tell(page, "approval.opened", { approval: "q5", type: "human_contact", mode: "form", tool_name: "other", title: "The order", schema });
  const question = page.getByRole("group", { name: "Question: The order" });
  await question.getByRole("button", { name: "Fill in" }).click();
  await question.getByRole("combobox", { name: "Colour" }).and(page.locator(":focus")).waitFor();
  await question.getByRole("combobox", { name: "Colour" }).selectOption("blue");
  const count = question.getByRole("textbox", { name: "How many" });
  await count.fill("12");
  await rest(page);
  await count.press("Enter");
  await question.getByText("How many has to be from 1 to 9").waitFor();
  await count.and(page.locator(":focus")).waitFor();
  await count.fill("3");
  await count.press("Enter");
  await question.getByText("Sure is needed").waitFor();
  await question.getByRole("combobox", { name: "Sure" }).selectOption("No");
  await question.getByRole("checkbox", { name: "Tu" }).check();
  await question.getByRole("button", { name: "Answer" }).click();
  await question.waitFor({ state: "detached" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q5", decision: "respond", content: { colour: "blue", count: 3, sure: false, days: ["Tu"] } }]);
});

test("the extension opens an address, and the answer is sent if the user wanted that", async () => {
  const page = await working();
  await page.evaluate(() => (window.host.answers["panel.openAddress"] = () => ({ opened: false })));
  await tell(page, "approval.opened", { approval: "q6", type: "human_contact", mode: "url", tool_name: "other", title: "Sign in", url: "https://example.com/in" });
  const question = page.getByRole("group", { name: "Question: Sign in" });
  await question.getByRole("button", { name: "Open in the browser" }).click();
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "panel.openAddress"));
  assert.deepEqual([await callsOf(page, "panel.openAddress"), await callsOf(page, "approval.decide")], [[{ approval: "q6" }], []]);
  await page.evaluate(() => delete window.host.answers["panel.openAddress"]);
  await question.getByRole("button", { name: "Open in the browser" }).click();
  await question.waitFor({ state: "detached" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q6", decision: "respond" }]);
});

test("the extension opens an editor for what the tool gets, and the question waits", async () => {
  const page = await working();
  await tell(page, "approval.opened", { ...ask, input_editable: true });
  const question = page.getByRole("group", { name: "Question: rm -r build" });
  await question.getByRole("button", { name: "Edit", exact: true }).focus();
  await rest(page);
  await page.evaluate(() => {
    window.host.answers["panel.editInput"] = () => {
      delete window.host.answers["panel.editInput"];
      throw new Error("the input is too long to be edited here");
    };
  });
  await page.keyboard.press("e");
  await question.getByText("The editor was not opened: the input is too long to be edited here").waitFor();
  await page.keyboard.press("e");
  await page.waitForFunction(() => window.host.calls.filter(({ method }) => method === "panel.editInput").length === 2);
  assert.deepEqual([(await callsOf(page, "panel.editInput"))[1], await callsOf(page, "approval.decide")], [{ approval: "q2" }, []]);
  await question.getByRole("button", { name: "Allow", exact: true }).click();
  await question.waitFor({ state: "detached" });
});

test("the extension leads to the input of an answer", async () => {
  const page = await working();
  await page.evaluate(() => window.host.notify("panel.showQuestion", { id: "q3", choice: "respond" }));
  await tell(page, "approval.opened", { approval: "q3", type: "human_contact", tool_name: "other", title: "Which colour do you like?" });
  const answer = page.getByRole("textbox", { name: "Which colour do you like?" });
  await answer.and(page.locator(":focus")).waitFor();
  await rest(page);
  await page.keyboard.type("Blue");
  await page.keyboard.press("Enter");
  await answer.waitFor({ state: "detached" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q3", decision: "respond", comment: "Blue" }]);
});

test("a question that somebody else answers says so; a late answer says what was decided", async () => {
  const page = await working();
  await page.evaluate(() => {
    window.host.answers["approval.decide"] = () => ({ success: false, error: "it was denied by user" });
  });
  await tell(page, "approval.opened", ask);
  const question = page.getByRole("group", { name: "Question: rm -r build" });
  await question.getByRole("button", { name: "Allow", exact: true }).click();
  await question.getByText("It was answered already: it was denied by user").waitFor();
  await tell(page, "approval.closed", { approval: "q2", title: "rm -r build", status: "denied", decided_by: "user" });
  await page.getByText("Answered elsewhere: denied").first().waitFor();
  assert.equal(await question.count(), 0);
  await tell(page, "approval.opened", { ...ask, approval: "q4" });
  await question.waitFor();
  await tell(page, "turn.state", { state: "interrupted" });
  await page.getByText("The question was closed: its turn has ended.").waitFor();
});

test("a list of questions from before the end of a turn does not open its questions again", async () => {
  const page = await working();
  await tell(page, "approval.opened", ask);
  await page.getByRole("group", { name: "Question: rm -r build" }).waitFor();
  const before = (await callsOf(page, "approval.list")).length;
  await page.evaluate((given) => {
    // The event arrives between the request and its response. The list is older than the end.
    window.host.answers["approval.list"] = () => {
      delete window.host.answers["approval.list"];
      window.host.silent.add("approval.list");
      window.host.event("turn.state", { state: "interrupted" });
      window.host.approvals = [];
      return { approvals: [{ ...given, approval: "q2", turn_uuid: "run" }] };
    };
  }, ask);
  await tell(page, "session.changed", {}); // the panel asks again
  await page.waitForFunction((count) => window.host.calls.filter(({ method }) => method === "approval.list").length > count, before);
  await page.getByText("The question was closed: its turn has ended.").waitFor();
});

test("an answer that does not get there can be given again", async () => {
  const page = await working();
  await page.evaluate(() => {
    window.host.answers["approval.decide"] = () => {
      throw new Error("duet-rpc does not answer");
    };
  });
  await tell(page, "approval.opened", ask);
  const question = page.getByRole("group", { name: "Question: rm -r build" });
  const allow = question.getByRole("button", { name: "Allow", exact: true });
  await allow.click();
  await question.getByText("The answer was not sent: duet-rpc does not answer").waitFor();
  assert.equal(await allow.getAttribute("aria-disabled"), "false");
  assert.equal(await allow.evaluate((element) => document.activeElement === element), true);
  assert.deepEqual(problemsOf(page), []);
});

test("a question of which an event leaves something out cannot be answered until all of it is there", async () => {
  const page = await working();
  await page.evaluate(() => window.host.silent.add("approval.list"));
  await tell(page, "approval.opened", { ...ask, tool_input: null, truncated: true });
  const question = page.getByRole("group", { name: "Question: rm -r build" });
  await question.getByText("Loading all of it…").waitFor();
  assert.equal(await page.getByRole("button", { name: "Allow" }).count(), 0);
  await page.evaluate((given) => {
    window.host.silent.delete("approval.list");
    window.host.approvals = [{ ...given, approval: "q2", turn_uuid: "run", tool_input: { command: "rm -r build\n# all of it" } }];
  }, ask);
  await tell(page, "session.changed", {}); // the panel asks again
  await question.getByText("# all of it").waitFor();
  assert.equal(await question.getByText("being loaded").count(), 0);
  // A repeated event removes nothing.
  await tell(page, "item.added", { type: "message", role: "assistant", key: "m1", text: "waiting" });
  await question.getByRole("button", { name: "Allow", exact: true }).click();
  await question.waitFor({ state: "detached" });
});

test("after an answer by the keyboard, the view follows the agent again", async () => {
  const page = await pages.open({ prepare: scene, height: 500 });
  await page.getByRole("group", { name: "Question: Edit src/lexer.ts" }).waitFor();
  await page.evaluate(() => window.host.notify("panel.showQuestion", { id: "q1" }));
  await isFocused(page, "Allow");
  await rest(page);
  await page.keyboard.press("y");
  await tell(page, "approval.closed", { approval: "q1", title: "Edit src/lexer.ts", status: "approved", decided_by: "user" });
  await page.getByRole("group", { name: "Question: Edit src/lexer.ts" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Newest" }).waitFor({ state: "hidden" });
});

test("an answer at the question leads to the end, and a reader who has scrolled up stays", async () => {
  const distance = (page: Page): Promise<number> => page.locator(".transcript").evaluate(({ scrollTop, scrollHeight, clientHeight }) => scrollHeight - scrollTop - clientHeight);
  const opened = async (): Promise<Page> => {
    const page = await pages.open({ prepare: scene, height: 500 });
    await page.getByRole("group", { name: "Question: Edit src/lexer.ts" }).waitFor();
    await tell(page, "text.delta", { key: "m9", text: "Meanwhile it goes on.\n\n".repeat(40) });
    await page.locator("[data-key='m9']").waitFor();
    return page;
  };
  const goesOn = async (page: Page): Promise<void> => {
    await page.getByRole("group", { name: "Question: Edit src/lexer.ts" }).waitFor({ state: "detached" });
    await tell(page, "text.delta", { key: "m9", text: "It has the answer.\n\n".repeat(40) });
    await page.waitForFunction(() => document.querySelector("[data-key='m9']")!.textContent.includes("It has the answer."));
  };
  const page = await opened();
  await page.evaluate(() => window.host.notify("panel.showQuestion", { id: "q1" }));
  await isFocused(page, "Allow");
  await page.waitForFunction(() => {
    const { scrollTop, scrollHeight, clientHeight } = document.querySelector(".transcript")!;
    return scrollHeight - scrollTop - clientHeight > 100;
  });
  await rest(page);
  await page.keyboard.press("y");
  await goesOn(page);
  await page.getByRole("button", { name: "Newest" }).waitFor({ state: "hidden", timeout: 20_000 });
  assert.ok((await distance(page)) < 5);

  const reader = await opened();
  await toTop(reader);
  await reader.getByRole("region", { name: "Open questions" }).getByRole("button", { name: "Allow" }).click();
  await goesOn(reader);
  assert.deepEqual([await reader.locator(".transcript").evaluate(({ scrollTop }) => scrollTop), await reader.getByRole("button", { name: "Newest" }).isVisible()], [0, true]);
  assert.deepEqual(problemsOf(page), []);
});

test("when the user comes to a panel, the prompt box has the focus, or an open question without a scroll", async () => {
  const enter = (page: Page): Promise<void> => page.evaluate(() => window.host.notify("panel.entered", {}));
  const boxed = (page: Page): Promise<void> => page.getByRole("textbox", { name: "Prompt", exact: true }).and(page.locator(":focus")).waitFor({ timeout: 20_000 });
  const page = await working();
  await enter(page);
  await boxed(page);
  await page.locator(".transcript").focus();
  await enter(page);
  await boxed(page);

  // A page without the focus of the window takes it from nothing, and waits for it.
  await page.evaluate(() => {
    (document.activeElement as HTMLElement).blur();
    document.hasFocus = () => false;
  });
  await enter(page);
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => document.activeElement === document.body), true);
  await page.evaluate(() => {
    document.hasFocus = () => true;
    globalThis.dispatchEvent(new Event("focus"));
  });
  await boxed(page);

  // The question comes with the session, after the page was told.
  const loading = await pages.open({
    prepare: (host) => {
      host.silent.add("session.items");
      host.session = { ...host.session, state: "waiting_input" };
      host.approvals = [{ approval: "q2", turn_uuid: "run", session_uuid: "thread", type: "function_call", tool_name: "Bash", title: "rm -r build", tool_input: { command: "rm -r build" } }];
    },
  });
  await loading.waitForFunction(() => window.host.calls.some(({ method }) => method === "session.items"));
  await enter(loading);
  await boxed(loading);
  await loading.evaluate(() => window.host.release("session.items"));
  await isFocused(loading, "Allow");
  await loading.keyboard.press("n"); // a key for what had the focus before
  assert.deepEqual(await callsOf(loading, "approval.decide"), []);

  // What the user types meanwhile keeps the focus in the prompt box.
  const typed = await pages.open({
    prepare: (host) => {
      host.silent.add("session.items");
      host.approvals = [{ approval: "q2", turn_uuid: "run", session_uuid: "thread", type: "function_call", tool_name: "Bash", title: "rm -r build", tool_input: { command: "rm -r build" } }];
    },
  });
  await typed.waitForFunction(() => window.host.calls.some(({ method }) => method === "session.items"));
  await enter(typed);
  await boxed(typed);
  await typed.keyboard.type("But");
  await typed.evaluate(() => window.host.release("session.items"));
  await typed.getByRole("group", { name: "Question: rm -r build" }).waitFor();
  await typed.keyboard.type(" why");
  assert.equal(await typed.getByRole("textbox", { name: "Prompt", exact: true }).inputValue(), "But why");

  // A reader of older messages keeps the place: the bar has the question.
  const reader = await pages.open({ prepare: scene, height: 700 });
  await reader.getByRole("group", { name: /^Question: Edit/ }).waitFor();
  await toTop(reader);
  const bar = reader.getByRole("region", { name: "Open questions" });
  await bar.waitFor();
  await rest(reader);
  await enter(reader);
  await bar.getByRole("button", { name: "Allow", exact: true }).and(reader.locator(":focus")).waitFor({ timeout: 20_000 });
  assert.equal(await reader.locator(".transcript").evaluate(({ scrollTop }) => scrollTop), 0);

  // A click in the page says itself what has the focus.
  await reader.getByRole("heading", { name: "Make the parser accept comments" }).click();
  await enter(reader);
  await reader.waitForTimeout(200);
  assert.equal(await reader.evaluate(() => document.activeElement === document.body), true);
  assert.deepEqual(problemsOf(reader), []);
});
