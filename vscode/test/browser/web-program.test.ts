// The page of duet-rpc web in Chromium, with the real program: a day on a phone and a tablet.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { addRepository, duetBinary, newProject, removeProject } from "../hub";
import type { TestProject } from "../hub";
import { startChromium } from "./chromium";

let browser: Browser;

before(async () => {
  browser = await startChromium();
});

after(() => browser?.close());

/** The real program, as a shell runs it. */
class Served {
  private process: ChildProcess | undefined;

  constructor(
    readonly project: TestProject,
    private readonly port: number,
  ) {}

  run(...args: string[]): string {
    const { folder, env } = this.project;
    return execFileSync(duetBinary, ["--root", folder, ...args], { env, cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  }

  /** Starts duet-rpc web, and resolves when it serves the page. */
  async start(): Promise<void> {
    const { folder, env } = this.project;
    const process = spawn(duetBinary, ["--root", folder, "web", "--address", `127.0.0.1:${this.port}`], { env, cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
    this.process = process;
    await new Promise<void>((resolve, reject) => {
      createInterface(process.stdout).once("line", () => resolve());
      process.once("exit", (code) => reject(new Error(`duet-rpc web has ended: ${code}`)));
    });
  }

  async kill(): Promise<void> {
    const { process } = this;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    const ended = new Promise((resolve) => process.once("exit", resolve));
    process.kill("SIGKILL");
    await ended;
  }

  killDaemon(): void {
    const { pid } = JSON.parse(this.run("daemon", "status", "--json")) as { pid: number };
    process.kill(pid, "SIGKILL");
  }

  /** Opens the page on a device that a new code pairs. */
  async pair(name: string): Promise<Page> {
    const { url } = JSON.parse(this.run("web", "pair", "--json")) as { url: string };
    const context = await browser.newContext({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    const page = await context.newPage();
    page.setDefaultTimeout(Number(process.env["DUET_TEST_TIMEOUT"] ?? 120_000));
    await page.goto(url);
    await page.getByLabel("Name of this device").fill(name);
    await page.getByRole("button", { name: "Pair" }).tap();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    return page;
  }
}

/** A port that was free a moment ago: the page keeps its address while its server is killed. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function serve(end: (stop: () => Promise<void>) => void): Promise<Served> {
  const project = newProject("parser");
  writeFileSync(join(project.folder, "README"), "hello\n");
  addRepository(project.folder);
  mkdirSync(join(project.home, ".config", "duet"), { recursive: true });
  writeFileSync(join(project.home, ".config", "duet", "config.toml"), 'default_agent = "demo"\n');
  const served = new Served(project, await freePort());
  end(async () => {
    await served.kill();
    await removeProject(project);
  });
  served.run("prompt", "quiet");
  await served.start();
  return served;
}

/** Keeps a picture of a page if a test fails. */
async function kept(page: Page, name: string): Promise<void> {
  mkdirSync("out/pictures", { recursive: true });
  await page.screenshot({ path: `out/pictures/last-web-program-${name}.png` });
}

const allow = { name: "Allow", exact: true } as const;

test("a day on a phone: a prompt, questions, kills of both processes, a second device, and its removal", async (t) => {
  const served = await serve((stop) => t.after(stop));
  const phone = await served.pair("Phone");
  const tablet = await served.pair("Tablet");
  t.after(async () => {
    for (const [name, page] of Object.entries({ phone, tablet })) await kept(page, name).catch(() => undefined);
  });

  // A prompt from the phone asks, and the daemon dies with the question open.
  await phone.getByRole("link", { name: "New" }).tap();
  await phone.getByRole("textbox", { name: "Prompt" }).fill("write it, bitte: äöü");
  await phone.getByRole("button", { name: "Send", exact: true }).tap();
  await phone.getByRole("button", allow).waitFor();
  served.killDaemon();
  await tablet.getByRole("link", { name: /parser.*demo/ }).tap();
  await tablet.getByRole("button", allow).waitFor();
  await phone.getByRole("button", allow).tap();
  await tablet.getByText(/Answered elsewhere: allowed/).waitFor();
  await phone.locator(".head").getByText("completed").waitFor();

  // The server dies with a question open. The page comes back by itself, and the answer counts once.
  await phone.getByRole("textbox", { name: "Prompt" }).fill("write it again");
  await phone.getByRole("button", { name: "Send", exact: true }).tap();
  await phone.getByRole("button", allow).waitFor();
  await phone.getByRole("textbox", { name: "Prompt" }).fill("half typed");
  await served.kill();
  await phone.getByText(/Offline/).waitFor();
  await phone.getByRole("button", allow).tap();
  await served.start();
  await phone.getByText(/Offline/).waitFor({ state: "hidden" });
  await phone.locator(".head").getByText("completed").waitFor();
  assert.equal(await phone.getByRole("textbox", { name: "Prompt" }).inputValue(), "half typed");
  assert.match(served.run("session", "show", "2"), /state +completed/, "the answer of the page that was offline counted");

  // What the agent changed is on the phone by hunk.
  await phone.getByRole("button", { name: /changes/i }).first().tap();
  await phone.getByText("demo.txt").first().waitFor();

  // A removed device has to be paired again; the other one goes on.
  served.run("web", "devices", "remove", "Tablet");
  await tablet.getByRole("button", { name: "Pair" }).waitFor();
  assert.doesNotMatch(served.run("web", "devices"), /Tablet/);
  await phone.reload();
  await phone.getByText("demo.txt").first().waitFor();
});
