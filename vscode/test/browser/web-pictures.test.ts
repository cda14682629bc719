// Pictures of the page of duet-rpc web for humans, in out/pictures. axe finds nothing on any screen, and nothing is wider than a phone.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { startWebPages, webProblems } from "./webpage";
import type { WebPages } from "./webpage";
import { webScene } from "./webscene";

declare const window: { axe: { run(): Promise<{ violations: Array<{ id: string; help: string; nodes: Array<{ html: string; failureSummary?: string }> }> }> } };

const folder = fileURLToPath(new URL("../pictures/", import.meta.url));
const axe = readFileSync(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
let pages: WebPages;

before(async () => {
  mkdirSync(folder, { recursive: true });
  pages = await startWebPages();
});

after(() => pages?.close());

/** The screens, and what is there once each is shown. */
const screens: Array<{ name: string; hash: string; shown: (page: Page) => Promise<void>; paired?: boolean }> = [
  { name: "pairing", hash: "", shown: (page) => page.getByRole("button", { name: "Pair" }).waitFor(), paired: false },
  { name: "inbox", hash: "#/inbox", shown: (page) => page.getByText("Dark mode for the shop").waitFor() },
  { name: "question-edit", hash: "#/question/p1/q1", shown: (page) => page.getByRole("button", { name: "Always in this project" }).waitFor() },
  { name: "question-command", hash: "#/question/p2/q2", shown: (page) => page.getByText("rsync").first().waitFor() },
  { name: "question-reason", hash: "#/question/p1/q1", shown: async (page) => {
    await page.getByRole("button", { name: "Deny and say why" }).tap();
    await page.getByRole("textbox").fill("Erst die Tests für äöü");
  } },
  { name: "question-options", hash: "#/question/p1/q3", shown: (page) => page.getByRole("button", { name: "Mittel" }).waitFor() },
  { name: "sessions", hash: "#/sessions", shown: (page) => page.getByText("Update dependencies").waitFor() },
  { name: "session", hash: "#/session/p1/session-12", shown: (page) => page.getByText("Comments can go there").or(page.getByText("so comments belong there")).first().waitFor() },
  { name: "changes", hash: "#/changes/p1/session-12", shown: (page) => page.getByRole("button", { name: /Accept hunk 1 of .*lexer/ }).waitFor() },
  { name: "new", hash: "#/new", shown: (page) => page.getByRole("combobox", { name: "Model" }).waitFor() },
  { name: "settings", hash: "#/settings", shown: (page) => page.getByText("Name of this device").waitFor() },
];

for (const theme of ["light", "dark"] as const) {
  for (const { name, hash, shown, paired = true } of screens) {
    test(`the screen ${name}, ${theme}`, async () => {
      const { page, context } = await pages.open({ prepare: webScene, theme, hash, paired });
      await shown(page);
      await page.screenshot({ path: `${folder}web-${name}-${theme}.png` });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
      const wide = await page.evaluate(() => [...document.querySelectorAll(".page, .transcript, .question-about")].filter((element) => element.scrollWidth > element.clientWidth).map(({ className }) => className));
      assert.deepEqual(wide, []);
      // What a thumb presses is 44 px high, but for links in running text.
      const small = await page.evaluate(() => [...document.querySelectorAll("button, a[href], select, input, summary, textarea")].filter((element) => {
        const { height, width } = element.getBoundingClientRect();
        return width > 0 && height > 0 && height < 44 && !element.closest(".choice, .diff-lines");
      }).map((element) => `${element.tagName} ${element.className} ${element.textContent}`));
      assert.deepEqual(small, []);
      // The page's policy keeps scripts out, so the test adds the one of axe as its own.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      assert.deepEqual(violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary ?? ""}`).join("; ").slice(0, 600)}`), []);
      assert.deepEqual(webProblems(page), []);
      await context.close();
    });
  }
}
