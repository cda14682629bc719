// For a very long line of an agent or a tool, the page of a session panel shows its beginning, and stays responsive.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { MarkdownStream } from "../../src/webview/stream";
import { shapes } from "../longlines";
import type { FakeHost } from "./pages/panelhost";
import { startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";

declare const window: { host: FakeHost; MarkdownStream: typeof MarkdownStream };

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

/** Maximum length of an element's own text, in characters: the browser lays it out in one step. */
const longestText = 100_000;

// A page with quadratic costs takes hours.
const patience = { timeout: 300_000 };

for (const [of, given, length] of [
  ["a tool's output", "result", 5_000_000],
  ["a message", "message", 100_000],
  ["a code block", "code", 250_000],
  ["the row of a table", "table", 100_000],
  ["a tool's title and input", "input", 5_000_000],
  ["a prompt", "prompt", 5_000_000],
  ["a change of a file", "diff", 300_000],
  ["a question", "question", 1_000_000],
] as const) {
  test(`one long line: ${of}`, patience, async () => {
    const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
    page.setDefaultTimeout(200_000);
    await page.getByRole("heading", { name: "A session" }).waitFor();
    for (const [name, unit] of Object.entries(shapes)) {
      const id = name.replaceAll(" ", "-");
      const end = `end-of-${id}`;
      const longest = await page.evaluate(
        async ([kind, repeated, key, last, limit]) => {
          const text = repeated.repeat(limit / repeated.length);
          const tell = (data: Record<string, unknown>): void => window.host.event(data["type"] === "tool_call" ? "item.changed" : "item.added", data);
          const call = { type: "tool_call", key, tool_name: "Bash", title: `make ${key}`, tool_kind: "execute", tool_input: { command: "make" } };
          switch (kind) {
            case "result":
              tell(call);
              tell({ type: "tool_call", key, status: "completed", result: text });
              break;
            case "input":
              tell({ ...call, title: text, tool_input: { command: text } });
              break;
            case "diff":
              tell({ ...call, details: { diffs: [{ path: "/a.txt", old_text: "", new_text: text }] } });
              break;
            case "message":
              tell({ type: "message", role: "assistant", key, text });
              break;
            case "code":
              tell({ type: "message", role: "assistant", key, text: `\`\`\`sh\n${text}\n\`\`\`` });
              break;
            case "table":
              tell({ type: "message", role: "assistant", key, text: `| a | b |\n| --- | --- |\n| 1 | 2 |\n${text}` });
              break;
            case "prompt":
              tell({ type: "message", role: "user", key, text });
              break;
            case "question":
              window.host.event("approval.opened", { approval: key, type: "function_call", tool_name: "Bash", title: text, tool_input: { command: text }, plan: text, details: text, diff: `+${text}`, status: "pending" });
              break;
          }
          tell({ type: "message", role: "assistant", key: last, text: last });
          const frame = (): Promise<unknown> => new Promise((resolve) => requestAnimationFrame(resolve));
          const known = (): boolean => [...document.querySelectorAll(".said")].some((said) => said.textContent === last);
          while (!known()) await frame();
          let longest = 0;
          const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          for (let node = walk.nextNode(); node; node = walk.nextNode()) longest = Math.max(longest, node.nodeValue!.length);
          if (kind === "question") window.host.event("approval.closed", { approval: key, status: "approved", decided_by: "user" });
          // The previous text is not needed, and takes memory.
          for (const part of document.querySelectorAll(".markdown, .output, .diff-lines")) part.replaceChildren();
          return longest;
        },
        [given, unit, id, end, length] as const,
      );
      assert.ok(longest <= longestText, `${name}: a text of ${longest} characters`);
    }
    await page.close();
  });
}

/** Units without a meaning in Markdown. */
const plain = new Set(["digits", "places", "times", "slashes", "dots", "folders", "files", "at signs", "returns", "returns apart", "escapes", "unfinished escapes", "colours", "titles"]);

/** Maximum time for 5 MB, in milliseconds. Most units take less than 1 s, short lines of brackets up to 2.5 s. */
const longest = 10_000;

for (const [what, end] of [["line", ""], ["text of short lines", "\n"]] as const) {
  test(`one long ${what}: Markdown`, patience, async () => {
    const page = await pages.open();
    page.setDefaultTimeout(patience.timeout);
    await page.evaluate(await readFile(new URL("../browser/pages/markdown.js", import.meta.url), "utf8"));
    for (const first of end === "" ? ["", "```\n", "| a | b |\n| --- | --- |\n| 1 | 2 |\n"] : [""]) {
      for (const [name, unit] of Object.entries(shapes)) {
        if (plain.has(name)) continue;
        // Other processes take time, too, so the shortest of several measurements counts.
        let took = Number.POSITIVE_INFINITY;
        for (let again = 0; again < 3 && took > longest; again++) took = Math.min(took, await page.evaluate(shown, [first, unit + end] as const));
        assert.ok(took <= longest, `${JSON.stringify(first)}, then ${name}: 5 MB take ${took} ms`);
      }
    }
    await page.close();
  });
}

/** Returns the time to show 5 MB of a unit as Markdown, in milliseconds. */
function shown([beginning, unit]: readonly [string, string]): number {
  const text = beginning + unit.repeat(5_000_000 / unit.length);
  const began = performance.now();
  new window.MarkdownStream().show(text, true);
  return performance.now() - began;
}

test("a message that is too long for Markdown can be read to its end", async () => {
  const page = await pages.open();
  await page.getByRole("heading", { name: "A session" }).waitFor();
  const told = (text: string): Promise<void> => tell(page, "item.added", { type: "message", role: "assistant", key: "m", text });
  const text = "A line of **text**.\n\n".repeat(11_000);
  await told(`${text}The end.`);
  const said = page.locator('[data-key="m"]');
  await said.getByText("too long to be shown as Markdown").waitFor();
  assert.equal(await said.getByText("The end.").count(), 0);
  await said.getByRole("button", { name: "Show them as plain text" }).click();
  await said.getByText("A line of **text**.").first().waitFor({ state: "attached" });
  await said.getByText("The end.").waitFor({ state: "attached" });
  const characters = await said.locator(".markdown").evaluate((element) => element.textContent.split("A line of ").length - 1);
  assert.equal(characters, 11_000);
  await page.close();
});
