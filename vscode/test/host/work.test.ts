// What a person does with files in a real VS Code: names them to an agent, goes where it points, and reviews what it has changed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { addWriterAgent } from "../writeragent";
import { openWindow } from "./vscode";

test("files are named to an agent, its form is filled in, its links are followed, and its change of several files is reviewed", async (t) => {
  const cart = `// What is in the cart, and what it costs.
export function total(items) {
  let sum = 0;
  for (const item of items) sum += item.price;
  return sum;
}

export function add(items, item) {
  items.push(item);
  return items;
}
`;
  const tests = `import test from "node:test";
import { total } from "../cart.js";

test("items count", (t) => {
  t.assert.equal(total([{ price: 3, count: 2 }]), 6);
});
`;
  const { page, project, row, panel, openViews, newSession, call, command, picture } = await openWindow((end) => t.after(end), {
    files: { "cart.js": cart },
    prepare: (project) => {
      addWriterAgent(project);
      execFileSync("git", ["init", "--quiet"], { cwd: project.folder, env: project.env }); // by which files are listed
      mkdirSync(join(project.folder, "docs"));
      writeFileSync(join(project.folder, "docs", "guide.md"), "# Guide\n");
    },
  });
  const prompt = panel.getByRole("textbox", { name: "Prompt" });
  const input = page.locator(".quick-input-widget input[type=text]");
  await openViews();

  // A question that is a form.
  await newSession("form");
  await panel.getByRole("button", { name: "Fill In…" }).click();
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "green" }).filter({ hasText: "default" }).waitFor();
  await picture("form");
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "blue" }).click();
  await page.locator(".quick-input-widget").filter({ hasText: "How many" }).waitFor();
  await input.fill("12");
  await page.locator(".quick-input-widget").filter({ hasText: "How many has to be from 1 to 9" }).waitFor();
  await picture("form-wrong");
  await input.fill("3");
  await input.press("Enter");
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "Yes" }).click();
  await page.locator(".quick-input-widget").filter({ hasText: "Name on it" }).waitFor();
  await input.fill("Ada");
  await input.press("Enter");
  await panel.getByText(/"count":\s*3/).first().waitFor();
  await row("Done").waitFor();

  // A change of several files, and what its agent points to.
  const changed = cart.replace("item.price;", "item.price * item.count;").replace(/ {2}items.push.*\n.*\n/, "  return [...items, item];\n");
  const query = `The cart forgets how many of each\n${JSON.stringify({ "cart.js": changed, "test/cart.test.js": tests })}`;
  await call("launchSession", { agent: "writer", working_dir: project.folder, query });
  await row("Done").filter({ hasText: "2" }).click(); // shows what is in it
  await row("The cart forgets").click();
  await panel.getByText("I wrote").waitFor();
  await panel.getByRole("link", { name: "the manual" }).click();
  const dialog = page.locator(".monaco-dialog-box").filter({ hasText: "example.com/manual" });
  await dialog.waitFor();
  await picture("link");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await panel.getByRole("link", { name: "test/cart.test.js" }).click();
  await page.locator(".tab.active").filter({ hasText: "cart.test.js" }).waitFor();

  // Lines that are selected in the editor, and a file by its name.
  await page.locator(".editor-instance .view-line").filter({ hasText: "items count" }).click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await command("Duet: Add Selection to Prompt");
  await panel.getByText("I wrote").waitFor();
  await prompt.pressSequentially("@gui");
  await panel.getByRole("option", { name: /guide\.md/ }).waitFor();
  await picture("completion");
  await prompt.press("Enter");
  assert.match(await prompt.inputValue(), /@test\/cart\.test\.js#L4 @docs\/guide\.md /);
  await prompt.press("Enter");
  await panel.getByText(/I was sent .*resource test\("items count".*resource_link .*guide\.md/).waitFor();
  await picture("sent");

  await command("Duet: Show Changes");
  const lens = (words: string | RegExp): ReturnType<typeof page.locator> => page.locator(".modified .codelens-decoration a").filter({ hasText: words });
  await lens("Revert").nth(2).waitFor();
  await lens("Revert").nth(1).click();
  await lens(/Reverted · Take Back/).waitFor();
  assert.equal(readFileSync(join(project.folder, "cart.js"), "utf8"), cart.replace("item.price;", "item.price * item.count;"));
  await page.locator(".modified .view-line").filter({ hasText: "items count" }).click();
  await page.keyboard.press("Control+Alt+d");
  await page.keyboard.press("y");
  await lens(/Accepted · Take Back/).waitFor();
  await picture("changes");
  assert.ok(existsSync(join(project.folder, "test", "cart.test.js")));
});
