// Builds, keys, terminals, tasks and the preview in a real VS Code.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { duetBinary } from "../hub";
import { addKeyAgent, wantedKey } from "../keyagent";
import { hasClaude, startModel } from "../realagent";
import { eventually, openWindow } from "./vscode";

test("what a build finds is in the list of problems until it is built again", async (t) => {
  const { page, project, notification, openViews, command, picture } = await openWindow((end) => t.after(end), {
    files: { ".duet.toml": `[[builds]]\nname = "demo"\ncommand = ["sh", "-c", "cat output 2>/dev/null; test ! -e output"]\n`, output: "main.go:3:6: declared and not used: n\n", "main.go": "package main\n\nvar x, n int\n" },
  });
  await openViews();
  await command("Duet: Build…");
  const failed = notification("demo failed: exit status 1, 1 error");
  await failed.getByRole("button", { name: "Show Problems" }).click();
  const problem = page.locator(".markers-panel .monaco-list-row").filter({ hasText: "declared and not used: n" });
  await problem.waitFor();
  await picture("problems");
  await problem.dblclick();
  await page.locator(".tab").filter({ hasText: "main.go" }).waitFor();
  // (This VS Code has no native modules, and does not show the content of output channels.)
  rmSync(join(project.folder, "output"));
  await command("Duet: Build…");
  await page.locator(".panel .action-item.checked").filter({ has: page.locator('[aria-label^="Output"]') }).waitFor(); // otherwise it would cover the problems
  await page.locator('.panel .action-label[aria-label^="Problems"]').click();
  await problem.waitFor({ state: "detached" });
  await page.locator(".markers-panel").filter({ hasText: "No problems" }).waitFor();
});

test("an agent needs a key: it is asked for, remembered, and not asked for again", async (t) => {
  const { page, panel, row, notification, openViews, offers, newSession, picture } = await openWindow((end) => t.after(end), { agent: "keyed", prepare: addKeyAgent });
  await openViews();
  await newSession("Get the key");
  const asked = notification("keyed needs a key for acme");
  await asked.waitFor();
  await asked.getByRole("link", { name: "Answer…" }).waitFor();
  await row("keyed needs a key for acme").waitFor();
  await picture("key");
  await row("Give and Remember").click();
  await asked.waitFor({ state: "detached" });
  const field = page.locator(".quick-input-widget input[type=password]");
  await field.fill(wantedKey);
  await field.press("Enter");
  await panel.getByText("the right key").first().waitFor();
  await newSession("Get it again");
  await page.locator(".tab.active").filter({ hasText: "Get it again" }).waitFor();
  await panel.getByText("the right key").first().waitFor();
  await offers("Duet: Forget Keys…", "acme");
});

