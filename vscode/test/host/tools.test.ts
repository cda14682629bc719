// Builds, keys, terminals, tasks and the preview in a real VS Code.
import { rmSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import type { Page } from "playwright-core";
import { addKeyAgent, wantedKey } from "../keyagent";
import { openWindow } from "./vscode";

/** run carries a command of the palette out. */
async function run(page: Page, title: string): Promise<void> {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input[type=text]").fill(`>${title}`);
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: title }).first().click();
}

test("what a build finds is in the list of problems until it is built again", async (t) => {
  const { page, project, notification, openViews, picture } = await openWindow((end) => t.after(end), {
    files: { ".duet.toml": `[[builds]]\nname = "demo"\ncommand = ["sh", "-c", "cat output 2>/dev/null; test ! -e output"]\n`, output: "main.go:3:6: declared and not used: n\n", "main.go": "package main\n\nvar x, n int\n" },
  });
  await openViews();
  await run(page, "Duet: Build…");
  const failed = notification("demo failed: exit status 1, 1 error");
  await failed.getByRole("button", { name: "Show Problems" }).click();
  const problem = page.locator(".markers-panel .monaco-list-row").filter({ hasText: "declared and not used: n" });
  await problem.waitFor();
  await picture("problems");
  await problem.dblclick();
  await page.locator(".tab").filter({ hasText: "main.go" }).waitFor();
  // (What is in output channels is not to be seen in this VS Code, which has no native modules.)
  rmSync(join(project.folder, "output"));
  await run(page, "Duet: Build…");
  await page.locator('.panel .action-label[aria-label^="Problems"]').click();
  await problem.waitFor({ state: "detached" });
  await page.locator(".markers-panel").filter({ hasText: "No problems" }).waitFor();
});

test("an agent needs a key: it is asked for, remembered, and not asked for again", async (t) => {
  const { page, panel, notification, openViews, newSession, picture } = await openWindow((end) => t.after(end), { agent: "keyed", prepare: addKeyAgent });
  await openViews();
  await newSession("Get the key");
  const asked = notification("keyed needs a key for acme");
  await asked.waitFor();
  await picture("key");
  await asked.getByRole("button", { name: "Give and Remember" }).click();
  await page.locator(".quick-input-widget input[type=password]").fill(wantedKey);
  await page.keyboard.press("Enter");
  await panel.getByText("the right key").first().waitFor();
  await newSession("Get it again");
  await page.locator(".tab.active").filter({ hasText: "Get it again" }).waitFor();
  await panel.getByText("the right key").first().waitFor();
  await run(page, "Duet: Forget Keys…");
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "acme" }).waitFor();
});

test("a terminal of the hub is typed into, and its end closes it", async (t) => {
  const { page, openViews, picture } = await openWindow((end) => t.after(end), { env: { SHELL: "/bin/sh" } });
  await openViews();
  await run(page, "Duet: New Terminal");
  const terminal = page.locator(".terminal-wrapper.active");
  await terminal.click();
  await page.keyboard.type("echo sum-$((40+2))\n");
  await terminal.locator(".xterm-accessibility-tree, .xterm-rows").filter({ hasText: "sum-42" }).first().waitFor();
  await picture("terminal");
  await page.keyboard.type("exit\n");
  await terminal.waitFor({ state: "detached" });
});

test("a gate is run as a task, with what it prints and its status", async (t) => {
  const { page, openViews, picture } = await openWindow((end) => t.after(end), {
    files: { ".duet.toml": `[[gates]]\nname = "tests"\ncommand = ["sh", "-c", "echo checked-$((40+2)); exit 3"]\n` },
  });
  await openViews();
  await run(page, "Tasks: Run Task");
  const list = page.locator(".quick-input-list .monaco-list-row");
  await list.filter({ hasText: /^duet/ }).first().click();
  await list.filter({ hasText: "gate tests" }).first().click();
  await list.filter({ hasText: "Continue without scanning" }).first().click();
  await page.locator(".terminal-wrapper.active .xterm-rows").filter({ hasText: "checked-42" }).filter({ hasText: "failed: exit status 3" }).waitFor();
  await picture("task");
});
