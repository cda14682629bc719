// Writes pictures of a session panel for humans to out/pictures. The tests check that the content is complete.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { problemsOf, startPages, toTop } from "./panelpage";
import type { PanelPages } from "./panelpage";
import { scene } from "./scene";
import type { Theme } from "./themes";

const folder = fileURLToPath(new URL("../pictures/", import.meta.url));
let pages: PanelPages;

before(async () => {
  mkdirSync(folder, { recursive: true });
  pages = await startPages();
});

after(() => pages?.close());

const views: Array<{ name: string; theme: Theme; width: number; height: number }> = [
  { name: "dark", theme: "dark", width: 720, height: 1500 },
  { name: "light", theme: "light", width: 720, height: 1500 },
  { name: "high-contrast", theme: "high-contrast", width: 720, height: 1500 },
  { name: "narrow", theme: "dark", width: 300, height: 900 },
];

for (const { name, theme, width, height } of views) {
  test(`a panel, ${name}`, async () => {
    const page = await pages.open({ prepare: scene, theme, width, height });
    await page.getByRole("group", { name: /^Question: Edit/ }).waitFor();
    const box = page.getByRole("textbox", { name: "Prompt" });
    await box.fill("And what about `//` comments?");
    await page.locator("img.picture").first().evaluate((image: HTMLImageElement) => image.decode());
    await page.screenshot({ path: `${folder}panel-${name}.png` });
    await page.setViewportSize({ width, height: 800 });
    await toTop(page);
    await page.getByRole("button", { name: "Newest" }).waitFor();
    await page.getByRole("region", { name: "Open questions" }).waitFor();
    await box.fill("/");
    await page.getByRole("option", { name: /review/ }).waitFor();
    await page.screenshot({ path: `${folder}panel-${name}-top.png` });
    // Only elements that scroll by themselves may be wider than the panel.
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    assert.equal(await page.locator(".transcript").evaluate((element) => element.scrollWidth - element.clientWidth), 0);
    assert.deepEqual(problemsOf(page), []);
  });
}
