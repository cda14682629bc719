// The console output and errors of a preview's pages, as the panel lists them.
import { fenced } from "../hub/transcript";

/** A message of a page: the parameters of the methods console and error. */
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
  /** How often the message was repeated. */
  count: number;
}

export type Level = "error" | "warn" | "other";

/** The most entries of the list. */
const mostEntries = 500;

export function levelOf({ kind, level }: Said): Level {
  if (kind === "error" || level === "error") return "error";
  return level === "warn" ? "warn" : "other";
}

/** Adds a message. A repeated message increases the count of the last entry. */
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

/** The source position of a message, as text. */
export function placeOf({ url, line, column }: Said): string {
  const path = url?.replace(/^https?:\/\/[^/]*/, "") ?? "";
  return line ? `${path}:${line}${column ? `:${column}` : ""}` : path;
}

/** A message without the preview's origin, which is random and means nothing to a reader. */
export function withoutOrigin(said: Said, origin: string): Said {
  const cut = (text: string): string => text.replaceAll(origin, "");
  return { ...said, message: cut(said.message), ...(said.url === undefined ? {} : { url: cut(said.url) }), ...(said.stack === undefined ? {} : { stack: cut(said.stack) }) };
}

/** The entries as a report for an agent. */
export function reportOf(entries: readonly Entry[]): string {
  return entries.map((entry) => {
    const where = placeOf(entry).split(lineEnd).join(" ");
    const level = (entry.level ?? "log").split(lineEnd).join(" ");
    return `- ${entry.kind === "error" ? "error" : `console.${level}`}: ${indented(entry.message)}${where ? ` (${where})` : ""}${entry.count > 1 ? ` ×${entry.count}` : ""}${entry.stack ? `\n  ${indented(entry.stack)}` : ""}`;
  }).join("\n");
}

const lineEnd = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;

/** Indents the further lines of a text, so that none looks like another entry. */
function indented(text: string): string {
  return text.split(lineEnd).join("\n  ");
}

/** A prompt from the user's words and a report. The report is in a block that it cannot end, so a page cannot speak for the user. */
export function promptOf(words: string, report: string): string {
  return `${words}\n\nMessages of the preview's pages:\n\n${fenced(report)}`;
}

/** The navigation history of a preview, and the current URL. */
export class Trail {
  constructor(public urls: string[] = ["/"], public at = 0) {}

  get url(): string {
    return this.urls[this.at] ?? "/";
  }

  /** Notes the page's URL. A new one follows the current one, and the URLs after that are dropped. */
  arrived(url: string): void {
    if (url === this.url) return;
    this.urls = [...this.urls.slice(0, this.at + 1), url].slice(-100);
    this.at = this.urls.length - 1;
  }

  /** Goes back (-1) or forward (1) and returns the URL. undefined: there is none. */
  step(by: -1 | 1): string | undefined {
    const url = this.urls[this.at + by];
    if (url !== undefined) this.at += by;
    return url;
  }
}
