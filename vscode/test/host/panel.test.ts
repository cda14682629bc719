// The panel of a session in a real VS Code, used like a user does.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { eventually, gone, openWindow } from "./vscode";

test("a person allows, denies and interrupts in the panel, and finds it again with what was not sent", async (t) => {
  const { page, project, row, notification, panel, answer, openViews, newSession, call, reload, picture } = await openWindow((end) => t.after(end));
  const demo = join(project.folder, "demo.txt");
  const prompt = panel.getByRole("textbox", { name: "Prompt" });
  const send = async (text: string): Promise<void> => {
    await prompt.fill(text);
    await prompt.press("Enter");
  };
  await openViews();
  await newSession("Greet the reader");
  await answer("Allow").click();
  await panel.getByText("I wrote demo.txt").waitFor();
  await row("Completed").waitFor();
  const written = readFileSync(demo, "utf8");
  assert.match(written, /Greet the reader/);

  await page.locator(".notification-toast .codicon-notifications-clear").click({ timeout: 5_000 }).catch(() => {}); // the question may have come before the panel
  await send("Second thoughts");
  await answer("Deny").click();
  await row("Completed").waitFor();
  assert.equal(await notification("Write demo.txt").count(), 0, "who sees a question is not told of it");
  assert.equal(readFileSync(demo, "utf8"), written);

  await send("quiet stream:20000@20");
  await panel.getByText("chunk 5", { exact: false }).first().waitFor();
  await picture("panel-streams");
  await panel.getByRole("button", { name: "Interrupt" }).click();
  await row("interrupted").waitFor();

  // After the list is hidden and shown again, a click on its row shows the open panel.
  await prompt.fill("not sent yet");
  await page.keyboard.press("Control+n"); // hides the panel, and ends its page
  await page.locator(".tab.active").filter({ hasText: "Untitled-1" }).waitFor();
  await row(/^Greet the reader/).click();
  await panel.getByText("I wrote demo.txt").waitFor();
  await eventually(async () => assert.equal(await prompt.inputValue(), "not sent yet"));
  assert.equal(await page.locator(".tab").filter({ hasText: "Greet the reader" }).count(), 1);

  await reload("duet.session");
  await row(/^Greet the reader/).waitFor(); // duet-rpc is there
  await panel.getByText("I wrote demo.txt").waitFor();
  await eventually(async () => assert.equal(await prompt.inputValue(), "not sent yet"));
  await send("Once more");
  await answer("Allow").click();
  await eventually(() => assert.match(readFileSync(demo, "utf8"), /Once more/));
  await row("Completed").waitFor();
  await picture("panel-reloaded");

  // A session that another client has deleted says so.
  const { sessions } = await call("session.list", {});
  await call("session.delete", { session: sessions[0]!.session_uuid });
  await panel.getByText("This session was deleted.").waitFor();
});

test("a session and a fork of it begin in an empty panel, whose prompt and folder outlive a reload", async (t) => {
  const { page, project, row, panel, answer, openViews, command, reload, picture } = await openWindow((end) => t.after(end), {
    opens: ["client", "server"],
    prepare: ({ folder }) => {
      for (const name of ["client", "server"]) {
        mkdirSync(join(folder, name));
        writeFileSync(join(folder, name, ".duet.toml"), ""); // each is a project of its own
      }
    },
  });
  const prompt = panel.getByRole("textbox", { name: "Prompt" });
  await openViews();
  await command("Duet: New Session");
  await panel.getByText("Your first prompt starts a session in client").waitFor();
  await panel.locator("textarea:focus").waitFor();
  await page.keyboard.type("Greet the reader");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("and nobody else");
  await panel.getByRole("combobox", { name: "Folder" }).selectOption("server");
  await panel.getByText("Your first prompt starts a session in server").waitFor();
  await panel.getByRole("combobox", { name: "Agent" }).waitFor();
  await reload(join(project.folder, "server"));
  await panel.getByText("Your first prompt starts a session in server").waitFor();
  await eventually(async () => assert.equal(await prompt.inputValue(), "Greet the reader\nand nobody else"));
  await picture("new-session");
  await prompt.press("Enter");
  await answer("Allow").click();
  await panel.getByText("I wrote demo.txt").waitFor();
  assert.ok(existsSync(join(project.folder, "server", "demo.txt")));
  await page.locator(".tab").filter({ hasText: "Greet the reader" }).waitFor();
  assert.equal(await page.locator(".tab").count(), 1, "the panel is that of the session");

  await panel.getByRole("button", { name: "Fork the session" }).click();
  await panel.getByText('Your first prompt starts a fork of "Greet the reader and nobody else"').waitFor();
  await panel.locator("textarea:focus").waitFor();
  await panel.getByRole("combobox", { name: "Mode" }).selectOption("acceptEdits");
  await picture("fork");
  await prompt.fill("Think again"); // this mode asks nothing
  await prompt.press("Enter");
  assert.equal(await panel.getByRole("combobox", { name: "Mode" }).inputValue(), "acceptEdits");
  await panel.getByText("Think again").first().waitFor();
  await panel.getByText("and nobody else").first().waitFor();
  await row("Completed").filter({ hasText: "2" }).waitFor();
});