test("a terminal of the hub is typed into, and its end closes it", async (t) => {
  const { page, openViews, command, picture } = await openWindow((end) => t.after(end), { env: { SHELL: "/bin/sh" } });
  await openViews();
  await command("Duet: New Terminal");
  const terminal = page.locator(".terminal-wrapper.active");
  const rows = terminal.locator(".xterm-accessibility-tree, .xterm-rows");
  // VS Code moves the focus while it sets up the terminal. Keys that come before the shell are in the unit test.
  await rows.filter({ hasText: /[#$]/ }).first().waitFor();
  const keys = terminal.locator(".xterm-helper-textarea");
  await keys.pressSequentially("echo sum-$((40+2))\n");
  await rows.filter({ hasText: "sum-42" }).first().waitFor();
  await picture("terminal");
  await keys.pressSequentially("exit\n");
  await terminal.waitFor({ state: "detached" });
});

test("a shell session and its panel show the same question, and the panel sees the answer of the shell", async (t) => {
  const { page, project, row, panel, answer, openViews, command, picture } = await openWindow((end) => t.after(end), {
    folder: "parser",
    size: { width: 1160, height: 790, scale: 1.2 },
    settings: { "terminal.integrated.defaultLocation": "editor", "terminal.integrated.fontSize": 13, "terminal.integrated.lineHeight": 1.2, "duet.notifications": "none" },
    prepare: ({ home, env }) => {
      env["SHELL"] = join(home, "sh");
      // A terminal of the hub gets few variables of the environment; the shell sets the others, as a user's shell does.
      const exported = `LANG=C.UTF-8 PS1='$ ' PATH='${dirname(duetBinary)}':"$PATH" DUET_STATE_HOME='${env["DUET_STATE_HOME"]!}'`;
      writeFileSync(env["SHELL"], `#!/bin/sh\nexport ${exported}\nexec /bin/sh "$@"\n`, { mode: 0o755 });
    },
  });
  await openViews();
  await command("Duet: New Terminal");
  const terminal = page.locator(".terminal-wrapper.active");
  await terminal.waitFor();
  await command("View: New Editor Group to the Left");
  await command("View: Toggle Primary Side Bar Visibility");
  // A VS Code without native modules reports that its own terminals do not work.
  await page.addStyleTag({ content: `.statusbar-item[aria-label*="Pty Host"] { display: none }` });
  await terminal.click();
  await page.keyboard.type(`duet-rpc prompt --agent demo "Greet the README's reader"\n`);
  const screen = terminal.locator(".xterm-rows");
  await screen.filter({ hasText: "[?] Keys:" }).waitFor();
  await page.locator(".editor-group-container.empty").click();
  await command("View: Toggle Primary Side Bar Visibility");
  await row(/^Greet the README's reader/).click();
  await answer("Allow").waitFor();
  await command("View: Toggle Primary Side Bar Visibility");
  await page.locator(".editor-group-container .monaco-progress-container.active").first().waitFor({ state: "hidden" });
  await page.mouse.move(0, 0); // away from buttons, which would look pressed
  await picture("together");
  await terminal.click();
  await page.keyboard.type("y\n");
  await screen.filter({ hasText: "go on with" }).waitFor();
  await panel.getByText("I wrote demo.txt").waitFor();
  assert.match(readFileSync(join(project.folder, "demo.txt"), "utf8"), /Greet the README's reader/);
});

test("a gate is run as a task, with what it prints and its status", async (t) => {
  const { page, openViews, choose, picture } = await openWindow((end) => t.after(end), {
    files: { ".duet.toml": `[[gates]]\nname = "tests"\ncommand = ["sh", "-c", "echo checked-$((40+2)); exit 3"]\n` },
    prepare: ({ folder }) => {
      mkdirSync(join(folder, ".vscode"));
      writeFileSync(join(folder, ".vscode", "tasks.json"), JSON.stringify({ version: "2.0.0", tasks: [{ type: "duet", gate: "tests", label: "check it", problemMatcher: [] }] }));
    },
  });
  await openViews();
  await choose("Tasks: Run Task", "check it");
  await page.locator(".terminal-wrapper.active .xterm-rows").filter({ hasText: "checked-42" }).filter({ hasText: "failed: exit status 3" }).waitFor();
  await page.locator(".terminal-wrapper.active .xterm-rows").filter({ hasText: /exit code:\s+3/ }).waitFor();
  assert.equal(await page.getByText("failed to launch").count(), 0);
  await picture("task");
});

test("the preview shows a page, what it writes and what goes wrong in it, which an agent is told; it is there again in a window loaded anew", async (t) => {
  const { page, row, panel, call, openViews, newSession, reload, command, picture } = await openWindow((end) => t.after(end), {
    prepare: ({ folder }) => {
      mkdirSync(join(folder, "dist"));
      writeFileSync(join(folder, "dist", "index.html"), '<!doctype html><title>Shop</title><h1>The shop</h1><a href="/cart.html">Cart</a><script src="/app.js"></script>');
      writeFileSync(join(folder, "dist", "cart.html"), "<!doctype html><title>Cart</title><h1>The cart</h1>");
      writeFileSync(join(folder, "dist", "app.js"), 'console.warn("the shop is", { open: false });\n\nnothing.there();\n');
    },
  });
  await openViews();
  await newSession("quiet");
  await row("Completed").waitFor();
  await command("Duet: Show Preview");
  await page.locator(".tab").filter({ hasText: "Preview" }).waitFor();
  const shown = panel.frameLocator("iframe");
  await shown.getByRole("heading", { name: "The shop" }).waitFor();
  await panel.getByText('the shop is {"open":false}').waitFor();
  await panel.getByText("nothing is not defined").first().waitFor();
  await panel.getByRole("button", { name: "Errors 1" }).waitFor();
  await picture("preview");
  await shown.getByRole("link", { name: "Cart" }).click();
  await shown.getByRole("heading", { name: "The cart" }).waitFor();

  await reload("duet.preview");
  await shown.getByRole("heading", { name: "The cart" }).waitFor();
  await eventually(async () => assert.equal(await panel.getByRole("textbox", { name: "Address" }).inputValue(), "/cart.html"));
  await panel.getByRole("button", { name: "Back" }).click();
  await shown.getByRole("heading", { name: "The shop" }).waitFor();
  await panel.getByRole("button", { name: /^Open \/app\.js:3:1/ }).waitFor();
  await panel.getByRole("button", { name: "Send to the Agent" }).click();
  const words = page.locator(".quick-input-widget").filter({ hasText: "The page's messages follow your words." });
  await words.locator("input[type=text]").fill("quiet stream:1 mend it");
  await words.locator("input[type=text]").press("Enter");
  await words.waitFor({ state: "hidden" });
  await eventually(async () => assert.match((await call("session.list", {})).sessions[0]!.prompt, /mend it[^]*- error: Uncaught ReferenceError: nothing is not defined \(\/app\.js:3:1\)[^]*at \/app\.js:3:1/));
  await panel.getByRole("button", { name: /^Open \/app\.js:3:1/ }).first().click();
  await page.locator(".tab").filter({ hasText: "app.js" }).waitFor();
});

test("another project's session is listed, and opens it", async (t) => {
  const { page, project, row, openViews, picture } = await openWindow((end) => t.after(end), {
    prepare: ({ folder, env }) => {
      const other = join(folder, "..", "elsewhere");
      mkdirSync(other);
      execFileSync(duetBinary, ["--root", other, "prompt", "--agent", "demo", "--deny", "Tidy the attic"], { env, stdio: "ignore" });
    },
  });
  await openViews();
  await page.locator(".pane-header").filter({ hasText: "Other Projects" }).click();
  await row("elsewhere").click();
  await row("Tidy the attic").waitFor();
  await picture("other-projects");
  await row("Tidy the attic").click();
  const dialog = page.locator(".monaco-dialog-box");
  await dialog.filter({ hasText: join(project.folder, "..", "elsewhere") }).getByRole("button", { name: "Open in This Window" }).click();
  await page.waitForURL(/elsewhere/);
});

test("a real agent sees the text that the editor has not saved", { skip: !hasClaude && process.env.CI !== "true" && "Claude Code is not installed: run .ci/install" }, async (t) => {
  const { env, prepare } = await startModel((end) => t.after(end));
  const { page, panel, openViews, newSession, command } = await openWindow((end) => t.after(end), { agent: "claude", env, prepare, files: { "a.txt": "saved\n" }, settings: { "files.autoSave": "off" } });
  await openViews();
  await command("View: Show Explorer");
  await page.locator(".explorer-folders-view .monaco-list-row").filter({ hasText: "a.txt" }).dblclick();
  await page.locator(".view-line").filter({ hasText: "saved" }).waitFor();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("words of the user ");
  await newSession("editor: buffers");
  await panel.getByText(/The tool said: .*words of the user saved/).first().waitFor();
});

test("an agent uses the tools of the editor", async (t) => {
  const { page, project, openViews, launch, call, command } = await openWindow((end) => t.after(end), {
    files: { "a.css": ":root { --ink: black; }\na { color: var(--ink); }\nb { colour: red; }\n", "other.css": "p { margin: 0; }\n" },
  });
  await openViews();
  await command("View: Show Explorer");
  await page.locator(".explorer-folders-view .monaco-list-row").filter({ hasText: "a.css" }).dblclick();
  await page.locator(".view-line").filter({ hasText: "--ink" }).first().waitFor();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Shift+End");

  /** said resolves with the agent's message about the editor's response. */
  const said = async (words: string): Promise<string> => {
    const session = await launch(`editor:${words}`);
    let text = "";
    await eventually(async () => {
      const { items } = await call("session.items", { session });
      text = items.filter(({ role }) => role === "assistant").map((item) => item.text ?? "").join("");
      assert.match(text, /That is all/);
    });
    return text;
  };
  const file = join(project.folder, "a.css");
  await eventually(async () => assert.match(await said("selection"), /"line":1,"column":1,"end_line":1,"end_column":24,"text":":root \{ --ink: black; \}"/)); // once the window has connected
  await eventually(async () => assert.match(await said("diagnostics"), /"line":3,"column":5,.*"severity":"warning","message":"Unknown property: 'colour'"/)); // once the language server has started
  assert.match(await said("diagnostics:other.css"), /"diagnostics":\[\],"total":0/);
  assert.match(await said("definition:a.css:2:--ink"), /a\.css","line":1,"text":":root/);
  assert.match(await said("references:a.css:1:--ink"), /"line":2,"text":"a \{ color: var\(--ink\); \}"/);
  assert.match(await said("symbols:a.css"), /"name":"b","kind":"class",.*"line":3/);
  assert.match(await said("definition:a.css:1:nowhere"), /"nowhere" is not in line 1, which is: :root/);
  const buffers = await said("buffers");
  assert.ok(buffers.includes(`{"path":"${file}","visible":true,"active":true,"modified":false}`), buffers);
  await page.keyboard.press("End");
  await page.keyboard.type(" /* unsaved */");
  assert.match(await said("buffers"), /"modified":true,"text":":root \{ --ink: black; \}/);

  // VS Code shows a location, and the user continues to type at the cursor.
  assert.match(await said("open:other.css:1"), /"line":1/);
  await page.locator(".tab").filter({ hasText: "other.css" }).first().waitFor();
});
