// Builds, gates and keys in a real VS Code.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { openWindow } from "./vscode";
import type { Window } from "./vscode";

/** command carries a command of the palette out. */
async function command({ page }: Window, title: string): Promise<void> {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input[type=text]").fill(`>${title}`);
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: title }).first().click();
}

const config = `
[[builds]]
name = "page"
command = ["sh", "-c", "echo compiling; echo 'main.c:2:5: error: no such thing'; exit 2"]
[[gates]]
name = "tests"
command = ["sh", "-c", "test -e fixed || { echo 'main.c:1:1: warning: not fixed'; exit 1; }"]
[agents.keyed]
driver = "command"
command = ["sh", "-c", "printf %s \\"$MY_KEY\\" >got; cat >/dev/null"]
keys = { MY_KEY = "myservice" }
`;

test("what a build finds is a problem, which the next one takes away", async (t) => {
  const window = await openWindow((end) => t.after(end), { config, files: { "main.c": "one\ntwo two\n" } });
  const { page, openViews, picture } = window;
  await openViews();
  await page.getByRole("button", { name: "New Session", exact: true }).waitFor();
  await command(window, "Duet: Build or Check");
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "page" }).first().click();
  await page.locator(".xterm-rows, .terminal-wrapper").first().waitFor();
  await command(window, "View: Focus Problems");
  const problem = page.locator(".markers-panel .monaco-list-row").filter({ hasText: "no such thing" });
  await problem.first().waitFor();
  await picture("problems");

  // A session that has gates tells what they find as well.
  await command(window, "Duet: Work until Gates Pass");
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "tests" }).first().click();
  await page.keyboard.press("Enter");
  const input = page.locator(".quick-input-widget input[type=text]");
  await page.locator(".quick-input-widget").filter({ hasText: "New session with" }).waitFor();
  await input.fill("quiet");
  await input.press("Enter");
  await page.locator(".markers-panel .monaco-list-row").filter({ hasText: "not fixed" }).first().waitFor();
});

test("a key is asked for, given, and kept", async (t) => {
  const window = await openWindow((end) => t.after(end), { config, agent: "keyed" });
  const { page, project, openViews, newSession, row, notification, picture } = window;
  await openViews();
  await newSession("first");
  const asked = page.locator(".quick-input-widget").filter({ hasText: "the key for myservice" });
  await asked.waitFor();
  await picture("key");
  await asked.locator("input").fill("s3cret");
  await page.keyboard.press("Enter");
  const keep = notification("Keep the key for myservice");
  await keep.waitFor();
  await keep.hover();
  await keep.getByRole("button", { name: "Keep It", exact: true }).click();
  await row("Done").waitFor();
  const got = join(project.folder, "got");
  assert.ok(existsSync(got));
  assert.equal(readFileSync(got, "utf8"), "s3cret");
  await newSession("second");
  await notification("second is done").waitFor(); // nobody is asked
  assert.equal(readFileSync(got, "utf8"), "s3cret");
});
