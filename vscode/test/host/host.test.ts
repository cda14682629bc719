// The extension in a real VS Code, used like a user does.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import test from "node:test";
import type { Locator } from "playwright-core";
import { stateDirectory } from "../../src/hub/root";
import { duetBinary } from "../hub";
import { eventually, gone, openWindow } from "./vscode";

test("what is installed is small", () => {
  assert.ok(statSync("out/duet.vsix").size < 1_000_000);
});

test("the extension of a platform brings its program", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "duet-vsix-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of ["dist", "media", "package.json", "README.md", "LICENSE", ".vscodeignore"]) cpSync(name, join(folder, name), { recursive: true });
  mkdirSync(join(folder, "server"));
  copyFileSync(duetBinary, join(folder, "server", "duet-rpc"));
  const vsix = join(folder, "duet.vsix");
  execFileSync(resolve("node_modules/.bin/vsce"), ["package", "--no-dependencies", "--target", `${process.platform}-${process.arch}`, "--out", vsix], { cwd: folder });
  const { panel, openViews, newSession } = await openWindow((end) => t.after(end), { vsix, env: { DUET_RPC_BIN: undefined } });
  await openViews();
  await newSession("quiet hello");
  await panel.getByText("Hello from the demo agent").waitFor();
});

test("a person begins a session and allows it in the inbox; questions of a window that is not focused wait in notifications", async (t) => {
  const { page, project, row, notification, panel, press, openViews, newSession, launch, call, setFocused, picture } = await openWindow((end) => t.after(end), { folder: "parser" });
  await openViews();
  await row("nothing").waitFor({ state: "detached" });
  await page.locator(".monaco-button", { hasText: "New Session" }).waitFor();
  await page.getByText("Only the demo agent is ready").waitFor();
  await picture("empty");

  await newSession("Greet the reader");
  await row("Write demo.txt").waitFor();
  await row("Waiting for you").waitFor();
  await page.locator('.activitybar a[aria-label*="1 question waits for you"]').waitFor();
  await page.locator(".statusbar-item").filter({ hasText: "Duet: 1" }).waitFor();
  await panel.getByText("Hello from the demo agent").waitFor();
  await picture("question");

  await press(row(/^Allow$/), row("Completed"));
  await panel.getByText("I wrote demo.txt").waitFor();
  const written = readFileSync(join(project.folder, "demo.txt"), "utf8");
  assert.match(written, /Greet the reader/);
  await picture("done");

  // The panel would show the question itself. A user in another window sees no panel, and gets a notification.
  await page.locator(".tab").filter({ hasText: "Greet the reader" }).click({ button: "middle" });
  await page.locator(".tab").filter({ hasText: "Greet the reader" }).waitFor({ state: "detached" });
  await setFocused(false);
  await launch("Second thoughts");
  const { sessions } = await call("session.list", {});
  await call("session.prompt", { session: sessions.find(({ prompt }) => prompt === "Greet the reader")!.session_uuid, prompt: "Greet again" });
  await page.locator('.activitybar a[aria-label*="2 questions wait for you"]').waitFor();
  await setFocused(true);
  await notification(/Write demo.txt.*Greet the reader/).waitFor();
  await row(/^Waiting for you/).waitFor();
  await page.mouse.move(800, 400); // away from rows, which would show a hover
  await picture("notification");
  const answered = (title: string, label: string): Promise<void> => notification(title).getByRole("link", { name: label, exact: true }).click();
  await answered("Second thoughts", "Deny");
  await notification(/Write demo.txt.*Second thoughts/).waitFor({ state: "detached" });
  await notification("Second thoughts is completed").waitFor();
  assert.equal(readFileSync(join(project.folder, "demo.txt"), "utf8"), written);
  await answered("Greet the reader", "Show");
  await panel.getByRole("button", { name: "Allow", exact: true }).and(panel.locator(":focus")).waitFor();
  await notification(/Write demo.txt.*Greet the reader/).waitFor({ state: "detached" }); // the panel shows the question
  await panel.getByRole("button", { name: "Show the change of demo.txt in the diff editor" }).last().click();
  await page.locator(".tab.active").filter({ hasText: "demo.txt (what is proposed)" }).waitFor();
  await page.locator(".modified-in-monaco-diff-editor").filter({ hasText: "Greet again" }).waitFor();
  await picture("proposed");
  await page.locator(".tab").filter({ hasText: "Greet the reader" }).click();
  await panel.getByRole("button", { name: "Allow", exact: true }).click();
  await panel.getByText("I wrote demo.txt").nth(1).waitFor();
  assert.match(readFileSync(join(project.folder, "demo.txt"), "utf8"), /Greet again/);
  await page.locator('.activitybar a[aria-label*="question"]').waitFor({ state: "detached" });
});

