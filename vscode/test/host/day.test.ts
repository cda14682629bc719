// A user's day in a real VS Code, from the first prompt to the landed change.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pause } from "../../src/webview/answerkeys";
import { addRepository, git } from "../hub";
import { eventually, openWindow } from "./vscode";
import type { Window } from "./vscode";

/** A step of testdata/day.json. The shell and Emacs play it with other keys (TestADay in Go), and show the same words. */
interface Step {
  step: string;
  /** What happens besides the keys. */
  do?: "kill the daemon";
  /** All three faces show these words then. */
  says: string[];
  /** "click:NAME" presses a button (with "click:=NAME", only one with the whole name), a tab or the prompt box, "pick:LABEL" a row of a list, "select:LABEL" a value of a select box. The others are keys, a question's letters, and texts. */
  vscode: string[];
  /** VS Code shows these words, too. */
  vscode_says?: string[];
}

const steps = JSON.parse(readFileSync("../testdata/day.json", "utf8")) as Step[];

test("a day's steps show the same words as in the shell and in Emacs", async (t) => {
  const window = await openWindow((end) => t.after(end), {
    prepare: ({ folder, home }) => {
      writeFileSync(join(folder, "README"), "hello\n");
      addRepository(folder);
      mkdirSync(join(home, ".config", "duet"), { recursive: true });
      writeFileSync(join(home, ".config", "duet", "config.toml"), 'worktree = "session"\n');
    },
  });
  const tops = new Set<number | undefined>();
  for (const { step, do: action, says, vscode, vscode_says = [] } of steps) {
    if (action === "kill the daemon") process.kill(await window.daemon(), "SIGKILL");
    for (const press of vscode) await play(window, press);
    await eventually(async () => {
      const text = await shown(window);
      const missing = [...says, ...vscode_says].filter((words) => !text.includes(words));
      assert.deepEqual(missing, [], `${step}: words are missing in ${text}`);
    });
    if (await hasPanel(window)) tops.add((await window.panel.locator(".head").boundingBox())?.y);
  }
  assert.equal(tops.size, 1, `the panel's head stays in its place, not at ${[...tops].join(", ")}`);
  assert.equal(git(window.project.folder, "show", "main:demo.txt"), "Turn 2: edit again\nTurn 1: fail early in May\n");
});

/** play presses keys or buttons when the element that takes them is there, as a user does. */
async function play(window: Window, press: string): Promise<void> {
  const { page, panel, pick } = window;
  const [, how, name] = /^(click|pick|select):(.*)$/.exec(press) ?? [];
  if (name !== undefined) return how === "pick" ? pick(name) : how === "click" ? click(window, name) : select(window, name);
  const isKey = press.length === 1 || /^(Enter|Escape|Tab|ArrowUp|\w+\+.*)$/.test(press);
  if (!isKey) {
    await eventually(async () => {
      const fields = [page.locator(".quick-input-widget input:focus"), ...(await hasPanel(window)) ? [panel.locator(":is(textarea, input):focus")] : []];
      assert.ok((await Promise.all(fields.map((field) => field.count()))).some((count) => count > 0), `no field takes ${press}`);
    });
    return page.keyboard.type(press);
  }
  if (press === "Tab") { // the key completes the word after @
    const word = /@(\S*)$/.exec(await panel.locator("textarea:focus").inputValue())?.[1];
    await panel.getByRole("option", { selected: true }).filter({ hasText: word ?? "" }).waitFor();
  }
  if (press.length === 1) await panel.locator(".question :focus").waitFor();
  // A question takes no key at once.
  if (await hasPanel(window) && await panel.locator(".question :focus").count() > 0) await page.waitForTimeout(pause + 100);
  for (const key of press.split(" ")) await page.keyboard.press(key);
}

/** click presses the first button with a name, that of the panel if it has one. */
async function click(window: Window, text: string): Promise<void> {
  const whole = text.startsWith("=");
  const name = whole ? text.slice(1) : text;
  await eventually(async () => {
    for (const place of [...(await hasPanel(window)) ? [window.panel] : [], window.page]) {
      for (const exact of whole ? [true] : [true, false]) {
        const of = { name, exact };
        const button = place.getByRole("button", of).or(place.getByRole("tab", of)).or(place.getByRole("textbox", { name, exact: true })).filter({ visible: true }).first();
        if (await button.count() > 0) return button.click();
      }
    }
    throw new Error(`no button is named ${name}`);
  });
}

/** select chooses the value of the select box that has it. */
async function select({ panel }: Window, label: string): Promise<void> {
  await panel.locator("select").filter({ has: panel.locator("option", { hasText: label }) }).selectOption({ label });
}

async function hasPanel({ page }: Window): Promise<boolean> {
  return await page.locator("iframe.webview").filter({ visible: true }).count() > 0;
}

/** textOf returns the text of a page, with what its fields hold, and of its select boxes the chosen values alone. It runs in the page. */
function textOf(body: HTMLElement): string {
  let text = body.innerText;
  for (const box of body.querySelectorAll("select")) text = text.replace(box.innerText, () => box.selectedOptions[0]?.text ?? "");
  return [text, ...[...body.querySelectorAll("textarea")].map(({ value }) => value)].join(" ");
}

/** shown returns the text that the user sees in the window and its panel. */
async function shown(window: Window): Promise<string> {
  const texts = [await window.page.locator("body").innerText()];
  if (await hasPanel(window)) texts.push(await window.panel.locator("body").evaluate(textOf, undefined, { timeout: 5_000 }));
  return texts.join(" ").replace(/\s+/g, " ");
}