test("the window's process and then the daemon are killed while a panel streams, and the panel goes on; two windows have the same session", async (t) => {
  const first = await openWindow((end) => t.after(end));
  await first.openViews();
  await first.newSession("Greet the reader");
  const second = await first.another();
  await second.openViews();
  await second.row(/^Greet the reader/).click();
  await second.panel.getByRole("textbox", { name: "Prompt" }).fill("of the second window");
  await first.panel.getByRole("textbox", { name: "Prompt" }).fill("of the first window");
  await second.answer("Deny").click();
  await first.answer("Deny").waitFor({ state: "detached" });
  assert.ok(!existsSync(join(first.project.folder, "demo.txt")));
  assert.equal(await first.panel.getByRole("textbox", { name: "Prompt" }).inputValue(), "of the first window");
  assert.equal(await second.panel.getByRole("textbox", { name: "Prompt" }).inputValue(), "of the second window");
  await second.page.close();

  const prompt = first.panel.getByRole("textbox", { name: "Prompt" });
  await prompt.fill("quiet slow stream:20000@20");
  await prompt.press("Enter");
  await first.panel.getByText("chunk 5", { exact: false }).first().waitFor();
  await eventually(() => assert.equal(first.editorProcesses().length, 1)); // that of the second window has ended
  const [pid] = first.editorProcesses();
  const last = Number(/chunk (\d+)(?!.*chunk)/s.exec(await first.panel.locator("body").innerText())?.[1]);
  process.kill(pid!, "SIGKILL");
  await first.panel.getByText(`chunk ${last + 100}`, { exact: false }).first().waitFor();
  await first.panel.getByText(/duet-rpc is starting/).waitFor({ state: "detached" });
  await first.row("running").waitFor();
  process.kill(await first.daemon(), "SIGKILL");
  await first.row("interrupted").waitFor();
  await prompt.fill("Say it again");
  await prompt.press("Enter");
  await first.answer("Allow").click();
  await first.panel.getByText("I wrote demo.txt").last().waitFor();
});

test("a change is reverted and taken back, hunk by hunk, in VS Code's own diff editor", async (t) => {
  const lines = Array.from({ length: 16 }, (_, i) => `line ${i + 1}`);
  const { page, project, row, openViews, launch, call, choose, picture } = await openWindow((end) => t.after(end), { files: { "demo.txt": `${lines.join("\n")}\n` } });
  const text = (): string[] => readFileSync(join(project.folder, "demo.txt"), "utf8").split("\n");
  const lens = (words: string): ReturnType<typeof page.locator> => page.locator(".modified .codelens-decoration a").filter({ hasText: new RegExp(`^\\s*${words}$`) }); // "Revert" is not "Reverted"
  await openViews();
  await page.locator(".monaco-button", { hasText: "New Session" }).waitFor(); // duet-rpc is there
  await launch("Change two lines");
  await row("Write demo.txt").waitFor();
  const { approvals } = await call("approval.list", {});
  const content = `${lines.join("\n")}\n`.replace("line 3\n", "third\n").replace("line 14\n", "fourteenth\n");
  await call("approval.decide", { approval: approvals[0]!.approval, decision: "approve", updated_input: { ...(approvals[0]!.tool_input as object), content } });
  await row("Completed").waitFor();
  await choose("Duet: Show Changes", "Change two lines");
  await eventually(async () => assert.equal(await lens("Revert").count(), 2));
  await picture("hunks");
  await lens("Revert").first().click();
  await lens("Reverted · Reopen").waitFor();
  assert.deepEqual([text()[2], text()[13]], ["line 3", "fourteenth"]);
  await lens("Accept").click();
  await lens("Accepted · Reopen").waitFor();
  await picture("hunks-decided");
  await lens("Reverted · Reopen").click();
  await lens("Revert").first().waitFor();
  assert.deepEqual([text()[2], text()[13]], ["third", "fourteenth"]);

  // Revert at the cursor by the keyboard; a file that has changed since is left alone.
  writeFileSync(join(project.folder, "demo.txt"), "all is otherwise\n");
  const revertAt = async (line: string): Promise<void> => {
    await page.locator(".modified .view-line").filter({ hasText: line }).first().click();
    await page.keyboard.press("Alt+q");
    await page.keyboard.press("r");
  };
  await revertAt("line 1");
  await page.locator(".notification-toast").filter({ hasText: "there is no change at the cursor" }).waitFor();
  await revertAt("third");
  await page.locator(".notification-toast").filter({ hasText: /changed/ }).waitFor();
  assert.equal(text()[0], "all is otherwise");
});

