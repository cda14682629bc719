// Links: finds the files and URLs in an agent's text, and opens them.
import type { Actions } from "./view";

/** The target of a link. */
export type Target = { url: string } | { path: string; line?: number; column?: number };

/** A piece of text, perhaps with a link target. */
interface Piece {
  text: string;
  target?: Target;
}

// A reference needs a folder or a line number: "e.g." and "node.js" are not references.
const file = String.raw`(?:~|\.{1,2})?(?:[\\/]?[\p{L}\p{N}_@.+-]+[\\/])*[\p{L}\p{N}_@+-][\p{L}\p{N}_@.+-]*\.[A-Za-z][A-Za-z0-9_]{0,9}`;
// Of a range of lines, the link leads to the first one.
const place = String.raw`(?::(\d{1,7})(?::(\d{1,5}))?(?:-\d{1,7})?|#L(\d{1,7})(?:C(\d{1,5}))?(?:-L?\d{1,7}(?:C\d{1,5})?)?)`;

let compiled: { inText: RegExp; inPrompt: RegExp; whole: RegExp } | undefined;

function patterns(): { inText: RegExp; inPrompt: RegExp; whole: RegExp } {
  compiled ??= {
    inText: new RegExp(String.raw`(?<![\p{L}\p{N}_@:/.~+\\-])(${file})${place}(?![\p{L}\p{N}_])`, "gu"),
    inPrompt: new RegExp(String.raw`(?<![\p{L}\p{N}_@:/.~+\\-])(?:@(${file})(?:${place})?|(${file})${place})(?![\p{L}\p{N}_])`, "gu"),
    whole: new RegExp(String.raw`^(${file})(?:${place})?$`, "u"),
  };
  return compiled;
}

/** The longest text that is searched. No readable paragraph is longer. */
const longest = 20_000;

/** Splits prose at the references to lines of files, such as src/a.ts:12, and a prompt also at the files that it mentions, such as @a.ts. */
export function pieces(text: string, inPrompt = false): Piece[] {
  if (text.length > longest || !(inPrompt ? /[:#]L?\d|@/ : /[:#]L?\d/).test(text)) return [{ text }];
  const found: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(inPrompt ? patterns().inPrompt : patterns().inText)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index) });
    found.push({ text: match[0], target: targetOf(inPrompt && match[1] === undefined ? match.slice(5) : match) });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}

/** Returns the file that a piece of code names, if it is nothing but a file name. */
export function fileOf(code: string): Target | undefined {
  if (code.length > 500) return undefined;
  const match = patterns().whole.exec(code.trim());
  if (!match || !(/[\\/]/.test(match[1]!) || match[2] !== undefined || match[4] !== undefined)) return undefined;
  return targetOf(match);
}

/**
 * Returns the target of a Markdown link: a web or mail address, or a file of the workspace.
 * undefined: the link is refused, such as javascript:, data: or command:.
 */
export function linkOf(href: string): Target | undefined {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(href)?.[1]?.toLowerCase();
  switch (scheme) {
    case "http":
    case "https":
    case "mailto":
      return { url: href };
    case "file":
    case "vscode":
    case undefined:
      break;
    default: {
      // A file name with a line number looks like a scheme: a.ts:12.
      const named = /\.[A-Za-z]/.test(scheme) ? fileOf(decoded(href)) : undefined;
      return named;
    }
  }
  if (scheme === "vscode" || href.startsWith("//") || href.startsWith("#") || href === "") return undefined;
  const plain = decoded(scheme === "file" ? href.replace(/^file:\/*/i, "/").replace(/^\/([A-Za-z]:)/, "$1") : href);
  if (/[\u0000-\u001f]/.test(plain)) return undefined;
  const match = new RegExp(`^(.*?)${place}?$`, "u").exec(plain);
  return match?.[1] ? targetOf(match) : undefined;
}

function targetOf(match: ReadonlyArray<string | undefined>): Target {
  const [line, column] = [match[2] ?? match[4], match[3] ?? match[5]];
  return { path: match[1]!, ...(line === undefined ? {} : { line: Number(line) }), ...(column === undefined ? {} : { column: Number(column) }) };
}

function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}

/** Opens the links in an element, by the pointer and by the keyboard. */
export function openLinks(root: HTMLElement, actions: Actions): void {
  const follow = (event: Event): void => {
    const link = event.target instanceof Element ? event.target.closest<HTMLElement>("[role=link]") : null;
    if (!link) return;
    event.preventDefault();
    const { url, path, line, column } = link.dataset;
    if (url !== undefined) actions.openLink(url);
    else if (path !== undefined) actions.openFile(path, line === undefined ? undefined : Number(line), column === undefined ? undefined : Number(column));
  };
  root.addEventListener("click", follow);
  root.addEventListener("keydown", (event) => {
    if (event.key === "Enter") follow(event);
  });
}
