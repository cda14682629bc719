// Creates elements. Text is never markup, and its invisible characters are written out.
import { clipped, longestShown, visible } from "../hub/groups";
import type { PanelCommand } from "../panel/protocol";

/** The longest text of a tooltip or another attribute, in characters. */
const longestTip = 2_000;

export type Child = Node | string | undefined | false;

export interface ElementOptions {
  class?: string;
  text?: string;
  /** The tooltip. */
  tip?: string;
  /** Attributes, such as those of ARIA. */
  is?: Record<string, string>;
  on?: { [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => void };
}

/** Creates an element. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, options: ElementOptions = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (options.class !== undefined) element.className = options.class;
  if (options.text !== undefined) element.textContent = visible(clipped(options.text));
  if (options.tip !== undefined) element.title = visible(clipped(options.tip, longestTip));
  for (const [name, value] of Object.entries(options.is ?? {})) element.setAttribute(name, name === "src" ? value : visible(clipped(value, longestTip)));
  for (const [type, listener] of Object.entries(options.on ?? {})) element.addEventListener(type, listener as EventListener);
  fill(element, ...children);
  return element;
}

/** Appends children to an element. */
export function fill(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === undefined || child === false) continue;
    element.append(typeof child === "string" ? visible(child) : child);
  }
}

/** Sets the text of an element if it has changed: a screen reader reads a new text again. A very long text would block the browser, so it is cut. */
export function setText(element: Element, text: string): void {
  const shown = visible(clipped(text));
  if (element.textContent !== shown) element.textContent = shown;
}

/** Sets the text of an element. A long one has a button that shows all of it. */
export function setLongText(element: HTMLElement, text: string): void {
  if (longTexts.get(element) === text) return;
  longTexts.set(element, text);
  setText(element, text);
  if (clipped(text) === text) return;
  const all = button({
    class: "text-button", label: "Show all",
    press: () => {
      element.replaceChildren();
      inTurns(piecesOf(text), element, (piece) => make("span", { text: piece }));
    },
  });
  element.append(" ", all);
}

const longTexts = new WeakMap<Element, string>();

/** piecesOf cuts a text into pieces that the browser can show. */
export function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const end = cutBefore(text, at + longestShown);
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

/** cutBefore returns the offset at or before at that is not within a character. */
export function cutBefore(text: string, at: number): number {
  return at < text.length && /[\udc00-\udfff]/.test(text[at]!) ? at - 1 : Math.min(at, text.length);
}

/** The number of parts shown at first, and again for each press of the button. */
const partsOfPress = 50;

/** Draws parts one by one, without blocking the page. After some of them a button shows more. */
export function inTurns<T>(parts: readonly T[], into: Element, draw: (part: T) => HTMLElement): void {
  const next = (at: number, until: number): void => {
    if (at > 0 && !into.isConnected) return;
    if (at === parts.length) return;
    if (at === until) {
      const more = button({
        class: "text-button", label: "Show more",
        press: () => {
          more.remove();
          next(at, at + partsOfPress);
        },
      });
      into.append(more);
      return;
    }
    into.append(draw(parts[at]!));
    setTimeout(() => next(at + 1, until), 0);
  };
  next(0, partsOfPress);
}

/**
 * A button with an icon, a label or both. Without a label it needs a name for screen readers. It shows the key that presses it; the
 * caller takes the key. A home of the page that lacks the command of a button hides it in its style sheet.
 */
export function button(options: { label?: string; icon?: IconName; name?: string; class?: string; tip?: string; key?: string; command?: PanelCommand; press: (event: MouseEvent) => void }): HTMLButtonElement {
  const is: Record<string, string> = { type: "button", ...(options.key !== undefined && { "aria-keyshortcuts": options.key }), ...(options.command !== undefined && { "data-command": options.command }) };
  const name = options.name ?? (options.label === undefined ? options.tip : undefined);
  if (name !== undefined) is["aria-label"] = name;
  const tip = options.tip ?? (options.label === undefined ? options.name : undefined);
  return make(
    "button",
    { class: options.class ?? "icon-button", is, ...(tip === undefined ? {} : { tip }), on: { click: options.press } },
    options.icon && icon(options.icon),
    options.key !== undefined && keyHint(options.key),
    options.label !== undefined && make("span", { text: options.label }),
  );
}

