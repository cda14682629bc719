// Messages of agents in the page of a session panel: Markdown, and text that only looks like it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import type { FakeHost } from "./pages/panelhost";
import { callsOf, problemsOf, startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";

declare const window: { host: FakeHost; harmed?: boolean };

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

async function working(): Promise<Page> {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  await page.getByRole("heading", { name: "A session" }).waitFor();
  return page;
}

/** say sends a text as a complete message of the agent. */
async function say(page: Page, text: string, id = "m1"): Promise<void> {
  await tell(page, "item.added", { type: "message", role: "assistant", key: id, text });
  await page.locator(`[data-key="${id}"]`).waitFor();
}

test("hostile Markdown does nothing and shows what it is", async () => {
  const page = await working();
  await say(
    page,
    [
      "<script>window.harmed = true</script>",
      "<img src=x onerror='window.harmed = true'>",
      "[run](javascript:window.harmed=true) [page](data:text/html,<script>harmed=true</script>) [command](command:workbench.action.quit) [settings](vscode://settings)",
      "![picture](https://evil.example/pixel.png) ![svg](data:image/svg+xml;base64,PHN2Zz4=)",
      "<iframe src='https://evil.example'></iframe> <a href='https://evil.example' style='position:fixed'>x</a>",
      "[bidi \u202Egnp.exe](https://good.example/) zero\u200Bwidth",
      "`<b>code</b>`",
    ].join("\n\n"),
  );
  const said = page.locator(".said");
  assert.deepEqual(await said.evaluate((element) => [...element.querySelectorAll("script, iframe, img, a, b, style, object, svg:not(.icon)")].map(({ tagName }) => tagName)), []);
  const text = await said.innerText();
  for (const shown of ["<script>window.harmed = true</script>", "onerror=", "javascript:window.harmed=true", "data:text/html", "command:workbench", "vscode://settings", "<U+202E>", "<U+200B>", "<b>code</b>"]) assert.ok(text.includes(shown), `${shown} in ${text}`);
  assert.deepEqual(await said.locator("[role=link]").evaluateAll((links) => links.map((link) => (link as HTMLElement).dataset["url"])), ["https://evil.example/pixel.png", "https://evil.example", "https://evil.example", "https://good.example/"]);
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  assert.deepEqual(problemsOf(page), []);
});

test("links and references to lines are opened by the extension, by pointer and keyboard", async () => {
  const page = await working();
  await say(page, "See `src/a.ts:12:3`, src/b.ts:7, [the guide](docs/guide.md#L4), e.g. node.js at 10:30, [web](https://example.org/x) and <https://example.org/y>.");
  for (const name of ["src/a.ts:12:3", "src/b.ts:7", "the guide"]) await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("link", { name: "web" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.getByRole("link").count(), 5);
  await page.waitForFunction(() => window.host.calls.filter(({ method }) => method === "panel.openLink").length === 1);
  assert.deepEqual(await callsOf(page, "panel.openFile"), [{ path: "src/a.ts", line: 12, column: 3 }, { path: "src/b.ts", line: 7 }, { path: "docs/guide.md", line: 4 }]);
  assert.deepEqual(await callsOf(page, "panel.openLink"), [{ url: "https://example.org/x" }]);
});

const document = [
  "# Title\n\nSome *prose* with `code`,\nin two lines.\n\n- one\n- two\n  - deeper\n\n    with a paragraph\n\n1. first\n2. second\n\n- [ ] to do\n- [x] done with `code`\n\n",
  "| a | b |\n| --- | ---: |\n| 1 | **2** |\n| 3 | 4 |\n\n> quoted\n> text\n\n```ts\nlet a = `x`;\n\nlet b = 2;\n```\n\n~~~\nopen ~~ and ``` in it\n~~~\n\nText with a [link][ref] and ~~gone~~.\n\n",
  "Heading below\n---\n\n    indented code\n\n***\n\nLast.\n\n[ref]: https://example.org/ref\n",
].join("");

test("the items of a task list have boxes that say what is done, and cannot be changed", async () => {
  const page = await working();
  await say(page, "- [x] Read `lexer.ts`\n- [ ] Skip **comments** in [the guide](docs/guide.md)\n  - [X] deeper\n- no task\n- [] none\n- `[ ]` none\n\n1. [ ] first\n\n   with a paragraph\n\nText [x] in a line.");
  const boxes = page.locator(".said").getByRole("checkbox");
  const of = (name: string, checked: boolean): Promise<number> => page.getByRole("checkbox", { name, exact: true, checked, disabled: true }).count();
  assert.equal(await boxes.count(), 4);
  assert.deepEqual([await of("Read lexer.ts", true), await of("Skip comments in the guide", false), await of("deeper", true), await of("first", false)], [1, 1, 1, 1]);
  const text = await page.locator(".said").innerText();
  for (const shown of ["[] none", "[ ] none", "Text [x] in a line."]) assert.ok(text.includes(shown), text);
  await page.getByRole("link", { name: "the guide" }).click();
  await page.waitForFunction(() => window.host.calls.some(({ method }) => method === "panel.openFile"));
  assert.deepEqual(problemsOf(page), []);
});

/** highlight waits until the visible code is highlighted. The page highlights visible blocks one at a time. */
function highlight(page: Page, within: string): Promise<void> {
  return page.locator(`${within} .hljs-keyword`).first().waitFor();
}

test("code is highlighted by its language, and its text stays the same", async () => {
  const page = await working();
  const code = "// a \u202Eb\n/* <img src=x onerror='window.harmed = true'>\n&amp; */\nconst a = `x${1}`; const b = \"</span><b>\";\n";
  await say(page, ["ts", "nothing", ""].map((language) => `\`\`\`${language}\n${code}\`\`\``).join("\n\n"));
  await highlight(page, ".said");
  const [highlighted, unknown, none] = await page.locator(".said pre code").evaluateAll((all) => all.map((element) => ({ text: element.textContent, tags: [...new Set([...element.querySelectorAll("*")].map(({ tagName }) => tagName))], spans: element.childElementCount })));
  assert.ok(highlighted!.spans > 5);
  assert.deepEqual(highlighted!.tags, ["SPAN"]);
  assert.deepEqual([unknown!.spans, none!.spans], [0, 0]);
  assert.equal(highlighted!.text, unknown!.text);
  assert.equal(highlighted!.text, code.replace("\u202e", "<U+202E>").trimEnd());
  await page.getByRole("button", { name: "Copy code" }).first().click();
  await page.getByText("Copied").waitFor();
  assert.ok((await page.evaluate(() => navigator.clipboard.readText())).includes("a \u202Eb"));
  assert.deepEqual(problemsOf(page), []);
});

test("a code block is highlighted once it is closed, and not beyond the limits", async () => {
  const page = await working();
  const delta = (text: string): Promise<void> => page.evaluate((given) => window.host.event("text.delta", { key: "m2", text: given }), text);
  await delta("1. A step\n\n   ```go\n   package a\n");
  await page.getByText("package a").waitFor();
  await page.waitForTimeout(200);
  assert.equal(await page.locator(".hljs-keyword").count(), 0);
  await delta("   ```\n\nAnd then:\n\n```go\npackage b\n");
  await page.locator(".hljs-keyword").waitFor();
  await page.getByText("package b").waitFor();
  await page.waitForTimeout(200);
  assert.equal(await page.locator(".hljs-keyword").count(), 1);
  await tell(page, "item.added", { type: "message", role: "assistant", key: "m2", text: "1. A step\n\n   ```go\n   package a\n   ```\n\nAnd then:\n\n```go\npackage b\n" });
  await page.locator(".hljs-keyword").nth(1).waitFor(); // its fence is never closed
  // Too long, with a long line, nested too deep, and within the limits.
  const blocks = [`go\n${"package c\n".repeat(2_000)}`, `go\npackage c // ${"c".repeat(2_000)}\n`, `bash\n${"${".repeat(400)}\n`, "go\npackage d\n"];
  await say(page, blocks.map((block) => `\`\`\`${block}\`\`\``).join("\n\n"), "m3");
  const drawn = page.locator('[data-key="m3"] pre code');
  for (const i of [0, 1, 2]) await drawn.nth(i).scrollIntoViewIfNeeded();
  await drawn.nth(3).locator(".hljs-keyword").waitFor();
  assert.deepEqual(await drawn.evaluateAll((all) => all.map((element) => element.querySelectorAll("[class^=hljs-]").length)), [0, 0, 0, 1]);
  assert.deepEqual(problemsOf(page), []);
});

test("code is highlighted after other code of its language took long", async () => {
  const page = await working();
  await page.evaluate(() => {
    const now = performance.now.bind(performance);
    let passed = 0;
    performance.now = () => now() + (new Error().stack!.includes("highlighted") ? (passed += 60_000) : passed);
  });
  for (const key of ["m1", "m2"]) {
    await say(page, `\`\`\`ts\nconst ${key} = 1;\n\`\`\``, key);
    await page.locator(`[data-key="${key}"] .hljs-keyword`).waitFor();
  }
});

test("the lines of a changed file are highlighted by its name, before and after the change, at their place in the file, on a slow machine, too", async () => {
  const page = await working();
  await page.evaluate(() => {
    const now = Date.now.bind(Date);
    let passed = 0;
    Date.now = () => now() + (passed += 1_000);
  });
  await tell(page, "item.changed", { type: "tool_call", key: "c1", tool_name: "Edit", title: "Edit a.py", tool_kind: "edit", details: { diffs: [{ path: "/a.py", line: 200, old_text: 'x = 1\ns = """a\nb"""\n', new_text: 'def f():\n  s = """a\nb"""\n' }] } });
  const lines = page.locator(".diff-lines");
  await lines.locator("ins .hljs-keyword", { hasText: "def" }).waitFor();
  await lines.locator("del .hljs-number", { hasText: "1" }).waitFor();
  await lines.locator(".line .hljs-string", { hasText: 'b"""' }).waitFor(); // its string begins in another line
  assert.deepEqual(await lines.locator("> *").evaluateAll((all) => all.map(({ textContent }) => textContent)), ["@@ -200,3 +200,3 @@", "-x = 1", '-s = """a', "+def f():", '+  s = """a', ' b"""']);
});

for (const theme of ["dark", "light", "high-contrast"] as const) {
  test(`highlighted code can be read in the theme ${theme}`, async () => {
    const page = await pages.open({ theme, height: 1500 });
    await page.getByRole("heading", { name: "A session" }).waitFor();
    const code = "class A extends B { // why\n  @dec name: string = `a${b}`;\n  f() { return /x/.test(this.c) ? null : 12; }\n}";
    await say(page, `\`\`\`ts\n${code}\n\`\`\`\n\n\`\`\`yaml\n# why\na: &b true\n\`\`\`\n\n\`\`\`md\n# A\n*b* **c** [d](e)\n\`\`\`\n\n\`\`\`diff\n-a\n+b\n\`\`\``);
    await tell(page, "item.changed", { type: "tool_call", key: "c1", tool_name: "Edit", title: "Edit a.ts", tool_kind: "edit", details: { diffs: [{ path: "/a.ts", old_text: `${code}\n`, new_text: `${code.replaceAll(" ", "  ")}\n` }] } });
    await highlight(page, ".said");
    await highlight(page, ".diff-lines del");
    await page.locator(".hljs-attr", { hasText: "a:" }).waitFor();
    await page.locator(".hljs-addition").waitFor();
    await page.locator(".hljs-section").first().waitFor();
    const worst = await page.locator("[class^=hljs-]").evaluateAll((all) => {
      type Colour = [number, number, number, number];
      // A canvas knows every way to write a colour.
      const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
      const over = (below: Colour, colour: string): Colour => {
        canvas.fillStyle = `rgb(${below.slice(0, 3).join(" ")})`;
        canvas.fillRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data] as Colour;
      };
      const background = (element: Element | null): Colour => (element ? over(background(element.parentElement), getComputedStyle(element).backgroundColor) : [255, 255, 255, 255]);
      const light = (colour: Colour): number => colour.slice(0, 3).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)).reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i]!, 0);
      return all.map((element) => {
        const below = background(element);
        const both = [light(over(below, getComputedStyle(element).color)), light(below)].sort((a, b) => b - a);
        return { contrast: (both[0]! + 0.05) / (both[1]! + 0.05), what: `${element.getAttribute("class")} in ${element.closest("ins, del, .code-block, .line")?.tagName}`, colour: getComputedStyle(element).color };
      }).sort((a, b) => a.contrast - b.contrast)[0]!;
    });
    assert.ok(worst.contrast >= 4.5, JSON.stringify(worst));
  });
}