test("the daemon is killed while a question waits, and the window goes on", async (t) => {
  const { project, row, press, openViews, newSession, daemon } = await openWindow((end) => t.after(end));
  await openViews();
  await newSession("Greet the reader");
  await row("Write demo.txt").waitFor();
  const before = await daemon();
  process.kill(before, "SIGKILL");
  await row("its agent has ended").waitFor();
  await press(row(/^Allow$/), row("Completed"));
  assert.ok(existsSync(join(project.folder, "demo.txt")));
  assert.notEqual(await daemon(), before);
});

test("a session goes on when its window is closed, and the next window has it", async (t) => {
  const { page, project, row, openViews, newSession, call, daemon, editorProcesses, another } = await openWindow((end) => t.after(end));
  await openViews();
  await newSession("Greet the reader");
  await row("Write demo.txt").waitFor();
  const before = await daemon();
  const [pid, ...others] = editorProcesses();
  assert.deepEqual(others, []);
  await page.close({ runBeforeUnload: true });
  await gone(pid!);
  const { sessions } = await call("session.list", {});
  assert.deepEqual([await daemon(), sessions.map(({ state }) => state)], [before, ["waiting_input"]]);

  const next = await another();
  await next.openViews();
  await next.row("Write demo.txt").waitFor();
  await next.press(next.row(/^Allow$/), next.row("Completed"));
  assert.ok(existsSync(join(project.folder, "demo.txt")));
  assert.deepEqual((await call("session.list", {})).sessions.map(({ session }) => session), [sessions[0]!.session]);
});

test("a session is interrupted at its row; a question and its agent outlive a reload of the window", async (t) => {
  const { row, panel, press, openViews, newSession, call, daemon, editorProcesses, reload, picture } = await openWindow((end) => t.after(end), { theme: "Default Light Modern" });
  await openViews();
  await newSession("Take your time");
  await row("Write demo.txt").waitFor();
  const session = row(/^Take your time/);
  await session.hover();
  await press(session.getByRole("button", { name: "Interrupt" }), row("interrupted"));
  await row("Write demo.txt").waitFor({ state: "detached" });

  await newSession("Greet the reader");
  await row("Write demo.txt").waitFor();
  await panel.getByText("Hello from the demo agent").waitFor();
  await picture("light");
  const [before, [pid]] = [await daemon(), editorProcesses()];
  await reload("duet.session");
  await gone(pid!);
  await row("Write demo.txt").waitFor();
  assert.equal(await daemon(), before);
  assert.deepEqual((await call("approval.list", {})).approvals.map(({ stale }) => stale ?? false), [false]);
  await press(row(/^Allow$/), row("Completed"));
});

test("two windows have the same question, and the first answer counts", async (t) => {
  const first = await openWindow((end) => t.after(end));
  await first.openViews();
  const second = await first.another();
  await second.openViews();
  await first.newSession("Greet the reader");
  await first.row("Write demo.txt").waitFor();
  await second.row("Write demo.txt").waitFor();
  await second.press(second.row(/^Deny$/), second.row("Completed"));
  await first.row("Completed").waitFor();
  await first.row("Write demo.txt").waitFor({ state: "detached" });
  assert.ok(!existsSync(join(first.project.folder, "demo.txt")));
});