/** A key as the shell and Emacs write it, such as [y]. Screen readers ignore it. */
export function keyHint(key: string): HTMLElement {
  return make("kbd", { text: `[${key}]`, is: { "aria-hidden": "true" } });
}

/** A note that a text is cut, with a button that loads all of it. */
export function loadButton(words: string, load: () => Promise<void>): HTMLElement {
  const note = make("span", { class: "note", is: { role: "status" }, text: words });
  let busy = false;
  const all = button({
    class: "text-button", label: "Show all",
    press: () => {
      if (busy) return;
      busy = true;
      setText(note, "Loading all of it…");
      load().catch((error: unknown) => {
        busy = false;
        setText(note, `The rest could not be loaded: ${(error as Error).message}`);
      });
    },
  });
  return make("div", { class: "cut" }, note, " ", all);
}

const outlines = {
  add: "M8 3v10M3 8h10",
  back: "M10 3 5 8l5 5",
  check: "M3 8.5 6.5 12 13 4.5",
  close: "M4 4l8 8M12 4l-8 8",
  chevron: "M6 4l4 4-4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  up: "M8 13V3M4 7l4-4 4 4",
  send: "M8 13V3M4 7l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  insert: "M2.5 3.5h6M2.5 6.5h4M2.500 9.500h4M2.500 12.500h6M14 8H9.500M11.500 5.500 9 8l2.500 2.500",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  edit: "M3 13l.8-3.2L11 2.6l2.4 2.4-7.2 7.2zM9.6 4l2.4 2.4",
  terminal: "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10h3",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 14 14",
  file: "M4 1.5h5l3.5 3.5v9.5H4zM9 1.5V5h3.5",
  globe: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM2 8h12M8 2c-4 4-4 8 0 12M8 2c4 4 4 8 0 12",
  think: "M5.5 11.5a4.5 4.5 0 1 1 5 0v1.5h-5zM6.5 15h3",
  move: "M2.5 8h11M9.5 4l4 4-4 4",
  trash: "M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.7 9h5.6l.7-9",
  tool: "M10.5 2.2a3.6 3.6 0 0 0-3.6 4.9L2.3 11.7l2 2 4.6-4.6a3.6 3.6 0 0 0 4.6-4.7L11.2 6.700 9.300 4.800l2-2.300z",
  agent: "M3 5.500h10v7.500H3zM8 5.500V2.500M6 8.500v1.500M10 8.500v1.500",
  warning: "M8 2 14.500 13.500h-13zM8 6.500v3.500M8 11.500v.8",
  question: "M5.500 6a2.500 2.500 0 1 1 3.700 2.200c-.8.5-1.200.9-1.200 1.900M8 12.300v.7",
  fork: "M4.500 2.500v11M11.500 2.500v2.500c0 3-7 2-7 5.500M3 2.500h3M10 2.500h3M3 13.500h3",
  branch: "M4.500 5.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4.500 13.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM11.500 6.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4.500 5.500v5M11.500 6.500c0 2-3 2.500-7 2.500",
  diff: "M8 3v6M5 6h6M5 12.500h6",
  rewind: "M6 3 2.500 6.500 6 10M2.500 6.500h7a4 4 0 0 1 0 8H6",
  paperclip: "M12.500 7 7.500 12a3 3 0 0 1-4.200-4.200l5.500-5.500a2 2 0 0 1 2.900 2.900L6.500 10.400a1 1 0 0 1-1.400-1.400L9.500 4.600",
  link: "M9 3h4v4M13 3 7.500 8.500M11 9.500V13H3V5h3.500",
  list: "M5.500 4H13M5.500 8H13M5.500 12H13M2.500 4h.5M2.500 8h.5M2.500 12h.5",
} as const;

export type IconName = keyof typeof outlines;

/** An icon. Screen readers ignore it. */
export function icon(name: IconName): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [attribute, value] of Object.entries({ viewBox: "0 0 16 16", class: `icon icon-${name}`, "aria-hidden": "true", focusable: "false" })) svg.setAttribute(attribute, value);
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", outlines[name]);
  svg.append(path);
  return svg;
}
