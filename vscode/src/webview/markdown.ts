// Markdown as elements. Each is made from a token of markdown-it, so an agent's text never becomes markup, a style or a
// script. HTML is shown as text.
import MarkdownIt from "markdown-it";
import type { MarkdownIt as Parser, StateCore, StateInline, Token } from "markdown-it";
import { fill, make } from "./dom";
import { codeBlock, colourCode } from "./output";
import { fileOf, linkOf, pieces } from "./references";
import type { Target } from "./references";

const elements = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s", "label"]);

/** Rows of a table that are shown at first. */
const firstRows = 300;

/** The limit of tokens that are read to match the brackets of a paragraph. Each pair of brackets reads its text about twice. */
const bracketSteps = 1_000;
const bracketStepsPerCharacter = 8;

let parser: Parser | undefined;

function markdown(): Parser {
  if (!parser) {
    parser = new MarkdownIt({ html: false, linkify: true, breaks: false });
    parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
    // linkOf refuses both. The library would read up to 10,000 characters at each refused address.
    parser.linkify.add("ftp:", null).add("//", null);
    limitBrackets(parser);
    parser.core.ruler.push("tasks", (state) => markTasks(state));
    // A refused link stays visible as text. linkOf decides.
    parser.validateLink = (url) => linkOf(url) !== undefined || /^data:image\/(?:png|gif|jpeg|webp);base64,/i.test(url);
  }
  return parser;
}

/** Makes the text of a list item that begins with [ ] or [x] the label of a box. */
function markTasks({ tokens, Token: New }: StateCore): void {
  for (const [i, { children }] of tokens.entries()) {
    const first = children?.[0];
    if (!children || first?.type !== "text" || tokens[i - 2]?.type !== "list_item_open") continue;
    const mark = /^\[([ xX])\][ \t]+/.exec(first.content);
    if (!mark) continue;
    first.content = first.content.slice(mark[0].length);
    const box = new New("task_box", "input", 0);
    box.info = mark[1]!.toLowerCase();
    children.unshift(new New("label_open", "label", 1), box);
    children.push(new New("label_close", "label", -1));
  }
}

/**
 * Limits the work for brackets. markdown-it looks for the "]" of each "[" up to 100 levels deep, so that 400 KB of
 * "[" take 100 times as long as 400 KB of letters. After the limit, the brackets of a paragraph are plain text.
 */
function limitBrackets(of: Parser): void {
  const left = new WeakMap<StateInline, number>();
  const skipToken = of.inline.skipToken.bind(of.inline);
  of.inline.skipToken = (state) => {
    const steps = left.get(state) ?? bracketSteps + bracketStepsPerCharacter * state.src.length;
    left.set(state, steps - 1);
    if (steps > 0) skipToken(state);
    else state.pos = state.posMax;
  };
}

/** A block at the outermost level: a paragraph, a list, a table. */
export interface Block {
  tokens: Token[];
  /** The first line, and the line after the last. */
  from: number;
  to: number;
}

/** The blocks of a text, in their order. */
export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let depth = 0;
  for (const token of markdown().parse(text, {})) {
    if (depth === 0) blocks.push({ tokens: [], from: token.map?.[0] ?? 0, to: token.map?.[1] ?? 0 });
    blocks.at(-1)!.tokens.push(token);
    depth += token.nesting;
  }
  return blocks;
}

/** The elements of a block. */
export function renderBlock(block: Block): DocumentFragment {
  const fragment = document.createDocumentFragment();
  render(block.tokens, fragment);
  return fragment;
}

/** A whole text. */
export function renderMarkdown(text: string): DocumentFragment {
  const fragment = document.createDocumentFragment();
  for (const block of blocksOf(text)) render(block.tokens, fragment);
  colourCode(fragment);
  return fragment;
}

function render(tokens: readonly Token[], into: Node): void {
  const open: Node[] = [into];
  for (const token of tokens) {
    const parent = open.at(-1) as Element;
    if (token.nesting === -1) {
      if (!token.hidden && open.length > 1) closed(open.pop()!);
    } else if (token.nesting === 1) {
      if (token.hidden) continue;
      const child = opened(token);
      parent.append(child);
      open.push(token.tag === "table" ? child.firstElementChild! : child);
    } else {
      single(token, parent);
    }
  }
}