test("text that came in any pieces looks as if it had come at once", async () => {
  const page = await working();
  await say(page, document, "whole");
  await highlight(page, '[data-key="whole"]');
  const whole = await page.locator('[data-key="whole"] .markdown').innerHTML();
  assert.ok(whole.includes("<table>") && whole.includes("https://example.org/ref"), whole);
  for (const size of [1, 3, 7, 50]) {
    const id = `by-${size}`;
    await page.evaluate(
      async ([text, key, by]) => {
        for (let at = 0; at < text.length; at += by) {
          window.host.event("text.delta", { key, text: text.slice(at, at + by) });
          // Some pieces are rendered alone, others together.
          if (at % 5 === 0) await new Promise((resolve) => requestAnimationFrame(resolve));
        }
      },
      [document, id, size] as const,
    );
    await tell(page, "item.added", { type: "message", role: "assistant", key: id, text: document });
    await page.locator(`[data-key="${id}"]:not(.open) [data-url="https://example.org/ref"]`).waitFor();
    await highlight(page, `[data-key="${id}"]`);
    assert.equal(await page.locator(`[data-key="${id}"] .markdown`).innerHTML(), whole, `in pieces of ${size}`);
  }
});

test("a huge table and a huge code block are there, and are shown bit by bit", async () => {
  const page = await working();
  const rows = Array.from({ length: 3_000 }, (_, i) => `| ${i} | row |`).join("\n");
  await say(page, `| n | what |\n| --- | --- |\n${rows}\n\nAfter it.`);
  await page.getByText("After it.").waitFor();
  const before = await page.locator(".said tr").count();
  assert.ok(before < 400, `${before} rows`);
  await page.getByRole("button", { name: /^Show \d+ more rows/ }).click();
  assert.ok((await page.locator(".said tr").count()) > before);
});

