// A VS Code of its own for a test: the server of code-server, with the extension
// installed, and a window of it in Chromium.
import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import type { Browser, FrameLocator, Locator, Page } from "playwright-core";
import { startChromium } from "../browser/chromium.js";
import { duetBinary, newProject, removeProject } from "../hub";
import type { TestProject } from "../hub";
import { carryOut, pick } from "./quickinput";
import type { Method, Params, Result } from "../../src/protocol";

/** The version that .ci/install gets: VS Code 1.100.3, the newest one for Node 20. */
const version = "4.100.3";
const serverHome = process.env["DUET_TEST_CODE_SERVER"] ?? join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "duet-rpc", `code-server-${version}`);
const pictures = resolve("out/pictures");

/** Maximum time of a window for a step on a slow machine, in milliseconds. */
const patience = 300_000;

const testFile = basename(process.argv[1] ?? "", ".test.mjs");
let windows = 0;

export interface Window {
  project: TestProject;
  page: Page;
  /** The row of a list whose text matches. */
  row: (text: string | RegExp) => Locator;
  notification: (text: string | RegExp) => Locator;
  /**
   * Presses an element of a row until it has its effect. VS Code loses a click on a row that it redraws at
   * that moment ("Actual command not found"), and a user presses again, too.
   */
  press: (button: Locator, effect: Locator) => Promise<void>;
  /** Opens the views of the extension. */
  openViews: () => Promise<void>;
  newSession: (prompt: string) => Promise<void>;
  /** Begins a session outside of VS Code, as in a shell. Returns its id. */
  launch: (prompt: string) => Promise<string>;
  /** Calls a method of duet-rpc outside of VS Code. */
  call: <M extends Method>(method: M, params: Params<M>) => Promise<Result<M>>;
  /** Carries out a command of the palette. */
  command: (title: string) => Promise<void>;
  /** Carries out a command of the palette, and picks a row of the list that it shows. */
  choose: (title: string, label: string) => Promise<void>;
  /** Carries out a command of the palette, and waits for a row of the list that it shows. */
  offers: (title: string, label: string) => Promise<void>;
  /** Picks a row of a list that stays open until it has an answer. */
  pick: (label: string) => Promise<void>;
  /** The page of the visible panel. */
  panel: FrameLocator;
  /** A button of a question in that panel. The bar above the prompt may repeat the question for a moment. */
  answer: (label: string) => Locator;
  /** Takes a picture of the window. It names the project's folder as a folder of Alice's home. */
  picture: (name: string) => Promise<void>;
  /** Returns the id of the project's daemon. */
  daemon: () => Promise<number>;
  /** Returns the ids of the processes that windows have started for the project's folder. */
  editorProcesses: () => number[];
  /** Takes the focus from the window, or gives it back. */
  setFocused: (focused: boolean) => Promise<void>;
  /** Loads the window again, once VS Code has stored the layout whose active editor has a text, such as its type. With a view: once it has stored a state of this view with the text. */
  reload: (kept: string, view?: string) => Promise<void>;
  /** Opens another window of the same folder. */
  another: () => Promise<Window>;
}

export interface Options {
  /** Further variables of the environment of the extension. */
  env?: NodeJS.ProcessEnv;
  theme?: string;
  agent?: string;
  /** The extension to install; the one without a program if it is not set. */
  vsix?: string;
  /** The name of the project's folder; "project" if it is not set. */
  folder?: string;
  /** Further settings of VS Code. */
  settings?: Record<string, unknown>;
  /** The size of the window in CSS pixels. A picture has scale times as many pixels each way. */
  size?: { width: number; height: number; scale: number };
  /** Files of the project, by their names. */
  files?: Record<string, string>;
  /** Adds files to the project, or to the user's home, before the start. */
  prepare?: (project: TestProject) => void;
  /** The user does not trust the workspace. */
  untrusted?: boolean;
  /** The folders that the window opens, by their names in the project. The project's folder if it is not set. */
  opens?: string[];
}