test("the extension host is killed: its duet-rpc ends, and the session goes on", async (t) => {
  const { answer, openViews, newSession, call, daemon, editorProcesses } = await openWindow((end) => t.after(end));
  await openViews();
  await newSession("Greet the reader");
  await answer("Allow").waitFor();
  const before = await daemon();
  const [pid] = editorProcesses();
  const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  assert.match(readFileSync(`/proc/${parent}/cmdline`, "utf8"), /extensionHost/);
  process.kill(parent, "SIGKILL");
  await gone(pid!);
  const { sessions } = await call("session.list", {});
  assert.deepEqual([await daemon(), sessions.map(({ state }) => state)], [before, ["waiting_input"]]);
});

test("with duet.openIn, sessions open in the side bar, one at a time, and the last one is there after a reload", async (t) => {
  const { page, row, panel, answer, openViews, newSession, command, choose, pick, call, reload, picture } = await openWindow((end) => t.after(end), { settings: { "duet.openIn": "sideBar" } });
  const prompt = panel.getByRole("textbox", { name: "Prompt" });
  const tabs = page.locator(".tab");
  await openViews();
  await page.locator(".monaco-button", { hasText: "New Session" }).waitFor(); // duet-rpc is there
  await panel.getByRole("link", { name: "New Session" }).click();
  await panel.getByText("Your first prompt starts a session").waitFor();
  await prompt.fill("Greet the reader");
  await prompt.press("Enter");
  await answer("Allow").click();
  await panel.getByText("I wrote demo.txt").waitFor();
  await prompt.fill("of the first");

  await newSession("Second thoughts");
  await answer("Deny").click();
  assert.equal(await prompt.inputValue(), "");
  await prompt.fill("of the second");
  await row("Completed").filter({ hasText: "2" }).click();
  await picture("side-bar");
  await row(/^Greet the reader/).click();
  await panel.getByText("I wrote demo.txt").waitFor();
  await eventually(async () => assert.equal(await prompt.inputValue(), "of the first"));
  assert.equal(await tabs.count(), 0);
  await command("Duet: Rename…");
  await page.locator(".quick-input-title", { hasText: "Rename Greet the reader" }).waitFor();
  await page.keyboard.press("Escape");

  await panel.getByRole("button", { name: "Fork the session" }).click();
  await panel.getByText('Your first prompt starts a fork of "Greet the reader"').waitFor();
  await row(/^Second thoughts/).click();
  await eventually(async () => assert.equal(await prompt.inputValue(), "of the second"));
  await choose("View: Move View", "Session");
  await pick("New Secondary Side Bar Entry");
  await page.locator(".part.auxiliarybar").waitFor();
  await panel.getByText("Second thoughts").first().waitFor();
  await eventually(async () => assert.equal(await prompt.inputValue(), "of the second"));
  await picture("side-bar-secondary");
  const { sessions } = await call("session.list", {});
  const second = sessions.find(({ prompt }) => prompt === "Second thoughts")!;
  await reload(second.session_uuid, "duet.panel");
  await panel.getByText("Second thoughts").first().waitFor();
  await eventually(async () => assert.equal(await prompt.inputValue(), "of the second"));

  await command("Duet: Open Session to the Side");
  await tabs.filter({ hasText: "Second thoughts" }).waitFor();
  const texts = (): Promise<string[]> => Promise.all(page.frames().map((frame) => frame.locator("body").innerText({ timeout: 1_000 }).catch(() => "")));
  await eventually(async () => assert.ok((await texts()).some((text) => text.includes("No session is open here."))));
  await picture("side-bar-empty");
  // The page of the tab keeps its place for the next window once it is loaded.
  await eventually(async () => assert.ok((await texts()).some((text) => text.includes("Nothing was changed."))));
  await reload("duet.session");
  await eventually(async () => assert.ok((await texts()).some((text) => text.includes("No session is open here."))));
  assert.equal(await tabs.filter({ hasText: "Second thoughts" }).count(), 1);
});