test("code is copied as it was written", async () => {
  const page = await working();
  await say(page, "```sh\nmake \u200Btest\n```");
  await page.getByRole("button", { name: "Copy code" }).click();
  await page.getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "make \u200Btest\n");
});

test("code is inserted into the editor, and a shell's is run in a terminal, as it was written", async () => {
  const page = await working();
  await say(page, "```sh\nmake \u200Btest\n```\n\n```ts\nlet a;\n```");
  const [insert, run] = [page.getByRole("button", { name: "Insert code into the editor" }), page.getByRole("button", { name: "Run code in a terminal" })];
  assert.deepEqual([await insert.count(), await run.count()], [2, 1]);
  await run.press("Enter");
  await insert.last().press("Enter");
  await page.evaluate(() => {
    window.host.answers["panel.insertCode"] = () => {
      throw new Error("there is no text editor: open a file first");
    };
  });
  await insert.first().click();
  await page.getByText("there is no text editor: open a file first").waitFor();
  assert.deepEqual([await callsOf(page, "panel.runCode"), await callsOf(page, "panel.insertCode")], [[{ code: "make \u200Btest\n" }], [{ code: "let a;\n" }, { code: "make \u200Btest\n" }]]);
});

test("a tool's long output has its head and its tail, and all of it when that is asked for", async () => {
  const page = await working();
  const lines = Array.from({ length: 5_000 }, (_, i) => `line ${i}`);
  await tell(page, "item.changed", { type: "tool_call", key: "c1", tool_name: "Bash", title: "make", tool_kind: "execute", tool_input: { command: "make" } });
  await tell(page, "item.changed", { type: "tool_call", key: "c1", status: "completed", result: `10 %\r50 %\r\n\u001b]0;title\u0007\u001b[2K${lines.join("\n")}\n\u001b[38;2;1;2;3mtrue\u001b[0m` });
  const output = page.locator(".tool .output").last();
  await output.getByText("true", { exact: true }).waitFor();
  const text = await output.innerText();
  assert.ok(text.includes("50 %") && !text.includes("10 %") && !text.includes("title") && text.includes("line 0") && text.includes("line 4999") && !text.includes("line 2500"), text);
  await output.getByRole("button", { name: "Show all 5002 lines (4982 hidden)" }).click();
  await output.getByText("line 2500", { exact: false }).first().waitFor({ state: "attached" });
  assert.deepEqual(problemsOf(page), []);
});
