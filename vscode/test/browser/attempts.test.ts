// The page that compares attempts.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Attempt } from "../../src/hub/attempts";
import type { FakeHost } from "./pages/panelhost";
import { callsOf, problemsOf, startPages } from "./panelpage";
import type { PanelPages } from "./panelpage";

declare const window: { host: FakeHost };

const pictures = fileURLToPath(new URL("../pictures/", import.meta.url));
let pages: PanelPages;

before(async () => {
  mkdirSync(pictures, { recursive: true });
  pages = await startPages();
});

after(() => pages?.close());

const usage = { turns: 1, input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, cost_usd: 0, time_ms: 0 };
const of = (name: string, over: Partial<Attempt>): Attempt => ({
  turn: `${name}.1`, session: 1, turn_uuid: `s-${name}`, session_uuid: `t-${name}`, agent: name, state: "completed", usage, worktree: { branch: `duet/${name}`, dir: `/d/${name}` }, files: [], added: 0, removed: 0, commits: 0, ...over,
});
const attempts = [
  of("claude", {
    model: "opus", usage: { ...usage, time_ms: 65_000, cost_usd: 0.12 }, gates: { state: "failed", failing: ["test"] } as never, result: "I rewrote the parser.\n<b>It is fast.</b>",
    files: [{ path: "src/lexer.ts", added: 12, removed: 3 }, { path: "logo.png", added: 0, removed: 0, binary: true }], more: 2, added: 12, removed: 3,
  }),
  of("codex", { state: "running", files: [{ path: "src/parser.ts", added: 4, removed: 0 }], added: 4 }),
  of("gemini", { state: "failed", error: "the quota is used up", worktree: { branch: "duet/gemini", dir: "/d/gemini", gone: true }, unknown: "the worktree is gone" }),
];

for (const [theme, width] of [["dark", 1000], ["light", 700], ["high-contrast", 300]] as const) {
  test(`attempts stand side by side, with what each did; one that has ended can be chosen, ${theme}`, async () => {
    const page = await pages.open({
      script: "/attempts.js", theme, width,
      prepare: (host) => {
        for (const method of ["load", "openSession", "openFile"]) host.answers[method] = () => null;
      },
    });
    await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "load"));
    const show = (given: Attempt[], notes: string[] = []): Promise<void> => page.evaluate((data) => window.host.notify("comparison", data), { prompt: "Fix the parser", attempts: given, notes });
    await show(attempts);
    const card = (name: string): ReturnType<typeof page.getByRole> => page.getByRole("region", { name: `${name}, ${name.split(" ")[0]}.1` });
    const [claude, codex, gemini] = [card("claude (opus)"), card("codex"), card("gemini")];
    await claude.getByText("completed · gates failed: test · 4 files, +12 -3 · 1m 05s · $0.12", { exact: true }).waitFor();
    await codex.getByText("running · 1 file, +4 -0 · 0s", { exact: true }).waitFor();
    await gemini.getByText("failed · the worktree is gone · 0s", { exact: true }).waitFor();
    await gemini.getByText("the quota is used up").waitFor();
    await claude.getByText("<b>It is fast.</b>").waitFor();
    assert.deepEqual(await claude.getByRole("listitem").allTextContents(), ["src/lexer.ts +12 -3", "logo.png binary"]);
    await claude.getByText("and 2 more").waitFor();
    const choosable = await Promise.all([claude, codex, gemini].map((one) => one.getByRole("button", { name: "Choose…" }).isEnabled()));
    assert.deepEqual(choosable, [true, false, false]);
    await page.screenshot({ path: `${pictures}attempts-${theme}.png` });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);

    await codex.getByRole("button", { name: "Open Session" }).click();
    await claude.getByRole("button", { name: "src/lexer.ts" }).click();
    const choose = claude.getByRole("button", { name: "Choose…" });
    await page.evaluate(() => {
      window.host.answers["choose"] = () => {
        throw new Error("claude still works");
      };
    });
    await choose.click();
    await page.getByRole("alert").getByText("claude still works").waitFor();
    assert.deepEqual(await Promise.all(["openSession", "openFile", "choose"].map((method) => callsOf(page, method))), [[{ session: "t-codex" }], [{ session: "t-claude", path: "src/lexer.ts" }], [{ session: "t-claude" }]]);
    // A new state redraws the cards, and the focus stays on its button.
    await choose.focus();
    await show([attempts[0]!, { ...attempts[1]!, state: "completed" }], ["claude (opus): landed on main: 1 commit, 4 files", "codex is discarded"]);
    await codex.getByText("completed · 1 file, +4 -0 · 0s").waitFor();
    await page.getByText("codex is discarded").waitFor();
    assert.deepEqual([await gemini.count(), await choose.evaluate((button) => button === document.activeElement)], [0, true]);
    assert.deepEqual(problemsOf(page), []);
  });
}