function opened(token: Token): HTMLElement {
  if (token.type === "link_open") return linkElement(linkOf(attribute(token, "href")));
  if (!elements.has(token.tag)) return make("span");
  const element = document.createElement(token.tag);
  if (token.tag === "table") return make("div", { class: "table-scroll", is: { tabindex: "0", role: "group", "aria-label": "Table" } }, element);
  const style = attribute(token, "style");
  if (style.includes("right")) element.classList.add("align-right");
  if (style.includes("center")) element.classList.add("align-center");
  const start = attribute(token, "start");
  if (start !== "" && element instanceof HTMLOListElement) element.start = Number(start);
  return element;
}

/** closed folds the further rows of a long table. */
function closed(node: Node): void {
  if (!(node instanceof HTMLTableSectionElement) || node.tagName !== "TBODY" || node.rows.length <= firstRows) return;
  const rest = [...node.rows].slice(firstRows);
  for (const row of rest) row.remove();
  const more = make("button", { class: "text-button", is: { type: "button" } });
  const row = make("tr", {}, make("td", { is: { colspan: "99" } }, more));
  const draw = (): void => {
    if (rest.length === 0) row.remove();
    more.textContent = `Show ${Math.min(rest.length, firstRows)} more rows (${rest.length} hidden)`;
  };
  more.addEventListener("click", () => {
    row.before(...rest.splice(0, firstRows));
    draw();
  });
  draw();
  node.append(row);
}

function attribute(token: Token, name: string): string {
  return String(token.attrGet(name) ?? "");
}

function single(token: Token, parent: Element): void {
  switch (token.type) {
    case "inline":
      return render(token.children ?? [], parent);
    case "text":
    case "text_special":
      return proseInto(parent, token.content);
    case "softbreak":
      return fill(parent, "\n");
    case "hardbreak":
      return fill(parent, make("br"));
    case "hr":
      return fill(parent, make("hr"));
    case "code_inline":
      return fill(parent, inlineCode(token.content, parent));
    case "fence":
    case "code_block":
      return fill(parent, codeBlock(token.content, token.info.trim().split(/\s+/, 1)[0] ?? "").element);
    case "image":
      return fill(parent, image(token));
    case "task_box":
      return fill(parent, taskBox(token.info === "x"));
    default:
      return fill(parent, token.content);
  }
}

/** Shows a prompt, with links to the files that it mentions. */
export function promptInto(parent: Element, text: string): void {
  parent.replaceChildren();
  for (const { text: part, target } of pieces(text, true)) fill(parent, target ? fillWith(linkElement(target), part) : part);
}

function proseInto(parent: Element, text: string): void {
  if (parent.closest("[role=link]")) return fill(parent, text);
  for (const { text: part, target } of pieces(text)) fill(parent, target ? fillWith(linkElement(target), part) : part);
}

function inlineCode(content: string, parent: Element): HTMLElement {
  const target = parent.closest("[role=link]") ? undefined : fileOf(content);
  const code = make("code", { text: content });
  return target ? fillWith(linkElement(target), code) : code;
}

/** image shows an image whose data is in the text. Any other image is a link, because the page loads nothing from elsewhere. */
function image(token: Token): HTMLElement {
  const source = attribute(token, "src");
  if (/^data:/i.test(source)) return make("img", { class: "picture", is: { src: source, alt: token.content || "Image" } });
  return fillWith(linkElement(linkOf(source)), token.content || source);
}

/** taskBox makes the box of a task. Its label is the text of the task. */
function taskBox(done: boolean): HTMLElement {
  const box = make("input", { class: "task-box", is: { type: "checkbox", disabled: "" } });
  if (done) box.setAttribute("checked", "");
  return box;
}

/** linkElement makes a link that the panel opens (openLinks). It has no href, because the webview would follow that as well. */
function linkElement(target: Target | undefined): HTMLElement {
  const link = make("span", { class: "link" });
  if (!target) return link;
  link.setAttribute("role", "link");
  link.tabIndex = 0;
  if ("url" in target) {
    link.dataset["url"] = target.url;
    link.title = target.url;
  } else {
    link.dataset["path"] = target.path;
    if (target.line !== undefined) link.dataset["line"] = String(target.line);
    if (target.column !== undefined) link.dataset["column"] = String(target.column);
    link.title = target.line === undefined ? target.path : `${target.path}:${target.line}`;
  }
  return link;
}

function fillWith(element: HTMLElement, child: Node | string): HTMLElement {
  fill(element, child);
  return element;
}
