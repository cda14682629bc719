// Opens the built page of a session panel in Chromium, with a fake host instead of the extension, under the
// content security policy of the extension.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import type { FakeHost } from "./pages/panelhost";
import { pageHtml } from "../../src/panel/html";
import { startChromium } from "./chromium";
import { themeStyle } from "./themes";
import type { Theme } from "./themes";

declare const window: { host: FakeHost; prepare?: (host: FakeHost) => void };

export interface PanelPages {
  /** Opens a page; prepare runs in the page before the panel's first request. */
  open(options?: { prepare?: (host: FakeHost, given: never) => void; given?: unknown; theme?: Theme; width?: number; height?: number; reducedMotion?: boolean; script?: "/panel.js" | "/attempts.js" }): Promise<Page>;
  close(): Promise<void>;
}

export async function startPages(): Promise<PanelPages> {
  const files: Record<string, [string, string]> = { "/panel.js": ["../../dist/panel.js", "text/javascript"], "/attempts.js": ["../../dist/attempts.js", "text/javascript"], "/panel.css": ["../../dist/panel.css", "text/css"], "/panelhost.js": ["../browser/pages/panelhost.js", "text/javascript"] };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const file = files[url.pathname];
    if (file) {
      readFile(new URL(file[0], import.meta.url)).then((body) => response.setHeader("content-type", file[1]).end(body), () => response.writeHead(404).end());
    } else if (url.pathname === "/theme.css") {
      response.setHeader("content-type", "text/css").end(themeStyle(url.searchParams.get("theme") as Theme));
    } else {
      const theme = url.searchParams.get("theme") ?? "dark";
      const page = pageHtml({ source: "'self'", script: url.searchParams.get("script") ?? "/panel.js", style: "/panel.css", nonce: "n1", title: "Panel", place: JSON.stringify({ window: "window", session: "thread" }) });
      // VS Code adds the colours of its theme before the style sheet of the panel. The host must exist before the panel's script.
      response.setHeader("content-type", "text/html").end(
        page.replace("<link", `<link rel="stylesheet" href="/theme.css?theme=${theme}"><link`).replace("<body>", `<body class="vscode-${theme}">`).replace("<script", '<script nonce="n1" src="/panelhost.js"></script><script'),
      );
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser: Browser = await startChromium();
  return {
    open: async ({ prepare, given, theme = "dark", width = 720, height = 900, reducedMotion = false, script = "/panel.js" } = {}) => {
      const context = await browser.newContext({ viewport: { width, height }, reducedMotion: reducedMotion ? "reduce" : "no-preference", permissions: ["clipboard-read", "clipboard-write"] });
      const page = await context.newPage();
      page.setDefaultTimeout(120_000);
      const problems: string[] = [];
      page.on("pageerror", (error) => problems.push(String(error)));
      page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
      pageProblems.set(page, problems);
      if (prepare) await page.addInitScript(`window.prepare = (host) => (${prepare.toString()})(host, ${JSON.stringify(given ?? null)});`);
      await page.goto(`${origin}/?theme=${theme}&script=${script}`);
      return page;
    },
    close: async () => {
      await browser.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

const pageProblems = new WeakMap<Page, string[]>();

/** Errors of the page, such as violations of its content security policy. */
export function problemsOf(page: Page): string[] {
  return pageProblems.get(page) ?? [];
}

/** The requests of the page to its host for a method. */
export function callsOf(page: Page, method: string): Promise<Array<Record<string, unknown>>> {
  return page.evaluate((of) => window.host.calls.filter((call) => call.method === of).map(({ params }) => params), method);
}

/**
 * Scrolls a session to its beginning, as a user does. For a second after it was opened the panel keeps
 * the view at the end unless a pointer is pressed, so it could undo a script that only sets scrollTop.
 */
export function toTop(page: Page): Promise<void> {
  return page.locator(".transcript").evaluate((element) => {
    element.dispatchEvent(new PointerEvent("pointerdown"));
    element.scrollTop = 0;
  });
}

/** Sends the page an event. */
export function tell(page: Page, type: string, data: Record<string, unknown>): Promise<void> {
  return page.evaluate(([of, given]) => window.host.event(of, given), [type, data] as const);
}
