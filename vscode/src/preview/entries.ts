// What the pages of a preview have said, as the panel lists it.
import { fenced } from "../hub/transcript";

/** Something that a page has said: the params of the methods console and error. */
export interface Said {
  kind: "console" | "error";
  level?: string;
  message: string;
  url?: string;
  line?: number;
  column?: number;
  stack?: string;
}

export interface Entry extends Said {
  /** How often it was said, one after the other. */
  count: number;
}

export type Level = "error" | "warn" | "other";

/** How many are kept. */
const mostEntries = 500;

export function levelOf({ kind, level }: Said): Level {
  if (kind === "error" || level === "error") return "error";
  return level === "warn" ? "warn" : "other";
}

/** Adds what was said; what is said over and over is counted. */
export function add(entries: readonly Entry[], said: Said): Entry[] {
  const last = entries.at(-1);
  const same = last && last.kind === said.kind && last.level === said.level && last.message === said.message && last.url === said.url && last.line === said.line;
  return same ? [...entries.slice(0, -1), { ...last, count: last.count + 1 }] : [...entries, { ...said, count: 1 }].slice(-mostEntries);
}

export function counts(entries: readonly Entry[]): Record<Level, number> {
  const numbers = { error: 0, warn: 0, other: 0 };
  for (const entry of entries) numbers[levelOf(entry)] += entry.count;
  return numbers;
}

/** Where it was said, in words. */
export function placeOf({ url, line, column }: Said): string {
  const path = url?.replace(/^https?:\/\/[^/]*/, "") ?? "";
  return line ? `${path}:${line}${column ? `:${column}` : ""}` : path;
}

/** The same without the origin of the preview, which is made anew for each panel and means nothing to people and agents. */
export function withoutOrigin(said: Said, origin: string): Said {
  const cut = (text: string): string => text.replaceAll(origin, "");
  return { ...said, message: cut(said.message), ...(said.url === undefined ? {} : { url: cut(said.url) }), ...(said.stack === undefined ? {} : { stack: cut(said.stack) }) };
}

/** What an agent is told of it. */
export function reportOf(entries: readonly Entry[]): string {
  return entries.map((entry) => {
    const where = placeOf(entry).split(lineEnd).join(" ");
    const level = (entry.level ?? "log").split(lineEnd).join(" ");
    return `- ${entry.kind === "error" ? "error" : `console.${level}`}: ${indented(entry.message)}${where ? ` (${where})` : ""}${entry.count > 1 ? ` ×${entry.count}` : ""}${entry.stack ? `\n  ${indented(entry.stack)}` : ""}`;
  }).join("\n");
}

const lineEnd = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;

/** The text behind an entry's beginning: no line of it passes for another entry. */
function indented(text: string): string {
  return text.split(lineEnd).join("\n  ");
}

/** A prompt of a person's words and a report, in a block that the report cannot end: a page does not speak for the person. */
export function promptOf(words: string, report: string): string {
  return `${words}\n\nPages of the preview say:\n\n${fenced(report)}`;
}

/** The addresses that a person has been to, and the one that is shown. */
export class Trail {
  constructor(public urls: string[] = ["/"], public at = 0) {}

  get url(): string {
    return this.urls[this.at] ?? "/";
  }

  /** The page is at an address: another one than before goes behind it. */
  arrived(url: string): void {
    if (url === this.url) return;
    this.urls = [...this.urls.slice(0, this.at + 1), url].slice(-100);
    this.at = this.urls.length - 1;
  }

  /** Goes back (-1) or forward (1), and returns where that is; nothing at an end. */
  step(by: -1 | 1): string | undefined {
    const url = this.urls[this.at + by];
    if (url !== undefined) this.at += by;
    return url;
  }
}
