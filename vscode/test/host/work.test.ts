// A user's work with files in a real VS Code: mentions them in prompts, follows the agent's locations, and reviews its changes.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import type { Locator } from "playwright-core";
import { addRepository } from "../hub";
import { addWriterAgent } from "../writeragent";
import { eventually, openWindow } from "./vscode";

/** fromMenu chooses an action of a row's menu. VS Code closes the menu when another element takes the focus: then it is opened again. */
async function fromMenu(row: Locator, action: string, opened: () => Promise<void>): Promise<void> {
  const label = row.page().locator(".monaco-menu .action-label", { hasText: action });
  await eventually(async () => {
    await row.page().keyboard.press("Escape");
    await row.click({ button: "right", timeout: 10_000 });
    await label.waitFor({ timeout: 10_000 });
    await opened();
    await label.click({ timeout: 10_000 });
  });
}

test("files are named to an agent, its form is filled in, its links are followed, and its change of several files is reviewed", async (t) => {
  const cart = `"""What is in the cart, and what it costs."""


def total(items):
    return sum(item.price for item in items)


def names(items):
    return sorted({item.name for item in items})


def add(items, item):
    items.append(item)
    return items
`;
  const tests = `from cart import Item, total


def test_items_count():
    assert total([Item(price=3, count=2)]) == 6
`;
  const { page, project, row, panel, answer, openViews, newSession, call, command, picture } = await openWindow((end) => t.after(end), {
    files: { "cart.py": cart },
    prepare: (project) => {
      addWriterAgent(project);
      execFileSync("git", ["init", "--quiet"], { cwd: project.folder, env: project.env }); // by which files are listed
      mkdirSync(join(project.folder, "docs"));
      writeFileSync(join(project.folder, "docs", "guide.md"), "# Guide\n");
    },
  });
  const prompt = panel.getByRole("textbox", { name: "Prompt" });
  await openViews();

  // A form.
  await newSession("form");
  await answer("Fill in").click();
  const count = panel.getByRole("textbox", { name: "How many" });
  await panel.getByRole("combobox", { name: "Colour" }).selectOption("blue");
  await count.fill("12");
  await picture("form");
  await panel.getByRole("button", { name: "Answer", exact: true }).click();
  await panel.getByText("How many has to be from 1 to 9").waitFor();
  await picture("form-wrong");
  await count.fill("3");
  await panel.getByRole("combobox", { name: /Wrapped as a gift/ }).selectOption("Yes");
  await panel.getByRole("textbox", { name: "Name on it" }).fill("Ada");
  await panel.getByRole("textbox", { name: "Name on it" }).press("Enter");
  await panel.getByText(/"count":\s*3/).first().waitFor();
  await row("Completed").waitFor();

  // A change of several files, and the locations that the agent names.
  const counted = cart.replace("item.price", "item.price * item.count");
  const changed = counted.replace(/ {4}items.append.*\n.*\n/, "    return [*items, item]\n");
  const query = `The cart forgets how many there are of each\n${JSON.stringify({ "cart.py": changed, "tests/test_cart.py": tests })}`;
  await call("session.start", { agent: "writer", working_dir: project.folder, prompt: query });
  await row("Completed").filter({ hasText: "2" }).click(); // shows its content
  await row("The cart forgets").click();
  await panel.getByText("I wrote").waitFor();
  await panel.getByRole("link", { name: "the manual" }).click();
  const dialog = page.locator(".monaco-dialog-box").filter({ hasText: "example.com/manual" });
  await dialog.waitFor();
  await picture("link");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await panel.getByRole("link", { name: "tests/test_cart.py" }).click();
  await page.locator(".tab.active").filter({ hasText: "test_cart.py" }).waitFor();

  // The selected lines of the editor, and a file by its name.
  await page.locator(".editor-instance .view-line").filter({ hasText: "def test_items_count" }).click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await command("Duet: Add Selection to Prompt");
  await panel.getByText("I wrote").waitFor();
  await prompt.pressSequentially("@gui");
  await panel.getByRole("option", { name: /guide\.md/ }).waitFor();
  await picture("completion");
  await prompt.press("Enter");
  await eventually(async () => assert.match(await prompt.inputValue(), /@tests\/test_cart\.py#L4 @docs\/guide\.md /));
  // What git sees goes along, too. There is no problem, and no terminal.
  const written = await prompt.inputValue();
  for (const source of ["changes", "problems", "terminal"]) {
    await prompt.pressSequentially(`@${source}`);
    await panel.getByRole("option", { name: new RegExp(`^${source}`) }).waitFor();
    await prompt.press("Enter");
    if (source === "changes") await panel.getByRole("button", { name: "Remove changes" }).click();
    else await panel.getByText(source === "problems" ? /VS Code lists no problem in / : "no terminal is open").waitFor();
    await prompt.fill(written);
  }
  const chip = panel.getByRole("button", { name: "Remove the active editor, test_cart.py:4" });
  await chip.waitFor();
  await prompt.press("Enter");
  await panel.getByText(/I was sent text [^,]*, resource def test_items_count\(\):, resource_link .*guide\.md\./).waitFor(); // the lines once
  await picture("sent");

  // The active editor goes with a prompt, until its chip is removed.
  await prompt.fill("And these");
  await prompt.press("Enter");
  await panel.getByText("I was sent text , resource def test_items_count():.").waitFor();
  await chip.click();
  await prompt.fill("And nothing");
  await prompt.press("Enter");
  await panel.getByText("I was sent text .").waitFor();

  await command("Duet: Show Changes");
  const lens = (words: string): ReturnType<typeof page.locator> => page.locator(".modified .codelens-decoration a").filter({ hasText: new RegExp(`^\\s*${words}$`) }); // "Revert" is not "Reverted"
  await lens("Revert").nth(2).waitFor();
  await lens("Revert").nth(1).click();
  await lens("Reverted · Reopen").waitFor();
  assert.equal(readFileSync(join(project.folder, "cart.py"), "utf8"), counted);
  await page.locator(".modified .view-line").filter({ hasText: "def test_items_count" }).click();
  await page.keyboard.press("Alt+q");
  await page.keyboard.press("y");
  await lens("Accepted · Reopen").waitFor();
  await command("Notifications: Clear All Notifications");
  await picture("changes");
  assert.ok(existsSync(join(project.folder, "tests", "test_cart.py")));
});

test("changes with a line between them are decided apart in the editor of their file, and all files at once", async (t) => {
  const { page, project, row, notification, panel, openViews, call, choose, picture } = await openWindow((end) => t.after(end), {
    files: { "list.txt": "a\nb\nc\nd\ne\n", "other.txt": "one\n" },
    prepare: addWriterAgent,
  });
  const text = (name: string): string => readFileSync(join(project.folder, name), "utf8");
  const lens = (words: string): ReturnType<typeof page.locator> => page.locator(".editor-instance .codelens-decoration a").filter({ hasText: new RegExp(`^\\s*${words}$`) });
  await openViews();
  await page.locator(".monaco-button", { hasText: "New Session" }).waitFor(); // duet-rpc is there
  await call("session.start", { agent: "writer", working_dir: project.folder, prompt: `Change two lines\n${JSON.stringify({ "list.txt": "a\nB\nc\nD\ne\n", "other.txt": "two\n" })}` });
  await row("Completed").click(); // shows its content
  await row("Change two lines").click();
  await panel.getByRole("button", { name: "Open file" }).first().click();
  await eventually(async () => assert.equal(await lens("Revert").count(), 2));
  await picture("editor-changes");
  await lens("Revert").last().click();
  await lens("Reverted · Reopen").waitFor();
  assert.equal(text("list.txt"), "a\nB\nc\nd\ne\n");
  await page.locator(".editor-instance .view-line").filter({ hasText: /^B$/ }).click();
  await page.keyboard.press("Alt+q");
  await page.keyboard.press("y");
  await eventually(async () => assert.equal(await lens("Accept").count(), 0));
  await picture("editor-changes-decided");

  await choose("Duet: Revert All", "Change two lines");
  await notification("2 of 2 files reverted").getByText("Undo").waitFor();
  assert.deepEqual([text("list.txt"), text("other.txt")], ["a\nb\nc\nd\ne\n", "one\n"]);
  await picture("editor-changes-all");
  await notification("2 of 2 files reverted").getByText("Undo").click();
  await eventually(() => assert.deepEqual([text("list.txt"), text("other.txt")], ["a\nB\nc\nD\ne\n", "two\n"]));
});

test("an agent works in a worktree: its branch and its files are shown, and its changes are landed and discarded", async (t) => {
  const { page, project, row, notification, panel, openViews, command, pick, picture } = await openWindow((end) => t.after(end), {
    agent: "writer",
    prepare: (project) => {
      addWriterAgent(project);
      mkdirSync(join(project.folder, "docs"));
      writeFileSync(join(project.folder, "docs", "cart.txt"), "one\n");
      addRepository(project.folder);
    },
  });
  const prompt = panel.getByRole("textbox", { name: "Prompt" });
  const send = async (text: string, content: string): Promise<void> => {
    await prompt.fill(`${text}\n${JSON.stringify({ "docs/cart.txt": content })}`);
    await prompt.press("Enter");
  };
  const mine = (): string => readFileSync(join(project.folder, "docs", "cart.txt"), "utf8");
  await openViews();
  await command("Duet: New Session");
  await panel.getByRole("combobox", { name: "Place of work" }).selectOption("In a worktree");
  await panel.getByText("Your first prompt starts a session in project, in its own git worktree.").waitFor();
  await picture("worktree-new");
  await send("Fill the cart", "one\ntwo\n");
  const worktree = panel.getByRole("group", { name: "Worktree" });
  await worktree.getByText(/^duet\/fill-the-cart/).waitFor();
  await panel.getByRole("link", { name: "docs/cart.txt" }).click();
  await page.locator(".editor-instance .view-line").filter({ hasText: "two" }).waitFor();
  assert.equal(mine(), "one\n");
  await command("Duet: Show Changes");
  await pick("Fill the cart");
  await page.locator(".tab.active").filter({ hasText: /^docs\/cart\.txt \(Fill the cart/ }).waitFor();

  await page.locator(".tab").filter({ hasText: /^Fill the cart/ }).click();
  await worktree.getByRole("button", { name: "Open in New Window" }).waitFor();
  await picture("worktree");
  const opened = page.context().waitForEvent("page");
  await worktree.getByRole("button", { name: "Open in New Window" }).click();
  const fresh = await opened;
  assert.match(decodeURIComponent(fresh.url()), /folder=.*\/worktrees\/.*fill-the-cart/);
  await fresh.close();
  await worktree.getByRole("button", { name: "Land…" }).click();
  await pick("Merge");
  await notification("landed on main: 1 commit, 1 file").waitFor();
  assert.equal(mine(), "one\ntwo\n");

  await send("Fill it more", "one\ntwo\nthree\n");
  await panel.getByText("I wrote").nth(1).waitFor();
  await row("Completed").click();
  await fromMenu(row(/on duet\/fill-the-cart/), "Discard Worktree…", () => picture("worktree-menu"));
  const dialog = page.locator(".monaco-dialog-box").filter({ hasText: "1 changed file that is not committed:" });
  await dialog.waitFor();
  await picture("worktree-discard");
  await dialog.getByRole("button", { name: "Discard", exact: true }).click();
  await notification("git branch NAME refs/duet/").getByText("Copy Command").waitFor();
  await row(/duet\/fill-the-cart.* is gone/).waitFor();
  await panel.getByText(/The worktree of duet\/fill-the-cart.* is gone/).waitFor();
  await picture("worktree-gone");
  assert.equal(mine(), "one\ntwo\n");
});

test("several agents get one prompt: their attempts are compared, also after a reload, and one is landed", async (t) => {
  const { page, project, row, notification, panel, openViews, command, pick, picture, reload, call } = await openWindow((end) => t.after(end), {
    agent: "writer",
    prepare: (project) => {
      addWriterAgent(project);
      mkdirSync(join(project.folder, "docs"));
      writeFileSync(join(project.folder, "docs", "cart.txt"), "one\n");
      addRepository(project.folder);
    },
  });
  await openViews();
  await command("Duet: New Session");
  await panel.getByRole("combobox", { name: "Agent" }).selectOption("Several Agents…");
  const list = page.locator(".quick-input-widget").filter({ hasText: "Which agents get the prompt?" });
  await list.locator(".monaco-list-row").filter({ hasText: "demo" }).click();
  await picture("attempts-agents");
  await list.getByRole("button", { name: "OK" }).click();
  await panel.getByText(/^Your first prompt starts 2 sessions in project, each in its own git worktree/).waitFor();
  await picture("attempts-new");
  const prompt = panel.getByRole("textbox", { name: "Prompt" });
  await prompt.fill(`Fill the cart ${JSON.stringify({ "docs/cart.txt": "one\ntwo\n" })}`);
  await prompt.press("Enter");
  await page.locator(".tab.active").filter({ hasText: /^Attempts: Fill the cart/ }).waitFor();
  assert.equal(await page.locator(".tab").filter({ hasText: "New session" }).count(), 0, "the panel without a session is closed");
  const writer = panel.getByRole("region", { name: /^writer, / });
  await writer.getByText("completed · 1 file, +1 -0").waitFor();
  await picture("attempts");
  await writer.getByRole("button", { name: "docs/cart.txt" }).click();
  await page.locator(".editor-instance .modified .view-line").filter({ hasText: "two" }).waitFor();
  await page.locator(".tab.active").filter({ hasText: "docs/cart.txt (writer)" }).waitFor();
  await picture("attempts-diff");

  await page.locator(".tab").filter({ hasText: /^Attempts: / }).click();
  await writer.getByRole("button", { name: "Open Session" }).click();
  await panel.getByRole("button", { name: "Compare Attempts" }).waitFor();
  await picture("attempts-session");
  await fromMenu(row(/one of several attempts/), "Compare Attempts", () => picture("attempts-menu"));
  await page.locator(".tab.active").filter({ hasText: /^Attempts: / }).waitFor();
  await reload("duet.attempts");
  await writer.getByText("I wrote").waitFor();
  // The page shows another client's actions on an attempt.
  await call("session.prompt", { session: "1", prompt: "again" });
  await writer.getByText("I was sent text").waitFor();
  await writer.getByRole("button", { name: "Choose…" }).click();
  await pick("Squash");
  const asked = page.locator(".monaco-dialog-box").filter({ hasText: "still works" });
  await asked.waitFor();
  await picture("attempts-interrupt");
  await asked.getByRole("button", { name: "Interrupt and Discard" }).click();
  await notification("landed on main: 1 commit, 1 file").waitFor();
  await panel.getByText(/^demo \(\d+\.\d+\) is discarded/).waitFor();
  await picture("attempts-chosen");
  assert.equal(readFileSync(join(project.folder, "docs", "cart.txt"), "utf8"), "one\ntwo\n");
});

test("what an agent wants to write is edited in the diff editor, and written as edited; a key of a command is not typed", async (t) => {
  const { page, project, panel, answer, openViews, newSession, picture } = await openWindow((end) => t.after(end));
  const prompt = panel.getByRole("textbox", { name: "Prompt" });
  await openViews();
  await newSession("Greet the reader");
  await answer("Allow").waitFor();
  await prompt.click();
  await page.keyboard.type("a");
  await page.keyboard.press("Alt+q");
  await page.keyboard.press("a"); // Answer a Question
  await answer("Allow").and(panel.locator(":focus")).waitFor();
  assert.equal(await prompt.inputValue(), "a");
  await page.waitForTimeout(600); // a question takes no key at once
  await page.keyboard.press("e");
  const editor = page.locator(".modified-in-monaco-diff-editor").filter({ hasText: "Greet the reader" });
  await editor.locator(".view-line").first().click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("# My title");
  await page.keyboard.press("Enter");
  await page.locator(".tab.active").filter({ hasText: "demo.txt (your edit)" }).waitFor();
  await picture("edit");
  await page.keyboard.press("Alt+q");
  await page.keyboard.press("y");
  await page.locator(".tab").filter({ hasText: "demo.txt (your edit)" }).waitFor({ state: "detached" });
  await panel.getByText("edited and allowed").waitFor();
  await eventually(() => assert.match(readFileSync(join(project.folder, "demo.txt"), "utf8"), /^# My title\nTurn 1: Greet the reader/));
});