/** openWindow starts the processes of a window. It passes the function that ends them to after. */
export async function openWindow(after: (end: () => Promise<void>) => void, options: Options = {}): Promise<Window> {
  const program = join(serverHome, "lib", "vscode", "out", "server-main.js");
  if (!existsSync(program)) throw new Error(`${program} is not there: run .ci/install`);
  const project = newProject(options.folder);
  const data = join(project.home, "vscode");
  const settings = join(data, "data", "Machine");
  mkdirSync(settings, { recursive: true });
  // The git extension asks about a worktree's repository at any moment, and the question takes the focus from menus.
  writeFileSync(join(settings, "settings.json"), JSON.stringify({ "workbench.colorTheme": process.env["DUET_TEST_THEME"] ?? options.theme ?? "Default Dark Modern", "workbench.startupEditor": "none", "duet.agent": options.agent ?? "demo", "terminal.integrated.gpuAcceleration": "off", "remote.autoForwardPorts": false, "git.openRepositoryInParentFolders": "never", ...options.settings }));
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(project.folder, name), text);
  options.prepare?.(project);
  const shared = ["--server-data-dir", data, "--accept-server-license-terms", "--telemetry-level", "off"];
  await promisify(execFile)("node", [program, ...shared, "--install-extension", options.vsix ?? resolve("out/duet.vsix")], { env: project.env });
  const trust = options.untrusted ? [] : ["--disable-workspace-trust"];
  const server = spawn("node", [program, ...shared, ...trust, "--host", "127.0.0.1", "--port", "0", "--without-connection-token"], {
    env: { ...project.env, ...options.env }, detached: true, stdio: ["ignore", "pipe", "pipe"],
  });
  let browser: Browser | undefined = undefined;
  after(async () => {
    // The last picture helps to understand a failure.
    const page = browser?.contexts().at(0)?.pages().at(0);
    await page?.locator('.statusbar-item a[aria-label*="otification"]').click({ timeout: 2_000 }).catch(() => {}); // its notifications
    await page?.screenshot({ path: join(pictures, `last-${testFile}-${++windows}.png`), timeout: 5_000 }).catch(() => {});
    await browser?.close();
    await endGroup(server);
    await removeProject(project);
  });
  const port = await portOf(server);
  browser = await startChromium();
  const { width, height, scale } = options.size ?? { width: 1280, height: 800, scale: 1 };
  const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor: scale });
  const address = `http://127.0.0.1:${port}/?${opened(project, options.opens)}&payload=${encodeURIComponent(JSON.stringify([["skipWelcome", "true"]]))}`;
  const open = async (): Promise<Window> => {
    const page = await context.newPage();
    page.setDefaultTimeout(patience);
    await page.goto(address);
    await page.locator(".monaco-workbench").waitFor();
    if (options.opens && options.opens.length > 1) await hasFolders(page, options.opens);
    if (options.untrusted) await page.getByRole("button", { name: "No, I don't trust the authors" }).click();
    return { ...handles(page, project), another: open };
  };
  return open();
}

/**
 * hasFolders waits until the explorer shows the folders of a workspace. VS Code in a browser sometimes reads the file of
 * a workspace as one without folders, and keeps that until the page is loaded again.
 */
async function hasFolders(page: Page, names: string[]): Promise<void> {
  const rows = names.map((name) => page.locator(".explorer-folders-view .monaco-list-row").filter({ hasText: name }).first());
  const none = page.getByText("You have not yet added a folder to the workspace");
  for (;;) {
    await rows[0]!.or(none).first().waitFor();
    if (!(await none.isVisible())) break;
    await page.reload();
    await page.locator(".monaco-workbench").waitFor();
  }
  for (const row of rows) await row.waitFor();
}

/** opened is the part of an address that names the folder or workspace of a window. */
function opened({ folder, home }: TestProject, names?: string[]): string {
  if (names === undefined || names.length === 1) return `folder=${encodeURIComponent(join(folder, names?.[0] ?? ""))}`;
  const file = join(home, "several.code-workspace");
  writeFileSync(file, JSON.stringify({ folders: names.map((name) => ({ path: join(folder, name) })) }));
  return `workspace=${encodeURIComponent(file)}`;
}

