// Opens the page of duet-rpc web in Chromium, with a fake server.
import assert from "node:assert/strict";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { startChromium } from "./chromium";
import { FakeWeb } from "./fakeweb";

export interface WebPages {
  open(options?: { web?: FakeWeb; prepare?: (web: FakeWeb) => void; theme?: "light" | "dark"; width?: number; height?: number; hash?: string; paired?: boolean }): Promise<{ page: Page; web: FakeWeb; context: BrowserContext }>;
  close(): Promise<void>;
}

/** The user agent of a phone, from which the page makes a name for the device. */
const phone = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36";

export async function startWebPages(): Promise<WebPages> {
  const browser: Browser = await startChromium();
  const webs: FakeWeb[] = [];
  return {
    open: async ({ web: given, prepare, theme = "light", width = 360, height = 740, hash = "", paired = true } = {}) => {
      const web = given ?? new FakeWeb();
      if (!given) {
        webs.push(web);
        await web.listen();
        prepare?.(web);
      }
      const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, userAgent: phone, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(String(error)));
      page.on("console", (message) => message.type() === "error" && !/ERR_|WebSocket connection|Failed to load resource/.test(message.text()) && problems.push(message.text()));
      problemsOfPage.set(page, problems);
      await page.goto(`${web.origin}/#code=${web.code}`);
      if (paired) {
        await page.getByRole("button", { name: "Pair" }).tap();
        await page.getByRole("heading", { name: "Inbox" }).waitFor();
        if (hash !== "") await page.evaluate((to) => (location.hash = to), hash);
      }
      return { page, web, context };
    },
    close: async () => {
      await browser.close();
      for (const web of webs) web.close();
    },
  };
}

const problemsOfPage = new WeakMap<Page, string[]>();

/** Errors of the page, such as violations of its content security policy, but not that the server cannot be reached. */
export function webProblems(page: Page): string[] {
  return problemsOfPage.get(page) ?? [];
}

/** Waits for what no event of the page reports. */
export async function until<T>(what: string, look: () => T | Promise<T>, holds: (value: T) => boolean): Promise<T> {
  for (const end = Date.now() + 20_000; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const value = await look();
    if (holds(value)) return value;
    assert.ok(Date.now() < end, `${what} did not come: ${JSON.stringify(value)}`);
  }
}
