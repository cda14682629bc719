// The time for one long line grows with its length, not with its square: 5 MB must not stop a window.
import assert from "node:assert/strict";
import test from "node:test";
import { locations } from "../../src/hub/builds";
import { extents } from "../../src/hub/changes";
import { short, visible } from "../../src/hub/groups";
import type { Question } from "../../src/hub/model";
import { detailsOf, titleOf } from "../../src/hub/questions";
import { fenced, transcript } from "../../src/hub/transcript";
import type { SessionItem } from "../../src/protocol";
import { withScript } from "../../src/preview/server";
import { blocksOf } from "../../src/webview/markdown";
import { linesOf, nameOf } from "../../src/webview/output";
import { fileOf, linkOf, pieces } from "../../src/webview/references";
import { shapes } from "../longlines";

interface Reader {
  read: (text: string) => unknown;
  /** Maximum length of its text, in characters. */
  longest?: number;
}

/** Each function that processes text of an agent or a tool outside the page. */
const readers: Record<string, Reader> = {
  "lines of an output": { read: linesOf },
  "places in prose": { read: (text) => pieces(`:1 ${text}`), longest: 19_000 },
  "the file that code names": { read: fileOf },
  "the target of a link": { read: linkOf },
  "the target of a file link": { read: (text) => linkOf(`file:${text}`) },
  "the name of a path": { read: nameOf },
  "places in a build's output": { read: locations },
  "visible characters": { read: visible },
  "a short text": { read: short },
  "a fenced text": { read: fenced },
  "a transcript": { read: (text) => transcript(text, [{ type: "tool_call", title: text, tool_input: text, result: text }, { type: "message", text }] as unknown as SessionItem[]), longest: 600_000 },
  "the hunks of a diff": { read: (text) => extents({ hunks: [], diff: text }, "after") },
  "the title of a question": { read: (text) => titleOf({ title: text } as Question) },
  "the details of a question": { read: (text) => detailsOf({ title: text, details: text } as Question) },
  // stream.ts reads a message that has definitions of links as a whole, up to this length.
  "blocks of Markdown": { read: blocksOf, longest: 100_000 },
  "a page of the preview": { read: (text) => withScript(Buffer.from(`<head ${text}`)) },
};

/** Maximum factor of work for eight times the text. Linear work grows by 8, quadratic work by 64. */
const most = 24;

/** Shorter times count as this many milliseconds: a busy machine can add as much. */
const least = 50;

for (const [name, { read, longest = 5_000_000 }] of Object.entries(readers)) {
  test(`one long line: ${name}`, () => {
    for (const [shape, unit] of Object.entries(shapes)) {
      let before = least;
      for (let size = Math.floor(longest / 8 ** 4); size <= longest; size *= 8) {
        const text = unit.repeat(Math.ceil(size / unit.length));
        let took = timeOf(() => read(text));
        // Other processes take time, too, so the shortest of several measurements counts.
        for (let again = 0; again < 4 && took > most * before; again++) took = Math.min(took, timeOf(() => read(text)));
        assert.ok(took <= most * before, `${shape}: ${size} characters take ${took} ms, an eighth of them ${before} ms`);
        before = Math.max(took, least);
      }
    }
  });
}

test("after very many open brackets a paragraph has no more links", () => {
  const links = (text: string): number => blocksOf(text).flatMap(({ tokens }) => tokens).flatMap(({ children }) => children ?? []).filter(({ type }) => type === "link_open").length;
  for (const unit of ["[", "![", "[[]"]) assert.equal(links(`${unit.repeat(50_000)}[a](b)`), 0, unit);
  // Text of the user is not cut.
  assert.equal(links("[a [b] c](d) and ![e](f), [g [h](i) j]. ".repeat(1_000)), 2_000);
  assert.equal(links(`${"[".repeat(50_000)}\n\n[a](b)`), 1);
});

function timeOf(work: () => unknown): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