function handles(page: Page, project: TestProject): Omit<Window, "another"> {
  // A webview is a frame in a frame; those of panels that are behind others are not visible.
  const panel = page.locator("iframe.webview").filter({ visible: true }).last().contentFrame().frameLocator("#active-frame");
  const command = (title: string): Promise<void> => carryOut(page, title, patience);
  return {
    page,
    project,
    row: (text) => page.locator(".pane-body .monaco-list-row").filter({ hasText: text }).first(),
    notification: (text) => page.locator(".notification-toast").filter({ hasText: text }).first(),
    press: async (button, effect) => {
      await button.click();
      for (const until = Date.now() + patience; ; ) {
        try {
          await effect.waitFor({ timeout: 20_000 });
          return;
        } catch (error) {
          if (Date.now() > until) throw error;
          await button.click({ timeout: 2_000 }).catch(() => {}); // it may be gone, since the first click may have worked
        }
      }
    },
    openViews: async () => {
      await page.locator('.activitybar .action-item a[aria-label^="Duet"]').click();
      await page.locator(".pane-header").filter({ hasText: "Sessions" }).waitFor();
    },
    panel,
    answer: (label) => panel.getByRole("group", { name: /^Question: / }).getByRole("button", { name: label, exact: true }),
    command,
    choose: (title, label) => carryOut(page, title, patience, { label, press: true }),
    offers: (title, label) => carryOut(page, title, patience, { label, press: false }),
    pick: (label) => pick(page, label, patience),
    newSession: async (prompt) => {
      await command("Duet: New Session");
      await panel.getByText("Your first prompt starts a session").waitFor();
      const box = panel.getByRole("textbox", { name: "Prompt" });
      await box.fill(prompt);
      await box.press("Enter");
    },
    picture: async (name) => {
      mkdirSync(pictures, { recursive: true });
      // VS Code may close a frame at any time.
      const renamed = await Promise.all(page.frames().map((frame) => frame.evaluateHandle(renameText, [dirname(project.folder), "/home/alice"] as const).catch(() => undefined)));
      await page.screenshot({ path: join(pictures, `${name}.png`), animations: "disabled" });
      for (const observer of renamed) await observer?.evaluate((observer) => observer.disconnect()).catch(() => {});
    },
    daemon: async () => (await call(project, "daemon.status", {})).pid,
    editorProcesses: () => editorProcesses(project),
    setFocused: (focused) => setFocused(page, focused),
    reload: async (kept, view) => {
      // A window in a browser stores its layout when it loses the focus, or a minute later.
      await setFocused(page, false);
      // (page.waitForFunction takes the promise of an answer for the answer.)
      for (const until = Date.now() + patience; !(await page.evaluate(isKept, [kept, view] as const)); await page.waitForTimeout(200)) {
        if (Date.now() > until) throw new Error(`no ${view ? `state of ${view}` : "layout is stored whose active editor"} has ${kept}`);
      }
      await page.reload();
      await page.locator(".monaco-workbench").waitFor();
    },
    call: (method, params) => call(project, method, params),
    launch: async (prompt) => (await call(project, "session.start", { prompt, agent: "demo", working_dir: project.folder })).turn_uuid,
  };
}

/** renameText replaces a text in a page, and in what the page shows later. The caller must disconnect the observer. */
function renameText([from, to]: readonly [string, string]): MutationObserver {
  const rename = (): void => {
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (nodes.nextNode()) {
      const node = nodes.currentNode as Text;
      if (node.data.includes(from)) node.data = node.data.replaceAll(from, to);
    }
  };
  const observer = new MutationObserver(rename);
  observer.observe(document.body, { subtree: true, childList: true, characterData: true });
  rename();
  return observer;
}

