// Drafts, and the files that a page can mention in a prompt.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { foldersOf, longestImage, mostFiles, rank, readUris } from "../../src/panel/content";
import { Drafts } from "../../src/panel/drafts";
import { messageHtml, pageHtml } from "../../src/panel/html";

function folder(t: test.TestContext): string {
  const made = mkdtempSync(join(tmpdir(), "duet-panel-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

const said = (text: string): { text: string; content: [] } => ({ text, content: [] });

test("a draft is there again in the next window, and gone when it was sent", async (t) => {
  const at = join(folder(t), "drafts");
  const first = new Drafts(at);
  assert.deepEqual(await first.of("a/../b"), said(""));
  for (const text of ["h", "he", "hello"]) first.keep("a/../b", said(text));
  assert.deepEqual(await first.of("a/../b"), said("hello"), "at once in the same window");
  await first.written();
  const second = new Drafts(at);
  assert.deepEqual(await second.of("a/../b"), said("hello"));
  assert.deepEqual(await second.of("another"), said(""));
  second.keep("a/../b", { ...said("hello"), withoutEditor: true });
  await second.written();
  const third = new Drafts(at);
  assert.deepEqual(await third.of("a/../b"), { ...said("hello"), withoutEditor: true });
  third.keep("a/../b", said(""));
  await third.written();
  assert.deepEqual(await new Drafts(at).of("a/../b"), said(""));
  assert.deepEqual(readdirSync(at), []);
});

test("two windows do not destroy each other's drafts", async (t) => {
  const at = folder(t);
  const [first, second] = [new Drafts(at), new Drafts(at)];
  first.keep("thread", said("of the first"));
  await first.written();
  assert.deepEqual(await second.of("thread"), said("of the first"), "what the other has typed is seen");
  second.keep("thread", said("of the second"));
  first.keep("thread", said("of the first, and more"));
  await Promise.all([first.written(), second.written()]);
  assert.deepEqual([await first.of("thread"), await second.of("thread")], [said("of the first, and more"), said("of the second")]);
  second.keep("thread", said("")); // it was sent there
  await second.written();
  assert.deepEqual(await new Drafts(at).of("thread"), said("of the first, and more"));
});

test("a draft that cannot be read is passed by", async (t) => {
  const at = folder(t);
  writeFileSync(join(at, "thread.broken.json"), "{");
  writeFileSync(join(at, "thread.other.json"), `{"text":1}`);
  const errors: unknown[] = [];
  assert.deepEqual(await new Drafts(at, "this window", (error) => errors.push(error)).of("thread"), said(""));
  assert.equal(errors.length, 2);
});

test("files are found by some of their letters", () => {
  const paths = ["docs/protocol.md", "src/panel/protocol.ts", "src/protocol.ts", "src/panel/panel.ts", "test/unit/panel.test.ts", "README.md", "src/webview/codeblock.ts"];
  assert.equal(rank("protocol", paths)[0], "src/protocol.ts");
  assert.equal(rank("panel/prot", paths)[0], "src/panel/protocol.ts");
  assert.equal(rank("PaTest", paths)[0], "test/unit/panel.test.ts");
  assert.equal(rank("rdm", paths)[0], "README.md");
  assert.deepEqual([...foldersOf(["src/panel/a.ts", "src/b.ts", "c.ts"])], ["src/panel/", "src/"]);
  assert.equal(rank("pan", ["src/webview/expand.ts", "src/panel/"])[0], "src/panel/", "a folder by its name");
  assert.deepEqual(rank("zzz", paths), []);
  assert.deepEqual(rank("", paths, new Set(["src/webview/codeblock.ts"]))[0], "src/webview/codeblock.ts", "open editors first");
  assert.equal(rank("f", Array.from({ length: 200 }, (_, i) => `f${i}`)).length, mostFiles);
});

test("dropped files become content: images with their data, others as links, and the rest is refused by name", async (t) => {
  const at = folder(t);
  writeFileSync(join(at, "small.png"), "png");
  writeFileSync(join(at, "a b.txt"), "text");
  writeFileSync(join(at, "large.jpg"), "");
  truncateSync(join(at, "large.jpg"), longestImage + 1);
  mkdirSync(join(at, "folder"));
  const uris = ["small.png", "a%20b.txt", "large.jpg", "folder", "nothing.txt"].map((name) => `file://${at}/${name}`);
  const { content, refused } = await readUris([...uris, "https://example.org/"], (uri) => fileURLToPath(uri));
  assert.deepEqual(content, [
    { type: "image", mimeType: "image/png", uri: uris[0], data: Buffer.from("png").toString("base64") },
    { type: "resource_link", uri: uris[1], name: "a b.txt", size: 4 },
    { type: "resource_link", uri: uris[2], name: "large.jpg", size: longestImage + 1, mimeType: "image/jpeg" },
    { type: "resource_link", uri: uris[3], name: "folder" },
  ]);
  assert.deepEqual(refused.length, 2);
  assert.match(refused[0]!, /nothing\.txt: there is no such file/);
  assert.match(refused[1]!, /^https:\/\/example\.org/);
});

test("the page lets run nothing but its own script, and is written as text", () => {
  const html = pageHtml({ source: "https://source", script: "https://source/panel.js", style: "https://source/panel.css", nonce: "abc", title: `<script>"`, place: `{"title":"<&'>"}` });
  assert.match(html, /default-src 'none'; img-src data: https:\/\/source; style-src https:\/\/source; script-src 'nonce-abc'; font-src https:\/\/source"/);
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.ok(!messageHtml("<b>", "<i>").includes("<b>"));
});
