// Syntax highlighting with highlight.js. Its classes have the colours of the theme (panel.css).
import { engine, ready } from "./languages";
import { visible } from "../hub/groups";

/**
 * The limits of a text and of its lines, in characters. highlight.js matches expressions against the rest of the text, so
 * the time of hostile text grows with the square of its length: to 0.5 s at these limits, and to 50 s for one line of 20,000.
 * They are sizes, since a time would depend on the machine and on its other work.
 */
const longestCode = 10_000;
const longestCodeLine = 1_000;

/** The limits of the spans of a text: their number, and how deep they are nested. "${" repeated in bash would nest thousands. */
const mostSpans = 20_000;
const deepest = 50;

/**
 * The lines of a text, highlighted. A language is a name in a code block or the extension of a file. undefined: the
 * language is unknown, or the text exceeds a limit.
 */
export function highlighted(text: string, language: string): DocumentFragment[] | undefined {
  if (language === "" || text.length > longestCode) return undefined;
  const lines = text.split("\n");
  if (lines.some((line) => line.length > longestCodeLine)) return undefined;
  const hljs = engine();
  if (!hljs?.getLanguage(language)) return undefined;
  const { value } = hljs.highlight(text, { language, ignoreIllegals: true });
  const drawn = elementsOf(value);
  return drawn?.length === lines.length && drawn.every((line, i) => line.textContent === visible(lines[i]!)) ? drawn : undefined;
}

/** The language of a file, for highlighted: the extension of its name, or its name without one, such as Makefile. */
export function languageOf(path: string): string {
  return /[^./\\]*$/.exec(path)![0];
}

/** Each character that highlight.js escapes. */
const escapes: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

/**
 * elementsOf makes elements of the HTML of highlight.js, by lines. It knows spans and text only, and no HTML parser reads
 * the HTML: the text of an agent cannot become markup. undefined: the spans exceed a limit.
 */
function elementsOf(html: string): DocumentFragment[] | undefined {
  const lines = [document.createDocumentFragment()];
  let open: HTMLElement[] = [];
  let spans = 0;
  const append = (node: Node | string): void => (open.at(-1) ?? lines.at(-1)!).append(node);
  const begin = (name: string): HTMLElement => {
    const span = document.createElement("span");
    span.className = name;
    append(span);
    spans++;
    return span;
  };
  for (const [whole, name] of html.matchAll(/<span class="([^"]*)">|<\/span>|[^<]+/g)) {
    if (spans > mostSpans || open.length > deepest) return undefined;
    if (name !== undefined) {
      open.push(begin(name));
    } else if (whole === "</span>") {
      open.pop();
    } else {
      for (const [i, part] of whole.split("\n").entries()) {
        if (i > 0) {
          const names = open.map(({ className }) => className);
          lines.push(document.createDocumentFragment());
          open = [];
          for (const name of names) open.push(begin(name));
        }
        if (part !== "") append(visible(part.replace(/&(?:amp|lt|gt|quot|#x27);/g, (escape) => escapes[escape]!)));
      }
    }
  }
  return lines;
}

let observer: IntersectionObserver | undefined;
const draws = new WeakMap<Element, () => void>();
const seen = new Set<Element>();

/**
 * Calls draw once when the user sees an element. Elements that come into view together are drawn one by one, without
 * blocking the page. An element that is removed before is not drawn.
 */
export function whenSeen(element: Element, draw: () => void): void {
  observer ??= new IntersectionObserver((changes) => {
    for (const { isIntersecting, target } of changes) {
      if (!isIntersecting) continue;
      observer!.unobserve(target);
      if (seen.size === 0) setTimeout(drawNext, 0);
      seen.add(target);
    }
  });
  draws.set(element, draw);
  observer.observe(element);
}

function drawNext(): void {
  const waits = ready();
  if (waits) return void waits.then(drawNext);
  const [element] = seen;
  if (!element) return;
  seen.delete(element);
  if (element.isConnected) draws.get(element)?.();
  if (seen.size > 0) setTimeout(drawNext, 0);
}