/** setFocused sends a page the events of a focus change. Headless Chromium leaves all pages focused. */
async function setFocused(page: Page, focused: boolean): Promise<void> {
  await page.evaluate((focused) => {
    document.hasFocus = () => focused;
    document.dispatchEvent(new Event("visibilitychange"));
  }, focused);
}

/**
 * isKept reports, in a page, whether the active editor of the layout that VS Code has stored there has a text. A layout from
 * before may have it in another editor, and other records may have it earlier, such as the commands that were used last.
 */
async function isKept([text, view]: readonly [string, string | undefined]): Promise<boolean> {
  interface Group { editors: Array<{ id: string; value: string }>; mru: number[] }
  const activeEditors = (layout: unknown): string[] => {
    if (typeof layout !== "object" || layout === null) return [];
    const { editors, mru } = layout as Partial<Group>;
    const active = Array.isArray(editors) && Array.isArray(mru) ? editors[mru[0] ?? -1] : undefined;
    return active ? [`${active.id} ${active.value}`] : Object.values(layout).flatMap(activeEditors);
  };
  const result = <T>(request: IDBRequest<T>): Promise<T> => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("it cannot be read"));
  });
  for (const { name } of await indexedDB.databases()) {
    if (!name?.startsWith("vscode-web-state-db")) continue;
    const database = await result(indexedDB.open(name));
    try {
      const table = database.transaction("ItemTable").objectStore("ItemTable");
      const layout = await result<unknown>(table.get(view ? `memento/webviewView.${view}` : "memento/workbench.parts.editor"));
      if (typeof layout !== "string") continue;
      if (view) {
        // The view is in the secondary side bar, which VS Code stores apart.
        if (layout.includes(text) && String(await result<unknown>(table.get("workbench.auxiliaryBar.hidden"))) === "false") return true;
      } else if (activeEditors(JSON.parse(layout)).some((editor) => editor.includes(text))) return true;
    } finally {
      database.close();
    }
  }
  return false;
}

/** eventually repeats a check until it succeeds. After two minutes it throws the last error. It is for states that no locator can wait for. */
export async function eventually(check: () => void | Promise<void>): Promise<void> {
  for (const until = Date.now() + patience; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
    try {
      await check();
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
    }
  }
}

/** gone waits until a process has ended. It polls, since a process is notified of the ends of its own children only. */
export async function gone(pid: number): Promise<void> {
  for (const until = Date.now() + patience; existsSync(`/proc/${pid}`); await new Promise((resolve) => setTimeout(resolve, 50))) {
    if (Date.now() > until) throw new Error(`process ${pid} is left behind`);
  }
}

function editorProcesses({ folder }: TestProject): number[] {
  const isOne = (pid: string): boolean => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8") === `${duetBinary}\0--stdio\0` && readlinkSync(`/proc/${pid}/cwd`) === folder;
    } catch {
      return false; // the process has ended meanwhile
    }
  };
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isOne(name)).map(Number);
}

async function call<M extends Method>({ folder, env }: TestProject, method: M, params: Params<M>): Promise<Result<M>> {
  const { stdout } = await promisify(execFile)(duetBinary, ["--root", folder, "call", method, JSON.stringify(params)], { env });
  return JSON.parse(stdout) as Result<M>;
}

/** portOf waits until the server prints its port. */
function portOf(server: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const read = (text: Buffer): void => {
      said += text.toString();
      const port = /listening on (\d+)/.exec(said)?.[1];
      if (port) resolve(port);
    };
    server.stdout!.on("data", read);
    server.stderr!.on("data", read);
    server.on("exit", () => reject(new Error(`VS Code's server has ended:\n${said}`)));
    setTimeout(() => reject(new Error(`VS Code's server does not listen:\n${said}`)), patience).unref();
  });
}

/** endGroup ends the server and its children, such as the extension host, which would outlive it. A daemon has its own group. */
async function endGroup(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.pid === undefined) return;
  const ended = new Promise((resolve) => server.on("exit", resolve));
  process.kill(-server.pid, "SIGKILL");
  await ended;
}