test("in an untrusted workspace nothing runs that came with it", async (t) => {
  const config = `[agents.theirs]\ndriver = "command"\ncommand = ["touch", "ran"]\n`;
  const { project, row, notification, openViews, newSession } = await openWindow((end) => t.after(end), { untrusted: true, agent: "theirs", files: { ".duet.toml": config } });
  await openViews();
  await newSession("Run it");
  await notification(/trust/).waitFor();
  await row("Run it").waitFor({ state: "detached" });
  assert.ok(!existsSync(join(project.folder, "ran")));
});

test("without a program it says so, and how to go on", async (t) => {
  const { page, notification, openViews, picture } = await openWindow((end) => t.after(end), { env: { DUET_RPC_BIN: "/nonexistent/duet-rpc" }, theme: "Default High Contrast" });
  await openViews();
  await notification("/nonexistent/duet-rpc, which the environment variable DUET_RPC_BIN names, is not there").waitFor();
  await page.getByRole("button", { name: "Try Again", exact: true }).first().waitFor();
  await page.locator(".pane-body").filter({ hasText: "duet-rpc does not run" }).first().waitFor();
  await picture("no-program");
});

/** within makes a project with two folders. */
function within({ folder }: { folder: string }): void {
  for (const name of ["client", "server"]) mkdirSync(join(folder, name));
  writeFileSync(join(folder, ".duet.toml"), "");
}

test("two folders of one project list each session and each question once", async (t) => {
  const { page, row, openViews, launch, press } = await openWindow((end) => t.after(end), { opens: ["client", "server"], prepare: within });
  await openViews();
  await page.locator(".monaco-button", { hasText: "New Session" }).waitFor();
  await launch("Greet the reader");
  await row("Write demo.txt").waitFor();
  assert.equal(await row("Write demo.txt").count(), 1);
  await press(row(/^Allow$/), row("Completed"));
  assert.equal(await page.getByText("already registered").count(), 0);
  await page.locator(".statusbar-item").filter({ hasText: "Duet" }).waitFor();
});

test("a session starts in the folder of the active editor", async (t) => {
  const { page, project, command, press, openViews, newSession, call } = await openWindow((end) => t.after(end), {
    opens: ["client", "server"],
    prepare: (project) => {
      within(project);
      writeFileSync(join(project.folder, "server", "handler.txt"), "A handler.\n");
    },
  });
  await openViews();
  await command("Explorer: Focus on Folders View");
  const file = (name: string): Locator => page.locator(".explorer-folders-view .monaco-list-row").filter({ hasText: name });
  await file("server").waitFor();
  await press(file("server"), file("handler.txt"));
  await file("handler.txt").dblclick();
  // Its tab appears before its editor is active.
  await page.locator(".editor-instance .view-line").filter({ hasText: "A handler." }).click();
  await newSession("Greet the reader");
  await eventually(async () => {
    const { sessions } = await call("session.list", {});
    assert.deepEqual(sessions.map(({ working_dir }) => working_dir), [realpathSync(join(project.folder, "server"))]);
  });
});

test("a folder within a project opens as the project does; another folder starts nothing", async (t) => {
  const { page } = await openWindow((end) => t.after(end), { opens: ["server"], prepare: within });
  await page.locator(".statusbar-item").filter({ hasText: "Duet" }).waitFor();
  const other = await openWindow((end) => t.after(end));
  await other.page.locator(".statusbar-item").filter({ hasText: "Layout" }).waitFor();
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  assert.equal(await other.page.locator(".statusbar-item").filter({ hasText: "Duet" }).count(), 0);
  assert.ok(!existsSync(join(stateDirectory(realpathSync(other.project.folder), other.project.env), "project.json")));
  await other.openViews();
  await other.page.locator(".statusbar-item").filter({ hasText: "Duet" }).waitFor();
});
